/* The experts of Hugging Face's eager mixture-of-experts layers, which stand where the MLP stands in opset_hf_layer.c:
 * a loop over experts, each on the tokens that were sent to it, scaled and added into one tensor.
 *
 * Source: transformers models/mixtral/modeling_mixtral.py MixtralSparseMoeBlock (before experts became one tensor).
 * What all experts keep is as large as what they work on together; what backward needs besides is one expert's. */
#include "model/shapes/opset_hf.h"

/* A table, one row a tensor. */
#define MOE    OC_F_MOE
#define SHARED OC_F_SHARED
#define R      OC_D_ROUTED
#define R1     OC_D_ROUTED_ONE
#define X      OC_D_XONE
#define E      OC_D_EXPERTS
#define SF     OC_D_SFFN

const struct oc_tensor oc_hf_experts[] = {
    KEPT_UNLESS(OC_F_FREE_UP, LAYER, "layers.router.input_cast", MOE | AMP, 0, COMPUTE, 28, 29, 9, CAST_WHY, T, H),
    KEPT(LAYER, "layers.router.probabilities", MOE, 0, FP32, 28, 33, 8, "softmax keeps its result", T, E),
    LOST(LAYER, "layers.router.mask", MOE, 0, INT64, 28, 33, 33, "one_hot of the chosen experts", OC_D_COPIES, E),
    KEPT(LAYER, "layers.router.chosen", MOE, 0, INT64, 28, 33, 8, "indices of the chosen experts", OC_D_COPIES),
    LOST(LAYER, "layers.experts.sum", MOE, 0, COMPUTE, 28, 34, 34, "what the experts put out is added here", T, H),
    KEPT_UNLESS(OC_F_FREE_UP, LAYER, "layers.experts.input", MOE, AMP, COMPUTE, 29, 30, 8,
                "the tokens sent to each expert, gathered", R, H),
    KEPT_UNLESS(OC_F_FREE_UP, LAYER, "layers.experts.fc1_input_cast", MOE | AMP, 0, COMPUTE, 29, 30, 9, CAST_WHY, R, H),
    KEPT_UNLESS(OC_F_FREE_UP, LAYER, "layers.experts.up_input_cast", MOE | AMP | GATED, 0, COMPUTE, 29, 30, 5, CAST_WHY,
                R, H),
    KEPT(LAYER, "layers.experts.fc1_output", MOE, 0, COMPUTE, 29, 31, 8, "the activation function keeps its input", R,
         X),
    KEPT(LAYER, "layers.experts.activated", MOE | GATED, 0, COMPUTE, 29, 32, 4, "kept by the product of gate and up", R,
         X),
    KEPT(LAYER, "layers.experts.up_output", MOE | GATED, 0, COMPUTE, 30, 32, 4, "kept by the product of gate and up", R,
         X),
    KEPT_UNLESS(OC_F_FREE_DOWN, LAYER, "layers.experts.fc2_input", MOE, 0, COMPUTE, 31, 33, 4,
                "kept by the last linear", R, X),
    KEPT(LAYER, "layers.experts.output", MOE, 0, COMPUTE, 32, 33, 4, "kept by the scaling with the router's weights", R,
         H),
    KEPT(LAYER, "layers.shared_experts.fc1_output", MOE | SHARED, 0, COMPUTE, 29, 32, 8,
         "the activation function keeps its input", T, SF),
    KEPT(LAYER, "layers.shared_experts.activated", MOE | SHARED | GATED, 0, COMPUTE, 29, 32, 4,
         "kept by the product of gate and up", T, SF),
    KEPT(LAYER, "layers.shared_experts.up_output", MOE | SHARED | GATED, 0, COMPUTE, 30, 32, 4,
         "kept by the product of gate and up", T, SF),
    KEPT_UNLESS(OC_F_FREE_DOWN, LAYER, "layers.shared_experts.fc2_input", MOE | SHARED, 0, COMPUTE, 31, 33, 2,
                "kept by the last linear", T, SF),

    /* ---- backward: one expert at a time ---- */
    BACK(LAYER, "layers.experts.grad_output", MOE, 0, COMPUTE, 0, 2, "of one expert", R1, H),
    BACK(LAYER, "layers.experts.grad_fc2_input", MOE, 0, COMPUTE, 1, 4, "of one expert", R1, X),
    BACK(LAYER, "layers.experts.grad_activated", MOE | GATED, 0, COMPUTE, 3, 8, "of one expert", R1, X),
    BACK(LAYER, "layers.experts.grad_up_output", MOE | GATED, 0, COMPUTE, 3, 5, "of one expert", R1, X),
    BACK(LAYER, "layers.experts.grad_fc1_output", MOE, 0, COMPUTE, 7, 9, "of one expert", R1, X),
    BACK(LAYER, "layers.experts.grad_input", MOE, 0, COMPUTE, 8, 9, "of one expert's tokens", R1, H),
    BACK(LAYER, "layers.experts.grad_input_sum", MOE, 0, STREAM, 3, 12, "gathered over the experts", T, H),
    BACK(LAYER, "layers.experts.grad_input_whole", MOE, 0, STREAM, 8, 9, "one expert's, spread over all tokens", T, H),
    {0}};
