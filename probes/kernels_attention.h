/* Bodies of the attention kernels: rope, mask, softmax, repeated key heads, and a flash-like attention that keeps one
 * number a row (the log of the sum of exponentials) and computes the probabilities again in backward. Part of
 * kernels.h.
 *
 * Queries lie as [token, heads, head_dim], keys and values as [token, kv_heads, head_dim], scores as [sample, head,
 * query, key]; a token is (sample, position). */
#ifndef OC_PROBES_KERNELS_ATTENTION_H
#define OC_PROBES_KERNELS_ATTENTION_H

/* ---- Rope: each head's halves (x1, x2) are turned by the angle of their position ---- */

OC_FN void oc_rope_table_element(const struct oc_op_rope_table *op, int64_t i)
{
    int64_t position = i / op->head_dim, j = i % op->head_dim % (op->head_dim / 2);
    float angle = (float)position * powf(op->base, -2.0f * (float)j / (float)op->head_dim), cosine, sine;
    oc_turns(angle / 6.2831853f, &cosine, &sine);
    oc_store(op->cosine, i, cosine);
    oc_store(op->sine, i, sine);
}

OC_FN void oc_rope_element(const struct oc_op_rope *op, int64_t i)
{
    int64_t dim = i % op->head_dim, position = i / (op->head_dim * op->heads) % op->seq, half = op->head_dim / 2;
    int64_t angle = position * op->head_dim + dim;
    float other = dim < half ? -oc_load(op->x, i + half) : oc_load(op->x, i - half);
    float turn = op->backward ? -1.0f : 1.0f;
    oc_store(op->y, i, oc_load(op->x, i) * oc_load(op->cosine, angle) + turn * other * oc_load(op->sine, angle));
}

OC_FN void oc_turn_element(const struct oc_op_turn *op, int64_t i)
{
    int64_t row = i / op->width, column = i % op->width, from = row * op->x_pitch + op->x_first + column;
    float value = oc_load(op->x, from);
    if (op->turn != 0) {
        int64_t dim = column % op->head_dim, half = op->head_dim / 2, j = dim % half;
        float angle = (float)(row % op->seq) * powf(op->base, -2.0f * (float)j / (float)op->head_dim), cosine, sine;
        oc_turns(angle / 6.2831853f, &cosine, &sine);
        float other = dim < half ? -oc_load(op->x, from + half) : oc_load(op->x, from - half);
        value = value * cosine + (float)op->turn * other * sine;
    }
    oc_store(op->y, row * op->y_pitch + op->y_first + column, value);
}

/* ---- Causal mask ---- */

OC_FN void oc_mask_make_element(const struct oc_op_mask *op, int64_t i)
{
    int64_t key = i % op->seq, query = i / op->seq % op->seq;
    oc_store(op->mask, i, key <= query ? 0.0f : -INFINITY);
}

OC_FN void oc_mask_add_element(const struct oc_op_mask *op, int64_t i)
{
    int64_t cell = i % (op->seq * op->seq), sample = i / (op->seq * op->seq) / op->heads;
    oc_store(op->y, i, oc_load(op->x, i) + oc_load(op->mask, sample * op->seq * op->seq + cell));
}

/* ---- Softmax over whole rows (masked scores are -infinity) ---- */

OC_FN float oc_row_max(struct oc_array x, int64_t start, int64_t width, int lane, int lanes)
{
    float top = -INFINITY;
    for (int64_t c = lane; c < width; c += lanes) top = fmaxf(top, oc_load(x, start + c));
    return oc_lanes_max(top);
}

OC_FN void oc_softmax_row(const struct oc_op_softmax *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float top = oc_row_max(op->x, start, op->width, lane, lanes), sum = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) sum += expf(oc_load(op->x, start + c) - top);
    float inverse = 1.0f / oc_lanes_sum(sum);
    for (int64_t c = lane; c < op->width; c += lanes)
        oc_store(op->y, start + c, expf(oc_load(op->x, start + c) - top) * inverse);
}

OC_FN void oc_softmax_backward_row(const struct oc_op_softmax *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float sum = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) sum += oc_load(op->y, start + c) * oc_load(op->dy, start + c);
    sum = oc_lanes_sum(sum);
    for (int64_t c = lane; c < op->width; c += lanes)
        oc_store(op->dx, start + c, oc_load(op->y, start + c) * (oc_load(op->dy, start + c) - sum));
}

