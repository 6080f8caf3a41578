/* Megatron-LM launch scripts: values, lines, defaults, assumptions, warnings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "help_import.h"

/* A model and a trainer; the flags of a test follow. */
#define BASE                                                                                                           \
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "         \
    "--seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --vocab-size 50257 "

static struct oc_input *import_flags(const char *flags)
{
    char text[4096];
    snprintf(text, sizeof text, BASE "%s\n", flags);
    return help_import("run.sh", text);
}

struct expected {
    enum oc_option_id id;
    const char *value;
    int line;
};

static void check_all(const struct oc_input *input, const struct expected *expected, size_t n)
{
    for (size_t i = 0; i < n; i++) help_is(input, expected[i].id, expected[i].value, expected[i].line);
}

/* The settings of NVIDIA/Megatron-LM issue #1349, inside prose of our own. */
static void forum_prose(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {OC_OPT_framework, "megatron", 46},
        {OC_OPT_model_layers, "32", 7},
        {OC_OPT_model_hidden, "4096", 8},
        {OC_OPT_model_heads, "32", 8},
        {OC_OPT_model_kv_heads, "8", 17},
        {OC_OPT_model_ffn, "14336", 16},
        {OC_OPT_model_positions, "rope", 22},
        {OC_OPT_model_max_positions, "8192", 12},
        {OC_OPT_model_norm, "rmsnorm", 15},
        {OC_OPT_model_activation, "swiglu", 18},
        {OC_OPT_model_linear_bias, "false", 23},
        {OC_OPT_model_tied, "true", 46},
        {OC_OPT_model_dropout, "0", 14},
        {OC_OPT_model_attention_dropout, "0", 13},
        {OC_OPT_model_vocab, "128256", 20},
        {OC_OPT_model_vocab_multiple, "128", 46},
        {OC_OPT_precision, "fp16", 30},
        {OC_OPT_optimizer, "sgd", 32},
        {OC_OPT_optimizer_momentum, "0.9", 46},
        {OC_OPT_recompute, "full", 33},
        {OC_OPT_recompute_method, "uniform", 34},
        {OC_OPT_recompute_layers, "1", 35},
        {OC_OPT_kernels_transformer, "te", 36},
        {OC_OPT_parallel_tp, "8", 41},
        {OC_OPT_parallel_pp, "1", 42},
        {OC_OPT_parallel_sp, "true", 43},
        {OC_OPT_batch_seq, "4096", 9},
        {OC_OPT_batch_micro, "-", 28},
        {OC_OPT_batch_global, "-", 29},
        {OC_OPT_parallel_world, "-", 46},
    };
    struct oc_input *input = help_input();
    struct oc_error error;
    assert_true(oc_import_file(input, OOMCAST_SOURCE "/tests/data/import/forum.txt", &error));
    check_all(input, expected, sizeof expected / sizeof *expected);
    int given = 0;
    for (int i = 0; i < OC_OPTIONS; i++) given += oc_given(&input->c.config, (enum oc_option_id)i);
    assert_int_equal(given, (int)(sizeof expected / sizeof *expected) - 3); /* and nothing else */
    const struct oc_note *note = help_note(input, OC_NOTE_ASSUMED, "--micro-batch-size", OC_OPT_batch_micro);
    assert_non_null(note);
    assert_string_equal(note->text, "$MICRO_BATCH_SIZE is not set in forum.txt");
    assert_int_equal(note->line, 28);
    assert_non_null(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_batch_global));
    assert_non_null(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_parallel_world));
    note = help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_model_vocab);
    assert_non_null(note);
    assert_non_null(strstr(note->text, "llama-3-8b"));
    assert_int_equal(input->c.origin[OC_OPT_model_vocab].from, OC_FROM_ASSUMED);
    assert_int_equal(help_count(input, OC_NOTE_WARNING), 0);
    free(input);
}

