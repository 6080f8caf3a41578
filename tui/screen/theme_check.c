#include "tui/screen/theme_check.h"

#include <math.h>

const char *oc_vision_name(enum oc_vision vision)
{
    static const char *const names[OC_VISIONS] = {"normal", "protanope", "deuteranope", "tritanope"};
    return names[vision];
}

/* ---- what terminals show ---- */

/* xterm's own eight colours. */
static const struct oc_rgb ansi[8] = {{0, 0, 0},   {205, 0, 0},   {0, 205, 0},   {205, 205, 0},
                                      {0, 0, 238}, {205, 0, 205}, {0, 205, 205}, {229, 229, 229}};

/* The 6 x 6 x 6 cube and the greys after it; the first 16 are not used by themes. */
static struct oc_rgb xterm_rgb(int index)
{
    static const uint8_t levels[6] = {0, 95, 135, 175, 215, 255};
    if (index >= 232) {
        uint8_t grey = (uint8_t)(8 + 10 * (index - 232));
        return (struct oc_rgb){grey, grey, grey};
    }
    if (index < 16) return ansi[index % 8];
    index -= 16;
    return (struct oc_rgb){levels[index / 36], levels[index / 6 % 6], levels[index % 6]};
}

struct oc_rgb oc_theme_shown(const struct oc_theme *theme, int colour, enum oc_depth depth)
{
    const struct oc_colour *c = &theme->colours[colour];
    if (colour == 0) return theme->light ? (struct oc_rgb){255, 255, 255} : (struct oc_rgb){0, 0, 0};
    if (depth == OC_DEPTH_RGB) return (struct oc_rgb){c->red, c->green, c->blue};
    return depth == OC_DEPTH_256 ? xterm_rgb(c->xterm) : ansi[c->ansi];
}

/* ---- how it is seen ---- */

static double linear(uint8_t value)
{
    double v = value / 255.0;
    return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double luminance(struct oc_rgb c)
{
    return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

double oc_contrast(struct oc_rgb a, struct oc_rgb b)
{
    double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
    return one > other ? one / other : other / one;
}

/* On linear RGB. */
static const double machado[OC_VISIONS][3][3] = {
    {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
    {{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}},
    {{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}},
    {{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}};

static double lab_curve(double t)
{
    return t > 216.0 / 24389.0 ? cbrt(t) : (24389.0 / 27.0 * t + 16) / 116;
}

static void to_lab(struct oc_rgb c, enum oc_vision vision, double lab[3])
{
    const double in[3] = {linear(c.red), linear(c.green), linear(c.blue)};
    double rgb[3];
    for (int i = 0; i < 3; i++) {
        double seen = 0;
        for (int k = 0; k < 3; k++) seen += machado[vision][i][k] * in[k];
        rgb[i] = seen < 0 ? 0 : seen > 1 ? 1 : seen;
    }
    double x = lab_curve((0.4124564 * rgb[0] + 0.3575761 * rgb[1] + 0.1804375 * rgb[2]) / 0.95047);
    double y = lab_curve(0.2126729 * rgb[0] + 0.7151522 * rgb[1] + 0.0721750 * rgb[2]);
    double z = lab_curve((0.0193339 * rgb[0] + 0.1191920 * rgb[1] + 0.9503041 * rgb[2]) / 1.08883);
    lab[0] = 116 * y - 16, lab[1] = 500 * (x - y), lab[2] = 200 * (y - z);
}

double oc_distance(struct oc_rgb a, struct oc_rgb b, enum oc_vision vision)
{
    double one[3], other[3], sum = 0;
    to_lab(a, vision, one);
    to_lab(b, vision, other);
    for (int i = 0; i < 3; i++) sum += (one[i] - other[i]) * (one[i] - other[i]);
    return sqrt(sum);
}

/* ---- a whole theme ---- */

static void least(double *value, double candidate)
{
    if (candidate < *value) *value = candidate;
}

static void measure_pair(const struct oc_theme *theme, enum oc_depth depth, int a, int b, struct oc_theme_check *check)
{
    struct oc_rgb one = oc_theme_shown(theme, theme->classes[a].colour, depth),
                  other = oc_theme_shown(theme, theme->classes[b].colour, depth);
    for (int vision = 0; vision < OC_VISIONS; vision++) {
        double distance = oc_distance(one, other, (enum oc_vision)vision);
        least(&check->pairs, distance);
        if (b != a + 1 || distance >= check->adjacent) continue;
        check->adjacent = distance;
        check->adjacent_vision = (enum oc_vision)vision;
    }
}

void oc_theme_measure(const struct oc_theme *theme, enum oc_depth depth, struct oc_theme_check *check)
{
    struct oc_rgb ground = oc_theme_shown(theme, 0, depth);
    *check = (struct oc_theme_check){1e9, 1e9, 1e9, 1e9, 1e9, OC_VISION_NORMAL, false};
    for (int a = 0; a < OC_CLASSES; a++) {
        struct oc_rgb fill = oc_theme_shown(theme, theme->classes[a].colour, depth);
        least(&check->text_contrast, oc_contrast(fill, oc_theme_shown(theme, theme->classes[a].text, depth)));
        least(&check->ground_contrast, oc_contrast(fill, ground));
        for (int b = a + 1; b < OC_CLASSES; b++) measure_pair(theme, depth, a, b, check);
    }
    for (int role = 0; role < OC_ROLES; role++) {
        const struct oc_style *style = &theme->roles[role];
        if (!style->fg) continue; /* the terminal's own words are its affair */
        least(&check->ui_contrast,
              oc_contrast(oc_theme_shown(theme, style->fg, depth), oc_theme_shown(theme, style->bg, depth)));
    }
    check->good = check->adjacent >= 20;
}
