/* What the parts of the text report share. */
#ifndef OC_TUI_REPORT_TEXT_H
#define OC_TUI_REPORT_TEXT_H

#include "tui/report/report.h"

enum { OC_TEXT_WIDTH = 78 };

/* "  Model      text", wrapped under itself. */
void oc_text_field(struct oc_buffer *out, const char *label, const char *text);

/* What the ranks of each stage hold; stages that hold the same are told once. */
void oc_text_stages(struct oc_buffer *out, const struct oc_report *report);

/* Every entry of a ledger, with what it holds at the peak, largest first. */
void oc_text_entries(struct oc_buffer *out, const struct oc_ledger *ledger, const struct oc_instant *peak,
                     enum oc_unit unit);

#endif
