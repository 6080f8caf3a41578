/* Beside the modelled step: what the dry run of the same stage held in each of its moments, and the real run. */
#include <ctype.h>
#include <string.h>

#include "tui/report/units.h"
#include "tui/views/step.h"

enum { NAME = 12 };

/* One moment: the model's figure at full size, that of the dry run, and both at the size that was measured. NULL or not
 * existing: not known. */
struct moment {
    const struct oc_instant *model, *simulated, *shape, *measured;
};

static bool known(const struct oc_instant *instant)
{
    return instant && instant->exists;
}

static void amount(const struct oc_instant *instant, int width, char *text, size_t size)
{
    if (known(instant)) oc_format_amount(instant->allocated, OC_UNIT_GIB, width, text, size);
}

static void difference(const struct oc_instant *model, const struct oc_instant *probe, int width, char *text,
                       size_t size)
{
    if (known(model) && known(probe))
        oc_format_change(model->allocated, probe->allocated, OC_UNIT_BYTES, width, text, size);
}

static void model_cell(const struct moment *moment, int width, char *text, size_t size)
{
    amount(moment->model, width, text, size);
}

static void simulated_cell(const struct moment *moment, int width, char *text, size_t size)
{
    amount(moment->simulated, width, text, size);
}

static void differs_cell(const struct moment *moment, int width, char *text, size_t size)
{
    difference(moment->model, moment->simulated, width, text, size);
}

static void measured_cell(const struct moment *moment, int width, char *text, size_t size)
{
    difference(moment->shape, moment->measured, width, text, size);
}

static const struct {
    const char *head;
    int width;
    void (*write)(const struct moment *moment, int width, char *text, size_t size);
} columns[] = {{"model", 9, model_cell},
               {"simulated", 10, simulated_cell},
               {"differs, B", 12, differs_cell},
               {"probe, B", 12, measured_cell}};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

static const struct oc_rank *rank_of(const struct oc_result *result)
{
    return result && result->status == OC_PROBE_DONE ? &result->rank : NULL;
}

static const struct oc_instant *instant_of(const struct oc_rank *rank, enum oc_iteration iteration, int moment)
{
    return rank ? &rank->moments[iteration][moment] : NULL;
}

static void draw_row(struct oc_canvas *canvas, struct oc_rect row, const char *name, enum oc_role role,
                     const struct moment *moment)
{
    oc_canvas_text(canvas, row.x, row.y, NAME, role, name);
    int x = row.x + NAME;
    for (int i = 0; i < COLUMNS && x + columns[i].width <= row.x + row.w; x += columns[i++].width) {
        char text[OC_BYTES_TEXT] = "-";
        if (moment)
            columns[i].write(moment, columns[i].width - 1, text, sizeof text);
        else
            snprintf(text, sizeof text, "%s", columns[i].head);
        oc_canvas_right(canvas, x, row.y, columns[i].width, role, text);
    }
}

void oc_step_probe(const struct oc_app *app, const struct oc_step_state *state, struct oc_canvas *canvas,
                   struct oc_rect rect)
{
    const struct oc_rank *simulated = rank_of(oc_app_simulated(app)), *measured = rank_of(oc_app_measured(app));
    const int64_t worst = app->answer->verdict.worst_stage;
    if (state->stage != worst || (!simulated && !measured)) return;
    const struct oc_rank *model = simulated ? &app->shape.whole->ranks[worst] : &app->answer->ranks[worst];
    const struct oc_rank *shape = &app->shape.answer->ranks[app->shape.answer->verdict.worst_stage];
    const enum oc_iteration iteration = state->iteration;
    struct oc_rect row = {rect.x, rect.y, rect.w, 1};
    char name[24];
    snprintf(name, sizeof name, "%s, GiB", oc_iteration_name(iteration));
    name[0] = (char)toupper((unsigned char)name[0]);
    draw_row(canvas, row, name, OC_ROLE_DIM, NULL);
    for (int i = 0; i < OC_MOMENTS; i++) {
        const struct moment moment = {instant_of(model, iteration, i), instant_of(simulated, iteration, i),
                                      instant_of(shape, iteration, i), instant_of(measured, iteration, i)};
        if (!known(moment.model) || ++row.y >= rect.y + rect.h) continue;
        snprintf(name, sizeof name, "%s", i == OC_M_AFTER_STEP ? "after step" : oc_moment_name((enum oc_moment)i));
        const bool here = oc_step_cursor(state)->place.moment == (enum oc_moment)i;
        draw_row(canvas, row, name, here ? OC_ROLE_TITLE : OC_ROLE_TEXT, &moment);
    }
}
