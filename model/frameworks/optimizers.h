/* What PyTorch's optimizers and their relatives keep for each tensor that they update, and what a step needs besides.
 */
#ifndef OOMCAST_OPTIMIZERS_H
#define OOMCAST_OPTIMIZERS_H

#include "model/build.h"

/* One tensor of optimizer state. */
struct oc_kept {
    const char *name, *why;
    uint64_t elements;
    enum oc_dtype dtype;
};
enum { OC_MAX_KEPT = 4 };

/* The first (which = 1) and the second state of a tensor, as bits of the result: whether they are like the tensor
 * itself, so that a framework's own rules for moments describe them. Otherwise oc_optimizer_keeps() does. */
bool oc_optimizer_is_plain(const struct oc_plan *plan, int which);

/* The types of the two states when what is updated has type `updated`; OC_NONE: there is none. */
void oc_optimizer_dtypes(const struct oc_config *config, enum oc_dtype updated, enum oc_dtype *moment1,
                         enum oc_dtype *moment2);

/* A tensor that is updated. */
struct oc_tensor_shape {
    uint64_t elements, columns; /* columns: of a matrix; 0: a vector */
    enum oc_dtype own;          /* the type of states that are kept as the tensor itself */
    bool matrix;                /* a hidden matrix, which Muon treats apart */
};

/* States that are not like the tensor. Returns how many of `kept` (OC_MAX_KEPT) were filled. */
int oc_optimizer_keeps(const struct oc_plan *plan, const struct oc_tensor_shape *shape, struct oc_kept *kept);

/* The same as entries, for every trained parameter of the build. `dealt`: whole parameters are dealt out over the ranks
 * that share; a rank's part of all of them counts as that part of each, though the largest parameters make ranks
 * differ. */
void oc_add_optimizer_states(struct oc_build *build, bool dealt);

/* Buffers that exist once, and the scratch of a step that goes tensor by tensor, the largest of which has `elements`
 * numbers; `tensors` are updated in all. */
void oc_add_optimizer_scratch(struct oc_build *build, uint64_t elements, uint64_t tensors);

#endif
