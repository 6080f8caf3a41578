/* Turns models.json and gpus.json into const C tables: generate MODELS.json GPUS.json OUTPUT.c
 *
 * Runs at build time. A bad row stops the build with a sentence that names the file, the row and the field. */
#include <cjson/cJSON.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FILE = 4 << 20, MAX_NAME = 63 }; /* OC_NAME_MAX of config.h, less its NUL */

static const double MAX_COUNT = 9007199254740992.0; /* 2^53: JSON numbers are doubles, exact up to here */

enum kind {
    TEXT,     /* printable ASCII, not empty */
    COUNT,    /* integer, at least 1 */
    OPTIONAL, /* integer, at least 1, or absent: 0 */
    NATURAL,  /* integer, at least 0 */
    GIB,      /* a positive number of GiB, written out as bytes */
    MIB,      /* a positive whole number of MiB, written out as bytes */
    FLAG,     /* true or false; absent: false */
    CHOICE    /* one of `choices`, written out as an enum constant of config.h */
};

struct choice {
    const char *name, *constant;
};

struct field {
    const char *key;    /* in the JSON row */
    const char *member; /* in the C struct */
    enum kind kind;
    const struct choice *choices; /* CHOICE: ended by a NULL name */
};

static const struct choice positions[] = {
    {"learned", "OC_POS_LEARNED"}, {"rope", "OC_POS_ROPE"}, {"alibi", "OC_POS_ALIBI"}, {"none", "OC_POS_NONE"}, {0}};
static const struct choice norms[] = {{"layernorm", "OC_NORM_LAYERNORM"}, {"rmsnorm", "OC_NORM_RMSNORM"}, {0}};
static const struct choice activations[] = {
    {"gelu", "OC_ACT_GELU"},     {"relu", "OC_ACT_RELU"},   {"squared-relu", "OC_ACT_SQUARED_RELU"},
    {"swiglu", "OC_ACT_SWIGLU"}, {"geglu", "OC_ACT_GEGLU"}, {0}};

static const struct field model_fields[] = {
    {"name", "name", TEXT},
    {"params", "params", COUNT},
    {"source", "source", TEXT},
    {"layers", "layers", COUNT},
    {"hidden", "hidden", COUNT},
    {"heads", "heads", COUNT},
    {"kv_heads", "kv_heads", COUNT},
    {"head_dim", "head_dim", COUNT},
    {"ffn", "ffn", COUNT},
    {"vocab", "vocab", COUNT},
    {"max_positions", "max_positions", OPTIONAL},
    {"positions", "positions", CHOICE, positions},
    {"norm", "norm", CHOICE, norms},
    {"norms_per_layer", "norms_per_layer", COUNT},
    {"activation", "activation", CHOICE, activations},
    {"tied", "tied", FLAG},
    {"linear_bias", "linear_bias", FLAG},
    {"qkv_bias", "qkv_bias", FLAG},
    {"head_bias", "head_bias", FLAG},
    {"qk_norm", "qk_norm", FLAG},
    {"parallel_residual", "parallel_residual", FLAG},
    {"embedding_norm", "embedding_norm", FLAG},
    {"embedding_dim", "embedding_dim", OPTIONAL},
    {"mlp_bias", "mlp_bias", FLAG},
    {"no_final_norm", "no_final_norm", FLAG},
    {"attention_sinks", "attention_sinks", FLAG},
    {"experts", "experts", OPTIONAL},
    {"experts_per_token", "experts_per_token", OPTIONAL},
    {"expert_ffn", "expert_ffn", OPTIONAL},
    {"shared_expert_ffn", "shared_expert_ffn", OPTIONAL},
    {"shared_expert_gate", "shared_expert_gate", FLAG},
    {"router_bias", "router_bias", FLAG},
    {"dense_layers", "dense_layers", OPTIONAL},
    {"q_lora_rank", "q_lora_rank", OPTIONAL},
    {"kv_lora_rank", "kv_lora_rank", OPTIONAL},
    {"qk_nope_head_dim", "qk_nope_head_dim", OPTIONAL},
    {"qk_rope_head_dim", "qk_rope_head_dim", OPTIONAL},
    {"v_head_dim", "v_head_dim", OPTIONAL},
    {0},
};

static const struct field gpu_fields[] = {
    {"name", "name", TEXT}, {"title", "title", TEXT},       {"total_mib", "total", MIB}, {"cuda_gib", "capacity", GIB},
    {"sm", "sm", NATURAL},  {"verified", "verified", FLAG}, {"source", "source", TEXT},  {0},
};

