// SPDX-License-Identifier: Apache-2.0
// Starts a process that takes over from this one, as this one was started: the same program (as it
// is on the disk by now), arguments, environment and cores.
// Thread: ctrl.
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct takeover_spawn {
	char **argv; // owned; ends with --takeover and NULL
	cpu_set_t cores; // that this process began with; none = it may have more than fit here
	pid_t last; // 0 = none
};

// Before anything changes the cores. Borrows the arguments. Returns 0 or -ENOMEM.
[[nodiscard]] int takeover_spawn_init(struct takeover_spawn *, int argc, char **argv);
void takeover_spawn_fini(struct takeover_spawn *);
// Returns 0 or -errno; -EBUSY: the one before runs still.
int takeover_spawn_run(struct takeover_spawn *);
const char *takeover_spawn_why_not(int rc); // of what that has returned; borrowed
// Whether what was started last has ended, of which it tells once; a process that did not come as
// far as takeover_socket is seen to end here alone. ret_status: as of waitpid(2).
bool takeover_spawn_ended(struct takeover_spawn *, pid_t *ret_pid, int *ret_status);
