/* What Hugging Face transformers' eager models allocate in one step, tensor by tensor: docs/step-pytorch.md as a table.
 * Here the micro-batch, the embedding, the head and the losses; a layer is in opset_hf_layer.c.
 *
 * Sub-steps of the head. Forward: norm 1-6, product 7; loss 0-2. Backward: loss 0-2, product 3-5, norm 6-10. */
#include "model/shapes/opset_hf.h"

/* A table, one row a tensor. */
#define NO_LM  (OC_F_NO_HEAD | OC_F_CLASSIFY)
#define FUSED  OC_F_FUSED_LOSS
#define LINEAR OC_F_LINEAR_LOSS
#define SHIFT  OC_F_SHIFTED
#define FINAL  OC_F_FINAL_NORM
#define HELD   OC_F_HELD

/* A tensor of the embedding that lives as long as its micro-batch. */
#define BATCH(name_, need_, without_, role_, buffer_, release_, why_, ...)                                             \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .buffer = buffer_,                    \
        .birth = OC_FWD(EMBED, 0), .release = OC_BWD(EMBED, release_), .why = why_, .dims = {                          \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define RESIDUAL(need_, without_, end_, birth_, death_, why_)                                                          \
    {                                                                                                                  \
        .name = "grad_residual", .dims = {T, H}, .role = OC_R_STREAM, .end = end_, .need = need_, .without = without_, \
        .birth = OC_BWD(HEAD, birth_), .death = death_, .keep = OC_F_NEVER, .why = why_                                \
    }
#define TRAVELS "the gradient that travels down the residual stream"

static const struct oc_tensor rows[] = {
    /* ---- micro-batch and embedding ---- */
    BATCH("batch.ids", 0, 0, INT64, true, 1, "token ids of the micro-batch", T),
    BATCH("batch.labels", 0, NO_LM, INT64, true, 1, "labels of the micro-batch", T),
    BATCH("embedding.position_ids", OC_F_LEARNED, 0, INT64, false, 1, "indices of the position embedding", OC_D_SEQ),
    LOST(EMBED, "embedding.output", 0, 0, STREAM, 0, 1, 1, "becomes the first layer's input", T, H),
    BATCH("embedding.sum", OC_F_EMBED_NORM, 0, STREAM, false, 1, "the norm after the embedding keeps its input", T, H),
    BATCH("embedding.mean", OC_F_EMBED_NORM | OC_F_LAYERNORM, 0, FP32, false, 1, "one a row", T),
    BATCH("embedding.rstd", OC_F_EMBED_NORM, 0, FP32, false, 1, "one a row", T),
    BATCH("embedding.dropout_mask", DROP, 0, BOOL, false, 1, MASK_WHY, T, H),
    BATCH("rope.cos", ROPE, 0, STREAM, false, 0, "table shared by all layers, in the stream's type", OC_D_SEQ,
          OC_D_HEAD),
    BATCH("rope.sin", ROPE, 0, STREAM, false, 0, "table shared by all layers, in the stream's type", OC_D_SEQ,
          OC_D_HEAD),
    {.name = "attention_mask",
     .dims = {OC_D_MASK},
     .role = OC_R_STREAM,
     .need = EAGER,
     .without = OC_F_ENCODER,
     .birth = OC_FWD(EMBED, 0),
     .death = OC_FWD(HEAD, 6),
     .keep = OC_F_FULL,
     .release = OC_BWD(EMBED, 0),
     .why = "additive mask of eager attention"},

    /* ---- head: forward ---- */
    {.name = "head.input",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .need = RMS | R16,
     .birth = OC_FWD(HEAD, 0),
     .death = OC_FWD(HEAD, 6),
     .keep = OC_F_NEVER,
     .why = "the final norm keeps a copy"},
    KEPT(HEAD, "head.input", R16, RMS, STREAM, 0, 0, 10, "the final norm (or the pooler) keeps its input", T, H),
    KEPT(HEAD, "head.input", 0, R16, STREAM, 0, 0, 10, "the final norm keeps its input, which is fp32 already", T, H),
    NORM(HEAD, "head.norm", FINAL, 1, 6),
    KEPT(HEAD, "head.norm.output", FINAL, AMP | LINEAR | OC_F_FREE_HEAD, STREAM, 5, 0, 4, "input of the output layer",
         T, H),
    UNTIL_LOSS("head.norm.output", FINAL | AMP, LINEAR | OC_F_FREE_HEAD, STREAM, OC_FWD(HEAD, 5), 2,
               "held until the loss has been computed", T, H),
    UNTIL_LOSS("head.norm.output", FINAL | OC_F_FREE_HEAD, LINEAR, STREAM, OC_FWD(HEAD, 5), 2,
               "a frozen output layer does not keep it: held until the loss has been computed", T, H),
    UNTIL_LOSS("head.norm.output", FINAL | LINEAR, 0, STREAM, OC_FWD(HEAD, 5), 2,
               "held until the loss has been computed", T, H),
    KEPT_UNLESS(OC_F_FREE_HEAD, HEAD, "head.input_cast", AMP, NO_LM | LINEAR, COMPUTE, 7, 8, 4, CAST_WHY, T, H),
    UNTIL_LOSS("logits", 0, NO_LM | LINEAR | FUSED, COMPUTE, OC_FWD(HEAD, 7), 2,
               "the loss's graph holds log-probabilities, not logits", T, V),
    UNTIL_LOSS("logits", FUSED | LF, NO_LM, COMPUTE, OC_FWD(HEAD, 7), 1, "until they have been cast to fp32", T, V),
    UNTIL_LOSS("logits", FUSED | SHIFT, NO_LM | LF, COMPUTE, OC_FWD(HEAD, 7), 2, "until they have been shifted", T, V),
    FROM_LOSS("logits", FUSED, NO_LM | LF | SHIFT, COMPUTE, OC_FWD(HEAD, 7), OC_BWD(HEAD, 4),
              "a fused loss turns them into their gradient in place", T, V),

    /* ---- loss ---- */
    UNTIL_LOSS("logits.fp32", LF, NO_LM | LINEAR | FUSED, FP32, OC_LOSS_AT(0), 2,
               "logits.float() before the cross entropy", T, V),
    UNTIL_LOSS("logits.fp32", LF | FUSED | SHIFT, NO_LM, FP32, OC_LOSS_AT(0), 2, "logits.float() before the loss", T,
               V),
    FROM_LOSS("logits.fp32", LF | FUSED, NO_LM | SHIFT, FP32, OC_LOSS_AT(0), OC_BWD(HEAD, 3),
              "a fused loss turns them into their gradient in place", T, V),
    UNTIL_LOSS("logits.shifted", SHIFT, NO_LM | LINEAR | FUSED, LOGPROB, OC_LOSS_AT(0), 2,
               "transformers before 4.48: logits[..., :-1, :].contiguous()", T, V),
    FROM_LOSS("logits.shifted", SHIFT | FUSED, NO_LM, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 3),
              "a fused loss turns them into their gradient in place", T, V),
    FROM_LOSS("log_probabilities", 0, NO_LM | LINEAR | FUSED, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 2),
              "log-softmax keeps its result", T, V),
    UNTIL_LOSS("logits.piece", LINEAR, NO_LM, COMPUTE, OC_LOSS_AT(0), 2, "logits of a piece of the tokens",
               OC_D_LOSS_ROWS, V),
    UNTIL_LOSS("logits.piece_fp32", LINEAR | HALF, NO_LM, FP32, OC_LOSS_AT(0), 2, "the same in fp32", OC_D_LOSS_ROWS,
               V),
    FROM_LOSS("head.grad_norm_output", LINEAR, NO_LM, COMPUTE, OC_LOSS_AT(0), OC_BWD(HEAD, 7),
              "a fused linear loss computes gradients in forward: of its input", T, H),
    FROM_LOSS("head.grad_output_weight", LINEAR, NO_LM | OC_F_FREE_HEAD, WEIGHTS, OC_LOSS_AT(0), OC_BWD(HEAD, 3),
              "a fused linear loss computes gradients in forward: of the output layer", V, H),

    /* ---- head: backward ---- */
    BACK(HEAD, "grad_log_probabilities", 0, NO_LM | LINEAR | FUSED, LOGPROB, 0, 2,
         "gradient of the negative log-likelihood, mostly zeros", T, V),
    BACK(HEAD, "grad_logits.fp32", LF, NO_LM | LINEAR | FUSED | SHIFT, LOGPROB, 1, 3, "gradient of log-softmax", T, V),
    BACK(HEAD, "grad_logits", LF, NO_LM | LINEAR | SHIFT, COMPUTE, 2, 4, "cast back to the type of the logits", T, V),
    BACK(HEAD, "grad_logits", LF | SHIFT, NO_LM | LINEAR, COMPUTE, 3, 4, "cast back to the type of the logits", T, V),
    BACK(HEAD, "grad_logits", 0, NO_LM | LINEAR | FUSED | LF | SHIFT, LOGPROB, 1, 4, "gradient of log-softmax", T, V),
    BACK(HEAD, "grad_logits.shifted", SHIFT, NO_LM | LINEAR | FUSED, LOGPROB, 1, 3, "gradient of log-softmax", T, V),
    BACK(HEAD, "grad_logits.whole", SHIFT | LF, NO_LM | LINEAR, LOGPROB, 2, 3,
         "zeros, and the shifted gradient in them", T, V),
    BACK(HEAD, "grad_logits.whole", SHIFT, NO_LM | LINEAR | LF, LOGPROB, 2, 4,
         "zeros, and the shifted gradient in them", T, V),
    LINEAR_GRADIENT(HEAD, "head.grad_norm_output", 0, LINEAR, 3, 7),
    BACK(HEAD, "head.norm.grad_input_fp32", FINAL | RMS | R16, 0, FP32, 8, 11, "gradient of the input, fp32", T, H),
    RESIDUAL(RMS | R16, HELD, OC_END_HERE, 10, OC_BWD(EMBED, 1), TRAVELS),
    RESIDUAL(RMS | R16 | HELD, 0, OC_END_HERE, 10, OC_BWD(HEAD, 63), TRAVELS),
    RESIDUAL(RMS, R16 | HELD, OC_END_HERE, 8, OC_BWD(EMBED, 1), TRAVELS),
    RESIDUAL(RMS | HELD, R16, OC_END_HERE, 8, OC_BWD(HEAD, 63), TRAVELS),
    RESIDUAL(0, RMS | HELD, OC_END_HERE, 6, OC_BWD(EMBED, 1), TRAVELS),
    RESIDUAL(HELD, RMS, OC_END_HERE, 6, OC_BWD(HEAD, 63), TRAVELS),
    RESIDUAL(0, 0, OC_END_ELSEWHERE, 0, OC_BWD(EMBED, 1), "received from the next stage"),
    BACK(EMBED, "embedding.grad_norm", OC_F_EMBED_NORM, 0, STREAM, 0, 1, "gradient of the embedding's sum", T, H),
    {0}};

const struct oc_opset_rules oc_hf_rules = {
    .name = "hf",
    .source = "docs/step-pytorch.md; transformers modeling_llama.py",
    .rows = rows,
    .layer_rows = oc_hf_layer,
    .expert_rows = oc_hf_experts,
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
