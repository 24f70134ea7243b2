// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/books.h"

#include "lb/base/check.h"
#include "lb/pick/breaker.h"
#include "lb/pick/link.h"

#include <string.h>

uint64_t books_counter(const struct proxy *p, const char *name)
{
	struct counter_set set = proxy_counters(p);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	CHECK(!"such a counter");
	return 0;
}

static uint64_t sum(const uint64_t *values, uint32_t n)
{
	uint64_t total = 0;
	for (uint32_t i = 0; i < n; i++)
		total += values[i];
	return total;
}

// Attempts in flight: each that was sent counts once, and ends once.
static uint64_t check_members(const struct books *b)
{
	const struct lb_link *l = b->link;
	uint64_t in_flight = 0, entered = 0, active = 0;
	for (uint32_t i = 0; i < b->control->n_members; i++) {
		const struct lb_member_counters *m = &l->members[i];
		uint64_t ended = m->ok + m->failed + m->unjudged;
		CHECK(ended <= m->issued);
		in_flight += m->issued - ended;
		CHECK(l->shared->active[i] <= m->issued - ended);
		active += l->shared->active[i];
	}
	for (uint32_t i = 0; i < N_CLUSTERS; i++)
		entered += lb_breaker_in_flight(b->control->leaves[i].breaker);
	CHECK(entered == in_flight + books_counter(b->proxy, "spare_places") &&
		active <= in_flight);
	CHECK(in_flight <= books_counter(b->proxy, "requests"));
	return in_flight;
}

void books_check(const struct books *b)
{
	const struct lb_link *l = b->link;
	uint64_t queued = 0, active = 0;
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		const struct lb_cluster_counters *c = &l->clusters[i];
		CHECK(c->started == sum(c->ended, LB_N_CAUSES) + c->active);
		CHECK(c->queued <= c->active);
		queued += c->queued;
		active += c->active;
	}
	uint64_t live = books_counter(b->proxy, "requests");
	uint64_t ended = sum(l->counters.ended, LB_N_CAUSES);
	CHECK(queued == books_counter(b->proxy, "requests_waiting") +
				books_counter(b->proxy, "requests_paused"));
	uint64_t retried = books_counter(b->proxy, "transparent_retries") +
	                   books_counter(b->proxy, "idempotent_retries") +
	                   books_counter(b->proxy, "retries");
	CHECK(queued <= b->max_queued + retried);
	CHECK(ended + active <= l->counters.requests && l->counters.requests <= ended + live);
	CHECK(live <= b->max_requests);
	check_members(b);
}

void books_check_closed(const struct books *b)
{
	CHECK(books_counter(b->proxy, "requests") == 0);
	CHECK(books_counter(b->proxy, "requests_waiting") == 0);
	CHECK(books_counter(b->proxy, "requests_paused") == 0);
	CHECK(books_counter(b->proxy, "clients") == 0);
	CHECK(books_counter(b->proxy, "upstreams") == 0);
	CHECK(b->link->counters.requests == sum(b->link->counters.ended, LB_N_CAUSES));
	CHECK(b->link->counters.client_connections == 0);
	CHECK(b->link->shared->active_faults == 0);
	CHECK(check_members(b) == 0);
	for (uint32_t i = 0; i < 64; i++) {
		CHECK(b->link->endpoints[i].active == 0);
		CHECK(b->link->endpoints[i].connections == 0);
	}
}
