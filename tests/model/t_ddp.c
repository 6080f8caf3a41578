/* Gradients under DDP and of tied heads, as traced with PyTorch 2.4.1 on two gloo ranks and on one
 * (docs/step-pytorch.md): torch.profiler's memory events of an embedding, two linear layers and an output layer. */
#include "help_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct oc_ledger ledger;

#define SMALL                                                                                                          \
    "framework=pytorch", "model.layers=2", "model.hidden=256", "model.heads=4", "model.ffn=512", "model.vocab=1024",   \
        "batch.seq=16", "gpu=none", "precision=fp32", "optimizer=sgd"
#define VIEWS SMALL, "parallel.world=2", "parallel.bucket_view=true"

static uint64_t gradients(const struct oc_rank *rank, enum oc_moment moment)
{
    return rank->moments[OC_STEADY][moment].classes[OC_GRADIENTS];
}

/* Entries of the embedding's size in fp32 that are gradients, in these micro-batches. */
static int of_embedding(enum oc_when when)
{
    int count = 0;
    for (int i = 0; i < ledger.n_entries; i++) {
        const struct oc_entry *entry = &ledger.entries[i];
        count += entry->class == OC_GRADIENTS && entry->birth.phase == OC_PH_BACKWARD && entry->when == when &&
                 entry->bytes == 1024 * 256 * 4;
    }
    return count;
}

static void views_are_made_of_sums(void **state)
{
    (void)state;
    const struct oc_rank one = help_rank_of(HELP_WORDS(VIEWS), 0, &ledger);
    const uint64_t whole = 4 * one.params;
    assert_int_equal(gradients(&one, OC_M_FORWARD), whole); /* the buckets */
    /* Under no_sync zero_grad has left no views: the sums are beside the buckets until the last micro-batch. */
    const struct oc_rank waits = help_rank_of(HELP_WORDS(VIEWS, "batch.accum=3"), 0, &ledger);
    assert_int_equal(gradients(&waits, OC_M_LOSS), 2 * whole);
    assert_int_equal(gradients(&waits, OC_M_AFTER_STEP), whole);
    assert_int_equal(waits.moments[OC_STEADY][OC_M_BACKWARD].place.micro_batch, 1);
    /* Not where hooks run in every micro-batch, nor where gradients stay views because they are set to zero. */
    const struct oc_rank synced =
        help_rank_of(HELP_WORDS(VIEWS, "batch.accum=3", "parallel.no_sync=false"), 0, &ledger);
    assert_int_equal(gradients(&synced, OC_M_LOSS), whole);
    const struct oc_rank zeroed =
        help_rank_of(HELP_WORDS(VIEWS, "batch.accum=3", "run.zero_grad_to_none=false"), 0, &ledger);
    assert_int_equal(gradients(&zeroed, OC_M_LOSS), whole);
}

static void a_tied_head_waits_for_the_look_up(void **state)
{
    (void)state;
    /* fp32: the head's and the look-up's, and their sum, which is the gradient, or is added to it. */
    help_rank_of(HELP_WORDS(SMALL, "model.tied=true", "batch.accum=2"), 0, &ledger);
    assert_int_equal(of_embedding(OC_ALWAYS), 3);
    assert_int_equal(of_embedding(OC_LATER_MICRO_BATCHES), 1);
    /* autocast: the look-up's is added to the cast of the head's, which then is the gradient. */
    help_rank_of(HELP_WORDS(SMALL, "model.tied=true", "batch.accum=2", "precision=amp-bf16"), 0, &ledger);
    assert_int_equal(of_embedding(OC_ALWAYS), 2);
    assert_int_equal(of_embedding(OC_LATER_MICRO_BATCHES), 1);
    /* ... of a view of the buckets, which were there before: none is kept. */
    help_rank_of(HELP_WORDS(VIEWS, "model.tied=true", "precision=amp-bf16"), 0, &ledger);
    assert_int_equal(of_embedding(OC_ALWAYS), 2);
    assert_int_equal(of_embedding(OC_LATER_MICRO_BATCHES), 0);
    help_rank_of(HELP_WORDS(VIEWS, "model.tied=true", "precision=amp-bf16", "batch.accum=3"), 0, &ledger);
    assert_int_equal(of_embedding(OC_ALWAYS), 1);
    assert_int_equal(of_embedding(OC_FIRST_TO_LAST), 1);
    assert_int_equal(of_embedding(OC_LATER_MICRO_BATCHES), 1);
}

/* Adding up the products of a loss in pieces has made the head's gradient a tensor that nothing else refers to. */
static void pieces_are_summed_in_place(void **state)
{
    (void)state;
    help_rank_of(HELP_WORDS(SMALL, "model.tied=true", "kernels.transformer=torchtune", "kernels.loss=chunked"), 0,
                 &ledger);
    assert_int_equal(of_embedding(OC_ALWAYS), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_are_made_of_sums),
                                       cmocka_unit_test(a_tied_head_waits_for_the_look_up),
                                       cmocka_unit_test(pieces_are_summed_in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
