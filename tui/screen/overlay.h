/* Texts that cover the screen until they are closed: all keys, and the whole reason. */
#ifndef OOMCAST_OVERLAY_H
#define OOMCAST_OVERLAY_H

#include "tui/screen/app.h"

enum { OC_OVERLAY_LINES = 4000 }; /* scrolling further than this is the end */

/* Draws the overlay of the current mode in the rectangle; keeps app->scroll inside its text. */
void oc_overlay_draw(struct oc_app *app, struct oc_canvas *canvas, struct oc_rect rect);

#endif
