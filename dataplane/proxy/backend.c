// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/backend.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/pick/cells.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

#include <stdio.h>

static void set_ready_bit(struct proxy_backend *b, bool ready)
{
	uint64_t bit = UINT64_C(1) << (b->id % 64);
	if (ready)
		b->proxy->ready[b->id / 64] |= bit;
	else
		b->proxy->ready[b->id / 64] &= ~bit;
}

static void list_to_tell(struct proxy_backend *b)
{
	struct proxy *p = b->proxy;
	if (b->tell_listed)
		return;
	b->tell_listed = true;
	b->tell_next = NULL;
	if (p->tell_tail)
		p->tell_tail->tell_next = b;
	else
		p->tell_head = b;
	p->tell_tail = b;
}

void proxy_backend_changed(struct proxy_backend *b)
{
	struct proxy *p = b->proxy;
	if (b->serve_listed)
		return;
	b->serve_listed = true;
	b->serve_next = NULL;
	if (p->serve_tail)
		p->serve_tail->serve_next = b;
	else
		p->serve_head = b;
	p->serve_tail = b;
}

// By age, the oldest first.
static void add_open(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (u->open)
		return;
	struct proxy_upstream *prev = b->open_tail;
	while (prev && (int32_t)(prev->number - u->number) > 0)
		prev = prev->open_prev;
	u->open = true;
	u->open_prev = prev;
	u->open_next = prev ? prev->open_next : b->open_head;
	if (prev)
		prev->open_next = u;
	else
		b->open_head = u;
	if (u->open_next)
		u->open_next->open_prev = u;
	else
		b->open_tail = u;
}

static void remove_open(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (!u->open)
		return;
	u->open = false;
	if (u->open_prev)
		u->open_prev->open_next = u->open_next;
	else
		b->open_head = u->open_next;
	if (u->open_next)
		u->open_next->open_prev = u->open_prev;
	else
		b->open_tail = u->open_prev;
}

// RELEASE is taken back by a newer pick or CONNECT: what is left of the connections serves on
// (UPD-03).
static void take_up_again(struct proxy_backend *b)
{
	b->releasing = false;
	list_to_tell(b); // answers the RELEASE
	for (struct proxy_upstream *u = b->conns; u; u = u->next) {
		if (u->state != PROXY_UPSTREAM_READY)
			continue;
		add_open(b, u);
		set_ready_bit(b, true);
		proxy_queues_changed(&b->proxy->queues);
	}
}

static struct proxy_backend *use(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = &p->backends[ep->id];
	if (!b->proxy) {
		uint64_t barred = b->barred;
		*b = (struct proxy_backend){
			.proxy = p, .id = ep->id, .addr = ep->addr, .barred = barred};
	}
	DCHECK(ip_port_eq(&b->addr, &ep->addr)); // an id gets a new address only after RELEASED
	if (b->releasing)
		take_up_again(b);
	return b;
}

static struct proxy_backend *find(struct proxy *p, uint32_t id, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = &p->backends[id];
	if (b->proxy && !b->releasing)
		return b;
	if (p->snapshot->version <= b->barred)
		return NULL;
	return use(p, ep);
}

// The cell has the id, so that the endpoint need not be looked at.
struct proxy_backend *proxy_backend_find(struct proxy *p, const struct lb_cell *cell)
{
	return find(p, cell->endpoint_id, cell->endpoint);
}

bool proxy_backend_is_ready(const struct proxy *p, const struct lb_cell *cell)
{
	return p->ready[cell->endpoint_id / 64] >> (cell->endpoint_id % 64) & 1;
}

static void begin_attempt(struct proxy_backend *b)
{
	const char *why;
	struct proxy_upstream *u = proxy_upstream_connect(b, &why);
	b->n_connecting++;
	if (!u) {
		proxy_backend_attempt_failed(b, why);
		return;
	}
	b->n_conns++;
	u->next = b->conns;
	if (u->next)
		u->next->prev = u;
	b->conns = u;
}

static void retry_fire(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, retry_timer);
	proxy_queues_changed(&p->queues);
}

// An attempt of our own, unless one failed lately: then the queues are picked again when it may be
// repeated.
static void attempt_if_due(struct proxy_backend *b)
{
	struct proxy *p = b->proxy;
	if (b->n_connecting || b->n_ready >= p->conf.max_conns_per_endpoint || p->freeing)
		return;
	if (twheel_now(p->wheel) >= b->retry_at_ns) {
		begin_attempt(b);
	} else if (!twheel_armed(&p->retry_timer) || b->retry_at_ns < p->retry_at_ns) {
		p->retry_timer.fire = retry_fire;
		p->retry_at_ns = b->retry_at_ns;
		twheel_arm(p->wheel, &p->retry_timer, b->retry_at_ns);
	}
}

