// SPDX-License-Identifier: Apache-2.0
// The log file, if stderr was redirected to one: it can be reopened after it was renamed
// (logrotate). Until that works, lines go on into the renamed one.
// Thread: ctrl; other threads keep writing log lines meanwhile.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Call at the start, while the file still has its name.
void log_file_begin(void);
// Returns false if stderr is not a file, or if it cannot be reopened: the log says which.
bool log_file_reopen(void);
// Tries again what failed. Call every second.
void log_file_look(void);

struct log_file_numbers {
	int error; // errno of the last try, if that failed; 0 = it did not
	uint64_t n_unopened; // tries that failed
};
struct log_file_numbers log_file_numbers(void);
