#include "tui/screen/panel.h"

#include <string.h>

#include "tui/report/units.h"
#include "tui/screen/edit.h"
#include "tui/screen/layout.h"

/* Whether the option is the first of the table with its section's name. */
static bool begins_section(int id)
{
    for (int before = 0; before < id; before++)
        if (strcmp(oc_option((enum oc_option_id)before)->group, oc_option((enum oc_option_id)id)->group) == 0)
            return false;
    return true;
}

const char *oc_panel_section(int section)
{
    for (int id = 0, n = -1; id < OC_OPTIONS; id++)
        if (begins_section(id) && ++n == section) return oc_option((enum oc_option_id)id)->group;
    return NULL;
}

static int section_of(enum oc_option_id option)
{
    int section = 0;
    const char *name;
    while ((name = oc_panel_section(section)) && strcmp(name, oc_option(option)->group) != 0) section++;
    return section;
}

int oc_panel_rows(const struct oc_panel *panel, struct oc_panel_row rows[OC_PANEL_ROWS])
{
    int n = 0, sections = 0;
    for (int id = 0; id < OC_OPTIONS; id++)
        if (panel->sections[id] >= sections) sections = panel->sections[id] + 1;
    for (int section = 0; section < sections; section++) {
        rows[n++] = (struct oc_panel_row){section, OC_OPTIONS};
        for (int id = 0; id < OC_OPTIONS && !panel->folded[section]; id++)
            if (panel->sections[id] == section) rows[n++] = (struct oc_panel_row){section, (enum oc_option_id)id};
    }
    return n;
}

static int focus_index(const struct oc_panel *panel, const struct oc_panel_row *rows, int n)
{
    for (int i = 0; i < n; i++)
        if (rows[i].section == panel->focus.section && rows[i].option == panel->focus.option) return i;
    return 0;
}

void oc_panel_start(struct oc_panel *panel, enum oc_option_id option)
{
    static const char *const open[] = {"Precision", "Parallel", "Optimizer", "Recompute", "Batch"};
    const char *name;
    *panel = (struct oc_panel){0};
    for (int id = 0; id < OC_OPTIONS; id++) panel->sections[id] = (uint8_t)section_of((enum oc_option_id)id);
    for (int section = 0; section < OC_PANEL_SECTIONS && (name = oc_panel_section(section)); section++) {
        panel->folded[section] = true;
        for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
            if (strcmp(name, open[i]) == 0) panel->folded[section] = false;
    }
    oc_panel_show(panel, option);
}

void oc_panel_move(struct oc_panel *panel, int by)
{
    struct oc_panel_row rows[OC_PANEL_ROWS];
    int n = oc_panel_rows(panel, rows), to = focus_index(panel, rows, n) + by;
    panel->focus = rows[to < 0 ? 0 : to >= n ? n - 1 : to];
}

void oc_panel_fold(struct oc_panel *panel, bool fold)
{
    panel->folded[panel->focus.section] = fold;
    if (fold) panel->focus.option = OC_OPTIONS;
}

void oc_panel_show(struct oc_panel *panel, enum oc_option_id option)
{
    panel->focus = (struct oc_panel_row){panel->sections[option], option};
    panel->folded[panel->focus.section] = false;
}

/* What a folded section says of itself. */
static void section_summary(const struct oc_plan *plan, const char *section, char *text, size_t size)
{
    const struct oc_config *c = &plan->c;
    char a[OC_NAME_MAX], b[OC_NAME_MAX];
    text[0] = '\0';
    if (strcmp(section, "Model") == 0 && plan->has_shape)
        snprintf(text, size, "%lldL h%lld", (long long)c->model_layers, (long long)c->model_hidden);
    else if (strcmp(section, "Parallel") == 0)
        snprintf(text, size, "%lld GPUs", (long long)c->parallel_world);
    else if (strcmp(section, "Batch") == 0)
        snprintf(text, size, "%lld x %lld", (long long)c->batch_micro, (long long)c->batch_seq);
    else if (strcmp(section, "Kernels") == 0)
        snprintf(text, size, "%s %s", oc_option_text(c, OC_OPT_kernels_transformer, a, sizeof a),
                 oc_option_text(c, OC_OPT_kernels_attention, b, sizeof b));
    else if (strcmp(section, "Device") == 0)
        snprintf(text, size, "%s", c->gpu);
    else if (strcmp(section, "Precision") == 0)
        oc_option_text(c, OC_OPT_precision, text, size);
    else if (strcmp(section, "Optimizer") == 0)
        oc_option_text(c, OC_OPT_optimizer, text, size);
    else if (strcmp(section, "Recompute") == 0)
        oc_option_text(c, OC_OPT_recompute, text, size);
}

