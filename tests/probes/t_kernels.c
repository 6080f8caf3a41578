/* Each backward kernel against finite differences of its forward kernel, in fp32; the matrix product against three
 * loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "probes/backend.h"

enum { MOST = 4096 };

static uint32_t seed = 1;

static float drawn(void)
{
    seed = seed * 1664525u + 1013904223u;
    return (float)(seed >> 8) / 8388608.0f - 1.0f;
}

static struct oc_array draw(float *numbers, int n)
{
    for (int i = 0; i < n; i++) numbers[i] = drawn();
    return (struct oc_array){numbers, OC_FP32};
}

static struct oc_array array(float *numbers)
{
    return (struct oc_array){numbers, OC_FP32};
}

/* A function of x[n_x] to y[n_y] that runs forward kernels. */
typedef void (*forward_fn)(const void *args);

/* The gradient of sum(weight y) by x must be `gradient`, at every x. */
static void check(forward_fn forward, const void *args, float *x, int n_x, const float *y, int n_y, const float *weight,
                  const float *gradient, double tolerance)
{
    const float step = 1e-2f;
    double largest = 0;
    for (int i = 0; i < n_x; i++) largest = fmax(largest, fabs((double)gradient[i]));
    assert_true(largest > 1e-3);
    for (int i = 0; i < n_x; i++) {
        const float before = x[i];
        double side[2];
        for (int s = 0; s < 2; s++) {
            x[i] = s ? before + step : before - step;
            forward(args);
            side[s] = 0;
            for (int j = 0; j < n_y; j++) side[s] += (double)weight[j] * (double)y[j];
        }
        x[i] = before;
        const double slope = (side[1] - side[0]) / (2 * (double)step);
        if (fabs(slope - (double)gradient[i]) > tolerance * largest)
            fail_msg("element %d: gradient %g, finite difference %g", i, (double)gradient[i], slope);
    }
    forward(args);
}

static void run_activate(const void *args)
{
    oc_host_launch(OC_OP_activate, args);
}
static void run_softmax(const void *args)
{
    oc_host_launch(OC_OP_softmax, args);
}
static void run_log_softmax(const void *args)
{
    oc_host_launch(OC_OP_log_softmax, args);
}
static void run_rope(const void *args)
{
    oc_host_launch(OC_OP_rope, args);
}
static void run_repeat(const void *args)
{
    oc_host_launch(OC_OP_repeat, args);
}
static void run_embedding(const void *args)
{
    oc_host_launch(OC_OP_embedding, args);
}
static void run_flash(const void *args)
{
    oc_host_launch(OC_OP_flash, args);
}

static void activations(void **state)
{
    (void)state;
    for (int function = OC_SILU; function <= OC_SQUARED_RELU; function++) {
        float x[40], y[40], dy[40], dx[40];
        struct oc_op_activate op = {
            .n = 40, .x = draw(x, 40), .y = array(y), .dy = draw(dy, 40), .dx = array(dx), .function = function};
        for (int i = 0; i < 40; i++) x[i] = 4 * x[i] + (x[i] > 0 ? 0.1f : -0.1f); /* off the kink of relu */
        oc_host_launch(OC_OP_activate_backward, &op);
        check(run_activate, &op, x, 40, y, 40, dy, dx, 2e-3);
    }
}

static void run_norm(const void *args)
{
    oc_host_launch(OC_OP_norm, args);
}

static void norms(void **state)
{
    (void)state;
    enum { ROWS = 3, WIDTH = 11, N = ROWS * WIDTH };
    for (int center = 0; center < 2; center++) {
        float x[N], w[WIDTH], b[WIDTH], y[N], dy[N], dx[N], dw[WIDTH], db[WIDTH], mean[ROWS], rs[ROWS];
        struct oc_op_norm op = {.n = ROWS,
                                .x = draw(x, N),
                                .w = draw(w, WIDTH),
                                .y = array(y),
                                .mean = array(mean),
                                .rs = array(rs),
                                .dy = draw(dy, N),
                                .dx = array(dx),
                                .dw = array(dw),
                                .width = WIDTH,
                                .rows = ROWS,
                                .epsilon = 1e-5f,
                                .center = center};
        if (center) op.b = draw(b, WIDTH), op.db = array(db);
        run_norm(&op);
        oc_host_launch(OC_OP_norm_backward, &op);
        op.n = WIDTH;
        oc_host_launch(OC_OP_norm_backward_weight, &op);
        op.n = ROWS;
        check(run_norm, &op, x, N, y, N, dy, dx, 3e-3);
        check(run_norm, &op, w, WIDTH, y, N, dy, dw, 3e-3);
        if (center) check(run_norm, &op, b, WIDTH, y, N, dy, db, 3e-3);
    }
}

