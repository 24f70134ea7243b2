// SPDX-License-Identifier: Apache-2.0
// A command as it is typed, and its answer as it is printed.
// Thread: any; one at a time.
#pragma once

#include "ctrl/base/stats_proto.h"

#include <stdbool.h>
#include <sys/types.h>

// Bytes of the words, as they are quoted: with what is put around them they are a command.
#define COMMAND_MOST (STATS_MAX_COMMAND - (int)(sizeof(STATS_HUMAN " ") + sizeof(" json") - 2))

struct command {
	const char *socket; // borrowed
	bool json, human; // as options say; on a terminal text is human anyway
	bool follows; // the answer goes on until one of us ends
	bool is_raw; // all further words are the daemon's
	char words[COMMAND_MOST + 1]; // as they are sent; "" = none
	pid_t pid; // of the daemon that answered; 0 = none did
};

// Adds a word: `--json` may stand anywhere. False = there is no room.
[[nodiscard]] bool command_add(struct command *, const char *word);
// Asks, and prints the answer: as text with colours and units on a terminal. What is wrong goes to
// stderr. 0 answered, 1 refused, 2 not answered, as the exit status has it, and doctor's as
// doctor.h has it; with command_interrupted that is not said.
int command_run(struct command *);

// Set by a signal's handler: the answer is broken off.
extern volatile int command_interrupted;
