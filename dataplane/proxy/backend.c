// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/backend.h"

#include "dataplane/proxy/backend_tell.h"
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
	if (b->of)
		return;
	if (ready)
		b->proxy->ready[b->id / 64] |= bit;
	else
		b->proxy->ready[b->id / 64] &= ~bit;
}

// A client's is nothing that the control thread knows of.
static void tell_later(struct proxy_backend *b)
{
	if (b->of)
		proxy_backend_changed(b);
	else
		proxy_backend_tell_later(b);
}

void proxy_backend_changed(struct proxy_backend *b)
{
	if (b->serve_queued)
		return;
	b->serve_queued = true;
	STAILQ_INSERT_TAIL(&b->proxy->serve, b, serve_next);
}

static struct proxy_upstream *conn_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_upstream, link);
}

static struct proxy_backend *clients_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_backend, clients);
}

static struct proxy_upstream *open_of(struct list_link *l)
{
	return CONTAINER_OF(l, struct proxy_upstream, open);
}

// Picks of the endpoint may come out otherwise now.
static void endpoint_changed(struct proxy_backend *b)
{
	if (!b->of)
		proxy_queues_changed(&b->proxy->queues);
}

// By age, the oldest first.
static void add_open(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (list_linked(&u->open) || b->is_private)
		return;
	struct list_link *at = b->open.prev;
	while (at != &b->open && (int32_t)(open_of(at)->number - u->number) > 0)
		at = at->prev;
	list_insert(at, &u->open);
}

// RELEASE is taken back by a newer pick or CONNECT: what is left of the connections serves on
// (UPD-03).
static void take_up_again(struct proxy_backend *b)
{
	b->releasing = false;
	tell_later(b); // answers the RELEASE
	for (struct list_link *l = b->conns.next; l != &b->conns; l = l->next) {
		struct proxy_upstream *u = conn_of(l);
		if (u->state != PROXY_UPSTREAM_READY)
			continue;
		add_open(b, u);
		set_ready_bit(b, true);
		proxy_queues_changed(&b->proxy->queues);
	}
}

static void init(struct proxy_backend *b, struct proxy *p, const struct lb_endpoint *ep)
{
	*b = (struct proxy_backend){
		.proxy = p, .endpoint = ep, .id = ep->id, .addr = ep->addr, .n_kept = 1};
	list_init(&b->conns);
	list_init(&b->open);
	list_init(&b->waiting);
}

void proxy_backend_begin_clients(
	struct proxy_backend *b, struct proxy_backend *of, const struct proxy_client *client)
{
	init(b, of->proxy, of->endpoint);
	b->n_kept = 0;
	b->of = of;
	b->client = client;
	list_append(&of->clients, &b->clients);
	proxy_backend_changed(b); // ends it if it is not used after all
}

