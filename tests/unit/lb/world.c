// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lb/world.h"

#include "lb/member/member.h"
#include "tests/support/check.h"

#include <stdio.h>

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	struct world *w = ctx;
	w->n_connects[e->id]++;
	w->connect_ns[e->id] = world_now(w);
}

static void on_release(void *ctx, struct lb_endpoint *e)
{
	struct world *w = ctx;
	w->n_releases[e->id]++;
}

void world_init(struct world *w, uint32_t n_workers, uint64_t seed)
{
	world_init_paced(w, n_workers, seed, 0, 0, 0);
}

void world_init_paced(struct world *w, uint32_t n_workers, uint64_t seed, uint32_t max_young,
	uint32_t max_attempts, uint32_t max_waiting)
{
	*w = (struct world){.wheel = twheel_new(WORLD_START), .n_workers = n_workers};
	rand_init(&w->rand, seed);
	w->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){.wheel = w->wheel,
		.rand = &w->rand,
		.n_workers = n_workers,
		.connect = on_connect,
		.release = on_release,
		.ctx = w,
		.max_young_attempts = max_young,
		.max_attempts = max_attempts,
		.max_waiting = max_waiting,
		.timers = w->timers,
		.on_state = lb_member_on_state});
	assert_non_null(w->connectivity);
}

void world_answer_release(struct world *w, uint32_t id)
{
	assert_true(w->n_releases[id] > 0);
	w->n_releases[id]--;
	for (uint32_t worker = 0; worker < w->n_workers; worker++)
		world_event(w, worker, LB_EVENT_RELEASED, id, "");
}

void world_fini(struct world *w)
{
	for (uint32_t id = 0; id < WORLD_MAX_ENDPOINTS; id++)
		while (w->n_releases[id])
			world_answer_release(w, id);
	assert_int_equal(lb_endpoint_table_count(lb_connectivity_endpoints(w->connectivity)), 0);
	assert_int_equal(lb_connectivity_n_waiting(w->connectivity), 0);
	assert_true(twheel_next_ns(w->wheel) == UINT64_MAX);
	lb_connectivity_free(w->connectivity);
	twheel_free(w->wheel);
}

struct ip_port world_addr(uint32_t n)
{
	return (struct ip_port){ip_from_v4(0x0a520000 + n), 50051};
}

uint32_t world_id(const struct world *w, const struct ip_port *addr)
{
	const struct lb_endpoint_table *t = lb_connectivity_endpoints(w->connectivity);
	for (uint32_t id = 0; id < WORLD_MAX_ENDPOINTS; id++) {
		const struct lb_endpoint *e = lb_endpoint_find(t, id);
		if (e && ip_port_eq(&e->addr, addr))
			return id;
	}
	return UINT32_MAX;
}

uint64_t world_now(const struct world *w)
{
	return twheel_now(w->wheel);
}

void world_pass(struct world *w, uint64_t ns)
{
	uint64_t end = world_now(w) + ns;
	while (world_now(w) < end) {
		uint64_t next = world_now(w) + WORLD_MS;
		twheel_advance(w->wheel, next < end ? next : end);
	}
}

void world_event(
	struct world *w, uint32_t worker, enum lb_event_kind kind, uint32_t id, const char *why)
{
	struct lb_event event = {.kind = kind, .endpoint_id = id};
	snprintf(event.why, sizeof(event.why), "%s", why);
	lb_connectivity_event(w->connectivity, worker, &event);
}
