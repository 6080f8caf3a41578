/* Pipeline stages written out as text: 'Et*3|(tt|)*6tL'. E is the embedding, t a transformer layer, m a layer of
 * multi-token prediction, L the loss; | ends a stage, and *n repeats the letter or the group before it.
 *
 * Source: Megatron-LM core/transformer/pipeline_parallel_layer_layout.py. */
#include "model/base/layout.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_REPEATS = 16384, MOST_LETTERS = 65536 };

struct reader {
    struct oc_layout *layout;
    int letters; /* taken so far, repeats included */
    const char *error;
};

static void take(struct reader *reader, char letter)
{
    struct oc_layout *layout = reader->layout;
    if (++reader->letters > MOST_LETTERS) reader->error = "it has more than 65536 letters once written out";
    if (letter == '|') {
        if (++layout->stages == OC_MAX_LAYOUT_STAGES) reader->error = "it has more than 256 stages";
        return;
    }
    const int stage = layout->stages;
    if (letter == 't') layout->layers[stage]++;
    if (letter == 'E' && (layout->embeddings++ || stage)) reader->error = "the one embedding E opens the first stage";
    if (letter == 'L') {
        if (layout->losses++) reader->error = "it has more than one loss L";
        layout->loss_stage = stage;
    }
}

/* The n of "*n" at `*at`, which is passed over; 1 where there is none. */
static long repeats(struct reader *reader, const char **at)
{
    if (**at != '*') return 1;
    char *end;
    const long n = strtol(*at + 1, &end, 10);
    if (end == *at + 1 || n < 1 || n > MOST_REPEATS) reader->error = "a * wants a number from 1 to 16384 behind it";
    *at = end;
    return n;
}

static void read_letters(struct reader *reader, const char *at, const char *end)
{
    while (at < end && !reader->error) {
        const char letter = *at++;
        if (letter == ',' || letter == ' ') continue;
        if (!strchr("Etm|L", letter)) {
            reader->error = "its letters are E (embedding), t (layer), m (multi-token prediction), L (loss) and |";
            return;
        }
        for (long n = repeats(reader, &at); n > 0 && !reader->error; n--) take(reader, letter);
    }
}

const char *oc_layout_read(const char *text, struct oc_layout *layout)
{
    struct reader reader = {.layout = layout};
    memset(layout, 0, sizeof *layout);
    for (const char *at = text; *at && !reader.error;) {
        const size_t plain = strcspn(at, "(");
        read_letters(&reader, at, at + plain);
        at += plain;
        if (!*at) break;
        const char *close = strchr(at, ')');
        if (!close) return "a ( is never closed";
        const char *after = close + 1;
        for (long n = repeats(&reader, &after); n > 0 && !reader.error; n--) read_letters(&reader, at + 1, close);
        at = after;
    }
    if (reader.error) return reader.error;
    layout->stages++; /* what no | ends */
    if (layout->embeddings != 1 || layout->losses != 1 || layout->loss_stage != layout->stages - 1)
        return "it wants one embedding E in the first stage and one loss L in the last";
    return NULL;
}
