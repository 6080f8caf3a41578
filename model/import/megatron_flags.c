/* What each flag of Megatron-LM means for memory. Flags that are simply the value of an option stand in the options
 * table; here is everything else. */
#include <string.h>

#include "model/import/megatron.h"

/* clang-format off */

/* Present means one value of one option. */
static const struct { const char *flag; enum oc_option_id option; const char *text; } switches[] = {
    {"--fp16", OC_OPT_precision, "fp16"},
    {"--bf16", OC_OPT_precision, "bf16"},
    {"--swiglu", OC_OPT_model_activation, "swiglu"},
    {"--quick-geglu", OC_OPT_model_activation, "geglu"},
    {"--squared-relu", OC_OPT_model_activation, "squared-relu"},
    {"--disable-bias-linear", OC_OPT_model_linear_bias, "false"},
    {"--untie-embeddings-and-output-weights", OC_OPT_model_tied, "false"},
    {"--use-distributed-optimizer", OC_OPT_parallel_zero, "1"},
    {"--use-flash-attn", OC_OPT_kernels_attention, "flash"},
    {"--use-flash-attn-v2", OC_OPT_kernels_attention, "flash"},
    {"--no-gradient-accumulation-fusion", OC_OPT_megatron_gradient_accumulation_fusion, "false"},
    {"--no-masked-softmax-fusion", OC_OPT_megatron_masked_softmax_fusion, "false"},
    {"--apply-query-key-layer-scaling", OC_OPT_megatron_softmax_in_fp32, "true"},
    {"--optimizer-cpu-offload", OC_OPT_offload_optimizer, "cpu"},
    {"--cpu-optimizer", OC_OPT_offload_optimizer, "cpu"},
    {"--fp32-residual-connection", OC_OPT_precision_residual, "fp32"},
    {"--no-create-attention-mask-in-dataloader", OC_OPT_megatron_dataloader_mask, "false"},
    {"--fp16-lm-cross-entropy", OC_OPT_kernels_logits_fp32, "false"},
    {"--checkpoint-activations", OC_OPT_recompute, "full"},
};

static const struct { const char *flag; enum megatron_fact fact; enum megatron_arity arity; } facts[] = {
    {"--group-query-attention", FACT_GROUP_QUERY_ATTENTION, ARITY_NONE},
    {"--num-query-groups", FACT_NUM_QUERY_GROUPS, ARITY_ONE},
    {"--position-embedding-type", FACT_POSITION_EMBEDDING_TYPE, ARITY_ONE},
    {"--use-rotary-position-embeddings", FACT_ROTARY, ARITY_NONE},
    {"--no-position-embedding", FACT_NO_POSITION_EMBEDDING, ARITY_NONE},
    {"--num-layers-per-virtual-pipeline-stage", FACT_LAYERS_PER_VIRTUAL_STAGE, ARITY_ONE},
    {"--recompute-activations", FACT_RECOMPUTE_ACTIVATIONS, ARITY_NONE},
    {"--cross-entropy-loss-fusion", FACT_CROSS_ENTROPY_FUSION, ARITY_NONE},
    {"--cross-entropy-fusion-impl", FACT_CROSS_ENTROPY_IMPL, ARITY_ONE},
    {"--num-distributed-optimizer-instances", FACT_OPTIMIZER_INSTANCES, ARITY_ONE},
    {"--multi-latent-attention", FACT_LATENT_ATTENTION, ARITY_NONE},
    {"--moe-layer-freq", FACT_MOE_LAYER_FREQ, ARITY_ONE},
    {"--fp8-format", FACT_FP8, ARITY_ONE}, {"--fp8-hybrid", FACT_FP8, ARITY_NONE}, {"--fp8-e4m3", FACT_FP8, ARITY_NONE},
    {"--fp4-format", FACT_FP4, ARITY_ONE},
    {"--main-grads-dtype", FACT_MAIN_GRADS, ARITY_ONE}, {"--main-params-dtype", FACT_MAIN_PARAMS, ARITY_ONE},
    {"--exp-avg-dtype", FACT_EXP_AVG, ARITY_ONE}, {"--exp-avg-sq-dtype", FACT_EXP_AVG_SQ, ARITY_ONE},
    {"--tokenizer-type", FACT_TOKENIZER, ARITY_ONE},
    {"--padded-vocab-size", FACT_PADDED_VOCAB, ARITY_ONE},
    {"--nproc-per-node", FACT_NPROC_PER_NODE, ARITY_ONE}, {"--num-gpus", FACT_NPROC_PER_NODE, ARITY_ONE},
    {"--nnodes", FACT_NNODES, ARITY_ONE}, {"--num-nodes", FACT_NNODES, ARITY_ONE},
    {"--standalone", FACT_STANDALONE, ARITY_NONE},
    {"--use-megatron-fsdp", FACT_FSDP, ARITY_NONE}, {"--use-custom-fsdp", FACT_FSDP, ARITY_NONE},
    {"--use-torch-fsdp2", FACT_TORCH_FSDP2, ARITY_NONE},
    {"--data-parallel-sharding-strategy", FACT_SHARDING_STRATEGY, ARITY_ONE},
};

