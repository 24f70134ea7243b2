// SPDX-License-Identifier: Apache-2.0
// Tells operators which gateways answer, as the workers' watch has it (dataplane/net/gateway.h):
// the log, and what is shown of ports.
// Thread: ctrl.
#pragma once

#include "ctrl/conf/config.h"
#include "lb/base/gateways.h"

struct show_port;

struct gateway_watch { // the caller sets what stands first; the rest is zero
	const struct config *config; // borrowed, as the next
	const struct lb_gateways *gateways;
	enum lb_gateway_state was[CONFIG_MAX_PORTS][CONFIG_MAX_GATEWAYS];
};

// ports: those of the configuration, which get the states. Call several times a second.
void gateway_watch_look(struct gateway_watch *, struct show_port *ports);