static void defaults_of_the_command_line(void **state)
{
    (void)state;
    static const struct expected expected[] = {
        {OC_OPT_framework, "megatron", 1},       {OC_OPT_model_norm, "layernorm", 1},
        {OC_OPT_model_linear_bias, "true", 1},   {OC_OPT_model_tied, "true", 1},
        {OC_OPT_model_positions, "learned", 1},  {OC_OPT_model_activation, "gelu", 1},
        {OC_OPT_model_dropout, "0.1", 1},        {OC_OPT_model_attention_dropout, "0.1", 1},
        {OC_OPT_model_vocab_multiple, "128", 1}, {OC_OPT_precision, "fp32", 1},
        {OC_OPT_optimizer, "adam", 1},           {OC_OPT_parallel_world, "8", 1},
        {OC_OPT_batch_global, "-", 0},           {OC_OPT_model_kv_heads, "-", 0},
        {OC_OPT_parallel_zero, "-", 0},          {OC_OPT_recompute, "-", 0},
        {OC_OPT_optimizer_momentum, "-", 0},
    };
    struct oc_input *input = import_flags("");
    check_all(input, expected, sizeof expected / sizeof *expected);
    assert_int_equal(input->n_notes, 0);
    free(input);
}

/* Flags, and what one option becomes. */
static void single_flags(void **state)
{
    (void)state;
    static const struct {
        const char *flags;
        enum oc_option_id id;
        const char *value;
    } cases[] = {
        {"--bf16", OC_OPT_precision, "bf16"},
        {"--squared-relu", OC_OPT_model_activation, "squared-relu"},
        {"--untie-embeddings-and-output-weights", OC_OPT_model_tied, "false"},
        {"--use-distributed-optimizer", OC_OPT_parallel_zero, "1"},
        {"--use-flash-attn", OC_OPT_kernels_attention, "flash"},
        {"--no-gradient-accumulation-fusion", OC_OPT_megatron_gradient_accumulation_fusion, "false"},
        {"--no-masked-softmax-fusion", OC_OPT_megatron_masked_softmax_fusion, "false"},
        {"--apply-query-key-layer-scaling", OC_OPT_megatron_softmax_in_fp32, "true"},
        {"--optimizer-cpu-offload", OC_OPT_offload_optimizer, "cpu"},
        {"--optimizer-offload-fraction 0.5", OC_OPT_offload_fraction, "0.5"},
        {"--fp32-residual-connection", OC_OPT_precision_residual, "fp32"},
        {"--recompute-activations", OC_OPT_recompute, "selective"},
        {"--checkpoint-activations --checkpoint-num-layers 2", OC_OPT_recompute_layers, "2"},
        {"--recompute-granularity selective --recompute-modules '[layernorm,mlp]'", OC_OPT_recompute_modules,
         "mlp,layernorm"},
        {"--recompute-granularity selective --recompute-modules core_attn mlp", OC_OPT_recompute_modules,
         "core_attn,mlp"},
        {"--cross-entropy-loss-fusion", OC_OPT_kernels_loss, "fused"},
        {"--cross-entropy-fusion-impl te --cross-entropy-loss-fusion", OC_OPT_kernels_loss, "te-fused"},
        {"--cross-entropy-fusion-impl te", OC_OPT_kernels_loss, "-"},
        {"--position-embedding-type rope", OC_OPT_model_positions, "rope"},
        {"--position-embedding-type learned_absolute", OC_OPT_model_positions, "learned"},
        {"--position-embedding-type none", OC_OPT_model_positions, "none"},
        {"--use-rotary-position-embeddings", OC_OPT_model_positions, "rope"},
        {"--no-position-embedding", OC_OPT_model_positions, "none"},
        {"--group-query-attention --num-query-groups 4", OC_OPT_model_kv_heads, "4"},
        {"--group-query-attention", OC_OPT_model_kv_heads, "1"},
        {"--num-query-groups 4", OC_OPT_model_kv_heads, "-"},
        {"--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2", OC_OPT_parallel_vpp, "3"},
        {"--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 6", OC_OPT_parallel_vpp, "6"},
        {"--num-layers 22 --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split "
         "--pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 3",
         OC_OPT_parallel_vpp, "2"},
        {"--use-distributed-optimizer --num-distributed-optimizer-instances 2", OC_OPT_parallel_shard_group, "4"},
        {"--use-torch-fsdp2", OC_OPT_parallel_zero, "3"},
        {"--optimizer dist_muon", OC_OPT_optimizer, "muon"},
        {"--optimizer dist_muon", OC_OPT_parallel_zero, "1"},
        {"--optimizer muon", OC_OPT_parallel_zero, "-"},
        {"--use-distributed-optimizer --use-megatron-fsdp", OC_OPT_parallel_zero, "3"},
        {"--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads", OC_OPT_parallel_zero, "2"},
        {"--use-distributed-optimizer --data-parallel-sharding-strategy optim_grads", OC_OPT_parallel_zero, "1"},
        {"--transformer-impl local", OC_OPT_kernels_transformer, "local"},
        {"--attention-backend fused", OC_OPT_megatron_attention_backend, "fused"},
        {"--tensor-model-parallel-size=4", OC_OPT_parallel_tp, "4"},
        {"--tensor_model_parallel_size 4", OC_OPT_parallel_tp, "4"},
        {"--tensor-model-parallel 4", OC_OPT_parallel_tp, "4"},
        {"--global-batch-size 1_024", OC_OPT_batch_global, "1024"},
        {"--tokenizer-type NullTokenizer --vocab-size 131072", OC_OPT_model_vocab, "131073"},
        {"--padded-vocab-size 151936", OC_OPT_model_vocab, "151936"},
        {"--padded-vocab-size 151936", OC_OPT_model_vocab_multiple, "1"},
        {"--optimizer sgd", OC_OPT_optimizer_momentum, "0.9"},
        {"--optimizer sgd --sgd-momentum 0", OC_OPT_optimizer_momentum, "0"},
        {"--lr 1 --data-path 1 a 2 b --rampup-batch-size 16 8 9_765_625 --bf16", OC_OPT_precision, "bf16"},
        {"--context-parallel-size 2 --cp-comm-type a2a", OC_OPT_parallel_cp_comm, "a2a"},
        {"--micro-batch-size 8", OC_OPT_batch_micro, "8"}, /* given twice: the last counts */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct oc_input *input = import_flags(cases[i].flags);
        const char *got = help_value(input, cases[i].id);
        if (strcmp(got, cases[i].value) != 0)
            fail_msg("%s: %s is %s, not %s", cases[i].flags, oc_option(cases[i].id)->key, got, cases[i].value);
        free(input);
    }
}

