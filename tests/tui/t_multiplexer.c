/* Inside tmux and GNU screen, with libvterm as the terminal around them. One that is not installed is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "help_vterm.h"

static const char example[] = OOMCAST_SOURCE "/examples/llama3-8b-sgd-fp16.sh";
static char folder[] = "/tmp/oomcast-mux-XXXXXX";

/* Neither needs a configuration but to keep its own lines off the screen. */
static int make_folder(void **state)
{
    (void)state;
    char path[64];
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/tmux.conf", folder);
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    fputs("set -g status off\nset -g default-terminal tmux-256color\n", file);
    fclose(file);
    snprintf(path, sizeof path, "%s/screenrc", folder);
    file = fopen(path, "w");
    if (!file) return -1;
    fputs("startup_message off\naltscreen on\n", file);
    fclose(file);
    snprintf(path, sizeof path, "%s/sockets", folder);
    return mkdir(path, 0700) || setenv("SCREENDIR", path, 1) || setenv("TMUX_TMPDIR", path, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

static bool is_installed(const char *name)
{
    char command[96];
    snprintf(command, sizeof command, "test -x /usr/bin/%s", name);
    if (system(command) == 0) return true;
    print_message("skipped: there is no %s\n", name);
    return false;
}

/* Waits, at most five seconds, until the text is on the screen. */
static void await(struct oc_pty *pty, const char *text)
{
    for (int i = 0; i < 100; i++) {
        oc_pty_settle(pty, 50);
        char *shown = oc_pty_text(pty);
        bool there = strstr(shown, text) != NULL;
        free(shown);
        if (there) return;
    }
    fail_msg("\"%s\" does not come", text);
}

/* A shell with job control inside, which the program leaves and comes back to. */
static void walk_through(const char *const *argv)
{
    struct oc_pty pty;
    oc_pty_start(&pty, 100, 30, NULL, argv);
    await(&pty, "q quit");
    oc_pty_settle(&pty, 200);
    oc_pty_same_rows(&pty, example, "", "");
    bool weights = false;
    for (int x = 0; x < 100; x++) weights |= oc_pty_background(&pty, x, 3) == 74;
    assert_true(weights); /* in 256 colours, fills and all */
    oc_pty_keys(&pty, "b");
    oc_pty_keys(&pty, "l");
    oc_pty_settle(&pty, 200);
    oc_pty_same_rows(&pty, example, "bl", "");
    for (int view = '6'; view >= '1'; view--) {
        char keys[] = {'b', 'l', (char)view, '\0'};
        oc_pty_keys(&pty, keys + 2);
        oc_pty_settle(&pty, 200);
        oc_pty_same_rows(&pty, example, keys, "");
    }
    oc_pty_resize(&pty, 80, 24);
    oc_pty_settle(&pty, 500);
    oc_pty_same_rows(&pty, example, "bl1", "");
    oc_pty_keys(&pty, "\032");
    await(&pty, "is stopped");
    await(&pty, "q quit");
    oc_pty_settle(&pty, 300);
    oc_pty_same_rows(&pty, example, "bl1", "");
    oc_pty_keys(&pty, "q");
    oc_pty_keys(&pty, "y"); /* the change was not saved */
    assert_true(oc_pty_wait(&pty));
    assert_true(oc_pty_restored(&pty));
    oc_pty_end(&pty);
}

static void inside(void **state)
{
    const char *name = *state;
    char command[640], config[64], path[80];
    if (!is_installed(name)) return;
    snprintf(command, sizeof command, "set -m; %s --no-live %s; echo is stopped; sleep 1; fg >/dev/null", OOMCAST_BIN,
             example);
    snprintf(path, sizeof path, "/usr/bin/%s", name);
    if (strcmp(name, "tmux") == 0) {
        snprintf(config, sizeof config, "%s/tmux.conf", folder);
        walk_through((const char *const[]){path, "-u", "-f", config, "new-session", "bash", "-c", command, NULL});
    } else {
        snprintf(config, sizeof config, "%s/screenrc", folder);
        walk_through((const char *const[]){path, "-U", "-c", config, "bash", "-c", command, NULL});
    }
}

int main(void)
{
    static char tmux[] = "tmux", screen[] = "screen";
    const struct CMUnitTest tests[] = {
        {"inside_tmux", inside, NULL, NULL, tmux},
        {"inside_gnu_screen", inside, NULL, NULL, screen},
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
