// SPDX-License-Identifier: Apache-2.0
// The interface between the status server and its services. A service has one struct per call,
// whose first member is a status_call.
// Thread: ctrl.
#pragma once

#include "ctrl/rpc/server.h"

#include <stddef.h>
#include <stdint.h>

struct status_call;

struct status_call_ops { // as in rpc_events
	void (*on_message)(struct status_call *, const uint8_t *bytes, size_t len);
	void (*on_half_close)(struct status_call *);
	void (*on_sent)(struct status_call *);
	void (*on_closed)(struct status_call *); // frees it
};

struct status_call {
	const struct status_call_ops *ops;
	struct rpc_call *rpc;
};
