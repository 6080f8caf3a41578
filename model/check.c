#include "model/check.h"

#include <stdio.h>
#include <string.h>

#include "model/base/layout.h"
#include "model/frameworks/framework.h"

bool oc_check_shape_given(const struct oc_config *c, struct oc_error *error)
{
    const struct {
        const char *key;
        int64_t value;
    } needed[] = {
        {"model.layers", c->model_layers}, {"model.hidden", c->model_hidden}, {"model.heads", c->model_heads}};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!needed[i].value) {
            oc_fail(error, OC_E_CONFLICT, "%s is not known, and the shape cannot be worked out without it",
                    needed[i].key);
            return oc_hint(error, "set %s, or name a known model with model.name", needed[i].key);
        }
    if (!c->model_head_dim && c->model_hidden % c->model_heads) {
        oc_fail(error, OC_E_CONFLICT, "model.hidden=%lld is no multiple of model.heads=%lld",
                (long long)c->model_hidden, (long long)c->model_heads);
        return oc_hint(error, "change one of them, or set model.head_dim");
    }
    return true;
}

/* "1, 2, 4, 8 or 16": the values up to `most` that divide all of the given numbers. */
static void list_divisors(char *text, size_t size, int64_t a, int64_t b)
{
    size_t used = 0;
    text[0] = 0;
    for (int64_t d = 1, n = 0; d <= a && n < 8 && used + 24 < size; d++)
        if (a % d == 0 && b % d == 0)
            used += (size_t)snprintf(text + used, size - used, "%s%lld", n++ ? ", " : "", (long long)d);
}

bool oc_check_divides(const char *divisor_name, int64_t divisor, const char *name, int64_t value,
                      struct oc_error *error)
{
    if (divisor > 0 && value % divisor == 0) return true;
    char list[160];
    oc_fail(error, OC_E_CONFLICT, "%s=%lld does not divide %s=%lld", divisor_name, (long long)divisor, name,
            (long long)value);
    list_divisors(list, sizeof list, value, value);
    return oc_hint(error, "%lld is divided by %s", (long long)value, list);
}

bool oc_check_ranks(const struct oc_config *c, int64_t model_ranks, struct oc_error *error)
{
    if (c->parallel_world < 1) {
        oc_fail(error, OC_E_VALUE, "parallel.world=%lld: a job has at least one rank", (long long)c->parallel_world);
        return oc_hint(error, "tp x pp x cp = %lld is the least that this configuration needs", (long long)model_ranks);
    }
    if (c->parallel_world % model_ranks) {
        oc_fail(error, OC_E_CONFLICT, "parallel.world=%lld is no multiple of tp x pp x cp = %lld x %lld x %lld",
                (long long)c->parallel_world, (long long)c->parallel_tp, (long long)c->parallel_pp,
                (long long)c->parallel_cp);
        return oc_hint(error, "parallel.world=%lld would do",
                       (long long)(c->parallel_world / model_ranks + 1) * (long long)model_ranks);
    }
    return true;
}

static bool check_tensor_parallel(const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (c->model_heads % c->parallel_tp || c->model_kv_heads % c->parallel_tp) {
        char list[160];
        oc_fail(error, OC_E_CONFLICT, "parallel.tp=%lld does not divide %lld heads with %lld key/value heads",
                (long long)c->parallel_tp, (long long)c->model_heads, (long long)c->model_kv_heads);
        list_divisors(list, sizeof list, c->model_heads, c->model_kv_heads);
        return oc_hint(error, "tp can be %s", list);
    }
    if (c->model_heads % c->model_kv_heads) {
        oc_fail(error, OC_E_CONFLICT, "model.kv_heads=%lld does not divide model.heads=%lld",
                (long long)c->model_kv_heads, (long long)c->model_heads);
        return oc_hint(error, "query heads are dealt out evenly over key/value heads");
    }
    return oc_check_divides("parallel.tp", c->parallel_tp, "model.ffn", c->model_ffn, error) &&
           oc_check_divides("parallel.tp", c->parallel_tp, "the padded vocabulary", plan->vocab, error);
}

