/* Options found by any of their names: ours, a launch script's, a DeepSpeed or Hugging Face key. */
#ifndef OOMCAST_FIND_H
#define OOMCAST_FIND_H

#include "tui/screen/app.h"

/* Options that match, the best first: names that are equal, then that begin with the text, then that contain it, then
 * words of the help. Returns how many; `name` (may be NULL) is the name that matched, for the first. */
int oc_find_options(const char *text, enum oc_option_id found[OC_OPTIONS], char *name, size_t size);

/* Opens the prompt; the focus goes to the best match while it is typed. */
void oc_find_start(struct oc_app *app);

/* The match after (1) or before (-1) the focus, of what was searched last. */
void oc_find_again(struct oc_app *app, int direction);

#endif