/* They change memory. `harmless`: the value at which they do not. */
static const struct { const char *flag; enum megatron_arity arity; const char *harmless, *text; } unmodelled[] = {
    {"--use-cpu-initialization", ARITY_NONE, NULL, "weights are built in host memory: the start takes less on the GPU"},
    {"--init-model-with-meta-device", ARITY_NONE, NULL, "weights are built without memory: the start takes less"},
    {"--empty-unused-memory-level", ARITY_ONE, "0", "the allocator's cache is emptied in every step: less is reserved between steps"},
    {"--cpu-offloading", ARITY_NONE, NULL, "activations offloaded to the host"},
    {"--cpu-offloading-num-layers", ARITY_ONE, "0", "activations offloaded to the host"},
    {"--fine-grained-activation-offloading", ARITY_NONE, NULL, "activations offloaded to the host"},
    {"--enable-cuda-graph", ARITY_NONE, NULL, "CUDA graphs keep their own memory"},
    {"--external-cuda-graph", ARITY_NONE, NULL, "CUDA graphs keep their own memory"},
    {"--cuda-graph-impl", ARITY_ONE, "none", "CUDA graphs keep their own memory"},
    {"--delay-wgrad-compute", ARITY_NONE, NULL, "activations kept for delayed weight gradients are left out"},
    {"--encoder-num-layers", ARITY_ONE, "0", "an encoder of its own is left out"},
    {"--encoder-tensor-model-parallel-size", ARITY_ONE, "0", "an encoder of its own is left out"},
    {"--encoder-pipeline-model-parallel-size", ARITY_ONE, "0", "an encoder of its own is left out"},
    {"--pipeline-model-parallel-split-rank", ARITY_ONE, NULL, "an encoder of its own is left out"},
    {"--outer-dp-sharding-strategy", ARITY_ONE, "no_shard", "what is shared in the outer groups, too, is counted as whole there"},
    {"--fsdp-double-buffer", ARITY_NONE, NULL, "a second set of communication buffers is left out"},
    {"--nccl-ub", ARITY_NONE, NULL, "registered communication buffers are left out"},
    {"--use-nccl-ub", ARITY_NONE, NULL, "registered communication buffers are left out"},
    {"--ddp-bucket-size", ARITY_ONE, NULL, "Megatron's own bucket size is taken"},
    {"--ddp-num-buckets", ARITY_ONE, NULL, "Megatron's own bucket size is taken"},
    {"--ddp-reduce-scatter-with-fp32-accumulation", ARITY_NONE, NULL, "a bucket of fp32 gradients during the reduction is left out"},
    {"--hybrid-override-pattern", ARITY_ONE, NULL, "Mamba layers: the model is counted as a transformer"},
    {"--hybrid-attention-ratio", ARITY_ONE, "0.0", "Mamba layers: the model is counted as a transformer"},
    {"--is-hybrid-model", ARITY_NONE, NULL, "Mamba layers: the model is counted as a transformer"},
    {"--heterogeneous-layers-config-path", ARITY_ONE, NULL, "layers that differ: all are counted alike"},
    {"--use-legacy-models", ARITY_NONE, NULL, "legacy modules keep other activations than Megatron core's"},
    {"--perform-rl-step", ARITY_NONE, NULL, "reinforcement learning: inference memory is left out"},
    {"--retro-add-retriever", ARITY_NONE, NULL, "Retro's retriever is left out"},
    {"--lora-rank", ARITY_ONE, "0", "LoRA: the model is counted as fully trained"},
    {"--yaml-cfg", ARITY_ONE, NULL, "settings in a YAML file are not read"},
    {"--deepspeed", ARITY_NONE, NULL, "DeepSpeed's engine: Megatron's own rules are applied"},
    {"--zero-stage", ARITY_ONE, "0", "DeepSpeed's ZeRO: Megatron's own rules are applied"},
    {"--deepspeed-activation-checkpointing", ARITY_NONE, NULL, "DeepSpeed's activation checkpointing"},
};