/* ---- Scale, causal mask and softmax in one kernel: a query's row has the keys up to its own ---- */

OC_FN void oc_causal_softmax_row(const struct oc_op_causal *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->seq, seen = row % op->seq + 1;
    float top = op->scale * oc_row_max(op->x, start, seen, lane, lanes), sum = 0.0f;
    for (int64_t c = lane; c < seen; c += lanes) sum += expf(op->scale * oc_load(op->x, start + c) - top);
    float inverse = 1.0f / oc_lanes_sum(sum);
    for (int64_t c = lane; c < op->seq; c += lanes)
        oc_store(op->y, start + c, c < seen ? expf(op->scale * oc_load(op->x, start + c) - top) * inverse : 0.0f);
}

OC_FN void oc_causal_softmax_backward_row(const struct oc_op_causal *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->seq;
    float sum = 0.0f;
    for (int64_t c = lane; c < op->seq; c += lanes) sum += oc_load(op->y, start + c) * oc_load(op->dy, start + c);
    sum = oc_lanes_sum(sum);
    for (int64_t c = lane; c < op->seq; c += lanes)
        oc_store(op->dx, start + c, op->scale * oc_load(op->y, start + c) * (oc_load(op->dy, start + c) - sum));
}

/* ---- Key and value heads repeated for each query head of their group ---- */

OC_FN void oc_repeat_element(const struct oc_op_repeat *op, int64_t i)
{
    int64_t dim = i % op->head_dim, head = i / op->head_dim % op->heads, token = i / op->head_dim / op->heads;
    int64_t kv_head = head / (op->heads / op->kv_heads);
    oc_store(op->wide, i, oc_load(op->narrow, (token * op->kv_heads + kv_head) * op->head_dim + dim));
}

OC_FN void oc_repeat_backward_element(const struct oc_op_repeat *op, int64_t i)
{
    int64_t dim = i % op->head_dim, kv_head = i / op->head_dim % op->kv_heads, token = i / op->head_dim / op->kv_heads;
    int64_t group = op->heads / op->kv_heads;
    float sum = 0.0f;
    for (int64_t g = 0; g < group; g++)
        sum += oc_load(op->wide, (token * op->heads + kv_head * group + g) * op->head_dim + dim);
    oc_store(op->narrow, i, sum);
}

/* ---- Flash-like attention: lanes share head_dim, the other side's tokens stream past ---- */

/* Sample, head and position of a row of lse, and where its vectors begin. */
struct oc_flash_row {
    int64_t sample, head, position, query,
        key;  /* query: element of q, o, grad_o; key: element of k, v of that position */
    int dims; /* of head_dim, how many are this lane's */
};

OC_FN struct oc_flash_row oc_flash_at(const struct oc_op_flash *op, int64_t sample, int64_t head, int64_t position,
                                      int lane, int lanes)
{
    struct oc_flash_row at;
    int64_t token = sample * op->seq + position, kv_head = head / (op->heads / op->kv_heads);
    at.sample = sample, at.head = head, at.position = position;
    at.query = (token * op->heads + head) * op->head_dim + lane;
    at.key = (token * op->kv_heads + kv_head) * op->head_dim + lane;
    at.dims = (int)((op->head_dim - lane + lanes - 1) / lanes);
    return at;
}

OC_FN float oc_flash_dot(struct oc_array a, int64_t at_a, struct oc_array b, int64_t at_b, int dims, int lanes)
{
    float sum = 0.0f;
    OC_FOR_MY_DIMS(i, dims) sum += oc_load(a, at_a + (int64_t)i * lanes) * oc_load(b, at_b + (int64_t)i * lanes);
    return oc_lanes_sum(sum);
}

