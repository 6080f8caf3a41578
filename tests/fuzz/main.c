/* Runs a fuzz target without a fuzzer: mutations of the files on the command line, always the same ones, for a number
 * of rounds or at most some seconds. `main ROUNDS SECONDS FILE...` */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SEEDS = 32, MAX_SIZE = 64 << 10 };

static uint64_t random_state = 88172645463325252u;

static uint32_t below(uint32_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % (limit ? limit : 1);
}

/* What scripts and sessions are made of. */
static const char *const pieces[] = {"\"",
                                     "'",
                                     "`",
                                     "$(",
                                     "$((",
                                     "${",
                                     "}",
                                     ")",
                                     "((",
                                     "[[ ",
                                     " ]]",
                                     "[ ",
                                     " ]",
                                     "\\\n",
                                     "\\  \n",
                                     "\n",
                                     ";",
                                     ";;",
                                     "&&",
                                     "||",
                                     "|",
                                     "<<EOF\n",
                                     "\nEOF\n",
                                     "if true; then\n",
                                     "elif [ -z $X ]; then\n",
                                     "else\n",
                                     "\nfi\n",
                                     "case $X in\n",
                                     "*) ",
                                     "esac\n",
                                     "for x in a b; do\n",
                                     "while true; do\n",
                                     "\ndone\n",
                                     "f() {\n",
                                     "}\n",
                                     "A=(",
                                     "A+=(",
                                     "X=\"$X $X\"\n",
                                     "${A[@]}",
                                     "${X:-y}",
                                     "${X%%*}",
                                     "${X//a/b}",
                                     "${#A[@]}",
                                     "${A[-1]}",
                                     "$1",
                                     "$@",
                                     " --num-layers 4",
                                     " --hidden-size 64",
                                     " --seq-length",
                                     " --tensor-model-parallel-size=",
                                     " --recompute-modules [a,b] mlp",
                                     " --fp16",
                                     " --num-experts 8",
                                     "torchrun --nproc_per_node ",
                                     "pretrain_gpt.py ",
                                     "#SBATCH --nodes=4 --gres=gpu:8\n",
                                     "export CUBLAS_WORKSPACE_CONFIG=:4096:8\n",
                                     "{\"oomcast\":1,\"set\":{",
                                     "\"precision\":\"bf16\"",
                                     "\\u0000",
                                     "9223372036854775807",
                                     "-1",
                                     "1e999",
                                     "\xEF\xBB\xBF",
                                     "\xC2\xA0",
                                     "\xFF",
                                     "\r\n",
                                     "# "};

struct text {
    uint8_t bytes[MAX_SIZE];
    size_t size;
};

static void insert(struct text *text, const void *bytes, size_t size)
{
    if (text->size + size > MAX_SIZE) return;
    size_t at = below((uint32_t)text->size + 1);
    memmove(text->bytes + at + size, text->bytes + at, text->size - at);
    memcpy(text->bytes + at, bytes, size);
    text->size += size;
}

static void mutate(struct text *text, const struct text *seeds, int n_seeds)
{
    size_t at = below((uint32_t)text->size), size = below((uint32_t)(text->size - at) + 1);
    switch (below(6)) {
    case 0:
        if (text->size) text->bytes[at] = (uint8_t)below(256);
        break;
    case 1: /* leave something out */
        if (size > 200 && below(4)) size %= 200;
        memmove(text->bytes + at, text->bytes + at + size, text->size - at - size);
        text->size -= size;
        break;
    case 2: { /* a part of another seed */
        const struct text *other = &seeds[below((uint32_t)n_seeds)];
        size_t from = below((uint32_t)other->size);
        insert(text, other->bytes + from, below((uint32_t)(other->size - from) + 1) % 400);
        break;
    }
    default: {
        const char *piece = pieces[below(sizeof pieces / sizeof *pieces)];
        for (uint32_t i = below(8) ? 1 : below(200); i > 0; i--) insert(text, piece, strlen(piece));
        break;
    }
    }
}

static int read_seeds(char **paths, int n, struct text *seeds)
{
    int count = 0;
    for (int i = 0; i < n && count < MAX_SEEDS; i++) {
        FILE *file = fopen(paths[i], "rb");
        if (!file) {
            fprintf(stderr, "cannot read %s\n", paths[i]);
            return -1;
        }
        seeds[count].size = fread(seeds[count].bytes, 1, MAX_SIZE, file);
        LLVMFuzzerTestOneInput(seeds[count].bytes, seeds[count].size);
        count++;
        fclose(file);
    }
    return count;
}

int main(int argc, char **argv)
{
    if (argc < 4) return 2;
    struct text *seeds = calloc(MAX_SEEDS + 1, sizeof *seeds), *text = seeds + MAX_SEEDS;
    int n = seeds ? read_seeds(argv + 3, argc - 3, seeds) : -1;
    long rounds = strtol(argv[1], NULL, 10);
    double seconds = strtod(argv[2], NULL);
    clock_t start = clock();
    long round = 0;
    for (; n > 0 && round < rounds && (double)(clock() - start) / CLOCKS_PER_SEC < seconds; round++) {
        *text = seeds[below((uint32_t)n)];
        for (uint32_t i = below(12) + 1; i > 0; i--) mutate(text, seeds, n);
        LLVMFuzzerTestOneInput(text->bytes, text->size);
    }
    printf("%ld inputs\n", round);
    free(seeds);
    return n > 0 && round > 0 ? 0 : 1;
}
