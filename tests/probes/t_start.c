/* The program on a machine as it is: it needs no CUDA library to start, whatever it was built with, and says in one
 * sentence what keeps it from the GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/probes/help_process.h"

static char text[65536];

static int run(const char *command)
{
    return help_run(command, text, sizeof text);
}

static void no_library_of_cuda_is_needed(void **state)
{
    (void)state;
    static const char *const names[] = {"cuda", "nvidia", "nvrtc", "cublas", "libstdc++"};
    if (run("ldd '" OOMCAST_BIN "' 2>&1") != 0 || !strstr(text, "libc.so")) skip();
    if (strstr(text, "libubsan") || strstr(text, "libasan")) skip(); /* which bring the C++ library */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strstr(text, names[i])) fail_msg("%s is needed:\n%s", names[i], text);
}

/* Not in the tests' environment, where a library may stand in for the driver's. */
static void the_reason_is_one_sentence(void **state)
{
    (void)state;
    const int status = run("env -u LD_LIBRARY_PATH '" OOMCAST_BIN "' probe --device cuda 2>&1");
    if (status == 0) skip(); /* there is a GPU */
    assert_int_equal(status, 3);
    assert_non_null(strstr(text, "The probe failed: "));
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    assert_int_equal(end[-1], '.');
    assert_int_equal(end[1], '\0');
}

static void without_a_gpu_the_host_is_measured_and_said(void **state)
{
    (void)state;
    assert_int_equal(run("CUDA_VISIBLE_DEVICES= '" OOMCAST_BIN
                         "' probe --device auto --set model.layers=1 --set model.hidden=64 "
                         "--set model.heads=2 --set model.vocab=256 --set batch.seq=16 2>&1"),
                     0);
    assert_non_null(strstr(text, "Measured on host"));
    assert_non_null(strstr(text, "No GPU was used: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_library_of_cuda_is_needed),
        cmocka_unit_test(the_reason_is_one_sentence),
        cmocka_unit_test(without_a_gpu_the_host_is_measured_and_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
