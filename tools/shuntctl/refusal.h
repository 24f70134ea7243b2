// SPDX-License-Identifier: Apache-2.0
// A refused command's reason, as who asked for JSON reads it.
// Thread: main.
#pragma once

#include <stdio.h>

// Prints {"schema_version":1,"error":"..."} for a line of the answer, with STATS_ERROR or not.
void refusal_print_json(FILE *, const char *line);
