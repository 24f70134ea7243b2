// SPDX-License-Identifier: Apache-2.0
// One command to shuntd and its answer, line by line. Each has a connection of its own, so that a
// daemon that went and came back is asked as if nothing had been.
// Thread: any; one at a time.
#pragma once

#include "ctrl/base/stats_proto.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct ask {
	FILE *in; // NULL = closed
	char *line;
	size_t room;
	bool begun;
	bool refused; // the daemon says that the command is wrong: the lines are its reason
	bool ended; // the answer is whole
	pid_t pid; // of the daemon; 0 = not known
};

#define ASK_TIMEOUT_S 10 // for each part of an answer

// Sends the command (its words as lb/base/words.h has them). follows: its answer may be silent for
// any time. 0, or -1 with errno; close it in both cases.
[[nodiscard]] int ask_open(struct ask *, const char *socket, const char *command, bool follows);
// The next line with its newline; valid until the next call. NULL: the answer has ended, or broke
// off, with errno; EUSERS: since the daemon has too many connections.
const char *ask_line(struct ask *);
void ask_close(struct ask *); // errno stays

// The whole answer's lines as one text, from malloc, or NULL with errno; EINVAL: it was refused.
char *ask_all(const char *socket, const char *command);

// Of an errno of these.
const char *ask_error(int error);
