/* Which options the probe's training step knows. Shared by oc_probe_covers() and oc_probe_fit(). */
#ifndef OC_MODEL_BASE_COVERS_H
#define OC_MODEL_BASE_COVERS_H

#include "oomcast/config.h"

/* The first option from `from` on that has an effect, is not at its default and is none the probe knows; OC_OPTIONS
 * when there is none. So an option that is added later is uncovered until the probe learns it. */
enum oc_option_id oc_probe_unknown(const struct oc_config *resolved, int from);

#endif