void proxy_backend_want(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = find(p, ep->id, ep);
	if (b && !b->n_ready)
		attempt_if_due(b);
}

static struct proxy_upstream *oldest_with_room(struct proxy_backend *b)
{
	while (b->open_head) {
		struct proxy_upstream *u = b->open_head;
		if (proxy_upstream_has_room(u))
			return u;
		remove_open(b, u);
	}
	return NULL;
}

// NULL = that is the refuser, or there is none.
static struct proxy_upstream *newest_with_room(struct proxy_backend *b, uint32_t refuser)
{
	struct proxy_upstream *prev;
	for (struct proxy_upstream *u = b->open_tail; u; u = prev) {
		prev = u->open_prev;
		if (!proxy_upstream_has_room(u))
			remove_open(b, u);
		else if (u->number != refuser)
			return u;
	}
	return NULL;
}

// Many backends end a connection after so many requests. Those that this has left behind get the
// one that is farthest from it.
static struct proxy_upstream *room_for(struct proxy_backend *b, const struct proxy_request *r)
{
	struct proxy_upstream *u = NULL;
	if (r->resend.n)
		u = newest_with_room(b, r->resend.refuser);
	return u ? u : oldest_with_room(b);
}

struct proxy_upstream *proxy_backend_room(struct proxy_backend *b, const struct proxy_request *r)
{
	return b->waiting.head ? NULL : room_for(b, r);
}

void proxy_backend_add(struct proxy_backend *b)
{
	attempt_if_due(b);
}

void proxy_backend_wait(struct proxy_backend *b, struct proxy_request *r)
{
	proxy_list_append(&b->waiting, r);
	proxy_backend_changed(b);
}

// Back to the cluster's queue, in order, before those that came later.
static void give_up_waiting(struct proxy_backend *b)
{
	while (b->waiting.tail)
		b->proxy->attempts->on_no_room(b->waiting.tail);
}

static bool serve(struct proxy_backend *b)
{
	struct proxy_upstream *u;
	bool moved = false;
	while (b->waiting.head && !b->releasing && (u = room_for(b, b->waiting.head))) {
		b->proxy->attempts->on_room(b->waiting.head, u);
		moved = true;
	}
	if (!b->waiting.head)
		return moved;
	if (!b->releasing)
		attempt_if_due(b);
	// One that retires gives no room any more, however long its streams last.
	if (b->releasing || (!b->n_ready && !b->n_connecting)) {
		give_up_waiting(b);
		moved = true;
	}
	return moved;
}

bool proxy_backend_serve_all(struct proxy *p)
{
	bool moved = false;
	while (p->serve_head) {
		struct proxy_backend *b = p->serve_head;
		p->serve_head = b->serve_next;
		if (!p->serve_head)
			p->serve_tail = NULL;
		b->serve_listed = false;
		if (b->proxy)
			moved |= serve(b);
	}
	return moved;
}

void proxy_backend_connect(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = use(p, ep);
	b->barred = 0;
	b->connect_owed = true;
	list_to_tell(b);
	if (!b->n_ready && !b->n_connecting)
		begin_attempt(b);
}

void proxy_backend_release(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = &p->backends[ep->id];
	if (!b->proxy)
		use(p, ep);
	b->n_release_owed++;
	b->releasing = true;
	b->barred = p->version;
	b->told_up = b->connect_owed = b->replaces = false; // nobody asks any more
	set_ready_bit(b, false);
	list_to_tell(b);
	proxy_backend_changed(b);
	struct proxy_upstream *next;
	for (struct proxy_upstream *u = b->conns; u; u = next) {
		next = u->next;
		remove_open(b, u);
		if (u->state == PROXY_UPSTREAM_CONNECTING)
			proxy_upstream_retire(u, "released");
		else
			proxy_conn_touch(&u->conn); // closed there if it has no stream
	}
}

// Own attempts wait.
static void rest(struct proxy_backend *b)
{
	b->retry_at_ns =
		twheel_now(b->proxy->wheel) + backoff_next_ns(&b->backoff, &b->proxy->rand);
}

