/* Other processes: a probe in a child, commands, and what /proc shows of both. A failure fails the test. */
#ifndef OC_TESTS_HELP_PROCESS_H
#define OC_TESTS_HELP_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct oc_child;

double help_now(void); /* seconds, monotonic */

/* Ended: gone, or a zombie. */
bool help_is_gone(pid_t pid);

/* The first process whose parent is `parent`; 0 when there is none. */
pid_t help_child_of(pid_t parent);

/* Waits until the child has ended, as a screen does: poll, then pump. */
void help_wait_for(struct oc_child *child, double seconds);

/* Runs a shell command. Its output, up to `size` - 1 bytes, lies in `text`; returns its exit status. */
int help_run(const char *command, char *text, size_t size);

#endif
