// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/pipe_control.h"

#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/bench/far.h"

#include <stdlib.h>

// tests/sim/proxy/control.c takes of the simulation's wire only this, and the time.
struct ip_addr wire_address(uint32_t host, uint32_t last)
{
	return ip_from_v4(10u << 24 | host << 8 | last);
}

struct pipe_control *pipe_control_new(uint32_t n_workers, uint64_t now_ns)
{
	struct pipe_control *c = calloc(1, sizeof(*c));
	CHECK(c && n_workers <= PIPE_MAX_WORKERS);
	far_make_blocks();
	c->n_workers = n_workers;
	c->shared = lb_shared_new();
	CHECK(c->shared);
	for (uint32_t i = 0; i < n_workers; i++) {
		c->links[i] = lb_link_new(i, (int)i, c->shared);
		CHECK(c->links[i]);
	}
	c->wire.now_ns = now_ns;
	rand_init(&c->wire.rand, 1);
	control_init(&c->control, &c->wire, c->links[0], n_workers);
	control_set_endpoints(&c->control, 0, 2, (1u << PIPE_BACKENDS) - 1);
	return c;
}

void pipe_control_publish(struct pipe_control *c)
{
	struct lb_snapshot *copy = lb_snapshot_copy(c->control.snapshot);
	CHECK(copy && !c->slot);
	c->slot = lb_slot_new(copy);
	CHECK(c->slot);
}
