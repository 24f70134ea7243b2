// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/attempt.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/client_backend.h"
#include "dataplane/proxy/deadline.h"
#include "dataplane/proxy/head.h"
#include "dataplane/proxy/leaf.h"
#include "dataplane/proxy/pick.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "dataplane/proxy/upstream.h"
#include "lb/base/container_of.h"
#include "lb/cluster.h"
#include "lb/pick/leaf_picker.h"
#include "lb/snapshot.h"

#include <stdio.h>

static const struct lb_cluster *cluster_of(const struct proxy_request *r)
{
	return lb_snapshot_cluster(r->proxy->snapshot, r->cluster_id);
}

// Stores a newcomer's fields. False = it failed.
static bool store(struct proxy_request *r, const struct h2_message *head)
{
	if (proxy_replay_stored(&r->replay) || proxy_replay_put_head(r->proxy, &r->replay, head))
		return true;
	proxy_request_fail_overload(r);
	return false;
}

// Bounds the queues: those that have waited or were sent before stay. False = it failed.
static bool may_wait(struct proxy_request *r, const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	if (head && !proxy_source_may_have(&p->sources, r->owner->source->n_waiting,
			    proxy_queues_used(&p->queues), p->queues.max)) {
		proxy_request_fail_with(r, LB_CAUSE_OVER_SHARE,
			STR("too many requests of this client are waiting"));
		return false;
	}
	if (head && !proxy_client_buffer_may_wait(r->owner)) {
		proxy_count(p, PROXY_requests_over_buffer);
		proxy_request_fail_with(r, LB_CAUSE_OVER_SHARE,
			STR("too many bytes of this client's requests are waiting"));
		return false;
	}
	if (head && proxy_queues_full(&p->queues)) {
		proxy_count(p, PROXY_queue_overflows);
		proxy_request_fail_with(r, LB_CAUSE_OVERFLOW, STR("too many requests are waiting"));
		return false;
	}
	return store(r, head);
}

// A31-R12: one that waited for a cluster that nobody names would keep it for ever.
static bool may_wait_for_ready(const struct proxy_request *r, const struct lb_cluster *c)
{
	return r->waits_for_ready && c && !c->is_leaving;
}

static void wait_for_pick(struct proxy_request *r, const struct h2_message *head)
{
	if (list_linked(&r->link) && r->state == PROXY_REQUEST_PICKING)
		return; // keeps its place
	if (!may_wait(r, head))
		return;
	proxy_request_stop_waiting(r);
	proxy_request_set_waiting(r, PROXY_REQUEST_PICKING);
	proxy_queue_append(&r->proxy->queues, r);
	proxy_count(r->proxy, PROXY_queued_for_pick);
}

static void wait_for_room(
	struct proxy_request *r, struct proxy_backend *b, const struct h2_message *head)
{
	if (!may_wait(r, head))
		return;
	proxy_request_stop_waiting(r);
	r->endpoint_id = b->id;
	proxy_request_set_waiting(r, PROXY_REQUEST_ROOM);
	proxy_backend_wait(b, r);
	proxy_count(r->proxy, PROXY_queued_for_stream);
}

static void pause_over(struct twheel_timer *);

// After this time. May fail the request.
static void begin_later(struct proxy_request *r, const struct h2_message *head, uint64_t delay_ns)
{
	struct twheel *w = r->proxy->wheel;
	if (!may_wait(r, head))
		return;
	proxy_request_stop_waiting(r);
	proxy_request_set_paused(r);
	r->pause.fire = pause_over;
	if (delay_ns > PROXY_LONGEST_NS)
		delay_ns = PROXY_LONGEST_NS;
	twheel_arm(w, &r->pause, twheel_now(w) + delay_ns);
}

// In front of those that wait there: its backend cannot serve it any more.
static void back_to_queue(struct proxy_request *r)
{
	proxy_request_stop_waiting(r);
	proxy_request_set_waiting(r, PROXY_REQUEST_PICKING);
	proxy_queue_prepend(&r->proxy->queues, r);
}

// Ends the request for good: there will be no other attempt (A27-I03).
static void refuse(struct proxy_request *r, const struct proxy_pick *why)
{
	proxy_request_fail_with(r, why->cause, str_from(why->text));
}

