/* Megatron-LM launch scripts: what its flags mean for memory.
 *
 * Sources: NVIDIA/Megatron-LM megatron/training/arguments.py @000c4ac2 and @d98e8a64 (flags, defaults, what is
 * rewritten or refused), tokenizer/tokenizer.py (NullTokenizer, padding). */
#ifndef OC_MODEL_IMPORT_MEGATRON_H
#define OC_MODEL_IMPORT_MEGATRON_H

#include "oomcast/import.h"
#include "model/import/bash.h"

/* What a flag does. */
enum megatron_action {
    MEGATRON_VALUE,      /* its value is the value of `option` */
    MEGATRON_SWITCH,     /* present: `option` has the value `text` */
    MEGATRON_NOTED,      /* looked at later, as `fact` */
    MEGATRON_UNMODELLED, /* changes memory and is not modelled; `text` says how. A value of `harmless` changes nothing
                          */
    MEGATRON_SILENT,     /* no effect on memory */
    MEGATRON_UNKNOWN
};

/* Flags whose meaning depends on other flags. */
enum megatron_fact {
    FACT_GROUP_QUERY_ATTENTION,
    FACT_NUM_QUERY_GROUPS,
    FACT_POSITION_EMBEDDING_TYPE,
    FACT_ROTARY,
    FACT_NO_POSITION_EMBEDDING,
    FACT_LAYERS_PER_VIRTUAL_STAGE,
    FACT_RECOMPUTE_ACTIVATIONS,
    FACT_CROSS_ENTROPY_FUSION,
    FACT_CROSS_ENTROPY_IMPL,
    FACT_OPTIMIZER_INSTANCES,
    FACT_LATENT_ATTENTION,
    FACT_MOE_LAYER_FREQ,
    FACT_FP8,
    FACT_FP4,
    FACT_MAIN_GRADS,
    FACT_MAIN_PARAMS,
    FACT_EXP_AVG,
    FACT_EXP_AVG_SQ,
    FACT_TOKENIZER,
    FACT_PADDED_VOCAB,
    FACT_NPROC_PER_NODE,
    FACT_NNODES,
    FACT_STANDALONE,
    FACT_FSDP,
    FACT_TORCH_FSDP2,
    FACT_SHARDING_STRATEGY,
    MEGATRON_FACTS
};

/* How many values follow a flag. */
enum megatron_arity { ARITY_NONE, ARITY_ONE, ARITY_LIST };

struct megatron_flag {
    const char *name; /* begins with it; a space, '*' or NUL may follow */
    enum megatron_action action;
    int option; /* enum oc_option_id, or OC_OPTIONS */
    enum megatron_fact fact;
    enum megatron_arity arity;
    const char *text;
    const char *harmless;
};

/* What a flag as written means: "--fp16", with '_' for '-', or the start of exactly one name, as argparse allows. An
 * unknown or ambiguous one gives MEGATRON_UNKNOWN. */
struct megatron_flag megatron_flag_find(const char *written, size_t length);

/* One flag of the command. */
struct megatron_seen {
    const char *flag;              /* NULL: not there */
    const char *text;              /* its value, "" for a switch; NULL when the value is missing */
    const struct bash_word *value; /* NULL for a switch */
    int line;
};

struct megatron {
    struct oc_input *input;
    int file;
    const char *path; /* of the file, for errors */
    const char *name; /* its last part, for sentences */
    struct bash *script;
    int line;                       /* of the command that starts the trainer */
    const struct bash_word *hidden; /* the first word that may hold more flags, or NULL */
    struct megatron_seen options[OC_OPTIONS];
    struct megatron_seen facts[MEGATRON_FACTS];
    struct oc_error *error;
};

/* ---- megatron_command.c ---- */

/* The words of the training command, or of all flags that the script mentions when it has none. False: there are none.
 */
struct megatron_command {
    const struct bash_word **words;
    int n;
    int launcher; /* words before the training script: torchrun and its flags */
    int line;
    const char *trainer; /* "pretrain_gpt.py", or NULL */
};
bool megatron_command_find(struct megatron *m, struct megatron_command *command);
void megatron_command_free(struct megatron_command *command);

/* ---- megatron_apply.c ---- */

/* Puts every flag of the command into m->options, m->facts and notes. */
void megatron_collect(struct megatron *m, const struct megatron_command *command);
/* m->options into the configuration. False: a value that cannot be one. */
bool megatron_apply(struct megatron *m);
/* Sets an option from its text; its origin is a line of the file. */
bool megatron_set(struct megatron *m, enum oc_option_id option, const char *text, int line);
/* The value was named and is not known. */
void megatron_assume(struct megatron *m, enum oc_option_id option, const struct megatron_seen *seen);

/* ---- megatron_rules.c: Megatron's defaults, and what one flag means beside another ---- */

bool megatron_rules(struct megatron *m);

/* ---- megatron_experts.c, megatron_precision.c: groups of flags that mean something together ---- */

/* Which layers have experts, and whether attention is latent. */
bool megatron_experts(struct megatron *m);
/* fp8, and the number formats of a precision-aware optimizer. */
bool megatron_precision(struct megatron *m);

/* ---- megatron_vocab.c, megatron_launch.c ---- */

bool megatron_vocab(struct megatron *m);
bool megatron_world(struct megatron *m, const struct megatron_command *command, const char *text, size_t size);
bool megatron_environment(struct megatron *m);

#endif
