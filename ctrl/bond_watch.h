// SPDX-License-Identifier: Apache-2.0
// Tells the log what becomes of bonds' members, and of partners that do not belong together: two
// switches that are no pair look like one to nobody but Shunt.
// Thread: ctrl.
#pragma once

#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"

struct bond_watch { // the caller sets what stands first; the rest is zero
	const struct config *config;
	const char *was[CONFIG_MAX_PORTS][CONFIG_MAX_MEMBERS]; // states; NULL = not seen yet
	bool differ[CONFIG_MAX_PORTS]; // partners
};

// ports: those of the configuration.
void bond_watch_look(struct bond_watch *, const struct show_port *ports);
