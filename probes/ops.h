/* What the kernels of the training step take: one plain struct each, the same on every backend.
 *
 * The first member is always `n`, the number of pieces that the kernel's work is cut into, which run in any order:
 *   element kernels   one number of the output each
 *   row kernels       one row each; the lanes of a warp share it (the host has one lane)
 *   tile kernels      one 64 x 64 tile of the output each; a block of 256 lanes shares it
 * Shapes are in the comments, in elements, row-major: T tokens of the micro-batch, h hidden, D head_dim. */
#ifndef OC_PROBES_OPS_H
#define OC_PROBES_OPS_H

#include "probes/half.h"

/* What kernels say in numbers, each the sum over all that were launched since it was last set to zero. */
struct oc_scalars {
    double loss;                 /* mean over the tokens of one micro-batch */
    double squares;              /* of gradients */
    double gradients;            /* that are not zero */
    double infinite;             /* ... or not a number */
    double flushed;              /* that fp16 would make zero, were it not for the loss scale */
    double flushed_scaled;       /* that it makes zero in spite of it */
    double updates;              /* of weights by something that is not zero */
    double lost;                 /* ... that left the weight as it was */
    double lost_bf16, lost_fp16; /* ... that would have, were the weight kept in that type alone */
};

#define OC_USUAL_SCALE  65536.0f /* what torch.amp.GradScaler begins with */
#define OC_ROPE_BASE    10000.0f
#define OC_NORM_EPSILON 1e-5f
enum { OC_CHUNK = 1024 }; /* elements that one piece of a counting kernel goes through */

struct oc_op_init { /* x[n] = mean + deviation x (a normal number made from seed and index) */
    int64_t n;
    struct oc_array x;
    float mean, deviation;
    uint32_t seed;
};

struct oc_op_blend { /* y[n] = alpha a[n] + beta b[n] + constant; no b: a cast, a copy or a scaling. y may be a or b */
    int64_t n;
    struct oc_array a, b, y;
    float alpha, beta, constant;
};

enum oc_broadcast { OC_EACH, OC_PER_ROW, OC_PER_COLUMN };

struct oc_op_multiply { /* y[n] = a[n] b[n], with b[rows] or b[width] where it is broadcast over rows of `width` */
    int64_t n;
    struct oc_array a, b, y;
    int64_t width;
    int broadcast; /* enum oc_broadcast */
};

struct oc_op_reduce { /* row_mean: y[n] from x[n, width]; column_sum: y[n] from x[rows, n] */
    int64_t n;
    struct oc_array x, y;
    int64_t width, rows;
    int accumulate; /* column_sum: added to what y holds */
};

struct oc_op_root { /* root: y[n] = sqrt(x[n] + epsilon); rsqrt: 1 / that */
    int64_t n;
    struct oc_array x, y;
    float epsilon;
};

struct oc_op_norm_rows { /* rs[n] becomes the gradient of each squared input: -rs^3 / 2 x sum(t[n, width]) / width */
    int64_t n;
    struct oc_array t, rs;
    int64_t width;
};

struct oc_op_norm { /* forward: y[n, width] = (x - mean) rs w + b, and mean[n], rs[n] where they are wanted; backward:
                      dx[n, width], and in norm_backward_weight, n = width: dw[n], db[n] over `rows` */
    int64_t n;
    struct oc_array x, w, b, y, mean, rs, dy, dx, dw, db;
    int64_t width, rows;
    float epsilon;
    int center;     /* LayerNorm; otherwise RMSNorm, which has neither mean nor b */
    int accumulate; /* norm_backward_weight: added to what dw and db hold */
};

struct oc_op_expand { /* y[n, width] = x[n] in every column */
    int64_t n;
    struct oc_array x, y;
    int64_t width;
};

struct oc_op_embedding { /* forward: y[n, width] = table[ids[n], width] + positions[n % seq, width] where there are
                           some; backward, n = width: table[ids[t], n] += y[t, n]; embedding_positions: positions
                           likewise */
    int64_t n;
    struct oc_array ids, table, positions, y;
    int64_t width, tokens, seq;
};

struct oc_op_bias { /* add: y[n = rows x width] += b[width] */
    int64_t n;
    struct oc_array y, b;
    int64_t width;
};

struct oc_op_place { /* y[row, first + column] = x[n = rows x width]; y has `pitch` columns */
    int64_t n;
    struct oc_array x, y;
    int64_t width, pitch, first;
};

struct oc_op_dropout { /* forward: mask[n] is drawn, y[n] = x mask / (1 - rate); backward: y of x and mask. y may be x
                        */
    int64_t n;
    struct oc_array x, y, mask;
    float rate;
    uint32_t seed;
    int backward;
};

