/* oc_explain(): the reason in words. Every figure in a sentence is computed: from this plan, and from variants of it
 * that are resolved, estimated and swept like any other (the same run in fp32, with more micro-batches, under another
 * framework). */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/frameworks/framework.h"
#include "oomcast/model.h"

#define GIB 1073741824.0

static void say(struct oc_reason *reason, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct oc_reason *reason, const char *format, ...)
{
    if (reason->n == OC_MAX_SENTENCES) return;
    va_list args;
    va_start(args, format);
    vsnprintf(reason->sentence[reason->n++], sizeof reason->sentence[0], format, args);
    va_end(args);
}

/* ---- variants ---- */

/* What was given of a resolved configuration, so that the rest may follow from a change. */
static struct oc_config given_only(const struct oc_config *resolved)
{
    struct oc_config config = oc_config_default();
    oc_config_merge(&config, resolved);
    return config;
}

static void change(struct oc_config *config, enum oc_option_id id, int64_t value)
{
    oc_option_put(config, id, value);
    oc_set_given(config, id, true);
}

/* The run in another precision, with nothing left of single types that were given for this one. */
static struct oc_config in_precision(const struct oc_plan *plan, enum oc_precision precision)
{
    struct oc_config config = given_only(&plan->c);
    for (int id = OC_OPT_precision; id <= OC_OPT_precision_residual; id++)
        oc_option_reset(&config, (enum oc_option_id)id);
    change(&config, OC_OPT_precision, precision);
    return config;
}

static bool peak_of(const struct oc_config *config, int64_t stage, struct oc_plan *plan, struct oc_rank *rank)
{
    struct oc_ledger ledger;
    if (!oc_resolve(config, plan, NULL, NULL) || stage >= plan->c.parallel_pp ||
        !oc_estimate(plan, stage, &ledger, NULL))
        return false;
    oc_sweep(&ledger, rank);
    return true;
}

static uint64_t states_of(const struct oc_instant *instant)
{
    return instant->classes[OC_WEIGHTS] + instant->classes[OC_MASTER] + instant->classes[OC_GRADIENTS] +
           instant->classes[OC_OPTIMIZER];
}

/* ---- sentences ---- */

/* "2 fp16 weights + 4 fp32 master + ..." with a share where states are distributed. */
static void ladder(const struct oc_plan *plan, char *text, size_t size)
{
    const struct {
        enum oc_dtype dtype;
        const char *what;
        bool shared;
    } parts[] = {{oc_stored_weights(plan), "weights", plan->c.parallel_zero >= 3},
                 {plan->dt.master, "master copy", plan->c.parallel_zero >= 1},
                 {plan->dt.grads, "gradients", plan->c.parallel_zero >= 2},
                 {plan->dt.step_grads, "gradients for the step", plan->c.parallel_zero >= 1},
                 {plan->dt.moment1, plan->dt.moment2 ? "first moment" : "momentum", plan->c.parallel_zero >= 1},
                 {plan->dt.moment2, "second moment", plan->c.parallel_zero >= 1}};
    size_t used = 0;
    text[0] = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; i++) {
        if (parts[i].dtype == OC_NONE) continue;
        char share[24] = "";
        if (parts[i].shared && plan->shard > 1) snprintf(share, sizeof share, "/%lld", (long long)plan->shard);
        used +=
            (size_t)snprintf(text + used, size - used, "%s%d%s %s %s", used ? " + " : "",
                             oc_dtype_bits(parts[i].dtype) / 8, share, oc_dtype_name(parts[i].dtype), parts[i].what);
    }
}

static void explain_states(const struct oc_answer *answer, const struct oc_rank *rank, struct oc_reason *reason)
{
    char text[300];
    const struct oc_instant *step = &rank->moments[OC_STEADY][OC_M_STEP],
                            *backward = &rank->moments[OC_STEADY][OC_M_BACKWARD];
    if (!rank->params) return;
    ladder(&answer->plan, text, sizeof text);
    const double at_step = (double)states_of(step) / (double)rank->params,
                 before = (double)states_of(backward) / (double)rank->params;
    if (answer->plan.dt.step_grads != OC_NONE)
        say(reason, "At the step a rank holds %.4g B a parameter: %s; while activations are alive it holds %.4g.",
            at_step, text, before);
    else
        say(reason, "A rank holds %.4g B a parameter at the step: %s.", at_step, text);
}

