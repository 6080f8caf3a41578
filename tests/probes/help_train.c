#include "tests/probes/help_train.h"

#include "probes/shards.h"
#include "probes/te.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void help_train_open(struct help_train *help, const struct oc_plan *plan, bool poison, const char *drop)
{
    memset(help, 0, sizeof *help);
    help->plan = *plan;
    help->options = (struct oc_probe_options){.device = OC_DEVICE_HOST, .steps = 2, .poison = poison, .drop = drop};
    oc_backend_host(&help->backend, 0);
    if (!oc_books_open(&help->books, &help->backend, false, poison, &help->rank)) abort();
    if (!oc_train_open(&help->train, &help->plan, &help->options, &help->backend, &help->books)) abort();
    if (help->train.loss_scale > 1024) help->train.loss_scale = 1024; /* which overflows in no test */
}

void help_train_close(struct help_train *help)
{
    oc_train_close(&help->train);
    oc_books_close(&help->books);
}

double help_train_run(struct help_train *help)
{
    struct oc_train *train = &help->train;
    train->loss = 0;
    if (train->te) {
        oc_te_run_slots(train);
        return train->loss;
    }
    if (train->shards) oc_shards_zero_grad(train);
    for (int i = 0; i < train->n_params; i++) {
        struct oc_param *param = &train->params[i];
        if (!oc_ddp_keeps_gradients(train))
            oc_let_go(train, &param->grad);
        else
            memset(param->grad->array.data, 0, (size_t)param->grad->bytes);
    }
    for (train->micro_batch = 0; train->micro_batch < train->micro_batches; train->micro_batch++) oc_micro_batch(train);
    oc_ddp_reduce(train);
    return train->loss;
}

struct oc_param *help_train_params(const struct help_train *help)
{
    return help->train.shards ? help->train.units : help->train.params;
}

float *help_train_gradients(struct help_train *help, int64_t *count)
{
    const struct oc_train *train = &help->train;
    const struct oc_param *params = help_train_params(help);
    int64_t total = 0, at = 0;
    for (int i = 0; i < train->n_params; i++) total += (int64_t)params[i].grad->elements;
    float *all = malloc((size_t)total * sizeof *all);
    if (!all) abort();
    for (int i = 0; i < train->n_params; i++) {
        const struct oc_tensor *grad = params[i].grad;
        for (int64_t j = 0; j < (int64_t)grad->elements; j++) all[at++] = oc_load(grad->array, j) / train->loss_scale;
    }
    if (count) *count = total;
    return all;
}

double help_train_distance(const struct help_train *help, const float *a, const float *b)
{
    double worst = 0;
    for (int i = 0; i < help->train.n_params; i++) {
        const int64_t n = (int64_t)help_train_params(help)[i].weight->elements;
        double difference = 0, length = 0;
        for (int64_t j = 0; j < n; j++, a++, b++) {
            difference += ((double)*a - (double)*b) * ((double)*a - (double)*b);
            length += (double)*b * (double)*b;
        }
        const double distance = sqrt(difference / length);
        if (!(distance <= worst)) worst = isnan(distance) ? (double)INFINITY : distance;
    }
    return worst;
}
