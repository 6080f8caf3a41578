/* Real memory against the books: what the system says was resident of a run (VmHWM, less what it was before) is the
 * peak that the probe's allocator counted, within 5 %. Each run is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#define LLAMA                                                                                                          \
    "--set framework=pytorch --set model.layers=2 --set model.hidden=256 --set model.heads=4 --set model.ffn=704 "     \
    "--set model.vocab=4000 --set batch.seq=128 --set batch.micro=2 --set gpu=none "
#define MEGATRON                                                                                                       \
    "--set framework=megatron --set model.layers=4 --set model.hidden=256 --set model.heads=4 --set model.ffn=704 "    \
    "--set model.vocab=4000 --set batch.seq=128 --set batch.micro=2 --set gpu=none "

static const struct {
    const char *title, *options;
} runs[] = {
    {"the default", ""},
    {"fp32, AdamW", "--full " LLAMA "--set precision=fp32 --set optimizer=adamw"},
    {"autocast bf16, eager attention",
     "--full " LLAMA "--set precision=amp-bf16 --set optimizer=sgd --set kernels.attention=eager"},
    {"autocast fp16, full recompute",
     "--full " LLAMA "--set precision=amp-fp16 --set optimizer=sgd --set recompute=full"},
    {"bf16 with master copies, SGD",
     "--full " LLAMA "--set precision=bf16 --set precision.master=fp32 --set optimizer=sgd --set recompute=full"},
    {"a rank of FSDP2", "--full " LLAMA "--set framework=fsdp2 --set precision=amp-bf16 --set parallel.world=4"},
    {"a rank of Megatron", "--full " MEGATRON "--set precision=bf16 --set kernels.loss=te-fused"},
    {"one slice and share of it",
     "--full " MEGATRON "--set precision=bf16 --set parallel.tp=2 --set parallel.sp=true --set parallel.pp=2 "
     "--set parallel.world=16 --set parallel.zero=1 --set kernels.attention=unfused"},
};

static char text[1 << 18];

/* What the probe says of a run. */
static void run(const char *options)
{
    char command[2048];
    snprintf(command, sizeof command, "'%s' probe --device host --steps 2 --json %s", OOMCAST_BIN, options);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    text[fread(text, 1, sizeof text - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The largest "allocated" of all moments of both iterations, the first one's making of weights included. */
static double largest_allocated(void)
{
    static const char key[] = "\"allocated\":";
    double most = 0;
    for (const char *at = strstr(text, key); at; at = strstr(at + 1, key))
        most = fmax(most, strtod(at + sizeof key - 1, NULL));
    return most;
}

static void what_is_resident_is_what_is_allocated(void **state)
{
    (void)state;
    static const char key[] = "\"resident\":";
    int far = 0;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* its shadow is resident too */
#endif
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        run(runs[i].options);
        const char *resident = strstr(text, key);
        if (!resident) skip(); /* a system that does not say */
        const double allocated = largest_allocated(), got = strtod(resident + sizeof key - 1, NULL);
        const double off = 100 * (got / allocated - 1);
        print_message("%-32s%8.2f MiB allocated, %+.1f %% resident\n", runs[i].title, allocated / (1 << 20), off);
        if (!(fabs(off) <= 5) || got < allocated - (512 << 10)) far++; /* the system counts pages roughly */
    }
    assert_int_equal(far, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_resident_is_what_is_allocated)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
