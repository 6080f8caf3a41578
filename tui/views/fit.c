/* The fit view: does it fit, what does the fullest rank hold, and why. */
#include "tui/views/fit.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/layout.h"
#include "tui/views/views.h"

enum { BARS, PROBE, TABLE, VERDICT, REASON, BLOCKS };

/* "backward of layer 31, micro-batch 1" */
static void write_place(const struct oc_place *place, char *text, size_t size)
{
    char where[96];
    oc_place_text(place, where, sizeof where);
    snprintf(text, size, "%s%s%s", oc_moment_name(place->moment), where[0] ? " of " : "", where);
}

static int percent(uint64_t part, uint64_t whole)
{
    double share = whole ? (double)part / (double)whole * 100.0 : 0;
    return share > 99999 ? 99999 : (int)(share + 0.5);
}

static void write_verdict(const struct oc_app *app, char *text, size_t size)
{
    const struct oc_verdict *verdict = &app->answer->verdict;
    uint64_t capacity = app->answer->plan.capacity, high = verdict->device.high;
    char device[OC_BYTES_TEXT], whole[OC_BYTES_TEXT], left[OC_BYTES_TEXT];
    oc_format_amount(high, OC_UNIT_GIB, 0, device, sizeof device);
    oc_format_bytes(capacity, OC_UNIT_GIB, whole, sizeof whole);
    oc_format_bytes(high > capacity ? high - capacity : capacity - high, OC_UNIT_GIB, left, sizeof left);
    if (!verdict->known)
        snprintf(text, size, "%s GiB on the device; no GPU is named to compare with", device);
    else if (!verdict->fits)
        snprintf(text, size, "DOES NOT FIT  %s of %s, %d %%, over by %s", device, whole, percent(high, capacity), left);
    else if (verdict->tight)
        snprintf(text, size, "FITS, TIGHT  %s of %s, %d %%, headroom %s", device, whole, percent(high, capacity), left);
    else
        snprintf(text, size, "FITS  %s of %s, %d %%, headroom %s", device, whole, percent(high, capacity), left);
}

static enum oc_role verdict_role(const struct oc_verdict *verdict)
{
    return !verdict->known ? OC_ROLE_TITLE : !verdict->fits ? OC_ROLE_BAD : verdict->tight ? OC_ROLE_WARN : OC_ROLE_OK;
}

static void draw_verdict(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    char text[200], place[128];
    const struct oc_verdict *verdict = &app->answer->verdict;
    const struct oc_rank *rank = oc_fit_worst(app->answer);
    struct oc_rect inner = {rect.x + 1, rect.y, rect.w - 2, rect.h};
    write_verdict(app, text, sizeof text);
    int rows = oc_canvas_wrap(canvas, inner, 0, app->stale ? OC_ROLE_DIM : OC_ROLE_TEXT, text);
    int words = 0; /* the words of the verdict come first and stand out */
    while (text[words] && !(text[words] == ' ' && text[words + 1] == ' ')) words++;
    if (verdict->known)
        oc_canvas_mark(canvas, (struct oc_rect){inner.x, inner.y, words < inner.w ? words : inner.w, 1},
                       verdict_role(verdict));
    inner.y += rows, inner.h -= rows;
    if (inner.h <= 0) return;
    write_place(&rank->peak.place, place, sizeof place);
    snprintf(text, sizeof text, "at: %s", place);
    if (app->answer->n_ranks > 1) snprintf(text, sizeof text, "at: stage %d, %s", (int)verdict->worst_stage, place);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
}

/* Sentences one after the other, each on a new row where there is room for that. */
static void draw_reason(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct oc_rect inner = {rect.x + 1, rect.y, rect.w - 2, rect.h};
    char text[OC_MAX_SENTENCES * 402];
    size_t used = 0;
    int rows = 0;
    if (app->stale) {
        snprintf(text, sizeof text, "STALE: this shows the last configuration that works. %s%s%s", app->error.message,
                 app->error.hint[0] ? "; " : "", app->error.hint);
        int n = oc_canvas_wrap(canvas, inner, 0, OC_ROLE_WARN, text);
        inner.y += n, inner.h -= n;
    }
    for (int i = 0; i < app->reason.n; i++)
        rows += oc_canvas_wrap(NULL, inner, 0, OC_ROLE_TEXT, app->reason.sentence[i]);
    text[0] = '\0';
    for (int i = 0; i < app->reason.n && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 i == 0            ? ""
                                 : rows <= inner.h ? "\n"
                                                   : " ",
                                 app->reason.sentence[i]);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
}

static int reason_rows(const struct oc_app *app, int width)
{
    struct oc_rect inner = {0, 0, width - 2, 0};
    int rows = app->stale ? 3 : 0;
    for (int i = 0; i < app->reason.n; i++)
        rows += oc_canvas_wrap(NULL, inner, 0, OC_ROLE_TEXT, app->reason.sentence[i]);
    return rows;
}

static void draw(const struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    char verdict[200];
    write_verdict(app, verdict, sizeof verdict);
    int verdict_rows = 1 + oc_canvas_wrap(NULL, (struct oc_rect){0, 0, rect.w - 2, 0}, 0, OC_ROLE_TEXT, verdict);
    int bars = oc_fit_bars_rows(app, false), probe = oc_fit_probe_rows(app), reason = reason_rows(app, rect.w);
    bool roomy = rect.h >= 26; /* then a blank row closes each block */
    const struct oc_block blocks[BLOCKS] = {
        [BARS] = {bars < 4 ? bars : 4, bars + (roomy ? 2 : 0), 1},
        [PROBE] = {probe ? 1 : 0, probe + (probe && roomy ? 1 : 0), 4},
        [TABLE] = {OC_FIT_TABLE_LEAST, roomy ? OC_FIT_TABLE_MOST : OC_FIT_TABLE_LEAST, 2},
        [VERDICT] = {verdict_rows, verdict_rows + (roomy ? 1 : 0), 0},
        [REASON] = {app->stale ? 2 : 1, reason, app->stale ? 1 : 3},
    };
    int heights[BLOCKS], y = rect.y;
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; i++) {
        struct oc_rect part = {rect.x, y, rect.w, heights[i]};
        y += heights[i];
        if (part.h <= 0) continue;
        if (roomy && i != REASON && heights[i] == blocks[i].most) part.h--;
        if (i == BARS) oc_fit_bars_draw(app, canvas, part);
        if (i == PROBE) oc_fit_probe_draw(app, canvas, part);
        if (i == TABLE) oc_fit_table_draw(app, canvas, part);
        if (i == VERDICT) draw_verdict(app, canvas, part);
        if (i == REASON) draw_reason(app, canvas, part);
    }
}

const struct oc_view_ops oc_view_fit = {"Fit", draw};
