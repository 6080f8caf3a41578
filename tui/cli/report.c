/* `oomcast report` and `oomcast check`. */
#include <inttypes.h>
#include <stdio.h>

#include "tui/cli/cli.h"
#include "tui/report/report.h"

enum oc_exit oc_cli_report(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_session *session = oc_cli_answer(args, args->entries, error);
    if (!session) return oc_cli_status(error);
    const struct oc_report report = {.input = &session->input,
                                     .answer = &session->answer,
                                     .ledgers = session->ledgers,
                                     .reason = &session->reason,
                                     .unit = args->unit};
    static void (*const writers[])(const struct oc_report *report,
                                   struct oc_buffer *out) = {[OC_FORMAT_TEXT] = oc_report_text,
                                                             [OC_FORMAT_JSON] = oc_report_json,
                                                             [OC_FORMAT_CSV] = oc_report_csv,
                                                             [OC_FORMAT_MARKDOWN] = oc_report_markdown,
                                                             [OC_FORMAT_SVG] = oc_report_svg};
    if (args->format == OC_FORMAT_TEXT || args->format == OC_FORMAT_MARKDOWN)
        oc_explain(&session->answer, &session->reason);
    writers[args->format](&report, out);
    oc_cli_release(session);
    return OC_EXIT_DONE;
}

enum oc_exit oc_cli_check(const struct oc_args *args, struct oc_buffer *out, struct oc_error *error)
{
    struct oc_session *session = oc_cli_answer(args, false, error);
    if (!session) return oc_cli_status(error);
    const struct oc_verdict verdict = session->answer.verdict;
    if (!verdict.known) {
        oc_cli_release(session);
        oc_fail(error, OC_E_USAGE, "no GPU is named, so nothing says how much must fit");
        oc_hint(error, "--set gpu=h100-80g, see `oomcast gpus`; or --set gpu.capacity=80GiB");
        return OC_EXIT_USAGE;
    }
    const bool fits = verdict.fits && verdict.headroom >= args->margin;
    oc_verdict_text(&session->answer, args->unit, out);
    if (verdict.fits && !fits) {
        char margin[OC_BYTES_TEXT];
        oc_putf(out, " That is less than the margin of %s.",
                oc_format_bytes((uint64_t)args->margin, args->unit, margin, sizeof margin));
    }
    oc_put(out, "\n");
    oc_cli_release(session);
    return fits ? OC_EXIT_DONE : OC_EXIT_DOES_NOT_FIT;
}