static struct proxy_backend *use(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = &p->backends[ep->id];
	if (!b->proxy) {
		uint64_t barred = b->barred;
		init(b, p, ep);
		list_init(&b->clients);
		b->barred = barred;
		b->is_private = lb_endpoint_header(ep);
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
	struct proxy *p = b->proxy;
	const char *why;
	struct proxy_upstream *u = proxy_upstream_connect(b, &why);
	b->n_connecting++;
	if (!u) {
		proxy_backend_attempt_failed(b, why);
		return;
	}
	b->n_conns++;
	p->client_backends.n_conns += b->of != NULL;
	list_insert(&b->conns, &u->link);
}

static void retry_fire(struct twheel_timer *t)
{
	struct proxy *p = CONTAINER_OF(t, struct proxy, retry_timer);
	proxy_queues_changed(&p->queues);
}

static bool may_have_another(const struct proxy_backend *b)
{
	const struct proxy *p = b->proxy;
	const struct proxy_client_backends *all = &p->client_backends;
	bool is_full = b->of && b->n_ready && all->n_conns >= all->pool.n_total; // PP-19
	return !is_full && b->n_ready < p->conf.max_conns_per_endpoint;
}

// An attempt of our own, unless one failed lately: then the queues are picked again when it may be
// repeated.
static void attempt_if_due(struct proxy_backend *b)
{
	struct proxy *p = b->proxy;
	if (b->n_connecting || !may_have_another(b) || p->freeing)
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
	while (!list_empty(&b->open)) {
		struct proxy_upstream *u = open_of(b->open.next);
		if (proxy_upstream_has_room(u))
			return u;
		list_remove(&u->open);
	}
	return NULL;
}

// NULL = that is the refuser, or there is none.
static struct proxy_upstream *newest_with_room(struct proxy_backend *b, uint32_t refuser)
{
	for (struct list_link *l = b->open.prev, *prev; l != &b->open; l = prev) {
		struct proxy_upstream *u = open_of(l);
		prev = l->prev;
		if (!proxy_upstream_has_room(u))
			list_remove(&u->open);
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
	return list_empty(&b->waiting) ? room_for(b, r) : NULL;
}

void proxy_backend_add(struct proxy_backend *b)
{
	attempt_if_due(b);
}

void proxy_backend_wait(struct proxy_backend *b, struct proxy_request *r)
{
	proxy_line_append(&b->proxy->lines, &b->waiting, r);
	proxy_backend_changed(b);
}

// Back to the cluster's queue, before those that came later, one source's after the other's.
static void give_up_waiting(struct proxy_backend *b)
{
	for (struct proxy_request *r; (r = proxy_line_last(&b->waiting));)
		b->proxy->attempts->on_no_room(r);
}

// The endpoint is down: who waits for a connection of its client's own may go elsewhere (PP-18).
static void give_up_clients_waiting(struct proxy_backend *b)
{
	for (struct list_link *l = b->clients.next; l != &b->clients; l = l->next)
		if (!clients_of(l)->n_ready)
			give_up_waiting(clients_of(l));
}

static __attribute__((noinline)) bool serve(struct proxy_backend *b)
{
	struct proxy_request *r;
	struct proxy_upstream *u;
	bool moved = false;
	while ((r = proxy_line_first(&b->waiting)) && !b->releasing && (u = room_for(b, r))) {
		proxy_line_turn(&b->waiting);
		b->proxy->attempts->on_room(r, u);
		moved = true;
	}
	if (list_empty(&b->waiting))
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

bool proxy_backend_rests(const struct proxy_backend *b)
{
	return !b->n_ready && !b->n_connecting && twheel_now(b->proxy->wheel) < b->retry_at_ns;
}

static bool is_over(const struct proxy_backend *b)
{
	return !b->n_conns && list_empty(&b->waiting) && !b->serve_queued &&
	       (b->releasing || !proxy_backend_rests(b));
}

static void end_clients(struct proxy_backend *b)
{
	list_remove(&b->clients);
	tell_later(b->of); // it may wait to be released
	b->proxy->attempts->on_over(b);
}

bool proxy_backend_serve_all(struct proxy *p)
{
	bool moved = false;
	struct proxy_backend *b;
	while ((b = STAILQ_FIRST(&p->serve))) {
		STAILQ_REMOVE_HEAD(&p->serve, serve_next);
		b->serve_queued = false;
		if (b->proxy)
			moved |= serve(b);
		if (b->of && is_over(b))
			end_clients(b);
	}
	return moved;
}

void proxy_backend_connect(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = use(p, ep);
	b->barred = 0;
	b->connect_owed = true;
	tell_later(b);
	if (!b->n_ready && !b->n_connecting)
		begin_attempt(b);
}

void proxy_backend_close(struct proxy_backend *b)
{
	b->releasing = true;
	proxy_backend_changed(b);
	for (struct list_link *l = b->conns.next, *next; l != &b->conns; l = next) {
		struct proxy_upstream *u = conn_of(l);
		next = l->next;
		list_remove(&u->open);
		if (u->state == PROXY_UPSTREAM_CONNECTING)
			proxy_upstream_retire(u, "released");
		else
			proxy_conn_touch(&u->conn); // closed there if it has no stream
	}
}

void proxy_backend_release(struct proxy *p, const struct lb_endpoint *ep)
{
	struct proxy_backend *b = &p->backends[ep->id];
	if (!b->proxy)
		use(p, ep);
	b->n_release_owed++;
	b->barred = p->version;
	b->told_up = b->connect_owed = b->replaces = false; // nobody asks any more
	set_ready_bit(b, false);
	tell_later(b);
	proxy_backend_close(b);
	for (struct list_link *l = b->clients.next; l != &b->clients; l = l->next)
		proxy_backend_close(clients_of(l));
}

// Own attempts wait.
static void rest(struct proxy_backend *b)
{
	b->retry_at_ns =
		twheel_now(b->proxy->wheel) + backoff_next_ns(&b->backoff, &b->proxy->rand);
	if (b->of)
		b->proxy->attempts->on_rest(b);
}

// The text may be that of a connection that goes.
static void set_why(struct proxy_backend *b, const char *why)
{
	snprintf(b->why, sizeof(b->why), "%s", why);
}

// A client's: they must not be picked for again and again, as the endpoint stays ready.
static void fail_waiting(struct proxy_backend *b)
{
	for (struct proxy_request *r; (r = proxy_line_first(&b->waiting));)
		b->proxy->attempts->on_unconnected(r, b);
}

void proxy_backend_attempt_failed(struct proxy_backend *b, const char *why)
{
	struct proxy *p = b->proxy;
	b->n_connecting--;
	set_why(b, why);
	b->was_short_lived |= b->replaces;
	b->replaces = false;
	tell_later(b);
	proxy_backend_changed(b);
	if (b->releasing)
		return; // cut short, not failed
	rest(b);
	proxy_count(p, PROXY_connect_failures);
	endpoint_changed(b);
	if (b->of && !b->n_ready)
		fail_waiting(b);
}

// The others get what would have gone to one more (max_streams() of upstream.c).
static void open_all(struct proxy_backend *b)
{
	for (struct list_link *l = b->conns.next; l != &b->conns; l = l->next) {
		struct proxy_upstream *u = CONTAINER_OF(l, struct proxy_upstream, link);
		if (u->state == PROXY_UPSTREAM_READY)
			add_open(b, u);
	}
}

void proxy_backend_ready(struct proxy_backend *b, struct proxy_upstream *u)
{
	b->n_connecting--;
	b->n_ready++;
	b->replaces = false;
	backoff_reset(&b->backoff);
	b->retry_at_ns = 0;
	tell_later(b);
	if (b->releasing)
		return;
	set_ready_bit(b, true);
	proxy_backend_opened(b, u);
	if (b->n_ready == b->proxy->conf.max_conns_per_endpoint)
		open_all(b);
	endpoint_changed(b);
}

void proxy_backend_opened(struct proxy_backend *b, struct proxy_upstream *u)
{
	if (b->releasing)
		return;
	add_open(b, u);
	if (!list_empty(&b->waiting))
		proxy_backend_changed(b);
}

void proxy_backend_not_ready(struct proxy_backend *b, struct proxy_upstream *u, const char *why)
{
	bool was_short_lived = !u->has_answered && !u->promises && !u->spent &&
	                       b->proxy->now_ns - u->ready_ns < LB_SHORT_LIVED_NS;
	list_remove(&u->open);
	b->n_ready--;
	if (was_short_lived)
		rest(b);
	if (b->n_ready)
		return;
	set_why(b, why);
	b->was_short_lived = was_short_lived;
	set_ready_bit(b, false);
	// Behind those that this connection leaves to be sent again, who are put there next.
	give_up_waiting(b);
	if (b->is_private)
		give_up_clients_waiting(b);
	tell_later(b);
	proxy_backend_changed(b);
	endpoint_changed(b);
}

void proxy_backend_replace(struct proxy_backend *b)
{
	if (b->n_ready || b->releasing)
		return;
	attempt_if_due(b);
	b->replaces = b->n_connecting && b->told_up;
	if (b->replaces)
		proxy_upstream_expect(conn_of(b->conns.next)); // the newest
}

void proxy_backend_is_late(struct proxy_backend *b)
{
	b->replaces = false;
	tell_later(b);
}

void proxy_backend_remove(struct proxy_backend *b, struct proxy_upstream *u)
{
	list_remove(&u->link);
	b->n_conns--;
	b->proxy->client_backends.n_conns -= b->of != NULL;
	tell_later(b);
}

void proxy_backend_part(struct proxy_backend *b)
{
	while (b->proxy && !list_empty(&b->conns))
		proxy_upstream_part(conn_of(b->conns.next));
	if (!b->proxy || b->of)
		return;
	for (struct list_link *l = b->clients.next; l != &b->clients; l = l->next)
		proxy_backend_part(clients_of(l));
}
