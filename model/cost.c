/* oc_cost(): what a run costs besides memory. Operations of matrix products, and bytes between ranks, from the shape
 * and the split: element-wise work and latencies are left out, so the figures compare two configurations of one run
 * and do not tell its speed.
 *
 * Source: operations as in Narayanan et al. 2021 (arXiv 2104.04473, appendix) and Korthikanti et al. 2022 (arXiv
 * 2205.05198); a ring over n ranks sends (n-1)/n of a message for a gather or a scatter of it, twice that for an
 * all-reduce (Thakur et al. 2005). */
#include <string.h>

#include "oomcast/model.h"

/* Multiply-adds of one token's forward pass through one layer, by part. */
struct layer_work {
    double linear_attention; /* the projections */
    double scores;           /* scores and weighted sum; flash leaves out what a causal mask hides, half of them */
    double mla_up;           /* the part of the projections that mla_up_proj recomputes */
    double mlp;              /* of a dense layer */
    double experts, shared;  /* of a layer with experts */
};

static double mlp_of(const struct oc_plan *plan, int64_t ffn)
{
    return (double)plan->c.model_hidden * (double)ffn * (plan->gated ? 3 : 2);
}

static void fill_attention(const struct oc_plan *plan, struct layer_work *work)
{
    const struct oc_config *c = &plan->c;
    const double hidden = (double)c->model_hidden, heads = (double)c->model_heads,
                 keys = (double)c->batch_seq *
                        (c->model_kind == OC_KIND_DECODER && c->kernels_attention == OC_ATTN_FLASH ? 0.5 : 1);
    if (!c->model_kv_lora_rank) {
        work->linear_attention = hidden * (double)(plan->q + 2 * plan->kv) + hidden * (double)plan->q;
        work->scores = keys * 2 * (double)plan->q;
        return;
    }
    const double head = (double)(c->model_qk_nope_head_dim + c->model_qk_rope_head_dim),
                 value = (double)c->model_v_head_dim, latent = (double)c->model_kv_lora_rank,
                 queries = (double)c->model_q_lora_rank;
    const double q_up = (queries > 0 ? queries : hidden) * heads * head;
    work->mla_up = latent * heads * ((double)c->model_qk_nope_head_dim + value) + (queries > 0 ? q_up : 0);
    work->linear_attention = work->mla_up + hidden * (latent + (double)c->model_qk_rope_head_dim) +
                             (queries > 0 ? hidden * queries : q_up) + heads * value * hidden;
    work->scores = keys * heads * (head + value);
}

static struct layer_work work_of(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    struct layer_work work = {0};
    fill_attention(plan, &work);
    work.mlp = mlp_of(plan, c->model_ffn);
    if (!c->model_experts) return work;
    work.experts = (double)c->model_experts_per_token * mlp_of(plan, c->model_expert_ffn) +
                   (double)c->model_hidden * (double)c->model_experts;
    work.shared = mlp_of(plan, c->model_shared_expert_ffn);
    return work;
}

/* The share of a stage's layers that full recompute passes again. */
static double recomputed_share(const struct oc_config *c)
{
    const double per_chunk = (double)c->model_layers / (double)(c->parallel_pp * c->parallel_vpp);
    if (c->recompute != OC_RECOMPUTE_FULL) return 0;
    if (c->recompute_method != OC_METHOD_BLOCK || (double)c->recompute_layers >= per_chunk) return 1;
    return (double)c->recompute_layers / per_chunk;
}

/* Multiply-adds of one token that selective recompute does again, over all layers. */
static double selective_work(const struct oc_config *c, const struct layer_work *work, double dense, double moe)
{
    const int64_t modules = c->recompute_modules;
    double again = 0;
    if (c->recompute != OC_RECOMPUTE_SELECTIVE) return 0;
    if (modules & OC_MODULE_TORCHTITAN_OP) /* every second product is kept */
        return (dense * (work->linear_attention + work->mlp) +
                moe * (work->linear_attention + work->experts + work->shared)) /
               2;
    if (modules & OC_MODULE_CORE_ATTN) again += (dense + moe) * work->scores;
    if (modules & OC_MODULE_MLP) again += dense * work->mlp;
    if (modules & OC_MODULE_MOE)
        again += moe * (work->experts + work->shared);
    else if (modules & OC_MODULE_SHARED_EXPERTS)
        again += moe * work->shared;
    if (modules & OC_MODULE_MLA_UP_PROJ) again += (dense + moe) * work->mla_up;
    return again; /* norms and activation functions are no products */
}

/* Operations of the whole job in one optimizer step: two for a multiply-add; backward takes twice as many as forward,
 * or as many where weights are frozen. */
