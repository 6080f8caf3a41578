/* From arguments to an answer. */
#include <stdlib.h>
#include <string.h>

#include "oomcast/import.h"

#include "tui/cli/cli.h"

enum { NO_FILE = 255 };

/* examples/llama3-8b-sgd-fp16.sh, made into bytes by the build: the program alone works from any directory. */
extern const unsigned char oc_example_script[];
extern const size_t oc_example_script_size;

/* Whether a --set says which model it is about, so that the example would only be in its way. */
static bool describes_a_model(const struct oc_config *config)
{
    static const enum oc_option_id keys[] = {OC_OPT_model_name, OC_OPT_model_params, OC_OPT_model_hidden};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (oc_given(config, keys[i])) return true;
    return false;
}

static bool load_example(struct oc_input *input, struct oc_error *error)
{
    return oc_import_text(input, "examples/llama3-8b-sgd-fp16.sh", (const char *)oc_example_script,
                          oc_example_script_size, error);
}

/* No launch script names the GPU, and the verdict is about one: it says which. */
static void assume_gpu(struct oc_input *input)
{
    if (oc_given(&input->c.config, OC_OPT_gpu) || oc_given(&input->c.config, OC_OPT_gpu_capacity)) return;
    input->c.origin[OC_OPT_gpu] = (struct oc_origin){.from = OC_FROM_ASSUMED, .file = NO_FILE};
    oc_note_add(input, OC_NOTE_ASSUMED, OC_OPT_gpu, "", NO_FILE, 0, "nothing names the GPU");
}

/* Applies every --set in order. */
static bool apply_sets(const struct oc_args *args, struct oc_case *c, struct oc_error *error)
{
    for (int i = 0; i < args->n_sets; i++) {
        enum oc_option_id id;
        if (!oc_config_assign(&c->config, args->sets[i], &id, error)) return false;
        c->origin[id] = (struct oc_origin){.from = OC_FROM_SET};
    }
    return true;
}

bool oc_cli_load(const struct oc_args *args, struct oc_input *input, struct oc_error *error)
{
    memset(input, 0, sizeof *input);
    input->c.config = oc_config_default();
    for (int i = 0; i < args->n_words; i++)
        if (!oc_import_file(input, args->words[i], error)) return false;
    if (args->n_words == 0) {
        struct oc_case alone = input->c;
        if (!apply_sets(args, &alone, error)) return false;
        if (!describes_a_model(&alone.config) && !load_example(input, error)) return false;
    }
    if (!apply_sets(args, &input->c, error)) return false;
    assume_gpu(input);
    return true;
}

/* The reserved bytes are found by replay through an allocator with the rules of this plan. */
static bool answer_with(struct oc_session *session, const struct oc_plan *plan, struct oc_error *error)
{
    const struct oc_alloc_provider imaginary = {.expandable_segments = plan->c.allocator_expandable_segments != 0};
    struct oc_alloc *alloc = oc_alloc_create(&imaginary);
    if (!alloc) return oc_fail(error, OC_E_INTERNAL, "out of memory");
    bool done = oc_answer(&session->input.c.config, &session->answer, session->ledgers, alloc, error);
    oc_alloc_destroy(alloc);
    return done;
}

struct oc_session *oc_cli_answer(const struct oc_args *args, bool with_ledgers, struct oc_error *error)
{
    struct oc_session *session = calloc(1, sizeof *session);
    if (!session) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        return NULL;
    }
    struct oc_plan plan;
    bool done = oc_cli_load(args, &session->input, error) && oc_resolve(&session->input.c.config, &plan, NULL, error);
    if (done && with_ledgers) {
        session->ledgers = calloc((size_t)plan.c.parallel_pp, sizeof *session->ledgers);
        if (!session->ledgers) done = oc_fail(error, OC_E_INTERNAL, "out of memory");
    }
    if (done && answer_with(session, &plan, error)) return session;
    oc_cli_release(session);
    return NULL;
}

void oc_cli_release(struct oc_session *session)
{
    if (!session) return;
    free(session->ledgers);
    free(session);
}