// HEADERS to the backend. Trailing parts that are stored already follow in send_stored.
static bool send_head(struct proxy_request *r, const struct lb_leaf_layer *layer,
	struct proxy_upstream *u, const struct h2_message *head)
{
	proxy_request_stop_waiting(r);
	enum lb_cause refused = proxy_accounting_enter(r, layer);
	if (refused != LB_CAUSE_OK) {
		const struct proxy_pick why = proxy_pick_overflow(r, layer, refused);
		refuse(r, &why);
		return false;
	}
	struct h2_message m;
	struct lb_affinity_host known;
	bool is_known = (r->session.on || r->plan.auto_host_rewrite) && layer &&
	                lb_affinity_map_find(layer->affinity, &u->backend->addr, &known);
	const struct lb_affinity_host *host = is_known ? &known : NULL;
	if (!proxy_head_to_backend(r, head, host, proxy_deadline_left_ns(r), &m) ||
		!proxy_upstream_open(u, r, &m)) {
		proxy_accounting_close(r);
		proxy_request_fail_overload(r);
		return false;
	}
	proxy_accounting_open(r);
	if (r->session.on)
		proxy_session_sent(r, cluster_of(r), host);
	r->state = PROXY_REQUEST_SENT;
	r->endpoint_id = u->endpoint_id;
	r->resend.elsewhere = false;
	r->trail.sent_ns = r->proxy->now_ns;
	if (r->access.is_on)
		proxy_access_sent(r, &u->backend->addr);
	return true;
}

// A request that has just come, straight through.
static void send_fresh(struct proxy_request *r, const struct lb_leaf_layer *layer,
	struct proxy_upstream *u, const struct h2_message *head)
{
	if (!send_head(r, layer, u, head))
		return;
	// Without the copy it is as good, only never sent again.
	if (!proxy_client_buffer_may_copy(&r->owner->buffer) ||
		!proxy_replay_put_head(r->proxy, &r->replay, head))
		proxy_replay_note(&r->replay, head);
}

static void send_stored(
	struct proxy_request *r, const struct lb_leaf_layer *layer, struct proxy_upstream *u)
{
	struct proxy *p = r->proxy;
	struct proxy_replay *stored = &r->replay;
	size_t body_len = proxy_replay_body_len(stored);
	bool trailers = stored->trailers_len != 0;
	struct h2_message m;
	proxy_request_enter(r);
	r->skip = r->credited;
	if (r->access.is_on) // it may be sent for the last time
		proxy_access_keep(r);
	proxy_replay_head(p, stored, &m);
	m.is_grpc = r->is_grpc;
	m.end_stream = r->request_done && !body_len && !trailers;
	bool ok = send_head(r, layer, u, &m);
	if (ok && body_len)
		ok = proxy_replay_send_body(p, stored, r->upstream, r->request_done && !trailers,
			proxy_retry_may_keep(r, body_len));
	if (ok && trailers) {
		proxy_replay_trailers(p, stored, &m);
		ok = h2_stream_send_message(r->upstream, &m);
	}
	if (!proxy_replay_stored(stored))
		proxy_replay_drop(p, stored);
	if (!ok && !r->ended)
		proxy_request_fail_overload(r);
	proxy_request_leave(r);
}

// True = it was refused, and waits a while before it goes there.
static bool rests(struct proxy_request *r, const struct proxy_upstream *u)
{
	uint64_t delay_ns;
	if (!r->resend.refuser || !proxy_retry_must_rest(r, u, &delay_ns))
		return false;
	if (u->number == r->resend.refuser)
		proxy_backend_add(u->backend); // meanwhile
	begin_later(r, NULL, delay_ns);
	return true;
}

// Counts as an attempt that ended with UNAVAILABLE, as in gRPC's retries of failed picks.
static void pick_failed(struct proxy_request *r, const struct h2_message *head, const char *text)
{
	struct proxy_reply reply = proxy_reply_for(LB_CAUSE_NO_HEALTHY, str_from(text));
	uint64_t delay_ns;
	if (head && r->plan.retry.statuses && !store(r, head))
		return;
	if (!proxy_retry_status(r, reply.grpc_status, NULL, &delay_ns)) {
		proxy_request_fail(r, &reply, H2_INTERNAL_ERROR);
		return;
	}
	proxy_trail_pick_failed(r, reply.grpc_status);
	begin_later(r, NULL, delay_ns);
}

// How long it waits for the next attempt there; 0 = it has not just been told to go elsewhere.
static uint64_t rest_ns_of(const struct proxy_request *r, const struct proxy_backend *b)
{
	bool is_same = r->resend.elsewhere && r->endpoint_id == b->id;
	return is_same ? b->retry_at_ns - twheel_now(r->proxy->wheel) : 0;
}