static double operations(const struct oc_plan *plan, double tokens)
{
    const struct oc_config *c = &plan->c;
    const double passes = c->lora_rank ? 2 : 3;
    if (!plan->has_shape) return 2 * passes * (double)c->model_params * tokens;
    const struct layer_work work = work_of(plan);
    const double moe = (double)oc_plan_expert_layers(plan, 0, c->model_layers),
                 dense = (double)c->model_layers + (double)c->model_mtp_layers - moe;
    const double attention = work.linear_attention + work.scores;
    const double layers = dense * (attention + work.mlp) + moe * (attention + work.experts + work.shared);
    const double head = c->model_head == OC_HEAD_LM
                            ? (double)c->model_hidden * (double)plan->vocab * (1 + (double)c->model_mtp_layers)
                            : 0;
    const double again = layers * recomputed_share(c) + selective_work(c, &work, dense, moe);
    return 2 * tokens * (passes * (layers + head) + again);
}

/* ---- bytes between ranks ---- */

static double ring(int64_t ranks)
{
    return ranks > 1 ? (double)(ranks - 1) / (double)ranks : 0;
}

/* What one micro-batch is on a rank, and how often it is passed in a step. */
struct traffic {
    const struct oc_plan *plan;
    double layers;         /* on a rank */
    double expert_layers;  /* those of them with experts */
    double stream, shared; /* bytes of the residual stream of a micro-batch; where sequence parallelism splits it */
    double micro_batches;
    double forwards; /* passes forward in a step: 2 where all is computed again */
    double dtype;    /* bytes of a number of the stream */
};

/* Two all-reduces a layer forward and two backward. Sequence parallelism halves each into a scatter and a gather, and
 * gathers the two inputs again for the weight gradients (Korthikanti et al. 2022, section 4.2.2). */
static double tensor_bytes(const struct traffic *t)
{
    const struct oc_config *c = &t->plan->c;
    const double all_reduce = 2 * ring(c->parallel_tp) * t->stream;
    double messages = 2 * (t->forwards + 1);
    if (c->parallel_sp) messages += 1; /* two gathers, each half of an all-reduce */
    if (c->recompute == OC_RECOMPUTE_FULL && c->recompute_partition_activations) messages += 0.5; /* kept inputs */
    /* The embedding's output forward and the output layer's input backward, on the stages that have them. */
    return all_reduce * (messages * t->layers + 2 / (double)c->parallel_pp) * t->micro_batches;
}

/* Keys and values go round the ring of ranks; backward they and their gradients do. */
static double context_bytes(const struct traffic *t)
{
    const struct oc_plan *plan = t->plan;
    const double keys = 2 * (double)oc_plan_tokens(plan) * (double)plan->kv / (double)plan->c.parallel_tp * t->dtype;
    return (double)(plan->c.parallel_cp - 1) * keys * (t->forwards + 2) * t->layers * t->micro_batches;
}

/* Each border between model chunks is crossed forward and backward. */
static double pipeline_bytes(const struct traffic *t)
{
    const struct oc_config *c = &t->plan->c;
    const double borders = (double)(c->parallel_pp * c->parallel_vpp - 1) / (double)c->parallel_pp;
    return c->parallel_pp > 1 ? 2 * borders * t->shared * t->micro_batches : 0;
}

/* Tokens are sent to their experts and back, forward and backward. */
static double expert_bytes(const struct traffic *t)
{
    const struct oc_config *c = &t->plan->c;
    return 2 * (t->forwards + 1) * ring(c->parallel_ep) * t->shared * (double)c->model_experts_per_token *
           t->expert_layers * t->micro_batches;
}

/* Parameters of the adapters, whole model. */
static double adapter_params(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    const double h = (double)c->model_hidden, q = (double)plan->q, kv = (double)plan->kv, ffn = (double)c->model_ffn;
    const struct {
        int64_t target;
        double widths; /* in + out */
    } sites[] = {{OC_LORA_Q, h + q}, {OC_LORA_K, h + kv},   {OC_LORA_V, h + kv},     {OC_LORA_QKV, h + q + 2 * kv},
                 {OC_LORA_O, q + h}, {OC_LORA_UP, h + ffn}, {OC_LORA_GATE, h + ffn}, {OC_LORA_DOWN, ffn + h}};
    double widths = 0;
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        if (c->lora_targets & sites[i].target) widths += sites[i].widths;
    return (double)c->lora_rank * widths * (double)c->model_layers;
}

/* Parameters of a rank that data-parallel ranks have in common: of routed experts, or of everything else. */
static double params_of(const struct oc_plan *plan, bool experts)
{
    const struct oc_config *c = &plan->c;
    const double ranks = (double)(c->parallel_tp * c->parallel_pp);
    const double routed = (double)oc_plan_expert_layers(plan, 0, c->model_layers) * (double)c->model_experts *
                          mlp_of(plan, c->model_expert_ffn);
    if (experts) return routed / (double)(c->parallel_etp * c->parallel_ep * c->parallel_pp);
    return ((double)oc_model_params(plan, NULL) - routed) / ranks;
}

/* Gradients are summed over the data-parallel ranks, and what they share of the weights is gathered: after the step, or
 * (stage 3) for each forward and each backward of a micro-batch. */
