/* The report: the numbers of an answer without a screen. Every format says the same.
 *
 * Ownership: everything pointed to is the caller's; the text goes into the caller's buffer. */
#ifndef OC_TUI_REPORT_REPORT_H
#define OC_TUI_REPORT_REPORT_H

#include "oomcast/model.h"

#include "tui/report/buffer.h"
#include "tui/report/units.h"
#include "tui/report/writer.h"

struct oc_report {
    const struct oc_input *input; /* files, origins, notes */
    const struct oc_answer *answer;
    const struct oc_ledger *ledgers; /* one per stage when entries are asked for, else NULL */
    const struct oc_reason *reason;  /* the text's sentences; NULL leaves them out */
    enum oc_unit unit;               /* of the text */
};

/* For people, at 80 columns, plain ASCII. */
void oc_report_text(const struct oc_report *report, struct oc_buffer *out);

/* Schema 1 (docs/DESIGN.md, section 4). */
void oc_report_json(const struct oc_report *report, struct oc_buffer *out);

/* Tables for spreadsheets: moments, or entries where ledgers are there. Bytes are exact whatever the unit. */
void oc_report_csv(const struct oc_report *report, struct oc_buffer *out);

/* For issues and documents. */
void oc_report_markdown(const struct oc_report *report, struct oc_buffer *out);
void oc_report_svg(const struct oc_report *report, struct oc_buffer *out);

/* Fits or not, by how much, on which stage and at which moment: one sentence, without a line end. */
void oc_verdict_text(const struct oc_answer *answer, enum oc_unit unit, struct oc_buffer *out);

/* Whether a note's assumption still stands: --set and edits answer it. */
bool oc_still_assumed(const struct oc_input *input, const struct oc_note *note);

/* One rank as an object: a member of "ranks" in the report, and "rank" in what the probe says. `ledger` may be NULL:
 * then there is no "entries". */
void oc_json_rank(struct oc_json *json, const char *key, const struct oc_plan *plan, const struct oc_rank *rank,
                  const struct oc_ledger *ledger);

/* The document's object, with "schema" and "tool"; and what several documents have: an option's value in its own type
 * under `key`, "gpu", and "capacity", "fits", "tight" and "headroom", which are null without a GPU. */
void oc_json_begin(struct oc_json *json);
void oc_json_option(struct oc_json *json, const char *key, const struct oc_config *config, enum oc_option_id id);
void oc_json_gpu(struct oc_json *json, const struct oc_config *config);
void oc_json_verdict(struct oc_json *json, const struct oc_plan *plan, const struct oc_verdict *verdict);

/* {"weights": bytes, ...}, on one line. */
void oc_json_classes(struct oc_json *json, const char *key, const uint64_t classes[OC_CLASSES]);

/* The middle of a range that is not known to the byte. */
uint64_t oc_middle(struct oc_range range);

/* "modelled", "simulated", "measured". */
const char *oc_evidence_name(enum oc_evidence evidence);

#endif