static void layers_with_experts(void **state)
{
    (void)state;
    static const struct {
        const char *frequency, *dense, *every;
    } cases[] = {
        {"2", "-", "2"},        {"([0]*3+[1]*58)", "3", "1"}, {"'([0]*1+[1]*3)*1'", "1", "1"},
        {"([1]*28)", "0", "1"}, {"[1,0]*4", "0", "2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char flags[96];
        snprintf(flags, sizeof flags, "--num-experts 8 --moe-layer-freq \"%s\"", cases[i].frequency);
        struct oc_input *input = import_flags(flags);
        assert_string_equal(help_value(input, OC_OPT_model_dense_layers), cases[i].dense);
        assert_string_equal(help_value(input, OC_OPT_model_moe_every), cases[i].every);
        assert_string_equal(help_value(input, OC_OPT_model_experts), "8");
        free(input);
    }
    static const char *const wrong[] = {"([1]*9", "[2]", "[1]*99999999", "((((((((((([1]))))))))))", "pattern"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char flags[96];
        snprintf(flags, sizeof flags, "--num-experts 8 --moe-layer-freq \"%s\"", wrong[i]);
        struct oc_input *input = import_flags(flags);
        assert_non_null(help_note(input, OC_NOTE_UNMODELLED, "--moe-layer-freq", OC_OPT_model_moe_every));
        free(input);
    }
}

/* Ranks of latent attention count only with the flag that switches it on, which has defaults of its own. */
static void latent_attention(void **state)
{
    (void)state;
    struct oc_input *input = import_flags("--kv-lora-rank 512");
    assert_false(oc_given(&input->c.config, OC_OPT_model_kv_lora_rank));
    free(input);
    input = import_flags("--multi-latent-attention");
    assert_string_equal(help_value(input, OC_OPT_model_kv_lora_rank), "32");
    free(input);
    input = import_flags("--multi-latent-attention --kv-lora-rank 512 --q-lora-rank 1536 --v-head-dim 64");
    assert_string_equal(help_value(input, OC_OPT_model_kv_lora_rank), "512");
    assert_string_equal(help_value(input, OC_OPT_model_v_head_dim), "64");
    free(input);
}

/* Types of states count only for an optimizer that is aware of them; fp8 is beside bf16 weights. */
static void number_formats(void **state)
{
    (void)state;
    struct oc_input *input = import_flags("--bf16 --exp-avg-dtype bf16");
    assert_false(oc_given(&input->c.config, OC_OPT_precision_moment1));
    free(input);
    input = import_flags("--bf16 --use-precision-aware-optimizer --exp-avg-dtype fp8 --main-grads-dtype bf16");
    assert_string_equal(help_value(input, OC_OPT_precision_moment1), "fp8");
    assert_string_equal(help_value(input, OC_OPT_precision_grads), "bf16");
    free(input);
    input = import_flags("--bf16 --fp8-format hybrid");
    assert_string_equal(help_value(input, OC_OPT_precision), "fp8");
    free(input);
}

static void what_is_not_modelled(void **state)
{
    (void)state;
    static const char *const flags[] = {
        "--use-cpu-initialization", "--enable-cuda-graph", "--cpu-offloading-num-layers 2",
        "--fp4-format e2m1",        "--optimizer soap",    "--use-torch-fsdp2"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        struct oc_input *input = import_flags(flags[i]);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(flags[i], " "), flags[i]);
        const struct oc_note *note = help_note(input, OC_NOTE_UNMODELLED, name, OC_OPTIONS);
        if (!note) fail_msg("%s goes unsaid", flags[i]);
        assert_int_equal(note->line, 1);
        assert_int_equal(input->n_notes, 1);
        free(input);
    }
    struct oc_input *input = import_flags("--mtp-num-layers 0 --cuda-graph-impl none --empty-unused-memory-level 0");
    assert_int_equal(input->n_notes, 0);
    free(input);
}

