// SPDX-License-Identifier: Apache-2.0
// Notices that what a program printed did not arrive: a full disk shows at a write or at the end,
// and printf() tells nobody. Nor does what is meant for a standard stream get anywhere else.
// Thread: main.
#pragma once

// First thing in main(): when the process exits and something of its standard output was lost, the
// program says so on stderr and its status is this one. A reader that has gone (`| head`) is told
// nothing. program: a constant text.
// Standard descriptors that were closed before (`>&-`) are taken, so that no socket or file of ours
// gets their numbers and is written to as if it were one of them: output is lost, and said to be;
// input is empty; what goes to stderr vanishes.
void std_out_watch(const char *program, int status);
