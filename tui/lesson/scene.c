/* Expressions of lessons: what their names are worth in a scene. */
#include "tui/lesson/lesson.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tui/report/units.h"

enum kind { NUMBER, BYTES, TEXT };

struct value {
    enum kind kind;
    double number;
    bool change; /* a difference of bytes: shown with its sign */
    char text[OC_NAME_MAX];
};

struct reader {
    const struct oc_scene *scene;
    const char *at, *whole;
    struct oc_error *error;
};

static bool fail(const struct reader *reader, const char *what)
{
    return oc_fail(reader->error, OC_E_PARSE, "in \"%.120s\": %.80s", reader->whole, what);
}

static struct value bytes(uint64_t amount)
{
    return (struct value){.kind = BYTES, .number = (double)amount};
}

static struct value number(double amount)
{
    return (struct value){.kind = NUMBER, .number = amount};
}

/* ---- names ---- */

static int class_of(const char *name)
{
    for (int i = 0; i < OC_CLASSES; i++)
        if (name[0] == oc_class_letter((enum oc_class)i) && !name[1]) return i;
    return -1;
}

/* "", ".G": an instant as a whole, or one class of it. */
static bool instant_value(const struct oc_instant *instant, const char *rest, struct value *value)
{
    if (!rest[0]) {
        *value = bytes(instant->allocated);
        return true;
    }
    int class = rest[0] == '.' ? class_of(rest + 1) : -1;
    if (class < 0) return false;
    *value = bytes(instant->classes[class]);
    return true;
}

static bool moment_value(const struct oc_rank *rank, const char *name, struct value *value)
{
    for (int i = OC_M_FORWARD; i < OC_MOMENTS; i++) {
        const char *moment = oc_moment_name((enum oc_moment)i);
        size_t length = strlen(moment);
        if (strncmp(name, moment, length) == 0 && (!name[length] || name[length] == '.'))
            return instant_value(&rank->moments[OC_STEADY][i], name + length, value);
    }
    return false;
}

static bool stage_value(const struct oc_answer *answer, const char *name, struct value *value)
{
    if (strncmp(name, "last", 4) == 0) return instant_value(&answer->ranks[answer->n_ranks - 1].peak, name + 4, value);
    if (strncmp(name, "stage", 5) != 0 || !isdigit((unsigned char)name[5])) return false;
    char *end;
    long stage = strtol(name + 5, &end, 10);
    return stage < answer->n_ranks && instant_value(&answer->ranks[stage].peak, end, value);
}

static bool answer_value(const struct oc_answer *answer, const char *name, struct value *value)
{
    const struct oc_rank *rank = &answer->ranks[answer->verdict.worst_stage];
    const struct {
        const char *name;
        struct value value;
    } known[] = {{"peak", bytes(rank->peak.allocated)},
                 {"first", bytes(rank->first_peak.allocated)},
                 {"device", bytes(answer->verdict.device.high)},
                 {"reserved", bytes(rank->reserved)},
                 {"capacity", bytes(answer->plan.capacity)},
                 {"headroom", {.kind = BYTES, .number = (double)answer->verdict.headroom}},
                 {"params", number((double)rank->params)},
                 {"params.total", number((double)answer->params_total)},
                 {"stages", number(answer->n_ranks)},
                 {"fits", number(answer->verdict.fits)}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        *value = known[i].value;
        return true;
    }
    int class = class_of(name);
    if (class >= 0) *value = bytes(rank->peak.classes[class]);
    return class >= 0 || moment_value(rank, name, value) || stage_value(answer, name, value);
}

static bool option_value(const struct oc_config *resolved, const char *name, struct value *value)
{
    for (int i = 0; i < OC_OPTIONS; i++) {
        const struct oc_option *option = oc_option((enum oc_option_id)i);
        if (strcmp(option->key, name) != 0) continue;
        if (option->type == OC_T_INT || option->type == OC_T_BOOL) {
            *value = option->is_bytes ? bytes((uint64_t)oc_option_get(resolved, (enum oc_option_id)i))
                                      : number((double)oc_option_get(resolved, (enum oc_option_id)i));
        } else if (option->type == OC_T_FLOAT) {
            *value = number(*(const double *)(const void *)((const char *)resolved + option->offset));
        } else {
            value->kind = TEXT;
            oc_option_text(resolved, (enum oc_option_id)i, value->text, sizeof value->text);
        }
        return true;
    }
    return false;
}

