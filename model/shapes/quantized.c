/* Frozen weights in 4 or 8 bits: the tensors that one matrix becomes, and what it is unpacked into for a product.
 *
 * Source: bitsandbytes functional.py:886-960, autograd/_functions.py; AutoGPTQ nn_modules/qlinear. Bytes held to
 * tests/data/optimizers.txt. */
#include "model/shapes/opset.h"

static void add_piece(struct oc_build *build, const struct oc_entry *entry, const char *copy, const char *why,
                      uint64_t elements, uint32_t matrices, enum oc_dtype dtype)
{
    struct oc_entry piece = *entry;
    piece.copy = copy;
    piece.why = why;
    piece.elements = elements;
    piece.count = entry->count * matrices;
    piece.dtype = (uint8_t)dtype;
    oc_build_add(build, &piece);
}

/* bitsandbytes functional.py:886-960: blocks of 64 weights share a scale; with double quantization 256 scales share
 * another one. */
static void add_nf4(struct oc_build *build, const struct oc_param *param, const struct oc_entry *entry, bool packed,
                    bool twice)
{
    const uint64_t n = param->elements / param->matrices, blocks = (n + 63) / 64;
    const uint32_t m = param->matrices;
    if (packed) add_piece(build, entry, "4-bit weights", "nf4: two weights a byte", (n + 1) / 2, m, OC_INT8);
    add_piece(build, entry, "code", "16 levels of nf4", 16, m, OC_FP32);
    if (!twice) {
        add_piece(build, entry, "scales", "one for 64 weights", blocks, m, OC_FP32);
        return;
    }
    add_piece(build, entry, "scales", "one for 64 weights, quantized to 8 bits themselves", blocks, m, OC_INT8);
    add_piece(build, entry, "scales of scales", "one for 256 scales", (blocks + 255) / 256, m, OC_FP32);
    add_piece(build, entry, "code of scales", "256 levels", 256, m, OC_FP32);
    add_piece(build, entry, "offset of scales", "their mean", 1, m, OC_FP32);
}

/* Weights of a GPTQ matrix that share one scale and zero point. */
static uint64_t groups_of(const struct oc_plan *plan, const struct oc_param *param)
{
    const uint64_t in = param->columns ? param->columns : 1, group = (uint64_t)plan->c.lora_quant_group;
    return group ? (in + group - 1) / group : 1;
}

static uint64_t outputs_of(const struct oc_param *param)
{
    return param->elements / param->matrices / (param->columns ? param->columns : 1);
}

uint64_t oc_packed_bytes(const struct oc_plan *plan, const struct oc_param *param)
{
    const uint64_t n = param->elements / param->matrices, m = param->matrices;
    const uint64_t bits = plan->c.lora_base == OC_BASE_INT8_GPTQ ? 8 : 4;
    if (plan->c.lora_base < OC_BASE_INT4_GPTQ) return oc_mul((n + 1) / 2, m);
    return oc_mul(n * bits / 8 + groups_of(plan, param) * outputs_of(param) * bits / 8, m);
}

/* AutoGPTQ: packed integers, zero points in the same width, fp16 scales by group, and the group of every input. */
static void add_gptq(struct oc_build *build, const struct oc_param *param, const struct oc_entry *entry, bool packed,
                     uint64_t bits)
{
    const uint64_t n = param->elements / param->matrices, out = outputs_of(param);
    const uint64_t groups = groups_of(build->plan, param);
    const uint32_t m = param->matrices;
    if (packed) {
        add_piece(build, entry, "packed weights", "GPTQ: 4 or 8 bits a weight", n * bits / 8, m, OC_INT8);
        add_piece(build, entry, "zero points", "one for each group and output", groups * out * bits / 8, m, OC_INT8);
    }
    add_piece(build, entry, "scales", "one for each group and output", groups * out, m, OC_FP16);
    add_piece(build, entry, "group of each input", "g_idx, int32", param->columns * 4, m, OC_INT8);
}

void oc_add_quantized(struct oc_build *build, const struct oc_param *param, const struct oc_entry *entry, bool packed)
{
    switch (build->plan->c.lora_base) {
    case OC_BASE_NF4: add_nf4(build, param, entry, packed, false); break;
    case OC_BASE_NF4_DQ: add_nf4(build, param, entry, packed, true); break;
    case OC_BASE_INT4_GPTQ: add_gptq(build, param, entry, packed, 4); break;
    default: add_gptq(build, param, entry, packed, 8); break;
    }
}

/* bitsandbytes writes a matrix out in the type of the product before each use, in forward and again in backward. GPTQ's
 * kernels unpack as they go. */
void oc_add_dequantized(struct oc_build *build, const struct oc_param *param)
{
    const int64_t base = build->plan->c.lora_base;
    if (base != OC_BASE_NF4 && base != OC_BASE_NF4_DQ) return;
    struct oc_entry entry = {.name = param->name,
                             .copy = "dequantized",
                             .why = "nf4 weights written out for one product",
                             .source = "bitsandbytes autograd/_functions.py MatMul4Bit",
                             .elements = param->elements / param->matrices,
                             .count = param->count,
                             .class = OC_BUFFERS,
                             .dtype = (uint8_t)build->plan->dt.compute,
                             .kind = param->kind,
                             .birth = {OC_PH_FORWARD, OC_PART_LAYER, param->forward},
                             .death = {OC_PH_FORWARD, OC_PART_LAYER, (uint8_t)(param->forward + 1)}};
    oc_build_add(build, &entry);
    if (param->kind & OC_KIND_CHECKPOINTED) {
        entry.birth.phase = entry.death.phase = OC_PH_RECOMPUTE;
        oc_build_add(build, &entry);
    }
    entry.birth = (struct oc_tick){OC_PH_BACKWARD, OC_PART_LAYER, param->backward};
    entry.death = (struct oc_tick){OC_PH_BACKWARD, OC_PART_LAYER, (uint8_t)(param->backward + 1)};
    oc_build_add(build, &entry);
}