/* The row being read, for messages, and where its fields that are not written in it come from. */
struct row {
    const char *file;
    int number; /* 1-based */
    const char *name;
    const cJSON *own, *family; /* family may be NULL */
};

static bool __attribute__((format(printf, 2, 3))) fail(const struct row *row, const char *format, ...)
{
    fprintf(stderr, "%s: row %d (%s): ", row->file, row->number, row->name ? row->name : "no name");
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

static const cJSON *lookup(const struct row *row, const char *key)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(row->own, key);
    return value ? value : cJSON_GetObjectItemCaseSensitive(row->family, key);
}

static bool printable(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p < ' ' || *p > '~') return false;
    return *text != '\0';
}

/* Names are typed after --set and compared with dashes, dots and underscores taken as equal. */
static bool good_name(const char *name)
{
    if (!name || strlen(name) > MAX_NAME || !isalnum((unsigned char)name[0])) return false;
    for (const char *p = name; *p; p++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-.", *p)) return false;
    return true;
}

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a == '.' ? '-' : *a) != (*b == '.' ? '-' : *b)) return false;
    return *a == *b;
}

static bool write_text(FILE *out, const struct row *row, const struct field *field, const cJSON *value)
{
    if (!cJSON_IsString(value) || !printable(value->valuestring))
        return fail(row, "\"%s\" must be a text of printable ASCII characters", field->key);
    fprintf(out, ".%s = \"", field->member);
    for (const char *p = value->valuestring; *p; p++) fprintf(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    fputs("\", ", out);
    return true;
}

static bool write_number(FILE *out, const struct row *row, const struct field *field, const cJSON *value)
{
    if (!value && field->kind == OPTIONAL) return true;
    double number = cJSON_IsNumber(value) ? value->valuedouble : -1;
    double least = field->kind == NATURAL ? 0 : field->kind == GIB ? 0.001 : 1;
    double most = field->kind == GIB || field->kind == MIB ? 1048576.0 * 1024 : MAX_COUNT;
    if (!(number >= least && number <= most))
        return fail(row, "\"%s\" must be a number, at least %g", field->key, least);
    if (field->kind != GIB && number != (double)(long long)number)
        return fail(row, "\"%s\" must be a whole number", field->key);
    double scale = field->kind == GIB ? 1073741824.0 : field->kind == MIB ? 1048576.0 : 1;
    fprintf(out, ".%s = %lld, ", field->member, (long long)(number * scale));
    return true;
}

static bool write_choice(FILE *out, const struct row *row, const struct field *field, const cJSON *value)
{
    const struct choice *choice = field->choices;
    while (choice->name && !(cJSON_IsString(value) && !strcmp(choice->name, value->valuestring))) choice++;
    if (choice->name) return fprintf(out, ".%s = %s, ", field->member, choice->constant) > 0;
    fail(row, "\"%s\" must be one of:", field->key);
    for (choice = field->choices; choice->name; choice++) fprintf(stderr, "  %s\n", choice->name);
    return false;
}

static bool write_field(FILE *out, const struct row *row, const struct field *field)
{
    const cJSON *value = lookup(row, field->key);
    switch (field->kind) {
    case TEXT: return write_text(out, row, field, value);
    case FLAG:
        if (value && !cJSON_IsBool(value)) return fail(row, "\"%s\" must be true or false", field->key);
        if (cJSON_IsTrue(value)) fprintf(out, ".%s = true, ", field->member);
        return true;
    case CHOICE: return write_choice(out, row, field, value);
    default: return write_number(out, row, field, value);
    }
}

/* A misspelt key would silently leave its field at the default. */
static bool check_keys(const struct row *row, const cJSON *object, const struct field *fields)
{
    for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
        const struct field *field = fields;
        while (field->key && strcmp(field->key, item->string)) field++;
        if (!field->key && strcmp(item->string, "family")) return fail(row, "there is no field \"%s\"", item->string);
        if (cJSON_GetObjectItemCaseSensitive(object, item->string) != item)
            return fail(row, "\"%s\" stands twice", item->string);
    }
    return true;
}

static double number_of(const struct row *row, const char *key)
{
    const cJSON *value = lookup(row, key);
    return cJSON_IsNumber(value) ? value->valuedouble : 0;
}