/* A text that no option can hold is said, and stops nothing. */
static void a_name_that_is_too_long(void **state)
{
    (void)state;
    struct oc_input *input = import_flags("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout "
                                          "Ettttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt|L");
    assert_string_equal(help_value(input, OC_OPT_megatron_pipeline_layout), "-");
    assert_non_null(help_note(input, OC_NOTE_UNMODELLED, "--pipeline-model-parallel-layout", OC_OPTIONS));
    free(input);
}

static void warnings(void **state)
{
    (void)state;
    static const struct {
        const char *flags, *name;
    } cases[] = {
        {"--sequence-parallel", "--sequence-parallel"},
        {"--fp16 --bf16", "--bf16"},
        {"--optimizer sgd --use-distributed-optimizer", "--use-distributed-optimizer"},
        {"--num-query-groups 4", "--num-query-groups"},
        {"--use-megatron-fsdp --data-parallel-sharding-strategy all", "--data-parallel-sharding-strategy"},
        {"--overlap-param-gather", "--overlap-param-gather"},
        {"--lr 1 --seq-length 4096", "--seq-length"},
        {"--no-such-flag 4", "--no-such-flag"},
        {"--tensor 4 --pipe 2", "--tensor"}, /* both tensor-model-parallel-size and tensorboard-dir */
        {"--bf16 \\  \n  --swiglu", "\\"},
        {"$MORE", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct oc_input *input = import_flags(cases[i].flags);
        if (!help_note(input, OC_NOTE_WARNING, cases[i].name, OC_OPTIONS)) fail_msg("%s goes unsaid", cases[i].flags);
        free(input);
    }
    struct oc_input *input = import_flags("--sequence-parallel");
    assert_string_equal(help_value(input, OC_OPT_parallel_sp), "false");
    free(input);
    input = import_flags("--fp16 --bf16 --bf16");
    assert_string_equal(help_value(input, OC_OPT_precision), "bf16");
    free(input);
}

/* How the trainer may be reached. All of them train the same. */
static void ways_to_start(void **state)
{
    (void)state;
    static const char *const scripts[] = {
        "torchrun $D pretrain_gpt.py $F\n",
        "python -m torch.distributed.launch $D pretrain_gpt.py $F > log 2>&1\n",
        "python3 -u -m torch.distributed.run $D /w/pretrain_gpt.py $F | tee log\n",
        "CMD=\"torchrun $D pretrain_gpt.py $F &> log\"\necho $CMD\neval $CMD\n",
        "CMD=\"torchrun $D pretrain_gpt.py $F\"\neval \"$CMD\"\n",
        "srun -l bash -c \"torchrun $D pretrain_gpt.py $F --lr 1\"\n",
        "run() {\n  torchrun $D pretrain_gpt.py $F\n}\nif [ -n \"$F\" ]; then run; fi\n",
        "deepspeed --num_gpus=4 --num_nodes 2 pretrain_gpt.py $F\n",
        "exec env X=1 torchrun $D pretrain_gpt.py \\\n  $F \\\n  --lr 1\n",
        "L=(torchrun $D)\n\"${L[@]}\" pretrain_gpt.py $F\n",
        "export MEGATRON_PARAMS=\"$F\"\nexport GPUS_PER_NODE=4 NNODES=2\n",
    };
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char text[2048];
        snprintf(text, sizeof text,
                 "D='--nproc_per_node 4 --nnodes 2 --master_port 6000'\n"
                 "F=\" --num-layers 24 \\\n --hidden-size 1024 --num-attention-heads 16 \\\n --seq-length 2048 "
                 "--micro-batch-size 2 \\\n"
                 " --bf16 --vocab-size 50257 --max-position-embeddings 2048\"\n%s",
                 scripts[i]);
        struct oc_input *input = help_import("run.sh", text);
        help_is(input, OC_OPT_model_layers, "24", 2);
        help_is(input, OC_OPT_model_hidden, "1024", 3);
        help_is(input, OC_OPT_batch_micro, "2", 4);
        help_is(input, OC_OPT_precision, "bf16", 5);
        assert_string_equal(help_value(input, OC_OPT_parallel_world), "8");
        if (input->n_notes) fail_msg("%s: %s", scripts[i], input->notes[0].text);
        free(input);
    }
}

