// SPDX-License-Identifier: Apache-2.0
// What is special about `shuntctl ping`, as scripts know it of ping(8): its exit status tells
// whether anybody answered.
// Thread: main.
#pragma once

#include <stdbool.h>

bool ping_is_asked(const char *words);
// The exit status by a line of the answer, text or JSON, if it is worse than so_far.
int ping_status(const char *line, int so_far);
