#include "tui/views/fixes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/report/advice.h"

void oc_fixes_open(struct oc_app *app)
{
    struct oc_error error = {0};
    if (app->stale) {
        oc_app_say(app, true, "this configuration has no answer: %s", app->error.message);
        return;
    }
    if (!app->fixes) app->fixes = malloc(sizeof *app->fixes);
    if (!app->fixes) return;
    if (!app->model->advise(&oc_app_case(app)->config, app->alloc[0], &app->fixes->advices, &error)) {
        oc_app_say(app, true, "%s%s%s", error.message, error.hint[0] ? "; " : "", error.hint);
        return;
    }
    app->fixes->focus = app->fixes->top = 0;
    app->message[0] = '\0';
    app->mode = OC_MODE_FIXES;
}

void oc_fixes_free(struct oc_app *app)
{
    free(app->fixes);
    app->fixes = NULL;
}

/* ---- keys ---- */

static void apply(struct oc_app *app)
{
    const struct oc_advices *advices = &app->fixes->advices;
    char text[200];
    app->mode = OC_MODE_NORMAL;
    if (!advices->n) return;
    const struct oc_advice *advice = &advices->list[app->fixes->focus];
    oc_app_take(app, &advice->config, oc_advice_text(advice, text, sizeof text));
}

void oc_fixes_request(struct oc_app *app, enum oc_request request)
{
    struct oc_fixes *fixes = app->fixes;
    const int last = fixes->advices.n - 1;
    switch (request) {
    case OC_REQ_DOWN: fixes->focus++; break;
    case OC_REQ_UP: fixes->focus--; break;
    case OC_REQ_PAGE_DOWN: fixes->focus += 5; break;
    case OC_REQ_PAGE_UP: fixes->focus -= 5; break;
    case OC_REQ_FIRST: fixes->focus = 0; break;
    case OC_REQ_LAST: fixes->focus = last; break;
    case OC_REQ_EDIT: apply(app); return;
    case OC_REQ_REDRAW: app->repaint = true; break;
    case OC_REQUESTS: break;
    default: app->mode = OC_MODE_NORMAL; return;
    }
    if (fixes->focus > last) fixes->focus = last;
    if (fixes->focus < 0) fixes->focus = 0;
}

/* ---- drawing ---- */

/* Numbers behind a change; the highest rank is left out first where there is no room. */
enum { DEVICE, SPARE, OPERATIONS, SENT, NUMBERS };
static const struct {
    const char *head;
    int width, rank;
} columns[NUMBERS] = {{"device GiB", 12, 0}, {"spare GiB", 11, 2}, {"operations", 12, 1}, {"sent GiB", 11, 3}};

enum { LEAST_CHANGE = 34, MOST_CHANGE = 84, MOST_WIDTH = 132 };

static int columns_that_fit(int width, int *change)
{
    for (int most = 3;; most--) {
        *change = width - 1;
        for (int i = 0; i < NUMBERS; i++)
            if (columns[i].rank <= most) *change -= columns[i].width;
        if (*change < LEAST_CHANGE && most > 0) continue;
        if (*change > MOST_CHANGE) *change = MOST_CHANGE; /* numbers do not stray from what they are about */
        return most;
    }
}

static void write_number(const struct oc_advice *advice, int column, char *text, size_t size)
{
    const int64_t left = advice->verdict.headroom;
    switch (column) {
    case DEVICE: oc_format_amount(advice->verdict.device.high, OC_UNIT_GIB, 10, text, size); break;
    case SPARE: oc_format_amount(left > 0 ? (uint64_t)left : 0, OC_UNIT_GIB, 9, text, size); break;
    case OPERATIONS: oc_format_share(advice->operations, text, size); break;
    case SENT: oc_format_traffic(advice->sent, OC_UNIT_GIB, 10, text, size); break;
    }
}

static void draw_head(struct oc_canvas *canvas, struct oc_rect row, const char *heading)
{
    int change, most = columns_that_fit(row.w, &change), x = row.x + change;
    oc_canvas_text(canvas, row.x + 1, row.y, change - 1, OC_ROLE_TITLE, heading);
    for (int i = 0; i < NUMBERS; i++) {
        if (columns[i].rank > most) continue;
        oc_canvas_right(canvas, x, row.y, columns[i].width, OC_ROLE_DIM, columns[i].head);
        x += columns[i].width;
    }
}

static void draw_advice(struct oc_canvas *canvas, struct oc_rect row, const struct oc_advice *advice, bool focused)
{
    char text[400];
    int change, most = columns_that_fit(row.w, &change), x = row.x + change;
    oc_canvas_text(canvas, row.x + 2, row.y, change - 3, OC_ROLE_TEXT, oc_advice_text(advice, text, sizeof text));
    for (int i = 0; i < NUMBERS; i++) {
        if (columns[i].rank > most) continue;
        write_number(advice, i, text, sizeof text);
        oc_canvas_right(canvas, x, row.y, columns[i].width, strcmp(text, "same") ? OC_ROLE_TEXT : OC_ROLE_DIM, text);
        x += columns[i].width;
    }
    if (!focused) return;
    oc_canvas_mark(canvas, (struct oc_rect){row.x + 1, row.y, row.w - 1, 1}, OC_ROLE_FOCUS);
    oc_canvas_put(canvas, row.x, row.y, oc_canvas_style(canvas, OC_ROLE_TITLE), '>');
}

bool oc_fixes_pick(struct oc_app *app, int row)
{
    if (app->fixes->focus == row) return false;
    app->fixes->focus = row;
    return true;
}

/* The heading of a kind of change stands before its first one. */
static bool begins_kind(const struct oc_advices *advices, int i)
{
    return i == 0 || advices->list[i].effect != advices->list[i - 1].effect;
}

