#include "tui/report/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *oc_format_share(double share, char *text, size_t size)
{
    snprintf(text, size, fabs(share) < 0.0005 ? "same" : "%+.1f %%", share * 100);
    return text;
}

const char *oc_format_traffic(double bytes, enum oc_unit unit, int width, char *text, size_t size)
{
    const uint64_t amount = (uint64_t)(fabs(bytes) + 0.5);
    if (amount) return oc_format_change(bytes > 0 ? 0 : amount, bytes > 0 ? amount : 0, unit, width, text, size);
    snprintf(text, size, "same");
    return text;
}

static void add(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Appends, with "; " before it where something stands already. */
static void add(char *text, size_t size, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list args;
    int n = used && used < size ? snprintf(text + used, size - used, "; ") : 0;
    if (used + (size_t)n >= size) return;
    va_start(args, format);
    vsnprintf(text + used + n, size - used - (size_t)n, format, args);
    va_end(args);
}

const char *oc_advice_meaning(const struct oc_advices *advices, const struct oc_advice *advice, enum oc_unit unit,
                              char *text, size_t size)
{
    char amount[OC_BYTES_TEXT];
    if (!size) return text;
    text[0] = '\0';
    for (int i = 0; i < advice->n_steps; i++) add(text, size, "%s", advice->notes[i]);
    if (fabs(advice->host) >= 1)
        add(text, size, "%s %s a step between GPU and host",
            oc_format_traffic(advice->host, unit, 0, amount, sizeof amount), oc_unit_name(unit));
    if (fabs(advice->idle) >= 0.0005)
        add(text, size, "pipeline bubble %s", oc_format_share(advice->idle, amount, sizeof amount));
    if (advice->cost.samples != advices->cost.samples)
        add(text, size, "%" PRId64 " samples a step, not %" PRId64, advice->cost.samples, advices->cost.samples);
    if (advice->effect == OC_EFFECT_ROUNDING) add(text, size, "rounds differently");
    return text;
}

const char *oc_effect_heading(enum oc_effect effect)
{
    static const char *const headings[] = {[OC_EFFECT_NONE] = "With the same results",
                                           [OC_EFFECT_ROUNDING] = "With other roundings",
                                           [OC_EFFECT_RANKS] = "With more GPUs",
                                           [OC_EFFECT_TRAINING] = "As another training"};
    return headings[effect];
}

const char *oc_advices_heading(const struct oc_advices *advices)
{
    if (advices->back)
        return advices->n ? "What could be taken back, one change at a time, and still fit:"
                          : "Nothing that costs time could be taken back and still fit.";
    if (!advices->n)
        return advices->has_nearest ? "Up to four changes together do not make it fit. The nearest to it:"
                                    : "No change that is known here makes it fit.";
    return advices->list[0].n_steps == 1 ? "Single changes that make it fit, the cheapest first:"
                                         : "No single change suffices. Changes that together make it fit:";
}