void proxy_backend_attempt_failed(struct proxy_backend *b, const char *why)
{
	struct proxy *p = b->proxy;
	b->n_connecting--;
	b->why = why;
	b->was_short_lived |= b->replaces;
	b->replaces = false;
	list_to_tell(b);
	proxy_backend_changed(b);
	if (b->releasing)
		return; // cut short, not failed
	rest(b);
	proxy_count(p, PROXY_connect_failures);
	proxy_queues_changed(&p->queues);
}

void proxy_backend_ready(struct proxy_backend *b, struct proxy_upstream *u)
{
	b->n_connecting--;
	b->n_ready++;
	b->replaces = false;
	backoff_reset(&b->backoff);
	b->retry_at_ns = 0;
	list_to_tell(b);
	if (b->releasing)
		return;
	set_ready_bit(b, true);
	proxy_backend_opened(b, u);
	proxy_queues_changed(&b->proxy->queues);
}

void proxy_backend_opened(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (b->releasing)
		return;
	add_open(b, u);
	if (b->waiting.head)
		proxy_backend_changed(b);
}

void proxy_backend_not_ready(struct proxy_backend *b, struct proxy_upstream *u, const char *why)
{
	bool was_short_lived = !u->has_answered && !u->promises && !u->spent &&
	                       b->proxy->now_ns - u->ready_ns < LB_SHORT_LIVED_NS;
	remove_open(b, u);
	b->n_ready--;
	if (was_short_lived)
		rest(b);
	if (b->n_ready)
		return;
	b->why = why;
	b->was_short_lived = was_short_lived;
	set_ready_bit(b, false);
	// Behind those that this connection leaves to be sent again, who are put there next.
	give_up_waiting(b);
	list_to_tell(b);
	proxy_backend_changed(b);
	proxy_queues_changed(&b->proxy->queues);
}

void proxy_backend_replace(struct proxy_backend *b)
{
	if (b->n_ready || b->releasing)
		return;
	attempt_if_due(b);
	b->replaces = b->n_connecting && b->told_up;
	if (b->replaces)
		proxy_upstream_expect(b->conns); // the newest
}

void proxy_backend_is_late(struct proxy_backend *b)
{
	b->replaces = false;
	list_to_tell(b);
}

void proxy_backend_remove(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (u->prev)
		u->prev->next = u->next;
	else
		b->conns = u->next;
	if (u->next)
		u->next->prev = u->prev;
	b->n_conns--;
	list_to_tell(b);
}

static bool tell(struct proxy_backend *b, enum lb_event_kind kind)
{
	struct lb_event e = {.kind = kind, .endpoint_id = b->id};
	if (kind == LB_EVENT_FAILED || kind == LB_EVENT_LOST || kind == LB_EVENT_SHORT_LIVED)
		snprintf(e.why, sizeof(e.why), "%s", b->why ? b->why : "closed");
	return spsc_write(&b->proxy->link->events, &e);
}

// Told by comparing what is with what the control thread knows, so that a full ring can delay an
// event but not lose a state. False = the ring is full.
static bool tell_one(struct proxy_backend *b)
{
	bool ready = b->n_ready > 0 && !b->releasing;
	while (b->n_release_owed && (!b->releasing || !b->n_conns)) {
		if (!tell(b, LB_EVENT_RELEASED))
			return false;
		b->n_release_owed--;
	}
	if (!ready && !b->replaces && b->told_up) {
		if (!tell(b, b->was_short_lived ? LB_EVENT_SHORT_LIVED : LB_EVENT_LOST))
			return false;
		b->told_up = false;
	}
	if (ready && (!b->told_up || b->connect_owed)) {
		if (!tell(b, LB_EVENT_CONNECTED))
			return false;
		b->told_up = true;
		b->connect_owed = false;
	}
	if (b->connect_owed && !b->n_connecting) {
		if (!tell(b, LB_EVENT_FAILED))
			return false;
		b->connect_owed = false;
	}
	return true;
}

void proxy_backend_tell_all(struct proxy *p)
{
	while (p->tell_head) {
		struct proxy_backend *b = p->tell_head;
		if (!tell_one(b)) {
			proxy_count(p, PROXY_events_delayed);
			return;
		}
		p->tell_head = b->tell_next;
		if (!p->tell_head)
			p->tell_tail = NULL;
		b->tell_listed = false;
		if (b->releasing && !b->n_conns && !b->waiting.head && !b->serve_listed)
			*b = (struct proxy_backend){.barred = b->barred};
	}
}
