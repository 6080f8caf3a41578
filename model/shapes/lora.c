/* Low-rank adapters over frozen weights: their parameters, and what they keep for backward.
 *
 * A linear with an adapter computes W x + s B A dropout(x), with A [rank, in] and B [out, rank]. W is frozen: its input
 * is not needed for a weight gradient any more, so it is kept only where something that trains reads it as it is.
 *
 * Source: peft tuners/lora/layer.py Linear.forward (x.to(lora_A.weight.dtype), dropout, A, B, scaling) and
 * autocast_adapter_dtype; bitsandbytes functional.py:886-960; AutoGPTQ nn_modules/qlinear. The adapters' saved bytes
 * are measured: shared/reference/memory-pytorch.md section 9 and tests/model/t_lora.c. */
#include <string.h>

#include "model/shapes/opset.h"

#define PEFT "peft tuners/lora/layer.py, Linear.forward"

/* Where an adapter can sit. */
struct site {
    int64_t target; /* enum oc_lora_target */
    const char *name, *a, *b;
    uint8_t part, use, in, out; /* enum oc_part, enum oc_use, two enum oc_dim */
    uint8_t role;               /* enum oc_role of the input */
    uint64_t need, without;     /* facts */
};

static const struct site sites[] = {
    {OC_LORA_Q, "layers.attention.q", "layers.attention.q.lora_a", "layers.attention.q.lora_b", OC_PART_LAYER, OC_USE_Q,
     OC_D_HIDDEN, OC_D_Q, OC_R_STREAM, 0, 0},
    {OC_LORA_K, "layers.attention.k", "layers.attention.k.lora_a", "layers.attention.k.lora_b", OC_PART_LAYER, OC_USE_K,
     OC_D_HIDDEN, OC_D_K, OC_R_STREAM, 0, 0},
    {OC_LORA_V, "layers.attention.v", "layers.attention.v.lora_a", "layers.attention.v.lora_b", OC_PART_LAYER, OC_USE_V,
     OC_D_HIDDEN, OC_D_VALUE, OC_R_STREAM, 0, 0},
    {OC_LORA_QKV, "layers.attention.qkv", "layers.attention.qkv.lora_a", "layers.attention.qkv.lora_b", OC_PART_LAYER,
     OC_USE_Q, OC_D_HIDDEN, OC_D_QKV, OC_R_STREAM, 0, 0},
    {OC_LORA_O, "layers.attention.out", "layers.attention.out.lora_a", "layers.attention.out.lora_b", OC_PART_LAYER,
     OC_USE_OUT, OC_D_ATTN, OC_D_HIDDEN, OC_R_COMPUTE, 0, 0},
    {OC_LORA_GATE, "layers.mlp.gate", "layers.mlp.gate.lora_a", "layers.mlp.gate.lora_b", OC_PART_LAYER, OC_USE_GATE,
     OC_D_HIDDEN, OC_D_FFN, OC_R_STREAM, OC_F_GATED, OC_F_MOE},
    {OC_LORA_UP, "layers.mlp.up", "layers.mlp.up.lora_a", "layers.mlp.up.lora_b", OC_PART_LAYER, OC_USE_UP, OC_D_HIDDEN,
     OC_D_FFN, OC_R_STREAM, OC_F_GATED, OC_F_MOE},
    {OC_LORA_GATE | OC_LORA_UP, "layers.mlp.fc1", "layers.mlp.fc1.lora_a", "layers.mlp.fc1.lora_b", OC_PART_LAYER,
     OC_USE_GATE, OC_D_HIDDEN, OC_D_FFN, OC_R_STREAM, 0, OC_F_GATED | OC_F_MOE},
    {OC_LORA_DOWN, "layers.mlp.fc2", "layers.mlp.fc2.lora_a", "layers.mlp.fc2.lora_b", OC_PART_LAYER, OC_USE_DOWN,
     OC_D_FFN, OC_D_HIDDEN, OC_R_COMPUTE, 0, OC_F_MOE},
    {OC_LORA_HEAD, "head.output", "head.output.lora_a", "head.output.lora_b", OC_PART_HEAD, OC_USE_HEAD, OC_D_HIDDEN,
     OC_D_VOCAB, OC_R_STREAM, 0, 0},
};

