/* The corpus reader and the statistics, on a corpus whose figures can be checked with a pencil: the paper's 16 bytes a
 * parameter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "score.h"

#define MIB 1048576.0

/* A folder with one file, removed by leave(). */
struct folder {
    char path[64], file[96];
};

static void enter(struct folder *folder, const char *text)
{
    snprintf(folder->path, sizeof folder->path, "/tmp/oomcast-corpus-XXXXXX");
    assert_non_null(mkdtemp(folder->path));
    snprintf(folder->file, sizeof folder->file, "%s/cases.txt", folder->path);
    FILE *file = fopen(folder->file, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void leave(const struct folder *folder)
{
    unlink(folder->file);
    rmdir(folder->path);
}

/* Reads and answers a corpus; the caller frees both. */
static void answer(const char *text, struct corpus *corpus, struct score *score)
{
    struct folder folder;
    char why[512] = "";
    enter(&folder, text);
    const bool good = corpus_read(corpus, folder.path, why, sizeof why);
    leave(&folder);
    if (!good) fail_msg("%s", why);
    assert_true(score_run(corpus, "", score));
}

#define PAPER                                                                                                          \
    "# what all cases share\n"                                                                                         \
    "let paper\n"                                                                                                      \
    "  source somebody/something@1234 page 5\n"                                                                        \
    "  tier exact\n"                                                                                                   \
    "  set framework=zero-paper precision=fp16\n"                                                                      \
    "      model.params=1Mi\n\n"

static const char three[] = PAPER "case right\n  like paper\n  measured rank=worst peak_allocated=16777216\n\n"
                                  "case high\n  like paper\n  measured rank=last peak_allocated=16000000\n\n"
                                  "case low\n  like paper\n  measured rank=stage:0 peak_allocated=20971520\n";

static void errors_are_relative_to_what_was_measured(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    answer(three, &corpus, &score);
    assert_int_equal(score.n_rows, 3);
    assert_true(score.rows[0].error == 0);
    assert_true(score.rows[1].error == 777216.0 / 16000000);
    assert_true(score.rows[2].error == -0.2);
    const struct row *rows[] = {&score.rows[0], &score.rows[1], &score.rows[2]};
    const struct spread s = score_spread(rows, 3);
    assert_int_equal(s.failed, 0);
    assert_true(s.median == score.rows[1].error);
    assert_true(s.p90 == 0.2 && s.most == 0.2);
    assert_true(s.bias == (score.rows[1].error - 0.2) / 3);
    assert_true(s.within[0] == 1 / 3.0 && s.within[1] == 1 / 3.0 && s.within[2] == 2 / 3.0 && s.within[3] == 2 / 3.0);
    score_free(&score);
    corpus_free(&corpus);
}

static void an_unanswered_case_counts_as_far_off(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    answer(PAPER "case a\n  like paper\n  set model.params=nonsense\n  measured rank=worst idle_allocated=16777216\n"
                 "case b\n  like paper\n  measured rank=stage:7 idle_allocated=16777216\n",
           &corpus, &score);
    assert_int_equal(score.n_rows, 2);
    for (int i = 0; i < 2; i++) {
        assert_false(score.rows[i].answered);
        assert_true(score.rows[i].error == UNANSWERED);
        assert_true(score.rows[i].why[0]);
    }
    const struct row *rows[] = {&score.rows[0], &score.rows[1]};
    assert_int_equal(score_spread(rows, 2).failed, 2);
    assert_true(score_spread(rows, 2).p90 == UNANSWERED);
    score_free(&score);
    corpus_free(&corpus);
}

static void what_a_case_says_itself_wins(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    answer(PAPER "case twice\n  like paper\n  tier rounded\n  set model.params=2Mi\n"
                 "  measured rank=worst gpu=a100-80g stack=\"torch 2.4\" peak_allocated=1\n      idle_allocated=2\n",
           &corpus, &score);
    assert_int_equal(score.n_rows, 2);
    assert_int_equal(score.rows[0].predicted, 2 * 16 * MIB);
    assert_string_equal(score.rows[0].c->tier, "rounded");
    assert_string_equal(score.rows[0].run->gpu, "a100-80g");
    assert_string_equal(score.rows[0].run->stack, "torch 2.4");
    assert_int_equal(score.rows[1].quantity, Q_IDLE);
    assert_string_equal(score_promise(score_promise_of(&score.rows[1]))->name, "rounded, anything");
    score_free(&score);
    corpus_free(&corpus);
}

static void scripts_go_through_the_importer(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    answer("case script\n  source s\n  tier exact\n  world 8\n  env CUDA_DEVICE_MAX_CONNECTIONS=1\n"
           "  launch torchrun --nproc-per-node 8 pretrain_gpt.py\n"
           "  flags --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 32\n"
           "      --max-position-embeddings 32 --micro-batch-size 1 --global-batch-size 8 --bf16\n"
           "  set model.vocab=128\n  measured rank=last gpu=h100-80g peak_allocated=1\n",
           &corpus, &score);
    if (!score.rows[0].answered) fail_msg("%s", score.rows[0].why);
    assert_true(score.rows[0].predicted > MIB);
    score_free(&score);
    corpus_free(&corpus);
}

static void pairs_must_come_in_the_order_measured(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    /* b and d are within 2 %; c is measured below b and predicted above it; e is of no group. */
    answer(PAPER "case a\n  like paper\n  pair g\n  measured rank=worst peak_allocated=1000\n"
                 "case b\n  like paper\n  pair g\n  set model.params=2Mi\n  measured rank=worst peak_allocated=2000\n"
                 "case c\n  like paper\n  pair g\n  set model.params=4Mi\n  measured rank=worst peak_allocated=1500\n"
                 "case d\n  like paper\n  pair g\n  set model.params=8Mi\n  measured rank=worst peak_allocated=2010\n"
                 "case e\n  like paper\n  measured rank=worst peak_allocated=5000\n",
           &corpus, &score);
    const struct pairs pairs = score_pairs(&score);
    assert_int_equal(pairs.total, 5); /* ab ac ad bc cd */
    assert_int_equal(pairs.right, 4); /* all but bc */
    score_free(&score);
    corpus_free(&corpus);
}

static void groups_and_the_worst_are_found(void **state)
{
    (void)state;
    struct corpus corpus;
    struct score score;
    answer(three, &corpus, &score);
    struct group *groups;
    const int n = score_groups(&score, &groups);
    assert_int_equal(n, 1);
    assert_int_equal(groups[0].n, 3);
    assert_string_equal(groups[0].name, "exact   somebody/something                 peak_allocated");
    score_free_groups(groups, n);
    const struct row **worst;
    assert_int_equal(score_sorted(&score, "exact", &worst), 3);
    assert_string_equal(worst[0]->c->id, "low");
    free(worst);
    assert_int_equal(score_sorted(&score, "rounded", &worst), 0);
    free(worst);
    score_free(&score);
    corpus_free(&corpus);
}

static void a_malformed_corpus_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"  tier exact\n", "before the first block"},
        {"case a\n  source s\n  tier exact\n", "lacks source, tier or measured"},
        {"case a\n  nonsense b\n", "unknown kind"},
        {"case a\n  like b\n", "no such block"},
        {"case a\n  source s\n  tier t\n  measured peak_allocated=1\n", "no rank"},
        {"case a\n  source s\n  tier t\n  measured rank\n", "without ="},
        {"something a\n", "neither `case NAME`"},
        {"case\n", "neither `case NAME`"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct folder folder;
        struct corpus corpus;
        char why[512] = "";
        enter(&folder, bad[i].text);
        assert_false(corpus_read(&corpus, folder.path, why, sizeof why));
        leave(&folder);
        corpus_free(&corpus);
        if (!strstr(why, bad[i].why)) fail_msg("'%s' lacks '%s'", why, bad[i].why);
    }
    struct corpus corpus;
    char why[512] = "";
    assert_false(corpus_read(&corpus, "/nowhere", why, sizeof why));
    corpus_free(&corpus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_relative_to_what_was_measured),
        cmocka_unit_test(an_unanswered_case_counts_as_far_off),
        cmocka_unit_test(what_a_case_says_itself_wins),
        cmocka_unit_test(scripts_go_through_the_importer),
        cmocka_unit_test(pairs_must_come_in_the_order_measured),
        cmocka_unit_test(groups_and_the_worst_are_found),
        cmocka_unit_test(a_malformed_corpus_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
