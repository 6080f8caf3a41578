/* The whole program in a child, over a CUDA runtime that pretends: every way in which a probe can go wrong is a state
 * of its own with one sentence, what it said before is kept, and the parent goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "oomcast/probe.h"
#include "tests/probes/help_process.h"

static struct oc_child *start(const char *settings, const char *steps)
{
    /* A busy machine may take seconds to start a run; only one that is to hang is waited for so briefly. */
    const char *quiet = strstr(settings, "hang=400") ? "2" : "60";
    char *const arguments[] = {(char *)"probe",
                               (char *)"--json",
                               (char *)"--full",
                               (char *)"--device",
                               (char *)"cuda",
                               (char *)"--quiet",
                               (char *)quiet,
                               (char *)"--steps",
                               (char *)steps,
                               (char *)"--set",
                               (char *)"framework=pytorch",
                               (char *)"--set",
                               (char *)"model.layers=2",
                               (char *)"--set",
                               (char *)"model.hidden=128",
                               (char *)"--set",
                               (char *)"model.heads=4",
                               (char *)"--set",
                               (char *)"model.vocab=4000",
                               (char *)"--set",
                               (char *)"batch.seq=128",
                               (char *)"--set",
                               (char *)"gpu=none",
                               NULL};
    struct oc_error error;
    setenv("FAKE_CUDA", settings, 1);
    struct oc_child *child = oc_child_start(OOMCAST_FAKE, arguments, &error);
    assert_non_null(child);
    return child;
}

static void every_fault_has_a_state_and_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *settings;
        enum oc_child_state state;
        const char *said;
        bool began; /* progress lines came before */
    } rows[] = {
        {"", OC_CHILD_DONE, "\"Stand-in GPU\"", true},
        {"driver=0", OC_CHILD_FAILED, "there is no NVIDIA driver", false},
        {"driver=11080", OC_CHILD_FAILED, "the NVIDIA driver is too old", false},
        {"stub=1", OC_CHILD_FAILED, "stub of libcuda.so", false},
        {"devices=0", OC_CHILD_FAILED, "no GPU is visible", false},
        {"taken=1", OC_CHILD_FAILED, "in use by another process", false},
        {"oom_after=16e6", OC_CHILD_OOM, "no room for", true},
        {"launch_fail=400", OC_CHILD_FAILED, "ECC", true},
        {"crash=400", OC_CHILD_CRASHED, "signal 11", true},
        {"hang=400", OC_CHILD_SILENT, "the probe hung", true},
        {"hang=400,terms=1", OC_CHILD_SILENT, "the probe hung", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oc_child *child = start(rows[i].settings, "3");
        assert_int_equal(oc_child_state(child), OC_CHILD_RUNS);
        help_wait_for(child, 60);
        assert_int_equal(oc_child_state(child), rows[i].state);
        const char *said = oc_child_line(child)[0] ? oc_child_line(child) : oc_child_why(child);
        if (!strstr(said, rows[i].said)) fail_msg("%s: %s", rows[i].settings, said);
        assert_null(strchr(said, '\n'));
        assert_int_equal(oc_child_phase(child)[0] != '\0', rows[i].began);
        oc_child_end(child);
    }
}

static void a_cancelled_run_says_so(void **state)
{
    (void)state;
    struct oc_child *child = start("hang=100000000", "64");
    const double end = help_now() + 60;
    while (!oc_child_phase(child)[0]) {
        assert_false(oc_child_pump(child));
        assert_true(help_now() < end);
    }
    kill(help_child_of(getpid()), SIGTERM);
    help_wait_for(child, 60);
    assert_int_equal(oc_child_state(child), OC_CHILD_CANCELLED);
    oc_child_end(child);
}

int main(void)
{
    /* A crash is what is tested: no sanitizer's report in its place. */
    setenv("ASAN_OPTIONS", "handle_segv=0", 1);
    setenv("UBSAN_OPTIONS", "handle_segv=0", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_fault_has_a_state_and_a_sentence),
        cmocka_unit_test(a_cancelled_run_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