static void draw_from(const struct oc_fixes *fixes, struct oc_canvas *canvas, struct oc_rect rect, int top)
{
    int y = rect.y;
    for (int i = top; i < fixes->advices.n && y < rect.y + rect.h; i++) {
        if (begins_kind(&fixes->advices, i) || i == top)
            draw_head(canvas, (struct oc_rect){rect.x, y++, rect.w, 1},
                      oc_effect_heading(fixes->advices.list[i].effect));
        if (y == rect.y + rect.h) return;
        const struct oc_rect row = {rect.x, y++, rect.w, 1};
        draw_advice(canvas, row, &fixes->advices.list[i], i == fixes->focus);
        oc_canvas_target(canvas, row, OC_TARGET_ROW, i);
    }
}

/* Whether the focused change lies within `rows` rows from `top` on. */
static bool is_in_sight(const struct oc_fixes *fixes, int top, int rows)
{
    int used = 0;
    for (int i = top; i <= fixes->focus; i++) used += 1 + (begins_kind(&fixes->advices, i) || i == top);
    return fixes->focus >= top && used <= rows;
}

/* Rows of the whole list. */
static int list_rows(const struct oc_advices *advices)
{
    int rows = advices->n;
    for (int i = 0; i < advices->n; i++) rows += begins_kind(advices, i);
    return rows;
}

static void draw_list(struct oc_fixes *fixes, struct oc_canvas *canvas, struct oc_rect rect)
{
    if (fixes->top > fixes->focus) fixes->top = fixes->focus;
    while (fixes->top < fixes->focus && !is_in_sight(fixes, fixes->top, rect.h)) fixes->top++;
    draw_from(fixes, canvas, rect, fixes->top);
}

/* Everything about one change. */
static void draw_whole(const struct oc_advices *advices, const struct oc_advice *advice, struct oc_canvas *canvas,
                       struct oc_rect rect)
{
    char change[400], meaning[600], device[OC_BYTES_TEXT], share[OC_BYTES_TEXT], sent[OC_BYTES_TEXT], text[1400];
    oc_advice_text(advice, change, sizeof change);
    oc_advice_meaning(advices, advice, OC_UNIT_GIB, meaning, sizeof meaning);
    oc_format_bytes(advice->verdict.device.high, OC_UNIT_GIB, device, sizeof device);
    oc_format_share(advice->operations, share, sizeof share);
    oc_format_traffic(advice->sent, OC_UNIT_GIB, 0, sent, sizeof sent);
    snprintf(text, sizeof text, "%s\n%s on the device%s; %s operations a token; %s%s sent by a rank in a step.\n%s.",
             change, device,
             advice->verdict.fits ? advice->verdict.tight ? ", a tight fit" : "" : ", which does not fit", share, sent,
             strcmp(sent, "same") ? " GiB" : " bytes", meaning);
    oc_canvas_wrap(canvas, rect, 0, OC_ROLE_TEXT, text);
}

void oc_fixes_draw(struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect)
{
    enum { WHOLE = 7 };
    struct oc_fixes *fixes = app->fixes;
    const struct oc_advices *advices = &fixes->advices;
    const struct oc_rect inner = {rect.x + 2, rect.y + 1, rect.w - 4 < MOST_WIDTH ? rect.w - 4 : MOST_WIDTH,
                                  rect.h - 2};
    char device[OC_BYTES_TEXT], capacity[OC_BYTES_TEXT];
    if (inner.w < 20 || inner.h < 4) return;
    oc_canvas_fill(canvas, rect, OC_ROLE_TEXT);
    oc_canvas_right(canvas, rect.x, rect.y, rect.w - 2, OC_ROLE_HINT,
                    advices->n ? "j k move   Enter applies   Esc closes" : "Esc closes");
    oc_format_amount(advices->now.device.high, OC_UNIT_GIB, 0, device, sizeof device);
    oc_format_bytes((uint64_t)((int64_t)advices->now.device.high + advices->now.headroom), OC_UNIT_GIB, capacity,
                    sizeof capacity);
    const int words =
        oc_canvas_text(canvas, inner.x + 1, inner.y, inner.w, advices->now.fits ? OC_ROLE_OK : OC_ROLE_BAD,
                       advices->now.fits ? "FITS" : "DOES NOT FIT");
    oc_canvas_print(canvas, inner.x + words + 3, inner.y, inner.w - words - 3, OC_ROLE_TEXT, "%s of %s", device,
                    capacity);
    const struct oc_rect heading = {inner.x + 1, inner.y + 1, inner.w - 2, 2};
    const int used = 1 + oc_canvas_wrap(canvas, heading, 0, OC_ROLE_TEXT, oc_advices_heading(advices));
    const int left = inner.h - used - 1; /* rows; where they are few the list has them all */
    const int whole = !advices->n ? left - 1 : left > 2 * WHOLE ? WHOLE : left > 7 ? left / 2 : 0;
    const int room = left - whole - (whole > 0), want = list_rows(advices);
    const struct oc_rect list = {inner.x, inner.y + used + 1, inner.w, want < room ? want : room},
                         below = {inner.x + 1, list.y + list.h + 1, inner.w - 2, whole};
    if (advices->n) draw_list(fixes, canvas, list);
    const struct oc_advice *advice = advices->n             ? &advices->list[fixes->focus]
                                     : advices->has_nearest ? &advices->nearest
                                                            : NULL;
    oc_canvas_hline(canvas, rect.x, rect.y + rect.h - 1, rect.w);
    if (!advice || (!whole && advices->n)) return;
    oc_canvas_hline(canvas, inner.x, below.y - 1, inner.w);
    draw_whole(advices, advice, canvas, below);
}
