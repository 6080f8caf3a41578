/* `oomcast themes`: their names, or how well their colours are told apart. */
#include <stdio.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/screen/theme_check.h"

static void put_check(const char *name, const struct oc_theme *theme, struct oc_buffer *out)
{
    static const struct {
        enum oc_depth depth;
        const char *name;
    } depths[] = {{OC_DEPTH_RGB, "rgb"}, {OC_DEPTH_256, "256"}, {OC_DEPTH_8, "8"}};
    if (theme->mono) {
        oc_putf(out, "%-18s letters and attributes alone tell the classes apart\n", name);
        return;
    }
    char words[16] = "-"; /* all of them in the terminal's own colours */
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        struct oc_theme_check check;
        oc_theme_measure(theme, depths[i].depth, &check);
        if (check.ui_contrast <= 21) snprintf(words, sizeof words, "%.1f", check.ui_contrast);
        oc_putf(out, "%-18s %-4s %8.1f %9.1f %9.1f  %-11s %6.1f %6s%s\n", i ? "" : name, depths[i].name,
                check.text_contrast, check.ground_contrast, check.adjacent, oc_vision_name(check.adjacent_vision),
                check.pairs, words, check.good ? "" : "  letters are needed");
    }
}

enum oc_exit oc_cli_themes(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    enum { MOST = 128 };
    static char names[MOST][256];
    int n = oc_theme_names(names, MOST);
    if (args->check) {
        oc_put(out,
               "Contrast is WCAG's, distance CIE76 at worst over normal and colour-deficient vision (Machado 2009).\n");
        oc_putf(out, "%-18s %-4s %8s %9s %9s  %-11s %6s %6s\n", "theme", "", "text", "on ground", "adjacent",
                "worst for", "any", "words");
    }
    for (int i = 0; i < n; i++) {
        struct oc_theme theme;
        char path[600];
        if (!oc_theme_open(&theme, names[i], error)) return OC_EXIT_USAGE;
        if (args->check)
            put_check(names[i], &theme, out);
        else
            oc_putf(out, "%-18s %s\n", names[i], oc_theme_users(names[i], path, sizeof path) ? path : "built in");
    }
    return OC_EXIT_DONE;
}
