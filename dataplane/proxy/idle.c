// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/idle.h"

#include "dataplane/proxy/client.h"
#include "dataplane/proxy/leave.h"
#include "dataplane/proxy/state.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

// A client that connects in order to ask has asked by then.
#define FIRST_REQUEST_NS (10 * NS_PER_SECOND)
#define PER_TURN 256 // sent away
#define LOOKED_AT 16 // of the longest idle, for one of the largest source
#define ABORT_SHARE 16 // one place of so many is left: FIN takes too long

static struct proxy_client *client_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_client, idle);
}

static struct proxy_client *first_of(struct list_link *list)
{
	return list_empty(list) ? NULL : client_of(list->next);
}

static void append(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	c->idle_since_ns = p->now_ns;
	list_append(c->has_asked ? &p->idle.asked : &p->idle.fresh, &c->idle);
}

// Returns when the list's first client is to go; UINT64_MAX = none is.
static uint64_t send_away(struct proxy *p, struct list_link *list, uint32_t *budget)
{
	uint64_t now_ns = twheel_now(p->wheel);
	struct proxy_client *c;
	while ((c = first_of(list))) {
		uint64_t at_ns = c->idle_since_ns + p->conf.terms.idle_timeout_ns;
		if (at_ns > now_ns || !*budget)
			return at_ns;
		--*budget;
		list_remove(&c->idle);
		if (!h2_conn_idle(c->conn.h2)) { // it has not taken the last answer yet
			append(c);
			continue;
		}
		if (proxy_leave_now(c))
			proxy_count(p, PROXY_clients_idled);
	}
	return UINT64_MAX;
}

static void fire(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, idle.timer);
	uint32_t budget = PER_TURN;
	uint64_t at_ns = send_away(p, &p->idle.fresh, &budget);
	uint64_t asked_ns = send_away(p, &p->idle.asked, &budget);
	if (asked_ns < at_ns)
		at_ns = asked_ns;
	if (at_ns != UINT64_MAX)
		twheel_arm(p->wheel, t, at_ns);
}

void proxy_idle_init(struct proxy_idle *idle)
{
	list_init(&idle->fresh);
	list_init(&idle->asked);
	idle->timer.fire = fire;
}

void proxy_idle_follow(struct proxy *p)
{
	twheel_cancel(p->wheel, &p->idle.timer);
	if (p->conf.terms.idle_timeout_ns)
		twheel_arm(p->wheel, &p->idle.timer, twheel_now(p->wheel)); // which looks
}

void proxy_idle_begin(struct proxy_client *c)
{
	struct proxy *p = c->conn.proxy;
	if (proxy_leave_begun(&c->leave))
		return;
	append(c);
	uint64_t timeout_ns = p->conf.terms.idle_timeout_ns;
	if (timeout_ns && !twheel_armed(&p->idle.timer))
		twheel_arm(p->wheel, &p->idle.timer, c->idle_since_ns + timeout_ns);
}

// Whoever is late with a first request goes before all others.
static struct list_link *list_to_thin(struct proxy *p)
{
	struct proxy_idle *idle = &p->idle;
	const struct proxy_client *fresh = first_of(&idle->fresh), *asked = first_of(&idle->asked);
	if (!fresh || !asked)
		return fresh ? &idle->fresh : &idle->asked;
	bool is_late = twheel_now(p->wheel) - fresh->idle_since_ns >= FIRST_REQUEST_NS;
	return is_late || fresh->idle_since_ns < asked->idle_since_ns ? &idle->fresh : &idle->asked;
}

static struct proxy_client *choose(struct list_link *list)
{
	struct proxy_client *chosen = NULL;
	uint32_t n = 0;
	for (struct list_link *l = list->next; l != list && n < LOOKED_AT; l = l->next, n++) {
		struct proxy_client *c = client_of(l);
		if (!h2_conn_idle(c->conn.h2))
			continue;
		if (!chosen || c->source->n_clients > chosen->source->n_clients)
			chosen = c;
	}
	return chosen;
}

void proxy_idle_make_room(struct proxy *p)
{
	struct proxy_client *c = choose(list_to_thin(p));
	if (!c)
		return;
	proxy_count(p, PROXY_clients_evicted);
	if (pool_left(&p->clients) <= p->clients.n_total / ABORT_SHARE)
		proxy_client_abort(c);
	else
		proxy_client_close(c, H2_NO_ERROR);
}
