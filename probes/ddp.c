/* DistributedDataParallel: every rank has the whole model, and gradients go to the others through buckets, which stay.
 * Nothing is sent: the other ranks' gradients are this one's, so that their mean is, too. */
#include <stdlib.h>

#include "probes/train.h"

struct oc_ddp {
    struct oc_tensor *buckets;
    struct oc_tensor *views; /* one a parameter */
    bool viewed;             /* gradients are views of the buckets, for good */
    bool waits;              /* ... once they have been summed over several micro-batches */
};

bool oc_ddp_open(struct oc_train *train)
{
    train->ddp = calloc(1, sizeof *train->ddp);
    if (!train->ddp) return false;
    train->ddp->viewed = train->plan->c.parallel_bucket_view != 0;
    train->ddp->waits = train->ddp->viewed && train->plan->c.parallel_no_sync && train->plan->accum > 1 &&
                        train->plan->c.run_zero_grad_to_none;
    train->ddp->views = calloc((size_t)train->n_params, sizeof *train->ddp->views);
    return train->ddp->views != NULL;
}

void oc_ddp_close(struct oc_train *train)
{
    if (train->ddp) free(train->ddp->views);
    free(train->ddp);
    train->ddp = NULL;
}

void oc_ddp_make_buckets(struct oc_train *train)
{
    struct oc_ddp *ddp = train->ddp;
    uint64_t total = 0;
    for (int i = 0; i < train->n_params; i++) total = oc_add(total, train->params[i].weight->elements);
    ddp->buckets = oc_tensor_new(train->books, ddp->viewed ? OC_GRADIENTS : OC_BUFFERS, "ddp", "buckets",
                                 train->plan->dt.grads, total);
    if (oc_train_stopped(train)) return;
    oc_zero(train, ddp->buckets);
    uint64_t at = 0;
    for (int i = 0; i < train->n_params; i++) {
        struct oc_param *param = &train->params[i];
        ddp->views[i] = oc_tensor_view(ddp->buckets, at, param->weight->elements);
        if (ddp->viewed && !ddp->waits) param->grad = &ddp->views[i];
        at += param->weight->elements;
    }
}

void oc_ddp_reduce(struct oc_train *train)
{
    const struct oc_ddp *ddp = train->ddp;
    if (!ddp || ddp->viewed) return;
    for (int i = 0; i < train->n_params && !oc_train_stopped(train); i++) {
        oc_blend(train, train->params[i].grad, 1.0f, NULL, 0.0f, &ddp->views[i]);
        oc_blend(train, &ddp->views[i], 1.0f, NULL, 0.0f, train->params[i].grad);
    }
}

struct oc_tensor *oc_ddp_view(const struct oc_train *train, const struct oc_param *param)
{
    const struct oc_ddp *ddp = train->ddp;
    const bool last = train->micro_batch == train->micro_batches - 1;
    return ddp && ddp->waits && last ? &ddp->views[param - train->params] : NULL;
}

bool oc_ddp_forgets_gradients(const struct oc_train *train)
{
    return train->ddp && train->ddp->waits;
}

bool oc_ddp_keeps_gradients(const struct oc_train *train)
{
    return train->ddp && train->ddp->viewed && !train->ddp->waits;
}
