// SPDX-License-Identifier: Apache-2.0
#include "lb/pick/capture.h"

#include "lb/base/cacheline.h"

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
	uint32_t kept = lb_capture_kept(c, len);
	struct lb_capture_record *r =
		(struct lb_capture_record *)record_ring_place(&c->ring, lb_capture_size(kept));
	counter_add(&c->n_frames[interface], 1);
	if (!r) {
		counter_add(&c->n_dropped[interface], 1);
		c->n_lost[interface]++;
		return NULL;
	}
	const struct lb_capture_record form = {.n_lost = c->n_lost[interface],
		.interface = (uint8_t)interface,
		.way = (uint8_t)way};
	lb_capture_fill(c, r, way, form.about, len, kept);
	c->n_lost[interface] = 0;
	return r;
}
