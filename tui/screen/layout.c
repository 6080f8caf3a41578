#include "tui/screen/layout.h"

static int panel_width(int width)
{
    int panel = 29 + (width - OC_SPLIT_WIDTH) * 3 / 8; /* 29 of 80 columns, 46 from 126 on */
    return panel < 46 ? panel : 46;
}

static int help_rows(int height)
{
    return height >= 24 ? 2 : height >= OC_MIN_HEIGHT + 2 ? 1 : 0;
}

void oc_layout_make(int width, int height, bool panel, struct oc_layout *layout)
{
    *layout = (struct oc_layout){.kind = OC_LAYOUT_TINY};
    if (width < OC_MIN_WIDTH || height < OC_MIN_HEIGHT) {
        layout->view = (struct oc_rect){0, 0, width > 0 ? width : 0, height > 0 ? height : 0};
        return;
    }
    int help = help_rows(height), rule = height >= OC_SPLIT_HEIGHT ? 1 : 0;
    int body = height - 1 - rule - help - 2; /* header, and below: rule, help, status, hint */
    layout->header = (struct oc_rect){0, 0, width, 1};
    layout->rule = (struct oc_rect){0, 1 + body, width, rule};
    layout->help = (struct oc_rect){0, 1 + body + rule, width, help};
    layout->status = (struct oc_rect){0, height - 2, width, 1};
    layout->hint = (struct oc_rect){0, height - 1, width, 1};
    if (width >= OC_SPLIT_WIDTH && height >= OC_SPLIT_HEIGHT) {
        int left = panel_width(width);
        layout->kind = OC_LAYOUT_SPLIT;
        layout->panel = (struct oc_rect){0, 1, left, body};
        layout->divider = (struct oc_rect){left, 1, 1, body};
        layout->view = (struct oc_rect){left + 1, 1, width - left - 1, body};
        return;
    }
    layout->kind = OC_LAYOUT_TABS;
    *(panel ? &layout->panel : &layout->view) = (struct oc_rect){0, 1, width, body};
}

void oc_layout_stack(int rows, const struct oc_block *blocks, int n, int *heights)
{
    int highest = 0;
    for (int i = 0; i < n; i++) {
        heights[i] = 0;
        if (blocks[i].rank > highest) highest = blocks[i].rank;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int rank = 0; rank <= highest; rank++) {
            for (int i = 0; i < n; i++) {
                if (blocks[i].rank != rank || (pass == 1 && heights[i] == 0)) continue;
                int more = (pass == 0 ? blocks[i].least : blocks[i].most) - heights[i];
                if (pass == 1 && more > rows) more = rows;
                if (more < 0 || more > rows) continue;
                heights[i] += more;
                rows -= more;
            }
        }
    }
}

int oc_layout_top(int top, int focus, int n, int rows)
{
    if (top > focus) top = focus;
    if (top < focus - rows + 1) top = focus - rows + 1;
    if (top > n - rows) top = n - rows;
    return top < 0 ? 0 : top;
}

int oc_layout_move(int focus, int by, int n)
{
    const int last = n - 1;
    if (by > 0)
        focus = by > last - focus ? last : focus + by;
    else
        focus = -by > focus ? 0 : focus + by;
    return focus < 0 ? 0 : focus;
}
