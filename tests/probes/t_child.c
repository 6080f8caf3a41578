/* A probe in a process of its own, in every way that it can go: well, crashing, hanging, cancelled, speaking something
 * else, not there at all, and with its parent killed. Real processes and real signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "oomcast/probe.h"
#include "tests/probes/help_process.h"

#define PROGRESS "{\"event\":\"progress\",\"phase\":\"backward\",\"step\":1,\"fraction\":0.25}"

/* A shell that speaks for the probe. */
static struct oc_child *start(const char *script)
{
    struct oc_error error;
    char *argv[] = {(char *)"-c", (char *)script, NULL};
    struct oc_child *child = oc_child_start("/bin/sh", argv, &error);
    assert_non_null(child);
    return child;
}

static void speaks_and_ends(void **state)
{
    (void)state;
    struct oc_child *child = start("echo '" PROGRESS "'; echo '{\"event\":\"done\",\"device\":\"host\"}'");
    help_wait_for(child, 60);
    assert_string_equal(oc_child_phase(child), "backward");
    assert_true(oc_child_fraction(child) > 0.24 && oc_child_fraction(child) < 0.26);
    assert_string_equal(oc_child_line(child), "{\"event\":\"done\",\"device\":\"host\"}");
    assert_string_equal(oc_child_why(child), "");
    assert_true(oc_child_pump(child)); /* and stays ended */
    oc_child_end(child);
}

static void a_failure_speaks_for_itself(void **state)
{
    (void)state;
    struct oc_child *child = start("echo '{\"event\":\"oom\",\"why\":\"no room\"}'; exit 3");
    help_wait_for(child, 60);
    assert_non_null(strstr(oc_child_line(child), "no room"));
    assert_string_equal(oc_child_why(child), "");
    oc_child_end(child);
}

/* A last line as long as a large result, in pieces, and with no newline at its end. */
static void long_lines_come_whole(void **state)
{
    (void)state;
    struct oc_child *child = start("printf '{\"event\":\"done\",\"x\":\"'; i=0; while [ $i -lt 2000 ]; do printf "
                                   "'0123456789012345678901234567890123456789'; i=$((i+1)); done; printf '\"}'");
    help_wait_for(child, 60);
    assert_int_equal(strlen(oc_child_line(child)), strlen("{\"event\":\"done\",\"x\":\"\"}") + 80000);
    oc_child_end(child);
}

static void a_crash_keeps_what_was_said(void **state)
{
    (void)state;
    struct oc_child *child =
        start("echo '" PROGRESS "'; echo 'line one' >&2; echo 'bad \033[31mthing' >&2; kill -SEGV $$");
    help_wait_for(child, 60);
    assert_string_equal(oc_child_phase(child), "backward");
    assert_string_equal(oc_child_line(child), "");
    assert_int_equal(oc_child_state(child), OC_CHILD_CRASHED);
    assert_non_null(strstr(oc_child_why(child), "signal 11"));
    assert_non_null(strstr(oc_child_why(child), "bad  [31mthing")); /* no escape reaches a terminal */
    oc_child_end(child);
}

static void silence_and_noise_are_said(void **state)
{
    (void)state;
    struct oc_child *child = start("exit 70");
    help_wait_for(child, 60);
    assert_int_equal(oc_child_state(child), OC_CHILD_STRANGE);
    assert_non_null(strstr(oc_child_why(child), "status 70"));
    oc_child_end(child);

    child = start("echo hello; echo '{\"event\":\"unheard of\"}'; echo '[1]'; head -c 300000 /dev/zero");
    help_wait_for(child, 60);
    assert_string_equal(oc_child_line(child), "");
    assert_non_null(strstr(oc_child_why(child), "not a probe's (4 lines)"));
    oc_child_end(child);
}

static void much_noise_on_standard_error_is_no_harm(void **state)
{
    (void)state;
    struct oc_child *child = start("i=0; while [ $i -lt 20000 ]; do echo 'a long line of noise' >&2; i=$((i+1)); done; "
                                   "echo 'the last words' >&2; exit 1");
    help_wait_for(child, 60);
    assert_non_null(strstr(oc_child_why(child), ": the last words"));
    oc_child_end(child);
}

