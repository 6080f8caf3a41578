/* The live probe: two lanes, each with at most one child. The dry lane replays the whole plan's allocations; the real
 * lane runs a training step of a smaller shape, on a GPU that nobody else computes on or in host memory. A result
 * belongs to the plan whose hash it carries and is found again by that hash.
 *
 * Nothing here blocks. Time is given by the caller in milliseconds, so that tests need no clock.
 *
 * Ownership: oc_live_start() allocates; oc_live_end() stops the children and releases everything. */
#ifndef OOMCAST_LIVE_H
#define OOMCAST_LIVE_H

#include "tui/screen/result.h"

enum oc_lane { OC_LANE_DRY, OC_LANE_REAL, OC_LANES };

struct oc_live; /* opaque */

/* `executable` is this program, whose `probe --json` the children run. NULL when out of memory. */
struct oc_live *oc_live_start(const char *executable);
void oc_live_end(struct oc_live *live);

/* Says which plan a lane is about now: its configuration (what is given in it goes to the child as --set), its hash,
 * and the pipeline stage whose part runs.
 * A child that runs for another plan is stopped. Nothing starts when the result is known, or fails to start twice.
 * `force` runs again. */
void oc_live_want(struct oc_live *live, enum oc_lane lane, const struct oc_config *config, uint64_t hash, int64_t stage,
                  uint64_t limit, int64_t now, bool force);

/* The lane is about nothing: stops its child. */
void oc_live_forget(struct oc_live *live, enum oc_lane lane);

/* Starts what is due, reads what has come. True when something that is drawn has changed. */
bool oc_live_tick(struct oc_live *live, int64_t now);

/* Milliseconds until oc_live_tick() has something to do by itself; -1 = only when a descriptor is readable. */
int oc_live_wait(const struct oc_live *live, int64_t now);

/* The descriptor to wait for; -1 = none. */
int oc_live_fd(const struct oc_live *live, enum oc_lane lane);

/* The result for a plan, or NULL. Valid until the next oc_live_tick(). */
const struct oc_result *oc_live_result(const struct oc_live *live, enum oc_lane lane, uint64_t hash);

/* Whether a child runs or waits to be started, and how far it is. */
bool oc_live_busy(const struct oc_live *live, enum oc_lane lane);
const char *oc_live_phase(const struct oc_live *live, enum oc_lane lane);
double oc_live_fraction(const struct oc_live *live, enum oc_lane lane);

#endif
