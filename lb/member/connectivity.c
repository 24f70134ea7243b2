// SPDX-License-Identifier: Apache-2.0
#include "lb/member/connectivity.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/member/attempts.h"
#include "lb/member/subchannel.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"

#include <stddef.h>
#include <stdlib.h>

_Static_assert(LB_MAX_WORKERS <= 64, "one bit a worker");

// More answers than these are not counted: the id is then lost to other addresses.
#define N_RELEASING_MAX 0x7fff

#define TURNS_NS (10 * NS_PER_MS)

// What is known of one endpoint: lies in its place.
struct record {
	struct lb_subchannel subchannel; // if it has users
	uint64_t connected; // bit w: worker w has a connection (MC-03)
};
_Static_assert(sizeof(struct record) <= LB_ENDPOINT_SIZE, "in the endpoint's place");

#define HEAR_ID_NS UINT64_C(500)
#define HEAR_AHEAD_NS (100 * NS_PER_MS)

struct lb_connectivity {
	struct lb_connectivity_env env;
	struct lb_subchannel_env subchannel_env;
	struct lb_endpoint_table *endpoints; // owned
	struct lb_attempts *attempts; // owned
	struct list_link turns; // queued attempts; who has waited longest is the first
	struct twheel_timer turns_timer; // armed while somebody is queued
	uint32_t n_put_off;
	bool admits_all;
	bool was_full; // and that was logged
	uint64_t heard_ns; // until when news have been paid for
};

static struct record *record_of(const struct lb_endpoint *e)
{
	return (struct record *)(uintptr_t)e;
}

// Its snapshots are gone, so no worker picks it any more: what it still has may end (UPD-03).
static void on_unused(void *ctx, struct lb_endpoint *e)
{
	struct lb_connectivity *c = ctx;
	uint32_t n = e->n_releasing + c->env.n_workers;
	e->n_releasing = n < N_RELEASING_MAX ? n & N_RELEASING_MAX : N_RELEASING_MAX;
	c->env.release(c->env.ctx, e);
}

static void on_turns(struct twheel_timer *t)
{
	struct lb_connectivity *c = CONTAINER_OF(t, struct lb_connectivity, turns_timer);
	twheel_arm(c->env.wheel, t, twheel_now(c->env.wheel) + TURNS_NS);
	while (!list_empty(&c->turns) && lb_connectivity_admits(c)) {
		struct lb_queued_attempt *turn =
			CONTAINER_OF(c->turns.next, struct lb_queued_attempt, link);
		lb_connectivity_unqueue(c, turn);
		turn->take(turn);
	}
}

static void on_begin(void *ctx, uint32_t id)
{
	struct lb_connectivity *c = ctx;
	lb_subchannel_begin(&record_of(lb_endpoint_find(c->endpoints, id))->subchannel);
}

struct lb_connectivity *lb_connectivity_new(const struct lb_connectivity_env *env)
{
	CHECK(env->n_workers > 0 && env->n_workers <= LB_MAX_WORKERS);
	struct lb_connectivity *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->env = *env;
	c->subchannel_env = (struct lb_subchannel_env){
		.wheel = env->wheel,
		.rand = env->rand,
		.connect = env->connect,
		.ctx = env->ctx,
		.on_state = env->on_state,
	};
	struct lb_attempts_conf attempts = {.wheel = env->wheel,
		.max_young = env->max_young_attempts,
		.max_under_way = env->max_attempts,
		.begin = on_begin,
		.ctx = c};
	list_init(&c->turns);
	c->turns_timer.fire = on_turns;
	c->attempts = c->subchannel_env.attempts = lb_attempts_new(&attempts);
	c->endpoints = lb_endpoint_table_new(&c->subchannel_env);
	if (!c->attempts || !c->endpoints) {
		lb_endpoint_table_free(c->endpoints);
		lb_attempts_free(c->attempts);
		free(c);
		return NULL;
	}
	lb_endpoint_table_on_unused(c->endpoints, on_unused, c);
	return c;
}

