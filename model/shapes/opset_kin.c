/* torchtitan, torchtune and litgpt: Llama-like models whose layers keep what Hugging Face's do (opset_hf_layer.c), with
 * grouped keys and values written out, and with losses of their own. Sub-steps are those of opset_hf.c.
 *
 * Source: torchtitan @b5bcd76c models/llama, components/loss.py; torchtune @bd2a0fc7 modules/transformer.py,
 * modules/loss/ce_chunked_output_loss.py; litgpt model.py, utils.py chunked_cross_entropy. */
#include "model/shapes/opset_hf.h"

#include "model/frameworks/framework.h"

/* Tables, one row a tensor. */
#define CHUNKED OC_F_CHUNKED_LOSS
#define FREE    OC_F_FREE_HEAD
#define FUSED   OC_F_FUSED_LOSS
#define R       OC_D_LOSS_ROWS

#define BATCH(name_, need_, role_, buffer_, why_, ...)                                                                 \
    {                                                                                                                  \
        .name = name_, .need = need_, .role = OC_R_##role_, .buffer = buffer_, .birth = OC_FWD(EMBED, 0),              \
        .release = OC_BWD(EMBED, 1), .why = why_, .dims = {                                                            \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define RESIDUAL(need_, without_, end_, birth_, why_)                                                                  \
    {                                                                                                                  \
        .name = "grad_residual", .dims = {T, H}, .role = OC_R_STREAM, .end = end_, .need = need_, .without = without_, \
        .birth = OC_BWD(HEAD, birth_), .death = OC_BWD(EMBED, 1), .keep = OC_F_NEVER, .why = why_                      \
    }
#define TRAVELS "the gradient that travels down the residual stream"

/* Everything up to the output layer. */
#define BEGIN                                                                                                          \
    BATCH("batch.ids", 0, INT64, true, "token ids of the micro-batch", T),                                             \
        BATCH("batch.labels", 0, INT64, true, "labels of the micro-batch", T),                                         \
        LOST(EMBED, "embedding.output", 0, 0, STREAM, 0, 1, 1, "becomes the first layer's input", T, H),               \
        BATCH("rope.cos", ROPE, FP32, false, "table shared by all layers", OC_D_SEQ, OC_D_HEAD),                       \
        BATCH("rope.sin", ROPE, FP32, false, "table shared by all layers", OC_D_SEQ, OC_D_HEAD),                       \
        {.name = "head.input",                                                                                         \
         .dims = {T, H},                                                                                               \
         .role = OC_R_STREAM,                                                                                          \
         .end = OC_END_HERE,                                                                                           \
         .need = RMS | R16,                                                                                            \
         .birth = OC_FWD(HEAD, 0),                                                                                     \
         .death = OC_FWD(HEAD, 6),                                                                                     \
         .keep = OC_F_NEVER,                                                                                           \
         .why = "the final norm keeps a copy"},                                                                        \
        KEPT(HEAD, "head.input", R16, RMS, STREAM, 0, 0, 10, "the final norm keeps its input", T, H),                  \
        KEPT(HEAD, "head.input", 0, R16, STREAM, 0, 0, 10, "the final norm keeps its input, which is fp32 already", T, \
             H),                                                                                                       \
        NORM(HEAD, "head.norm", 0, 1, 6),                                                                              \
        KEPT_UNLESS(FREE, HEAD, "head.norm.output", 0, AMP, STREAM, 5, 7, 4, "input of the output layer", T, H),       \
        KEPT_UNLESS(FREE, HEAD, "head.input_cast", AMP, 0, COMPUTE, 7, 8, 4, CAST_WHY, T, H)

/* Everything below the loss. */
#define END                                                                                                            \
    LINEAR_GRADIENT(HEAD, "head.grad_norm_output", 0, 0, 3, 7),                                                        \
        BACK(HEAD, "head.norm.grad_input_fp32", RMS | R16, 0, FP32, 8, 11, "gradient of the input, fp32", T, H),       \
        RESIDUAL(RMS | R16, 0, OC_END_HERE, 10, TRAVELS), RESIDUAL(RMS, R16, OC_END_HERE, 8, TRAVELS),                 \
        RESIDUAL(0, RMS, OC_END_HERE, 6, TRAVELS),                                                                     \
        RESIDUAL(0, 0, OC_END_ELSEWHERE, 0, "received from the next stage"),                                           \
    {                                                                                                                  \
        0                                                                                                              \
    }

#define EAGER_WHY   "log-softmax keeps its result"
#define NLL_WHY     "gradient of the negative log-likelihood, mostly zeros"
#define SOFTMAX_WHY "gradient of log-softmax"
#define CAST_BACK   "cast back to the type of the logits"
#define PIECE_WHY   "of one piece of the tokens"
#define PIECES_WHY  "every piece makes a gradient of the output layer, which is added to the sum of those before"

/* cross_entropy(pred.float(), labels); in one kernel (compiled, since 2025) the cast and the softmax are made again
 * from the logits. */
static const struct oc_tensor torchtitan[] = {
    BEGIN,
    UNTIL_LOSS("logits", 0, FUSED, COMPUTE, OC_FWD(HEAD, 7), 2, "deleted before backward", T, V),
    FROM_LOSS("logits", FUSED, 0, COMPUTE, OC_FWD(HEAD, 7), OC_BWD(HEAD, 3), "a compiled loss keeps its input", T, V),
    UNTIL_LOSS("logits.fp32", LF, FUSED, FP32, OC_LOSS_AT(0), 2, "pred.float() before the cross entropy", T, V),
    FROM_LOSS("log_probabilities", 0, FUSED, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 2), EAGER_WHY, T, V),
    BACK(HEAD, "grad_log_probabilities", 0, FUSED, LOGPROB, 0, 2, NLL_WHY, T, V),
    BACK(HEAD, "grad_logits.fp32", LF, FUSED, LOGPROB, 1, 3, SOFTMAX_WHY, T, V),
    BACK(HEAD, "grad_logits", LF, 0, COMPUTE, 2, 4, CAST_BACK, T, V),
    BACK(HEAD, "grad_logits", 0, LF, LOGPROB, 1, 4, SOFTMAX_WHY, T, V),
    END};

/* The model returns output(h).float(), or, for a loss in pieces, a list of pieces in the model's type. */
static const struct oc_tensor torchtune[] = {
    BEGIN,
    UNTIL_LOSS("logits", 0, CHUNKED, COMPUTE, OC_FWD(HEAD, 7), 1, "until they have been cast to fp32", T, V),
    UNTIL_LOSS("logits.fp32", LF, CHUNKED | FUSED, FP32, OC_LOSS_AT(0), 2, "deleted before backward", T, V),
    FROM_LOSS("logits.fp32", LF | FUSED, CHUNKED, FP32, OC_LOSS_AT(0), OC_BWD(HEAD, 3),
              "a compiled loss keeps its input", T, V),
    FROM_LOSS("log_probabilities", 0, CHUNKED | FUSED, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 2), EAGER_WHY, T, V),
    BACK(HEAD, "grad_log_probabilities", 0, CHUNKED | FUSED, LOGPROB, 0, 2, NLL_WHY, T, V),
    BACK(HEAD, "grad_logits.fp32", LF, CHUNKED, LOGPROB, 1, 3, SOFTMAX_WHY, T, V),
    BACK(HEAD, "grad_logits", LF, CHUNKED, COMPUTE, 2, 4, CAST_BACK, T, V),
    BACK(HEAD, "grad_logits", 0, LF | CHUNKED, LOGPROB, 1, 4, SOFTMAX_WHY, T, V),
    FROM_LOSS("logits", CHUNKED, 0, COMPUTE, OC_FWD(HEAD, 7), OC_BWD(HEAD, 4), "the pieces, until their backward", T,
              V),
    UNTIL_LOSS("logits.piece_fp32", CHUNKED | LF, COMPILED, FP32, OC_LOSS_AT(0), 2, PIECE_WHY, R, V),
    FROM_LOSS("log_probabilities", CHUNKED, COMPILED, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 2),
              "log-softmax keeps the result of every piece", T, V),
    BACK(HEAD, "grad_log_probabilities.piece", CHUNKED, COMPILED, LOGPROB, 0, 2, PIECE_WHY, R, V),
    BACK(HEAD, "grad_logits.piece_fp32", CHUNKED, COMPILED, LOGPROB, 1, 3, PIECE_WHY, R, V),
    BACK(HEAD, "grad_logits.piece", CHUNKED, 0, COMPUTE, 2, 4, PIECE_WHY, R, V),
    BACK(HEAD, "head.grad_output_weight", CHUNKED, FREE, WEIGHTS, 2, 5, PIECES_WHY, V, H),
    END};