/* The rate's share is dropped, the rest is made larger by as much, and the same seed drops the same again. */
static void dropout(void **state)
{
    (void)state;
    enum { N = MOST };
    static float x[N], y[N], again[N];
    static uint8_t mask[N];
    struct oc_op_dropout op = {.n = N, .x = array(x), .y = array(y), .mask = {mask, OC_BOOL}, .rate = 0.25f, .seed = 7};
    for (int i = 0; i < N; i++) x[i] = 3;
    oc_host_launch(OC_OP_dropout, &op);
    int kept = 0;
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == (mask[i] ? 4.0f : 0.0f));
        kept += mask[i];
    }
    assert_true(abs(kept - N * 3 / 4) < N / 32);
    op.backward = 1, op.y = array(again);
    oc_host_launch(OC_OP_dropout, &op);
    assert_memory_equal(y, again, sizeof y);
    op.backward = 0, op.seed = 8;
    oc_host_launch(OC_OP_dropout, &op);
    assert_true(memcmp(y, again, sizeof y) != 0);
}

/* A fused loss is the log-softmax and the negative log-likelihood of it, and their gradient. */
static void fused_loss(void **state)
{
    (void)state;
    enum { T = 5, V = 13 };
    float x[T * V], lp[T * V], dlp[T * V], dx[T * V];
    int64_t labels[T] = {3, 0, 12, 3, 7};
    struct oc_scalars scalars = {0};
    struct oc_op_softmax softmax = {
        .n = T, .width = V, .x = draw(x, T * V), .y = array(lp), .dy = array(dlp), .dx = array(dx)};
    struct oc_op_nll nll = {.n = 1,
                            .lp = array(lp),
                            .labels = {labels, OC_INT64},
                            .dlp = array(dlp),
                            .scalars = &scalars,
                            .tokens = T,
                            .width = V,
                            .scale = 4};
    oc_host_launch(OC_OP_log_softmax, &softmax);
    oc_host_launch(OC_OP_nll, &nll);
    const double loss = scalars.loss;
    nll.n = T;
    oc_host_launch(OC_OP_nll_backward, &nll);
    oc_host_launch(OC_OP_log_softmax_backward, &softmax);
    struct oc_op_fused_loss fused = {
        .n = T, .x = array(x), .labels = {labels, OC_INT64}, .scalars = &scalars, .tokens = T, .width = V, .scale = 4};
    oc_host_launch(OC_OP_fused_loss, &fused);
    fused.n = 1;
    oc_host_launch(OC_OP_sum_losses, &fused);
    assert_true(fabs(scalars.loss - loss) < 1e-5);
    for (int i = 0; i < T * V; i++) assert_true(fabsf(x[i] - dx[i]) < 1e-5f);
}

/* ---- What is counted ---- */

static void gradients_are_measured(void **state)
{
    (void)state;
    float g[] = {0, 3, -4, 1e-9f, 1e-6f, -1e-13f, INFINITY, NAN};
    struct oc_scalars scalars = {0};
    struct oc_op_measure op = {.n = 1, .g = array(g), .scalars = &scalars, .count = 6, .scale = 1};
    oc_host_launch(OC_OP_measure, &op);
    assert_true(scalars.gradients == 5 && scalars.infinite == 0 && fabs(scalars.squares - 25) < 1e-5);
    assert_true(scalars.flushed == 2 && scalars.flushed_scaled == 1); /* 1e-9 x 65536 is in fp16's reach */
    op.count = 8, op.scale = 1024;
    oc_host_launch(OC_OP_measure, &op);
    assert_true(scalars.infinite == 2);
}