static void explain_peak(const struct oc_rank *rank, struct oc_reason *reason)
{
    const struct oc_instant *peak = &rank->peak;
    char where[64], place[80] = "";
    if (*oc_place_text(&peak->place, where, sizeof where)) snprintf(place, sizeof place, " (%s)", where);
    say(reason, "It peaks at %.2f GiB allocated, in %s%s: %.2f GiB of states, %.2f of activations, %.2f of buffers.",
        (double)peak->allocated / GIB, oc_moment_name(peak->place.moment), place, (double)states_of(peak) / GIB,
        (double)peak->classes[OC_ACTIVATIONS] / GIB, (double)peak->classes[OC_BUFFERS] / GIB);
}

static void explain_first_iteration(const struct oc_rank *rank, struct oc_reason *reason)
{
    if (rank->peak.allocated <= rank->first_peak.allocated) return;
    say(reason,
        "The first iteration peaks %.2f GiB lower, because optimizer states are born in its step: a run that survives "
        "it can still "
        "fail in the second.",
        (double)(rank->peak.allocated - rank->first_peak.allocated) / GIB);
}

/* The first micro-batch size from which this precision peaks lower than fp32; 0 when none up to `most` does. */
static int64_t crossing(const struct oc_plan *plan, int64_t stage, int64_t most)
{
    struct oc_config half = given_only(&plan->c), full = in_precision(plan, OC_PREC_FP32);
    struct oc_config *const both[] = {&half, &full};
    for (int i = 0; i < 2; i++) {
        oc_option_reset(both[i], OC_OPT_batch_global);
        change(both[i], OC_OPT_batch_accum, plan->accum);
    }
    int64_t above = 0, below = 0; /* the largest size that does not pay off, the smallest that does */
    for (int64_t size = 1; size <= most; size = below ? (above + below) / 2 : size * 2) {
        struct oc_plan scratch;
        struct oc_rank in_half, in_full;
        change(&half, OC_OPT_batch_micro, size);
        change(&full, OC_OPT_batch_micro, size);
        if (!peak_of(&half, stage, &scratch, &in_half) || !peak_of(&full, stage, &scratch, &in_full)) return 0;
        if (in_half.peak.allocated < in_full.peak.allocated)
            below = size;
        else
            above = size;
        if (below && below - above <= 1) return below;
    }
    return 0;
}

static void explain_copies(const struct oc_plan *plan, struct oc_reason *reason)
{
    const char *half = oc_dtype_name(oc_stored_weights(plan));
    const bool full = oc_stored_weights(plan) == OC_FP32;
    if (full && (plan->c.framework == OC_FW_FSDP1 || plan->c.framework == OC_FW_FSDP2)) {
        say(reason,
            "FSDP keeps its shards in fp32, as in fp32 training; weights are %s only while a layer is gathered, so "
            "mixed precision saves gathered weights and activations, not states.",
            oc_dtype_name(plan->dt.compute));
        return;
    }
    if (full) {
        say(reason,
            "Autocast keeps weights, gradients and optimizer states in fp32, as fp32 does; it adds %s copies of the "
            "matrices, up to "
            "2 B a parameter, from forward until each layer's backward, and saves activations only.",
            oc_dtype_name(plan->dt.compute));
        return;
    }
    if (plan->dt.master == OC_NONE) {
        say(reason,
            "With no fp32 master copy the %s weights are updated in place: half the states, and small updates are "
            "lost.",
            half);
        return;
    }
    if (plan->dt.grads != OC_FP32)
        say(reason, "The fp32 master copy (param.detach().clone().float()) is no leak: its 4 B stay for good, and the "
                    "halved weights and "
                    "gradients pay for it, 2 + 2 B.");
    else
        say(reason,
            "The fp32 master copy (param.detach().clone().float()) stays for good, 4 B; gradients are summed in "
            "fp32%s, so only the "
            "weights are halved and pay for half of it.",
            plan->dt.weights == OC_BF16 ? ", always so under bf16" : "");
    if (plan->dt.step_grads != OC_NONE && plan->c.framework == OC_FW_MEGATRON)
        say(reason, "The surplus over fp32 is main_grad.float(), a 4 B copy of the gradients that is alive from the "
                    "step until zero_grad.");
}

static double activations_in_backward(const struct oc_rank *rank)
{
    return (double)rank->moments[OC_STEADY][OC_M_BACKWARD].classes[OC_ACTIVATIONS] / GIB;
}

