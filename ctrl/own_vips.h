// SPDX-License-Identifier: Apache-2.0
// The prefixes of shunt.yaml's `vips` that a reload changes. New ones are answered for at once; of
// those that are gone the addresses are ours until the clients of what was served there have had
// their time.
// Thread: ctrl.
#pragma once

#include "ctrl/conf/config.h"
#include "lb/base/err.h"
#include "lb/base/twheel.h"

struct assembler;

struct own_vips { // conf: borrowed, outlives it
	const struct config *config; // with those that are in force
	struct assembler *assembler;
	struct twheel *wheel;
	struct twheel_timer timer;
	uint64_t version; // of the list that was told last
	struct own_vips_left {
		struct config_vip vip; // of which the prefix and `answers` count
		uint64_t until_ns;
	} left[CONFIG_MAX_VIPS]; // the one that goes first in front
	unsigned n_left;
};

void own_vips_init(struct own_vips *, const struct config *, struct assembler *, struct twheel *);
void own_vips_fini(struct own_vips *); // all zero is fine
// Those of a newer file, with the ports and tunnels of the running one: 0, or -EINVAL with reterr.
[[nodiscard]] int own_vips_check(
	const struct own_vips *, const struct config *new, struct lb_err *reterr);
// The configuration has others now; before: those that it had.
void own_vips_change(struct own_vips *, const struct config_vip *before, unsigned n_before);
