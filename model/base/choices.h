/* The names of enum and set options, and the reasons why an option may not apply. Only the options table includes this.
 */
#ifndef OOMCAST_CHOICES_H
#define OOMCAST_CHOICES_H

#include "oomcast/config.h"

extern const struct oc_choice oc_choices_framework[], oc_choices_kind[], oc_choices_positions[], oc_choices_norm[],
    oc_choices_activation[], oc_choices_precision[], oc_choices_autocast[], oc_choices_dtype[], oc_choices_dtype_none[],
    oc_choices_cp_comm[], oc_choices_optimizer[], oc_choices_impl[], oc_choices_recompute[], oc_choices_method[],
    oc_choices_modules[], oc_choices_opset[], oc_choices_attention[], oc_choices_loss[], oc_choices_norm_kernel[],
    oc_choices_backend[], oc_choices_head[], oc_choices_fp8_recipe[], oc_choices_loss_fusion[], oc_choices_dispatcher[],
    oc_choices_lora_targets[], oc_choices_lora_base[], oc_choices_offload[], oc_choices_fsdp_wrap[];

const char *oc_needs_learned_positions(const struct oc_config *c);
const char *oc_needs_adam(const struct oc_config *c);
const char *oc_needs_sgd(const struct oc_config *c);
const char *oc_needs_torch_optimizer(const struct oc_config *c);
const char *oc_needs_dp(const struct oc_config *c);
const char *oc_needs_ddp(const struct oc_config *c);
const char *oc_needs_tp(const struct oc_config *c);
const char *oc_needs_pp(const struct oc_config *c);
const char *oc_needs_cp(const struct oc_config *c);
const char *oc_needs_zero(const struct oc_config *c);
const char *oc_needs_full_recompute(const struct oc_config *c);
const char *oc_needs_selective_recompute(const struct oc_config *c);
const char *oc_needs_megatron(const struct oc_config *c);
const char *oc_needs_experts(const struct oc_config *c);
const char *oc_needs_mla(const struct oc_config *c);
const char *oc_needs_fp8(const struct oc_config *c);
const char *oc_needs_fsdp(const struct oc_config *c);
const char *oc_needs_no_sync(const struct oc_config *c);
const char *oc_needs_fsdp2(const struct oc_config *c);
const char *oc_needs_optimizer_offload(const struct oc_config *c);
const char *oc_needs_deepspeed(const struct oc_config *c);
const char *oc_needs_lora(const struct oc_config *c);

#endif
