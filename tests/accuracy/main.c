/* How far the model is from memory measured in real training runs: tests/corpus, answered in this process.
 *
 *     oomcast_accuracy [--only SUBSTRING] [--worst N] [--rows] [--pairs] [--page] [--answered] [FOLDER]
 *
 * Exit status: 0 when every promise is kept (with --answered: when every case has an answer, however wrong), 1 when one
 * falls short, 2 on bad usage or a malformed corpus. */
#include <stdlib.h>
#include <string.h>

#include "print.h"

struct options {
    const char *only, *folder;
    int worst;
    bool rows, pairs, page, answered;
};

static bool read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--only") && i + 1 < argc)
            o->only = argv[++i];
        else if (!strcmp(argv[i], "--worst") && i + 1 < argc)
            o->worst = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--rows"))
            o->rows = true;
        else if (!strcmp(argv[i], "--pairs"))
            o->pairs = true;
        else if (!strcmp(argv[i], "--page"))
            o->page = true;
        else if (!strcmp(argv[i], "--answered"))
            o->answered = true;
        else if (argv[i][0] != '-')
            o->folder = argv[i];
        else
            return false;
    }
    return true;
}

/* Prints what was asked for. Returns whether every promise is kept. */
static bool print(const struct score *score, const struct options *o)
{
    if (o->page) {
        char notes[1024];
        snprintf(notes, sizeof notes, "%s/notes", o->folder);
        print_page(score, notes);
        return true;
    }
    if (o->rows) print_rows(score);
    if (o->pairs) print_wrong_pairs(score);
    print_summary(score, o->worst);
    return print_contract(score);
}

static bool all_answered(const struct score *score)
{
    for (int i = 0; i < score->n_rows; i++)
        if (!score->rows[i].answered) return false;
    return score->n_rows > 0;
}

int main(int argc, char **argv)
{
    struct options o = {.only = "", .folder = OOMCAST_SOURCE "/tests/corpus", .worst = 12};
    if (!read_options(argc, argv, &o)) {
        fputs("usage: oomcast_accuracy [--only SUBSTRING] [--worst N] [--rows] [--pairs] [--page] [--answered] "
              "[FOLDER]\n",
              stderr);
        return 2;
    }
    struct corpus corpus;
    struct score score = {0};
    char why[512] = "out of memory";
    const bool good = corpus_read(&corpus, o.folder, why, sizeof why) && score_run(&corpus, o.only, &score);
    bool kept = false;
    if (good)
        kept = print(&score, &o);
    else
        fprintf(stderr, "oomcast_accuracy: %s\n", why);
    if (good && o.answered) kept = all_answered(&score);
    score_free(&score);
    corpus_free(&corpus);
    return !good ? 2 : kept ? 0 : 1;
}
