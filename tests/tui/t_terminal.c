/* The program on a terminal: what arrives there is what the canvas holds, the terminal is given back however it ends,
 * and nothing is sent when nothing changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "help_vterm.h"

static const char example[] = OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh";

static void start(struct oc_pty *pty, int width, int height, const char *const *environment)
{
    oc_pty_start(pty, width, height, environment, (const char *const[]){OOMCAST_BIN, "--no-live", example, NULL});
    oc_pty_settle(pty, 150);
}

static void the_terminal_shows_the_canvas(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {160, 48}, {60, 20}, {100, 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct oc_pty pty;
        start(&pty, sizes[i][0], sizes[i][1], NULL);
        assert_true(pty.alternate && !pty.cursor);
        oc_pty_same_rows(&pty, example, "", "");
        oc_pty_keys(&pty, "b");
        oc_pty_keys(&pty, "l");
        oc_pty_same_rows(&pty, example, "bl", "");
        oc_pty_end(&pty);
    }
}

/* Every view, in colour, without, and in ASCII: what the emulator holds is what was drawn, and nothing is left of the
 * view before. */
static void the_terminal_shows_every_view(void **state)
{
    (void)state;
    static const int sizes[][2] = {{80, 24}, {160, 48}};
    static const struct {
        const char *environment[3], *options;
    } kinds[] = {
        {{NULL}, ""}, {{"NO_COLOR=1"}, "--color never"}, {{"TERM=vt100", "LC_ALL=C"}, "--color never --ascii"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct oc_pty pty;
            char keys[16] = "bl";
            start(&pty, sizes[i][0], sizes[i][1], kinds[k].environment);
            oc_pty_keys(&pty, "b");
            oc_pty_keys(&pty, "l");
            for (int view = 6; view >= 1; view--) {
                char key[2] = {(char)('0' + view), '\0'};
                oc_pty_keys(&pty, key);
                strcat(keys, key);
                oc_pty_same_rows(&pty, example, keys, kinds[k].options);
            }
            oc_pty_end(&pty);
        }
}

static void colours_come_from_the_palette(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    assert_true(oc_pty_has_colour(&pty));
    bool weights = false;
    for (int y = 0; y < 24; y++)
        for (int x = 0; x < 80; x++) weights |= oc_pty_background(&pty, x, y) == 74;
    assert_true(weights);
    oc_pty_end(&pty);
}

/* With a description that takes colours as they are. Most machines have none, so one is made for this test. */
static void all_colours_on_request(void **state)
{
    (void)state;
    static const char entry[] =
        "xterm-direct|for this test,\n\tRGB, colors#0x1000000, pairs#0x7FFFF,\n"
        "\tsetab=\\E[%?%p1%{8}%<%t4%p1%d%e48;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%d%;m,\n"
        "\tsetaf=\\E[%?%p1%{8}%<%t3%p1%d%e38;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;%p1%{255}%&%d%;m,\n"
        "\tuse=xterm-256color,\n";
    char folder[] = "/tmp/oomcast-terminfo-XXXXXX", command[256], path[96], variable[96];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/entry", folder);
    FILE *file = fopen(path, "w");
    fputs(entry, file);
    fclose(file);
    snprintf(command, sizeof command, "tic -x -o %s %s >/dev/null 2>&1", folder, path);
    if (system(command) == 0) {
        struct oc_pty pty;
        snprintf(variable, sizeof variable, "TERMINFO_DIRS=%s:", folder);
        oc_pty_start(&pty, 80, 24, (const char *const[]){variable, NULL},
                     (const char *const[]){OOMCAST_BIN, "--no-live", "--color", "rgb", example, NULL});
        oc_pty_settle(&pty, 150);
        bool sky = false;
        for (int y = 0; y < 24; y++)
            for (int x = 0; x < 80; x++) sky |= oc_pty_rgb(&pty, x, y) == 0x56b4e9;
        assert_true(sky);
        oc_pty_keys(&pty, "q");
        assert_true(oc_pty_wait(&pty));
        oc_pty_end(&pty);
    } else {
        print_message("skipped: there is no tic to make a terminal's description with\n");
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

static void without_colour_letters_fill_the_bars(void **state)
{
    (void)state;
    static const struct {
        const char *environment[4], *options;
    } cases[] = {
        {{"NO_COLOR=1"}, "--color never"},
        {{"TERM=vt100"}, "--color never"},
        {{"TERM=vt100", "LC_ALL=C"}, "--color never --ascii"},
        {{"TERM=xterm-mono"}, "--color never"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct oc_pty pty;
        start(&pty, 80, 24, cases[i].environment);
        char *text = oc_pty_text(&pty);
        assert_false(oc_pty_has_colour(&pty));
        assert_non_null(strstr(text, "WWMMM"));
        if (strstr(cases[i].options, "--ascii"))
            for (char *at = text; *at; at++) assert_true((unsigned char)*at < 0x80);
        free(text);
        oc_pty_same_rows(&pty, example, "", cases[i].options);
        oc_pty_end(&pty);
    }
}

static void few_colours_keep_the_letters(void **state)
{
    (void)state;
    static const char *const terms[] = {"TERM=screen", "TERM=linux", "TERM=xterm"};
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        struct oc_pty pty;
        start(&pty, 80, 24, (const char *const[]){terms[i], NULL});
        char *text = oc_pty_text(&pty);
        assert_true(oc_pty_has_colour(&pty));
        if (!strstr(text, "MMM")) fail_msg("%s:\n%s", terms[i], text);
        free(text);
        oc_pty_end(&pty);
    }
}

static void an_unknown_terminal_falls_back(void **state)
{
    (void)state;
    static const char *const terms[] = {"TERM=xterm-kitty-nosuch", "TERM=nosuch"};
    for (size_t i = 0; i < 2; i++) {
        struct oc_pty pty;
        start(&pty, 80, 24, (const char *const[]){terms[i], NULL});
        char *text = oc_pty_text(&pty);
        assert_non_null(strstr(text, "1Fit"));
        free(text);
        oc_pty_keys(&pty, "q");
        assert_true(oc_pty_wait(&pty));
        assert_int_equal(WEXITSTATUS(pty.status), 0);
        oc_pty_end(&pty);
    }
}

static void q_restores_the_terminal(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    assert_false(oc_pty_restored(&pty));
    oc_pty_keys(&pty, "q");
    assert_true(oc_pty_wait(&pty));
    assert_true(WIFEXITED(pty.status) && WEXITSTATUS(pty.status) == 0);
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
}

static void every_signal_restores_the_terminal(void **state)
{
    (void)state;
    static const struct {
        int number;
        bool crash;
    } signals[] = {{SIGHUP, false}, {SIGTERM, false}, {SIGINT, false}, {SIGQUIT, false},
                   {SIGSEGV, true}, {SIGABRT, true},  {SIGBUS, true},  {SIGFPE, true}};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct oc_pty pty;
        start(&pty, 200, 80, NULL); /* room for a sanitizer's report below our line */
        kill(pty.pid, signals[i].number);
        if (!oc_pty_wait(&pty)) fail_msg("signal %d does not end it", signals[i].number);
        if (!oc_pty_restored(&pty)) fail_msg("signal %d leaves the terminal changed", signals[i].number);
        if (signals[i].crash) {
            char *text = oc_pty_text(&pty);
            assert_non_null(strstr(text, "The terminal was put back"));
            free(text);
            assert_true(WIFSIGNALED(pty.status) || WEXITSTATUS(pty.status) != 0); /* a sanitizer exits by itself */
        } else {
            assert_true(WIFEXITED(pty.status));
            assert_int_equal(WEXITSTATUS(pty.status), 128 + signals[i].number);
        }
        oc_pty_end(&pty);
    }
}

/* ^C comes from the terminal itself. */
static void control_c_leaves(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    oc_pty_keys(&pty, "\003");
    assert_true(oc_pty_wait(&pty));
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
}

/* ^Z under a shell with job control: without one the kernel does not stop a process. */
static void suspended_and_resumed_it_draws_again(void **state)
{
    (void)state;
    struct oc_pty pty;
    char command[512];
    snprintf(command, sizeof command, "set -m; %s --no-live %s; echo is stopped; sleep 0.5; fg >/dev/null", OOMCAST_BIN,
             example);
    oc_pty_start(&pty, 80, 24, NULL, (const char *const[]){"/bin/bash", "-c", command, NULL});
    oc_pty_settle(&pty, 200);
    assert_true(pty.alternate);
    oc_pty_keys(&pty, "\032");
    assert_false(pty.alternate || pty.mouse);
    assert_true(pty.cursor);
    char *text = oc_pty_text(&pty);
    assert_non_null(strstr(text, "is stopped"));
    free(text);
    oc_pty_settle(&pty, 700);
    assert_true(pty.alternate);
    oc_pty_same_rows(&pty, example, "", "");
    oc_pty_keys(&pty, "q");
    assert_true(oc_pty_wait(&pty));
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
}

static void a_terminal_that_goes_away_ends_it(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    vterm_free(pty.vterm);
    close(pty.master);
    for (int i = 0; i < 200 && !pty.ended; i++) {
        nanosleep(&(struct timespec){0, 10000000}, NULL);
        pty.ended = waitpid(pty.pid, &pty.status, WNOHANG) == pty.pid;
    }
    assert_true(pty.ended);
}

static void a_resize_is_followed(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24,
          (const char *const[]){"LINES=24", "COLUMNS=80", NULL}); /* exported, they must not hold it back */
    static const int sizes[][2] = {{120, 40}, {40, 10}, {300, 80}, {39, 9}, {5, 2}, {1, 1}, {60, 20}, {80, 24}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        oc_pty_resize(&pty, sizes[i][0], sizes[i][1]);
        if (sizes[i][0] >= 39) oc_pty_same_rows(&pty, example, "", "");
    }
    for (int width = 40; width <= 300; width += 20)
        for (int height = 10; height <= 80; height += 14) oc_pty_resize(&pty, width, height);
    oc_pty_keys(&pty, "q");
    assert_true(oc_pty_wait(&pty));
    assert_int_equal(pty.status, 0);
    oc_pty_end(&pty);
}

static void idle_sends_nothing_and_keys_little(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 160, 48, NULL);
    assert_int_equal(oc_pty_settle(&pty, 1500), 0);
    long move = oc_pty_keys(&pty, "j"), change;
    oc_pty_keys(&pty, "k");
    change = oc_pty_keys(&pty, "l");
    assert_true(move > 0 && change > 0);
    print_message("bytes at 160x48: moving %ld, changing precision %ld\n", move, change);
    assert_true(move < 700);
    assert_true(change <= 1536);                   /* the budget of docs/DESIGN.md */
    assert_true(oc_pty_keys(&pty, "\014") > 2000); /* Ctrl-L paints everything */
    assert_int_equal(oc_pty_settle(&pty, 300), 0);
    oc_pty_end(&pty);
}