/* The loss runs in pieces of 128 tokens, in the model's type; with a head in pieces there is no whole gradient of the
 * logits. The training loop's variable holds the logits through backward. */
static const struct oc_tensor litgpt[] = {
    BEGIN,
    FROM_LOSS("logits", 0, 0, COMPUTE, OC_FWD(HEAD, 7), OC_BWD(EMBED, 1),
              "held by the training loop until backward ends", T, V),
    FROM_LOSS("log_probabilities", 0, 0, LOGPROB, OC_LOSS_AT(1), OC_BWD(HEAD, 2),
              "log-softmax keeps every piece's result", T, V),
    BACK(HEAD, "grad_log_probabilities.piece", 0, 0, LOGPROB, 0, 2, PIECE_WHY, R, V),
    BACK(HEAD, "grad_logits.piece", 0, 0, LOGPROB, 1, 3, PIECE_WHY, R, V),
    BACK(HEAD, "head.grad_output_weight", CHUNKED, FREE, WEIGHTS, 2, 5, PIECES_WHY, V, H),
    BACK(HEAD, "grad_logits", 0, CHUNKED, COMPUTE, 2, 4, "the pieces' gradients joined", T, V),
    BACK(HEAD, "grad_logits.joined", 0, CHUNKED, COMPUTE, 1, 3, "the pieces' gradients, before they are joined", T, V),
    END};

