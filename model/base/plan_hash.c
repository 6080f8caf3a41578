#include "oomcast/plan.h"

#include <string.h>

/* One more number: FNV-1a over words instead of bytes, with the high half folded back, which a product leaves out of
 * the low one. */
static uint64_t mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * 1099511628211u;
    return sum ^ sum >> 32;
}

/* A value as one number; a string is mixed word by word before it. */
static uint64_t mix_option(uint64_t sum, const struct oc_config *config, const struct oc_option *option)
{
    const char *field = (const char *)config + option->offset;
    uint64_t word = 0;
    if (option->type == OC_T_STRING) {
        const size_t length = strnlen(field, OC_NAME_MAX);
        for (size_t at = 0; at < length; at += sizeof word) {
            const size_t left = length - at;
            word = 0;
            memcpy(&word, field + at, left < sizeof word ? left : sizeof word);
            sum = mix(sum, word);
        }
        return mix(sum, length);
    }
    if (option->type == OC_T_FLOAT && *(const double *)(const void *)field == 0) return mix(sum, 0); /* 0.0 and -0.0 */
    memcpy(&word, field, sizeof word);
    return mix(sum, word);
}

uint64_t oc_plan_hash(const struct oc_plan *plan)
{
    uint64_t sum = 14695981039346656037u;
    for (int i = 0; i < OC_OPTIONS; i++) sum = mix_option(sum, &plan->c, oc_option((enum oc_option_id)i));
    return sum;
}
