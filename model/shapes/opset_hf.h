/* How the tables of the op sets that follow docs/step-pytorch.md are written. Internal to model/shapes/opset_hf*.c. */
#ifndef OOMCAST_OPSET_HF_H
#define OOMCAST_OPSET_HF_H

#include "model/shapes/rows.h"

/* Tables, one row a tensor. */

#define AMP      OC_F_AMP
#define R16      OC_F_STREAM16
#define EAGER    OC_F_EAGER
#define GQA      OC_F_GQA
#define BATCH1   OC_F_BATCH1
#define RMS      OC_F_EAGER_NORM
#define GATED    OC_F_GATED
#define LF       OC_F_LOGITS32
#define QKNORM   OC_F_QK_NORM
#define ROPE     OC_F_ROPE
#define QKCAST   OC_F_QK_CAST
#define FUSEDQKV OC_F_FUSED_QKV
#define DROP     OC_F_DROPOUT
#define PARALLEL OC_F_PARALLEL
#define REPEAT   OC_F_REPEAT_KV
#define COMPILED OC_F_COMPILED

/* A tensor of forward that nothing keeps: it dies at `death`, in the forward of a checkpointed layer at `forgotten`. */
#define LOST(part, name_, need_, without_, role_, birth_, death_, forgotten_, why_, ...)                               \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .death = OC_FWD(part, death_), .forgotten = forgotten_, .keep = OC_F_NEVER,     \
        .why = why_, .dims = {                                                                                         \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* One that backward needs unless one of the facts `free_` holds: it dies at `release`, else where no-grad mode forgets
 * it. */
#define KEPT_UNLESS(free_, part, name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)               \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .death = OC_FWD(part, forgotten_), .forgotten = forgotten_, .drop = free_,      \
        .release = OC_BWD(part, release_), .why = why_, .dims = {                                                      \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define KEPT(...) KEPT_UNLESS(0, __VA_ARGS__)
/* One that torchtitan's per-op list keeps when the rest of the layer is recomputed. */
#define LISTED(name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)                                 \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .listed = true,                       \
        .birth = OC_FWD(LAYER, birth_), .death = OC_FWD(LAYER, forgotten_), .forgotten = forgotten_,                   \
        .release = OC_BWD(LAYER, release_), .why = why_, .dims = {                                                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* A copy beside those of the recomputation, which begins with what the per-op list has kept. */
#define FROM_LIST(name_, birth_, release_, why_, ...)                                                                  \
    {                                                                                                                  \
        .name = name_, .need = OC_F_PER_OP, .role = OC_R_COMPUTE, .mode = OC_ONLY_FORWARD,                             \
        .birth = OC_FWD(LAYER, birth_), .release = OC_BWD(LAYER, release_), .why = why_, .dims = {                     \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* One that a checkpoint around attention's core (recompute.modules=core_attn) forgets and makes again. */
#define CORE(part, name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)                             \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .module = OC_MODULE_CORE_ATTN, .birth = OC_FWD(part, birth_), .death = OC_FWD(part, forgotten_),               \
        .forgotten = forgotten_, .release = OC_BWD(part, release_), .why = why_, .dims = {                             \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* An input of that core: lost unless the checkpoint keeps it. */
#define INTO_CORE(part, name_, need_, without_, role_, birth_, death_, why_, ...)                                      \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .death = OC_FWD(part, death_), .forgotten = death_, .keep = OC_F_CORE,          \
        .release = OC_BWD(part, 26), .why = why_, .dims = {                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* A tensor of the head or the loss that dies at loss sub-step `death`; one that backward needs until `release`. */
#define UNTIL_LOSS(name_, need_, without_, role_, birth_, death_, why_, ...)                                           \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = OC_END_HERE, .birth = birth_,  \
        .death = OC_LOSS_AT(death_), .keep = OC_F_NEVER, .why = why_, .dims = {                                        \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define FROM_LOSS(name_, need_, without_, role_, birth_, release_, why_, ...)                                          \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = OC_END_HERE, .birth = birth_,  \
        .release = release_, .why = why_, .dims = {                                                                    \
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
        KEPT_UNLESS(OC_F_FREE_NORM, part, p ".normalized", (need_) | RMS, R16, FP32, b + 2, b + 5, g + 1, SCALING, T,  \
                    H),                                                                                                \
        KEPT_UNLESS(OC_F_FREE_NORM, part, p ".normalized", (need_) | RMS | R16, 0, NORMALIZED, b + 3, b + 5, g + 1,    \
                    SCALING, T, H),                                                                                    \
        KEPT(part, p ".mean", (need_) | OC_F_LAYERNORM, 0, FP32, b + 2, b + 3, g + 4, "one a row, fp32 on CUDA", T),   \
        KEPT(part, p ".rstd", need_, RMS, FP32, b + 2, b + 3, g + 4, "one a row, fp32 on CUDA", T),                    \
        BACK(part, p ".grad_product", (need_) | RMS, OC_F_FREE_NORM, STREAM, g, g + 1,                                 \
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
#define LINEAR_GRADIENT(part, name_, need_, without_, s, death_)                                                       \
    BACK(part, name_, need_, (without_) | AMP, COMPUTE, s, death_, "gradient of a linear's input", T, H),              \
        BACK(part, name_, (need_) | AMP, without_, COMPUTE, s, s + 3, "gradient of the cast input", T, H),             \
        BACK(part, name_ "_fp32", (need_) | AMP, without_, STREAM, s + 2, death_, "cast back by autocast", T, H)

#define CAST_WHY   "autocast: every linear casts its own input and keeps the cast"
#define BATCH_WHY  "heads made contiguous for the batched product"
#define REPEAT_WHY "grouped heads are written out for every query head"
#define MASK_WHY   "dropout mask, one byte an element (CUDA native_dropout)"

#endif