static bool probe_value(const struct oc_scene *scene, const char *name, struct value *value)
{
    static const struct oc_result none;
    bool has_run = scene->probe && scene->probe->status == OC_PROBE_DONE;
    const struct oc_result *probe = has_run ? scene->probe : &none;
    const struct {
        const char *name;
        struct value value;
    } known[] = {{"peak", bytes(probe->rank.peak.allocated)},
                 {"loss", number(probe->n_losses ? probe->losses[probe->n_losses - 1] : (double)NAN)},
                 {"first_loss", number(probe->n_losses ? probe->losses[0] : (double)NAN)},
                 {"lost", number(100 * probe->numbers.lost)},
                 {"lost_bf16", number(100 * probe->numbers.lost_bf16)},
                 {"lost_fp16", number(100 * probe->numbers.lost_fp16)},
                 {"underflow", number(100 * probe->numbers.underflow)},
                 {"underflow_scaled", number(100 * probe->numbers.underflow_scaled)}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        *value = has_run ? known[i].value : number((double)NAN); /* before it has run nothing holds of it */
        return true;
    }
    return false;
}

/* The value under other options, "precision=fp32;batch.micro=2". */
static bool variant_value(const struct reader *reader, const char *name, char *settings, struct value *value)
{
    const struct oc_scene *scene = reader->scene;
    struct oc_config config = *scene->config;
    struct oc_answer *answer = malloc(sizeof *answer);
    char *rest = settings;
    enum oc_option_id id;
    bool good = answer != NULL;
    for (char *word; good && (word = strtok_r(rest, ";", &rest));)
        good = oc_config_assign(&config, word, &id, reader->error);
    good = good && scene->model->answer(&config, answer, NULL, scene->alloc, reader->error);
    if (good && !answer_value(answer, name, value) && !option_value(&answer->plan.c, name, value))
        good = fail(reader, "there is no such name");
    free(answer);
    return good;
}

static bool name_value(const struct reader *reader, char *name, struct value *value)
{
    const struct oc_scene *scene = reader->scene;
    const struct oc_answer *answer = scene->now;
    char *variant = strchr(name, '@');
    if (variant) {
        *variant = '\0';
        return variant_value(reader, name, variant + 1, value);
    }
    if (strncmp(name, "probe.", 6) == 0)
        return probe_value(scene, name + 6, value) || fail(reader, "no such figure of the probe");
    if (strcmp(name, "base") == 0) {
        *value = number(scene->base);
        return true;
    }
    if (strcmp(name, "view") == 0) {
        value->kind = TEXT;
        snprintf(value->text, sizeof value->text, "%s", scene->view);
        return true;
    }
    if (strncmp(name, "before.", 7) == 0) name += 7, answer = scene->before;
    if (strncmp(name, "start.", 6) == 0) name += 6, answer = scene->start;
    if (answer_value(answer, name, value) || option_value(&answer->plan.c, name, value)) return true;
    return fail(reader, "there is no such name");
}

/* ---- expressions ---- */

static void skip(struct reader *reader)
{
    while (*reader->at == ' ') reader->at++;
}

/* A number or a name; a name ends at a blank or at a sign. */
static bool read_term(struct reader *reader, struct value *value)
{
    char word[160];
    skip(reader);
    size_t length = strcspn(reader->at, " +*/<>!{}");
    for (size_t i = 0; i < length; i++) /* a dash inside a word belongs to it; = does after an @ */
        if (reader->at[i] == '=' && !memchr(reader->at, '@', i)) length = i;
    if (length == 0 || length >= sizeof word) return fail(reader, "something is missing");
    snprintf(word, sizeof word, "%.*s", (int)length, reader->at);
    reader->at += length;
    *value = (struct value){0};
    int64_t amount;
    char *end;
    double plain = strtod(word, &end);
    if (isdigit((unsigned char)word[0]) && !*end) {
        *value = number(plain);
        return true;
    }
    if (isdigit((unsigned char)word[0]) && oc_parse_integer(word, true, &amount)) {
        *value = bytes((uint64_t)amount);
        return true;
    }
    return name_value(reader, word, value);
}

static bool combine(struct reader *reader, char sign, struct value *left, const struct value *right)
{
    if (left->kind == TEXT || right->kind == TEXT) return fail(reader, "words cannot be added");
    bool both = left->kind == BYTES && right->kind == BYTES;
    switch (sign) {
    case '+': left->number += right->number; break;
    case '-':
        left->number -= right->number;
        left->change = both;
        break;
    case '*': left->number *= right->number; break;
    default:
        left->number = right->number != 0 ? left->number / right->number : 0;
        if (both) left->kind = NUMBER;
    }
    if (right->kind == BYTES && sign != '/') left->kind = BYTES;
    return true;
}

static bool is_count(const char *name)
{
    if (strncmp(name, "before.", 7) == 0) name += 7;
    if (strncmp(name, "start.", 6) == 0) name += 6;
    return strncmp(name, "params", 6) == 0;
}

