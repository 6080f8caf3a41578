/* Other processes, as /proc shows them. */
#ifndef OC_TESTS_HELP_PROCESS_H
#define OC_TESTS_HELP_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

double help_now(void); /* seconds, monotonic */

/* Ended: gone, or a zombie. */
bool help_is_gone(pid_t pid);

/* The first process whose parent is `parent`; 0 when there is none. */
pid_t help_child_of(pid_t parent);

#endif
