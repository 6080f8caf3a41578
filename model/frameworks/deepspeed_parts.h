/* The parts of DeepSpeed's rules that have files of their own. */
#ifndef OOMCAST_DEEPSPEED_PARTS_H
#define OOMCAST_DEEPSPEED_PARTS_H

#include "model/build.h"

/* Which of DeepSpeed's optimizer wrappers runs. Source: deepspeed/runtime/engine.py:1485-1496, 1979-2021 @edaa7221. */
enum oc_engine {
    OC_ENGINE_PLAIN,  /* fp32 without ZeRO: the optimizer itself */
    OC_ENGINE_FP16,   /* 16 bits without ZeRO: FP16_Optimizer, nothing is shared */
    OC_ENGINE_BF16,   /* BF16_Optimizer: fp32 gradients that are whole on every rank */
    OC_ENGINE_ZERO12, /* DeepSpeedZeroOptimizer */
    OC_ENGINE_ZERO3   /* DeepSpeedZeroOptimizer_Stage3 */
};
enum oc_engine oc_deepspeed_engine(const struct oc_plan *plan);

/* Whether gradients leave for buckets as backward makes them: stage 2 and 3, and stage 1 when every backward is the
 * last of its step. Otherwise they stay until the step's reduction. */
bool oc_deepspeed_reduces_in_backward(const struct oc_plan *plan);

/* Elements of the padded parameters of a ZeRO stage, all ranks together. */
uint64_t oc_deepspeed_padded(const struct oc_build *build, bool expert);

/* Reduction buckets, gathered parameters, the pipeline engine's tensors. */
void oc_deepspeed_buffers(struct oc_build *build);

#endif
