/* The bodies of the kernels, each written once, in the common subset of C and CUDA C: see lanes.h for what differs.
 * ops.h says what each computes; PyTorch's order of operations is step.c's business, not theirs. */
#ifndef OC_PROBES_KERNELS_H
#define OC_PROBES_KERNELS_H

#include <math.h>

#include "probes/ops.h"
#include "probes/lanes.h"

/* ---- Filling, casting, adding, multiplying ---- */

/* A well-mixed 32-bit number from a counter (multiply-xorshift). */
OC_FN uint32_t oc_mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

/* Cosine and sine of an angle in whole turns, of any size; a CUDA thread's own would need memory of its own for large
 * angles. Within a quarter turn of zero the series to the 9th power is exact to fp32. */
OC_FN void oc_turn(float turns, float *cosine, float *sine)
{
    float quarters = floorf(4.0f * turns + 0.5f), x = (turns - 0.25f * quarters) * 6.2831853f, y = x * x;
    float s = x * (1.0f + y * (-1.0f / 6 + y * (1.0f / 120 + y * (-1.0f / 5040 + y / 362880))));
    float c = 1.0f + y * (-0.5f + y * (1.0f / 24 + y * (-1.0f / 720 + y / 40320)));
    int quadrant = (int)(quarters - 4.0f * floorf(0.25f * quarters));
    *cosine = quadrant == 0 ? c : quadrant == 1 ? -s : quadrant == 2 ? -c : s;
    *sine = quadrant == 0 ? s : quadrant == 1 ? c : quadrant == 2 ? -s : -c;
}

OC_FN void oc_init_element(const struct oc_op_init *op, int64_t i)
{
    float value = op->mean;
    if (op->deviation != 0.0f) { /* Box-Muller: two uniform numbers make a normal one */
        uint32_t first = oc_mix((uint32_t)i * 4u + op->seed * 2654435761u + 1u), second = oc_mix(first + 0x9e3779b9u);
        float radius = sqrtf(-2.0f * logf(((float)(first >> 8) + 0.5f) / 16777216.0f)), cosine, sine;
        oc_turn((float)(second >> 8) / 16777216.0f, &cosine, &sine);
        value += op->deviation * radius * cosine;
    }
    oc_store(op->x, i, value);
}

OC_FN void oc_blend_element(const struct oc_op_blend *op, int64_t i)
{
    float value = op->alpha * oc_load(op->a, i) + op->constant;
    if (op->b.data) value += op->beta * oc_load(op->b, i);
    oc_store(op->y, i, value);
}

OC_FN void oc_multiply_element(const struct oc_op_multiply *op, int64_t i)
{
    int64_t j = op->broadcast == OC_PER_ROW ? i / op->width : op->broadcast == OC_PER_COLUMN ? i % op->width : i;
    oc_store(op->y, i, oc_load(op->a, i) * oc_load(op->b, j));
}

#include "probes/kernels_attention.h"
#include "probes/kernels_matmul.h"

/* ---- RMSNorm, in the pieces that eager PyTorch runs ---- */

OC_FN float oc_row_total(struct oc_array x, int64_t row, int64_t width, int lane, int lanes)
{
    float sum = 0.0f;
    for (int64_t c = lane; c < width; c += lanes) sum += oc_load(x, row * width + c);
    return oc_lanes_sum(sum);
}

OC_FN void oc_row_mean_row(const struct oc_op_reduce *op, int64_t row, int lane, int lanes)
{
    float sum = oc_row_total(op->x, row, op->width, lane, lanes);
    if (lane == 0) oc_store(op->y, row, sum / (float)op->width);
}

OC_FN void oc_column_sum_element(const struct oc_op_reduce *op, int64_t column)
{
    float sum = 0.0f;
    for (int64_t row = 0; row < op->rows; row++) sum += oc_load(op->x, row * op->n + column);
    oc_store(op->y, column, sum);
}

OC_FN void oc_root_element(const struct oc_op_root *op, int64_t i)
{
    oc_store(op->y, i, sqrtf(oc_load(op->x, i) + op->epsilon));
}

OC_FN void oc_rsqrt_element(const struct oc_op_root *op, int64_t i)
{
    oc_store(op->y, i, 1.0f / sqrtf(oc_load(op->x, i) + op->epsilon));
}

OC_FN void oc_norm_rows_row(const struct oc_op_norm_rows *op, int64_t row, int lane, int lanes)
{
    float sum = oc_row_total(op->t, row, op->width, lane, lanes), rs = oc_load(op->rs, row);
    if (lane == 0) oc_store(op->rs, row, -0.5f * rs * rs * rs * sum / (float)op->width);
}

