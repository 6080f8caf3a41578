/* A slot of the schedule: the forward or the backward of one micro-batch through one model chunk. */
#include "probes/te.h"

struct oc_te_slot *oc_te_kept(struct oc_train *train, const struct oc_slot *slot)
{
    return &train->te->kept[(int)slot->micro_batch * train->te->n_chunks + slot->chunk];
}

/* ---- The batch ---- */

static struct oc_tensor *batch_tensor(struct oc_train *train, const char *name, enum oc_dtype dtype, uint64_t elements)
{
    return oc_tensor_new(train->books, OC_BUFFERS, "batch", name, dtype, elements);
}

static void make_batch(struct oc_train *train, struct oc_te_slot *kept)
{
    const uint64_t tokens = (uint64_t)train->tokens, seq = (uint64_t)train->plan->c.batch_seq;
    kept->ids = batch_tensor(train, "tokens", OC_INT64, tokens);
    kept->labels = batch_tensor(train, "labels", OC_INT64, tokens);
    kept->loss_mask = batch_tensor(train, "loss_mask", OC_FP32, tokens);
    kept->positions = batch_tensor(train, "position_ids", OC_INT64, tokens);
    if (train->plan->c.megatron_dataloader_mask)
        kept->attention_mask =
            batch_tensor(train, "attention_mask", OC_BOOL, oc_mul(oc_mul((uint64_t)train->samples, seq), seq));
    train->ids = kept->ids, train->labels = kept->labels;
    oc_write_data(train);
    train->ids = train->labels = NULL;
}

static void forget_batch(struct oc_train *train, struct oc_te_slot *kept)
{
    struct oc_tensor **const batch[] = {&kept->ids,       &kept->labels,         &kept->loss_mask,
                                        &kept->positions, &kept->attention_mask, &kept->mask};
    for (size_t i = 0; i < sizeof batch / sizeof batch[0]; i++) oc_let_go(train, batch[i]);
}

/* ---- Embedding ---- */

/* The ids of this rank's shard come first; those of the other ranks' are theirs. */
static struct oc_op_embedding embedding_args(const struct oc_train *train, const struct oc_te_slot *kept)
{
    return (struct oc_op_embedding){
        .ids = kept->ids->array, .width = train->hidden, .tokens = train->te->rows, .seq = train->seq};
}

/* On another chunk than the first: received, and as good as any numbers. */
static struct oc_tensor *chunk_input(struct oc_train *train, const struct oc_te_chunk *chunk, struct oc_te_slot *kept)
{
    oc_train_at(train, OC_PH_FORWARD, OC_PART_EMBED, -1);
    make_batch(train, kept);
    const int64_t rows = train->te->rows;
    const char *block = chunk->embedding ? "embedding" : "pipeline";
    struct oc_tensor *x =
        oc_activation(train, block, chunk->embedding ? "out" : "input", train->r, rows, train->hidden);
    if (!chunk->embedding) {
        struct oc_op_init args = {
            .n = (int64_t)x->elements, .x = x->array, .deviation = 1.0f, .seed = oc_seed(train, -1, OC_SITE_EMBEDDING)};
        oc_launch(train, OC_OP_init, &args);
        return x;
    }
    const struct oc_param *position = oc_train_end(train, OC_P_POSITION);
    struct oc_op_embedding args = embedding_args(train, kept);
    args.n = rows, args.y = x->array;
    args.table = oc_train_end(train, OC_P_EMBEDDING)->weight->array;
    if (position) args.positions = position->weight->array;
    oc_launch(train, OC_OP_embedding, &args);
    if (train->dropout > 0) kept->mask = oc_drop_embedding(train, x);
    return x;
}

static void embedding_backward(struct oc_train *train, struct oc_te_slot *kept, const struct oc_tensor *d)
{
    const struct oc_param *position = oc_train_end(train, OC_P_POSITION);
    if (kept->mask) oc_dropout_backward(train, train->dropout, kept->mask, d, d);
    struct oc_op_embedding args = embedding_args(train, kept);
    args.n = train->hidden, args.y = d->array;
    args.table = oc_train_end(train, OC_P_EMBEDDING)->grad->array;
    oc_launch(train, OC_OP_embedding_backward, &args);
    if (!position) return;
    args.positions = position->grad->array;
    oc_launch(train, OC_OP_embedding_positions, &args);
}

/* ---- Head and loss ---- */

/* Under sequence parallelism the head's input is gathered in a buffer that is there for good. */
static struct oc_tensor *head_input(struct oc_train *train, struct oc_tensor *n)
{
    struct oc_tensor *whole = train->te->global_buffer;
    if (!whole) return n;
    struct oc_op_gather args = {
        .n = (int64_t)whole->elements, .x = n->array, .y = whole->array, .count = (int64_t)n->elements};
    oc_launch(train, OC_OP_gather, &args);
    return whole;
}

/* Lets go of x. */
static void head_forward(struct oc_train *train, struct oc_te_slot *kept, struct oc_tensor *x)
{
    oc_train_at(train, OC_PH_FORWARD, OC_PART_HEAD, -1);
    struct oc_tensor *n = oc_te_norm(train, oc_train_end(train, OC_P_FINAL_NORM), x, &kept->final_norm);
    oc_let_go(train, &x);
    kept->logits = oc_activation(train, "head", "logits", train->e, train->tokens, train->vocab);
    oc_te_product(train, head_input(train, n), oc_train_end(train, OC_P_HEAD), 0, kept->logits, train->vocab, true);
    oc_let_go(train, &n);
}

