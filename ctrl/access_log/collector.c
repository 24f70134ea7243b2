// SPDX-License-Identifier: Apache-2.0
#include "ctrl/access_log/collector.h"

#include "ctrl/access_log/entry.h"
#include "ctrl/access_log/output.h"
#include "ctrl/rpc/stream.h"
#include "lb/base/backoff.h"
#include "lb/base/min.h"
#include "lb/base/rand.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define METHOD "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs"

struct collector {
	struct access_output base;
	const struct access_node *node;
	struct rpc_stream *stream; // NULL = nothing was to be sent so far
	struct rand rand;
	struct backoff backoff;
	uint64_t now_ns; // of the round
	uint64_t first_ns; // when the oldest entry of the buffer was seen; 0 = there is none
	uint64_t opened_ns; // the stream
	uint64_t retry_ns; // when to open the next one
	uint64_t n_unsure; // entries that the stream has taken before it was sure
	bool is_named; // its first message is on its way
	bool has_finished; // we said that none follows
	bool is_sending; // the batch
	bool is_last; // no entry follows
	// A message's entries; NULL = there is none. Owned.
	char *batch;
	size_t batch_len;
};

static struct collector *of(struct access_output *o)
{
	return (struct collector *)o;
}

static void drop_batch(struct collector *c)
{
	free(c->batch);
	c->batch = NULL;
	c->batch_len = 0;
	c->is_sending = false;
}

// The stream's end, or that it has lasted, says what became of the entries that it took.
static void settle(struct collector *c, bool were_taken)
{
	counter_add(were_taken ? &c->base.n_lines : &c->base.n_failed, c->n_unsure);
	c->n_unsure = 0;
}

static void on_sent(void *ctx)
{
	struct collector *c = ctx;
	c->n_unsure += access_entry_count(c->batch, c->batch_len);
	drop_batch(c);
}

// A server may end a stream, to have us look for another one. What was under way is sent again.
static void on_end(void *ctx, int status, const char *text)
{
	struct collector *c = ctx;
	settle(c, !status);
	if (!c->has_finished)
		c->retry_ns = c->now_ns +
		              min_u64(backoff_next_ns(&c->backoff, &c->rand), ACCESS_RETRY_MAX_NS);
	access_output_set_error(&c->base, -status);
	c->is_named = c->has_finished = c->is_sending = false;
}

static const struct rpc_stream_events events = {on_sent, on_end};

static bool is_open(const struct collector *c)
{
	return c->stream && rpc_stream_is_open(c->stream);
}

static void collector_open(struct access_output *o, uint64_t now_ns)
{
	struct collector *c = of(o);
	c->now_ns = now_ns;
	if (!c->first_ns && o->len)
		c->first_ns = now_ns;
	if (c->stream)
		rpc_stream_dispatch(c->stream);
	if (!is_open(c) || now_ns - c->opened_ns < ACCESS_SURE_NS || !c->is_named)
		return;
	settle(c, true);
	access_output_set_error(o, 0);
	backoff_reset(&c->backoff);
}

static void take_batch(struct collector *c)
{
	struct access_output *o = &c->base;
	c->batch = malloc(o->len);
	if (!c->batch) // later, perhaps
		return;
	memcpy(c->batch, o->buf, o->len);
	c->batch_len = o->len;
	o->len = 0;
	c->first_ns = 0;
}

static bool is_due(const struct collector *c)
{
	const struct access_output *o = &c->base;
	bool is_full = o->len >= o->place.batch_bytes;
	bool is_old = c->first_ns && c->now_ns - c->first_ns >= o->place.batch_ns;
	return o->len && (is_full || is_old || c->is_last);
}

static bool open_stream(struct collector *c)
{
	if (is_open(c))
		return true;
	if (c->now_ns < c->retry_ns)
		return false;
	if (!c->stream)
		c->stream = rpc_stream_new(c->base.place.path, &events, c);
	if (!c->stream) {
		access_output_set_error(&c->base, ENOMEM);
		return false;
	}
	c->base.fd = rpc_stream_fd(c->stream);
	rpc_stream_open(c->stream, METHOD);
	c->opened_ns = c->now_ns;
	return true;
}

