/* The panel: the options table as rows in sections that fold. Ownership: a plain value. */
#ifndef OOMCAST_PANEL_H
#define OOMCAST_PANEL_H

#include "oomcast/model.h"
#include "tui/screen/canvas.h"

enum { OC_PANEL_SECTIONS = 24, OC_PANEL_ROWS = OC_OPTIONS + OC_PANEL_SECTIONS };

/* A row is a section's head (option == OC_OPTIONS) or one option. */
struct oc_panel_row {
    int section;
    enum oc_option_id option;
};

struct oc_panel {
    uint8_t sections[OC_OPTIONS]; /* of each option, found once */
    bool folded[OC_PANEL_SECTIONS];
    struct oc_panel_row focus;
    int top; /* first row on the screen */
};

/* What the rows are drawn from. */
struct oc_panel_view {
    const struct oc_case *current, *first; /* as it is, and as it was opened */
    const struct oc_plan *plan;            /* the resolved values */
    bool active;                           /* the panel has the keys */
};

/* Folds all sections but those that are changed most often, and puts the focus on `option`. */
void oc_panel_start(struct oc_panel *panel, enum oc_option_id option);

/* The rows that are not folded away, in order; returns how many. */
int oc_panel_rows(const struct oc_panel *panel, struct oc_panel_row rows[OC_PANEL_ROWS]);

/* Moves the focus by so many rows, stopping at the ends. */
void oc_panel_move(struct oc_panel *panel, int by);

/* Folds or unfolds the section of the focus; a folded section takes the focus to its head. */
void oc_panel_fold(struct oc_panel *panel, bool fold);

/* Unfolds the option's section and puts the focus on it. */
void oc_panel_show(struct oc_panel *panel, enum oc_option_id option);

/* Name of a section, "Precision", or NULL beyond the last. */
const char *oc_panel_section(int section);

void oc_panel_draw(struct oc_panel *panel, struct oc_canvas *canvas, struct oc_rect rect,
                   const struct oc_panel_view *view);

#endif
