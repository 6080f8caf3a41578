/* One micro-batch: ids, embedding, layers, head, loss, and backward through all of it. */
#include <stdlib.h>

#include "probes/shards.h"

enum { TOKENS_IN_USE = 61 }; /* a small alphabet, so that a few steps can learn what follows what */

/* ---- Inputs ---- */

/* Sequences in which each token fixes the next one: x -> 5 x + 17 modulo the alphabet. Each sample begins elsewhere. */
void oc_write_data(struct oc_train *train)
{
    if (train->backend->device == OC_DEVICE_DRY || oc_train_stopped(train)) return;
    const int64_t alphabet = train->vocab < TOKENS_IN_USE ? train->vocab : TOKENS_IN_USE;
    int64_t *ids = malloc(2 * (size_t)train->tokens * sizeof *ids);
    if (!ids) {
        train->books->out_of_memory = true;
        return;
    }
    int64_t *labels = ids + train->tokens;
    for (int64_t sample = 0; sample < train->samples; sample++) {
        int64_t token = (7 * sample + 11 * train->micro_batch + 3) % alphabet;
        for (int64_t i = sample * train->seq; i < (sample + 1) * train->seq; i++) {
            ids[i] = token;
            token = (5 * token + 17) % alphabet;
            labels[i] = token;
        }
    }
    const size_t bytes = (size_t)train->tokens * sizeof *ids;
    train->backend->write(train->backend, train->ids->array.data, ids, bytes);
    train->backend->write(train->backend, train->labels->array.data, labels, bytes);
    free(ids);
}

/* Every layer's graph keeps them: they go when the last layer has run backward. */
static void make_rope_tables(struct oc_train *train)
{
    train->cosine = oc_activation(train, "rope", "cos", train->r, train->seq, train->head_dim);
    train->sine = oc_activation(train, "rope", "sin", train->r, train->seq, train->head_dim);
    struct oc_op_rope_table args = {.n = (int64_t)train->cosine->elements,
                                    .cosine = train->cosine->array,
                                    .sine = train->sine->array,
                                    .head_dim = train->head_dim,
                                    .base = OC_ROPE_BASE};
    oc_launch(train, OC_OP_rope_table, &args);
    struct oc_tensor *cosine = train->cosine, *sine = train->sine;
    oc_tensor_save(train->books, train->cosine);
    oc_tensor_save(train->books, train->sine);
    oc_let_go(train, &cosine);
    oc_let_go(train, &sine);
}

static void make_mask(struct oc_train *train)
{
    train->mask = oc_activation(train, "attention_mask", "mask", train->r, train->tokens, train->seq);
    struct oc_op_mask args = {.n = (int64_t)train->mask->elements, .mask = train->mask->array, .seq = train->seq};
    oc_launch(train, OC_OP_mask_make, &args);
}

struct oc_tensor *oc_drop_embedding(struct oc_train *train, const struct oc_tensor *x)
{
    struct oc_tensor *mask = oc_dropout_mask(train, "embedding", x);
    oc_drop_in_place(train, train->dropout, oc_seed(train, -1, OC_SITE_EMBEDDING), x, mask);
    struct oc_tensor *kept = oc_tensor_save(train->books, mask);
    oc_let_go(train, &mask);
    return kept;
}

/* [1] */
static struct oc_tensor *embed(struct oc_train *train)
{
    oc_train_at(train, OC_PH_FORWARD, OC_PART_EMBED, -1);
    oc_unit_gather(train, train->layers);
    train->ids = oc_tensor_new(train->books, OC_BUFFERS, "batch", "ids", OC_INT64, (uint64_t)train->tokens);
    train->labels = oc_tensor_new(train->books, OC_BUFFERS, "batch", "labels", OC_INT64, (uint64_t)train->tokens);
    oc_write_data(train);
    const struct oc_param *position = oc_train_end(train, OC_P_POSITION);
    if (position)
        train->positions =
            oc_tensor_new(train->books, OC_ACTIVATIONS, "embedding", "position_ids", OC_INT64, (uint64_t)train->seq);
    struct oc_tensor *x = oc_activation(train, "embedding", "out", train->r, train->tokens, train->hidden);
    struct oc_op_embedding args = {.n = train->tokens,
                                   .ids = train->ids->array,
                                   .table = oc_train_end(train, OC_P_EMBEDDING)->weight->array,
                                   .y = x->array,
                                   .width = train->hidden,
                                   .tokens = train->tokens,
                                   .seq = train->seq};
    if (position) args.positions = position->weight->array;
    oc_launch(train, OC_OP_embedding, &args);
    if (train->dropout > 0) train->embedding_mask = oc_drop_embedding(train, x);
    if (train->rope) make_rope_tables(train);
    if (train->eager) make_mask(train);
    oc_unit_gathered(train, train->layers);
    return x;
}

/* ---- The workspace that cuBLAS takes from PyTorch's allocator, one for each thread that launches matrix products ----
 */