static void draw_section(const struct oc_panel *panel, struct oc_canvas *canvas, struct oc_rect rect, int section,
                         const struct oc_panel_view *view)
{
    char summary[96];
    oc_canvas_put(canvas, rect.x + 1, rect.y, oc_canvas_style(canvas, OC_ROLE_SECTION),
                  panel->folded[section] ? 0x25b8 : 0x25be);
    int used = 3 + oc_canvas_text(canvas, rect.x + 3, rect.y, rect.w - 3, OC_ROLE_SECTION, oc_panel_section(section));
    if (!panel->folded[section]) return;
    section_summary(view->plan, oc_panel_section(section), summary, sizeof summary);
    oc_canvas_right(canvas, rect.x + used + 1, rect.y, rect.w - used - 3, OC_ROLE_DIM, summary);
}

/* One sign at the right end says where the value comes from. */
static char origin_mark(const struct oc_panel_view *view, enum oc_option_id id)
{
    if (view->current->origin[id].from == OC_FROM_EDITED ||
        oc_given(&view->current->config, id) != oc_given(&view->first->config, id))
        return '*';
    switch (view->current->origin[id].from) {
    case OC_FROM_ASSUMED: return '?';
    case OC_FROM_FILE: return 'f';
    case OC_FROM_SET: return 's';
    default: return ' ';
    }
}

static void draw_option(const struct oc_panel *panel, struct oc_canvas *canvas, struct oc_rect rect,
                        enum oc_option_id id, const struct oc_panel_view *view)
{
    const struct oc_option *option = oc_option(id);
    bool given = oc_given(&view->current->config, id), focused = panel->focus.option == id;
    const char *off = option->inapplicable ? option->inapplicable(&view->plan->c) : NULL;
    char mark = origin_mark(view, id), value[OC_NAME_MAX + 16];
    enum oc_role role = off                ? OC_ROLE_DISABLED
                        : mark == '*'      ? OC_ROLE_CHANGED
                        : mark == '?'      ? OC_ROLE_ASSUMED
                        : given || focused ? OC_ROLE_TEXT
                                           : OC_ROLE_DIM;
    int column = rect.w >= 40 ? 21 : 18, room = rect.w - column - 2;
    oc_canvas_text(canvas, rect.x + 3, rect.y, column - 4, off ? OC_ROLE_DISABLED : OC_ROLE_TEXT, option->label);
    if (off && oc_text_width(off) <= room)
        snprintf(value, sizeof value, "%s", off);
    else if (off)
        snprintf(value, sizeof value, "-");
    else
        oc_edit_text(&view->plan->c, id, given, value, sizeof value);
    oc_canvas_text(canvas, rect.x + column, rect.y, room, role, value);
    if (mark != ' ')
        oc_canvas_put(canvas, rect.x + rect.w - 2, rect.y,
                      oc_canvas_style(canvas, mark == 'f' || mark == 's' ? OC_ROLE_DIM : role), (uint32_t)mark);
}

void oc_panel_draw(struct oc_panel *panel, struct oc_canvas *canvas, struct oc_rect rect,
                   const struct oc_panel_view *view)
{
    struct oc_panel_row rows[OC_PANEL_ROWS];
    int n = oc_panel_rows(panel, rows), focus = focus_index(panel, rows, n);
    if (rect.h <= 0 || rect.w <= 0) return;
    panel->top = oc_layout_top(panel->top, focus, n, rect.h);
    for (int i = 0; i < rect.h && panel->top + i < n; i++) {
        struct oc_rect line = {rect.x, rect.y + i, rect.w, 1};
        const struct oc_panel_row *row = &rows[panel->top + i];
        if (row->option == OC_OPTIONS)
            draw_section(panel, canvas, line, row->section, view);
        else
            draw_option(panel, canvas, line, row->option, view);
        oc_canvas_target(canvas, line, OC_TARGET_OPTION, panel->top + i);
        if (panel->top + i != focus) continue;
        oc_canvas_mark(canvas, line, view->active ? OC_ROLE_FOCUS : OC_ROLE_FOCUS_OUT);
        oc_canvas_put(canvas, rect.x, line.y, oc_canvas_at(canvas, rect.x, line.y)->style, '>');
    }
}
