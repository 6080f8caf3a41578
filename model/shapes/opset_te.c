/* What Megatron-LM core over TransformerEngine allocates in one step, tensor by tensor.
 *
 * Sub-steps of a layer. Forward: norm1 1, qkv 2, rope 3, attention 4, output projection 5, residual 6, norm2 7, fc1 8,
 * activation 9, fc2 10, residual 11, return 12. Backward: dropout 0, fc2 1, activation 2, fc1 3-4, norm2 5, dropout 6,
 * output projection 7, attention 8-9, rope 10, qkv 11-12, norm1 13, end 15. Of the head. Forward: norm 1, product 2;
 * loss 0-2. Backward: loss 0, product 1-2, norm 3.
 *
 * What is kept is measured (shared/reference/memory-megatron.md 4.2, 4.3, 8: peaks to 0.007 %). Of the temporaries,
 * those that can matter at a peak are here: gathered inputs under sequence parallelism, gradients of the MLP, of the
 * scores and of the logits. */
#include "model/shapes/rows.h"

/* A table, one row a tensor. */
/* clang-format off */
#define TS OC_D_TOKENS_SP
#define F1 OC_D_FC1

#define SP    OC_F_SP
#define LN    OC_F_LAYERNORM
#define MOE   OC_F_MOE
#define MLA   OC_F_MLA
#define R     OC_D_ROUTED