static bool check_model(const struct row *row)
{
    long long heads = (long long)number_of(row, "heads"), kv_heads = (long long)number_of(row, "kv_heads");
    if (heads % kv_heads) return fail(row, "\"heads\" must be a multiple of \"kv_heads\"");
    bool learned = !strcmp(lookup(row, "positions")->valuestring, "learned");
    if (learned != (lookup(row, "max_positions") != NULL))
        return fail(row, "\"max_positions\" goes with learned positions, and only with them");
    const bool experts = number_of(row, "experts") > 0;
    if (experts != (number_of(row, "expert_ffn") > 0) || experts != (number_of(row, "experts_per_token") > 0))
        return fail(row, "\"experts\", \"expert_ffn\" and \"experts_per_token\" go together");
    double per_layer = number_of(row, "norms_per_layer");
    if (per_layer != 1 && per_layer != 2 && per_layer != 4) return fail(row, "\"norms_per_layer\" must be 1, 2 or 4");
    return true;
}

static bool check_gpu(const struct row *row)
{
    if (number_of(row, "cuda_gib") * 1024 > number_of(row, "total_mib"))
        return fail(row, "CUDA cannot report more (\"cuda_gib\") than the device has (\"total_mib\")");
    return true;
}

static bool write_row(FILE *out, struct row *row, const cJSON *families, const struct field *fields,
                      bool (*check)(const struct row *row))
{
    const cJSON *family = cJSON_GetObjectItemCaseSensitive(row->own, "family");
    row->name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row->own, "name"));
    row->family = family ? cJSON_GetObjectItemCaseSensitive(families, cJSON_GetStringValue(family)) : NULL;
    if (!good_name(row->name))
        return fail(row, "\"name\" must be at most %d of a-z 0-9 - . and begin with a letter or digit", MAX_NAME);
    for (const cJSON *other = row->own->prev; other->next; other = other->prev) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(other, "name"));
        if (same_name(name, row->name)) return fail(row, "this name is taken already, as %s", name);
    }
    if (family && !row->family) return fail(row, "its family does not stand under \"families\"");
    if (!check_keys(row, row->own, fields) || !check_keys(row, row->family, fields)) return false;
    fputs("    {", out);
    for (const struct field *field = fields; field->key; field++)
        if (!write_field(out, row, field)) return false;
    fputs("},\n", out);
    return check(row);
}

static bool write_table(FILE *out, const char *file, const cJSON *root, const char *list, const char *table,
                        const struct field *fields, bool (*check)(const struct row *row))
{
    const cJSON *rows = cJSON_GetObjectItemCaseSensitive(root, list);
    const cJSON *families = cJSON_GetObjectItemCaseSensitive(root, "families");
    if (!cJSON_IsArray(rows) || !rows->child) {
        fprintf(stderr, "%s: there must be a list \"%s\" of at least one row\n", file, list);
        return false;
    }
    fprintf(out, "\nconst struct oc_%s_row oc_%s_rows[] = {\n", table, table);
    struct row row = {.file = file};
    for (row.own = rows->child; row.own; row.own = row.own->next) {
        row.number++;
        if (!write_row(out, &row, families, fields, check)) return false;
    }
    fprintf(out, "};\nconst int oc_%s_count = %d;\n", table, row.number);
    return true;
}

static cJSON *read_json(const char *path)
{
    FILE *in = fopen(path, "rb");
    char *text = malloc(MAX_FILE + 1);
    if (!in || !text) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    size_t n = fread(text, 1, MAX_FILE, in);
    fclose(in);
    text[n] = '\0';
    const char *end = NULL;
    cJSON *root = cJSON_ParseWithOpts(text, &end, true);
    if (!root) {
        int line = 1;
        for (const char *p = text; end && p < end; p++) line += *p == '\n';
        fprintf(stderr, "%s:%d: this is not JSON\n", path, line);
    }
    free(text);
    return root;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: generate MODELS.json GPUS.json OUTPUT.c\n");
        return EXIT_FAILURE;
    }
    cJSON *models = read_json(argv[1]), *gpus = read_json(argv[2]);
    FILE *out = models && gpus ? fopen(argv[3], "w") : NULL;
    if (models && gpus && !out) perror(argv[3]);
    bool good = out != NULL;
    if (good) {
        fputs("/* Made by model/data/generate.c from models.json and gpus.json. */\n#include \"model/data/tables.h\"\n",
              out);
        good = write_table(out, base_name(argv[1]), models, "models", "model", model_fields, check_model) &&
               write_table(out, base_name(argv[2]), gpus, "gpus", "gpu", gpu_fields, check_gpu);
    }
    if (out && fclose(out) && good) {
        perror(argv[3]);
        good = false;
    }
    if (out && !good) remove(argv[3]);
    cJSON_Delete(models);
    cJSON_Delete(gpus);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
