/* Bodies of the norms: RMSNorm in the pieces that eager PyTorch runs, and LayerNorm and RMSNorm as one kernel each.
 * Part of kernels.h. */
#ifndef OC_PROBES_KERNELS_NORM_H
#define OC_PROBES_KERNELS_NORM_H

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
    float sum = op->accumulate ? oc_load(op->y, column) : 0.0f;
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

/* ---- LayerNorm and RMSNorm, one kernel each way: the mean of RMSNorm is 0 ---- */

OC_FN void oc_norm_row(const struct oc_op_norm *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float mean = op->center ? oc_row_total(op->x, row, op->width, lane, lanes) / (float)op->width : 0.0f, sum = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) {
        float off = oc_load(op->x, start + c) - mean;
        sum += off * off;
    }
    float rs = 1.0f / sqrtf(oc_lanes_sum(sum) / (float)op->width + op->epsilon);
    for (int64_t c = lane; c < op->width; c += lanes) {
        float value = (oc_load(op->x, start + c) - mean) * rs * oc_load(op->w, c);
        if (op->b.data) value += oc_load(op->b, c);
        oc_store(op->y, start + c, value);
    }
    if (lane == 0 && op->mean.data) oc_store(op->mean, row, mean);
    if (lane == 0 && op->rs.data) oc_store(op->rs, row, rs);
}

/* What x is after it has been centred and scaled. */
OC_FN float oc_normalized(const struct oc_op_norm *op, int64_t row, int64_t column)
{
    float mean = op->center ? oc_load(op->mean, row) : 0.0f;
    return (oc_load(op->x, row * op->width + column) - mean) * oc_load(op->rs, row);
}

OC_FN void oc_norm_backward_row(const struct oc_op_norm *op, int64_t row, int lane, int lanes)
{
    int64_t start = row * op->width;
    float sum = 0.0f, along = 0.0f;
    for (int64_t c = lane; c < op->width; c += lanes) {
        float g = oc_load(op->dy, start + c) * oc_load(op->w, c);
        sum += g, along += g * oc_normalized(op, row, c);
    }
    sum = op->center ? oc_lanes_sum(sum) / (float)op->width : 0.0f;
    along = oc_lanes_sum(along) / (float)op->width;
    for (int64_t c = lane; c < op->width; c += lanes) {
        float g = oc_load(op->dy, start + c) * oc_load(op->w, c);
        oc_store(op->dx, start + c, oc_load(op->rs, row) * (g - sum - oc_normalized(op, row, c) * along));
    }
}

OC_FN void oc_norm_backward_weight_element(const struct oc_op_norm *op, int64_t column)
{
    float dw = op->accumulate ? oc_load(op->dw, column) : 0.0f;
    float db = op->accumulate && op->db.data ? oc_load(op->db, column) : 0.0f;
    for (int64_t row = 0; row < op->rows; row++) {
        float dy = oc_load(op->dy, row * op->width + column);
        dw += dy * oc_normalized(op, row, column), db += dy;
    }
    oc_store(op->dw, column, dw);
    if (op->db.data) oc_store(op->db, column, db);
}

#endif