OC_FN void oc_flash_row(const struct oc_op_flash *op, int64_t row, int lane, int lanes)
{
    int64_t position = row % op->seq, head = row / op->seq % op->heads, sample = row / op->seq / op->heads;
    struct oc_flash_row me = oc_flash_at(op, sample, head, position, lane, lanes);
    float top = -INFINITY, sum = 0.0f, out[OC_HEAD_DIMS_PER_LANE];
    OC_FOR_MY_DIMS(i, me.dims) out[i] = 0.0f;
    for (int64_t key = 0; key <= position; key++) {
        struct oc_flash_row other = oc_flash_at(op, sample, head, key, lane, lanes);
        float score = op->scale * oc_flash_dot(op->q, me.query, op->k, other.key, me.dims, lanes);
        float higher = fmaxf(top, score), shrink = expf(top - higher), weight = expf(score - higher);
        sum = sum * shrink + weight, top = higher;
        OC_FOR_MY_DIMS(i, me.dims) out[i] = out[i] * shrink + weight * oc_load(op->v, other.key + (int64_t)i * lanes);
    }
    OC_FOR_MY_DIMS(i, me.dims) oc_store(op->o, me.query + (int64_t)i * lanes, out[i] / sum);
    if (lane == 0) oc_store(op->lse, row, top + logf(sum));
}

/* dq of one query, and delta (the sum over head_dim of o x its gradient) for flash_dkv. */
OC_FN void oc_flash_dq_row(const struct oc_op_flash *op, int64_t row, int lane, int lanes)
{
    int64_t position = row % op->seq, head = row / op->seq % op->heads, sample = row / op->seq / op->heads;
    struct oc_flash_row me = oc_flash_at(op, sample, head, position, lane, lanes);
    float delta = oc_flash_dot(op->o, me.query, op->grad_o, me.query, me.dims, lanes), dq[OC_HEAD_DIMS_PER_LANE];
    if (lane == 0 && op->delta.data) oc_store(op->delta, row, delta);
    OC_FOR_MY_DIMS(i, me.dims) dq[i] = 0.0f;
    for (int64_t key = 0; key <= position; key++) {
        struct oc_flash_row other = oc_flash_at(op, sample, head, key, lane, lanes);
        float score = op->scale * oc_flash_dot(op->q, me.query, op->k, other.key, me.dims, lanes);
        float dp = oc_flash_dot(op->grad_o, me.query, op->v, other.key, me.dims, lanes);
        float ds = expf(score - oc_load(op->lse, row)) * (dp - delta) * op->scale;
        OC_FOR_MY_DIMS(i, me.dims) dq[i] += ds * oc_load(op->k, other.key + (int64_t)i * lanes);
    }
    OC_FOR_MY_DIMS(i, me.dims) oc_store(op->dq, me.query + (int64_t)i * lanes, dq[i]);
}

/* dk and dv of one key, summed over the query heads of its group and the positions that see it. */
OC_FN void oc_flash_dkv_row(const struct oc_op_flash *op, int64_t row, int lane, int lanes)
{
    int64_t position = row % op->seq, kv_head = row / op->seq % op->kv_heads, sample = row / op->seq / op->kv_heads;
    int64_t group = op->heads / op->kv_heads;
    struct oc_flash_row me = oc_flash_at(op, sample, kv_head * group, position, lane, lanes);
    float dk[OC_HEAD_DIMS_PER_LANE], dv[OC_HEAD_DIMS_PER_LANE];
    OC_FOR_MY_DIMS(i, me.dims) dk[i] = dv[i] = 0.0f;
    for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
        for (int64_t query = position; query < op->seq; query++) {
            struct oc_flash_row other = oc_flash_at(op, sample, head, query, lane, lanes);
            int64_t other_row = (sample * op->heads + head) * op->seq + query;
            float score = op->scale * oc_flash_dot(op->q, other.query, op->k, me.key, me.dims, lanes);
            float dp = oc_flash_dot(op->grad_o, other.query, op->v, me.key, me.dims, lanes);
            float p = expf(score - oc_load(op->lse, other_row));
            float delta = op->delta.data ? oc_load(op->delta, other_row)
                                         : oc_flash_dot(op->o, other.query, op->grad_o, other.query, me.dims, lanes);
            float ds = p * (dp - delta) * op->scale;
            OC_FOR_MY_DIMS(i, me.dims)
            {
                int64_t at = other.query + (int64_t)i * lanes;
                dk[i] += ds * oc_load(op->q, at);
                dv[i] += p * oc_load(op->grad_o, at);
            }
        }
    }
    OC_FOR_MY_DIMS(i, me.dims)
    {
        oc_store(op->dk, me.key + (int64_t)i * lanes, dk[i]);
        oc_store(op->dv, me.key + (int64_t)i * lanes, dv[i]);
    }
}

#endif
