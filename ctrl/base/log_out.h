// SPDX-License-Identifier: Apache-2.0
// Lines of the log on their way to stderr: nobody waits for who reads it (TH-75). A line that
// finds no room is lost, and the next one that does says how many were. A slow disk is waited for.
// Thread: any.
#pragma once

#include <stdint.h>

// All that is logged goes this way from now on. Call before there is another thread.
void log_out_begin(void);
// Returns how many lines were lost.
uint64_t log_out_lost(void);
