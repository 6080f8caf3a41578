/* What a suggested change costs, as text: the same in the report and on the screen.
 *
 * Ownership: text is written into the caller's buffer; every function returns it. */
#ifndef OC_TUI_REPORT_ADVICE_H
#define OC_TUI_REPORT_ADVICE_H

#include "oomcast/model.h"

#include "tui/report/buffer.h"
#include "tui/report/units.h"

/* "+32.9 %", or "same". */
const char *oc_format_share(double share, char *text, size_t size);

/* Bytes more or fewer in one step: "+1.50", "-0.25", or "same"; without the unit. */
const char *oc_format_traffic(double bytes, enum oc_unit unit, int width, char *text, size_t size);

/* What the steps of a change mean, and what they cost beside operations and bytes between ranks. */
const char *oc_advice_meaning(const struct oc_advices *advices, const struct oc_advice *advice, enum oc_unit unit,
                              char *text, size_t size);

/* "With the same results", "With more GPUs": a heading. */
const char *oc_effect_heading(enum oc_effect effect);

/* What the list is, in one sentence: it fits or not, one change or several. */
const char *oc_advices_heading(const struct oc_advices *advices);

/* All of it for programs: the configuration as it is under "now", the changes under "advice". */
void oc_advices_json(const struct oc_plan *plan, const struct oc_advices *advices, struct oc_buffer *out);

#endif
