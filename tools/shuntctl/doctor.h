// SPDX-License-Identifier: Apache-2.0
// What is special about `shuntctl doctor`: its exit status tells how bad it is, and there is
// something to do where no daemon answers.
// Thread: main.
#pragma once

#include <stdbool.h>

bool doctor_is_asked(const char *words);
// The exit status by a line of the answer, text or JSON, if it is worse than so_far.
int doctor_status(const char *line, int so_far);
// On stderr: what else can be asked.
void doctor_hint(void);
