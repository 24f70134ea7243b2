// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml changes beyond the configuration itself: the terms of workers, which
// come with the next snapshot, the vips, the frontends, and the status port; and new certificate
// providers of the bootstrap.
// Thread: ctrl.
#pragma once

#include "ctrl/conf/reload.h"
#include "ctrl/own_vips.h"

struct assembler;
struct config;
struct frontends;
struct reach;
struct takeover;
struct trust;

struct live_config { // what is borrowed outlives it
	struct reloader reloader; // for who is asked to reload; its functions get this struct
	struct trust *trust;
	struct assembler *assembler;
	struct frontends *frontends;
	struct reach *reach;
	const struct takeover *takeover; // NULL = off
	struct own_vips vips;
};

void live_config_init(struct live_config *, struct config *, const char *path, struct trust *,
	struct assembler *, struct frontends *, struct reach *, const struct takeover *,
	struct twheel *);
void live_config_fini(struct live_config *); // all zero is fine