/* megatron.pipeline_layout: stages written out, which decide on interleaving too. */
static bool check_layout(const struct oc_config *c, struct oc_error *error)
{
    struct oc_layout layout;
    const char *wrong = oc_layout_read(c->megatron_pipeline_layout, &layout);
    if (wrong) {
        oc_fail(error, OC_E_VALUE, "megatron.pipeline_layout=%s: %s", c->megatron_pipeline_layout, wrong);
        return oc_hint(error, "'Et*3|(tt|)*6tL' is one of 8 stages with 16 layers");
    }
    if (layout.stages == c->parallel_pp * c->parallel_vpp) return true;
    oc_fail(error, OC_E_CONFLICT,
            "megatron.pipeline_layout has %d stages, and parallel.pp x parallel.vpp = %lld x %lld", layout.stages,
            (long long)c->parallel_pp, (long long)c->parallel_vpp);
    return oc_hint(error, layout.stages % c->parallel_pp ? "its stages must be a multiple of parallel.pp"
                                                         : "leave parallel.vpp out: it follows from the layout");
}

static bool check_pipeline(const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (c->megatron_pipeline_layout[0] && !check_layout(c, error)) return false;
    if (c->parallel_vpp > 1 && c->parallel_pp == 1) {
        oc_fail(error, OC_E_CONFLICT, "parallel.vpp=%lld needs a pipeline", (long long)c->parallel_vpp);
        return oc_hint(error, "parallel.pp above 1, or parallel.vpp=1");
    }
    int64_t layers = 0;
    bool negative = false;
    for (int64_t stage = 0; stage < c->parallel_pp; stage++)
        for (int64_t chunk = 0; chunk < c->parallel_vpp; chunk++) {
            const int64_t own = oc_plan_layers(plan, stage, chunk);
            negative |= own < 0;
            layers += own;
        }
    if (layers != c->model_layers || negative) {
        oc_fail(error, OC_E_CONFLICT, "%lld layers cannot be dealt out over pp=%lld with vpp=%lld",
                (long long)c->model_layers, (long long)c->parallel_pp, (long long)c->parallel_vpp);
        return oc_hint(
            error,
            "pp x vpp must divide the layers, or set parallel.first_stage_layers and parallel.last_stage_layers");
    }
    return true;
}

static bool check_experts(const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (!c->model_experts) return true;
    const int64_t ranks = c->parallel_etp * c->parallel_ep;
    return oc_check_divides("parallel.ep", c->parallel_ep, "model.experts", c->model_experts, error) &&
           oc_check_divides("parallel.etp", c->parallel_etp, "model.expert_ffn", c->model_expert_ffn, error) &&
           oc_check_divides("parallel.etp x parallel.ep", ranks, "the ranks of a pipeline stage",
                            c->parallel_world / c->parallel_pp, error);
}

static bool check_sequence(const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_config *c = &plan->c;
    if (!oc_check_divides("parallel.cp", c->parallel_cp, "batch.seq", c->batch_seq, error)) return false;
    if (!c->parallel_sp) return true;
    return oc_check_divides("parallel.tp", c->parallel_tp, "the sequence of a rank (batch.seq / cp)",
                            c->batch_seq / c->parallel_cp, error);
}

bool oc_check_plan(struct oc_plan *plan, struct oc_warnings *warnings, struct oc_error *error)
{
    if (!plan->has_shape) {
        if (plan->c.parallel_tp > 1 || plan->c.parallel_pp > 1 || plan->c.parallel_cp > 1) {
            oc_fail(error, OC_E_CONFLICT, "model.params alone cannot be split over tp, pp or cp");
            return oc_hint(error, "name a model with model.name, or give model.layers, model.hidden and model.heads");
        }
        oc_warn(warnings, "only the number of parameters is known: activations are not modelled");
        return true;
    }
    if (plan->c.batch_seq > plan->c.model_max_positions && plan->c.model_positions == OC_POS_LEARNED)
        oc_warn(warnings, "batch.seq=%lld is longer than the %lld learned positions", (long long)plan->c.batch_seq,
                (long long)plan->c.model_max_positions);
    if (plan->c.parallel_vpp > 1 && plan->accum % plan->c.parallel_pp)
        oc_warn(warnings, "interleaving wants the %lld micro-batches of a step to be a multiple of pp=%lld",
                (long long)plan->accum, (long long)plan->c.parallel_pp);
    return check_tensor_parallel(plan, error) && check_pipeline(plan, error) && check_sequence(plan, error) &&
           check_experts(plan, error);
}
