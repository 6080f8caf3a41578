/* What Hugging Face transformers' eager decoders allocate in one step, tensor by tensor: docs/step-pytorch.md as a
 * table.
 *
 * Sub-steps of a layer. Forward: norm1 1-6, projections 7-9, rope 10, attention 11-20, output projection 21, residual
 * 22, norm2 23-28, MLP 28-32, residual 33, return 34. Backward: MLP 0-10, norm2 11-16, output projection 17-19,
 * attention 20-29, rope 30-31, projections 32-40, norm1 41-46, end 48. Of the head. Forward: norm 1-6, product 7; loss
 * 0-2. Backward: loss 0-2, product 3-5, norm 6-10. */
#include "model/shapes/opset.h"

/* clang-format off: a table, one row a tensor */
#define T OC_D_TOKENS
#define H OC_D_HIDDEN
#define Q OC_D_Q
#define K OC_D_K
#define F OC_D_FFN
#define V OC_D_VOCAB
#define S OC_D_SCORES
#define A OC_D_ROWS

#define AMP    OC_F_AMP
#define HALF   OC_F_HALF
#define R16    OC_F_STREAM16
#define EAGER  OC_F_EAGER
#define FLASH  OC_F_FLASH
#define GQA    OC_F_GQA
#define BATCH1 OC_F_BATCH1
#define RMS    OC_F_EAGER_NORM
#define GATED  OC_F_GATED
#define LF     OC_F_LOGITS32
#define NORM2  OC_F_TWO_NORMS
#define QKNORM OC_F_QK_NORM

#define END_EMBED OC_END_HERE
#define END_LAYER 0
#define END_HEAD  OC_END_HERE

