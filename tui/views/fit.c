/* The fit view: does it fit, what does the fullest rank hold, and why. */
#include "tui/views/fit.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/layout.h"
#include "tui/views/views.h"

enum { BARS, PROBE, TABLE, VERDICT, REASON, MOMENTS, BLOCKS };
enum { ROOMY = 26 }; /* rows from which blocks are set apart */

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

/* Fits or not, by how much; without the percentage where the row is short. */
static void write_verdict(const struct oc_app *app, int width, char *text, size_t size)
{
    const struct oc_verdict *verdict = &app->answer->verdict;
    uint64_t capacity = app->answer->plan.capacity, high = verdict->device.high;
    char device[OC_BYTES_TEXT], whole[OC_BYTES_TEXT], left[OC_BYTES_TEXT];
    oc_format_amount(high, OC_UNIT_GIB, 0, device, sizeof device);
    oc_format_bytes(capacity, OC_UNIT_GIB, whole, sizeof whole);
    oc_format_bytes(high > capacity ? high - capacity : capacity - high, OC_UNIT_GIB, left, sizeof left);
    if (!verdict->known) {
        snprintf(text, size, "%s GiB on the device; no GPU is named to compare with", device);
        return;
    }
    const char *words = !verdict->fits ? "DOES NOT FIT" : verdict->tight ? "FITS, TIGHT" : "FITS";
    snprintf(text, size, "%s  %s of %s (%d %%), %s %s", words, device, whole, percent(high, capacity),
             verdict->fits ? "headroom" : "over by", left);
    if (oc_text_width(text) <= width) return;
    left[strcspn(left, " ")] = '\0';
    snprintf(text, size, "%s  %s of %s, %s %s", words, device, whole, left, verdict->fits ? "left" : "over");
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
    write_verdict(app, inner.w, text, sizeof text);
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

/* The first sentences say what the rest of the screen does not; w shows all. */
static int reason_sentences(const struct oc_app *app)
{
    enum { MOST = 4 };
    return app->reason.n < MOST ? app->reason.n : MOST;
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
        int n = oc_canvas_wrap(canvas, inner, 0, OC_ROLE_STALE, text);
        inner.y += n, inner.h -= n;
    }
    for (int i = 0; i < reason_sentences(app); i++)
        rows += oc_canvas_wrap(NULL, inner, 0, OC_ROLE_TEXT, app->reason.sentence[i]);
    text[0] = '\0';
    for (int i = 0; i < reason_sentences(app) && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                 i == 0            ? ""
                                 : rows <= inner.h ? "\n"
                                                   : " ",
                                 app->reason.sentence[i]);
    oc_canvas_wrap(canvas, inner, 0, OC_ROLE_TEXT, text);
    bool cut = oc_canvas_wrap(NULL, inner, 0, OC_ROLE_TEXT, text) > inner.h;
    if (!cut || inner.h <= 0) return;
    int y = inner.y + inner.h - 1; /* the way to the rest */
    int x = oc_canvas_right(canvas, inner.x, y, inner.w, OC_ROLE_HINT, "w: all of it");
    oc_canvas_put(canvas, x - 1, y, oc_canvas_style(canvas, OC_ROLE_TEXT), ' ');
    oc_canvas_put(canvas, x, y, oc_canvas_style(canvas, OC_ROLE_HINT_KEY), 'w');
}

static int reason_rows(const struct oc_app *app, int width)
{
    struct oc_rect inner = {0, 0, width - 2, 0};
    int rows = app->stale ? 3 : 0;
    for (int i = 0; i < reason_sentences(app); i++)
        rows += oc_canvas_wrap(NULL, inner, 0, OC_ROLE_TEXT, app->reason.sentence[i]);
    return rows;
}

/* What each block would like. A blank row closes each block where the screen is tall. */
static void want(const struct oc_app *app, struct oc_rect rect, struct oc_block blocks[BLOCKS])
{
    char verdict[200];
    int blank = rect.h >= ROOMY ? 1 : 0, inner = rect.w - 2;
    int bars = oc_fit_bars_rows(app), probe = oc_fit_probe_rows(app), moments = oc_fit_moments_rows(app);
    int one_row = blank || !probe ? probe : 1; /* of the probe, where rows are scarce */
    write_verdict(app, inner, verdict, sizeof verdict);
    int rows = 1 + oc_canvas_wrap(NULL, (struct oc_rect){0, 0, inner, 0}, 0, OC_ROLE_TEXT, verdict);
    blocks[VERDICT] = (struct oc_block){rows, rows + blank, 0};
    blocks[BARS] = (struct oc_block){bars < 4 ? bars : 4, bars + blank, 1};
    blocks[TABLE] =
        (struct oc_block){OC_FIT_TABLE_LEAST, blank ? oc_fit_table_rows(app) + blank : OC_FIT_TABLE_LEAST, 2};
    blocks[REASON] = (struct oc_block){app->stale || blank ? 3 : 1, reason_rows(app, rect.w), app->stale ? 1 : 3};
    blocks[PROBE] = (struct oc_block){one_row, blank && probe ? probe + 1 : one_row, 4};
    blocks[MOMENTS] = (struct oc_block){blank ? moments : 0, blank ? moments + blank : 0, 5};
}

static void draw_block(const struct oc_app *app, struct oc_fit_state *state, struct oc_canvas *canvas,
                       struct oc_rect rect, int block, bool legend)
{
    switch (block) {
    case BARS: oc_fit_bars_draw(app, state, canvas, rect, legend); break;
    case PROBE: oc_fit_probe_draw(app, canvas, rect); break;
    case TABLE: oc_fit_table_draw(app, canvas, rect); break;
    case VERDICT: draw_verdict(app, canvas, rect); break;
    case REASON: draw_reason(app, canvas, rect); break;
    case MOMENTS: oc_fit_moments_draw(app, state, canvas, rect); break;
    }
}

static void draw(const struct oc_app *app, void *memory, struct oc_canvas *canvas, struct oc_rect rect)
{
    struct oc_fit_state *state = memory;
    static const int order[BLOCKS] = {BARS, PROBE, TABLE, VERDICT, MOMENTS, REASON};
    struct oc_block blocks[BLOCKS];
    int heights[BLOCKS], y = rect.y;
    want(app, rect, blocks);
    oc_layout_stack(rect.h, blocks, BLOCKS, heights);
    for (int i = 0; i < BLOCKS; i++) {
        int block = order[i];
        struct oc_rect part = {rect.x, y, rect.w, heights[block]};
        y += heights[block];
        if (part.h <= 0) continue;
        if (rect.h >= ROOMY && block != REASON && part.h == blocks[block].most) part.h--;
        draw_block(app, state, canvas, part, block, heights[TABLE] == 0);
    }
}

const struct oc_view_ops oc_view_fit = {.title = "Fit",
                                        .brief = "Fit",
                                        .about = "Fit: does it fit, what the fullest rank holds at its peak, and why",
                                        .state_size = sizeof(struct oc_fit_state),
                                        .draw = draw};