struct oc_op_rope_table { /* cosine and sine [n = positions x head_dim] of position x base^(-2j / head_dim) */
    int64_t n;
    struct oc_array cosine, sine;
    int64_t head_dim;
    float base;
};

struct oc_op_rope { /* y[n = T x heads x head_dim] = x turned by its position's angle; backward: turned back */
    int64_t n;
    struct oc_array x, y, cosine, sine;
    int64_t head_dim, heads, seq;
    int backward;
};

struct oc_op_turn { /* rope without a table: y[row, y_first + c] = x[row, x_first + c], c < width, turned (1), turned
                      back (-1) or as it is (0); rows of x and y have x_pitch and y_pitch columns; n = rows x width */
    int64_t n;
    struct oc_array x, y;
    int64_t width, x_pitch, x_first, y_pitch, y_first, head_dim, seq;
    float base;
    int turn;
};

struct oc_op_mask { /* make: mask[n = batch x seq x seq]; add: y[n = batch x heads x seq x seq] = x + mask of its sample
                     */
    int64_t n;
    struct oc_array mask, x, y;
    int64_t seq, heads;
};

struct oc_op_softmax { /* forward: y[n, width] of x; backward: dx[n, width] of y and dy */
    int64_t n;
    struct oc_array x, y, dy, dx;
    int64_t width;
};

struct oc_op_causal { /* causal_softmax: y[n = heads x seq, seq] of scale x, each query seeing keys up to its own; y may
                        be x. Backward: dx of y and dy; dx may be dy */
    int64_t n;
    struct oc_array x, y, dy, dx;
    int64_t seq;
    float scale;
};

struct oc_op_gather { /* y[n] = x[n % count]: what other ranks hold is what this one holds */
    int64_t n;
    struct oc_array x, y;
    int64_t count;
};

struct oc_op_glu { /* forward: y[n = rows x width] = f(x[row, c]) x[row, width + c]; backward: dx of dy */
    int64_t n;
    struct oc_array x, y, dy, dx;
    int64_t width;
    int function; /* enum oc_function */
};

struct oc_op_repeat { /* forward: wide[n = T x heads x D] from narrow[T x kv_heads x D]; backward: narrow[n] = sums of
                         wide */
    int64_t n;
    struct oc_array narrow, wide;
    int64_t head_dim, heads, kv_heads;
};

struct oc_op_flash { /* q, o, dq [T, heads, D]; k, v, dk, dv [T, kv_heads, D]; lse, delta [batch, heads, seq] fp32 */
    int64_t n;       /* rows of lse; flash_dkv: batch x kv_heads x seq. No delta: it is computed where it is needed */
    struct oc_array q, k, v, o, lse, grad_o, delta, dq, dk, dv;
    int64_t seq, heads, kv_heads, head_dim;
    float scale;
};

struct oc_op_activate { /* forward: y[n] = f(x); backward: dx[n] = dy x derivative at x */
    int64_t n;
    struct oc_array x, y, dy, dx;
    int function; /* enum oc_function */
};
enum oc_function { OC_SILU, OC_GELU, OC_RELU, OC_SQUARED_RELU };

struct oc_op_nll { /* forward, n = 1: loss = mean over tokens of -lp[t, labels[t]]; backward, n = T: dlp[n, width] */
    int64_t n;
    struct oc_array lp, labels, dlp;
    struct oc_scalars *scalars;
    int64_t tokens, width;
    float scale; /* backward: what the loss is multiplied by */
};

struct oc_op_fused_loss { /* x[n, width] becomes its own gradient times `scale`, each label the loss of its token */
    int64_t n;
    struct oc_array x, labels;
    struct oc_scalars *scalars; /* sum_losses, n = 1: loss = mean of them */
    int64_t tokens, width;
    float scale;
};

struct oc_matrix { /* where element (row, column) of the matrix of one sample and head lies */
    struct oc_array array;
    int64_t row, column, sample, head; /* strides in elements */
};

struct oc_op_matmul { /* c[m, n'] = sum over k of a[m, k] b[k, n'] in fp32, for every sample and head */
    int64_t n;        /* tiles: samples x heads x ceil(rows / 64) x ceil(columns / 64) */
    int64_t rows, columns, inner, heads;
    struct oc_matrix a, b, c;
    int accumulate; /* c += */
};

struct oc_op_measure { /* counts of a gradient g[count], n = chunks of it; it was multiplied by `scale` */
    int64_t n;
    struct oc_array g;
    struct oc_scalars *scalars;
    int64_t count;
    float scale;
};

