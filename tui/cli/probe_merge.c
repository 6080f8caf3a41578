/* `oomcast probe --merge`: the last words of every rank of a run, from a folder of files or from a stream. Ranks with
 * equal books are shown together; a rank that left nothing is named, and a line that a launcher has torn is counted. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cjson/cJSON.h>

#include "tui/cli/probe.h"

enum { MOST_RANKS = 1 << 14 };

struct rank {
    bool seen;
    char event[12], device[8], plan[20], host[32];
    char why[OC_PROBE_WHY];
    int64_t stage;
    uint64_t requested, allocated, reserved;
    uint64_t on_device; /* at its peak, everybody; 0 = unknown */
};

struct merge {
    struct rank *ranks;
    int world; /* room in `ranks` */
    int bad;   /* lines that are no rank's last words */
};

/* ---- Reading ---- */

static const cJSON *member(const cJSON *object, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static void copy_text(const cJSON *object, const char *name, char *text, size_t size)
{
    const cJSON *item = member(object, name);
    snprintf(text, size, "%s", cJSON_IsString(item) ? item->valuestring : "");
}

static uint64_t bytes_of(const cJSON *object, const char *name)
{
    const cJSON *item = member(object, name);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0) || item->valuedouble > 9007199254740992.0) return 0;
    return (uint64_t)item->valuedouble;
}

static bool make_room(struct merge *merge, int world)
{
    if (world <= merge->world) return true;
    struct rank *more = world <= MOST_RANKS ? realloc(merge->ranks, (size_t)world * sizeof *more) : NULL;
    if (!more) return false;
    memset(more + merge->world, 0, (size_t)(world - merge->world) * sizeof *more);
    merge->ranks = more;
    merge->world = world;
    return true;
}

/* A whole line that says its length has it. */
static bool is_whole(const cJSON *root, size_t length)
{
    const cJSON *said = member(root, "length");
    return !said || (cJSON_IsString(said) && strtoul(said->valuestring, NULL, 10) == length);
}

static bool take_object(struct merge *merge, const cJSON *root)
{
    const cJSON *launch = member(root, "launch"), *rank = member(root, "rank"), *peak = member(rank, "peak");
    const int world = launch ? (int)bytes_of(launch, "world") : 1, number = (int)bytes_of(launch, "rank");
    if (number < 0 || number >= world || !make_room(merge, world)) return false;
    struct rank *to = &merge->ranks[number];
    *to = (struct rank){.seen = true, .stage = (int64_t)bytes_of(rank, "stage")};
    copy_text(root, "event", to->event, sizeof to->event);
    copy_text(root, "device", to->device, sizeof to->device);
    copy_text(root, "plan", to->plan, sizeof to->plan);
    copy_text(root, "why", to->why, sizeof to->why);
    copy_text(launch, "host", to->host, sizeof to->host);
    to->requested = bytes_of(peak, "requested");
    to->allocated = bytes_of(peak, "allocated");
    to->reserved = bytes_of(peak, "reserved");
    to->on_device = bytes_of(member(root, "gpu"), "peak");
    return true;
}

static void take_line(struct merge *merge, const char *line, size_t length)
{
    cJSON *root = length > 0 ? cJSON_Parse(line) : NULL;
    char event[16] = "";
    if (root) copy_text(root, "event", event, sizeof event);
    const bool progress = strcmp(event, "progress") == 0;
    if (length > 0 && !progress && (!event[0] || !is_whole(root, length) || !take_object(merge, root))) merge->bad++;
    cJSON_Delete(root);
}

static void take_stream(struct merge *merge, FILE *file)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) > 0) {
        if (line[length - 1] == '\n') line[--length] = '\0';
        take_line(merge, line, (size_t)length);
    }
    free(line);
}

static bool take_file(struct merge *merge, const char *path, struct oc_error *error)
{
    FILE *file = fopen(path, "rb");
    if (!file) return oc_fail(error, OC_E_IO, "%s: %s", path, strerror(errno));
    take_stream(merge, file);
    fclose(file);
    return true;
}