/* Arrow keys in both forms; a broken or unknown sequence does nothing. */
static void keys_are_understood_in_every_form(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    oc_pty_keys(&pty, "\033[B");
    oc_pty_same_rows(&pty, example, "j", "");
    oc_pty_keys(&pty, "\033OB");
    oc_pty_same_rows(&pty, example, "jj", "");
    oc_pty_keys(&pty, "\033[A\033OA");
    oc_pty_same_rows(&pty, example, "", "");
    oc_pty_keys(&pty, "\033[1;5P\033[200~\033"); /* nothing that this program knows */
    oc_pty_same_rows(&pty, example, "", "");
    oc_pty_keys(&pty, "\r");
    assert_true(pty.cursor);
    oc_pty_keys(&pty, "\177\010\033");
    oc_pty_same_rows(&pty, example, "", "");
    oc_pty_end(&pty);
}

/* A terminal says where it was clicked, counted from 1; the wheel is buttons 64 and 65. */
static void clicks_are_understood(void **state)
{
    (void)state;
    struct oc_pty pty;
    start(&pty, 80, 24, NULL);
    assert_true(pty.mouse);
    oc_pty_keys(&pty, "\033[<0;7;1M\033[<0;7;1m"); /* "2Step", pressed and let go */
    oc_pty_same_rows(&pty, example, "2", "");
    oc_pty_keys(&pty, "\033[<0;2;1M\033[<0;2;1m");
    oc_pty_same_rows(&pty, example, "21", "");
    oc_pty_keys(&pty, "\033[<65;5;10M");
    oc_pty_same_rows(&pty, example, "21jjj", "");
    oc_pty_keys(&pty, "\033[<64;5;10M");
    oc_pty_same_rows(&pty, example, "21", "");
    oc_pty_keys(&pty, "\033[<0;5;7M"); /* the option below the focus */
    oc_pty_same_rows(&pty, example, "21j", "");
    oc_pty_keys(&pty, "q");
    assert_true(oc_pty_wait(&pty));
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
    oc_pty_start(&pty, 80, 24, NULL, (const char *const[]){OOMCAST_BIN, "--no-live", "--no-mouse", example, NULL});
    oc_pty_settle(&pty, 150);
    assert_false(pty.mouse);
    oc_pty_end(&pty);
}

