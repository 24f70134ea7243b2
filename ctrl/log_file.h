// SPDX-License-Identifier: Apache-2.0
// The file that the log goes to, where whoever started the daemon sent stderr into one: it can be
// opened again after it was moved away (logrotate).
// Thread: ctrl; the log's other threads go on writing meanwhile.
#pragma once

#include <stdbool.h>

// At the start, while the file still has its name.
void log_file_begin(void);
// False = stderr is no file, or it cannot be opened again: the log says which.
bool log_file_reopen(void);