static bool take_folder(struct merge *merge, const char *path, struct oc_error *error)
{
    DIR *folder = opendir(path);
    if (!folder) return oc_fail(error, OC_E_IO, "%s: %s", path, strerror(errno));
    bool good = true;
    for (struct dirent *entry; good && (entry = readdir(folder));) {
        char file[4400];
        const size_t length = strlen(entry->d_name);
        if (strncmp(entry->d_name, "rank-", 5) != 0 || length < 6 || strcmp(entry->d_name + length - 6, ".jsonl") != 0)
            continue;
        snprintf(file, sizeof file, "%.4096s/%.255s", path, entry->d_name);
        good = take_file(merge, file, error);
    }
    closedir(folder);
    return good;
}

static bool take(struct merge *merge, const char *path, struct oc_error *error)
{
    struct stat info;
    if (!strcmp(path, "-")) {
        take_stream(merge, stdin);
        return true;
    }
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return take_folder(merge, path, error);
    return take_file(merge, path, error);
}

/* ---- Saying ---- */

/* "0-3, 7": the ranks from `first` on for which `same` holds, as ranges. */
static void put_ranges(struct oc_buffer *out, const struct merge *merge, int first,
                       bool (*same)(const struct rank *a, const struct rank *b))
{
    bool any = false;
    for (int i = first; i < merge->world; i++) {
        if (!same(&merge->ranks[first], &merge->ranks[i])) continue;
        int last = i;
        while (last + 1 < merge->world && same(&merge->ranks[first], &merge->ranks[last + 1])) last++;
        oc_putf(out, any ? ", %d" : "%d", i);
        if (last > i) oc_putf(out, "-%d", last);
        any = true;
        i = last;
    }
}

static bool both_missing(const struct rank *a, const struct rank *b)
{
    return !a->seen && !b->seen;
}

static bool equal_books(const struct rank *a, const struct rank *b)
{
    return a->seen && b->seen && a->stage == b->stage && a->requested == b->requested && a->allocated == b->allocated &&
           a->reserved == b->reserved && !strcmp(a->event, b->event) && !strcmp(a->device, b->device) &&
           !strcmp(a->plan, b->plan) && !strcmp(a->why, b->why);
}

/* Whether a rank before it was shown with it. */
static bool is_shown(const struct merge *merge, int rank)
{
    for (int i = 0; i < rank; i++)
        if (equal_books(&merge->ranks[i], &merge->ranks[rank])) return true;
    return false;
}

static int count_missing(const struct merge *merge)
{
    int missing = 0;
    for (int i = 0; i < merge->world; i++) missing += !merge->ranks[i].seen;
    return missing;
}

static bool all_done(const struct merge *merge)
{
    for (int i = 0; i < merge->world; i++)
        if (!merge->ranks[i].seen || strcmp(merge->ranks[i].event, "done") != 0) return false;
    return merge->world > 0;
}

static void put_group(struct oc_buffer *out, const struct merge *merge, int first, enum oc_unit unit)
{
    const struct rank *rank = &merge->ranks[first];
    char a[OC_BYTES_TEXT], b[OC_BYTES_TEXT], c[OC_BYTES_TEXT];
    struct oc_buffer ranges = {0};
    put_ranges(&ranges, merge, first, equal_books);
    oc_putf(out, "  %-20s%6" PRId64 "  %-8s%-10s", ranges.data ? ranges.data : "", rank->stage, rank->device,
            rank->event);
    if (strcmp(rank->event, "done") == 0)
        oc_putf(out, "%11s%11s%11s\n", oc_format_amount(rank->allocated, unit, 10, a, sizeof a),
                oc_format_amount(rank->reserved, unit, 10, b, sizeof b),
                rank->on_device ? oc_format_amount(rank->on_device, unit, 10, c, sizeof c) : "-");
    else {
        oc_put(out, "  ");
        oc_put_wrapped(out, rank->why, 48, 30, 79);
    }
    oc_buffer_free(&ranges);
}

