#include "oomcast/plan.h"

uint64_t oc_plan_hash(const struct oc_plan *plan)
{
    uint64_t sum = 1469598103934665603u; /* FNV-1a */
    for (int i = 0; i < OC_OPTIONS; i++) {
        char text[512];
        oc_option_text(&plan->c, (enum oc_option_id)i, text, sizeof text);
        for (const char *at = text;; at++) {
            sum = (sum ^ (unsigned char)*at) * 1099511628211u;
            if (!*at) break;
        }
    }
    return sum;
}