static void lost_updates_are_counted(void **state)
{
    (void)state;
    float w[] = {1, 1, 1, 1}, g[] = {0, 1e-9f, 1e-3f, 1e-4f};
    uint16_t half[] = {oc_to_bf16(1), oc_to_bf16(1), oc_to_bf16(1), oc_to_bf16(1)};
    struct oc_scalars scalars = {0};
    struct oc_op_sgd op = {
        .n = 1, .count = 4, .w = array(w), .g = array(g), .scalars = &scalars, .rate = 1, .unscale = 1};
    oc_host_launch(OC_OP_sgd, &op);
    assert_true(scalars.updates == 3 && scalars.lost == 1);        /* 1 - 1e-9 is 1 in fp32 */
    assert_true(scalars.lost_bf16 == 3 && scalars.lost_fp16 == 2); /* below 2^-9; below 2^-12 */
    op.w = (struct oc_array){half, OC_BF16};
    oc_host_launch(OC_OP_sgd, &op);
    assert_true(scalars.updates == 6 && scalars.lost == 1 + 3);
}

static void softmaxes(void **state)
{
    (void)state;
    float x[33], y[33], dy[33], dx[33];
    struct oc_op_softmax op = {
        .n = 3, .width = 11, .x = draw(x, 33), .y = array(y), .dy = draw(dy, 33), .dx = array(dx)};
    run_softmax(&op);
    for (int row = 0; row < 3; row++) {
        float sum = 0;
        for (int c = 0; c < 11; c++) sum += y[row * 11 + c];
        assert_true(fabsf(sum - 1) < 1e-6f);
    }
    oc_host_launch(OC_OP_softmax_backward, &op);
    check(run_softmax, &op, x, 33, y, 33, dy, dx, 1e-3);
    run_log_softmax(&op);
    oc_host_launch(OC_OP_log_softmax_backward, &op);
    check(run_log_softmax, &op, x, 33, y, 33, dy, dx, 1e-3);
}

/* Rope keeps lengths; its backward is the turn back. */
static void rope(void **state)
{
    (void)state;
    enum { SEQ = 5, HEADS = 3, DIM = 6, N = 2 * SEQ * HEADS * DIM };
    float x[N], y[N], dy[N], dx[N], cosine[SEQ * DIM], sine[SEQ * DIM];
    struct oc_op_rope_table table = {
        .n = SEQ * DIM, .cosine = array(cosine), .sine = array(sine), .head_dim = DIM, .base = 100};
    oc_host_launch(OC_OP_rope_table, &table);
    struct oc_op_rope op = {.n = N,
                            .x = draw(x, N),
                            .y = array(y),
                            .cosine = array(cosine),
                            .sine = array(sine),
                            .head_dim = DIM,
                            .heads = HEADS,
                            .seq = SEQ};
    struct oc_op_rope back = op;
    back.x = draw(dy, N), back.y = array(dx), back.backward = 1;
    oc_host_launch(OC_OP_rope, &back);
    check(run_rope, &op, x, N, y, N, dy, dx, 1e-3);
    back.x = array(y);
    oc_host_launch(OC_OP_rope, &back);
    for (int i = 0; i < N; i++) assert_true(fabsf(dx[i] - x[i]) < 1e-5f);
    assert_true(fabsf(y[HEADS * DIM] - x[HEADS * DIM]) > 1e-3f); /* position 1 is turned */
}

static void repeated_heads(void **state)
{
    (void)state;
    enum { T = 3, HEADS = 6, KV = 2, DIM = 4 };
    float x[T * KV * DIM], y[T * HEADS * DIM], dy[T * HEADS * DIM], dx[T * KV * DIM];
    struct oc_op_repeat op = {.n = T * HEADS * DIM,
                              .narrow = draw(x, T * KV * DIM),
                              .wide = array(y),
                              .head_dim = DIM,
                              .heads = HEADS,
                              .kv_heads = KV};
    struct oc_op_repeat back = op;
    back.n = T * KV * DIM, back.narrow = array(dx), back.wide = draw(dy, T * HEADS * DIM);
    oc_host_launch(OC_OP_repeat_backward, &back);
    check(run_repeat, &op, x, T * KV * DIM, y, T * HEADS * DIM, dy, dx, 1e-3);
}

static void embedding(void **state)
{
    (void)state;
    enum { T = 5, V = 4, H = 3 };
    int64_t ids[T] = {2, 0, 2, 3, 2};
    float table[V * H], y[T * H], dy[T * H], grad[V * H] = {0};
    struct oc_op_embedding op = {
        .n = T, .ids = {ids, OC_INT64}, .table = draw(table, V * H), .y = array(y), .width = H, .tokens = T};
    struct oc_op_embedding back = op;
    back.n = H, back.table = array(grad), back.y = draw(dy, T * H);
    oc_host_launch(OC_OP_embedding_backward, &back);
    check(run_embedding, &op, table, V * H, y, T * H, dy, grad, 1e-3);
    assert_true(grad[H] == 0); /* token 1 is not there */
}

