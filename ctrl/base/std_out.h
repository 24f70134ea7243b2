// SPDX-License-Identifier: Apache-2.0
// Notices that what a program printed did not arrive: a full disk shows at a write or at the end,
// and printf() tells nobody.
// Thread: main.
#pragma once

// First thing in main(): when the process exits and something of its standard output was lost, the
// program says so on stderr and its status is this one. A reader that has gone (`| head`) is told
// nothing. program: a constant text.
void std_out_watch(const char *program, int status);