#define USES                                                                                                           \
    {                                                                                                                  \
        [OC_USE_EMBED] = {0, 0}, [OC_USE_NORM1] = {5, 41}, [OC_USE_ROUTER] = {28, 8}, [OC_USE_EXPERT_UP] = {29, 7},    \
        [OC_USE_EXPERT_DOWN] = {31, 1}, [OC_USE_Q] = {7, 38}, [OC_USE_K] = {8, 35}, [OC_USE_V] = {9, 32},              \
        [OC_USE_OUT] = {21, 18}, [OC_USE_NORM2] = {27, 11}, [OC_USE_GATE] = {28, 8}, [OC_USE_UP] = {30, 4},            \
        [OC_USE_DOWN] = {32, 1}, [OC_USE_FINAL_NORM] = {5, 6}, [OC_USE_HEAD] = {                                       \
            7,                                                                                                         \
            3                                                                                                          \
        }                                                                                                              \
    }

const struct oc_opset_rules oc_torchtitan_rules = {
    .name = "torchtitan",
    .source = "torchtitan @b5bcd76c models/llama, components/loss.py, distributed/activation_checkpoint.py",
    .rows = torchtitan,
    .layer_rows = oc_hf_layer,
    .use = USES};

const struct oc_opset_rules oc_torchtune_rules = {.name = "torchtune",
                                                  .source = "torchtune @bd2a0fc7 modules, modules/loss",
                                                  .rows = torchtune,
                                                  .layer_rows = oc_hf_layer,
                                                  .use = USES};

const struct oc_opset_rules oc_litgpt_rules = {.name = "litgpt",
                                               .source = "Lightning-AI/litgpt model.py, utils.py, finetune/lora.py",
                                               .rows = litgpt,
                                               .layer_rows = oc_hf_layer,
                                               .use = USES};

void oc_kin_defaults(struct oc_config *c)
{
    const bool kin = c->kernels_transformer >= OC_OPSET_TORCHTITAN && c->kernels_transformer <= OC_OPSET_LITGPT;
    if (!kin) return;
    /* torchtune's published memory tables are of compiled runs (README, "torch.compile"). */
    oc_default(c, OC_OPT_kernels_compile, c->kernels_transformer == OC_OPSET_TORCHTUNE);
    /* torchtune compiles the loss with the model; torchtitan does so since 2025: kernels.loss=fused says it. */
    if (c->kernels_transformer == OC_OPSET_TORCHTUNE && c->kernels_compile)
        oc_default(c, OC_OPT_kernels_loss, OC_LOSS_FUSED);
    /* Compiled, an RMSNorm keeps its input and one number a row, as a fused one does. */
    oc_default(c, OC_OPT_kernels_norm, c->kernels_compile ? OC_NORMK_FUSED : OC_NORMK_EAGER);
    oc_default(c, OC_OPT_kernels_logits_fp32, c->kernels_transformer != OC_OPSET_LITGPT);
    if (c->kernels_transformer == OC_OPSET_LITGPT) oc_default(c, OC_OPT_model_tied, 0); /* litgpt never ties */
    if (c->kernels_transformer == OC_OPSET_TORCHTITAN) oc_default(c, OC_OPT_recompute_modules, OC_MODULE_TORCHTITAN_OP);
}
