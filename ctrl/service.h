// SPDX-License-Identifier: Apache-2.0
// What a service manager is told, if one started us (sd_notify(3)): that clients are served, what
// they wait for, that the loops run, that the end has begun. Without one nothing happens.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct config;
struct frontends;
struct show_port;
struct shutdown;

enum service_phase { SERVICE_STARTING, SERVICE_READY, SERVICE_STOPPING };

#define SERVICE_MAX_STATUS 200

// All zero = starting, nothing told.
struct service {
	enum service_phase told;
	char status[SERVICE_MAX_STATUS];
	bool is_silent; // another process of ours is the service's
	bool must_end; // the service is stopped while that one, or we alone, still drain
	int main_pid; // to be told with what comes next, since another one was it; 0 = it is known
};

struct service_view { // borrowed for the call
	const struct config *config;
	const struct show_port *ports;
	struct frontends *frontends;
	bool ready; // each frontend has a configuration, or an error in place of it
	bool drains; // some frontend, as an operator asked
	const char *newer_lacks; // why a newer process does not take our place yet; NULL = nothing
	const struct shutdown *shutdown;
};

// Tells the phase that follows from what is seen: clients can be served once there is a
// configuration and one port has a link.
void service_look(struct service *, const struct service_view *);
// Tells what has changed since the last call. A phase never goes back. The status is one line for
// operators, cut at SERVICE_MAX_STATUS.
void service_tell(struct service *, enum service_phase, const char *status);
// Feeds the manager's watchdog (WatchdogSec=), unless something hangs, and while the end takes its
// time asks for more of that. To be called each second, and so the least WatchdogSec is 2.
void service_beat(const struct service *, bool all_run);
// The manager waits for the end of this process.
bool service_is_ending(const struct service *);
// Asks it to wait for 30 s more, from now on. Any thread.
void service_ask_time(void);