struct oc_op_sgd { /* state = momentum x state + g (when there is one, else g itself); w -= rate x state */
    int64_t n;     /* chunks of w[count] */
    struct oc_array w, g, state;
    struct oc_scalars *scalars;
    int64_t count;
    float rate, momentum, unscale; /* gradients are multiplied by `unscale` first */
    int first;                     /* the first step: state = g */
};

struct oc_op_adam { /* moments: m and v of g; update: w by m / denominator; fused: both, denominator = sqrt(v) root +
                       epsilon */
    int64_t n;      /* chunks of w[count] */
    struct oc_array w, g, m, v, denominator;
    struct oc_scalars *scalars;
    int64_t count;
    float rate, decay, beta1, beta2, epsilon, unscale;
    float root;    /* 1 / sqrt(1 - beta2^step) */
    float correct; /* 1 / (1 - beta1^step) */
};

/* ELEMENT, ROW and TILE name the kind; a kernel's body is oc_NAME_element, oc_NAME_row or oc_NAME_tile in kernels.h. */
#define OC_OPS(ELEMENT, ROW, TILE)                                                                                     \
    ELEMENT(init, oc_op_init)                                                                                          \
    ELEMENT(blend, oc_op_blend)                                                                                        \
    ELEMENT(multiply, oc_op_multiply)                                                                                  \
    ROW(row_mean, oc_op_reduce)                                                                                        \
    ELEMENT(column_sum, oc_op_reduce)                                                                                  \
    ELEMENT(root, oc_op_root)                                                                                          \
    ELEMENT(rsqrt, oc_op_root)                                                                                         \
    ROW(norm_rows, oc_op_norm_rows)                                                                                    \
    ROW(norm, oc_op_norm)                                                                                              \
    ROW(norm_backward, oc_op_norm)                                                                                     \
    ELEMENT(norm_backward_weight, oc_op_norm)                                                                          \
    ROW(expand, oc_op_expand)                                                                                          \
    ROW(embedding, oc_op_embedding)                                                                                    \
    ELEMENT(embedding_backward, oc_op_embedding)                                                                       \
    ELEMENT(embedding_positions, oc_op_embedding)                                                                      \
    ELEMENT(bias, oc_op_bias)                                                                                          \
    ELEMENT(place, oc_op_place)                                                                                        \
    ELEMENT(dropout, oc_op_dropout)                                                                                    \
    ELEMENT(rope_table, oc_op_rope_table)                                                                              \
    ELEMENT(rope, oc_op_rope)                                                                                          \
    ELEMENT(turn, oc_op_turn)                                                                                          \
    ROW(causal_softmax, oc_op_causal)                                                                                  \
    ROW(causal_softmax_backward, oc_op_causal)                                                                         \
    ELEMENT(gather, oc_op_gather)                                                                                      \
    ELEMENT(glu, oc_op_glu)                                                                                            \
    ELEMENT(glu_backward, oc_op_glu)                                                                                   \
    ELEMENT(mask_make, oc_op_mask)                                                                                     \
    ELEMENT(mask_add, oc_op_mask)                                                                                      \
    ROW(softmax, oc_op_softmax)                                                                                        \
    ROW(softmax_backward, oc_op_softmax)                                                                               \
    ROW(log_softmax, oc_op_softmax)                                                                                    \
    ROW(log_softmax_backward, oc_op_softmax)                                                                           \
    ELEMENT(repeat, oc_op_repeat)                                                                                      \
    ELEMENT(repeat_backward, oc_op_repeat)                                                                             \
    ROW(flash, oc_op_flash)                                                                                            \
    ROW(flash_dq, oc_op_flash)                                                                                         \
    ROW(flash_dkv, oc_op_flash)                                                                                        \
    ELEMENT(activate, oc_op_activate)                                                                                  \
    ELEMENT(activate_backward, oc_op_activate)                                                                         \
    ROW(nll, oc_op_nll)                                                                                                \
    ROW(nll_backward, oc_op_nll)                                                                                       \
    ROW(fused_loss, oc_op_fused_loss)                                                                                  \
    ROW(sum_losses, oc_op_fused_loss)                                                                                  \
    TILE(matmul, oc_op_matmul)                                                                                         \
    ROW(measure, oc_op_measure)                                                                                        \
    ROW(sgd, oc_op_sgd)                                                                                                \
    ROW(adam_moments, oc_op_adam)                                                                                      \
    ROW(adam_update, oc_op_adam)                                                                                       \
    ROW(adam_fused, oc_op_adam)

#define OC_OP_ID(name, type) OC_OP_##name,
enum oc_op { OC_OPS(OC_OP_ID, OC_OP_ID, OC_OP_ID) OC_N_OPS };
#undef OC_OP_ID

#endif
