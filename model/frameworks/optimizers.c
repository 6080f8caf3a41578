/* Source: torch/optim, bitsandbytes optim/optimizer.py:383-700, transformers optimization.py Adafactor,
 * torch/optim/_muon.py, as read in shared/reference/memory-pytorch.md section 4; bytes held to
 * tests/data/optimizers.txt. */
#include "model/frameworks/optimizers.h"

#include "model/frameworks/framework.h"
#include "model/shapes/opset.h"

#define BNB       "bitsandbytes optim/optimizer.py:490-531"
#define ADAFACTOR "transformers optimization.py Adafactor"
#define MUON      "torch/optim/_muon.py"

/* bitsandbytes quantizes states of 4096 numbers and more, in blocks of 256; paged states of 100,000 numbers and more
 * lie in managed memory, which PyTorch's allocator does not see. */
enum { LEAST_QUANTIZED = 4096, QUANTIZED_BLOCK = 256, LEAST_PAGED = 100000 };

static bool is_8bit(int64_t optimizer)
{
    return optimizer == OC_OPTIM_ADAM8BIT || optimizer == OC_OPTIM_PAGED_ADAMW8BIT;
}

static bool is_adam(int64_t optimizer)
{
    return optimizer == OC_OPTIM_ADAM || optimizer == OC_OPTIM_ADAMW;
}

bool oc_optimizer_is_plain(const struct oc_plan *plan, int which)
{
    const int64_t optimizer = plan->c.optimizer;
    if (which == 2) return is_adam(optimizer);
    return is_adam(optimizer) || optimizer == OC_OPTIM_SGD || optimizer == OC_OPTIM_LION || optimizer == OC_OPTIM_MUON;
}

void oc_optimizer_dtypes(const struct oc_config *config, enum oc_dtype updated, enum oc_dtype *moment1,
                         enum oc_dtype *moment2)
{
    *moment1 = *moment2 = updated;
    switch (config->optimizer) {
    case OC_OPTIM_SGD:
        *moment1 = config->optimizer_momentum > 0 ? updated : OC_NONE;
        *moment2 = OC_NONE;
        break;
    case OC_OPTIM_LION: *moment2 = OC_NONE; break;
    case OC_OPTIM_ADAM8BIT:
    case OC_OPTIM_PAGED_ADAMW8BIT: *moment1 = *moment2 = OC_INT8; break;
    case OC_OPTIM_ADAFACTOR:
        *moment1 = OC_NONE;
        *moment2 = OC_FP32;
        break;
    default: break;
    }
}

static int keeps_8bit(const struct oc_plan *plan, uint64_t n, struct oc_kept *kept)
{
    if (n < LEAST_QUANTIZED) {
        kept[0] =
            (struct oc_kept){"small states", "tensors below 4096 numbers keep both states in fp32", 2 * n, OC_FP32};
        return 1;
    }
    const uint64_t blocks = (n + QUANTIZED_BLOCK - 1) / QUANTIZED_BLOCK;
    int count = 0;
    kept[count++] = (struct oc_kept){"scale of exp_avg", "one for 256 numbers", blocks, OC_FP32};
    kept[count++] = (struct oc_kept){"scale of exp_avg_sq", "one for 256 numbers", blocks, OC_FP32};
    if (plan->c.optimizer == OC_OPTIM_PAGED_ADAMW8BIT && n >= LEAST_PAGED) return count;
    kept[count++] = (struct oc_kept){"exp_avg", "one byte a number", n, OC_INT8};
    kept[count++] = (struct oc_kept){"exp_avg_sq", "one byte a number", n, OC_INT8};
    return count;
}

int oc_optimizer_keeps(const struct oc_plan *plan, uint64_t elements, uint64_t columns, enum oc_dtype own, bool matrix,
                       struct oc_kept *kept)
{
    switch (plan->c.optimizer) {
    case OC_OPTIM_ADAM8BIT:
    case OC_OPTIM_PAGED_ADAMW8BIT: return keeps_8bit(plan, elements, kept);
    case OC_OPTIM_ADAFACTOR:
        if (!columns) {
            kept[0] = (struct oc_kept){"exp_avg_sq", "a vector keeps the whole second moment, fp32", elements, OC_FP32};
            return 1;
        }
        kept[0] = (struct oc_kept){"exp_avg_sq_row", "means over rows, fp32", elements / columns, OC_FP32};
        kept[1] = (struct oc_kept){"exp_avg_sq_col", "means over columns, fp32", columns, OC_FP32};
        return 2;
    case OC_OPTIM_MUON:
        kept[0] = (struct oc_kept){"exp_avg_sq", "adamw for embeddings, the head and vectors", elements, own};
        return matrix ? 0 : 1;
    default: return 0;
    }
}

