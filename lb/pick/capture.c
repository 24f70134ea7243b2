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
	c->turn = c->ring.next;
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
	bool begins = record_ring_is_published(&c->ring);
	struct lb_capture_record *r = record_ring_place(&c->ring, lb_capture_size(kept));
	if (!r) {
		counter_add(&c->n_dropped[interface], 1);
		c->n_lost[interface]++;
		return NULL;
	}
	if (begins) // perhaps not where the one before ended, but at the ring's beginning
		c->turn = (uint8_t *)r - RECORD_RING_HEADER;
	r->len = len;
	r->kept = kept;
	r->about = lb_capture_about(interface, way);
	r->n_lost = c->n_lost[interface];
	c->n_lost[interface] = 0;
	return r;
}

const struct lb_capture_record *lb_capture_peek(struct lb_capture *c, uint64_t *ret_at_ns)
{
	uint32_t len;
	const struct lb_capture_record *r = record_ring_peek(&c->ring, &len);
	if (!r)
		return NULL;
	if (r->is_first) {
		c->begin_ns = r->begin_ns;
		c->end_ns = r->end_ns;
		c->late = false;
	}
	c->late |= r->way == LB_CAPTURE_TX;
	*ret_at_ns = c->late ? c->end_ns : c->begin_ns;
	return r;
}
