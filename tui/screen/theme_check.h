/* How well a theme's colours are told apart: contrast, and distances as people with a colour-vision deficiency see
 * them.
 *
 * Sources: WCAG 2.1, relative luminance and contrast ratio; Machado, Oliveira and Fernandes, "A Physiologically-based
 * Model for Simulation of Color Vision Deficiency" (2009), severity 1.0; CIE 1976 L*a*b* distance under D65. */
#ifndef OOMCAST_THEME_CHECK_H
#define OOMCAST_THEME_CHECK_H

#include "tui/screen/term.h"

enum oc_vision { OC_VISION_NORMAL, OC_VISION_PROTAN, OC_VISION_DEUTAN, OC_VISION_TRITAN, OC_VISIONS };

const char *oc_vision_name(enum oc_vision vision);

struct oc_rgb {
    uint8_t red, green, blue;
};

/* What a terminal of that depth shows for a colour of the theme; index 0 is its background. */
struct oc_rgb oc_theme_shown(const struct oc_theme *theme, int colour, enum oc_depth depth);

/* From 1 to 21. */
double oc_contrast(struct oc_rgb a, struct oc_rgb b);

/* CIE76 distance of two colours as they are seen; about 2 is just noticeable. */
double oc_distance(struct oc_rgb a, struct oc_rgb b, enum oc_vision vision);

/* The worst figures of a theme. */
struct oc_theme_check {
    double text_contrast;           /* of the text on each class's fill */
    double ground_contrast;         /* of each fill on the background */
    double ui_contrast;             /* of the words' colours on theirs */
    double adjacent, pairs;         /* distance of fills that touch in a bar, and of any two */
    enum oc_vision adjacent_vision; /* for whom */
    bool good;                      /* fills that touch are at least 20 apart for everyone */
};

void oc_theme_measure(const struct oc_theme *theme, enum oc_depth depth, struct oc_theme_check *check);

#endif