static void negative_log_likelihood(void **state)
{
    (void)state;
    enum { T = 4, V = 3 };
    int64_t labels[T] = {2, 0, 1, 2};
    struct oc_scalars scalars = {0};
    float lp[T * V], dlp[T * V];
    struct oc_op_nll op = {.n = 1,
                           .lp = draw(lp, T * V),
                           .labels = {labels, OC_INT64},
                           .dlp = array(dlp),
                           .scalars = &scalars,
                           .tokens = T,
                           .width = V,
                           .scale = 8};
    oc_host_launch(OC_OP_nll, &op);
    double expected = 0;
    for (int t = 0; t < T; t++) expected -= (double)lp[t * V + labels[t]] / T;
    assert_true(fabs(scalars.loss - expected) < 1e-12);
    op.n = T;
    oc_host_launch(OC_OP_nll_backward, &op);
    for (int i = 0; i < T * V; i++) assert_true(dlp[i] == (labels[i / V] == i % V ? -2.0f : 0.0f)); /* 8 / 4 tokens */
}

/* ---- Attention ---- */

static void flash(void **state)
{
    (void)state;
    enum { B = 2, SEQ = 7, HEADS = 4, KV = 2, DIM = 6, NQ = B * SEQ * HEADS * DIM, NK = B * SEQ * KV * DIM };
    float q[NQ], k[NK], v[NK], o[NQ], lse[B * HEADS * SEQ], delta[B * HEADS * SEQ], grad_o[NQ], dq[NQ], dk[NK], dv[NK];
    struct oc_op_flash op = {.n = B * HEADS * SEQ,
                             .q = draw(q, NQ),
                             .k = draw(k, NK),
                             .v = draw(v, NK),
                             .o = array(o),
                             .lse = array(lse),
                             .grad_o = draw(grad_o, NQ),
                             .delta = array(delta),
                             .dq = array(dq),
                             .dk = array(dk),
                             .dv = array(dv),
                             .seq = SEQ,
                             .heads = HEADS,
                             .kv_heads = KV,
                             .head_dim = DIM,
                             .scale = 0.4f};
    oc_host_launch(OC_OP_flash, &op);
    oc_host_launch(OC_OP_flash_dq, &op);
    struct oc_op_flash keys = op;
    keys.n = B * KV * SEQ;
    oc_host_launch(OC_OP_flash_dkv, &keys);
    check(run_flash, &op, q, NQ, o, NQ, grad_o, dq, 2e-3);
    check(run_flash, &op, k, NK, o, NQ, grad_o, dk, 2e-3);
    check(run_flash, &op, v, NK, o, NQ, grad_o, dv, 2e-3);
}

static void mask_is_causal(void **state)
{
    (void)state;
    enum { SEQ = 4, HEADS = 2, B = 2 };
    float mask[B * SEQ * SEQ], x[B * HEADS * SEQ * SEQ], y[B * HEADS * SEQ * SEQ];
    struct oc_op_mask op = {.n = B * SEQ * SEQ, .mask = array(mask), .seq = SEQ, .heads = HEADS};
    oc_host_launch(OC_OP_mask_make, &op);
    op.n = B * HEADS * SEQ * SEQ, op.x = draw(x, B * HEADS * SEQ * SEQ), op.y = array(y);
    oc_host_launch(OC_OP_mask_add, &op);
    for (int i = 0; i < B * HEADS * SEQ * SEQ; i++) {
        if (i % SEQ <= i / SEQ % SEQ)
            assert_true(y[i] == x[i]);
        else
            assert_true(isinf(y[i]) && y[i] < 0);
    }
}

/* ---- Matrix products: sizes around the tile, any transposition, any type of operand ---- */

static float at(const struct oc_matrix *m, int64_t row, int64_t column, int64_t sample, int64_t head)
{
    return oc_load(m->array, sample * m->sample + head * m->head + row * m->row + column * m->column);
}