static int compare_bytes(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Least, middle and most over the ranks that are done. */
static void put_spread(struct oc_buffer *out, const struct merge *merge, enum oc_unit unit)
{
    uint64_t *bytes = calloc((size_t)merge->world + 1, sizeof *bytes);
    int n = 0;
    for (int i = 0; bytes && i < merge->world; i++)
        if (!strcmp(merge->ranks[i].event, "done")) bytes[n++] = merge->ranks[i].allocated;
    if (n > 1) {
        char a[OC_BYTES_TEXT], b[OC_BYTES_TEXT], c[OC_BYTES_TEXT];
        qsort(bytes, (size_t)n, sizeof *bytes, compare_bytes);
        oc_putf(out, "  allocated: %s at least, %s in the middle, %s at most\n",
                oc_format_bytes(bytes[0], unit, a, sizeof a), oc_format_bytes(bytes[n / 2], unit, b, sizeof b),
                oc_format_bytes(bytes[n - 1], unit, c, sizeof c));
    }
    free(bytes);
}

static void put_text(struct oc_buffer *out, const struct merge *merge, enum oc_unit unit)
{
    const int missing = count_missing(merge);
    oc_putf(out, "%d of %d ranks have left a result", merge->world - missing, merge->world);
    for (int i = 0; i < merge->world; i++) {
        if (merge->ranks[i].seen) continue;
        oc_put(out, missing > 1 ? "; missing are ranks " : "; missing is rank ");
        put_ranges(out, merge, i, both_missing);
        break;
    }
    oc_put(out, ".\n");
    if (merge->bad) oc_putf(out, "%d lines were torn, or no rank's last words.\n", merge->bad);
    oc_putf(out, "\n  %-20s%6s  %-8s%-10s%11s%11s%11s\n", "ranks", "stage", "device", "state", "allocated", "reserved",
            "on device");
    for (int i = 0; i < merge->world; i++)
        if (merge->ranks[i].seen && !is_shown(merge, i)) put_group(out, merge, i, unit);
    oc_putf(out, "  %-46s%11s%11s%11s\n", "", oc_unit_name(unit), oc_unit_name(unit), oc_unit_name(unit));
    put_spread(out, merge, unit);
}

static void put_json(struct oc_buffer *out, const struct merge *merge)
{
    struct oc_json json = {.out = out, .inline_all = true};
    oc_json_object(&json, NULL, true);
    oc_json_signed(&json, "world", merge->world);
    oc_json_signed(&json, "bad_lines", merge->bad);
    oc_json_array(&json, "missing", true);
    for (int i = 0; i < merge->world; i++)
        if (!merge->ranks[i].seen) oc_json_signed(&json, NULL, i);
    oc_json_close(&json);
    oc_json_array(&json, "ranks", true);
    for (int i = 0; i < merge->world; i++) {
        const struct rank *rank = &merge->ranks[i];
        if (!rank->seen) continue;
        oc_json_object(&json, NULL, true);
        oc_json_signed(&json, "rank", i);
        oc_json_string(&json, "event", rank->event);
        oc_json_string(&json, "host", rank->host);
        oc_json_string(&json, "device", rank->device);
        oc_json_string(&json, "plan", rank->plan);
        oc_json_signed(&json, "stage", rank->stage);
        oc_json_unsigned(&json, "requested", rank->requested);
        oc_json_unsigned(&json, "allocated", rank->allocated);
        oc_json_unsigned(&json, "reserved", rank->reserved);
        if (rank->why[0]) oc_json_string(&json, "why", rank->why);
        oc_json_close(&json);
    }
    oc_json_close(&json);
    oc_json_close(&json);
}

enum oc_exit oc_cli_merge(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    struct merge merge = {0};
    enum oc_exit status = OC_EXIT_USAGE;
    if (take(&merge, args->merge, error)) {
        if (merge.world == 0)
            oc_fail(error, OC_E_IO, "%s: no rank has left a result there", args->merge);
        else if (args->json)
            put_json(out, &merge);
        else
            put_text(out, &merge, args->unit);
        if (merge.world > 0) status = all_done(&merge) ? OC_EXIT_DONE : OC_EXIT_PROBE;
    }
    free(merge.ranks);
    return status;
}
