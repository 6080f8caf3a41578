/* Two accountings that people quote: everything a rank holds, as bytes per parameter, all of it all the time.
 *
 * article: "Does mixed precision training really reduce memory usage?" (shared/seeds/002): fp32 28 + 28 + 56 = 112 GB
 * for 7B; mixed precision 14 + 28 of weights and 42 of "optimizer", that is 14 of gradients and 28 of moments = 84 GB.
 * Only moments in 16 bits give that sum, and no framework keeps them so beside an fp32 master copy: see oc_explain().
 *
 * zero-paper: Rajbhandari et al. 2020, arXiv:1910.02054, section 3.1: 2 + 2 + (4 + 4 + 4) bytes per parameter, where
 * states may be shared over data-parallel ranks. */
#include "model/frameworks/framework.h"

static bool is_half(const struct oc_plan *plan)
{
    return plan->dt.weights != OC_FP32;
}

static void set_half(struct oc_plan *plan)
{
    enum oc_dtype half = oc_precision_weights(plan->c.precision);
    if (oc_precision_autocast(plan->c.precision)) half = oc_precision_autocast(plan->c.precision);
    plan->dt.weights = plan->dt.compute = plan->dt.residual = plan->dt.grads = half;
    plan->dt.master = half == OC_FP32 ? OC_NONE : OC_FP32;
}

static void set_moments(struct oc_plan *plan, enum oc_dtype dtype)
{
    const bool adam = plan->c.optimizer != OC_OPTIM_SGD;
    plan->dt.moment1 = adam || plan->c.optimizer_momentum > 0 ? dtype : OC_NONE;
    plan->dt.moment2 = adam ? dtype : OC_NONE;
}

static bool decide_article(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    (void)warnings, (void)error;
    set_half(plan);
    set_moments(plan, plan->dt.weights);
    return true;
}

static bool decide_zero_paper(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    (void)warnings, (void)error;
    set_half(plan);
    set_moments(plan, OC_FP32);
    return true;
}

static void no_defaults(struct oc_config *config)
{
    oc_default_float(config, OC_OPT_optimizer_momentum, 0);
}

static bool always(struct oc_state *state, enum oc_class class, enum oc_dtype dtype, bool sharded, const char *why)
{
    *state = (struct oc_state){
        .class = class, .dtype = dtype, .sharded = sharded, .birth = OC_AT(INIT), .death = OC_AT(END), .why = why};
    return dtype != OC_NONE;
}

static bool weights(const struct oc_plan *plan, struct oc_state *state)
{
    return always(state, OC_WEIGHTS, plan->dt.weights, plan->c.parallel_zero >= 3,
                  is_half(plan) ? "the copy that forward and backward read, 2 B a parameter" : "fp32, 4 B a parameter");
}

static bool master(const struct oc_plan *plan, struct oc_state *state)
{
    return always(state, OC_MASTER, plan->dt.master, plan->c.parallel_zero >= 1,
                  "the original fp32 weights, kept so that small updates are not lost");
}

static bool gradients(const struct oc_plan *plan, struct oc_state *state)
{
    return always(state, OC_GRADIENTS, plan->dt.grads, plan->c.parallel_zero >= 2,
                  "one gradient a parameter, in the type of the weights");
}

static bool moment1(const struct oc_plan *plan, struct oc_state *state)
{
    return always(state, OC_OPTIMIZER, plan->dt.moment1, plan->c.parallel_zero >= 1,
                  plan->dt.moment1 == OC_FP32 ? "a running mean of the gradients, fp32"
                                              : "the account halves the moments too: no framework does");
}

static bool moment2(const struct oc_plan *plan, struct oc_state *state)
{
    return always(state, OC_OPTIMIZER, plan->dt.moment2, plan->c.parallel_zero >= 1,
                  plan->dt.moment2 == OC_FP32 ? "a running mean of their squares, fp32"
                                              : "the account halves the moments too: no framework does");
}

#define ARTICLE "the article \"Does mixed precision training really reduce memory usage?\""
#define ZERO    "ZeRO, arXiv:1910.02054, section 3.1"

static const struct oc_state_rule article_states[] = {
    {"weights", ARTICLE, "", weights}, {"master", ARTICLE, "", master},      {"gradients", ARTICLE, "", gradients},
    {"exp_avg", ARTICLE, "", moment1}, {"exp_avg_sq", ARTICLE, "", moment2}, {0}};
static const struct oc_state_rule zero_states[] = {{"weights", ZERO, "", weights},     {"master", ZERO, "", master},
                                                   {"gradients", ZERO, "", gradients}, {"exp_avg", ZERO, "", moment1},
                                                   {"exp_avg_sq", ZERO, "", moment2},  {0}};

const struct oc_framework_rules oc_article_rules = {.name = "the article's accounting",
                                                    .source = ARTICLE,
                                                    .defaults = no_defaults,
                                                    .decide = decide_article,
                                                    .states = article_states};

const struct oc_framework_rules oc_zero_paper_rules = {.name = "the ZeRO paper's accounting",
                                                       .source = ZERO,
                                                       .defaults = no_defaults,
                                                       .decide = decide_zero_paper,
                                                       .states = zero_states};