/* A tensor of forward that nothing keeps: it dies at `death`, in the forward of a checkpointed layer at `forgotten`. */
#define LOST(part, name_, need_, without_, role_, birth_, death_, forgotten_, why_, ...)                               \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .death = OC_FWD(part, death_), .forgotten = forgotten_, .keep = OC_F_NEVER,     \
        .why = why_, .dims = {                                                                                         \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* One that backward needs: it dies at `release`. */
#define KEPT(part, name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)                             \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .forgotten = forgotten_, .release = OC_BWD(part, release_), .why = why_,        \
        .dims = {                                                                                                      \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* A temporary of backward. */
#define BACK(part, name_, need_, without_, role_, birth_, death_, why_, ...)                                           \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_BWD(part, birth_), .death = OC_BWD(part, death_), .keep = OC_F_NEVER, .why = why_, .dims = {       \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

#define FP32_INPUT "an eager RMSNorm computes in fp32: the copy of its input is kept"
#define SCALING    "kept for the gradient of the norm's weight"

/* A norm from forward sub-step b, backward sub-step g, up to the gradient of its input. */
#define NORM(part, p, need_, b, g)                                                                                     \
    KEPT(part, p ".input_fp32", (need_) | RMS | R16, 0, FP32, b, b + 3, g + 4, FP32_INPUT, T, H),                      \
        LOST(part, p ".square", (need_) | RMS, 0, FP32, b + 1, b + 2, b + 2, "x^2, before its mean", T, H),            \
        LOST(part, p ".variance", (need_) | RMS, 0, FP32, b + 1, b + 5, b + 5, "mean of x^2, one a row", T),           \
        KEPT(part, p ".rsqrt", (need_) | RMS, 0, FP32, b + 2, b + 3, g + 4, "one a row, kept by the scaling", T),      \
        LOST(part, p ".normalized_fp32", (need_) | RMS | R16, 0, FP32, b + 2, b + 5, b + 5,                            \
             "fp32, until it is cast back", T, H),                                                                     \
        KEPT(part, p ".normalized", (need_) | RMS, R16, FP32, b + 2, b + 5, g + 1, SCALING, T, H),                     \
        KEPT(part, p ".normalized", (need_) | RMS | R16, 0, STREAM, b + 3, b + 5, g + 1, SCALING, T, H),               \
        KEPT(part, p ".mean", (need_) | OC_F_LAYERNORM, 0, FP32, b + 2, b + 3, g + 4, "one a row, fp32 on CUDA", T),   \
        KEPT(part, p ".rstd", need_, RMS, FP32, b + 2, b + 3, g + 4, "one a row, fp32 on CUDA", T),                    \
        BACK(part, p ".grad_product", (need_) | RMS, 0, STREAM, g, g + 1,                                              \
             "summed into the gradient of the norm's weight", T, H),                                                   \
        BACK(part, p ".grad_normalized", (need_) | RMS, R16, STREAM, g, g + 3, "gradient of the normalized input", T,  \
             H),                                                                                                       \
        BACK(part, p ".grad_normalized", (need_) | RMS | R16, 0, STREAM, g, g + 2, "gradient of the normalized input", \
             T, H),                                                                                                    \
        BACK(part, p ".grad_normalized_fp32", (need_) | RMS | R16, 0, FP32, g + 1, g + 3, "the same in fp32", T, H),   \
        BACK(part, p ".grad_rsqrt", (need_) | RMS, 0, FP32, g + 2, g + 3, "summed over each row", T, H),               \
        BACK(part, p ".grad_mean", (need_) | RMS, 0, FP32, g + 3, g + 4, "gradient of the mean, spread over the row",  \
             T, H),                                                                                                    \
        BACK(part, p ".twice_input", (need_) | RMS, 0, FP32, g + 3, g + 4, "2x, of the square's gradient", T, H),      \
        BACK(part, p ".grad_square", (need_) | RMS, 0, FP32, g + 3, g + 4, "added into the gradient of the input", T,  \
             H)

/* The gradient of a layer norm's input, until it has been added into the residual's. */
#define NORM_GRADIENT(p, need_, g)                                                                                     \
    BACK(LAYER, p ".grad_input_fp32", (need_) | RMS | R16, 0, FP32, g + 2, g + 5, "gradient of the input, fp32", T,    \
         H),                                                                                                           \
        BACK(LAYER, p ".grad_input", (need_) | RMS, R16, FP32, g + 2, g + 6, "added into the residual's gradient", T,  \
             H),                                                                                                       \
        BACK(LAYER, p ".grad_input", (need_) | RMS | R16, 0, STREAM, g + 4, g + 6,                                     \
             "added into the residual's gradient", T, H),                                                              \
        BACK(LAYER, p ".grad_input", need_, RMS, STREAM, g, g + 6, "added into the residual's gradient", T, H)

/* The gradient of a linear's input: in the compute type; under autocast then cast back to the stream's. */
#define LINEAR_GRADIENT(part, name_, need_, s, death_)                                                                 \
    BACK(part, name_, need_, AMP, COMPUTE, s, death_, "gradient of a linear's input", T, H),                           \
        BACK(part, name_, (need_) | AMP, 0, COMPUTE, s, s + 3, "gradient of the cast input", T, H),                    \
        BACK(part, name_ "_fp32", (need_) | AMP, 0, STREAM, s + 2, death_, "cast back by autocast", T, H)

#define CAST_WHY   "autocast: every linear casts its own input and keeps the cast"
#define BATCH_WHY  "heads made contiguous for the batched product"
#define REPEAT_WHY "grouped heads are written out for every query head"

static const struct oc_tensor rows[] = {
    /* ---- micro-batch ---- */
    {.name = "batch.ids",
     .dims = {T},
     .role = OC_R_INT64,
     .buffer = true,
     .birth = OC_FWD(EMBED, 0),
     .release = OC_BWD(EMBED, 1),
     .why = "token ids of the micro-batch"},
    {.name = "batch.labels",
     .dims = {T},
     .role = OC_R_INT64,
     .buffer = true,
     .birth = OC_FWD(EMBED, 0),
     .release = OC_BWD(EMBED, 1),
     .why = "labels of the micro-batch"},
    KEPT(EMBED, "embedding.position_ids", OC_F_LEARNED, 0, INT64, 0, 0, 1, "indices of the position embedding",
         OC_D_SEQ),
    LOST(EMBED, "embedding.output", 0, 0, STREAM, 0, 1, 1, "becomes the first layer's input", T, H),
    KEPT(EMBED, "embedding.dropout_mask", OC_F_DROPOUT, 0, BOOL, 0, 0, 1, "one byte an element (CUDA native_dropout)",
         T, H),
    {.name = "rope.cos",
     .dims = {OC_D_SEQ, OC_D_HEAD},
     .role = OC_R_STREAM,
     .need = OC_F_ROPE,
     .birth = OC_FWD(EMBED, 0),
     .release = OC_BWD(EMBED, 0),
     .why = "table shared by all layers, in the stream's type"},
    {.name = "rope.sin",
     .dims = {OC_D_SEQ, OC_D_HEAD},
     .role = OC_R_STREAM,
     .need = OC_F_ROPE,
     .birth = OC_FWD(EMBED, 0),
     .release = OC_BWD(EMBED, 0),
     .why = "table shared by all layers, in the stream's type"},
    {.name = "attention_mask",
     .dims = {OC_D_MASK},
     .role = OC_R_STREAM,
     .need = EAGER,
     .birth = OC_FWD(EMBED, 0),
     .death = OC_FWD(HEAD, 6),
     .keep = OC_F_FULL,
     .release = OC_BWD(EMBED, 0),
     .why = "additive mask of eager attention"},

    /* ---- layer: input and attention, forward ---- */
    {.name = "layers.input",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .without = OC_F_FULL,
     .need = RMS | R16,
     .birth = OC_FWD(LAYER, 0),
     .death = OC_FWD(LAYER, 34),
     .keep = OC_F_NEVER,
     .why = "held until the layer returns; the norm keeps a copy"},
    {.name = "layers.input",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .without = OC_F_FULL | RMS,
     .need = R16,
     .birth = OC_FWD(LAYER, 0),
     .release = OC_BWD(LAYER, 45),
     .why = "the norm keeps its input"},
    {.name = "layers.input",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .without = OC_F_FULL | R16,
     .birth = OC_FWD(LAYER, 0),
     .release = OC_BWD(LAYER, 45),
     .why = "the norm keeps its input, which is fp32 already"},
    {.name = "layers.checkpoint",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .need = OC_F_FULL,
     .birth = OC_FWD(LAYER, 0),
     .release = OC_BWD(LAYER, 48),
     .why = "full recompute keeps the layer's input, nothing else"},
    NORM(LAYER, "layers.norm1", 0, 1, 41),
    KEPT(LAYER, "layers.norm1.output", 0, AMP, STREAM, 5, 22, 39, "input of q, k and v, kept once", T, H),
    LOST(LAYER, "layers.norm1.output", AMP, 0, STREAM, 5, 22, 22, "held until attention has returned", T, H),
    KEPT(LAYER, "layers.attention.q_input_cast", AMP, 0, COMPUTE, 7, 8, 39, CAST_WHY, T, H),
    LOST(LAYER, "layers.attention.q", 0, 0, COMPUTE, 7, 11, 11, "before rope", T, Q),
    KEPT(LAYER, "layers.attention.k_input_cast", AMP, 0, COMPUTE, 8, 9, 36, CAST_WHY, T, H),
    LOST(LAYER, "layers.attention.k", 0, 0, COMPUTE, 8, 11, 11, "before rope", T, K),
    KEPT(LAYER, "layers.attention.v_input_cast", AMP, 0, COMPUTE, 9, 10, 33, CAST_WHY, T, H),
    KEPT(LAYER, "layers.attention.v", FLASH, 0, COMPUTE, 9, 22, 21, "kept by attention", T, K),
    KEPT(LAYER, "layers.attention.v", EAGER | BATCH1, GQA, COMPUTE, 9, 22, 21, "operand of the weighted sum", T, K),
    LOST(LAYER, "layers.attention.v", EAGER, GQA | BATCH1, COMPUTE, 9, 22, 22, "held until attention has returned", T,
         K),
    LOST(LAYER, "layers.attention.v", EAGER | GQA, 0, COMPUTE, 9, 22, 22, "held until attention has returned", T, K),
    KEPT(LAYER, "layers.attention.q_norm_input", QKNORM, 0, FP32, 9, 10, 32, "the norm over query heads keeps fp32", T,
         Q),
    KEPT(LAYER, "layers.attention.k_norm_input", QKNORM, 0, FP32, 9, 10, 32, "the norm over key heads keeps fp32", T,
         K),
    KEPT(LAYER, "layers.attention.q_normalized", QKNORM, 0, STREAM, 9, 10, 32, SCALING, T, Q),
    KEPT(LAYER, "layers.attention.k_normalized", QKNORM, 0, STREAM, 9, 10, 32, SCALING, T, K),
    KEPT(LAYER, "layers.attention.q_rsqrt", QKNORM, 0, FP32, 9, 10, 32, "one a head and token", A),
    KEPT(LAYER, "layers.attention.k_rsqrt", QKNORM, 0, FP32, 9, 10, 32, "one a head and token", OC_D_KROWS),
    KEPT(LAYER, "layers.attention.q_rope", FLASH, AMP, STREAM, 10, 22, 21, "kept by attention", T, Q),
    KEPT(LAYER, "layers.attention.k_rope", FLASH, AMP, STREAM, 10, 22, 21, "kept by attention", T, K),
    KEPT(LAYER, "layers.attention.q_rope", EAGER | BATCH1, AMP, STREAM, 10, 22, 26, "operand of the scores", T, Q),
    LOST(LAYER, "layers.attention.q_rope", EAGER, AMP | BATCH1, STREAM, 10, 22, 22, "before heads are made contiguous",
         T, Q),
    KEPT(LAYER, "layers.attention.k_rope", EAGER | BATCH1, AMP | GQA, STREAM, 10, 22, 26, "operand of the scores", T,
         K),
    LOST(LAYER, "layers.attention.k_rope", EAGER, AMP | GQA | BATCH1, STREAM, 10, 22, 22,
         "before heads are made contiguous", T, K),
    LOST(LAYER, "layers.attention.k_rope", EAGER | GQA, AMP, STREAM, 10, 22, 22, "before it is repeated", T, K),
    LOST(LAYER, "layers.attention.q_rope", AMP, 0, STREAM, 10, 22, 22, "fp32, as rope's tables are", T, Q),
    LOST(LAYER, "layers.attention.k_rope", AMP, 0, STREAM, 10, 22, 22, "fp32, as rope's tables are", T, K),

    /* flash */
    KEPT(LAYER, "layers.attention.q_cast", FLASH | AMP, 0, COMPUTE, 11, 22, 21, "attention runs in the autocast type",
         T, Q),
    KEPT(LAYER, "layers.attention.k_cast", FLASH | AMP, 0, COMPUTE, 11, 22, 21, "attention runs in the autocast type",
         T, K),
    KEPT(LAYER, "layers.attention.output", FLASH, 0, COMPUTE, 11, 22, 21,
         "kept once by attention and the projection after it", T, Q),
    KEPT(LAYER, "layers.attention.logsumexp", FLASH, 0, FP32, 11, 22, 21, "one number a row instead of the scores", A),

    /* eager */
    KEPT(LAYER, "layers.attention.k_repeated", EAGER | GQA, AMP, STREAM, 11, 20, 26, REPEAT_WHY, T, Q),
    LOST(LAYER, "layers.attention.k_repeated", EAGER | GQA | AMP, 0, STREAM, 11, 20, 20, REPEAT_WHY, T, Q),
    KEPT(LAYER, "layers.attention.v_repeated", EAGER | GQA, 0, COMPUTE, 11, 20, 21, REPEAT_WHY, T, Q),
    KEPT(LAYER, "layers.attention.q_operand", EAGER | AMP, 0, COMPUTE, 12, 20, 26, "cast by autocast", T, Q),
    KEPT(LAYER, "layers.attention.k_operand", EAGER | AMP, 0, COMPUTE, 12, 20, 26, "cast by autocast", T, Q),
    KEPT(LAYER, "layers.attention.q_operand", EAGER, AMP | BATCH1, COMPUTE, 12, 20, 26, BATCH_WHY, T, Q),
    KEPT(LAYER, "layers.attention.k_operand", EAGER, AMP | BATCH1 | GQA, COMPUTE, 12, 20, 26, BATCH_WHY, T, Q),
    LOST(LAYER, "layers.attention.scores", EAGER, 0, COMPUTE, 13, 15, 15, "q k^T", S),
    LOST(LAYER, "layers.attention.scores_scaled", EAGER, 0, COMPUTE, 14, 16, 16, "times 1/sqrt(head_dim)", S),
    LOST(LAYER, "layers.attention.scores_masked", EAGER, 0, STREAM, 15, 18, 18, "plus the mask, in the mask's type", S),
    KEPT(LAYER, "layers.attention.softmax", EAGER | HALF, AMP, FP32, 16, 20, 23,
         "softmax runs in fp32 and keeps its result", S),
    KEPT(LAYER, "layers.attention.softmax", EAGER | AMP, 0, FP32, 16, 34, 23,
         "softmax runs in fp32 and keeps its result", S),
    KEPT(LAYER, "layers.attention.softmax", EAGER, HALF, FP32, 16, 34, 23,
         "kept once by softmax and by the weighted sum", S),
    KEPT(LAYER, "layers.attention.probabilities", EAGER | HALF, AMP | OC_F_ATTN_DROP, COMPUTE, 17, 34, 21,
         "a 16-bit copy that the weighted sum keeps", S),
    KEPT(LAYER, "layers.attention.dropout_mask", EAGER | OC_F_ATTN_DROP, 0, BOOL, 17, 18, 22, "one byte an element", S),
    KEPT(LAYER, "layers.attention.dropped", EAGER | OC_F_ATTN_DROP, AMP, COMPUTE, 17, 34, 21,
         "probabilities after dropout, kept by the weighted sum", S),
    KEPT(LAYER, "layers.attention.probabilities_cast", EAGER | AMP, 0, COMPUTE, 18, 20, 21,
         "autocast's copy, kept by the weighted sum", S),
    KEPT(LAYER, "layers.attention.v_operand", EAGER, BATCH1 | GQA, COMPUTE, 19, 20, 21, BATCH_WHY, T, Q),
    LOST(LAYER, "layers.attention.heads", EAGER, 0, COMPUTE, 19, 21, 21, "before heads are merged", T, Q),
    KEPT(LAYER, "layers.attention.output", EAGER, 0, COMPUTE, 20, 22, 19, "input of the output projection", T, Q),

    LOST(LAYER, "layers.attention.projected", 0, 0, COMPUTE, 21, 23, 23, "added to the residual", T, H),
    KEPT(LAYER, "layers.attention.projected_mask", OC_F_DROPOUT, 0, BOOL, 21, 22, 18,
         "dropout mask, one byte an element", T, H),

    /* ---- layer: MLP, forward ---- */
    KEPT(LAYER, "layers.residual", 0, R16, STREAM, 22, 34, 15, "the norm keeps its input, which is fp32 already", T, H),
    KEPT(LAYER, "layers.residual", R16 | NORM2, RMS, STREAM, 22, 34, 15, "the norm keeps its input", T, H),
    LOST(LAYER, "layers.residual", R16 | RMS, 0, STREAM, 22, 34, 34,
         "held until the layer returns; the norm keeps a copy", T, H),
    NORM(LAYER, "layers.norm2", NORM2, 23, 11),
    KEPT(LAYER, "layers.norm2.output", NORM2, AMP, STREAM, 27, 33, 9, "input of the MLP, kept once", T, H),
    LOST(LAYER, "layers.norm2.output", NORM2 | AMP, 0, STREAM, 27, 33, 33, "held until the MLP has returned", T, H),
    KEPT(LAYER, "layers.mlp.fc1_input_cast", AMP, 0, COMPUTE, 28, 29, 9, CAST_WHY, T, H),
    KEPT(LAYER, "layers.mlp.fc1_output", 0, 0, COMPUTE, 28, 30, 8, "the activation function keeps its input", T, F),
    KEPT(LAYER, "layers.mlp.activated", GATED, 0, COMPUTE, 29, 32, 4, "kept by the product of gate and up", T, F),
    KEPT(LAYER, "layers.mlp.up_input_cast", GATED | AMP, 0, COMPUTE, 30, 31, 5, CAST_WHY, T, H),
    KEPT(LAYER, "layers.mlp.up_output", GATED, 0, COMPUTE, 30, 32, 4, "kept by the product of gate and up", T, F),
    KEPT(LAYER, "layers.mlp.fc2_input", 0, 0, COMPUTE, 31, 33, 2, "kept by the last linear", T, F),
    LOST(LAYER, "layers.mlp.projected", 0, 0, COMPUTE, 32, 34, 34, "added to the residual", T, H),
    KEPT(LAYER, "layers.mlp.projected_mask", OC_F_DROPOUT, 0, BOOL, 32, 33, 1, "dropout mask, one byte an element", T,
         H),
    {.name = "layers.output",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .birth = OC_FWD(LAYER, 33),
     .death = OC_FWD(LAYER, 35),
     .forgotten = 35,
     .keep = OC_F_NEVER,
     .why = "becomes the next layer's input"},
    {.name = "layers.output",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_RECOMPUTE,
     .need = OC_F_FULL,
     .birth = OC_FWD(LAYER, 33),
     .release = OC_BWD(LAYER, 48),
     .why = "recomputed, held until the layer's backward has ended"},

    /* ---- head: forward and loss ---- */
    {.name = "head.input",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .need = RMS | R16,
     .birth = OC_FWD(HEAD, 0),
     .death = OC_FWD(HEAD, 6),
     .keep = OC_F_NEVER,
     .why = "the final norm keeps a copy"},
    KEPT(HEAD, "head.input", R16, RMS, STREAM, 0, 0, 10, "the final norm keeps its input", T, H),
    KEPT(HEAD, "head.input", 0, R16, STREAM, 0, 0, 10, "the final norm keeps its input, which is fp32 already", T, H),
    NORM(HEAD, "head.norm", 0, 1, 6),
    KEPT(HEAD, "head.norm.output", 0, AMP, STREAM, 5, 0, 4, "input of the output layer", T, H),
    {.name = "head.norm.output",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .need = AMP,
     .birth = OC_FWD(HEAD, 5),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "held until the loss has been computed"},
    KEPT(HEAD, "head.input_cast", AMP, 0, COMPUTE, 7, 0, 4, CAST_WHY, T, H),
    {.name = "logits",
     .dims = {T, V},
     .role = OC_R_COMPUTE,
     .end = OC_END_HERE,
     .birth = OC_FWD(HEAD, 7),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "the loss's graph holds log-probabilities, not logits"},
    {.name = "logits.fp32",
     .dims = {T, V},
     .role = OC_R_FP32,
     .end = OC_END_HERE,
     .need = LF,
     .birth = OC_LOSS_AT(0),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "logits.float() before the cross entropy"},
    {.name = "log_probabilities",
     .dims = {T, V},
     .role = OC_R_LOGPROB,
     .end = OC_END_HERE,
     .birth = OC_LOSS_AT(1),
     .release = OC_BWD(HEAD, 2),
     .why = "log-softmax keeps its result"},

    /* ---- head: backward ---- */
    BACK(HEAD, "grad_log_probabilities", 0, 0, LOGPROB, 0, 2, "gradient of the negative log-likelihood, mostly zeros",
         T, V),
    BACK(HEAD, "grad_logits.fp32", LF, 0, LOGPROB, 1, 3, "gradient of log-softmax", T, V),
    BACK(HEAD, "grad_logits", LF, 0, COMPUTE, 2, 4, "cast back to the type of the logits", T, V),
    BACK(HEAD, "grad_logits", 0, LF, LOGPROB, 1, 4, "gradient of log-softmax", T, V),
    LINEAR_GRADIENT(HEAD, "head.grad_norm_output", 0, 3, 7),
    BACK(HEAD, "head.norm.grad_input_fp32", RMS | R16, 0, FP32, 8, 11, "gradient of the input, fp32", T, H),
    {.name = "grad_residual",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .need = RMS | R16,
     .birth = OC_BWD(HEAD, 10),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "the gradient that travels down the residual stream"},
    {.name = "grad_residual",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .need = RMS,
     .without = R16,
     .birth = OC_BWD(HEAD, 8),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "the gradient that travels down the residual stream"},
    {.name = "grad_residual",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .without = RMS,
     .birth = OC_BWD(HEAD, 6),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "the gradient that travels down the residual stream"},
    {.name = "grad_residual",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_ELSEWHERE,
     .birth = OC_BWD(HEAD, 0),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "received from the next stage"},

    /* ---- layer: backward ---- */
    BACK(LAYER, "layers.mlp.grad_projected_cast", AMP, 0, COMPUTE, 0, 2, "the residual's gradient in the autocast type",
         T, H),
    BACK(LAYER, "layers.mlp.grad_fc2_input", GATED, 0, COMPUTE, 1, 4, "gradient of the product", T, F),
    BACK(LAYER, "layers.mlp.grad_fc2_input", 0, GATED, COMPUTE, 1, 8, "gradient of the activated", T, F),
    BACK(LAYER, "layers.mlp.grad_activated", GATED, 0, COMPUTE, 3, 8, "product rule, gate side", T, F),
    BACK(LAYER, "layers.mlp.grad_up_output", GATED, 0, COMPUTE, 3, 5, "product rule, up side", T, F),
    LINEAR_GRADIENT(LAYER, "layers.mlp.grad_up_input", GATED, 4, 12),
    BACK(LAYER, "layers.mlp.grad_fc1_output", 0, 0, COMPUTE, 7, 9, "gradient of the activation's input", T, F),
    LINEAR_GRADIENT(LAYER, "layers.mlp.grad_fc1_input", 0, 8, 11),
    NORM_GRADIENT("layers.norm2", NORM2, 11),
    BACK(LAYER, "layers.grad_residual_sum", OC_F_FULL, 0, STREAM, 16, 48,
         "a checkpoint cannot add into the gradient it was given", T, H),
    BACK(LAYER, "layers.attention.grad_projected_cast", AMP, 0, COMPUTE, 17, 19,
         "the residual's gradient in the autocast type", T, H),
    BACK(LAYER, "layers.attention.grad_output", 0, 0, COMPUTE, 18, 21, "gradient of the merged heads", T, Q),

    /* flash */
    BACK(LAYER, "layers.attention.grad_q", FLASH, AMP, COMPUTE, 20, 32, "before rope's backward", T, Q),
    BACK(LAYER, "layers.attention.grad_q", FLASH | AMP, 0, COMPUTE, 20, 22, "before it is cast back", T, Q),
    BACK(LAYER, "layers.attention.grad_k", FLASH, AMP, COMPUTE, 20, 31, "before rope's backward", T, K),
    BACK(LAYER, "layers.attention.grad_k", FLASH | AMP, 0, COMPUTE, 20, 23, "before it is cast back", T, K),
    BACK(LAYER, "layers.attention.grad_v", FLASH, 0, COMPUTE, 20, 33, "gradient of the values", T, K),
    BACK(LAYER, "layers.attention.delta", FLASH, 0, FP32, 20, 21, "row sums of output times its gradient", A),
    BACK(LAYER, "layers.attention.grad_q_fp32", FLASH | AMP, 0, FP32, 21, 32, "cast back by autocast", T, Q),
    BACK(LAYER, "layers.attention.grad_k_fp32", FLASH | AMP, 0, FP32, 22, 31, "cast back by autocast", T, K),

    /* eager */
    BACK(LAYER, "layers.attention.grad_probabilities", EAGER | HALF, 0, COMPUTE, 20, 22,
         "gradient of the probabilities", S),
    BACK(LAYER, "layers.attention.grad_probabilities", EAGER, HALF, COMPUTE, 20, 23, "gradient of the probabilities",
         S),
    BACK(LAYER, "layers.attention.grad_v_repeated", EAGER | GQA, 0, COMPUTE, 20, 27, "before groups are summed", T, Q),
    BACK(LAYER, "layers.attention.grad_v", EAGER, GQA, COMPUTE, 20, 33, "gradient of the values", T, Q),
    BACK(LAYER, "layers.attention.grad_probabilities_fp32", EAGER | HALF, 0, FP32, 21, 23, "cast back for the softmax",
         S),
    BACK(LAYER, "layers.attention.grad_scores", EAGER, AMP, STREAM, 22, 25, "gradient of the softmax's input", S),
    BACK(LAYER, "layers.attention.grad_scores", EAGER | AMP, 0, STREAM, 22, 24, "gradient of the softmax's input", S),
    BACK(LAYER, "layers.attention.grad_scores_cast", EAGER | AMP, 0, COMPUTE, 23, 25, "back to the type of the scores",
         S),
    BACK(LAYER, "layers.attention.grad_scores_scaled", EAGER, 0, COMPUTE, 24, 26, "times 1/sqrt(head_dim)", S),
    BACK(LAYER, "layers.attention.grad_q", EAGER, AMP, COMPUTE, 25, 32, "before rope's backward", T, Q),
    BACK(LAYER, "layers.attention.grad_q", EAGER | AMP, 0, COMPUTE, 25, 29, "before it is cast back", T, Q),
    BACK(LAYER, "layers.attention.grad_k_repeated", EAGER | GQA, 0, COMPUTE, 25, 28, "before groups are summed", T, Q),
    BACK(LAYER, "layers.attention.grad_k", EAGER, GQA | AMP, COMPUTE, 25, 31, "before rope's backward", T, K),
    BACK(LAYER, "layers.attention.grad_k", EAGER | AMP, GQA, COMPUTE, 25, 30, "before it is cast back", T, K),
    BACK(LAYER, "layers.attention.grad_v", EAGER | GQA, 0, COMPUTE, 26, 33, "gradient of the values", T, K),
    BACK(LAYER, "layers.attention.grad_k", EAGER | GQA, AMP, COMPUTE, 27, 31, "before rope's backward", T, K),
    BACK(LAYER, "layers.attention.grad_k", EAGER | GQA | AMP, 0, COMPUTE, 27, 30, "before it is cast back", T, K),
    BACK(LAYER, "layers.attention.grad_q_fp32", EAGER | AMP, 0, FP32, 28, 32, "cast back by autocast", T, Q),
    BACK(LAYER, "layers.attention.grad_k_fp32", EAGER | AMP, 0, FP32, 29, 31, "cast back by autocast", T, K),

    /* rope, projections */
    BACK(LAYER, "layers.attention.grad_k_output", 0, 0, COMPUTE, 30, 36, "gradient of the key projection", T, K),
    BACK(LAYER, "layers.attention.grad_q_output", 0, 0, COMPUTE, 31, 39, "gradient of the query projection", T, Q),
    LINEAR_GRADIENT(LAYER, "layers.attention.grad_v_input", 0, 32, 42),
    LINEAR_GRADIENT(LAYER, "layers.attention.grad_k_input", 0, 35, 38),
    LINEAR_GRADIENT(LAYER, "layers.attention.grad_q_input", 0, 38, 41),
    NORM_GRADIENT("layers.norm1", 0, 41),
    {0}};
/* clang-format on */

const struct oc_opset_rules oc_hf_rules = {
    .name = "hf",
    .source = "docs/step-pytorch.md; transformers modeling_llama.py",
    .rows = rows,
    .use = {[OC_USE_EMBED] = {0, 0},
            [OC_USE_NORM1] = {5, 41},
            [OC_USE_ROUTER] = {28, 8},
            [OC_USE_EXPERT_UP] = {29, 7},
            [OC_USE_EXPERT_DOWN] = {31, 1},
            [OC_USE_Q] = {7, 38},
            [OC_USE_K] = {8, 35},
            [OC_USE_V] = {9, 32},
            [OC_USE_OUT] = {21, 18},
            [OC_USE_NORM2] = {27, 11},
            [OC_USE_GATE] = {28, 8},
            [OC_USE_UP] = {30, 4},
            [OC_USE_DOWN] = {32, 1},
            [OC_USE_FINAL_NORM] = {5, 6},
            [OC_USE_HEAD] = {7, 3}},
    .module_backward = {[OC_MODULE_CORE_ATTN] = 20, [OC_MODULE_MLP] = 0, [OC_MODULE_LAYERNORM] = 0},
};
