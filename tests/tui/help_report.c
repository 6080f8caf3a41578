#include <stdlib.h>
#include <string.h>

#include "help_report.h"

static void add(struct oc_ledger *ledger, const char *name, enum oc_class class, uint64_t bytes, uint32_t count,
                struct oc_tick birth, struct oc_tick death)
{
    const struct oc_entry entry = {.name = name,
                                   .why = "a \"rule\"",
                                   .source = "tests",
                                   .elements = bytes / 2,
                                   .bytes = bytes,
                                   .count = count,
                                   .class = class,
                                   .dtype = OC_FP16,
                                   .birth = birth,
                                   .death = death};
    oc_ledger_add(ledger, &entry);
}

static void fill_ledger(struct oc_ledger *ledger)
{
    const struct oc_tick init = {.phase = OC_PH_INIT}, end = {.phase = OC_PH_END}, idle = {.phase = OC_PH_IDLE};
    ledger->ranks = 2;
    ledger->params = 1000000;
    ledger->n_chunks = 1;
    ledger->chunks[0] =
        (struct oc_chunk){.runs = {{.kind = 0, .layers = 4}}, .n_runs = 1, .embedding = true, .head = true};
    for (int k = 0; k < OC_MAX_KINDS; k++) ledger->group[k] = 1;
    ledger->n_slots = 2;
    ledger->slots[1].backward = true;
    add(ledger, "weights", OC_WEIGHTS, 2000000, 1, init, end);
    add(ledger, "layers.saved", OC_ACTIVATIONS, 3000001, 4,
        (struct oc_tick){.phase = OC_PH_FORWARD, .part = OC_PART_LAYER, .sub = 1},
        (struct oc_tick){.phase = OC_PH_BACKWARD, .part = OC_PART_LAYER, .sub = 2});
    add(ledger, "layers.gradients", OC_GRADIENTS, 1000000, 4,
        (struct oc_tick){.phase = OC_PH_BACKWARD, .part = OC_PART_LAYER, .sub = 1}, idle);
    add(ledger, "state", OC_OPTIMIZER, 8000000, 1, (struct oc_tick){.phase = OC_PH_STEP}, end);
    add(ledger, "scratch", OC_BUFFERS, 5000000, 1, (struct oc_tick){.phase = OC_PH_STEP, .sub = 1},
        (struct oc_tick){.phase = OC_PH_STEP, .sub = 2});
}

static void fill_plan(struct oc_plan *plan)
{
    plan->c = oc_config_default();
    plan->c.framework = OC_FW_MEGATRON;
    plan->c.precision = OC_PREC_FP16;
    plan->c.optimizer = OC_OPTIM_SGD;
    plan->c.model_layers = 4;
    plan->c.parallel_world = 2;
    plan->c.parallel_tp = 2;
    plan->c.parallel_pp = plan->c.parallel_vpp = plan->c.parallel_cp = 1;
    strcpy(plan->c.gpu, "h100-80g");
    oc_set_given(&plan->c, OC_OPT_gpu, true);
    plan->dt.weights = plan->dt.compute = plan->dt.residual = plan->dt.grads = OC_FP16;
    plan->dt.master = plan->dt.moment1 = OC_FP32;
    plan->has_shape = true;
    plan->dp = plan->shard = plan->accum = 1;
    plan->capacity = 40000000;
    plan->context = (struct oc_range){1000000, 2000000};
    plan->nccl = (struct oc_range){0, 3};
}

static void fill_input(struct oc_input *input)
{
    input->c.config = oc_config_default();
    input->n_files = 1;
    strcpy(input->files[0], "run.sh");
    input->c.origin[OC_OPT_parallel_tp] = (struct oc_origin){.from = OC_FROM_FILE, .line = 41};
    input->c.origin[OC_OPT_precision] = (struct oc_origin){.from = OC_FROM_SET};
    input->c.origin[OC_OPT_batch_micro] = (struct oc_origin){.from = OC_FROM_ASSUMED, .line = 38};
    const struct oc_note notes[] = {
        {.kind = OC_NOTE_ASSUMED, .option = OC_OPT_batch_micro, .line = 38, .text = "$MBS is not set in run.sh"},
        {.kind = OC_NOTE_ASSUMED, .option = OC_OPT_precision, .line = 39, .text = "answered by --set since"},
        {.kind = OC_NOTE_UNMODELLED, .option = OC_OPTIONS, .line = 52, .name = "--use-cpu-initialization"},
        {.kind = OC_NOTE_WARNING, .option = OC_OPTIONS, .line = 7, .text = "--fp16 is given twice"}};
    input->n_notes = sizeof notes / sizeof notes[0];
    memcpy(input->notes, notes, sizeof notes);
}

struct help_run *help_run(void)
{
    struct help_run *run = calloc(1, sizeof *run);
    if (!run) abort();
    struct oc_answer *answer = &run->answer;
    struct oc_rank *rank = &answer->ranks[0];
    fill_ledger(&run->ledger);
    fill_plan(&answer->plan);
    fill_input(&run->input);
    oc_sweep(&run->ledger, rank);
    rank->stage = 0;
    rank->ranks = 2;
    rank->params = 1000000;
    rank->reserved = 25000000;
    rank->reserved_by = OC_SIMULATED;
    answer->n_ranks = 1;
    answer->params_total = answer->params_active = 2000000;
    answer->verdict =
        (struct oc_verdict){.known = true, .fits = true, .headroom = 12999997, .device = {26000000, 27000003}};
    run->reason.n = 1;
    strcpy(run->reason.sentence[0], "Half of it is activations.");
    run->report = (struct oc_report){
        .input = &run->input, .answer = answer, .ledgers = &run->ledger, .reason = &run->reason, .unit = OC_UNIT_GB};
    return run;
}

void help_run_free(struct help_run *run)
{
    free(run);
}