uint64_t oc_cublas_bytes(const struct oc_plan *plan)
{
    if (plan->sm == 0) return 0; /* no GPU is known */
    if (oc_given(&plan->c, OC_OPT_allocator_cublas_workspace)) return (uint64_t)plan->c.allocator_cublas_workspace;
    return plan->sm >= 90 ? 32u << 20 : 2 * (4096u << 10) + 8 * (16u << 10);
}

/* Made at the first product of a thread, kept for good: forward's thread, then backward's. */
static void make_workspace(struct oc_train *train, enum oc_phase phase, enum oc_part part, const char *name)
{
    const uint64_t bytes = oc_cublas_bytes(train->plan);
    if (train->step > 0 || train->micro_batch > 0 || bytes == 0) return;
    oc_train_at(train, phase, part, -1);
    oc_tensor_new(train->books, OC_BUFFERS, "cublas_workspace", name, OC_INT8, bytes);
}

/* ---- Forward ---- */

/* [2] */
static struct oc_tensor *layers_forward(struct oc_train *train, struct oc_tensor *x)
{
    for (int l = 0; l < train->layers && !oc_train_stopped(train); l++) {
        oc_train_at(train, OC_PH_FORWARD, OC_PART_LAYER, l);
        oc_unit_gather(train, l);
        train->grad_mode = !train->recompute;
        if (train->recompute) train->saved[l].input = oc_tensor_save(train->books, x);
        struct oc_tensor *y = oc_layer_forward(train, l, x);
        oc_unit_gathered(train, l);
        oc_unit_reshard(train, l);
        oc_let_go(train, &x);
        x = y;
    }
    train->grad_mode = true;
    return x;
}

/* [3]: logits; *n is the final norm's output. */
static struct oc_tensor *head_forward(struct oc_train *train, struct oc_tensor *x, struct oc_tensor **n)
{
    oc_train_at(train, OC_PH_FORWARD, OC_PART_HEAD, -1);
    *n = oc_norm(train, oc_train_end(train, OC_P_FINAL_NORM), x, &train->final_norm);
    oc_let_go(train, &x);
    if (!train->recompute) oc_let_go(train, &train->mask);
    struct oc_tensor *logits = oc_linear(train, oc_train_end(train, OC_P_HEAD), *n, &train->head);
    oc_unit_reshard(train, train->layers);
    return logits;
}

static void add_loss(struct oc_train *train)
{
    double loss = 0;
    train->backend->read(train->backend, &loss, &train->backend->scalars->loss, sizeof loss);
    train->loss += loss / train->micro_batches;
}

/* The loss is their mean over all micro-batches, times the loss scale. */
static float loss_factor(const struct oc_train *train)
{
    return train->loss_scale / (float)train->micro_batches;
}

/* A new tensor from the logits; backward turns it into their gradient. */
static struct oc_tensor *log_softmax(struct oc_train *train, const struct oc_tensor *in)
{
    struct oc_tensor *lp =
        oc_activation(train, "loss", "log_softmax", (enum oc_dtype)in->array.dtype, train->tokens, train->vocab);
    struct oc_op_softmax softmax = {.n = train->tokens, .x = in->array, .y = lp->array, .width = train->vocab};
    oc_launch(train, OC_OP_log_softmax, &softmax);
    struct oc_op_nll nll = {.n = 1,
                            .lp = lp->array,
                            .labels = train->labels->array,
                            .scalars = train->backend->scalars,
                            .tokens = train->tokens,
                            .width = train->vocab};
    oc_launch(train, OC_OP_nll, &nll);
    return lp;
}

void oc_fused_loss(struct oc_train *train, const struct oc_tensor *logits)
{
    struct oc_op_fused_loss args = {.n = train->tokens,
                                    .x = logits->array,
                                    .labels = train->labels->array,
                                    .scalars = train->backend->scalars,
                                    .tokens = train->tokens,
                                    .width = train->vocab,
                                    .scale = loss_factor(train)};
    oc_launch(train, OC_OP_fused_loss, &args);
    args.n = 1;
    oc_launch(train, OC_OP_sum_losses, &args);
    add_loss(train);
}

/* [4]: leaves the log-softmax, or the gradient of the logits, for backward. */
static void loss_forward(struct oc_train *train, struct oc_tensor *logits, struct oc_tensor *n)
{
    oc_train_at(train, OC_PH_LOSS, OC_PART_HEAD, -1);
    struct oc_tensor *in =
        train->loss_in_fp32 ? oc_cast(train, "loss", "logits32", OC_FP32, logits) : oc_tensor_hold(logits);
    if (train->fused_loss) {
        oc_fused_loss(train, in);
        train->lp = oc_save(train, in);
    } else {
        struct oc_tensor *lp = log_softmax(train, in);
        add_loss(train);
        train->lp = oc_save(train, lp);
        oc_let_go(train, &lp);
    }
    oc_let_go(train, &in);
    oc_let_go(train, &logits);
    oc_let_go(train, &n);
    oc_end_autocast(train);
}

/* ---- Backward ---- */

