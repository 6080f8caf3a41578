#ifndef OOMCAST_LAYOUT_H
#define OOMCAST_LAYOUT_H

#include <stdint.h>

enum { OC_MAX_LAYOUT_STAGES = 256 };

/* What a text such as 'Et*3|(tt|)*6tL' says. Stage i is chunk i / pp of pipeline stage i % pp. */
struct oc_layout {
    int stages;
    uint32_t layers[OC_MAX_LAYOUT_STAGES + 1]; /* transformer layers of each stage */
    int embeddings, losses, loss_stage;
};

/* Fills `layout`. NULL, or what is wrong with the text. */
const char *oc_layout_read(const char *text, struct oc_layout *layout);

#endif
