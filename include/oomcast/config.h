/* The options a user can set, as one table and one plain value.
 *
 * Everything comes from include/oomcast/options.def: the fields of struct oc_config, their ids (OC_OPT_*) and the rows
 * of the table that drives --set, sessions, importers, `oomcast options` and the panel.
 *
 * Ownership: an oc_config is a plain value, copied by assignment; table rows are const and live for ever. */
#ifndef OOMCAST_CONFIG_H
#define OOMCAST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oomcast/error.h"

enum { OC_NAME_MAX = 64 }; /* longest string option, with its NUL */

enum oc_type { OC_T_INT, OC_T_BOOL, OC_T_ENUM, OC_T_SET, OC_T_FLOAT, OC_T_STRING };

/* Values of the enum options. The order is the order in which the panel cycles through them. */
enum oc_framework {
    OC_FW_ARTICLE,
    OC_FW_ZERO_PAPER,
    OC_FW_PYTORCH,
    OC_FW_FSDP1,
    OC_FW_FSDP2,
    OC_FW_DEEPSPEED,
    OC_FW_MEGATRON,
    OC_FW_MEGATRON_FSDP, /* in a plan: OC_FW_MEGATRON with parallel.zero 2 or 3 */
    OC_FRAMEWORKS
};
enum oc_kind { OC_KIND_DECODER, OC_KIND_ENCODER };
enum oc_head { OC_HEAD_LM, OC_HEAD_CLASSIFICATION, OC_HEAD_NONE };
enum oc_positions { OC_POS_LEARNED, OC_POS_ROPE, OC_POS_ALIBI, OC_POS_NONE };
enum oc_norm { OC_NORM_LAYERNORM, OC_NORM_RMSNORM };
enum oc_activation { OC_ACT_GELU, OC_ACT_RELU, OC_ACT_SQUARED_RELU, OC_ACT_SWIGLU, OC_ACT_GEGLU };
enum oc_precision {
    OC_PREC_FP32,
    OC_PREC_AMP_FP16, /* autocast over fp32 weights */
    OC_PREC_AMP_BF16,
    OC_PREC_FP16, /* 16-bit weights under the framework's own master rule */
    OC_PREC_BF16,
    OC_PREC_PURE_FP16, /* 16-bit weights and no master copy */
    OC_PREC_PURE_BF16,
    OC_PREC_FP8 /* linear layers compute in fp8; weights and states as in bf16 */
};
enum oc_fp8_recipe { OC_FP8_DELAYED, OC_FP8_TENSORWISE, OC_FP8_ROWWISE, OC_FP8_BLOCKWISE, OC_FP8_MXFP8 };
enum oc_cp_comm { OC_CP_P2P, OC_CP_A2A, OC_CP_A2A_P2P, OC_CP_ALLGATHER };
enum oc_recompute { OC_RECOMPUTE_NONE, OC_RECOMPUTE_SELECTIVE, OC_RECOMPUTE_FULL };
enum oc_recompute_method { OC_METHOD_UNIFORM, OC_METHOD_BLOCK };
enum oc_recompute_module {
    OC_MODULE_CORE_ATTN = 1,
    OC_MODULE_MLP = 2,
    OC_MODULE_LAYERNORM = 4,
    OC_MODULE_MOE = 8,
    OC_MODULE_MOE_ACT = 16,
    OC_MODULE_MLA_UP_PROJ = 32,
    OC_MODULE_SHARED_EXPERTS = 64,
    OC_MODULE_TORCHTITAN_OP = 128
};
enum oc_optimizer {
    OC_OPTIM_SGD,
    OC_OPTIM_ADAM,
    OC_OPTIM_ADAMW,
    OC_OPTIM_ADAM8BIT,
    OC_OPTIM_PAGED_ADAMW8BIT,
    OC_OPTIM_ADAFACTOR,
    OC_OPTIM_LION,
    OC_OPTIM_MUON
};
enum oc_optimizer_impl { OC_IMPL_FUSED, OC_IMPL_FOREACH, OC_IMPL_LOOP };
enum oc_opset { OC_OPSET_TE, OC_OPSET_LOCAL, OC_OPSET_HF, OC_OPSET_TORCHTITAN, OC_OPSET_TORCHTUNE, OC_OPSET_LITGPT };
enum oc_attention { OC_ATTN_EAGER, OC_ATTN_UNFUSED, OC_ATTN_FLASH };
enum oc_loss { OC_LOSS_EAGER, OC_LOSS_FUSED, OC_LOSS_TE_FUSED, OC_LOSS_FUSED_LINEAR, OC_LOSS_CHUNKED };
enum oc_norm_kernel { OC_NORMK_EAGER, OC_NORMK_FUSED };
enum oc_dispatcher { OC_DISPATCH_ALLGATHER, OC_DISPATCH_ALLTOALL, OC_DISPATCH_FLEX };
enum oc_loss_fusion { OC_FUSION_NATIVE, OC_FUSION_TE };
enum oc_lora_target {
    OC_LORA_Q = 1,
    OC_LORA_K = 2,
    OC_LORA_V = 4,
    OC_LORA_O = 8,
    OC_LORA_GATE = 16,
    OC_LORA_UP = 32,
    OC_LORA_DOWN = 64,
    OC_LORA_HEAD = 128,
    OC_LORA_QKV = 256
};
enum oc_lora_base {
    OC_BASE_SAME,
    OC_BASE_FP32,
    OC_BASE_BF16,
    OC_BASE_FP16,
    OC_BASE_NF4,
    OC_BASE_NF4_DQ,
    OC_BASE_INT4_GPTQ,
    OC_BASE_INT8_GPTQ
};
enum oc_offload { OC_OFFLOAD_NONE, OC_OFFLOAD_CPU };
enum oc_fsdp_wrap { OC_WRAP_LAYER, OC_WRAP_NONE };
enum oc_backend { OC_BACKEND_AUTO, OC_BACKEND_FLASH, OC_BACKEND_FUSED, OC_BACKEND_UNFUSED, OC_BACKEND_LOCAL };

