// SPDX-License-Identifier: Apache-2.0
// Commands one after the other, on a terminal: with completion, which the daemon does, and a
// history that stays.
// Thread: main.
#pragma once

struct command;

// Until the end of the input. Takes socket and options from the command, which has no words yet.
// Returns the exit status.
int shell_run(const struct command *);