/* The type that an adapter's products run in. */
static enum oc_dtype adapter_compute(const struct oc_plan *plan)
{
    return plan->c.precision_autocast != OC_NONE ? (enum oc_dtype)plan->c.precision_autocast
                                                 : (enum oc_dtype)plan->c.lora_dtype;
}

/* Whether an adapter among `targets` keeps its input as it is, `input` being the input's type: there is neither dropout
 * nor a cast in between. */
static bool reads_plainly(const struct oc_plan *plan, int64_t targets, enum oc_dtype input)
{
    return (plan->c.lora_targets & targets) && plan->c.lora_dropout <= 0 && oc_adapter_dtype(plan) == input &&
           adapter_compute(plan) == input;
}

uint64_t oc_lora_facts(const struct oc_plan *plan)
{
    const struct oc_config *c = &plan->c;
    if (!c->lora_rank) return 0;
    /* lightning's BitsandbytesPrecision, which litgpt uses, comes with a bitsandbytes whose 4-bit product keeps its
     * input (ctx.tensors = (A, B)); later ones keep (None, B). */
    const bool quantized_keeps = c->lora_base >= OC_BASE_NF4 && c->kernels_transformer == OC_OPSET_LITGPT;
    const enum oc_dtype stream = plan->dt.residual, compute = plan->dt.compute;
    const int64_t qkv = OC_LORA_Q | OC_LORA_K | OC_LORA_V | OC_LORA_QKV;
    uint64_t facts = OC_F_FREE_NORM;
    if (!c->lora_train_embeddings && !reads_plainly(plan, OC_LORA_HEAD, stream)) facts |= OC_F_FREE_HEAD;
    if (quantized_keeps) return facts;
    if (!reads_plainly(plan, qkv, stream)) facts |= OC_F_FREE_QKV;
    if (!reads_plainly(plan, OC_LORA_O, compute)) facts |= OC_F_FREE_OUT;
    if (!reads_plainly(plan, OC_LORA_GATE | OC_LORA_UP, stream)) facts |= OC_F_FREE_UP;
    if (!reads_plainly(plan, OC_LORA_DOWN, compute)) facts |= OC_F_FREE_DOWN;
    return facts;
}

static bool is_fsdp(const struct oc_plan *plan)
{
    return plan->c.framework == OC_FW_FSDP1 || plan->c.framework == OC_FW_FSDP2;
}

enum oc_dtype oc_adapter_dtype(const struct oc_plan *plan)
{
    const bool gathered = is_fsdp(plan) && plan->c.precision_autocast != OC_NONE;
    return (enum oc_dtype)(gathered ? plan->c.precision_autocast : plan->c.lora_dtype);
}

bool oc_casts_weights(const struct oc_plan *plan)
{
    return plan->dt.compute != plan->dt.weights && !is_fsdp(plan);
}

enum oc_dtype oc_param_dtype(const struct oc_plan *plan, const struct oc_param *param)
{
    return param->adapter ? (enum oc_dtype)plan->c.lora_dtype : plan->dt.weights;
}

/* litgpt's bitsandbytes plugin leaves the embedding and the output layer out; they take 4 B a parameter beside a 4-bit
 * base and 2 B otherwise. Measured on five pairs of runs (shared/corpus, litgpt-hub, qlora against lora); why is not
 * known. */
bool oc_stays_fp32(const struct oc_plan *plan, const struct oc_param *param)
{
    const struct oc_config *c = &plan->c;
    return c->kernels_transformer == OC_OPSET_LITGPT && c->lora_rank && c->lora_base >= OC_BASE_NF4 && param->frozen &&
           param->part != OC_PART_LAYER;
}

/* ---- parameters ---- */

static bool sits_here(const struct oc_plan *plan, const struct site *site, uint64_t facts)
{
    return (plan->c.lora_targets & site->target) && (site->need & facts) == site->need && !(site->without & facts);
}

static void add_adapter(struct oc_build *build, const struct site *site, const struct oc_opset_rules *ops, int kind,
                        uint32_t count)
{
    const uint64_t *dim = build->sizes.dim;
    const struct oc_param half = {.count = count,
                                  .part = site->part,
                                  .kind = site->part == OC_PART_LAYER ? (uint8_t)kind : OC_END_HERE,
                                  .forward = ops->use[site->use].forward,
                                  .backward = ops->use[site->use].backward,
                                  .cast = OC_CAST_KEPT,
                                  .adapter = true,
                                  .matrices = 1};
    if (build->n_params + 2 > OC_MAX_PARAMS) {
        build->overflow = true;
        return;
    }
    struct oc_param *a = &build->params[build->n_params++], *b = &build->params[build->n_params++];
    *a = *b = half;
    a->name = site->a;
    a->columns = dim[site->in];
    a->elements = oc_mul(dim[OC_D_LORA], dim[site->in]);
    b->name = site->b;
    b->columns = dim[OC_D_LORA];
    b->elements = oc_mul(dim[OC_D_LORA], dim[site->out]);
}

