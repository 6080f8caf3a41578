/* `oomcast advise`: the smallest changes that make it fit, or what could be taken back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tui/cli/cli.h"
#include "tui/report/advice.h"
#include "tui/report/report.h"

enum { WIDTH = 79 };

/* The columns below each change. */
static const struct column {
    const char *head;
    int width;
} columns[] = {{"on device", 13}, {"to spare", 10}, {"operations", 12}, {"sent a step", 13}};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

static int indent(void)
{
    int width = 2; /* blanks before what it means */
    for (int i = 0; i < COLUMNS; i++) width += columns[i].width;
    return width;
}

static void put_numbers(struct oc_buffer *out, const struct oc_advice *advice, enum oc_unit unit)
{
    char text[OC_BYTES_TEXT];
    const int64_t left = advice->verdict.headroom;
    oc_putf(out, "%*s", columns[0].width,
            oc_format_amount(advice->verdict.device.high, unit, columns[0].width - 1, text, sizeof text));
    oc_putf(out, "%*s", columns[1].width,
            oc_format_signed(left, unit, columns[1].width - 1, text, sizeof text) +
                (left > 0)); /* room to spare needs no sign */
    oc_putf(out, "%*s", columns[2].width, oc_format_share(advice->operations, text, sizeof text));
    oc_putf(out, "%*s  ", columns[3].width,
            oc_format_traffic(advice->sent, unit, columns[3].width - 1, text, sizeof text));
}

static void put_advice(struct oc_buffer *out, const struct oc_advices *advices, const struct oc_advice *advice,
                       enum oc_unit unit)
{
    char text[400];
    oc_put(out, "  ");
    oc_put_wrapped(out, oc_advice_text(advice, text, sizeof text), 2, 4, WIDTH);
    put_numbers(out, advice, unit);
    oc_put_wrapped(out, oc_advice_meaning(advices, advice, unit, text, sizeof text), indent(), indent(), WIDTH);
}

static void put_head(struct oc_buffer *out, enum oc_unit unit)
{
    for (int i = 0; i < COLUMNS; i++) oc_putf(out, "%*s", columns[i].width, columns[i].head);
    oc_putf(out, "  %s\n", oc_unit_name(unit));
}

static void put_list(struct oc_buffer *out, const struct oc_advices *advices, enum oc_unit unit)
{
    for (int i = 0; i < advices->n; i++) {
        const struct oc_advice *advice = &advices->list[i];
        if (i == 0 || advice->effect != advices->list[i - 1].effect) {
            oc_putf(out, "\n%s\n", oc_effect_heading(advice->effect));
            put_head(out, unit);
        }
        put_advice(out, advices, advice, unit);
    }
}

static void put_text(const struct oc_args *args, const struct oc_session *session, const struct oc_advices *advices,
                     struct oc_buffer *out)
{
    struct oc_buffer line = {0};
    oc_verdict_text(&session->answer, args->unit, &line);
    if (line.data) oc_put_wrapped(out, line.data, 0, 0, WIDTH);
    oc_buffer_free(&line);
    oc_putf(out, "\n%s\n", oc_advices_heading(advices));
    put_list(out, advices, args->unit);
    if (advices->n || !advices->has_nearest) return;
    put_head(out, args->unit);
    put_advice(out, advices, &advices->nearest, args->unit);
}

enum oc_exit oc_cli_advise(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_session *session = oc_cli_answer(args, false, error);
    if (!session) return oc_cli_status(error);
    struct oc_advices *advices = malloc(sizeof *advices);
    struct oc_alloc *alloc = oc_alloc_create(NULL);
    enum oc_exit status = OC_EXIT_DONE;
    if (!advices || !alloc) {
        oc_fail(error, OC_E_INTERNAL, "out of memory");
        status = OC_EXIT_INTERNAL;
    } else if (!oc_advise(&session->input.c.config, alloc, advices, error)) {
        status = oc_cli_status(error);
    } else if (args->json) {
        oc_advices_json(&session->answer.plan, advices, out);
    } else {
        put_text(args, session, advices, out);
    }
    oc_alloc_destroy(alloc);
    free(advices);
    oc_cli_release(session);
    return status;
}
