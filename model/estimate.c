/* oc_estimate(): a plan's stage as a ledger. The shapes and the framework's rules do the work; here they are put
 * together. */
#include <string.h>

#include "model/build.h"
#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

static const uint64_t most_bytes = (uint64_t)1 << 62;

void oc_build_add(struct oc_build *build, const struct oc_entry *entry)
{
    if (!entry->elements || !entry->count || entry->dtype == OC_NONE) return;
    struct oc_entry *added = oc_ledger_add(build->ledger, entry);
    if (added) added->bytes = oc_bytes(entry->elements, (enum oc_dtype)entry->dtype);
    if (!added || oc_mul(added->bytes, added->count) > most_bytes) build->overflow = true;
}

void oc_build_add_when(struct oc_build *build, struct oc_entry entry, enum oc_when when, struct oc_tick birth,
                       struct oc_tick death, const char *why)
{
    entry.when = (uint8_t)when;
    entry.birth = birth;
    entry.death = death;
    if (why) entry.why = why;
    oc_build_add(build, &entry);
}

static void add_run(struct oc_chunk *chunk, int kind, int64_t layers)
{
    if (layers > 0) chunk->runs[chunk->n_runs++] = (struct oc_run){.kind = (uint16_t)kind, .layers = (uint16_t)layers};
}

/* `before`: layers of the whole model before this chunk. */
static void describe_chunk(const struct oc_plan *plan, int64_t stage, int64_t index, int64_t before,
                           struct oc_chunk *chunk)
{
    memset(chunk, 0, sizeof *chunk);
    chunk->embedding = oc_plan_has_embedding(plan, stage, index);
    chunk->head = oc_plan_has_head(plan, stage, index);
    if (!plan->has_shape) return;
    /* Multi-token prediction adds layers behind the last: like that one in kind. */
    const int64_t layers = oc_plan_layers(plan, stage, index) + (chunk->head ? plan->c.model_mtp_layers : 0);
    chunk->first_layer = before;
    const int64_t experts = oc_plan_expert_layers(plan, chunk->first_layer, layers);
    const bool full = plan->c.recompute == OC_RECOMPUTE_FULL || oc_keeps_listed_ops(plan),
               block = plan->c.recompute_method == OC_METHOD_BLOCK;
    int64_t checkpointed = !full ? 0 : block && plan->c.recompute_layers < layers ? plan->c.recompute_layers : layers;
    /* Dense layers come first where both exist. */
    const int64_t counts[2] = {layers - experts, experts};
    for (int moe = 0; moe < 2; moe++) {
        const int64_t own = checkpointed < counts[moe] ? checkpointed : counts[moe];
        add_run(chunk, moe * OC_KIND_MOE | OC_KIND_CHECKPOINTED, own);
        add_run(chunk, moe * OC_KIND_MOE, counts[moe] - own);
        checkpointed -= own;
    }
}

static void describe(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger)
{
    ledger->stage = stage;
    ledger->ranks = plan->c.parallel_world / plan->c.parallel_pp;
    ledger->n_entries = 0;
    ledger->n_chunks = (int)plan->c.parallel_vpp;
    for (int i = 0; i < OC_MAX_KINDS; i++) ledger->group[i] = 1;
    const bool groups = plan->c.recompute == OC_RECOMPUTE_FULL && plan->c.recompute_method == OC_METHOD_UNIFORM;
    for (int kind = OC_KIND_CHECKPOINTED; groups && kind < OC_MAX_KINDS; kind += OC_KIND_MOE)
        ledger->group[kind] = (int)(plan->c.recompute_layers > 1 ? plan->c.recompute_layers : 1);
    /* Interleaving deals chunk i of all stages before chunk i + 1. */
    int64_t before = 0;
    for (int i = 0; i < ledger->n_chunks; i++)
        for (int64_t s = 0; s < plan->c.parallel_pp; s++) {
            if (s == stage) describe_chunk(plan, stage, i, before, &ledger->chunks[i]);
            before += oc_plan_layers(plan, s, i);
        }
    oc_schedule(plan, stage, ledger);
}

static void count_layers(const struct oc_ledger *ledger, uint32_t *layers)
{
    memset(layers, 0, OC_MAX_KINDS * sizeof *layers);
    for (int i = 0; i < ledger->n_chunks; i++)
        for (int r = 0; r < ledger->chunks[i].n_runs; r++)
            layers[ledger->chunks[i].runs[r].kind] += ledger->chunks[i].runs[r].layers;
}

/* Chunks, schedule, sizes and parameters: what entries are then made from. */
static void begin(struct oc_build *build, const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger)
{
    build->plan = plan;
    build->stage = stage;
    build->ledger = ledger;
    build->n_params = 0;
    build->overflow = false;
    describe(plan, stage, ledger);
    count_layers(ledger, build->layers);
    oc_sizes_fill(plan, &build->sizes);
    oc_build_params(build);
    ledger->params = oc_build_total(build);
}

uint64_t oc_model_params(const struct oc_plan *plan, uint64_t *active)
{
    struct oc_plan whole = *plan; /* on one rank, all of it */
    struct oc_config *c = &whole.c;
    c->parallel_tp = c->parallel_pp = c->parallel_vpp = c->parallel_cp = c->parallel_ep = c->parallel_etp = 1;
    c->parallel_first_stage_layers = c->parallel_last_stage_layers = 0;
    c->parallel_embedding_in_split = c->parallel_loss_in_split = c->parallel_sp = 0;
    c->megatron_pipeline_layout[0] = 0;
    struct oc_ledger ledger;
    struct oc_build build;
    begin(&build, &whole, 0, &ledger);
    if (active) {
        const uint64_t routed = oc_build_part(&build, true);
        const int64_t experts = c->model_experts, used = c->model_experts_per_token;
        *active = ledger.params;
        if (routed && used < experts) *active -= routed - routed / (uint64_t)experts * (uint64_t)used;
    }
    return ledger.params;
}

bool oc_estimate(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_error *error)
{
    struct oc_build build;
    begin(&build, plan, stage, ledger);
    if (!ledger->n_slots)
        return oc_fail(error, OC_E_LIMIT, "a pipeline of %d stages with %d chunks each is too long to lay out",
                       (int)plan->c.parallel_pp, (int)plan->c.parallel_vpp);
    oc_build_states(&build);
    if (oc_framework((enum oc_framework)plan->c.framework)->counts_activations) {
        oc_build_casts(&build);
        if (plan->has_shape) oc_build_activations(&build);
    }
    if (ledger->n_entries == OC_MAX_ENTRIES || build.n_params == OC_MAX_PARAMS)
        return oc_fail(error, OC_E_LIMIT, "this configuration has more kinds of tensors than oomcast has room for");
    uint64_t sum = 0;
    for (int i = 0; i < ledger->n_entries; i++)
        sum = oc_add(sum, oc_mul(ledger->entries[i].bytes, ledger->entries[i].count));
    if (build.overflow || oc_mul(sum, OC_MAX_SLOTS) > INT64_MAX) {
        oc_fail(error, OC_E_LIMIT, "the tensors of this configuration are too large to count in 64 bits");
        return oc_hint(error, "is one of batch.seq, batch.micro, model.hidden or model.vocab a slip?");
    }
    return true;
}