void lb_connectivity_free(struct lb_connectivity *c)
{
	if (!c)
		return;
	for (uint32_t id = 0; id < lb_endpoint_table_n_ids(c->endpoints); id++) {
		struct lb_endpoint *e = lb_endpoint_find(c->endpoints, id);
		if (e && record_of(e)->subchannel.n_users)
			lb_subchannel_fini(&record_of(e)->subchannel);
	}
	DCHECK(!c->n_put_off && list_empty(&c->turns));
	lb_endpoint_table_free(c->endpoints);
	lb_attempts_free(c->attempts);
	lb_subchannel_env_fini(&c->subchannel_env);
	free(c);
}

struct lb_subchannel *lb_connectivity_get(
	struct lb_connectivity *c, const struct ip_port *addr, struct lb_security *security)
{
	struct lb_endpoint *e = lb_endpoint_get(c->endpoints, addr, security, NULL);
	bool is_full = !e && lb_connectivity_is_full(c);
	if (is_full && !c->was_full)
		log_error("too many endpoints", "addresses=%d", LB_MAX_ENDPOINTS);
	c->was_full |= is_full;
	if (!e)
		return NULL;
	struct record *r = record_of(e);
	if (r->subchannel.n_users++ == 0) {
		lb_subchannel_init(&r->subchannel);
		if (r->connected)
			lb_subchannel_connected(&r->subchannel);
	}
	return &r->subchannel;
}

void lb_connectivity_expect(struct lb_connectivity *c, uint32_t n)
{
	lb_endpoint_table_expect(c->endpoints, n);
}

bool lb_connectivity_is_full(const struct lb_connectivity *c)
{
	return lb_endpoint_table_count(c->endpoints) == LB_MAX_ENDPOINTS;
}

void lb_connectivity_put(struct lb_connectivity *c, struct lb_subchannel *s)
{
	struct lb_endpoint *e = lb_subchannel_endpoint(s);
	CHECK(s->n_users > 0);
	if (--s->n_users == 0)
		lb_subchannel_fini(s);
	lb_endpoint_put(c->endpoints, e);
}

static void on_released(struct lb_connectivity *c, struct lb_endpoint *e)
{
	if (e->n_releasing == 0 || e->n_releasing == N_RELEASING_MAX || --e->n_releasing > 0)
		return;
	lb_endpoint_free_released(c->endpoints, e);
	if (lb_endpoint_table_count(c->endpoints) < LB_MAX_ENDPOINTS / 10 * 9)
		c->was_full = false;
}

static void disconnected(struct record *r, uint64_t bit, const char *why, bool was_short_lived)
{
	r->connected &= ~bit;
	if (r->subchannel.n_users && !r->connected)
		lb_subchannel_lost(&r->subchannel, why, was_short_lived);
}

// The next subchannel with users from this id on, which becomes that of the one after; NULL = none.
static struct lb_subchannel *next_in_use(struct lb_connectivity *c, uint32_t *id)
{
	while (*id < lb_endpoint_table_n_ids(c->endpoints)) {
		struct lb_endpoint *e = lb_endpoint_find(c->endpoints, (*id)++);
		if (e && record_of(e)->subchannel.n_users)
			return &record_of(e)->subchannel;
	}
	return NULL;
}

uint32_t lb_connectivity_heard(struct lb_connectivity *c, const struct ip_addr *ip)
{
	struct lb_subchannel *s;
	uint32_t n = 0;
	if (!c->subchannel_env.n_efforts)
		return 0;
	for (uint32_t id = 0; (s = next_in_use(c, &id));)
		if (!ip || ip_eq(&s->endpoint.addr.ip, ip))
			n += lb_subchannel_heard(s);
	return n;
}

// Anybody on a link can make news. To look for a host's endpoints takes some 5 ns an id: it may
// take a hundredth of this thread's time, and what comes beyond that is forgotten.
static void on_neighbor(struct lb_connectivity *c, const struct ip_addr *ip)
{
	uint64_t now_ns = twheel_now(c->env.wheel);
	if (c->heard_ns < now_ns)
		c->heard_ns = now_ns;
	if (c->heard_ns - now_ns > HEAR_AHEAD_NS)
		return;
	c->heard_ns += lb_endpoint_table_n_ids(c->endpoints) * HEAR_ID_NS;
	(void)lb_connectivity_heard(c, ip);
}

uint32_t lb_connectivity_retry(struct lb_connectivity *c, const struct ip_port *addr)
{
	struct lb_subchannel *s;
	uint32_t n = 0;
	for (uint32_t id = 0; (s = next_in_use(c, &id));)
		if (!addr || ip_port_eq(&s->endpoint.addr, addr))
			n += lb_subchannel_retry(s);
	return n;
}

