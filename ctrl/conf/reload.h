// SPDX-License-Identifier: Apache-2.0
// What SIGHUP does: shunt.yaml is read again. What a running daemon can follow takes effect (the
// level of the log, drain_s); what else differs is named in the log and waits for a restart; of a
// file that is wrong nothing is taken. The bootstrap is not read again.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct config;

// path: as given at the start; `running` follows.
void reload(struct config *running, const char *path);
// Whether a running daemon follows that field of shunt.yaml.
bool reload_applies(const char *field);
