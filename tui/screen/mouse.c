#include "tui/screen/mouse.h"

#include "tui/screen/app.h"
#include "tui/screen/layout.h"
#include "tui/views/fixes.h"
#include "tui/views/views.h"

enum { WHEEL = 3 }; /* rows of one notch */

const struct oc_mouse_row oc_mouse_rows[] = {
    {"a view's name", "shows the view"},
    {"an option", "has the keys; clicked again: switch it, or type a value; a section folds and unfolds"},
    {"a row of a list", "has the cursor; clicked again, what Enter does"},
    {"the wheel", "moves in what is under the pointer"},
    {"text", "with Shift, most terminals select text; --no-mouse leaves the mouse to the terminal"},
};
const int oc_n_mouse_rows = sizeof oc_mouse_rows / sizeof oc_mouse_rows[0];

static void click_view(struct oc_app *app, int index)
{
    app->mode = OC_MODE_NORMAL;
    oc_app_view(app, index);
}

static void click_option(struct oc_app *app, int index)
{
    struct oc_panel_row rows[OC_PANEL_ROWS];
    if (index >= oc_panel_rows(&app->panel, rows)) return;
    const struct oc_panel_row *row = &rows[index], *focus = &app->panel.focus;
    const bool again = row->section == focus->section && row->option == focus->option && oc_app_in_panel(app);
    app->panel.focus = *row;
    app->in_panel = true;
    app->message[0] = '\0';
    if (row->option == OC_OPTIONS)
        oc_panel_fold(&app->panel, !app->panel.folded[row->section]);
    else if (again)
        oc_app_request(app, oc_option(row->option)->type == OC_T_BOOL ? OC_REQ_TOGGLE : OC_REQ_EDIT);
}

static void click_row(struct oc_app *app, int index)
{
    const struct oc_view_ops *ops = oc_views[app->view];
    if (app->mode == OC_MODE_FIXES) {
        if (!oc_fixes_pick(app, index)) oc_app_request(app, OC_REQ_EDIT);
        return;
    }
    const bool had_keys = oc_app_in_view(app);
    app->in_panel = false;
    app->message[0] = '\0';
    if (ops->pick && !ops->pick(app, app->view_states[app->view], index) && had_keys) oc_app_request(app, OC_REQ_EDIT);
}

static bool is_in(struct oc_rect rect, int x, int y)
{
    return x >= rect.x && y >= rect.y && x < rect.x + rect.w && y < rect.y + rect.h;
}

static void click(struct oc_app *app, const struct oc_canvas *canvas, int x, int y)
{
    static void (*const clicks[OC_TARGET_KINDS])(struct oc_app * app, int index) = {
        [OC_TARGET_VIEW] = click_view, [OC_TARGET_OPTION] = click_option, [OC_TARGET_ROW] = click_row};
    for (int i = canvas->n_targets - 1; i >= 0; i--) { /* what was drawn last lies on top */
        const struct oc_target *target = &canvas->targets[i];
        if (!is_in(target->rect, x, y)) continue;
        clicks[target->kind](app, target->index);
        return;
    }
}

/* The wheel leaves the keys to whoever has them. */
static void turn(struct oc_app *app, const struct oc_canvas *canvas, const struct oc_mouse *mouse)
{
    const enum oc_request way = mouse->kind == OC_MOUSE_WHEEL_UP ? OC_REQ_UP : OC_REQ_DOWN;
    const struct oc_view_ops *ops = oc_views[app->view];
    struct oc_layout layout;
    oc_layout_make(canvas->width, canvas->height, app->in_panel, &layout);
    for (int i = 0; i < WHEEL; i++) {
        if (app->mode != OC_MODE_NORMAL)
            oc_app_request(app, way);
        else if (is_in(layout.panel, mouse->x, mouse->y))
            oc_panel_move(&app->panel, way == OC_REQ_UP ? -1 : 1), app->message[0] = '\0';
        else if (is_in(layout.view, mouse->x, mouse->y) && ops->pick)
            ops->request(app, app->view_states[app->view], way);
    }
}

void oc_app_mouse(struct oc_app *app, const struct oc_canvas *canvas, const struct oc_mouse *mouse)
{
    if (app->mode == OC_MODE_PROMPT || app->mode == OC_MODE_CONFIRM) return;
    if (mouse->kind == OC_MOUSE_CLICK)
        click(app, canvas, mouse->x, mouse->y);
    else
        turn(app, canvas, mouse);
    oc_app_changed(app);
}
