// SPDX-License-Identifier: Apache-2.0
// The log file, if stderr was redirected to one: it can be reopened after it was renamed
// (logrotate).
// Thread: ctrl; other threads keep writing log lines meanwhile.
#pragma once

#include <stdbool.h>

// Call at the start, while the file still has its name.
void log_file_begin(void);
// Returns false if stderr is not a file, or if it cannot be reopened: the log says which.
bool log_file_reopen(void);