void lb_connectivity_event(struct lb_connectivity *c, uint32_t worker, const struct lb_event *event)
{
	if (event->kind == LB_EVENT_NEIGHBOR) {
		on_neighbor(c, &event->neighbor);
		return;
	}
	struct lb_endpoint *e = lb_endpoint_find(c->endpoints, event->endpoint_id);
	if (!e || worker >= c->env.n_workers)
		return;
	struct record *r = record_of(e);
	uint64_t bit = (uint64_t)1 << worker;
	switch (event->kind) {
	case LB_EVENT_CONNECTED:
		r->connected |= bit;
		if (r->subchannel.n_users)
			lb_subchannel_connected(&r->subchannel);
		break;
	case LB_EVENT_FAILED:
		if (r->subchannel.n_users)
			lb_subchannel_failed(&r->subchannel, event->why);
		break;
	case LB_EVENT_LOST:
	case LB_EVENT_SHORT_LIVED:
		disconnected(r, bit, event->why, event->kind == LB_EVENT_SHORT_LIVED);
		break;
	case LB_EVENT_RELEASED:
		disconnected(r, bit, "released", false);
		on_released(c, e);
		break;
	case LB_EVENT_DRAINED:
	case LB_EVENT_CONNECT_REQUEST:
	case LB_EVENT_ORCA:
	case LB_EVENT_METRIC:
	case LB_EVENT_NEIGHBOR:
	case LB_EVENT_PROBED:
	case LB_EVENT_PROBE_ENDED:
		break;
	}
}

bool lb_connectivity_admits(const struct lb_connectivity *c)
{
	// What failed comes again and again, and would keep out for good who never had a turn.
	uint64_t max = (uint64_t)c->env.max_waiting + c->subchannel_env.n_efforts;
	return c->admits_all || !c->env.max_waiting || lb_attempts_n_waiting(c->attempts) < max;
}

void lb_connectivity_admit_all(struct lb_connectivity *c, bool all)
{
	c->admits_all = all;
}

bool lb_connectivity_has(const struct lb_connectivity *c, const struct ip_port *addr,
	const struct lb_security *security)
{
	return lb_endpoint_has(c->endpoints, addr, security);
}

void lb_connectivity_put_off(struct lb_connectivity *c)
{
	c->n_put_off++;
}

void lb_connectivity_take_up(struct lb_connectivity *c)
{
	DCHECK(c->n_put_off > 0);
	c->n_put_off--;
}

void lb_connectivity_queue(struct lb_connectivity *c, struct lb_queued_attempt *t)
{
	if (list_linked(&t->link))
		return;
	if (list_empty(&c->turns))
		twheel_arm(c->env.wheel, &c->turns_timer, twheel_now(c->env.wheel) + TURNS_NS);
	list_append(&c->turns, &t->link);
}

void lb_connectivity_unqueue(struct lb_connectivity *c, struct lb_queued_attempt *t)
{
	if (!list_linked(&t->link))
		return;
	list_remove(&t->link);
	if (list_empty(&c->turns))
		twheel_cancel(c->env.wheel, &c->turns_timer);
}

struct twheel *lb_connectivity_wheel(const struct lb_connectivity *c)
{
	return c->env.wheel;
}

uint32_t lb_connectivity_n_waiting(const struct lb_connectivity *c)
{
	return lb_attempts_n_waiting(c->attempts) + c->n_put_off;
}

uint32_t lb_connectivity_n_attempts(const struct lb_connectivity *c)
{
	return lb_attempts_n_under_way(c->attempts);
}

bool lb_connectivity_may_expedite(const struct lb_connectivity *c)
{
	return lb_connectivity_n_waiting(c) && lb_attempts_may_expedite(c->attempts);
}

uint64_t lb_connectivity_aging_ns(const struct lb_connectivity *c)
{
	return lb_attempts_aging_ns(c->attempts);
}

struct lb_timers *lb_connectivity_timers(
	const struct lb_connectivity *c, const struct lb_endpoint *e)
{
	return c->env.timers ? &c->env.timers[e->id] : NULL;
}

struct lb_endpoint_table *lb_connectivity_endpoints(struct lb_connectivity *c)
{
	return c->endpoints;
}
