#include "tui/report/advice.h"
#include "tui/report/report.h"

/* Names for programs, in the order of enum oc_effect. */
static const char *const effects[] = {[OC_EFFECT_NONE] = "none",
                                      [OC_EFFECT_ROUNDING] = "rounding",
                                      [OC_EFFECT_RANKS] = "ranks",
                                      [OC_EFFECT_TRAINING] = "training"};

static void put_change(struct oc_json *json, const struct oc_change *change)
{
    struct oc_config config = oc_config_default();
    oc_json_object(json, NULL, true);
    oc_json_string(json, "key", oc_option(change->option)->key);
    oc_option_put(&config, change->option, change->from);
    oc_json_option(json, "from", &config, change->option);
    oc_option_put(&config, change->option, change->to);
    oc_json_option(json, "to", &config, change->option);
    oc_json_close(json);
}

static void put_bytes(struct oc_json *json, const struct oc_plan *plan, uint64_t allocated,
                      const struct oc_verdict *verdict)
{
    oc_json_unsigned(json, "allocated", allocated);
    oc_json_unsigned(json, "device", oc_middle(verdict->device));
    oc_json_verdict(json, plan, verdict);
}

static void put_advice(struct oc_json *json, const char *key, const struct oc_plan *plan,
                       const struct oc_advice *advice)
{
    oc_json_object(json, key, false);
    oc_json_array(json, "changes", true);
    for (int i = 0; i < advice->n_changes; i++) put_change(json, &advice->changes[i]);
    oc_json_close(json);
    oc_json_string(json, "effect", effects[advice->effect]);
    put_bytes(json, plan, advice->allocated, &advice->verdict);
    oc_json_object(json, "costs", true);
    oc_json_number(json, "operations", advice->operations);
    oc_json_number(json, "sent", advice->sent);
    oc_json_number(json, "host", advice->host);
    oc_json_number(json, "bubble", advice->idle);
    oc_json_signed(json, "samples", advice->cost.samples);
    oc_json_signed(json, "ranks", advice->cost.ranks);
    oc_json_close(json);
    oc_json_array(json, "notes", true);
    for (int i = 0; i < advice->n_steps; i++) oc_json_string(json, NULL, advice->notes[i]);
    oc_json_close(json);
    oc_json_close(json);
}

void oc_advices_json(const struct oc_plan *plan, const struct oc_advices *advices, struct oc_buffer *out)
{
    struct oc_json json = {.out = out};
    oc_json_begin(&json);
    oc_json_gpu(&json, &plan->c);
    oc_json_object(&json, "now", true);
    put_bytes(&json, plan, advices->allocated, &advices->now);
    oc_json_signed(&json, "samples", advices->cost.samples);
    oc_json_signed(&json, "ranks", advices->cost.ranks);
    oc_json_close(&json);
    oc_json_string(&json, "about", advices->back ? "taking back" : "making it fit");
    oc_json_array(&json, "advice", false);
    for (int i = 0; i < advices->n; i++) put_advice(&json, NULL, plan, &advices->list[i]);
    oc_json_close(&json);
    if (advices->n || !advices->has_nearest)
        oc_json_null(&json, "nearest");
    else
        put_advice(&json, "nearest", plan, &advices->nearest);
    oc_json_close(&json);
}