/* No effect on memory, or none without a flag above. Whole families end in '*'. */
static const char *const silent_switches =
    "--recompute-swin --profile --use-pytorch-profiler --record-memory-history --calculate-per-token-loss "
    "--no-check-for-nan-in-loss-and-grad --check-for-nan-in-loss-and-grad --check-for-spiky-loss --check-for-large-grads "
    "--no-clone-scatter-output-in-embedding --disable-gloo-process-groups --disable-tp-comm-* --tp-comm-overlap-rs-dgrad "
    "--exit-signal-handler --exit-on-missing-checkpoint --no-bias-gelu-fusion --no-bias-swiglu-fusion --no-bias-dropout-fusion "
    "--no-rope-fusion --no-persist-layer-norm --use-mcore-models --manual-gc --no-manual-gc-eval --use-te-activation-func "
    "--no-async-tensor-model-parallel-allreduce --use-torch-optimizer-for-cpu-offload --overlap-cpu-optimizer-d2h-h2d "
    "--no-pin-cpu-grads --no-pin-cpu-params --decrease-batch-size-if-needed --data-parallel-random-init "
    "--init-method-xavier-uniform --override-opt-param-scheduler --use-checkpoint-opt-param-scheduler --no-save-optim "
    "--no-save-rng --no-load-optim --no-load-rng --load-main-params-from-ckpt --finetune --no-initialization "
    "--use-checkpoint-args --use-mp-args-from-checkpoint-args --no-use-tokenizer-model-from-checkpoint-args --use-dist-ckpt "
    "--use-persistent-ckpt-worker --auto-detect-ckpt-format --ckpt-fully-parallel-save --no-ckpt-fully-parallel-save "
    "--async-save --ckpt-fully-parallel-load --ckpt-assume-constant-structure "
    "--disable-bf16-reduced-precision-matmul --reuse-grad-buf-for-mxfp8-param-ag "
    "--no-overlap-p2p-communication --overlap-p2p-communication-warmup-flush --no-align-grad-reduce --align-grad-reduce "
    "--align-param-gather --no-align-param-gather --ddp-average-in-collective --overlap-param-gather-with-optimizer-step "
    "--no-scatter-gather-tensors-in-pipeline --use-ring-exchange-p2p --no-gradient-reduce-div-fusion --keep-fp8-transpose-cache "
    "--enable-full-sharding-in-hsdp --torch-fsdp2-no-reshard-after-forward --use-tp-pp-dp-mapping --use-sharp --replication "
    "--full-validation --multiple-validation-sets --test-mode --skip-train --legacy-tokenizer --trust-remote-code "
    "--no-mmap-bin-files --mock-data --reset-position-ids --reset-attention-mask --eod-mask-loss "
    "--allow-ambiguous-pad-tokens --adlr-autoresume --log-params-norm "
    "--log-num-zeros-in-grad --log-throughput --log-progress --log-energy --log-straggler --disable-straggler-on-startup "
    "--no-barrier-with-level-1-timing --log-timers-to-tensorboard --no-log-loss-scale-to-tensorboard "
    "--log-validation-ppl-to-tensorboard --log-memory-to-tensorboard --log-world-size-to-tensorboard "
    "--log-loss-scale-to-tensorboard --log-batch-size-to-tensorboard --log-learning-rate-to-tensorboard "
    "--no-one-logger --one-logger-async --enable-one-logger --enable-ft-package --calc-ft-timeouts --enable-experimental "
    "--disable-msc --sft --rotary-interleaved --use-rope-scaling --apply-layernorm-1p "
    "--apply-residual-connection-post-layernorm --openai-gelu --bert-no-binary-head --qk-l2-norm --fp8-wgrad --no-fp8-wgrad "
    "--first-last-layers-bf16 --cache-mla-latents --use-fused-weighted-squared-relu --inprocess-restart "
    "--run-workload-inspector-server --no-strict-fsdp-dtensor-load --untie-embeddings --no-pipeline-parallel "
    "--use-rotary-interleaved --no-query-key-layer-scaling --dist-ckpt-optim-fully-reshardable "
    "--muon-no-split-qkv --muon-use-nesterov --no-load-strict --enable-gloo-process-groups --use-fused-rmsnorm "
    "--high-precision-init-val --no-async-save --disable-symmetric-registration "
    /* launchers */
    "--exclusive --no-python --module --autotuning --no-ssh --use-env --redirects-all";

