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

static int keeps_8bit(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept)
{
    const uint64_t n = shape->elements;
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

static int keeps_means(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept)
{
    (void)plan;
    if (!shape->columns) {
        kept[0] =
            (struct oc_kept){"exp_avg_sq", "a vector keeps the whole second moment, fp32", shape->elements, OC_FP32};
        return 1;
    }
    kept[0] = (struct oc_kept){"exp_avg_sq_row", "means over rows, fp32", shape->elements / shape->columns, OC_FP32};
    kept[1] = (struct oc_kept){"exp_avg_sq_col", "means over columns, fp32", shape->columns, OC_FP32};
    return 2;
}

static int keeps_second_of_others(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept)
{
    (void)plan;
    kept[0] = (struct oc_kept){"exp_avg_sq", "adamw for embeddings, the head and vectors", shape->elements, shape->own};
    return shape->matrix ? 0 : 1;
}

/* Types of states beside those of dtype.h. */
enum { OWN = -1 /* as what is updated */ };

/* An optimizer is a row. `plain`: its first and second state are like the parameter, one number for each of its own, so
 * that a framework's rules for moments describe them; `keeps` says what it keeps instead or besides. */
static const struct optimizer {
    int type[2]; /* of the first and second state: OC_NONE where there is none */
    bool plain[2];
    int (*keeps)(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept);
    const char *source;
} optimizers[] = {
    [OC_OPTIM_SGD] = {{OWN, OC_NONE}, {true, false}, NULL, NULL},
    [OC_OPTIM_ADAM] = {{OWN, OWN}, {true, true}, NULL, NULL},
    [OC_OPTIM_ADAMW] = {{OWN, OWN}, {true, true}, NULL, NULL},
    [OC_OPTIM_ADAM8BIT] = {{OC_INT8, OC_INT8}, {false, false}, keeps_8bit, BNB},
    [OC_OPTIM_PAGED_ADAMW8BIT] = {{OC_INT8, OC_INT8}, {false, false}, keeps_8bit, BNB},
    [OC_OPTIM_ADAFACTOR] = {{OC_NONE, OC_FP32}, {false, false}, keeps_means, ADAFACTOR},
    [OC_OPTIM_LION] = {{OWN, OC_NONE}, {true, false}, NULL, NULL},
    [OC_OPTIM_MUON] = {{OWN, OWN}, {true, false}, keeps_second_of_others, MUON},
};

static bool is_8bit(int64_t optimizer)
{
    return optimizers[optimizer].keeps == keeps_8bit;
}

static bool is_adam(int64_t optimizer)
{
    return optimizers[optimizer].plain[1];
}

bool oc_optimizer_is_plain(const struct oc_plan *plan, int which)
{
    return optimizers[plan->c.optimizer].plain[which - 1];
}

void oc_optimizer_dtypes(const struct oc_config *config, enum oc_dtype updated, enum oc_dtype *moment1,
                         enum oc_dtype *moment2)
{
    const int *type = optimizers[config->optimizer].type;
    *moment1 = type[0] == OWN ? updated : (enum oc_dtype)type[0];
    *moment2 = type[1] == OWN ? updated : (enum oc_dtype)type[1];
    if (config->optimizer == OC_OPTIM_SGD && !(config->optimizer_momentum > 0)) *moment1 = OC_NONE;
}

int oc_optimizer_keeps(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept)
{
    const struct optimizer *row = &optimizers[plan->c.optimizer];
    return row->keeps ? row->keeps(plan, shape, kept) : 0;
}

void oc_add_optimizer_states(struct oc_build *build, bool dealt)
{
    const struct oc_plan *plan = build->plan;
    for (int i = 0; i < build->n_params; i++) {
        const struct oc_param *param = &build->params[i];
        struct oc_kept kept[OC_MAX_KEPT];
        if (param->frozen) continue;
        const uint64_t columns = param->columns > 1 ? param->columns : 0;
        const bool matrix = columns && (param->part == OC_PART_LAYER || param->adapter);
        const struct oc_tensor_shape shape = {.elements = param->elements,
                                              .columns = columns,
                                              .own = param->adapter ? oc_param_dtype(plan, param) : plan->dt.moment1,
                                              .matrix = matrix};
        const uint64_t ranks = dealt ? oc_plan_shard(plan, param->expert) : 1;
        const int n = oc_optimizer_keeps(plan, &shape, kept);
        for (int k = 0; k < n; k++) {
            const struct oc_entry entry = {.name = param->name,
                                           .copy = kept[k].name,
                                           .why = kept[k].why,
                                           .source = optimizers[plan->c.optimizer].source,
                                           .elements = kept[k].elements / ranks,
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
    struct oc_entry scratch = oc_buffer_entry(name, why, source, elements, dtype);
    scratch.birth = OC_AT_SUB(STEP, 2);
    scratch.death = OC_AT_SUB(STEP, 3);
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