static void how_many_gpus(void **state)
{
    (void)state;
    static const struct {
        const char *before, *launcher, *world;
    } cases[] = {
        {"", "torchrun --nproc-per-node=4 --nnodes=3", "12"},
        {"", "torchrun --nproc_per_node 4", "4"},
        {"", "torchrun --standalone --nproc_per_node 4", "4"},
        {"", "torchrun --nproc_per_node 4 --nnodes $N", "-"},
        {"N=${N:-2}\n", "torchrun --nproc_per_node 4 --nnodes $N", "8"},
        {"#SBATCH --nodes=24 --gres=gpu:8\n", "srun python", "192"},
        {"#SBATCH --nodes=24 # all of them\n#SBATCH --gres=gpu:a100:8\n", "srun python", "192"},
        {"#SBATCH -N 4\n#SBATCH --ntasks-per-node=8\n", "srun python", "32"},
        {"#SBATCH --nodes=4\n", "torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES", "32"},
        {"GPUS_PER_NODE=8\nNNODES=2\n", "python", "16"},
        {"", "python", "-"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "%s%s pretrain_gpt.py --num-layers 2 --hidden-size 64 --seq-length 64 --vocab-size 100\n",
                 cases[i].before, cases[i].launcher);
        struct oc_input *input = help_import("run.sh", text);
        const char *got = help_value(input, OC_OPT_parallel_world);
        bool known = strcmp(cases[i].world, "-") != 0;
        if (strcmp(got, cases[i].world) != 0) fail_msg("%s%s: %s", cases[i].before, cases[i].launcher, got);
        assert_int_equal(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_parallel_world) == NULL, known);
        free(input);
    }
}

