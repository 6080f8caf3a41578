/* A ledger being filled for one stage of a plan: what shapes and frameworks write into. Internal to the model. */
#ifndef OOMCAST_BUILD_H
#define OOMCAST_BUILD_H

#include "model/shapes/sizes.h"
#include "oomcast/ledger.h"
#include "oomcast/plan.h"

/* What autocast does with a parameter. */
enum oc_cast {
    OC_CAST_NONE,      /* used in its own type */
    OC_CAST_KEPT,      /* a matrix of a product: the graph keeps the cast until the product's backward */
    OC_CAST_UNTIL_EXIT /* a bias: the cast stays in the cache until the autocast context ends */
};

/* One parameter tensor of a stage; `count` of them, one a layer, when it lies in part LAYER. */
struct oc_param {
    const char *name;
    uint64_t elements;
    uint64_t rows; /* of the matrix: elements / rows columns */
    uint32_t count;
    uint8_t part, kind;        /* as in struct oc_entry */
    uint8_t forward, backward; /* sub-steps in which the op set uses it and makes its gradient */
    uint8_t cast;              /* enum oc_cast */
    bool expert;               /* of a routed expert: its states are shared over the expert data-parallel ranks */
    bool frozen;               /* not trained: it has no gradient and no states */
    bool quantized;            /* frozen, and kept in 4 or 8 bits with scales */
    bool adapter;              /* of a low-rank adapter: trained, in the adapters' own type */
    uint32_t matrices;         /* separate matrices in one instance (experts, gate and up): scales are counted by it */
    uint64_t columns;          /* inputs of the matrix */
    bool tied_gradient;        /* its gradient is added to one that is there already: the embedding under a tied head */
};

enum { OC_MAX_PARAMS = 192 };

struct oc_build {
    const struct oc_plan *plan;
    int64_t stage;
    struct oc_ledger *ledger;
    struct oc_sizes sizes;
    uint32_t layers[OC_MAX_KINDS]; /* of each kind on this stage */
    struct oc_param params[OC_MAX_PARAMS];
    int n_params;
    uint64_t total[2], padded[2]; /* [of routed experts]: elements on this rank, and with the padding of buffers */
    uint64_t trained[2];          /* those that are not frozen */
    bool overflow;                /* an entry did not fit or a size passed 2^62 */
};

/* Adds `count` instances of `elements` numbers. Does nothing for 0 elements, 0 instances or OC_NONE. */
void oc_build_add(struct oc_build *build, const struct oc_entry *entry);

/* The same for a part of an entry's life; `why` replaces the entry's unless it is NULL. */
void oc_build_add_when(struct oc_build *build, struct oc_entry entry, enum oc_when when, struct oc_tick birth,
                       struct oc_tick death, const char *why);

/* Fills build->params from the table of parameters (model/shapes/params.c), in the order in which frameworks register
 * them. */
void oc_build_params(struct oc_build *build);

/* Entries for every copy of the parameters that the framework's rules name, and for its buffers. */
void oc_build_states(struct oc_build *build);

/* The copies that autocast makes of the parameters. */
void oc_build_casts(struct oc_build *build);

/* The largest parameter tensor, elements. */
uint64_t oc_build_largest(const struct oc_build *build);

/* Elements of what is gathered together: one layer of that kind, or everything outside layers (OC_MAX_KINDS). */
uint64_t oc_build_unit(const struct oc_build *build, int kind);

/* Parameter tensors on this rank. */
uint64_t oc_build_tensors(const struct oc_build *build);

/* A birth at the first product of the first backward pass: the autograd thread makes its handles there. */
struct oc_tick oc_first_backward(const struct oc_build *build);

/* Entries of activations, activation gradients and logits, from the op set's tables (model/shapes/). */
void oc_build_activations(struct oc_build *build);

/* Parameters on this rank; of routed experts, or of everything else. */
uint64_t oc_build_total(const struct oc_build *build);
uint64_t oc_build_part(const struct oc_build *build, bool expert);

/* The pipeline schedule of a stage cut to its fill and two more micro-batches (model/schedule.c). */
void oc_schedule(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger);

#endif
