// SPDX-License-Identifier: Apache-2.0
// Tells an operator whom this worker knows on its links, and which addresses it answers for, as
// answers of lb/pick/inflight.h: so many entries each millisecond.
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"

#include <stdint.h>

struct lb_inflight;
struct net;

struct net_tell {
	struct twheel_timer timer; // armed while a question is open
	struct net *net; // borrowed
	struct lb_inflight *to; // borrowed; NULL = nothing is asked
	uint32_t at; // the next entry
};

// The question is the worker's now; its kind is LB_INFLIGHT_NEIGHBORS or LB_INFLIGHT_ADDRESSES.
void net_tell_begin(struct net *, struct lb_inflight *);
void net_tell_fini(struct net *);