static double data_bytes(const struct traffic *t, double params, double trained, int64_t ranks)
{
    const struct oc_plan *plan = t->plan;
    const double gradient = (double)oc_dtype_bits(plan->dt.grads) / 8,
                 weight = (double)oc_dtype_bits(plan->dt.weights) / 8;
    const int64_t zero = plan->c.parallel_zero;
    const bool each_time = zero >= 2 && (plan->c.framework == OC_FW_DEEPSPEED || !plan->c.parallel_no_sync);
    const double scatter = ring(ranks) * trained * gradient * (each_time ? t->micro_batches : 1);
    if (!zero) return 2 * scatter;
    if (zero < 3) return scatter + ring(ranks) * trained * weight;
    const bool kept = plan->c.framework != OC_FW_DEEPSPEED && !plan->c.fsdp_reshard_after_forward;
    return scatter + ring(ranks) * params * weight * (kept ? 1 : 2) * t->micro_batches;
}

/* Without a shape only the parameters travel. */
static struct traffic traffic_of(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    struct traffic t = {.plan = plan,
                        .micro_batches = (double)plan->accum,
                        .dtype = (double)oc_dtype_bits(plan->dt.residual) / 8,
                        .forwards = 1 + recomputed_share(c)};
    if (!plan->has_shape) return t;
    t.layers = (double)c->model_layers / (double)c->parallel_pp;
    t.expert_layers = (double)oc_plan_expert_layers(plan, 0, c->model_layers) / (double)c->parallel_pp;
    t.stream = (double)oc_plan_tokens(plan) * (double)c->model_hidden * t.dtype;
    t.shared = (double)oc_plan_tokens_sp(plan) * (double)c->model_hidden * t.dtype;
    return t;
}

static double sent_bytes(const struct traffic *t)
{
    const struct oc_plan *plan = t->plan;
    const struct oc_config *c = &plan->c;
    const int64_t group = plan->dp * c->parallel_cp;
    if (!plan->has_shape) return data_bytes(t, (double)c->model_params, (double)c->model_params, group);
    const double params = params_of(plan, false),
                 trained = c->lora_rank ? adapter_params(plan) / (double)c->parallel_pp : params;
    double bytes = tensor_bytes(t) + context_bytes(t) + pipeline_bytes(t);
    bytes += data_bytes(t, params, trained, group);
    if (!c->model_experts) return bytes;
    const double experts = params_of(plan, true);
    const int64_t expert_group = c->parallel_world / (c->parallel_etp * c->parallel_ep * c->parallel_pp);
    return bytes + expert_bytes(t) + data_bytes(t, experts, c->lora_rank ? 0 : experts, expert_group);
}

/* Bytes that a layer keeps of one micro-batch, near enough for their way to the host. Source: Korthikanti et al. 2022,
 * table 2, without the scores: 34 s b h in 16 bits, of which 24 are split over tp, and all with sequence parallelism.
 */
static double kept_bytes(const struct traffic *t)
{
    const struct oc_config *c = &t->plan->c;
    if (c->recompute == OC_RECOMPUTE_FULL) return t->shared;
    return 5 * t->shared + 12 * t->stream / (double)c->parallel_tp;
}

/* Between a GPU and its host. The optimizer's gradients go down and its weights come back; offloaded weights come up
 * for forward and backward; what is kept for backward goes down and comes back. */
static double host_bytes(const struct traffic *t)
{
    const struct oc_plan *plan = t->plan;
    const struct oc_config *c = &plan->c;
    const double weight = (double)oc_dtype_bits(plan->dt.weights) / 8,
                 gradient = (double)oc_dtype_bits(plan->dt.grads) / 8;
    const double params = (plan->has_shape ? params_of(plan, false) : (double)c->model_params) / (double)plan->shard;
    double bytes = 0;
    if (c->offload_optimizer == OC_OFFLOAD_CPU) bytes += params * (gradient + weight) * c->offload_fraction;
    if (c->offload_params == OC_OFFLOAD_CPU) bytes += 2 * params * weight * t->micro_batches;
    if (c->offload_activations == OC_OFFLOAD_CPU) bytes += 2 * kept_bytes(t) * t->layers * t->micro_batches;
    return bytes;
}

void oc_cost(const struct oc_plan *plan, struct oc_cost *cost)
{
    const struct oc_config *c = &plan->c;
    const struct traffic t = traffic_of(plan);
    memset(cost, 0, sizeof *cost);
    cost->samples = c->batch_global;
    cost->tokens = c->batch_global * c->batch_seq;
    cost->grain = oc_plan_tokens(plan);
    cost->ranks = c->parallel_world;
    cost->operations = operations(plan, (double)cost->tokens);
    cost->sent = sent_bytes(&t);
    cost->host = host_bytes(&t);
    /* Narayanan et al. 2021, section 2.2: (p-1)/m, interleaved 1/v of it. */
    cost->idle = (double)(c->parallel_pp - 1) / (double)(plan->accum * c->parallel_vpp);
}
