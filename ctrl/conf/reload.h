// SPDX-License-Identifier: Apache-2.0
// Handles SIGHUP: reads shunt.yaml again. What a running daemon can change takes effect (the log
// level, drain_s, lame_duck_s); the log names all other differences, which need a restart. Nothing
// of an invalid file is used. The bootstrap is not read again.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct config;

// path: as given at the start; updates `running`.
void reload(struct config *running, const char *path);
// True if a running daemon applies changes of that field of shunt.yaml.
bool reload_applies(const char *field);
