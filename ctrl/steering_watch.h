// SPDX-License-Identifier: Apache-2.0
// Tells the log when who brings a port's flows to workers has become another one: a worker that
// caught a device bringing flows elsewhere than it says only notes that.
// Thread: ctrl.
#pragma once

#include "ctrl/conf/config.h"

#include <stdint.h>

struct show_port;

struct steering_watch { // the caller sets what stands first; the rest is zero
	const char *(*steering)(void *ctx, uint32_t port); // "device", "software", "none"; static
	void *ctx;
	uint32_t n_ports;
	const char *was[CONFIG_MAX_PORTS];
};

// ports: [n_ports].
void steering_watch_look(struct steering_watch *, const struct show_port *ports);