OC_FN void oc_expand_row(const struct oc_op_expand *op, int64_t row, int lane, int lanes)
{
    float value = oc_load(op->x, row);
    for (int64_t c = lane; c < op->width; c += lanes) oc_store(op->y, row * op->width + c, value);
}

/* ---- Embedding ---- */

OC_FN void oc_embedding_row(const struct oc_op_embedding *op, int64_t token, int lane, int lanes)
{
    int64_t id = oc_load_id(op->ids, token);
    for (int64_t c = lane; c < op->width; c += lanes)
        oc_store(op->y, token * op->width + c, oc_load(op->table, id * op->width + c));
}

/* One column at a time, tokens in order: no atomics, and the same sum on every backend. `table` holds zeros before. */
OC_FN void oc_embedding_backward_element(const struct oc_op_embedding *op, int64_t column)
{
    for (int64_t token = 0; token < op->tokens; token++) {
        int64_t cell = oc_load_id(op->ids, token) * op->width + column;
        oc_store(op->table, cell, oc_load(op->table, cell) + oc_load(op->y, token * op->width + column));
    }
}

/* ---- MLP ---- */

OC_FN void oc_silu_element(const struct oc_op_silu *op, int64_t i)
{
    float x = oc_load(op->x, i);
    oc_store(op->y, i, x / (1.0f + expf(-x)));
}

OC_FN void oc_silu_backward_element(const struct oc_op_silu *op, int64_t i)
{
    float x = oc_load(op->x, i), sigmoid = 1.0f / (1.0f + expf(-x));
    oc_store(op->dx, i, oc_load(op->dy, i) * sigmoid * (1.0f + x * (1.0f - sigmoid)));
}

/* ---- Loss ---- */

OC_FN void oc_log_softmax_row(const struct oc_op_softmax *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float top = oc_row_max(op->x, start, op->width, lane, lanes), sum = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) sum += expf(oc_load(op->x, start + c) - top);
    float total = top + logf(oc_lanes_sum(sum));
    for (int64_t c = lane; c < op->width; c += lanes) oc_store(op->y, start + c, oc_load(op->x, start + c) - total);
}

OC_FN void oc_log_softmax_backward_row(const struct oc_op_softmax *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float sum = oc_row_total(op->dy, row, op->width, lane, lanes);
    for (int64_t c = lane; c < op->width; c += lanes)
        oc_store(op->dx, start + c, oc_load(op->dy, start + c) - expf(oc_load(op->y, start + c)) * sum);
}

OC_FN void oc_nll_row(const struct oc_op_nll *op, int64_t row, int lane, int lanes)
{
    (void)row, (void)lanes;
    if (lane > 0) return;
    double sum = 0.0;
    for (int64_t token = 0; token < op->tokens; token++)
        sum -= (double)oc_load(op->lp, token * op->width + oc_load_id(op->labels, token));
    op->scalars->loss = sum / (double)op->tokens;
}

OC_FN void oc_nll_backward_row(const struct oc_op_nll *op, int64_t token, int lane, int lanes)
{
    int64_t label = oc_load_id(op->labels, token);
    for (int64_t c = lane; c < op->width; c += lanes)
        oc_store(op->dlp, token * op->width + c, c == label ? -op->scale / (float)op->tokens : 0.0f);
}

/* ---- Optimizers. `w` is what is updated: the weights, or their master copy ---- */

OC_FN void oc_sgd_element(const struct oc_op_sgd *op, int64_t i)
{
    float update = oc_load(op->g, i) * op->unscale;
    if (op->state.data) {
        if (!op->first) update += op->momentum * oc_load(op->state, i);
        oc_store(op->state, i, update);
    }
    oc_store(op->w, i, oc_load(op->w, i) - op->rate * update);
}

OC_FN void oc_adam_moments_element(const struct oc_op_adam *op, int64_t i)
{
    float g = oc_load(op->g, i) * op->unscale;
    oc_store(op->m, i, op->beta1 * oc_load(op->m, i) + (1.0f - op->beta1) * g);
    oc_store(op->v, i, op->beta2 * oc_load(op->v, i) + (1.0f - op->beta2) * g * g);
}

OC_FN void oc_adam_update_element(const struct oc_op_adam *op, int64_t i)
{
    float w = oc_load(op->w, i) * (1.0f - op->rate * op->decay);
    oc_store(op->w, i, w - op->rate * op->correct * oc_load(op->m, i) / oc_load(op->denominator, i));
}

OC_FN void oc_adam_fused_element(const struct oc_op_adam *op, int64_t i)
{
    oc_adam_moments_element(op, i);
    float w = oc_load(op->w, i) * (1.0f - op->rate * op->decay);
    float denominator = sqrtf(oc_load(op->v, i)) * op->root + op->epsilon;
    oc_store(op->w, i, w - op->rate * op->correct * oc_load(op->m, i) / denominator);
}

#endif
