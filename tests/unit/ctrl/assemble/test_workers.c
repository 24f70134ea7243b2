// SPDX-License-Identifier: Apache-2.0
// How the control thread reads what workers write.
#include "ctrl/assemble/workers.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"

struct heard {
	struct lb_link *links[2];
	uint32_t n[2];
	bool goes_on; // the first worker writes another for each that is read
};

static void on_event(void *ctx, uint32_t worker, const struct lb_event *e)
{
	struct heard *h = ctx;
	h->n[worker]++;
	if (worker == 0 && h->goes_on)
		assert_true(spsc_write(&h->links[0]->events, e));
	assert_true(h->n[0] <= 4 * LB_LINK_EVENTS); // or it never ended
}

static void a_worker_that_never_falls_silent_holds_nobody_up(void **state)
{
	struct lb_shared *shared = lb_shared_new();
	struct heard h = {.goes_on = true};
	for (uint32_t i = 0; i < 2; i++)
		h.links[i] = lb_link_new(i, 0, shared);
	struct workers *w = workers_new(h.links, 2, on_event, &h);
	assert_non_null(w);
	struct lb_event metric = {.kind = LB_EVENT_METRIC}, lost = {.kind = LB_EVENT_LOST};
	assert_true(spsc_write(&h.links[0]->events, &metric));
	assert_true(spsc_write(&h.links[1]->events, &lost));
	workers_poll(w);
	assert_int_equal(h.n[0], LB_LINK_EVENTS);
	assert_int_equal(h.n[1], 1);
	h.goes_on = false;
	workers_poll(w);
	assert_int_equal(h.n[0], LB_LINK_EVENTS + 1);
	workers_free(w);
	lb_link_free(h.links[0]);
	lb_link_free(h.links[1]);
	lb_shared_free(shared);
}

RUN_SUITE("ctrl/workers", cmocka_unit_test(a_worker_that_never_falls_silent_holds_nobody_up))