static void explain_against_fp32(const struct oc_answer *answer, const struct oc_rank *rank, struct oc_reason *reason)
{
    const struct oc_plan *plan = &answer->plan;
    if (plan->dt.weights == OC_FP32 && plan->dt.compute == OC_FP32) return;
    const struct oc_config config = in_precision(plan, OC_PREC_FP32);
    struct oc_plan full;
    struct oc_rank other;
    explain_copies(plan, reason);
    if (!peak_of(&config, rank->stage, &full, &other)) return;
    const double here = (double)rank->peak.allocated / GIB, there = (double)other.peak.allocated / GIB,
                 delta = here - there;
    const char *name = oc_dtype_name(plan->dt.compute);
    if (delta < -0.005) {
        say(reason, "The same run in fp32 would peak at %.2f GiB, %.2f more.", there, -delta);
        return;
    }
    if (delta < 0.005) {
        say(reason, "The same run in fp32 would peak at %.2f GiB, the same.", there);
        return;
    }
    if (!plan->has_shape) {
        say(reason, "The same states in fp32 would peak at %.2f GiB, %.2f less.", there, delta);
        return;
    }
    const double saved = activations_in_backward(&other) - activations_in_backward(rank);
    say(reason,
        "The same run in fp32 would peak at %.2f GiB, %.2f less: %s%s saves %.2f GiB of activations in backward, too "
        "little to "
        "win that back.",
        there, delta, plan->c.recompute == OC_RECOMPUTE_FULL ? "full recompute leaves so few that " : "", name,
        saved > 0 ? saved : 0);
    const int64_t from = crossing(plan, rank->stage, 64);
    if (from)
        say(reason, "From micro-batch %lld on %s peaks lower than fp32.", (long long)from, name);
    else
        say(reason, "At no micro-batch up to 64 does %s peak lower than fp32.", name);
}

/* What the frameworks hold where the article's account has 84 GB. */
static void explain_article(const struct oc_plan *plan, struct oc_reason *reason)
{
    const struct {
        enum oc_framework framework;
        enum oc_precision precision;
        enum oc_optimizer_impl impl;
    } real[] = {{OC_FW_PYTORCH, OC_PREC_AMP_FP16, OC_IMPL_FOREACH},
                {OC_FW_PYTORCH, OC_PREC_AMP_FP16, OC_IMPL_FUSED},
                {OC_FW_MEGATRON, OC_PREC_FP16, OC_IMPL_FUSED},
                {OC_FW_MEGATRON, OC_PREC_BF16, OC_IMPL_FUSED}};
    struct oc_rank ranks[4];
    struct oc_plan other;
    for (int i = 0; i < 4; i++) {
        struct oc_config config = in_precision(plan, real[i].precision);
        change(&config, OC_OPT_framework, real[i].framework);
        change(&config, OC_OPT_optimizer_impl, real[i].impl);
        if (!peak_of(&config, 0, &other, &ranks[i])) return;
    }
#define GB(rank_, moment_) ((double)(rank_).moments[OC_STEADY][OC_M_##moment_].allocated / 1e9)
    say(reason, "No framework keeps states like this: the sum needs moments in 16 bits beside an fp32 master copy.");
    say(reason,
        "PyTorch autocast keeps weights, gradients and moments in fp32: %.4g GB in forward, of which up to %.4g are "
        "cached 16-bit "
        "casts, %.4g after backward, %.4g in a foreach optimizer step and %.4g in a fused one.",
        GB(ranks[0], FORWARD), (double)ranks[0].moments[OC_STEADY][OC_M_FORWARD].classes[OC_BUFFERS] / 1e9,
        GB(ranks[0], REDUCE), GB(ranks[0], STEP), GB(ranks[1], STEP));
    say(reason,
        "Megatron-LM holds %.4g GB at the step in fp16 and %.4g in bf16: a master copy, and gradients that are fp32 by "
        "then.",
        GB(ranks[2], STEP), GB(ranks[3], STEP));
#undef GB
}

void oc_explain(const struct oc_answer *answer, struct oc_reason *reason)
{
    reason->n = 0;
    if (!answer->n_ranks) return;
    const struct oc_rank *rank = &answer->ranks[answer->verdict.worst_stage];
    explain_states(answer, rank, reason);
    if (answer->plan.c.framework == OC_FW_ARTICLE) {
        if (answer->plan.dt.weights != OC_FP32) explain_article(&answer->plan, reason);
        return;
    }
    explain_against_fp32(answer, rank, reason);
    explain_peak(rank, reason);
    explain_first_iteration(rank, reason);
}