static void no_program_is_an_error(void **state)
{
    (void)state;
    struct oc_error error = {0};
    char *argv[] = {(char *)"probe", NULL};
    assert_null(oc_child_start("/nonexistent/oomcast", argv, &error));
    assert_non_null(strstr(error.message, "/nonexistent/oomcast"));
}

/* ---- Ending ---- */

static void assert_gone_within(pid_t pid, double seconds)
{
    const double end = help_now() + seconds;
    while (!help_is_gone(pid)) {
        assert_true(help_now() < end);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

static pid_t wait_for_child_of(pid_t parent)
{
    const double end = help_now() + 60;
    pid_t pid = 0;
    while (!(pid = help_child_of(parent))) {
        assert_true(help_now() < end);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return pid;
}

/* Runs until its first progress line is there, so that it has set itself up. */
static void wait_for_phase(struct oc_child *child)
{
    const double end = help_now() + 60;
    while (!oc_child_phase(child)[0]) {
        assert_false(oc_child_pump(child));
        assert_true(help_now() < end);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* TERM ends one that hears it; one that ignores it is killed a second later; the caller waits for neither. */
static void a_running_child_is_ended(void **state)
{
    (void)state;
    static const struct {
        const char *script;
        double least, most;
    } rows[] = {{"echo '" PROGRESS "'; while :; do sleep 0.05; done", 0, 60},
                {"trap '' TERM; echo '" PROGRESS "'; while :; do sleep 0.05; done", 0.9, 60}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oc_child *child = start(rows[i].script);
        wait_for_phase(child);
        const pid_t pid = help_child_of(getpid());
        assert_true(pid > 0);
        const double begin = help_now();
        oc_child_end(child);
        assert_true(help_now() - begin < 0.9); /* sooner than the second that a deaf child has */
        assert_gone_within(pid, rows[i].most);
        assert_true(help_now() - begin >= rows[i].least);
        while (help_child_of(getpid())) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL); /* reaped, too */
    }
}

/* ---- The real program ---- */

static char *const long_run[] = {(char *)"probe",
                                 (char *)"--json",
                                 (char *)"--full",
                                 (char *)"--device",
                                 (char *)"host",
                                 (char *)"--steps",
                                 (char *)"64",
                                 (char *)"--set",
                                 (char *)"framework=pytorch",
                                 (char *)"--set",
                                 (char *)"model.layers=2",
                                 (char *)"--set",
                                 (char *)"model.hidden=256",
                                 (char *)"--set",
                                 (char *)"model.heads=4",
                                 (char *)"--set",
                                 (char *)"model.vocab=8000",
                                 (char *)"--set",
                                 (char *)"batch.seq=512",
                                 NULL};

static void the_program_can_be_cancelled(void **state)
{
    (void)state;
    struct oc_error error;
    struct oc_child *child = oc_child_start(OOMCAST_BIN, long_run, &error);
    assert_non_null(child);
    wait_for_phase(child);
    kill(wait_for_child_of(getpid()), SIGTERM);
    help_wait_for(child, 60); /* it looks up between phases, and is polite: a busy machine may keep it waiting */
    assert_non_null(strstr(oc_child_line(child), "\"cancelled\""));
    oc_child_end(child);
}

/* A process in between starts the probe and is killed: the probe must not outlive it. */
static void the_program_dies_with_its_parent(void **state)
{
    (void)state;
    pid_t between = fork();
    assert_true(between >= 0);
    if (between == 0) {
        struct oc_error error;
        struct oc_child *child = oc_child_start(OOMCAST_BIN, long_run, &error);
        while (child && !oc_child_pump(child)) nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        _exit(1);
    }
    const pid_t probe = wait_for_child_of(between);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL); /* it has begun */
    assert_false(help_is_gone(probe));
    kill(between, SIGKILL);
    assert_int_equal(waitpid(between, NULL, 0), between);
    assert_gone_within(probe, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speaks_and_ends),
        cmocka_unit_test(a_failure_speaks_for_itself),
        cmocka_unit_test(long_lines_come_whole),
        cmocka_unit_test(a_crash_keeps_what_was_said),
        cmocka_unit_test(silence_and_noise_are_said),
        cmocka_unit_test(much_noise_on_standard_error_is_no_harm),
        cmocka_unit_test(no_program_is_an_error),
        cmocka_unit_test(a_running_child_is_ended),
        cmocka_unit_test(the_program_can_be_cancelled),
        cmocka_unit_test(the_program_dies_with_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
