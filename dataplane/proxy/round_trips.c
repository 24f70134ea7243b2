// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/round_trips.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"

#define STEP_NS (20 * NS_PER_MS)
#define LOOKS 64 // in a step: two misses of the cache each
#define ROUND_NS NS_PER_SECOND

// One that was put back into its pool has no TCP connection any more.
static void look_at(const struct proxy_conn *c, struct histogram *to)
{
	uint64_t ns = c->tcp ? tcp_conn_round_trip_ns(c->tcp) : 0;
	if (ns)
		histogram_add(to, histogram_place(ns), ns);
}

static const struct pool *pool_of(const struct proxy *p)
{
	return p->round_trips.at_upstreams ? &p->upstreams : &p->clients;
}

static void look_at_next(struct proxy *p)
{
	struct proxy_round_trips *t = &p->round_trips;
	void *object = pool_at(pool_of(p), t->at++);
	if (t->at_upstreams)
		look_at(&((struct proxy_upstream *)object)->conn, &p->link->backend_round_trips);
	else
		look_at(&((struct proxy_client *)object)->conn, &p->link->client_round_trips);
}

// Behind a pool's last object. True = the round is over.
static bool go_on(struct proxy_round_trips *t)
{
	t->at = 0;
	t->at_upstreams = !t->at_upstreams;
	return !t->at_upstreams;
}

static void look_at_some(struct twheel_timer *timer)
{
	struct proxy *p = CONTAINER_OF(timer, struct proxy, round_trips.timer);
	struct proxy_round_trips *t = &p->round_trips;
	uint64_t now_ns = twheel_now(p->wheel), next_ns = now_ns + STEP_NS;
	if (!t->at && !t->at_upstreams)
		t->round_ns = now_ns;
	for (uint32_t n = 0; n < LOOKS; n++) {
		if (t->at < pool_n_seen(pool_of(p))) {
			look_at_next(p);
		} else if (go_on(t)) {
			next_ns =
				next_ns > t->round_ns + ROUND_NS ? next_ns : t->round_ns + ROUND_NS;
			break;
		}
	}
	twheel_arm(p->wheel, timer, next_ns);
}

void proxy_round_trips_begin(struct proxy *p)
{
	p->round_trips.timer.fire = look_at_some;
	twheel_arm(p->wheel, &p->round_trips.timer, twheel_now(p->wheel) + ROUND_NS);
}