/* The logits, or an fp32 copy of them, become their own gradient. */
static void loss(struct oc_train *train, struct oc_te_slot *kept)
{
    oc_train_at(train, OC_PH_LOSS, OC_PART_HEAD, -1);
    const bool half = train->e != OC_FP32, copies = half && !train->te->te_loss;
    struct oc_tensor *in = copies ? oc_cast(train, "loss", "softmax", OC_FP32, kept->logits) : kept->logits;
    struct oc_tensor *again =
        train->fused_loss ? oc_activation(train, "loss", "fused_copy", OC_FP32, train->tokens, train->vocab) : NULL;
    struct oc_tensor *working = oc_activation(train, "loss", "working", train->r, train->tokens, train->hidden);
    train->labels = kept->labels;
    oc_fused_loss(train, in);
    train->labels = NULL;
    oc_let_go(train, &again);
    oc_let_go(train, &working);
    if (copies) oc_let_go(train, &kept->logits);
    kept->logits = in;
}

/* The gradient of the last layer's output. */
static struct oc_tensor *head_backward(struct oc_train *train, struct oc_te_slot *kept)
{
    const struct oc_param *head = oc_train_end(train, OC_P_HEAD);
    struct oc_tensor *dl = kept->logits;
    kept->logits = NULL;
    if (dl->array.dtype != (int)train->e) {
        struct oc_tensor *wide = dl;
        dl = oc_cast(train, "loss", "grad.logits", train->e, wide);
        oc_let_go(train, &wide);
    }
    struct oc_tensor *dn = oc_activation(train, "head", "grad.input", train->r, train->tokens, train->hidden);
    oc_te_input_gradient(train, dl, head, dn);
    oc_te_weight_gradient(train, dl, head_input(train, kept->final_norm.n), head);
    oc_let_go(train, &dl);
    struct oc_tensor *d = oc_te_norm_backward(train, oc_train_end(train, OC_P_FINAL_NORM), &kept->final_norm, dn);
    oc_let_go(train, &dn);
    oc_te_norm_forget(train, &kept->final_norm);
    return d;
}

/* On another chunk than the last: received. Small numbers, scaled as a loss would be. */
static struct oc_tensor *chunk_gradient(struct oc_train *train)
{
    struct oc_tensor *d = oc_activation(train, "pipeline", "gradient", train->r, train->te->rows, train->hidden);
    struct oc_op_init args = {.n = (int64_t)d->elements,
                              .x = d->array,
                              .deviation = train->loss_scale * 1e-4f,
                              .seed = oc_seed(train, -2, OC_SITE_EMBEDDING)};
    oc_launch(train, OC_OP_init, &args);
    return d;
}

/* ---- The slots ---- */

void oc_te_forward_slot(struct oc_train *train, const struct oc_slot *slot)
{
    const struct oc_te_chunk *chunk = &train->te->chunks[slot->chunk];
    struct oc_te_slot *kept = oc_te_kept(train, slot);
    train->micro_batch = slot->micro_batch;
    struct oc_tensor *x = chunk_input(train, chunk, kept);
    for (int l = 0; l < chunk->layers && !oc_train_stopped(train); l++) {
        struct oc_te_saved *saved = &kept->layers[l];
        oc_train_at(train, OC_PH_FORWARD, OC_PART_LAYER, (int)(chunk->first_in_model + l));
        const bool checkpointed = l < train->te->checkpointed;
        train->grad_mode = !checkpointed;
        if (checkpointed) saved->checkpoint = oc_tensor_save(train->books, x);
        struct oc_tensor *y = oc_te_layer_forward(train, chunk->first + l, saved, x);
        oc_let_go(train, &x);
        x = y;
    }
    train->grad_mode = true;
    if (oc_train_stopped(train)) return;
    if (chunk->head) {
        head_forward(train, kept, x);
        loss(train, kept);
    } else {
        oc_train_at(train, OC_PH_FORWARD, OC_PART_HEAD, -1);
        oc_let_go(train, &x); /* sent */
    }
    if (train->options->drop) oc_books_drop(train->books, train->options->drop);
}

void oc_te_backward_slot(struct oc_train *train, const struct oc_slot *slot)
{
    const struct oc_te_chunk *chunk = &train->te->chunks[slot->chunk];
    struct oc_te_slot *kept = oc_te_kept(train, slot);
    train->micro_batch = slot->micro_batch;
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_HEAD, -1);
    if (train->te->n_chunks == 1) oc_te_first_backward(train);
    struct oc_tensor *d = chunk->head ? head_backward(train, kept) : chunk_gradient(train);
    for (int l = chunk->layers - 1; l >= 0 && !oc_train_stopped(train); l--)
        d = oc_te_layer_backward(train, chunk->first + l, chunk->first_in_model + l, &kept->layers[l], d);
    if (oc_train_stopped(train)) return;
    oc_train_at(train, OC_PH_BACKWARD, OC_PART_EMBED, -1);
    if (chunk->embedding) embedding_backward(train, kept, d);
    oc_let_go(train, &d);
    forget_batch(train, kept);
}
