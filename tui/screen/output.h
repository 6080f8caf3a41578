/* What `:export` writes: the configuration in the forms of model/export, and what is on the screen.
 *
 * Ownership: the text goes into the caller's buffer. */
#ifndef OOMCAST_OUTPUT_H
#define OOMCAST_OUTPUT_H

#include "tui/report/buffer.h"
#include "tui/screen/app.h"

/* The name of form `i` of the view, NULL behind the last. Those of the configuration are oc_exporters(). */
const char *oc_output_name(int i);

/* Writes one of them. False when there is none of that name, and app->message says which there are. */
bool oc_output_write(struct oc_app *app, const char *name, char *title, size_t size, struct oc_buffer *out);

#endif