static void matmul_at(int rows, int columns, int inner, int turn)
{
    static float a[2 * 2 * MOST], b[2 * 2 * MOST], c[2 * 2 * MOST];
    enum { SAMPLES = 2, HEADS = 2 };
    struct oc_op_matmul op = {.rows = rows, .columns = columns, .inner = inner, .heads = HEADS};
    op.n = SAMPLES * HEADS * ((rows + 63) / 64) * ((columns + 63) / 64);
    op.a = (struct oc_matrix){draw(a, SAMPLES * HEADS * rows * inner), turn & 1 ? 1 : inner, turn & 1 ? rows : 1,
                              HEADS * rows * inner, rows * inner};
    op.b = (struct oc_matrix){draw(b, SAMPLES * HEADS * inner * columns), turn & 2 ? 1 : columns, turn & 2 ? inner : 1,
                              HEADS * inner * columns, inner * columns};
    op.c = (struct oc_matrix){array(c), turn & 4 ? 1 : columns, turn & 4 ? rows : 1, HEADS * rows * columns,
                              rows * columns};
    oc_host_launch(OC_OP_matmul, &op);
    for (int z = 0; z < SAMPLES * HEADS; z++)
        for (int r = 0; r < rows; r++)
            for (int col = 0; col < columns; col++) {
                double sum = 0;
                for (int i = 0; i < inner; i++)
                    sum +=
                        (double)at(&op.a, r, i, z / HEADS, z % HEADS) * (double)at(&op.b, i, col, z / HEADS, z % HEADS);
                assert_true(fabs((double)at(&op.c, r, col, z / HEADS, z % HEADS) - sum) < 1e-5);
            }
}

static void matmul(void **state)
{
    (void)state;
    static const int sizes[][3] = {{1, 1, 1}, {64, 64, 16}, {65, 3, 17}, {5, 66, 15}, {63, 61, 33}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int turn = 0; turn < 8; turn++) matmul_at(sizes[i][0], sizes[i][1], sizes[i][2], turn);
}

/* ---- Optimizers: two steps of one number, by hand ---- */

static void optimizers(void **state)
{
    (void)state;
    float w = 1, g = 0.5f, s = 99;
    struct oc_scalars scalars = {0};
    struct oc_op_sgd sgd = {.n = 1,
                            .count = 1,
                            .scalars = &scalars,
                            .w = array(&w),
                            .g = array(&g),
                            .state = array(&s),
                            .rate = 0.1f,
                            .momentum = 0.9f,
                            .unscale = 2,
                            .first = 1};
    oc_host_launch(OC_OP_sgd, &sgd);
    assert_true(fabsf(w - 0.9f) < 1e-6f && s == 1.0f);
    sgd.first = 0;
    oc_host_launch(OC_OP_sgd, &sgd);
    assert_true(fabsf(s - 1.9f) < 1e-6f && fabsf(w - 0.71f) < 1e-6f);

    /* Adam's first step moves by the rate, whatever the gradient; decay takes rate x decay of the weight. */
    float m = 0, v = 0;
    w = 1;
    struct oc_op_adam adam = {.n = 1,
                              .count = 1,
                              .scalars = &scalars,
                              .w = array(&w),
                              .g = array(&g),
                              .m = array(&m),
                              .v = array(&v),
                              .rate = 0.01f,
                              .decay = 0.5f,
                              .beta1 = 0.9f,
                              .beta2 = 0.999f,
                              .epsilon = 1e-8f,
                              .unscale = 2,
                              .root = 1 / sqrtf(0.001f),
                              .correct = 10};
    oc_host_launch(OC_OP_adam_fused, &adam);
    assert_true(fabsf(m - 0.1f) < 1e-6f && fabsf(v - 0.001f) < 1e-6f && fabsf(w - 0.985f) < 1e-5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(activations),
        cmocka_unit_test(norms),
        cmocka_unit_test(dropout),
        cmocka_unit_test(fused_loss),
        cmocka_unit_test(gradients_are_measured),
        cmocka_unit_test(lost_updates_are_counted),
        cmocka_unit_test(softmaxes),
        cmocka_unit_test(rope),
        cmocka_unit_test(repeated_heads),
        cmocka_unit_test(embedding),
        cmocka_unit_test(negative_log_likelihood),
        cmocka_unit_test(flash),
        cmocka_unit_test(mask_is_causal),
        cmocka_unit_test(matmul),
        cmocka_unit_test(optimizers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