/* PEFT's modules_to_save: the trained embedding and output layer are copies, the frozen originals stay. */
static void keep_originals(struct oc_build *build, int n)
{
    for (int i = 0; i < n && build->n_params < OC_MAX_PARAMS; i++) {
        if (build->params[i].frozen || build->params[i].part == OC_PART_LAYER) continue;
        struct oc_param original = build->params[i];
        original.frozen = true;
        original.tied_gradient = false;
        original.cast = OC_CAST_NONE;
        build->params[build->n_params++] = original;
    }
}

static bool is_embedding(const struct oc_param *param)
{
    return strcmp(param->name, "embedding.word") == 0 || strcmp(param->name, "head.output") == 0;
}

void oc_build_adapters(struct oc_build *build)
{
    const struct oc_config *c = &build->plan->c;
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)c->kernels_transformer);
    const uint64_t facts = oc_facts(build->plan);
    const int n = build->n_params;
    uint32_t layers[OC_MAX_KINDS] = {0};
    for (int i = 0; i < n; i++) {
        struct oc_param *param = &build->params[i];
        param->frozen = !(c->lora_train_embeddings && is_embedding(param));
        param->quantized =
            param->frozen && c->lora_base >= OC_BASE_NF4 && param->part == OC_PART_LAYER && param->cast == OC_CAST_KEPT;
        if (param->part == OC_PART_LAYER) layers[param->kind] = param->count;
    }
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        if (sites[i].part == OC_PART_HEAD) {
            const bool head = build->ledger->chunks[build->ledger->n_chunks - 1].head;
            if (head && sits_here(build->plan, &sites[i], facts)) add_adapter(build, &sites[i], ops, 0, 1);
            continue;
        }
        for (int kind = 0; kind < OC_MAX_KINDS; kind++)
            if (layers[kind] && sits_here(build->plan, &sites[i], facts | (kind & OC_KIND_MOE ? OC_F_MOE : 0)))
                add_adapter(build, &sites[i], ops, kind, layers[kind]);
    }
    if (c->lora_train_embeddings && c->kernels_transformer == OC_OPSET_HF) keep_originals(build, n);
}

/* ---- activations ---- */

/* A tensor of [tokens, width] in the sub-step of `phase` in which the adapter's matrix is used. */
static void add_row(struct oc_build *build, const struct site *site, int kind, uint32_t layers, enum oc_phase phase,
                    bool kept, struct oc_tensor row)
{
    const struct oc_opset_rules *ops = oc_opset((enum oc_opset)build->plan->c.kernels_transformer);
    const uint8_t g = ops->use[site->use].backward, sub = phase == OC_PH_FORWARD ? ops->use[site->use].forward : g;
    row.name = site->name;
    row.end = OC_END_HERE;
    row.birth = (struct oc_tick){(uint8_t)phase, site->part, sub};
    row.death = (struct oc_tick){(uint8_t)phase, site->part, (uint8_t)(sub + 1)};
    row.forgotten = (uint8_t)(sub + 1);
    row.keep = kept ? 0 : OC_F_NEVER;
    row.release = (struct oc_tick){OC_PH_BACKWARD, site->part, (uint8_t)(g + 1)};
    oc_add_tensor(build, &row, oc_facts(build->plan), kind, layers, PEFT);
}

static void forward_row(struct oc_build *build, const struct site *site, int kind, uint32_t layers, const char *copy,
                        uint8_t width, uint8_t role, bool kept, const char *why)
{
    add_row(build, site, kind, layers, OC_PH_FORWARD, kept,
            (struct oc_tensor){.copy = copy, .why = why, .dims = {OC_D_TOKENS, width}, .role = role});
}

static void backward_row(struct oc_build *build, const struct site *site, int kind, uint32_t layers, const char *copy,
                         uint8_t width, uint8_t role, const char *why)
{
    add_row(build, site, kind, layers, OC_PH_BACKWARD, false,
            (struct oc_tensor){.copy = copy, .why = why, .dims = {OC_D_TOKENS, width}, .role = role});
}

