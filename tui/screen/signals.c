#include "tui/screen/signals.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
static const int crashing[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

enum { ENDING = sizeof ending / sizeof ending[0], CRASHING = sizeof crashing / sizeof crashing[0] };

static volatile sig_atomic_t ended, resumed;
static struct oc_rescue rescue;
static struct sigaction before_ending[ENDING], before_crashing[CRASHING], before_resuming;
static char stack[1 << 16]; /* a crash may be a stack overflow */

static void on_end(int number)
{
    ended = number;
}

static void on_resume(int number)
{
    (void)number;
    resumed = 1;
}

static void write_all(int fd, const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t written = write(fd, bytes, n);
        if (written <= 0) return;
        bytes += written, n -= (size_t)written;
    }
}

/* Only calls that are safe in a signal handler. */
static void on_crash(int number)
{
    static const char words[] =
        "oomcast " OOMCAST_VERSION " crashed (signal 00). The terminal was put back. Please report this, "
        "with the configuration that was open.\r\n";
    char text[sizeof words];
    memcpy(text, words, sizeof words);
    char *digits = strstr(text, "00");
    digits[0] = (char)('0' + number / 10 % 10);
    digits[1] = (char)('0' + number % 10);
    write_all(rescue.fd, rescue.bytes, rescue.n);
    if (rescue.has_modes) tcsetattr(rescue.fd, TCSANOW, &rescue.modes);
    write_all(STDERR_FILENO, text, sizeof text - 1);
    for (int i = 0; i < CRASHING; i++)
        if (crashing[i] == number) sigaction(number, &before_crashing[i], NULL);
    raise(number); /* delivered when this handler returns, to whoever was there before */
}

void oc_signals_catch(void)
{
    struct sigaction action;
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    memset(&rescue, 0, sizeof rescue);
    ended = resumed = 0;
    sigaltstack(&alternate, NULL);
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_end;
    for (int i = 0; i < ENDING; i++) sigaction(ending[i], &action, &before_ending[i]);
    action.sa_handler = on_resume;
    sigaction(SIGCONT, &action, &before_resuming);
    action.sa_handler = on_crash;
    action.sa_flags = SA_ONSTACK;
    for (int i = 0; i < CRASHING; i++) sigaction(crashing[i], &action, &before_crashing[i]);
}

void oc_signals_rescue(const struct oc_rescue *what)
{
    rescue = *what;
}

void oc_signals_release(void)
{
    for (int i = 0; i < ENDING; i++) sigaction(ending[i], &before_ending[i], NULL);
    for (int i = 0; i < CRASHING; i++) sigaction(crashing[i], &before_crashing[i], NULL);
    sigaction(SIGCONT, &before_resuming, NULL);
}

int oc_signals_ended(void)
{
    return ended;
}

bool oc_signals_resumed(void)
{
    bool was = resumed != 0;
    resumed = 0;
    return was;
}