static void the_first_frame_is_quick(void **state)
{
    (void)state;
    struct oc_pty pty;
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    oc_pty_start(&pty, 80, 24, NULL, (const char *const[]){OOMCAST_BIN, "--no-live", example, NULL});
    bool seen = false;
    for (int i = 0; i < 200 && !seen; i++) {
        oc_pty_settle(&pty, 1);
        char *text = oc_pty_text(&pty);
        seen = strstr(text, "quit") != NULL;
        free(text);
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 + (double)(after.tv_nsec - before.tv_nsec) / 1e6;
    assert_true(seen);
    print_message("first frame after %.1f ms\n", ms);
    oc_pty_end(&pty);
}

static void a_wrong_script_says_where(void **state)
{
    (void)state;
    char command[512];
    snprintf(command, sizeof command,
             "printf 'j\\n:dance\\n' | %s --no-display --no-live --script /dev/stdin %s 2>&1 | grep -q '/dev/stdin:2: "
             ".*dance'",
             OOMCAST_BIN, example);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_terminal_shows_the_canvas),
        cmocka_unit_test(the_terminal_shows_every_view),
        cmocka_unit_test(colours_come_from_the_palette),
        cmocka_unit_test(all_colours_on_request),
        cmocka_unit_test(without_colour_letters_fill_the_bars),
        cmocka_unit_test(few_colours_keep_the_letters),
        cmocka_unit_test(an_unknown_terminal_falls_back),
        cmocka_unit_test(q_restores_the_terminal),
        cmocka_unit_test(every_signal_restores_the_terminal),
        cmocka_unit_test(control_c_leaves),
        cmocka_unit_test(suspended_and_resumed_it_draws_again),
        cmocka_unit_test(a_terminal_that_goes_away_ends_it),
        cmocka_unit_test(a_resize_is_followed),
        cmocka_unit_test(idle_sends_nothing_and_keys_little),
        cmocka_unit_test(keys_are_understood_in_every_form),
        cmocka_unit_test(clicks_are_understood),
        cmocka_unit_test(the_first_frame_is_quick),
        cmocka_unit_test(a_wrong_script_says_where),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