/* litgpt's one adapter over q, k and v drops their common input once. Source: litgpt lora.py LoRAQKVLinear.forward. */
static bool shares_dropped_input(const struct oc_plan *plan, const struct site *site)
{
    if (plan->c.kernels_transformer != OC_OPSET_LITGPT) return false;
    const int64_t before = site->target == OC_LORA_K   ? OC_LORA_Q
                           : site->target == OC_LORA_V ? OC_LORA_Q | OC_LORA_K
                                                       : 0;
    return plan->c.lora_targets & before;
}

/* ... and spreads its output over q, k and v with index_copy(), which keeps it, unless all three have a part. Source:
 * litgpt lora.py LoRAQKVLinear.zero_pad; derivatives.yaml index_copy. */
static bool keeps_output(const struct oc_plan *plan, const struct site *site)
{
    const int64_t qkv = OC_LORA_Q | OC_LORA_K | OC_LORA_V;
    return plan->c.kernels_transformer == OC_OPSET_LITGPT && (site->target & qkv) &&
           (plan->c.lora_targets & qkv) != qkv;
}

static void add_site(struct oc_build *build, const struct site *site, int kind, uint32_t layers)
{
    const struct oc_plan *plan = build->plan;
    const enum oc_dtype own = oc_adapter_dtype(plan), product = adapter_compute(plan);
    const enum oc_dtype input = site->role == OC_R_STREAM ? plan->dt.residual : plan->dt.compute;
    const bool drops = plan->c.lora_dropout > 0 && !shares_dropped_input(plan, site), casts = product != own;
    if (own != input)
        forward_row(build, site, kind, layers, "lora input", site->in, OC_R_ADAPTER, !drops && !casts,
                    "the input in the adapter's type");
    if (drops) {
        forward_row(build, site, kind, layers, "lora dropout mask", site->in, OC_R_BOOL, true, "one byte an element");
        forward_row(build, site, kind, layers, "lora dropped input", site->in, OC_R_ADAPTER, !casts,
                    "a copy of the input after dropout: A's input");
    }
    if (casts)
        forward_row(build, site, kind, layers, "lora input cast", site->in, OC_R_ADAPTER_COMPUTE, true,
                    "autocast's copy of A's input");
    forward_row(build, site, kind, layers, "lora middle", OC_D_LORA, OC_R_ADAPTER_COMPUTE, true,
                "what A puts out: B's input");
    const bool kept = keeps_output(plan, site);
    forward_row(build, site, kind, layers, "lora output", site->out, OC_R_ADAPTER_COMPUTE, kept,
                kept ? "what B puts out, kept by index_copy()" : "what B puts out, until it is scaled");
    forward_row(build, site, kind, layers, "lora scaled output", site->out, OC_R_ADAPTER_COMPUTE, false,
                "added to what the frozen linear puts out");
    if (product != plan->dt.compute)
        backward_row(build, site, kind, layers, "lora output gradient", site->out, OC_R_ADAPTER_COMPUTE,
                     "the gradient in the adapter's type");
    backward_row(build, site, kind, layers, "lora scaled gradient", site->out, OC_R_ADAPTER_COMPUTE,
                 "gradient of what B puts out");
    backward_row(build, site, kind, layers, "lora input gradient", site->in, OC_R_ADAPTER_COMPUTE,
                 "gradient of A's input, until it is added");
    if (drops)
        backward_row(build, site, kind, layers, "lora dropout gradient", site->in, OC_R_ADAPTER,
                     "through the dropout mask");
}

void oc_build_lora(struct oc_build *build, int kind, uint32_t layers)
{
    const uint64_t facts = oc_facts(build->plan) | (kind & OC_KIND_MOE ? OC_F_MOE : 0);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        if (sites[i].part == OC_PART_LAYER && sits_here(build->plan, &sites[i], facts))
            add_site(build, &sites[i], kind, layers);
}

void oc_build_lora_rest(struct oc_build *build)
{
    for (int i = 0; i < build->n_params; i++)
        if (build->params[i].quantized) oc_add_dequantized(build, &build->params[i]);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++)
        if (sites[i].part == OC_PART_HEAD && sits_here(build->plan, &sites[i], oc_facts(build->plan)))
            add_site(build, &sites[i], OC_KIND_KEPT, 1);
}