struct oc_config {
/* In the struct: one typed field per option. A value counts only where its `given` bit is set; see oc_given(). */
#define OC_FIELD_INT(field)         int64_t field;
#define OC_FIELD_BOOL(field)        int64_t field;
#define OC_FIELD_ENUM(field)        int64_t field;
#define OC_FIELD_SET(field)         int64_t field;
#define OC_FIELD_FLOAT(field)       double field;
#define OC_FIELD_STRING(field)      char field[OC_NAME_MAX];
#define OC_OPTION(type, field, ...) OC_FIELD_##type(field)
#include "oomcast/options.def"
#undef OC_OPTION
    uint64_t
        given[4]; /* one bit per option: set by a file, by --set or by hand. What is not given follows the framework */
};

enum oc_option_id {
#define OC_OPTION(type, field, ...) OC_OPT_##field,
#include "oomcast/options.def"
#undef OC_OPTION
    OC_OPTIONS
};

struct oc_choice {
    const char
        *name; /* as typed and shown; NULL ends a list. A second name of a value seen before is only a spelling */
    int64_t value;
    const char *help; /* a few words, or NULL */
};

/* One row of the table: all that anyone needs to know about an option. */
struct oc_option {
    const char *key;   /* full dotted name, "parallel.tp" */
    const char *group; /* section of the panel, "Parallel" */
    const char *label; /* in the panel, at most 16 characters */
    enum oc_type type;
    size_t offset;     /* of the field in struct oc_config */
    const char *help;  /* one sentence */
    const char *flags; /* what launch scripts call it, separated by spaces: "--tensor-model-parallel-size" */
    const char *also;  /* further names to find it by: keys of DeepSpeed and Hugging Face files */
    const struct oc_choice *choices; /* ENUM and SET: the names */
    int64_t def, min, max;           /* INT, BOOL, ENUM, SET. def of a derived INT is 0: "follows from other options" */
    double fdef, fmin, fmax;         /* FLOAT */
    const char *steps;               /* INT: what h and l go through, "1 2 4 8"; NULL: halve and double */
    bool owns_last_part;             /* its last part alone names it, although others end so too */
    bool is_bytes;                   /* INT: a byte count; 80GiB and 80GB are accepted */
    const char *(*inapplicable)(
        const struct oc_config *resolved); /* NULL, or why it has no effect now ("needs pp > 1") */
};

/* The row of an option. `id` must be below OC_OPTIONS. */
const struct oc_option *oc_option(enum oc_option_id id);

/* Finds an option by its full name, or by a last part that is unique ("tp"). On failure returns false, with the
 * candidates or the nearest name as the hint. */
bool oc_option_find(const char *name, enum oc_option_id *id, struct oc_error *error);

/* Finds an option by a launch-script flag such as "--tp-size" listed in its row; returns OC_OPTIONS when none has it.
 */
enum oc_option_id oc_option_by_flag(const char *flag);

/* Reads `text` as a value of the option and stores it with its given bit. Numbers may be written 7e9, 7B, 4k, 220_000;
 * byte counts 80GiB, 80GB; booleans true/false/1/0/yes/no/on/off; sets a,b,c. On failure `config` is unchanged. */
bool oc_option_set(struct oc_config *config, enum oc_option_id id, const char *text, struct oc_error *error);

/* "key=value" as written after --set; no whole-configuration validation happens here. */
bool oc_config_assign(struct oc_config *config, const char *assignment, enum oc_option_id *id, struct oc_error *error);

/* The value as text ("bf16", "true", "128256", "core_attn,mlp"), in the form that oc_option_set reads. Returns `text`.
 */
const char *oc_option_text(const struct oc_config *config, enum oc_option_id id, char *text, size_t size);

/* INT, BOOL, ENUM and SET options as a number. */
int64_t oc_option_get(const struct oc_config *config, enum oc_option_id id);
void oc_option_put(struct oc_config *config, enum oc_option_id id, int64_t value); /* does not touch the given bit */

bool oc_given(const struct oc_config *config, enum oc_option_id id);
void oc_set_given(struct oc_config *config, enum oc_option_id id, bool given);

/* Forgets a value: it follows the framework again. */
void oc_option_reset(struct oc_config *config, enum oc_option_id id);

/* The configuration with nothing given. */
struct oc_config oc_config_default(void);

/* Copies what `later` gives over what `config` lacks ("the earlier wins"). */
void oc_config_merge(struct oc_config *config, const struct oc_config *later);

/* Integers as people and scripts write them: 4096, 220_000_000, 7e9, 5e8, 1.5k, 7B (1e9), 2Ki. False unless the whole
 * text is one integer that fits. `unit_bytes` also accepts KB MB GB TB KiB MiB GiB TiB. */
bool oc_parse_integer(const char *text, bool unit_bytes, int64_t *value);

#endif