#define LOST(part, name_, need_, without_, role_, birth_, death_, why_, ...)                                           \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .death = OC_FWD(part, death_), .forgotten = death_, .keep = OC_F_NEVER,         \
        .why = why_, .dims = {                                                                                         \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define KEPT(part, name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)                             \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_FWD(part, birth_), .forgotten = forgotten_, .release = OC_BWD(part, release_), .why = why_,        \
        .dims = {                                                                                                      \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
/* Kept, unless selective recompute of `module_` computes it again. */
#define MODULE(module_, name_, need_, without_, role_, birth_, forgotten_, release_, why_, ...)                        \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .module = OC_MODULE_##module_,        \
        .birth = OC_FWD(LAYER, birth_), .forgotten = forgotten_, .release = OC_BWD(LAYER, release_), .why = why_,      \
        .dims = {                                                                                                      \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }
#define BATCH(name_, role_, why_, ...)                                                                                 \
    {                                                                                                                  \
        .name = name_, .dims = {__VA_ARGS__}, .role = OC_R_##role_, .buffer = true, .birth = OC_FWD(EMBED, 0),         \
        .release = OC_BWD(EMBED, 1), .why = why_                                                                       \
    }

#define GATHER_WHY "sequence parallelism: gathered over tp for the product"
#define STATS_WHY  "kept in fp32, one a row"

static const struct oc_tensor rows[] = {
    /* ---- micro-batch ---- */
    BATCH("batch.tokens", INT64, "token ids of the micro-batch", T),
    BATCH("batch.labels", INT64, "labels of the micro-batch", T),
    BATCH("batch.loss_mask", FP32, "loss mask of the micro-batch", T),
    BATCH("batch.position_ids", INT64, "positions of the micro-batch", T),
    BATCH("batch.attention_mask", BOOL, "the dataloader makes a mask of seq x seq", OC_D_MASK),
    KEPT(EMBED, "embedding.dropout_mask", OC_F_DROPOUT, 0, BOOL, 0, 0, 1, "one byte an element", TS, H),
    {.name = "pipeline.input",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .end = OC_END_ELSEWHERE,
     .birth = OC_FWD(EMBED, 0),
     .death = OC_FWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "received from the stage before; becomes the first layer's input"},
    LOST(EMBED, "embedding.output", 0, 0, STREAM, 0, 1, "becomes the first layer's input", TS, H),

    /* ---- layer: forward ---- */
    {.name = "layers.input",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .without = OC_F_FULL,
     .birth = OC_FWD(LAYER, 0),
     .release = OC_BWD(LAYER, 14),
     .why = "the norm keeps its input"},
    {.name = "layers.checkpoint",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .need = OC_F_FULL,
     .birth = OC_FWD(LAYER, 0),
     .release = OC_BWD(LAYER, 15),
     .why = "full recompute keeps the layer's input, nothing else"},
    KEPT(LAYER, "layers.norm1.rstd", 0, 0, FP32, 1, 2, 14, STATS_WHY, TS),
    KEPT(LAYER, "layers.norm1.mean", LN, 0, FP32, 1, 2, 14, STATS_WHY, TS),
    MODULE(LAYERNORM, "layers.norm1.output", 0, 0, LINEAR, 1, 3, 13,
           "input of the qkv product; a shard under sequence parallelism", TS, H),
    LOST(LAYER, "layers.norm1.gathered", SP, 0, STREAM, 2, 3, GATHER_WHY, T, H),
    KEPT(LAYER, "layers.attention.q", OC_F_ROPE, MLA, COMPUTE, 3, 5, 9, "kept by attention", T, Q),
    KEPT(LAYER, "layers.attention.q", 0, OC_F_ROPE | MLA, COMPUTE, 2, 5, 9, "kept by attention", T, Q),
    KEPT(LAYER, "layers.attention.k", OC_F_ROPE, MLA, COMPUTE, 3, 5, 9, "kept by attention", T, K),
    KEPT(LAYER, "layers.attention.k", 0, OC_F_ROPE | MLA, COMPUTE, 2, 5, 9, "kept by attention", T, K),
    KEPT(LAYER, "layers.attention.v", OC_F_ROPE, MLA, COMPUTE, 3, 5, 9, "kept by attention", T, OC_D_VALUE),
    KEPT(LAYER, "layers.attention.v", 0, OC_F_ROPE | MLA, COMPUTE, 2, 5, 9, "kept by attention", T, OC_D_VALUE),
    MODULE(MLA_UP_PROJ, "layers.attention.q", MLA, 0, COMPUTE, 3, 5, 9, "projected up from the latent; kept by attention", T, Q),
    MODULE(MLA_UP_PROJ, "layers.attention.k", MLA, 0, COMPUTE, 3, 5, 9, "projected up from the latent; kept by attention", T, K),
    MODULE(MLA_UP_PROJ, "layers.attention.v", MLA, 0, COMPUTE, 3, 5, 9, "projected up from the latent; kept by attention", T, OC_D_VALUE),
    KEPT(LAYER, "layers.attention.q_latent", MLA | OC_F_Q_LORA, 0, COMPUTE, 2, 3, 12, "the latent norm keeps its input", T, OC_D_Q_LATENT),
    MODULE(MLA_UP_PROJ, "layers.attention.q_latent_norm", MLA | OC_F_Q_LORA, 0, LINEAR, 2, 3, 12, "input of the up projection", T, OC_D_Q_LATENT),
    KEPT(LAYER, "layers.attention.kv_latent", MLA, 0, COMPUTE, 2, 3, 12, "the latent norm keeps its input", T, OC_D_KV_DOWN),
    MODULE(MLA_UP_PROJ, "layers.attention.kv_latent_norm", MLA, 0, LINEAR, 2, 3, 12, "input of the up projection", T, OC_D_KV_LATENT),
    LOST(LAYER, "layers.attention.kv_up", MLA, 0, COMPUTE, 3, 4, "keys and values before they are put together", T, OC_D_KV_UP),
    LOST(LAYER, "layers.attention.qkv", OC_F_ROPE, MLA, COMPUTE, 2, 4, "before rope", T, OC_D_QKV),
    KEPT(LAYER, "layers.attention.q_norm_input", OC_F_QK_NORM, MLA, COMPUTE, 3, 4, 11,
         "the norm over query heads keeps its input", T, Q),
    KEPT(LAYER, "layers.attention.k_norm_input", OC_F_QK_NORM, MLA, COMPUTE, 3, 4, 11,
         "the norm over key heads keeps its input", T, K),
    KEPT(LAYER, "layers.attention.q_norm_rstd", OC_F_QK_NORM, MLA, FP32, 3, 4, 11, STATS_WHY, A),
    KEPT(LAYER, "layers.attention.k_norm_rstd", OC_F_QK_NORM, MLA, FP32, 3, 4, 11, STATS_WHY, OC_D_KROWS),
    MODULE(CORE_ATTN, "layers.attention.logsumexp", FLASH, 0, FP32, 4, 5, 9, "one number a row instead of the scores",
           A),
    LOST(LAYER, "layers.attention.scores", 0, FLASH, COMPUTE, 4, 5, "q k^T, before the softmax", S),
    MODULE(CORE_ATTN, "layers.attention.softmax", 0, FLASH, SOFTMAX, 4, 5, 9, "softmax keeps its result", S),
    MODULE(CORE_ATTN, "layers.attention.softmax_in_half", OC_F_SOFTMAX32, FLASH | OC_F_ATTN_DROP, COMPUTE, 4, 5, 9, "cast back, kept by the weighted sum", S),
    MODULE(CORE_ATTN, "layers.attention.dropout_mask", OC_F_ATTN_DROP, FLASH, BOOL, 4, 5, 9, "one byte an element", S),
    MODULE(CORE_ATTN, "layers.attention.dropped", OC_F_ATTN_DROP, FLASH, COMPUTE, 4, 5, 9,
           "probabilities after dropout, kept by the weighted sum", S),
    KEPT(LAYER, "layers.attention.output", 0, 0, LINEAR, 4, 6, 9, "input of the output projection", T, OC_D_ATTN),
    KEPT(LAYER, "layers.attention.output_in_half", FLASH | OC_F_FP8, OC_F_FA_TWICE, COMPUTE, 4, 6, 9, "attention keeps its output in 16 bits, beside the fp8 copy that the projection keeps", T, OC_D_ATTN),
    KEPT(LAYER, "layers.attention.output_by_sample", OC_F_FA_TWICE, 0, COMPUTE, 4, 5, 9, "FlashAttention keeps its output by sample, beside the copy that the projection keeps", T, OC_D_ATTN),
    KEPT(LAYER, "layers.attention.output_before_exchange", OC_F_CP_A2A, 0, COMPUTE, 4, 5, 9, "attention keeps its output from before the all-to-all of context parallelism", T, OC_D_ATTN),
    LOST(LAYER, "layers.attention.projected", 0, 0, STREAM, 5, 7, "added to the residual", TS, H),
    LOST(LAYER, "layers.attention.projected_full", OC_F_TP, 0, STREAM, 5, 6, "before it is summed over tp", T, H),
    KEPT(LAYER, "layers.attention.projected_mask", OC_F_DROPOUT, 0, BOOL, 6, 7, 7, "dropout mask, one byte an element",
         TS, H),
    KEPT(LAYER, "layers.residual", NORM2, 0, STREAM, 6, 12, 6, "the norm keeps its input", TS, H),
    KEPT(LAYER, "layers.norm2.rstd", NORM2, 0, FP32, 7, 8, 6, STATS_WHY, TS),
    KEPT(LAYER, "layers.norm2.mean", NORM2 | LN, 0, FP32, 7, 8, 6, STATS_WHY, TS),
    MODULE(LAYERNORM, "layers.norm2.output", NORM2, MOE, LINEAR, 7, 9, 5,
           "input of fc1; a shard under sequence parallelism", TS, H),
    MODULE(LAYERNORM, "layers.norm2.output", NORM2 | MOE, 0, STREAM, 7, 9, 5, "input of the router", TS, H),
    KEPT(LAYER, "layers.shared_experts.input_fp8", NORM2 | MOE | OC_F_SHARED | OC_F_FP8, 0, LINEAR, 8, 9, 5, "the shared experts keep their input in fp8", TS, H),
    LOST(LAYER, "layers.norm2.gathered", SP, 0, STREAM, 8, 9, GATHER_WHY, T, H),
    MODULE(MLP, "layers.mlp.fc1_output", 0, MOE, COMPUTE, 8, 10, 3, "the activation function keeps its input", T, F1),
    MODULE(MLP, "layers.mlp.activated", 0, MOE, LINEAR, 9, 11, 2, "input of fc2", T, F),
    /* experts */
    KEPT(LAYER, "layers.router.logits", MOE, 0, ROUTER, 8, 9, 5, "the router's scores", TS, OC_D_EXPERTS),
    KEPT(LAYER, "layers.router.probabilities", MOE, 0, FP32, 8, 9, 5, "kept by the router's softmax", TS, OC_D_EXPERTS),
    KEPT(LAYER, "layers.router.map", MOE, 0, BOOL, 8, 9, 5, "which expert takes which token", TS, OC_D_EXPERTS),
    LOST(LAYER, "layers.experts.permuted", MOE, OC_F_ALLGATHER, COMPUTE, 8, 9, "copies of tokens in the order of their experts, sent to their ranks", OC_D_COPIES, H),
    MODULE(MOE, "layers.experts.input", MOE, 0, LINEAR, 8, 10, 5, "tokens that this rank's experts received, kept by their first product", R, H),
    MODULE(MOE, "layers.experts.fc1_output", MOE, 0, COMPUTE, 9, 10, 3, "the activation function keeps its input", R, OC_D_XONE_FC1),
    MODULE(MOE_ACT, "layers.experts.activated_unscaled", MOE | OC_F_PROBS_ACT, 0, COMPUTE, 9, 10, 3, "the product with the router's probabilities keeps it", R, OC_D_XONE),
    MODULE(MOE_ACT, "layers.experts.activated", MOE, 0, LINEAR, 9, 11, 2, "input of the experts' second product", R, OC_D_XONE),
    LOST(LAYER, "layers.experts.output", MOE, 0, COMPUTE, 10, 12, "sent back to the tokens' ranks", R, H),
    LOST(LAYER, "layers.experts.combined", MOE, 0, COMPUTE, 11, 12, "copies of tokens, before they are summed", OC_D_COPIES, H),
    MODULE(SHARED_EXPERTS, "layers.shared_experts.fc1_output", MOE | OC_F_SHARED, 0, COMPUTE, 8, 10, 3, "the activation function keeps its input", T, OC_D_SFC1),
    MODULE(SHARED_EXPERTS, "layers.shared_experts.activated", MOE | OC_F_SHARED, 0, LINEAR, 9, 11, 2, "input of fc2", T, OC_D_SFFN),
    LOST(LAYER, "layers.mlp.projected", 0, 0, STREAM, 10, 12, "added to the residual", TS, H),
    LOST(LAYER, "layers.mlp.projected_full", OC_F_TP, 0, STREAM, 10, 11, "before it is summed over tp", T, H),
    KEPT(LAYER, "layers.mlp.projected_mask", OC_F_DROPOUT, 0, BOOL, 11, 12, 1, "dropout mask, one byte an element", TS,
         H),
    {.name = "layers.output",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_FORWARD,
     .birth = OC_FWD(LAYER, 11),
     .death = OC_FWD(LAYER, 13),
     .forgotten = 13,
     .keep = OC_F_NEVER,
     .why = "becomes the next layer's input"},
    {.name = "layers.output",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .mode = OC_ONLY_RECOMPUTE,
     .need = OC_F_FULL,
     .birth = OC_FWD(LAYER, 11),
     .release = OC_BWD(LAYER, 15),
     .why = "recomputed, held until the layer's backward has ended"},

    /* ---- head: forward and loss ---- */
    KEPT(HEAD, "head.input", 0, 0, STREAM, 0, 0, 3, "the final norm keeps its input", TS, H),
    KEPT(HEAD, "head.norm.rstd", 0, 0, FP32, 1, 0, 3, STATS_WHY, TS),
    KEPT(HEAD, "head.norm.mean", LN, 0, FP32, 1, 0, 3, STATS_WHY, TS),
    KEPT(HEAD, "mtp.norm_inputs", 0, 0, STREAM, 0, 0, 3, "multi-token prediction: its two norms keep their inputs", TS, OC_D_MTP_WIDTH),
    KEPT(HEAD, "mtp.projection_input", 0, 0, STREAM, 0, 0, 3, "multi-token prediction: what its projection joins", TS, OC_D_MTP_WIDTH),
    KEPT(HEAD, "head.norm.output", 0, 0, STREAM, 1, 0, 3, "input of the output layer", TS, H),
    {.name = "logits",
     .dims = {T, V, OC_D_OUTPUTS},
     .role = OC_R_COMPUTE,
     .end = OC_END_HERE,
     .need = HALF | OC_F_TE_LOSS,
     .birth = OC_FWD(HEAD, 2),
     .release = OC_BWD(HEAD, 2),
     .why = "TransformerEngine's cross entropy writes the gradient over the logits (before TE 01bbe3eea, 2026-07)"},
    {.name = "logits",
     .dims = {T, V},
     .role = OC_R_COMPUTE,
     .end = OC_END_HERE,
     .need = HALF,
     .without = OC_F_TE_LOSS,
     .birth = OC_FWD(HEAD, 2),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "of the output layer, a shard of the vocabulary under tp"},
    {.name = "logits",
     .dims = {T, V, OC_D_OUTPUTS},
     .role = OC_R_FP32,
     .end = OC_END_HERE,
     .without = HALF,
     .birth = OC_FWD(HEAD, 2),
     .release = OC_BWD(HEAD, 2),
     .why = "the cross entropy works in place on fp32 logits"},
    {.name = "logits.softmax",
     .dims = {T, V, OC_D_OUTPUTS},
     .role = OC_R_FP32,
     .end = OC_END_HERE,
     .need = HALF,
     .without = OC_F_TE_LOSS,
     .birth = OC_LOSS_AT(0),
     .release = OC_BWD(HEAD, 1),
     .why = "vocab_parallel_cross_entropy keeps its fp32 softmax"},
    {.name = "logits.fused_copy",
     .dims = {T, V},
     .role = OC_R_FP32,
     .end = OC_END_HERE,
     .need = OC_F_FUSED_LOSS,
     .birth = OC_LOSS_AT(0),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "native fused cross entropy: torch.compile makes the in-place ops functional"},
    {.name = "loss.working",
     .dims = {T, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .birth = OC_LOSS_AT(0),
     .death = OC_LOSS_AT(2),
     .keep = OC_F_NEVER,
     .why = "one more [seq, batch, hidden] at the loss: fitted on seven measured peaks (memory-megatron.md 4.2), not "
            "derived"},
    {.name = "pipeline.output",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .end = OC_END_ELSEWHERE,
     .birth = OC_FWD(HEAD, 0),
     .death = OC_FWD(HEAD, 1),
     .keep = OC_F_NEVER,
     .why = "sent to the next stage, then shrunk to one element"},

    /* ---- head: backward ---- */
    BACK(HEAD, "logits.gradient", HALF, OC_F_TE_LOSS, COMPUTE, 0, 2, "of the logits, cast back from the fp32 softmax that has become it", T, V),
    BACK(HEAD, "head.grad_input", 0, 0, STREAM, 1, 3, "gradient of the output layer's input", T, H),
    {.name = "grad_residual",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .end = OC_END_HERE,
     .birth = OC_BWD(HEAD, 2),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "the gradient that travels down the residual stream"},
    {.name = "grad_residual",
     .dims = {TS, H},
     .role = OC_R_STREAM,
     .end = OC_END_ELSEWHERE,
     .birth = OC_BWD(HEAD, 0),
     .death = OC_BWD(EMBED, 1),
     .keep = OC_F_NEVER,
     .why = "received from the next stage"},

    /* ---- layer: backward ---- */
    BACK(LAYER, "layers.mlp.grad_projected", OC_F_DROPOUT, 0, STREAM, 0, 2, "the residual's gradient through the dropout mask", TS, H),
    BACK(LAYER, "layers.mlp.grad_gathered", SP, 0, STREAM, 1, 2, GATHER_WHY, T, H),
    BACK(LAYER, "layers.mlp.grad_activated", 0, MOE, COMPUTE, 1, 3, "gradient of fc2's input", T, F),
    BACK(LAYER, "layers.mlp.grad_fc1_output", 0, MOE, COMPUTE, 2, 5, "gradient of the activation's input", T, F1),
    BACK(LAYER, "layers.experts.grad_output", MOE, 0, COMPUTE, 0, 2, "gradient of the experts' output, sent to their ranks", R, H),
    BACK(LAYER, "layers.experts.grad_activated", MOE, 0, COMPUTE, 1, 3, "gradient of the second product's input", R, OC_D_XONE),
    BACK(LAYER, "layers.experts.grad_fc1_output", MOE, 0, COMPUTE, 2, 4, "gradient of the activation's input", R, OC_D_XONE_FC1),
    BACK(LAYER, "layers.experts.grad_input", MOE, 0, COMPUTE, 3, 5, "gradient of the tokens that were received", R, H),
    BACK(LAYER, "layers.mlp.input_gathered", SP, 0, STREAM, 3, 5, GATHER_WHY, T, H),
    BACK(LAYER, "layers.mlp.grad_input_full", 0, 0, STREAM, 3, 5, "gradient of fc1's input", T, H),
    BACK(LAYER, "layers.norm2.grad_input", NORM2, 0, STREAM, 4, 6, "added into the residual's gradient", TS, H),
    BACK(LAYER, "layers.grad_residual_sum", OC_F_FULL, 0, STREAM, 5, 15,
         "a checkpoint cannot add into the gradient it was given", TS, H),
    BACK(LAYER, "layers.attention.grad_projected", OC_F_DROPOUT, 0, STREAM, 6, 8, "the residual's gradient through the dropout mask", TS, H),
    BACK(LAYER, "layers.attention.grad_gathered", SP, 0, STREAM, 7, 8, GATHER_WHY, T, H),
    BACK(LAYER, "layers.attention.grad_output", 0, 0, COMPUTE, 7, 9, "gradient of the merged heads", T, OC_D_ATTN),
    BACK(LAYER, "layers.attention.grad_probabilities", 0, FLASH, COMPUTE, 8, 9, "gradient of the probabilities", S),
    BACK(LAYER, "layers.attention.grad_scores", 0, FLASH, COMPUTE, 8, 9, "gradient of the scores", S),
    BACK(LAYER, "layers.attention.grad_qkv", 0, 0, COMPUTE, 8, 11, "gradients of q, k and v", T, OC_D_QKV),
    BACK(LAYER, "layers.attention.grad_qkv_joined", 0, 0, COMPUTE, 10, 13,
         "after rope's backward, joined for the product", T, OC_D_QKV),
    BACK(LAYER, "layers.attention.input_gathered", SP, 0, STREAM, 11, 13, GATHER_WHY, T, H),
    BACK(LAYER, "layers.attention.grad_input_full", 0, 0, STREAM, 11, 13, "gradient of the qkv product's input", T, H),
    BACK(LAYER, "layers.norm1.grad_input", 0, 0, STREAM, 12, 14, "added into the residual's gradient", TS, H),
    {0}};
/* clang-format on */

const struct oc_opset_rules oc_te_rules = {
    .name = "te",
    .source = "Megatron-LM @d98e8a64 core/transformer; TransformerEngine @d0067d0d pytorch/module",
    .rows = rows,
    .use = {[OC_USE_EMBED] = {0, 0},
            [OC_USE_NORM1] = {1, 13},
            [OC_USE_ROUTER] = {8, 5},
            [OC_USE_EXPERT_UP] = {9, 4},
            [OC_USE_EXPERT_DOWN] = {10, 1},
            [OC_USE_Q] = {2, 12},
            [OC_USE_K] = {2, 12},
            [OC_USE_V] = {2, 12},
            [OC_USE_OUT] = {5, 7},
            [OC_USE_NORM2] = {7, 5},
            [OC_USE_GATE] = {8, 4},
            [OC_USE_UP] = {8, 4},
            [OC_USE_DOWN] = {10, 1},
            [OC_USE_FINAL_NORM] = {1, 3},
            [OC_USE_HEAD] = {2, 2}},
    .module_backward =
        {[OC_MODULE_CORE_ATTN] = 8, [OC_MODULE_MLA_UP_PROJ] = 8, [OC_MODULE_MLP] = 0, [OC_MODULE_LAYERNORM] = 0},
    .fused_matrices = true,
};