static const char *const silent_values =
    "--lr --lr-* --min-lr --warmup --decoupled-lr --decoupled-min-lr --weight-decay --start-weight-decay --end-weight-decay "
    "--weight-decay-incr-style --clip-grad --adam-beta1 --adam-beta2 --adam-eps --muon-* --seed --init-method-std "
    "--embedding-init-method-std --train-iters --train-samples --log-interval --exit-interval --exit-duration-in-mins "
    "--tensorboard-* --wandb-* --logging-level --timing-log-level --timing-log-option --profile-step-start --profile-step-end "
    "--memory-snapshot-path --result-rejected-tracker-filename --tp-comm-overlap-cfg --tp-comm-bootstrap-backend "
    "--check-weight-hash-across-dp-replicas-interval --train-sync-interval --rope-type --rotary-base --rotary-percent "
    "--rotary-seq-len-interpolation-factor --rotary-scaling-factor --rope-scaling-factor --no-rope-freq --mscale "
    "--mscale-all-dim --original-max-position-embeddings --dataloader-type --manual-gc-interval "
    "--pipeline-model-parallel-comm-backend --dump-param-to-param-group-map "
    "--error-injection-rate --error-injection-type --rerun-mode --save --save-interval --persistent-save-interval "
    "--save-retain-interval --load --non-persistent-* --pretrained-checkpoint --ckpt-step --ckpt-format --dist-ckpt-format "
    "--ckpt-convert-format --ckpt-convert-save --dist-ckpt-strictness --loss-scale --initial-loss-scale --min-loss-scale "
    "--loss-scale-window --hysteresis --distributed-backend --distributed-timeout-minutes "
    "--distributed-timeout-seconds-after-init --local-rank --lazy-mpu-init --sharp-enabled-group "
    "--megatron-fsdp-* --suggested-communication-unit-size "
    "--nccl-communicator-config-path --replication-jump --replication-factor --eval-iters --eval-interval --vocab-file "
    "--merge-file --vocab-extra-ids --tokenizer-model --tokenizer-metadata --tokenizer-name-or-path --tiktoken-pattern "
    "--tiktoken-num-special-tokens --split --data-args-path --per-split-data-args-path --data-cache-path "
    "--decoder-seq-length --retriever-seq-length --sample-rate --mask-prob --short-seq-prob --num-workers "
    "--num-dataset-builder-threads --object-storage-cache-path --mid-level-dataset-surplus --adlr-autoresume-interval "
    "--straggler-* --one-logger-* --app-tag-run-name --app-tag-run-version --config-logger-dir --inprocess-* "
    "--sft-tokenizer-prompt-format --norm-epsilon --layernorm-epsilon --window-attn-skip-freq --softmax-type "
    "--relative-attention-num-buckets --relative-attention-max-distance --activation-func-clamp-value --glu-linear-offset "
    "--onnx-safe --mtp-loss-scaling-factor --fp8-margin --fp8-interval --fp8-amax-history-len "
    "--fp8-amax-compute-algo --num-layers-at-start-in-bf16 --num-layers-at-end-in-bf16 "
    "--mamba-* --hybrid-mlp-ratio "
    "--ddp-impl --DDP-impl "
    "--rerun-* --deepspeed-config --mmap-warmup --kill-switch-path --hidden-bias --offload-modules "
    "--cuda-graph-scope --cuda-graph-warmup-steps --patch-tokenizer-type --max-padding-length --dataset "
    /* launchers */
    "--node-rank --master-addr --master-port --rdzv-* --tee --log-dir --role --max-restarts --monitor-interval --start-method "
    "--redirects --hostfile --include --exclude --launcher --launcher-args --nodes --ntasks --ntasks-per-node --gres "
    "--gpus-per-node --cpus-per-task --container-* --partition --account --time --job-name --output --error --export "
    "--mpi --label --cpu-bind --kill-on-bad-exit --jobid --nodelist --local-addr --event-log-handler";

