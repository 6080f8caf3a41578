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
OC_FN void oc_turns(float turns, float *cosine, float *sine)
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
        oc_turns((float)(second >> 8) / 16777216.0f, &cosine, &sine);
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
#include "probes/kernels_norm.h"
#include "probes/kernels_optimizer.h"

/* ---- Embedding ---- */

OC_FN void oc_embedding_row(const struct oc_op_embedding *op, int64_t token, int lane, int lanes)
{
    int64_t id = oc_load_id(op->ids, token);
    for (int64_t c = lane; c < op->width; c += lanes) {
        float value = oc_load(op->table, id * op->width + c);
        if (op->positions.data) value += oc_load(op->positions, token % op->seq * op->width + c);
        oc_store(op->y, token * op->width + c, value);
    }
}

/* One column at a time, tokens in order: no atomics, and the same sum on every backend. `table` holds zeros before. */
OC_FN void oc_embedding_backward_element(const struct oc_op_embedding *op, int64_t column)
{
    for (int64_t token = 0; token < op->tokens; token++) {
        int64_t cell = oc_load_id(op->ids, token) * op->width + column;
        oc_store(op->table, cell, oc_load(op->table, cell) + oc_load(op->y, token * op->width + column));
    }
}

/* The positions' own gradient: in every sample they are the same rows. */
OC_FN void oc_embedding_positions_element(const struct oc_op_embedding *op, int64_t column)
{
    for (int64_t token = 0; token < op->tokens; token++) {
        int64_t cell = token % op->seq * op->width + column;
        oc_store(op->positions, cell, oc_load(op->positions, cell) + oc_load(op->y, token * op->width + column));
    }
}

/* ---- Biases, pieces of wider matrices, dropout ---- */

OC_FN void oc_bias_element(const struct oc_op_bias *op, int64_t i)
{
    oc_store(op->y, i, oc_load(op->y, i) + oc_load(op->b, i % op->width));
}

OC_FN void oc_place_element(const struct oc_op_place *op, int64_t i)
{
    oc_store(op->y, i / op->width * op->pitch + op->first + i % op->width, oc_load(op->x, i));
}

OC_FN void oc_dropout_element(const struct oc_op_dropout *op, int64_t i)
{
    uint8_t *mask = (uint8_t *)op->mask.data + i;
    if (!op->backward) {
        uint32_t drawn = oc_mix(oc_mix((uint32_t)i + op->seed * 2654435761u) ^ (uint32_t)((uint64_t)i >> 32));
        *mask = (float)(drawn >> 8) / 16777216.0f >= op->rate;
    }
    oc_store(op->y, i, *mask && op->rate < 1.0f ? oc_load(op->x, i) / (1.0f - op->rate) : 0.0f);
}

/* ---- MLP ---- */

OC_FN void oc_gather_element(const struct oc_op_gather *op, int64_t i)
{
    oc_store(op->y, i, oc_load(op->x, i % op->count));
}

OC_FN float oc_function_at(int function, float x)
{
    if (function == OC_SILU) return x / (1.0f + expf(-x));
    if (function == OC_GELU) return 0.5f * x * (1.0f + erff(0.70710678f * x));
    if (x <= 0.0f) return 0.0f;
    return function == OC_RELU ? x : x * x;
}

OC_FN float oc_slope_at(int function, float x)
{
    if (function == OC_SILU) {
        float sigmoid = 1.0f / (1.0f + expf(-x));
        return sigmoid * (1.0f + x * (1.0f - sigmoid));
    }
    if (function == OC_GELU) return 0.5f * (1.0f + erff(0.70710678f * x)) + 0.39894228f * x * expf(-0.5f * x * x);
    if (x <= 0.0f) return 0.0f;
    return function == OC_RELU ? 1.0f : 2.0f * x;
}

OC_FN void oc_activate_element(const struct oc_op_activate *op, int64_t i)
{
    oc_store(op->y, i, oc_function_at(op->function, oc_load(op->x, i)));
}

OC_FN void oc_activate_backward_element(const struct oc_op_activate *op, int64_t i)
{
    oc_store(op->dx, i, oc_load(op->dy, i) * oc_slope_at(op->function, oc_load(op->x, i)));
}

/* Gate and up lie side by side in each row of x. */
OC_FN void oc_glu_element(const struct oc_op_glu *op, int64_t i)
{
    int64_t gate = i / op->width * 2 * op->width + i % op->width;
    oc_store(op->y, i, oc_function_at(op->function, oc_load(op->x, gate)) * oc_load(op->x, gate + op->width));
}

OC_FN void oc_glu_backward_element(const struct oc_op_glu *op, int64_t i)
{
    int64_t gate = i / op->width * 2 * op->width + i % op->width;
    float g = oc_load(op->x, gate), up = oc_load(op->x, gate + op->width), dy = oc_load(op->dy, i);
    oc_store(op->dx, gate, dy * up * oc_slope_at(op->function, g));
    oc_store(op->dx, gate + op->width, dy * oc_function_at(op->function, g));
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

/* Nobody reads a label any more once its logits have become their gradient: the loss of the token takes its place. */
OC_FN void oc_fused_loss_row(const struct oc_op_fused_loss *op, int64_t token, int lane, int lanes)
{
    int64_t start = token * op->width, label = oc_load_id(op->labels, token);
    float top = oc_row_max(op->x, start, op->width, lane, lanes), sum = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) sum += expf(oc_load(op->x, start + c) - top);
    float total = oc_lanes_sum(sum), scale = op->scale / (float)op->tokens;
    if (lane == 0) ((double *)op->labels.data)[token] = (double)(top + logf(total) - oc_load(op->x, start + label));
    oc_lanes_wait(); /* for the label's logit, which the next loop overwrites */
    for (int64_t c = lane; c < op->width; c += lanes) {
        float p = expf(oc_load(op->x, start + c) - top) / total;
        oc_store(op->x, start + c, scale * (c == label ? p - 1.0f : p));
    }
}

OC_FN void oc_sum_losses_row(const struct oc_op_fused_loss *op, int64_t row, int lane, int lanes)
{
    (void)row, (void)lanes;
    if (lane > 0) return;
    double sum = 0.0;
    for (int64_t token = 0; token < op->tokens; token++) sum += ((const double *)op->labels.data)[token];
    op->scalars->loss = sum / (double)op->tokens;
}

#endif
