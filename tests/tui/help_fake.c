#include "help_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void fill_defaults(const struct oc_config *config, struct oc_config *c)
{
    *c = *config;
    for (int i = 0; i < OC_OPTIONS; i++) {
        enum oc_option_id id = (enum oc_option_id)i;
        const struct oc_option *option = oc_option(id);
        if (oc_given(config, id) || option->type == OC_T_FLOAT || option->type == OC_T_STRING) continue;
        oc_option_put(c, id, option->def);
    }
    if (!oc_given(config, OC_OPT_model_layers)) c->model_layers = 32;
    if (!oc_given(config, OC_OPT_model_hidden)) c->model_hidden = 4096;
    if (!oc_given(config, OC_OPT_model_heads)) c->model_heads = 32;
    if (!oc_given(config, OC_OPT_parallel_world)) c->parallel_world = c->parallel_tp * c->parallel_pp;
}

static uint64_t hash_of(const struct oc_config *c)
{
    uint64_t hash = 14695981039346656037u;
    const unsigned char *bytes = (const unsigned char *)c;
    for (size_t i = 0; i < offsetof(struct oc_config, given); i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static bool fake_resolve(const struct oc_config *config, struct oc_plan *plan, struct oc_warnings *warnings,
                         struct oc_error *error)
{
    memset(plan, 0, sizeof *plan);
    fill_defaults(config, &plan->c);
    if (warnings) warnings->n = 0;
    if (plan->c.model_heads % plan->c.parallel_tp != 0) {
        oc_fail(error, OC_E_CONFLICT, "parallel.tp = %d does not divide model.heads = %d", (int)plan->c.parallel_tp,
                (int)plan->c.model_heads);
        return oc_hint(error, "try parallel.tp=8");
    }
    if (plan->c.parallel_world % (plan->c.parallel_tp * plan->c.parallel_pp) != 0)
        return oc_fail(error, OC_E_CONFLICT, "parallel.world = %d is not a multiple of tp x pp",
                       (int)plan->c.parallel_world);
    plan->hash = hash_of(&plan->c);
    plan->has_shape = true;
    plan->capacity = 85017493504; /* an H100's, bytes */
    if (plan->c.gpu_capacity) plan->capacity = (uint64_t)plan->c.gpu_capacity;
    return true;
}

/* Bytes per parameter of weights, master, gradients and optimizer for each value of `precision`. */
static const int per_param[][4] = {{4, 0, 4, 0}, {4, 0, 4, 0}, {4, 0, 4, 0}, {2, 4, 8, 0},
                                   {2, 4, 6, 0}, {2, 0, 2, 0}, {2, 0, 2, 0}};

static void fill_rank(const struct oc_plan *plan, int stage, struct oc_rank *rank)
{
    const struct oc_config *c = &plan->c;
    uint64_t params =
        (uint64_t)(12 * c->model_layers * c->model_hidden * c->model_hidden / c->parallel_tp / c->parallel_pp);
    uint64_t *classes = rank->peak.classes;
    memset(rank, 0, sizeof *rank);
    rank->stage = stage;
    rank->ranks = c->parallel_tp;
    rank->params = params;
    for (int i = 0; i < 4; i++) classes[i] = params * (uint64_t)per_param[c->precision % 7][i];
    if (c->optimizer != OC_OPTIM_SGD) classes[OC_OPTIMIZER] = 8 * params;
    classes[OC_ACTIVATIONS] = (uint64_t)(34 * c->batch_seq * c->batch_micro * c->model_hidden * c->model_layers /
                                         c->parallel_tp / c->parallel_pp);
    if (stage > 0) classes[OC_ACTIVATIONS] /= 2;
    classes[OC_BUFFERS] = 64u << 20;
    for (int i = 0; i < OC_CLASSES; i++) rank->peak.allocated += classes[i];
    rank->peak.requested = rank->peak.allocated;
    rank->peak.exists = true;
    rank->peak.place = (struct oc_place){OC_STEADY, OC_M_BACKWARD, 1, 31, {OC_PH_BACKWARD, OC_PART_LAYER, 0}};
    for (int i = OC_M_FORWARD; i < OC_MOMENTS; i++) {
        struct oc_instant *instant = &rank->moments[OC_STEADY][i];
        *instant = rank->peak;
        instant->place.moment = (enum oc_moment)i;
        if (i == OC_M_BACKWARD) continue;
        instant->allocated -= classes[OC_ACTIVATIONS] / 2;
        instant->classes[OC_ACTIVATIONS] -= classes[OC_ACTIVATIONS] / 2;
    }
    rank->reserved = rank->peak.allocated + rank->peak.allocated / 50;
}

static struct oc_range fake_device(const struct oc_plan *plan, const struct oc_rank *rank)
{
    (void)plan;
    return (struct oc_range){rank->reserved + (1u << 30), rank->reserved + (3u << 29)};
}

static bool fake_answer(const struct oc_config *config, struct oc_answer *answer, struct oc_ledger *ledgers,
                        struct oc_alloc *alloc, struct oc_error *error)
{
    (void)ledgers, (void)alloc;
    if (!fake_resolve(config, &answer->plan, &answer->warnings, error)) return false;
    answer->n_ranks = (int)answer->plan.c.parallel_pp;
    answer->params_total = 0;
    for (int i = 0; i < answer->n_ranks; i++) {
        fill_rank(&answer->plan, i, &answer->ranks[i]);
        answer->params_total += answer->ranks[i].params * (uint64_t)answer->plan.c.parallel_tp;
    }
    struct oc_range device = fake_device(&answer->plan, &answer->ranks[0]);
    answer->verdict =
        (struct oc_verdict){.known = true, .fits = device.high <= answer->plan.capacity, .device = device};
    answer->verdict.headroom = (int64_t)answer->plan.capacity - (int64_t)device.high;
    answer->verdict.tight = answer->verdict.fits && answer->verdict.headroom < (int64_t)(answer->plan.capacity / 50);
    return true;
}

/* A ledger whose moments have the shape of a step: states, then activations of each layer that grow and shrink. */
static bool fake_estimate(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_error *error)
{
    const struct oc_tick init = {OC_PH_INIT, OC_PART_NONE, 0}, step = {OC_PH_STEP, OC_PART_NONE, 0},
                         idle = {OC_PH_IDLE, OC_PART_NONE, 0}, end = {OC_PH_END, OC_PART_NONE, 0},
                         forward = {OC_PH_FORWARD, OC_PART_LAYER, 1}, backward = {OC_PH_BACKWARD, OC_PART_LAYER, 3},
                         grad = {OC_PH_BACKWARD, OC_PART_LAYER, 2}, logits = {OC_PH_FORWARD, OC_PART_HEAD, 0},
                         loss = {OC_PH_BACKWARD, OC_PART_HEAD, 2};
    (void)error;
    struct oc_rank rank;
    fill_rank(plan, (int)stage, &rank);
    memset(ledger, 0, sizeof *ledger);
    const int64_t pp = plan->c.parallel_pp, layers = plan->c.model_layers / pp;
    ledger->stage = stage;
    ledger->ranks = rank.ranks;
    ledger->params = rank.params;
    ledger->n_chunks = 1;
    ledger->chunks[0] = (struct oc_chunk){.runs = {{0, (uint16_t)layers}},
                                          .n_runs = 1,
                                          .first_layer = layers * stage,
                                          .embedding = stage == 0,
                                          .head = stage == pp - 1};
    ledger->group[0] = 1;
    for (int ahead = 0, n = 0; n < 4;) { /* one forward ahead for each stage that follows */
        bool back = ahead > 0 && ahead >= pp - stage;
        ledger->slots[ledger->n_slots++] =
            (struct oc_slot){.micro_batch = (uint16_t)(back ? n : n + ahead), .backward = back};
        ahead += back ? -1 : 1;
        n += back;
        if (n + ahead == 4)
            for (; ahead > 0; ahead--)
                ledger->slots[ledger->n_slots++] = (struct oc_slot){.micro_batch = (uint16_t)n++, .backward = true};
    }
    const uint64_t *classes = rank.peak.classes, per_layer = (uint64_t)layers;
    const struct oc_entry entries[] = {
        {"layers.weight", "weights", "2 bytes a parameter", "a rule", 0, classes[OC_WEIGHTS] / per_layer,
         (uint32_t)layers, OC_WEIGHTS, OC_FP16, .birth = init, .death = end},
        {"layers.weight", "master copy", "4 bytes a parameter", "a rule", 0, classes[OC_MASTER] / per_layer,
         (uint32_t)layers, OC_MASTER, OC_FP32, .birth = init, .death = end},
        {"layers.weight", "gradients", "kept until the step", "a rule", 0, classes[OC_GRADIENTS] / per_layer,
         (uint32_t)layers, OC_GRADIENTS, OC_FP32, .birth = grad, .death = idle},
        {"layers.weight", "momentum", "born in the first step", "a rule", 0, classes[OC_OPTIMIZER] / per_layer,
         (uint32_t)layers, OC_OPTIMIZER, OC_FP32, .birth = step, .death = end},
        {"layers.input", NULL, "saved for backward", "a paper", 0, classes[OC_ACTIVATIONS] / per_layer,
         (uint32_t)layers, OC_ACTIVATIONS, OC_FP16, .birth = forward, .death = backward},
        {"logits", NULL, "the output layer", "a paper", 0, 256u << 20, 1, OC_ACTIVATIONS, OC_FP16, OC_END_HERE,
         .birth = logits, .death = loss},
        {"workspace", NULL, "of matrix products", "a library", 0, classes[OC_BUFFERS], 1, OC_BUFFERS, OC_FP32,
         .birth = init, .death = end},
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++)
        if (entries[i].bytes) oc_ledger_add(ledger, &entries[i]);
    return true;
}

static void fake_explain(const struct oc_answer *answer, struct oc_reason *reason)
{
    memset(reason, 0, sizeof *reason);
    reason->n = 2;
    snprintf(reason->sentence[0], sizeof reason->sentence[0],
             "Each parameter holds %d bytes of weights beside %d bytes of master copy, and its gradient is kept until "
             "the step.",
             per_param[answer->plan.c.precision % 7][0], per_param[answer->plan.c.precision % 7][1]);
    snprintf(
        reason->sentence[1], sizeof reason->sentence[1],
        "Activations are %d bytes for each token and layer, so halving the micro-batch would give half of them back.",
        (int)(34 * answer->plan.c.model_hidden));
}

static void fake_fit(struct oc_plan *plan, uint64_t bytes, double seconds, char *what, int size)
{
    (void)bytes, (void)seconds;
    plan->c.model_layers = 2;
    snprintf(what, (size_t)size, "layers to 2");
}

static const char *fake_covers(const struct oc_plan *plan)
{
    return plan->c.parallel_pp > 1 ? "a pipeline has more than one stage" : NULL;
}

/* What differs: precision, and what the first three entries of both sides hold. */
static void fake_compare(const struct oc_side *a, const struct oc_side *b, int moment, struct oc_comparison *comparison)
{
    const struct oc_rank *x = a->rank, *y = b->rank;
    struct oc_comparison *c = comparison;
    c->a = *a;
    c->b = *b;
    c->moment = moment;
    c->at_a = moment == OC_AT_PEAK ? x->peak : x->moments[OC_STEADY][moment];
    c->at_b = moment == OC_AT_PEAK ? y->peak : y->moments[OC_STEADY][moment];
    c->n_options = c->n_entries = 0;
    c->n_same = 1;
    if (oc_option_get(&a->plan->c, OC_OPT_precision) != oc_option_get(&b->plan->c, OC_OPT_precision))
        c->options[c->n_options++] = (struct oc_option_difference){OC_OPT_precision, true, true,
                                                                   (int64_t)(y->peak.allocated - x->peak.allocated)};
    for (int i = 0; i < a->ledger->n_entries && i < b->ledger->n_entries; i++) {
        const struct oc_entry *ours = &a->ledger->entries[i], *theirs = &b->ledger->entries[i];
        if (ours->bytes == theirs->bytes) continue;
        c->entries[c->n_entries++] = (struct oc_entry_difference){.name = ours->name,
                                                                  .a = ours,
                                                                  .b = theirs,
                                                                  .bytes_a = ours->bytes * ours->count,
                                                                  .bytes_b = theirs->bytes * theirs->count,
                                                                  .instances_a = ours->count,
                                                                  .instances_b = theirs->count};
    }
}

/* Two changes, of which the second is another training. */
static bool fake_advise(const struct oc_config *config, struct oc_alloc *alloc, struct oc_advices *advices,
                        struct oc_error *error)
{
    struct oc_plan plan;
    (void)alloc;
    memset(advices, 0, sizeof *advices);
    if (!fake_resolve(config, &plan, NULL, error)) return false;
    advices->now.device = (struct oc_range){plan.capacity, plan.capacity + (3u << 30)};
    advices->now.headroom = -(int64_t)(3u << 30);
    advices->now.known = true;
    advices->n = 2;
    for (int i = 0; i < 2; i++) {
        struct oc_advice *advice = &advices->list[i];
        advice->config = *config;
        advice->n_changes = advice->n_steps = 1;
        advice->changes[0] = i ? (struct oc_change){OC_OPT_optimizer, OC_OPTIM_ADAM, OC_OPTIM_SGD}
                               : (struct oc_change){OC_OPT_recompute, OC_RECOMPUTE_NONE, OC_RECOMPUTE_FULL};
        oc_option_put(&advice->config, advice->changes[0].option, advice->changes[0].to);
        oc_set_given(&advice->config, advice->changes[0].option, true);
        advice->notes[0] = i ? "one state instead of two" : "only the inputs of layers are kept";
        advice->effect = i ? OC_EFFECT_TRAINING : OC_EFFECT_NONE;
        advice->operations = i ? 0 : 1.0 / 3;
        advice->sent = i ? 0 : 1.5 * (1u << 30);
        advice->verdict = advices->now;
        advice->verdict.fits = true;
        advice->verdict.headroom = 2 * (1 + i) * (int64_t)(1u << 30);
        advice->verdict.device.high = plan.capacity - (uint64_t)advice->verdict.headroom;
    }
    return true;
}

const struct oc_app_model oc_fake_model = {fake_resolve, fake_answer,   fake_explain, fake_device, fake_fit,
                                           fake_covers,  fake_estimate, fake_compare, fake_advise};

struct oc_input oc_fake_input(void)
{
    static const struct {
        const char *assignment;
        enum oc_from from;
        int line;
    } given[] = {{"framework=megatron", OC_FROM_FILE, 1}, {"model.layers=32", OC_FROM_FILE, 12},
                 {"model.hidden=4096", OC_FROM_FILE, 13}, {"model.heads=32", OC_FROM_FILE, 14},
                 {"precision=fp16", OC_FROM_FILE, 41},    {"parallel.tp=8", OC_FROM_FILE, 60},
                 {"parallel.sp=true", OC_FROM_FILE, 62},  {"optimizer=sgd", OC_FROM_FILE, 46},
                 {"batch.seq=4096", OC_FROM_FILE, 15},    {"batch.micro=1", OC_FROM_ASSUMED, 38},
                 {"gpu=h100-80g", OC_FROM_SET, 0}};
    struct oc_input input = {0};
    input.c.config = oc_config_default();
    snprintf(input.files[0], sizeof input.files[0], "examples/run.sh");
    input.n_files = 1;
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        enum oc_option_id id;
        assert_true(oc_config_assign(&input.c.config, given[i].assignment, &id, NULL));
        input.c.origin[id] = (struct oc_origin){.from = (uint8_t)given[i].from, .file = 0, .line = given[i].line};
    }
    oc_note_add(&input, OC_NOTE_ASSUMED, OC_OPT_batch_micro, "", 0, 38, "$MICRO_BATCH_SIZE is not set in run.sh");
    oc_note_add(&input, OC_NOTE_UNMODELLED, OC_OPTIONS, "--empty-unused-memory-level", 0, 52,
                "it empties the allocator's cache");
    return input;
}

struct oc_theme oc_fake_theme(void)
{
    struct oc_theme theme;
    struct oc_error error = {0};
    if (!oc_theme_default(&theme, &error)) fail_msg("%s at %d:%d", error.message, error.line, error.column);
    return theme;
}

char *oc_fake_text(const struct oc_canvas *canvas)
{
    char *text = malloc((size_t)(canvas->width * 4 + 1) * (size_t)canvas->height + 1), *at = text;
    assert_non_null(text);
    for (int y = 0; y < canvas->height; y++) {
        for (int x = 0; x < canvas->width; x++) {
            uint32_t code = oc_canvas_at(canvas, x, y)->code;
            if (code) at += oc_utf8_write(code, at);
        }
        *at++ = '\n';
    }
    *at = '\0';
    return text;
}

int oc_fake_open(void **state, const struct oc_app_model *model, const struct oc_input *input, int width, int height)
{
    struct oc_fake_app *f = calloc(1, sizeof *f);
    struct oc_error error;
    if (!f) return -1;
    f->input = *input;
    f->theme = oc_fake_theme();
    f->canvas.theme = &f->theme;
    f->canvas.colour = true;
    *state = f;
    return oc_app_start(&f->app, model, &f->input, &error) && oc_canvas_resize(&f->canvas, width, height) ? 0 : -1;
}

int oc_fake_close(void **state)
{
    struct oc_fake_app *f = *state;
    oc_app_end(&f->app);
    oc_canvas_free(&f->canvas);
    free(f);
    return 0;
}

void oc_fake_assert_drawn(struct oc_fake_app *f, const char *text, bool there)
{
    oc_app_draw(&f->app, &f->canvas);
    char *screen = oc_fake_text(&f->canvas);
    if ((strstr(screen, text) != NULL) != there)
        fail_msg("\"%s\" is%s on the screen:\n%s", text, there ? " not" : "", screen);
    free(screen);
}
