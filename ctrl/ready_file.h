// SPDX-License-Identifier: Apache-2.0
// A file that is there exactly while this host is ready, for scripts that announce routes and ask
// with `test -e` (OPS-240). Of several processes the one in front has the path, whoever made what
// is there: it sets the file, and the others leave it alone.
// Thread: ctrl. It makes and removes a name, and so waits for the directory's file system.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ready_file {
	const char *path; // from the root; borrowed; NULL = off; the rest is zero
	bool is_known; // what is there is as we left it
	bool is_wanted, is_told; // told: `error` is in the log
	const char *error; // why it could not be made or removed; NULL = nothing is wrong
	uint64_t look_ns; // when what is there is looked at again
};

// Makes the file, empty, or removes it, at once if it is not so yet. Each second it is looked
// whether it still is so, and tried again what failed: to be called several times a second. A
// failure is told in the log once.
void ready_file_set(struct ready_file *, bool wanted, uint64_t now_ns);
// Removes it if we have made it: the process ends in front.
void ready_file_end(struct ready_file *);