static bool read_expression(struct reader *reader, struct value *value)
{
    skip(reader);
    bool absolute = strncmp(reader->at, "abs ", 4) == 0;
    if (absolute) reader->at += 4;
    if (!read_term(reader, value)) return false;
    for (;;) {
        struct value right;
        skip(reader);
        char sign = *reader->at;
        if (!sign || !strchr("+-*/", sign)) break;
        reader->at++;
        skip(reader);
        bool per = sign == '/' && is_count(reader->at); /* bytes per parameter are a number */
        if (!read_term(reader, &right) || !combine(reader, sign, value, &right)) return false;
        if (per) value->kind = NUMBER;
    }
    if (absolute) value->number = fabs(value->number), value->change = false;
    return true;
}

/* ---- conditions ---- */

static bool compare_text(const struct reader *reader, const char *sign, const struct value *left, const char *right)
{
    bool same = strcmp(left->text, right) == 0;
    if (strcmp(sign, "=") == 0) return same;
    if (strcmp(sign, "!=") == 0) return !same;
    return fail(reader, "words are = or !=");
}

bool oc_scene_holds(const struct oc_scene *scene, const char *condition, struct oc_error *error)
{
    static const char *const signs[] = {"<=", ">=", "!=", "<", ">", "="};
    struct reader reader = {scene, condition, condition, error};
    struct value left, right;
    const char *sign = NULL;
    if (!read_expression(&reader, &left)) return false;
    for (size_t i = 0; i < sizeof signs / sizeof signs[0] && !sign; i++)
        if (strncmp(reader.at, signs[i], strlen(signs[i])) == 0) sign = signs[i];
    if (!sign) return fail(&reader, "a condition compares: = != < > <= >=");
    reader.at += strlen(sign);
    skip(&reader);
    if (left.kind == TEXT) return compare_text(&reader, sign, &left, reader.at);
    if (!read_expression(&reader, &right)) return false;
    if (*reader.at) return fail(&reader, "something follows the condition");
    if (right.kind == TEXT) return fail(&reader, "a number is compared with a word");
    double a = left.number, b = right.number;
    switch (sign[0]) {
    case '<': return sign[1] ? a <= b : a < b;
    case '>': return sign[1] ? a >= b : a > b;
    case '!': return a != b;
    default: return a == b;
    }
}

bool oc_scene_step_holds(const struct oc_scene *scene, const struct oc_lesson_step *step, struct oc_error *error)
{
    for (int i = 0; step->expect[i]; i++)
        if (!oc_scene_holds(scene, step->expect[i], error)) return false;
    return step->expect[0] != NULL;
}

/* ---- texts ---- */

static void format_bytes(const struct value *value, char *text, size_t size)
{
    char amount[OC_BYTES_TEXT];
    double plain = fabs(value->number);
    bool small = plain < 100.0 * (1 << 20) && plain > 0;
    oc_format_bytes((uint64_t)plain, small ? OC_UNIT_MIB : OC_UNIT_GIB, amount, sizeof amount);
    snprintf(text, size, "%s%s", value->number < 0 ? "-" : value->change ? "+" : "", amount);
}

/* Whole numbers as they are, others with two decimals, without zeros at the end. */
static void format_number(double amount, char *text, size_t size)
{
    if (isnan(amount)) {
        snprintf(text, size, "?");
    } else if (fabs(amount - round(amount)) < 0.005 && fabs(amount) < 1e15) {
        char digits[OC_BYTES_TEXT];
        snprintf(text, size, "%s%s", amount < -0.5 ? "-" : "",
                 oc_format_count((uint64_t)fabs(round(amount)), digits, sizeof digits));
    } else {
        snprintf(text, size, "%.2f", amount);
        if (text[strlen(text) - 1] == '0') text[strlen(text) - 1] = '\0';
    }
}

static bool put_placeholder(struct reader *reader, char *text, size_t size)
{
    struct value value;
    if (!read_expression(reader, &value)) return false;
    if (*reader->at != '}') return fail(reader, "a placeholder ends with }");
    reader->at++;
    if (value.kind == TEXT)
        snprintf(text, size, "%s", value.text);
    else if (value.kind == BYTES)
        format_bytes(&value, text, size);
    else
        format_number(value.number, text, size);
    return true;
}

bool oc_scene_text(const struct oc_scene *scene, const char *text, char *out, size_t size, struct oc_error *error)
{
    struct reader reader = {scene, text, text, error};
    size_t used = 0;
    out[0] = '\0';
    while (*reader.at) {
        char part[OC_NAME_MAX + 16];
        if (*reader.at == '{') {
            reader.at++;
            if (!put_placeholder(&reader, part, sizeof part)) return false;
        } else {
            snprintf(part, sizeof part, "%c", *reader.at++);
        }
        size_t length = strlen(part);
        if (used + length >= size) return fail(&reader, "the text is too long");
        memcpy(out + used, part, length + 1);
        used += length;
    }
    return true;
}