/* From the log-softmax, let go, to the gradient of what it was made of. */
static struct oc_tensor *log_softmax_backward(struct oc_train *train)
{
    const enum oc_dtype type = (enum oc_dtype)train->lp->array.dtype;
    struct oc_tensor *dlp = oc_activation(train, "loss", "grad.log_softmax", type, train->tokens, train->vocab);
    struct oc_op_nll nll = {.n = train->tokens,
                            .labels = train->labels->array,
                            .dlp = dlp->array,
                            .tokens = train->tokens,
                            .width = train->vocab,
                            .scale = loss_factor(train)};
    oc_launch(train, OC_OP_nll_backward, &nll);
    struct oc_tensor *dl = oc_activation(train, "loss", "grad.logits", type, train->tokens, train->vocab);
    struct oc_op_softmax softmax = {
        .n = train->tokens, .y = train->lp->array, .dy = dlp->array, .dx = dl->array, .width = train->vocab};
    oc_launch(train, OC_OP_log_softmax_backward, &softmax);
    oc_let_go(train, &train->lp);
    oc_let_go(train, &dlp);
    return dl;
}

/* [5]: the gradient of the last layer's output. */
static struct oc_tensor *head_backward(struct oc_train *train)
{
    make_workspace(train, OC_PH_BACKWARD, OC_PART_HEAD, "backward");
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_HEAD, -1);
    struct oc_tensor *dl = train->lp;
    if (train->fused_loss)
        train->lp = NULL;
    else
        dl = log_softmax_backward(train);
    if (train->loss_in_fp32) {
        struct oc_tensor *wide = dl;
        dl = oc_cast(train, "loss", "grad.logits_cast", train->e, wide);
        oc_let_go(train, &wide);
    }
    oc_unit_gather_again(train, train->layers);
    struct oc_tensor *dn = oc_linear_backward(train, oc_train_end(train, OC_P_HEAD), &train->head, &dl);
    oc_unit_gathered(train, train->layers);
    return oc_norm_backward(train, oc_train_end(train, OC_P_FINAL_NORM), &train->final_norm, &dn);
}

/* A gradient that rows are added into. */
static struct oc_tensor *zero_gradient(struct oc_train *train, const struct oc_param *param)
{
    struct oc_tensor *dw = oc_gradient(train, param);
    oc_zero(train, dw);
    return dw;
}

/* A tied head's gradient and the look-up's, which is let go, are one to what is kept: the sum is made in the cast that
 * autocast made of the head's, else in a tensor of its own, for the head's is a view. */
static struct oc_tensor *tied_gradient(struct oc_train *train, struct oc_param *word, struct oc_tensor *lookup)
{
    struct oc_tensor *head = word->waiting, *sum = train->amp ? oc_tensor_hold(head) : oc_gradient(train, word);
    oc_blend(train, head, 1.0f, lookup, 1.0f, sum);
    oc_let_go(train, &word->waiting);
    oc_let_go(train, &lookup);
    return sum;
}

/* [6], its end */
static void embedding_backward(struct oc_train *train, struct oc_tensor *d)
{
    struct oc_param *word = oc_train_end(train, OC_P_EMBEDDING), *position = oc_train_end(train, OC_P_POSITION);
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_EMBED, -1);
    if (train->embedding_mask) oc_dropout_backward(train, train->dropout, train->embedding_mask, d, d);
    struct oc_tensor *dw = zero_gradient(train, word), *dp = position ? zero_gradient(train, position) : NULL;
    struct oc_op_embedding args = {.n = train->hidden,
                                   .ids = train->ids->array,
                                   .table = dw->array,
                                   .y = d->array,
                                   .width = train->hidden,
                                   .tokens = train->tokens,
                                   .seq = train->seq};
    oc_launch(train, OC_OP_embedding_backward, &args);
    if (dp) args.positions = dp->array;
    if (dp) oc_launch(train, OC_OP_embedding_positions, &args);
    oc_let_go(train, &d);
    struct oc_tensor **const batch[] = {&train->ids, &train->labels, &train->positions, &train->embedding_mask};
    for (size_t i = 0; i < sizeof batch / sizeof batch[0]; i++) oc_let_go(train, batch[i]);
    if (dp) oc_accumulate(train, position, &dp);
    if (word->waiting) dw = tied_gradient(train, word, dw);
    oc_accumulate(train, word, &dw);
}

void oc_micro_batch(struct oc_train *train)
{
    make_workspace(train, OC_PH_START, OC_PART_NONE, "forward");
    struct oc_tensor *x = embed(train), *n = NULL;
    x = layers_forward(train, x);
    if (oc_train_stopped(train)) return;
    struct oc_tensor *logits = head_forward(train, x, &n);
    loss_forward(train, logits, n);
    if (oc_train_stopped(train)) return;
    if (train->options->drop) oc_books_drop(train->books, train->options->drop);

    struct oc_tensor *d = head_backward(train);
    for (int l = train->layers - 1; l >= 0 && !oc_train_stopped(train); l--) {
        oc_unit_gather_again(train, l);
        d = oc_layer_backward(train, l, d);
        oc_unit_reduce(train, l);
    }
    if (oc_train_stopped(train)) return;
    oc_let_go(train, &train->mask);
    oc_let_go(train, &train->cosine);
    oc_let_go(train, &train->sine);
    embedding_backward(train, d);
    oc_unit_reduce(train, train->layers);
}