static void the_environment(void **state)
{
    (void)state;
    struct oc_input *input =
        help_import("run.sh", "export CUBLAS_WORKSPACE_CONFIG=:4096:8\n"
                              "export PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64,expandable_segments:True\n" BASE);
    help_is(input, OC_OPT_allocator_cublas_workspace, "33554432", 1);
    help_is(input, OC_OPT_allocator_expandable_segments, "true", 2);
    assert_non_null(help_note(input, OC_NOTE_UNMODELLED, "max_split_size_mb:64", OC_OPTIONS));
    free(input);
    input = help_import("run.sh",
                        "CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8 PYTORCH_CUDA_ALLOC_CONF=expandable_segments:False " BASE);
    help_is(input, OC_OPT_allocator_cublas_workspace, "8519680", 1); /* PyTorch's default on A100 */
    help_is(input, OC_OPT_allocator_expandable_segments, "false", 1);
    free(input);
    input = help_import("run.sh", "export CUBLAS_WORKSPACE_CONFIG=lots\n" BASE);
    assert_non_null(help_note(input, OC_NOTE_WARNING, "CUBLAS_WORKSPACE_CONFIG", OC_OPTIONS));
    free(input);
}

static void vocabularies(void **state)
{
    (void)state;
    static const char base[] =
        "python pretrain_gpt.py --num-layers 2 --hidden-size 64 --seq-length 64 --micro-batch-size 1 ";
    static const struct {
        const char *flags, *vocab;
    } cases[] = {{"--tokenizer-type GPT2BPETokenizer", "50257"},
                 {"--tokenizer-type Llama2Tokenizer", "32000"},
                 {"--tokenizer-type HuggingFaceTokenizer", "32000"},
                 {"--vocab-size $V", "50257"},
                 {"--tokenizer-type SentencePieceTokenizer --vocab-size $V", "32000"},
                 {"", "50257"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "%s%s\n", base, cases[i].flags);
        struct oc_input *input = help_import("run.sh", text);
        assert_string_equal(help_value(input, OC_OPT_model_vocab), cases[i].vocab);
        assert_non_null(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_model_vocab));
        assert_int_equal(input->c.origin[OC_OPT_model_vocab].from, OC_FROM_ASSUMED);
        free(input);
    }
}

/* Without --bf16 and --fp16 a run is in fp32, unless its flags are only partly seen. */
static void precision_that_may_be_hidden(void **state)
{
    (void)state;
    struct oc_input *input = import_flags("$PRECISION_ARGS");
    assert_string_equal(help_value(input, OC_OPT_precision), "bf16");
    assert_int_equal(input->c.origin[OC_OPT_precision].from, OC_FROM_ASSUMED);
    assert_string_equal(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_precision)->text,
                        "$PRECISION_ARGS is not set in run.sh, and may hold --bf16 or --fp16");
    free(input);
    input = import_flags("--fp16 $MORE");
    help_is(input, OC_OPT_precision, "fp16", 1);
    assert_null(help_note(input, OC_NOTE_ASSUMED, NULL, OC_OPT_precision));
    free(input);
}