// PP-18: no connection of its client's own was to be had, or will be for rest_ns.
static void unconnected(struct proxy_request *r, const struct proxy_backend *b, uint64_t rest_ns,
	const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	const struct lb_cluster *c = cluster_of(r);
	uint64_t delay_ns;
	proxy_request_enter(r);
	r->endpoint_id = b->id;
	if (proxy_retry_unconnected(r, may_wait_for_ready(r, c), rest_ns, &delay_ns)) {
		begin_later(r, head, delay_ns);
	} else {
		char address[IP_PORT_TEXT_MAX];
		snprintf(p->scratch.refusal, sizeof(p->scratch.refusal), "cluster %s: %s: %s",
			c ? c->name : "?", ip_port_print(&b->addr, address), b->why);
		pick_failed(r, head, p->scratch.refusal);
	}
	proxy_request_leave(r);
}

// What its client has of this endpoint. NULL = the request does not go there now, and is seen to.
static __attribute__((noinline)) struct proxy_backend *clients_own(
	struct proxy_request *r, struct proxy_backend *endpoints, const struct h2_message *head)
{
	enum lb_cause why;
	struct proxy_backend *b = proxy_client_backend_find(endpoints, r->owner, &why);
	if (!b) {
		proxy_request_fail_with(r, why,
			why == LB_CAUSE_OVER_SHARE
				? STR("too many backends serve this client's connections")
				: STR("too many backends serve single clients' connections"));
		return NULL;
	}
	if (!proxy_backend_rests(b))
		return b;
	unconnected(r, b, rest_ns_of(r, b), head);
	return NULL;
}

// Goes to this one, now or when it has room.
static void use(struct proxy_request *r, const struct lb_leaf_layer *layer,
	const struct h2_message *head, const struct lb_cell *cell)
{
	struct proxy_backend *b = proxy_backend_find(r->proxy, cell);
	if (!b) {
		wait_for_pick(r, head);
		return;
	}
	struct proxy_upstream *u = proxy_backend_room(b, r);
	if (!u && b->is_private) {
		b = clients_own(r, b, head);
		if (!b)
			return;
		u = proxy_backend_room(b, r);
	}
	if (!u)
		wait_for_room(r, b, head);
	else if (rests(r, u))
		return;
	else if (head)
		send_fresh(r, layer, u, head);
	else
		send_stored(r, layer, u);
}

// Asks the cluster of this turn, and acts on what it says.
static void pick(struct proxy_request *r, const struct h2_message *head)
{
	const struct lb_cluster *cluster = cluster_of(r);
	if (!cluster) {
		proxy_request_fail_with(r, LB_CAUSE_NO_CONFIG, STR("no such cluster"));
		return;
	}
	const struct lb_leaf_layer *layer = lb_leaf_layer(cluster->picker);
	const struct proxy_pick chosen = proxy_pick(r, cluster, layer, head);
	r->pick_failed = chosen.kind == PROXY_PICK_FAIL;
	switch (chosen.kind) {
	case PROXY_PICK_ENDPOINT:
		use(r, layer, head, chosen.cell);
		return;
	case PROXY_PICK_QUEUE:
		wait_for_pick(r, head);
		return;
	case PROXY_PICK_FAIL:
		if (may_wait_for_ready(r, cluster))
			wait_for_pick(r, head);
		else
			pick_failed(r, head, chosen.text);
		return;
	case PROXY_PICK_REFUSE:
		refuse(r, &chosen);
		return;
	}
}

static void begin(struct proxy_request *r, const struct h2_message *head)
{
	struct proxy_reply aborted;
	if (r->fault.counted && proxy_fault_strike(r, &aborted)) {
		proxy_request_fail(r, &aborted, H2_INTERNAL_ERROR);
		return;
	}
	r->state = PROXY_REQUEST_PICKING;
	if (proxy_queue_must_wait(&r->proxy->queues, r->cluster_id))
		wait_for_pick(r, head);
	else
		pick(r, head);
}

static void pause_over(struct twheel_timer *t)
{
	struct proxy_request *r = CONTAINER_OF(t, struct proxy_request, pause);
	proxy_request_enter(r);
	proxy_request_stop_waiting(r);
	begin(r, NULL);
	proxy_request_leave(r);
}

