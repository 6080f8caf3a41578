/* Bodies of the optimizers, and what is counted of gradients and updates. Each piece is a chunk of OC_CHUNK numbers,
 * which the lanes share. `w` is what is updated: the weights, or their master copy. Part of kernels.h. */
#ifndef OC_PROBES_KERNELS_OPTIMIZER_H
#define OC_PROBES_KERNELS_OPTIMIZER_H

/* The chunk's elements of this lane. */
#define OC_FOR_CHUNK(i, chunk, all)                                                                                    \
    for (int64_t i = (chunk)*OC_CHUNK + lane; i < (chunk)*OC_CHUNK + OC_CHUNK && i < (all); i += lanes)

/* Whether fp16 holds the number as zero though it is not. */
OC_FN float oc_is_flushed(float value)
{
    return value != 0.0f && (oc_to_fp16(value) & 0x7fffu) == 0 ? 1.0f : 0.0f;
}

OC_FN void oc_measure_row(const struct oc_op_measure *op, int64_t chunk, int lane, int lanes)
{
    float squares = 0.0f, gradients = 0.0f, infinite = 0.0f, flushed = 0.0f, flushed_scaled = 0.0f;
    OC_FOR_CHUNK(i, chunk, op->count)
    {
        float scaled = oc_load(op->g, i), g = scaled / op->scale;
        if (!(fabsf(scaled) < INFINITY)) {
            infinite += 1.0f;
            continue;
        }
        squares += g * g;
        gradients += g != 0.0f ? 1.0f : 0.0f;
        flushed += oc_is_flushed(g), flushed_scaled += oc_is_flushed(g * OC_USUAL_SCALE);
    }
    squares = oc_lanes_sum(squares), gradients = oc_lanes_sum(gradients), infinite = oc_lanes_sum(infinite);
    flushed = oc_lanes_sum(flushed), flushed_scaled = oc_lanes_sum(flushed_scaled);
    if (lane > 0) return;
    OC_ADD(&op->scalars->squares, (double)squares);
    OC_ADD(&op->scalars->gradients, (double)gradients);
    OC_ADD(&op->scalars->infinite, (double)infinite);
    OC_ADD(&op->scalars->flushed, (double)flushed);
    OC_ADD(&op->scalars->flushed_scaled, (double)flushed_scaled);
}

/* What became of updates. */
struct oc_update_counts {
    float updates, lost, lost_bf16, lost_fp16;
};

/* w[i] -= update, and whether anything came of it: here, and with weights of 16 bits alone. */
OC_FN void oc_update(struct oc_array w, int64_t i, float before, float update, struct oc_update_counts *counts)
{
    float after = before - update;
    oc_store(w, i, after);
    if (update == 0.0f) return;
    float bf16 = oc_from_bf16(oc_to_bf16(before)), fp16 = oc_from_fp16(oc_to_fp16(before));
    counts->updates += 1.0f;
    counts->lost += oc_load(w, i) == before ? 1.0f : 0.0f;
    counts->lost_bf16 += oc_from_bf16(oc_to_bf16(bf16 - update)) == bf16 ? 1.0f : 0.0f;
    counts->lost_fp16 += oc_from_fp16(oc_to_fp16(fp16 - update)) == fp16 ? 1.0f : 0.0f;
}

OC_FN void oc_add_counts(struct oc_scalars *scalars, const struct oc_update_counts *counts, int lane)
{
    float updates = oc_lanes_sum(counts->updates), lost = oc_lanes_sum(counts->lost);
    float lost_bf16 = oc_lanes_sum(counts->lost_bf16), lost_fp16 = oc_lanes_sum(counts->lost_fp16);
    if (lane > 0) return;
    OC_ADD(&scalars->updates, (double)updates);
    OC_ADD(&scalars->lost, (double)lost);
    OC_ADD(&scalars->lost_bf16, (double)lost_bf16);
    OC_ADD(&scalars->lost_fp16, (double)lost_fp16);
}

OC_FN void oc_sgd_row(const struct oc_op_sgd *op, int64_t chunk, int lane, int lanes)
{
    struct oc_update_counts counts = {0.0f, 0.0f, 0.0f, 0.0f};
    OC_FOR_CHUNK(i, chunk, op->count)
    {
        float update = oc_load(op->g, i) * op->unscale;
        if (op->state.data) {
            if (!op->first) update += op->momentum * oc_load(op->state, i);
            oc_store(op->state, i, update);
        }
        oc_update(op->w, i, oc_load(op->w, i), op->rate * update, &counts);
    }
    oc_add_counts(op->scalars, &counts, lane);
}

OC_FN void oc_adam_moments_at(const struct oc_op_adam *op, int64_t i)
{
    float g = oc_load(op->g, i) * op->unscale;
    oc_store(op->m, i, op->beta1 * oc_load(op->m, i) + (1.0f - op->beta1) * g);
    oc_store(op->v, i, op->beta2 * oc_load(op->v, i) + (1.0f - op->beta2) * g * g);
}

OC_FN void oc_adam_moments_row(const struct oc_op_adam *op, int64_t chunk, int lane, int lanes)
{
    OC_FOR_CHUNK(i, chunk, op->count) oc_adam_moments_at(op, i);
}

OC_FN void oc_adam_update_at(const struct oc_op_adam *op, int64_t i, float denominator, struct oc_update_counts *counts)
{
    float w = oc_load(op->w, i), update = op->rate * (op->correct * oc_load(op->m, i) / denominator + op->decay * w);
    oc_update(op->w, i, w, update, counts);
}

OC_FN void oc_adam_update_row(const struct oc_op_adam *op, int64_t chunk, int lane, int lanes)
{
    struct oc_update_counts counts = {0.0f, 0.0f, 0.0f, 0.0f};
    OC_FOR_CHUNK(i, chunk, op->count) oc_adam_update_at(op, i, oc_load(op->denominator, i), &counts);
    oc_add_counts(op->scalars, &counts, lane);
}

OC_FN void oc_adam_fused_row(const struct oc_op_adam *op, int64_t chunk, int lane, int lanes)
{
    struct oc_update_counts counts = {0.0f, 0.0f, 0.0f, 0.0f};
    OC_FOR_CHUNK(i, chunk, op->count)
    {
        oc_adam_moments_at(op, i);
        oc_adam_update_at(op, i, sqrtf(oc_load(op->v, i)) * op->root + op->epsilon, &counts);
    }
    oc_add_counts(op->scalars, &counts, lane);
}

#endif