/* The same flags in `echo` and in the command proper are one training; two trainings are said. */
static void more_than_one_training(void **state)
{
    (void)state;
    const char *script =
        "L='torchrun --nproc_per_node 8'\nC='pretrain_gpt.py --num-layers 2 --hidden-size 64 --seq-length 64 "
        "--micro-batch-size 1 --vocab-size 100'\necho $C\n$L $C\n";
    struct oc_input *input = help_import("run.sh", script);
    assert_null(help_note(input, OC_NOTE_WARNING, NULL, OC_OPTIONS));
    help_is(input, OC_OPT_framework, "megatron", 4);
    free(input);
    input = help_import("run.sh", "C='" BASE "'\necho $C\neval $C\necho $C\n");
    assert_int_equal(input->n_notes, 0);
    help_is(input, OC_OPT_framework, "megatron", 3);
    free(input);
    input = help_import("run.sh", BASE "--lr 1\n" BASE "--bf16 --swiglu\n");
    assert_non_null(help_note(input, OC_NOTE_WARNING, NULL, OC_OPTIONS));
    help_is(input, OC_OPT_precision, "bf16", 2);
    free(input);
}

static void values_that_cannot_be(void **state)
{
    (void)state;
    static const char *const flags[] = {"--num-layers many", "--num-layers 99999999999", "--hidden-size -4",
                                        "--hidden-dropout none", "--micro-batch-size 1.5"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        char text[1024];
        snprintf(text, sizeof text, "\n" BASE "%s\n", flags[i]);
        struct oc_input *input = help_input();
        struct oc_error error = {0};
        assert_false(oc_import_text(input, "run.sh", text, strlen(text), &error));
        assert_int_equal(error.code, OC_E_VALUE);
        assert_string_equal(error.file, "run.sh");
        assert_int_equal(error.line, 2);
        assert_int_equal(input->n_files, 0);
        assert_int_equal(input->n_notes, 0);
        free(input);
    }
}

/* A list of flags without a command, and one that only mentions some. */
static void parts_of_scripts(void **state)
{
    (void)state;
    struct oc_input *input =
        help_import("part.txt", "We train with\n\n--num-layers 24\n--hidden-size 1024 --bf16\n--seq-length 128\n");
    help_is(input, OC_OPT_model_layers, "24", 3);
    help_is(input, OC_OPT_precision, "bf16", 4);
    free(input);
    const char *prose = "I set --num-layers and --hidden-size as the paper says.\n";
    struct oc_error error;
    input = help_input();
    assert_false(oc_import_text(input, "a.txt", prose, strlen(prose), &error));
    assert_int_equal(error.code, OC_E_PARSE);
    free(input);
}

static void examples(void **state)
{
    (void)state;
    struct oc_input *input = help_input();
    assert_true(oc_import_file(input, OOMCAST_SOURCE "/examples/llama3-8b-adam-distopt-bf16.sh", NULL));
    assert_string_equal(help_value(input, OC_OPT_parallel_world), "32");
    assert_string_equal(help_value(input, OC_OPT_parallel_sp), "true");
    assert_string_equal(help_value(input, OC_OPT_batch_global), "64");
    assert_int_equal(input->n_notes, 0);
    free(input);
    input = help_input();
    assert_true(oc_import_file(input, OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh", NULL));
    assert_string_equal(help_value(input, OC_OPT_parallel_world), "8");
    assert_string_equal(help_value(input, OC_OPT_batch_global), "32");
    assert_int_equal(input->n_notes, 0);
    free(input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forum_prose),
        cmocka_unit_test(defaults_of_the_command_line),
        cmocka_unit_test(single_flags),
        cmocka_unit_test(layers_with_experts),
        cmocka_unit_test(latent_attention),
        cmocka_unit_test(number_formats),
        cmocka_unit_test(what_is_not_modelled),
        cmocka_unit_test(a_name_that_is_too_long),
        cmocka_unit_test(warnings),
        cmocka_unit_test(ways_to_start),
        cmocka_unit_test(how_many_gpus),
        cmocka_unit_test(the_environment),
        cmocka_unit_test(vocabularies),
        cmocka_unit_test(values_that_cannot_be),
        cmocka_unit_test(precision_that_may_be_hidden),
        cmocka_unit_test(more_than_one_training),
        cmocka_unit_test(parts_of_scripts),
        cmocka_unit_test(examples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