static const char *const silent_lists =
    "--data-path --train-data-path --valid-data-path --test-data-path --rampup-batch-size --iterations-to-skip --profile-ranks "
    "--high-priority-stream-groups --hierarchical-context-parallel-sizes --tiktoken-special-tokens --spec --window-size "
    "--mrope-section --moe-* --train-weighted-split-paths --valid-weighted-split-paths --test-weighted-split-paths "
    "--step-batch-size-schedule --log-levels";

/* clang-format on */

struct search {
    const char *name; /* what is looked for, '-' for '_' */
    size_t length;
    bool prefix; /* any name that begins so */
    struct megatron_flag found;
    int matches;
};

/* Whether a name of the tables is what is looked for. A family takes every name that begins like it. */
static bool fits(const struct search *search, const char *name, size_t length)
{
    bool family = name[length - 1] == '*';
    length -= family;
    if (search->prefix) return length > search->length && !strncmp(name, search->name, search->length);
    return (family ? search->length > length : search->length == length) && !strncmp(name, search->name, length);
}

static void consider(struct search *search, const char *name, size_t length, struct megatron_flag flag)
{
    if (!fits(search, name, length)) return;
    if (search->matches && search->found.name && !strncmp(search->found.name, name, length)) return;
    flag.name = name;
    search->found = flag;
    search->matches++;
}

/* Every name of a space-separated list. */
static void consider_list(struct search *search, const char *list, struct megatron_flag flag)
{
    for (size_t length; list && *list; list += length + (list[length] == ' ')) {
        length = strcspn(list, " ");
        consider(search, list, length, flag);
    }
}

static void consider_all(struct search *search)
{
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        consider(search, switches[i].flag, strlen(switches[i].flag),
                 (struct megatron_flag){
                     .action = MEGATRON_SWITCH, .option = (int)switches[i].option, .text = switches[i].text});
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        consider(search, facts[i].flag, strlen(facts[i].flag),
                 (struct megatron_flag){.action = MEGATRON_NOTED, .fact = facts[i].fact, .arity = facts[i].arity});
    for (size_t i = 0; i < sizeof unmodelled / sizeof *unmodelled; i++)
        consider(search, unmodelled[i].flag, strlen(unmodelled[i].flag),
                 (struct megatron_flag){.action = MEGATRON_UNMODELLED,
                                        .arity = unmodelled[i].arity,
                                        .harmless = unmodelled[i].harmless,
                                        .text = unmodelled[i].text});
    if (!search->matches || search->prefix)
        for (int i = 0; i < OC_OPTIONS; i++) {
            const struct oc_option *option = oc_option((enum oc_option_id)i);
            struct megatron_flag flag = {.action = MEGATRON_VALUE, .option = i, .arity = ARITY_ONE};
            if (option->type == OC_T_BOOL)
                flag = (struct megatron_flag){.action = MEGATRON_SWITCH, .option = i, .text = "true"};
            if (option->type == OC_T_SET || i == OC_OPT_parallel_cp_comm) flag.arity = ARITY_LIST;
            consider_list(search, option->flags, flag);
        }
    if (search->matches && !search->prefix) return;
    consider_list(search, silent_switches, (struct megatron_flag){.action = MEGATRON_SILENT, .arity = ARITY_NONE});
    consider_list(search, silent_values, (struct megatron_flag){.action = MEGATRON_SILENT, .arity = ARITY_ONE});
    consider_list(search, silent_lists, (struct megatron_flag){.action = MEGATRON_SILENT, .arity = ARITY_LIST});
}

struct megatron_flag megatron_flag_find(const char *written, size_t length)
{
    char name[80];
    struct megatron_flag unknown = {.action = MEGATRON_UNKNOWN, .arity = ARITY_LIST};
    if (length < 3 || length >= sizeof name || strncmp(written, "--", 2)) return unknown;
    for (size_t i = 0; i < length; i++) name[i] = written[i] == '_' ? '-' : written[i];
    name[length] = 0;
    struct search exact = {.name = name, .length = length};
    consider_all(&exact);
    if (exact.matches) return exact.found;
    struct search prefix = {.name = name, .length = length, .prefix = true};
    if (length >= 5) consider_all(&prefix);
    return prefix.matches == 1 ? prefix.found : unknown;
}
