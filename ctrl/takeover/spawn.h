// SPDX-License-Identifier: Apache-2.0
// Starts a process that takes over from this one, as this one was started: the same program (as it
// is on the disk by now), arguments, environment and cores.
// Thread: ctrl.
#pragma once

#include <sched.h>
#include <sys/types.h>

struct takeover_spawn {
	char **argv; // owned; ends with --takeover and NULL
	cpu_set_t cores; // that this process began with; none = it may have more than fit here
	pid_t last; // 0 = none
};

// Before anything changes the cores. Borrows the arguments. Returns 0 or -ENOMEM.
[[nodiscard]] int takeover_spawn_init(struct takeover_spawn *, int argc, char **argv);
void takeover_spawn_fini(struct takeover_spawn *);
// Returns 0 or -errno. That it comes to nothing is seen at takeover_socket alone.
int takeover_spawn_run(struct takeover_spawn *);