void oc_add_optimizer_states(struct oc_build *build)
{
    const struct oc_plan *plan = build->plan;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        struct oc_kept kept[OC_MAX_KEPT];
        if (param->frozen) continue;
        const uint64_t columns = param->columns > 1 ? param->columns : 0;
        const bool matrix = columns && (param->part == OC_PART_LAYER || param->adapter);
        const enum oc_dtype own = param->adapter ? oc_param_dtype(plan, param) : plan->dt.moment1;
        const int n = oc_optimizer_keeps(plan, param->elements, columns, own, matrix, kept);
        for (int k = 0; k < n; k++) {
            const struct oc_entry entry = {.name = param->name,
                                           .copy = kept[k].name,
                                           .why = kept[k].why,
                                           .source = is_8bit(plan->c.optimizer)                ? BNB
                                                     : plan->c.optimizer == OC_OPTIM_ADAFACTOR ? ADAFACTOR
                                                                                               : MUON,
                                           .elements = kept[k].elements,
                                           .count = param->count,
                                           .class = OC_OPTIMIZER,
                                           .dtype = (uint8_t)kept[k].dtype,
                                           .kind = param->kind,
                                           .birth = oc_states_birth(plan),
                                           .death = OC_AT(END)};
            oc_build_add(build, &entry);
        }
    }
}

static void add_scratch(struct oc_build *build, const char *name, const char *why, const char *source,
                        uint64_t elements, enum oc_dtype dtype)
{
    const struct oc_entry scratch = {.name = name,
                                     .why = why,
                                     .source = source,
                                     .elements = elements,
                                     .count = 1,
                                     .class = OC_BUFFERS,
                                     .dtype = (uint8_t)dtype,
                                     .birth = OC_AT_SUB(STEP, 2),
                                     .death = OC_AT_SUB(STEP, 3)};
    oc_build_add(build, &scratch);
}

void oc_add_optimizer_scratch(struct oc_build *build, uint64_t elements, uint64_t tensors)
{
    const struct oc_plan *plan = build->plan;
    const struct oc_config *c = &plan->c;
    if (is_adam(c->optimizer) && c->optimizer_impl == OC_IMPL_LOOP) {
        const char *why = "loop: one tensor at a time, the largest decides";
        add_scratch(build, "optimizer scratch, square root", why, "torch/optim/adam.py _single_tensor_adam", elements,
                    plan->dt.moment2);
        add_scratch(build, "optimizer scratch, quotient", why, "torch/optim/adam.py _single_tensor_adam", elements,
                    plan->dt.moment2);
    }
    if (c->optimizer == OC_OPTIM_ADAFACTOR)
        add_scratch(build, "optimizer scratch, update and its square", "one tensor at a time, the largest decides",
                    ADAFACTOR, 2 * elements, OC_FP32);
    if (is_8bit(c->optimizer)) {
        const struct oc_entry maps = {.name = "quantization maps",
                                      .why = "256 levels for each of the two states",
                                      .source = BNB,
                                      .elements = 256,
                                      .count = 2,
                                      .class = OC_OPTIMIZER,
                                      .dtype = OC_FP32,
                                      .birth = oc_states_birth(plan),
                                      .death = OC_AT(END)};
        oc_build_add(build, &maps);
    }
    if (is_adam(c->optimizer) && c->optimizer_impl == OC_IMPL_FUSED) {
        const struct oc_entry steps = {.name = "step counters",
                                       .why = "fused: the step count lives on the device, a block a tensor",
                                       .source = "torch/optim/adam.py",
                                       .elements = 1,
                                       .count = (uint32_t)tensors,
                                       .class = OC_OPTIMIZER,
                                       .dtype = OC_FP32,
                                       .birth = oc_states_birth(plan),
                                       .death = OC_AT(END)};
        oc_build_add(build, &steps);
    }
}
