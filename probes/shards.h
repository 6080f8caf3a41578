/* One rank of FSDP2: each parameter's share, and the units whose weights are gathered while they run. "FSDP2" of
 * docs/step-pytorch.md. A unit is a layer, or all that lies outside layers: the root.
 *
 * Nothing is sent: the other ranks have the same shares as this one. So a gathered weight repeats the share, and the
 * sum over the parts of its gradient is the gradient of the share.
 *
 * Everything here does nothing where train->shards is NULL. Ownership: as in train.h. */
#ifndef OC_PROBES_SHARDS_H
#define OC_PROBES_SHARDS_H

#include "probes/train.h"

struct oc_unit {
    const char *block;
    uint64_t own;                       /* elements of the shares, padding included */
    struct oc_tensor *gathered, *ahead; /* all-gather's output [ranks, own]; that of the unit that comes next */
    struct oc_tensor *whole;            /* the weights that the unit reads [ranks, own] */
    struct oc_tensor *grads;            /* [own], until gradients are freed */
};

struct oc_shards {
    int64_t ranks;
    enum oc_dtype storage, reduce; /* of shares and their gradients; of gradients on the way */
    bool reshard, ahead,
        behind;              /* weights are freed after forward; the next unit's are gathered in forward, backward */
    struct oc_unit *units;   /* one a layer, then the root */
    struct oc_param *shares; /* of each parameter: what the optimizer updates */
    struct oc_tensor *views; /* two a parameter: in `whole`, and in `grads` */
    struct oc_tensor **sums; /* of each parameter: of earlier micro-batches' gradients, in the type of the reduction */
    struct oc_tensor *input; /* reduce-scatter's, of the unit that was reduced before */
    bool waits;              /* gradients are reduced in the last of several micro-batches only */
    uint64_t *at;            /* of each parameter: where its share begins in its unit, elements */
};

/* Once parameters are listed. False when out of host memory. */
bool oc_shards_open(struct oc_train *train);
void oc_shards_close(struct oc_train *train);

/* The share of parameter `index`, its numbers undefined. */
struct oc_tensor *oc_shards_make(struct oc_train *train, int index);

/* `unit` is a layer, or train->layers: the root. Before it runs forward; what forward then no longer needs. */
void oc_unit_gather(struct oc_train *train, int unit);
void oc_unit_gathered(struct oc_train *train, int unit);
void oc_unit_reshard(struct oc_train *train, int unit);
/* Before it runs backward, and when it has. */
void oc_unit_gather_again(struct oc_train *train, int unit);
void oc_unit_reduce(struct oc_train *train, int unit);

/* Gradients are freed. */
void oc_shards_zero_grad(struct oc_train *train);

#endif