// StreamAccessLogsMessage: identifier (node, log_name) in a stream's first one, and http_logs.
static void send_batch(struct collector *c)
{
	const struct access_node *node = c->node;
	const char *name = c->base.place.log_name;
	size_t name_len = strlen(name);
	const struct proto_head of_node = proto_head_of(1, node->len);
	const struct proto_head of_name = proto_head_of(2, name_len);
	const struct proto_head of_who =
		proto_head_of(1, of_node.len + node->len + of_name.len + name_len);
	const struct proto_head of_entries = proto_head_of(2, c->batch_len);
	const struct rpc_piece pieces[] = {
		{of_who.bytes, of_who.len},
		{of_node.bytes, of_node.len},
		{node->bytes, node->len},
		{of_name.bytes, of_name.len},
		{name, name_len},
		{of_entries.bytes, of_entries.len},
		{c->batch, c->batch_len},
	};
	size_t n = sizeof(pieces) / sizeof(pieces[0]), first = c->is_named ? n - 2 : 0;
	rpc_stream_send(c->stream, pieces + first, n - first);
	c->is_named = c->is_sending = true;
}

static bool collector_waits(const struct access_output *o)
{
	const struct collector *c = (const struct collector *)o;
	return c->is_last && (o->len || c->batch || is_open(c));
}

static bool collector_flush(struct access_output *o)
{
	struct collector *c = of(o);
	if (!c->batch && is_due(c))
		take_batch(c);
	if (c->batch && !c->is_sending && !c->has_finished && open_stream(c))
		send_batch(c);
	if (c->is_last && is_open(c) && !o->len && !c->batch && !c->has_finished) {
		c->has_finished = true;
		rpc_stream_finish(c->stream);
	}
	return !collector_waits(o);
}

static void drop_stream(struct collector *c)
{
	rpc_stream_free(c->stream);
	c->stream = NULL;
	c->base.fd = -1;
	c->is_named = c->has_finished = c->is_sending = false;
}

// One that is wanted after all needs another stream, whatever becomes of the old one.
static void collector_finish(struct access_output *o, bool is_last)
{
	struct collector *c = of(o);
	c->is_last = is_last;
	if (!is_last && c->has_finished) {
		settle(c, true);
		drop_stream(c);
	}
}

static uint64_t collector_n_waiting(const struct access_output *o)
{
	const struct collector *c = (const struct collector *)o;
	return access_entry_count(o->buf, o->len) +
	       (c->batch ? access_entry_count(c->batch, c->batch_len) : 0);
}

static void collector_close(struct access_output *o)
{
	struct collector *c = of(o);
	settle(c, true);
	counter_add(&o->n_cut, collector_n_waiting(o));
	drop_stream(c);
	drop_batch(c);
	o->len = 0;
	c->first_ns = c->retry_ns = 0;
	c->is_last = false;
	backoff_reset(&c->backoff);
	access_output_set_error(o, 0);
}

// Nothing of it has a name that may have been given to something else.
static void collector_reopen(struct access_output *o)
{
}

static void collector_free(struct access_output *o)
{
	struct collector *c = of(o);
	rpc_stream_free(c->stream);
	free(c->batch);
	access_output_fini(o);
	free(c);
}

static const struct access_output_kind kind = {
	.free = collector_free,
	.open = collector_open,
	.close = collector_close,
	.reopen = collector_reopen,
	.waits = collector_waits,
	.flush = collector_flush,
	.finish = collector_finish,
	.n_waiting = collector_n_waiting,
};

int access_collector_new(const struct access_place *place, const struct access_node *node,
	uint64_t seed, struct access_output **ret, struct lb_err *reterr)
{
	struct collector *c = calloc(1, sizeof(*c));
	if (!c) {
		lb_err_set(reterr, "out of memory");
		return -ENOMEM;
	}
	c->node = node;
	rand_init(&c->rand, seed);
	c->base.events = POLLIN;
	int rc = access_output_init(&c->base, &kind, place, reterr);
	if (rc)
		collector_free(&c->base);
	else
		*ret = &c->base;
	return rc;
}
