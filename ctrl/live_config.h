// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml changes beyond the configuration itself: the terms of workers, which
// come with the next snapshot, and the status port.
// Thread: ctrl.
#pragma once

#include "ctrl/conf/reload.h"

struct assembler;
struct reach;

struct live_config { // all borrowed, outlives it
	struct reloader reloader; // for who is asked to reload; its functions get this struct
	struct assembler *assembler;
	struct reach *reach;
};

void live_config_init(struct live_config *, struct config *, const char *path, struct assembler *,
	struct reach *);