void proxy_attempt_first(struct proxy_request *r, const struct h2_message *head)
{
	if (r->fault.delay_ns)
		begin_later(r, head, r->fault.delay_ns);
	else
		begin(r, head);
}

bool proxy_attempt_pick_again(struct proxy_request *r)
{
	proxy_request_enter(r);
	pick(r, NULL);
	bool moved = !list_linked(&r->link) || r->state != PROXY_REQUEST_PICKING;
	proxy_request_leave(r);
	return moved;
}

static void on_room(struct proxy_request *r, struct proxy_upstream *u)
{
	const struct lb_leaf_layer *layer = proxy_leaf_of(r);
	// An aggregate may have gone over to another leaf meanwhile, whose limits and sessions are
	// not those of this endpoint.
	if (r->accounting.leaf != (layer ? layer->id + 1 : 0))
		back_to_queue(r);
	else if (!rests(r, u))
		send_stored(r, layer, u);
}

static struct proxy_reply reply_to_end(const struct proxy_upstream_end *end)
{
	struct proxy_reply reply = end->cause == LB_CAUSE_UPSTREAM_RESET
	                                   ? proxy_reply_for_reset(end->code)
	                                   : proxy_reply_for(end->cause, STR(""));
	if (end->cause == LB_CAUSE_UPSTREAM_LOST)
		reply.text = STR("the backend's connection was lost");
	else if (end->cause == LB_CAUSE_UPSTREAM_PROTOCOL)
		reply.text = STR("the backend broke the protocol");
	else if (end->cause == LB_CAUSE_UPSTREAM_TOO_LARGE)
		reply.text = STR("the backend's response header or trailers are too large");
	if (end->reach == PROXY_REACH_UNREAD)
		reply.text = STR("the backend left before it processed the request");
	return reply;
}

// ERR-01: whose stream it was. Good until the next pick.
static void name_backend(
	struct proxy_request *r, const struct proxy_upstream_end *end, struct proxy_reply *reply)
{
	struct proxy *p = r->proxy;
	const struct lb_cluster *c = lb_snapshot_cluster(p->snapshot, r->cluster_id);
	char address[IP_PORT_TEXT_MAX], code[24] = "";
	if (end->cause == LB_CAUSE_UPSTREAM_RESET && end->reach != PROXY_REACH_UNREAD)
		snprintf(code, sizeof(code), " (RST_STREAM %u)", (unsigned)end->code);
	snprintf(p->scratch.refusal, sizeof(p->scratch.refusal), "cluster %s: %s: %.*s%s",
		c ? c->name : "?", ip_port_print(&p->backends[r->endpoint_id].addr, address),
		(int)reply->text.len, reply->text.p, code);
	reply->text = str_from(p->scratch.refusal);
}

static void on_unconnected(struct proxy_request *r, struct proxy_backend *b)
{
	unconnected(r, b, 0, NULL);
}

static void on_upstream_end(struct proxy_request *r, const struct proxy_upstream_end *end)
{
	proxy_request_enter(r);
	r->upstream = NULL;
	if (r->ahead)
		proxy_client_buffer_narrow(&r->owner->buffer, &r->ahead);
	proxy_accounting_cut(r, end);
	proxy_accounting_close(r);
	struct proxy_reply reply = reply_to_end(end);
	uint64_t delay_ns;
	proxy_trail_try(r, end->cause, reply.grpc_status);
	if (proxy_retry_transparent(r, end)) {
		back_to_queue(r);
	} else if (r->state == PROXY_REQUEST_SENT &&
		   proxy_retry_status(r, reply.grpc_status, NULL, &delay_ns)) {
		begin_later(r, NULL, delay_ns);
	} else if (r->state != PROXY_REQUEST_ENDING) {
		name_backend(r, end, &reply);
		// HX-20. Not REFUSED_STREAM, whatever gRPC makes of the code: the backend did
		// something with the request.
		proxy_request_cut_short(
			r, &reply, end->code == H2_CANCEL ? H2_CANCEL : H2_INTERNAL_ERROR);
	}
	proxy_request_leave(r);
}

static void on_retry(struct proxy_request *r, uint64_t delay_ns)
{
	begin_later(r, NULL, delay_ns);
}

const struct proxy_attempt_events proxy_attempt_events = {.on_room = on_room,
	.on_no_room = back_to_queue,
	.on_unconnected = on_unconnected,
	.on_rest = proxy_client_backend_rests,
	.on_over = proxy_client_backend_free,
	.on_upstream_end = on_upstream_end,
	.on_retry = on_retry};
