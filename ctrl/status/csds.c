// SPDX-License-Identifier: Apache-2.0
#include "ctrl/status/csds.h"

#include "ctrl/status/csds_dump.h"
#include "ctrl/status/service.h"
#include "envoy/service/status/v3/csds.pb-c.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "proto/wire.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

#define SLICE_LEN ((size_t)256 << 10) // what is encoded in one turn of the loop
#define READ_LIMIT_NS (30 * NS_PER_SECOND) // who has not read its response by then is cut
// The two clocks drift against each other; following that would change times that stand.
#define WALL_SLACK_NS ((int64_t)(100 * NS_PER_MS))

enum state {
	ASKING, // no request is here
	WAITING, // in the queue
	MAKING, // the first in the queue, its response is being made
	SENDING, // the response is on its way
};

struct call {
	struct status_call base; // first member
	struct csds *csds;
	TAILQ_ENTRY(call) link; // in the queue
	enum state state;
	bool unary;
	bool exclude_contents;
	size_t unread_len; // SENDING
	struct twheel_timer read_timer; // SENDING
};

struct csds {
	struct csds_conf conf;
	TAILQ_HEAD(, call) queue; // calls that are WAITING, the first may be MAKING
	struct csds_dump *dump; // of the first
	size_t unread_len; // of all that is SENDING
	int64_t wall_offset_ns;
	struct twheel_timer turn; // armed while there is something to make
};

static void enqueue(struct call *c)
{
	TAILQ_INSERT_TAIL(&c->csds->queue, c, link);
}

static void dequeue(struct call *c)
{
	TAILQ_REMOVE(&c->csds->queue, c, link);
}

static void make_more(struct csds *s)
{
	if (!TAILQ_EMPTY(&s->queue) && s->unread_len <= s->conf.max_unread_len &&
		!twheel_armed(&s->turn))
		twheel_arm(s->conf.wheel, &s->turn, twheel_now(s->conf.wheel));
}

static int64_t wall_offset(struct csds *s)
{
	int64_t now = (int64_t)(s->conf.wall_ns() - twheel_now(s->conf.wheel));
	int64_t drift = now - s->wall_offset_ns;
	if (drift > WALL_SLACK_NS || drift < -WALL_SLACK_NS)
		s->wall_offset_ns = now;
	return s->wall_offset_ns;
}

static int begin(struct csds *s, struct call *c)
{
	s->dump = csds_dump_new(&(struct csds_dump_conf){
		.node = s->conf.node,
		.exclude_contents = c->exclude_contents,
		.wall_offset_ns = wall_offset(s),
	});
	if (!s->dump)
		return -ENOMEM;
	c->state = MAKING;
	s->conf.each(s->conf.ctx, csds_dump_add, s->dump);
	return 0;
}

static void send(struct csds *s, struct call *c)
{
	const struct rpc_part *parts;
	size_t n = csds_dump_take(s->dump, &parts, &c->unread_len);
	c->state = SENDING;
	s->unread_len += c->unread_len;
	twheel_arm(s->conf.wheel, &c->read_timer, twheel_now(s->conf.wheel) + READ_LIMIT_NS);
	rpc_call_send_parts(c->base.rpc, parts, n);
	if (c->unary)
		rpc_call_finish(c->base.rpc);
}

static void give_up(struct call *c, int error)
{
	c->state = ASKING;
	rpc_call_end(c->base.rpc, RPC_RESOURCE_EXHAUSTED,
		error == -E2BIG ? "too long: ask with exclude_resource_contents" : "out of memory");
}

static void on_turn(struct twheel_timer *timer)
{
	struct csds *s = CONTAINER_OF(timer, struct csds, turn);
	struct call *c = TAILQ_FIRST(&s->queue);
	if (!c)
		return;
	int r = s->dump ? 0 : begin(s, c);
	if (r == 0)
		r = csds_dump_step(s->dump, SLICE_LEN);
	if (r != 0) { // done, one way or the other
		dequeue(c);
		if (r == 1)
			send(s, c);
		else
			give_up(c, r);
		csds_dump_free(s->dump);
		s->dump = NULL;
	}
	make_more(s);
}

static void on_unread(struct twheel_timer *timer)
{
	struct call *c = CONTAINER_OF(timer, struct call, read_timer);
	rpc_call_cancel(c->base.rpc);
}

// The response has left, or nobody will read it.
static void forget_response(struct call *c)
{
	struct csds *s = c->csds;
	twheel_cancel(s->conf.wheel, &c->read_timer);
	s->unread_len -= c->unread_len;
	c->unread_len = 0;
	c->state = ASKING;
	make_more(s);
}

// Events of a call

static void on_message(struct status_call *base, const uint8_t *bytes, size_t len)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	struct lb_err err = {0};
	Envoy__Service__Status__V3__ClientStatusRequest *m = proto_unpack(
		&envoy__service__status__v3__client_status_request__descriptor, bytes, len, &err);
	if (!m) {
		rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT, err.text);
		return;
	}
	bool matchers = m->n_node_matchers > 0;
	c->exclude_contents = m->exclude_resource_contents;
	proto_free(m);
	if (matchers) { // CS-01
		rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT,
			"node_matchers are not supported: there is one node");
		return;
	}
	rpc_call_pause(base->rpc); // one request at a time
	c->state = WAITING;
	enqueue(c);
	make_more(c->csds);
}

// A stream hears of this only when its requests are answered, a unary call with a request never.
static void on_half_close(struct status_call *base)
{
	const struct call *c = CONTAINER_OF(base, struct call, base);
	if (c->unary)
		rpc_call_end(base->rpc, RPC_INVALID_ARGUMENT, "no request");
	else
		rpc_call_finish(base->rpc);
}

static void on_sent(struct status_call *base)
{
	forget_response(CONTAINER_OF(base, struct call, base));
	rpc_call_resume(base->rpc);
}

static void on_closed(struct status_call *base)
{
	struct call *c = CONTAINER_OF(base, struct call, base);
	struct csds *s = c->csds;
	if (c->state == SENDING)
		forget_response(c);
	if (c->state == MAKING) {
		csds_dump_free(s->dump);
		s->dump = NULL;
	}
	if (c->state != ASKING)
		dequeue(c);
	free(c);
}

static struct status_call *call_open(struct csds *s, struct rpc_call *rpc, bool unary)
{
	static const struct status_call_ops ops = {on_message, on_half_close, on_sent, on_closed};
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	*c = (struct call){
		.base = {&ops, rpc}, .csds = s, .unary = unary, .read_timer.fire = on_unread};
	return &c->base;
}

struct status_call *csds_open_fetch(struct csds *s, struct rpc_call *rpc)
{
	return call_open(s, rpc, true);
}

struct status_call *csds_open_stream(struct csds *s, struct rpc_call *rpc)
{
	return call_open(s, rpc, false);
}

struct csds *csds_new(const struct csds_conf *conf)
{
	struct csds *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct csds){.conf = *conf, .turn.fire = on_turn};
	TAILQ_INIT(&s->queue);
	return s;
}

void csds_free(struct csds *s)
{
	if (!s)
		return;
	twheel_cancel(s->conf.wheel, &s->turn);
	free(s);
}
