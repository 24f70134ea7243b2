// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/capture.h"

#include "lb/base/cacheline.h"

#include <stddef.h>

struct lb_capture *lb_capture_new(uint32_t ring_size)
{
	struct lb_capture *c = cacheline_alloc(1, sizeof(*c));
	if (!c)
		return NULL;
	if (record_ring_init(&c->ring, ring_size)) {
		cacheline_free(c);
		return NULL;
	}
	return c;
}

void lb_capture_free(struct lb_capture *c)
{
	if (!c)
		return;
	record_ring_fini(&c->ring);
	cacheline_free(c);
}

struct lb_capture_record *lb_capture_place(
	struct lb_capture *c, uint32_t interface, enum lb_capture_way way, uint32_t len)
{
	uint32_t kept = len < c->ask.snaplen ? len : c->ask.snaplen;
	uint32_t size = (uint32_t)offsetof(struct lb_capture_record, bytes) + kept;
	struct lb_capture_record *r = record_ring_place(&c->ring, size);
	counter_add(&c->n_frames[interface], 1);
	if (!r) {
		counter_add(&c->n_dropped[interface], 1);
		c->n_lost[interface]++;
		return NULL;
	}
	*r = (struct lb_capture_record){.at_ns = c->now_ns,
		.len = len,
		.kept = kept,
		.n_lost = c->n_lost[interface],
		.interface = (uint8_t)interface,
		.way = (uint8_t)way};
	c->n_lost[interface] = 0;
	return r;
}
