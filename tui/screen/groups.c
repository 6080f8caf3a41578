#include "tui/screen/groups.h"

#include <string.h>

static bool same(const struct oc_rank *a, const struct oc_rank *b)
{
    return a->reserved == b->reserved && memcmp(a->peak.classes, b->peak.classes, sizeof a->peak.classes) == 0;
}

int oc_groups(const struct oc_answer *answer, struct oc_group *groups, int most, int *left_out)
{
    int n = 0, worst = (int)answer->verdict.worst_stage;
    *left_out = 0;
    for (int stage = 0, end; stage < answer->n_ranks && most > 0; stage = end) {
        end = stage + 1;
        while (end < answer->n_ranks && same(&answer->ranks[stage], &answer->ranks[end])) end++;
        struct oc_group group = {stage, end - 1, worst >= stage && worst < end};
        if (n < most) {
            groups[n++] = group;
            continue;
        }
        if (group.worst) { /* the worst takes the last row */
            *left_out += groups[n - 1].last - groups[n - 1].first + 1;
            groups[n - 1] = group;
        } else {
            *left_out += end - stage;
        }
    }
    return n;
}
