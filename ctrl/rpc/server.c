// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/server.h"

#include "ctrl/rpc/queue.h"
#include "ctrl/rpc/server_creds.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "lb/base/time.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define KEEPALIVE_MS 30000 // after this silence a client is asked whether it lives,
#define KEEPALIVE_TIMEOUT_MS 10000 // and must answer within this
#define CLIENT_PING_INTERVAL_MS 5000 // how often clients may ask the same
#define LINGER_MS 200 // how long the end waits for clients to read,
#define END_MS 2000 // and then for calls that were cancelled (rpc_queue_stop())

enum op { OP_ACCEPT, OP_HEADERS, OP_CLOSE, OP_RECEIVE, OP_SEND, OP_STATUS, OP_SHUTDOWN, N_OPS };

struct rpc_op {
	struct rpc_tag tag; // first member
	enum op op;
	struct rpc_call *call;
};

struct rpc_call {
	struct rpc_server *server;
	grpc_call *call;
	void *ctx; // the owner's; NULL = refused, or over
	LIST_ENTRY(rpc_call) link; // in the server's calls
	struct rpc_op ops[N_OPS];
	unsigned n_under_way;
	bool receiving, paused, half_closed; // of the client's messages
	bool sending, finishing, finished;
	int cancelled;
	grpc_call_details details;
	grpc_metadata_array metadata;
	grpc_byte_buffer *received;
	grpc_status_code status;
	grpc_slice status_text;
};

struct rpc_server {
	const struct rpc_events *events;
	void *ctx;
	uint32_t n_calls_max;
	grpc_server *server;
	struct rpc_server_creds *creds; // NULL = in the clear
	struct rpc_queue queue;
	void (*wait)(void *ctx, int fd, int timeout_ms);
	void (*cut)(void *ctx);
	void *end_ctx;
	int port;
	LIST_HEAD(, rpc_call) calls; // all but `next_call`
	struct rpc_call *next_call; // waits for a client
	unsigned n_calls;
	struct rpc_op shutdown;
	bool closing, is_shut_down;
};

static void call_fini(struct rpc_call *c)
{
	if (c->call)
		grpc_call_unref(c->call);
	grpc_call_details_destroy(&c->details);
	grpc_metadata_array_destroy(&c->metadata);
	grpc_byte_buffer_destroy(c->received);
	grpc_slice_unref(c->status_text);
}

static void call_init(struct rpc_call *c, struct rpc_server *s)
{
	*c = (struct rpc_call){.server = s};
	for (int i = 0; i < N_OPS; i++) {
		c->ops[i].op = (enum op)i;
		c->ops[i].call = c;
	}
	grpc_call_details_init(&c->details);
	grpc_metadata_array_init(&c->metadata);
	c->status_text = grpc_empty_slice();
}

// Starts a batch of one operation. libgrpc refuses only what contradicts its contract.
static void start(struct rpc_call *c, enum op op, const grpc_op *what)
{
	grpc_call_error error = grpc_call_start_batch(c->call, what, 1, &c->ops[op], NULL);
	CHECK(error == GRPC_CALL_OK);
	c->n_under_way++;
}

// Lets a client call, with this memory, which it takes.
static void accept_with(struct rpc_server *s, struct rpc_call *c)
{
	call_init(c, s);
	grpc_call_error error = grpc_server_request_call(s->server, &c->call, &c->details,
		&c->metadata, s->queue.queue, s->queue.queue, &c->ops[OP_ACCEPT]);
	CHECK(error == GRPC_CALL_OK);
	c->n_under_way++;
	s->next_call = c;
}

// Without memory nobody is accepted until a call ends, which leaves its own.
static void accept_next(struct rpc_server *s)
{
	struct rpc_call *c = s->next_call || s->closing ? NULL : malloc(sizeof(*c));
	if (c)
		accept_with(s, c);
}

static void send_headers(struct rpc_call *c)
{
	grpc_op op = {.op = GRPC_OP_SEND_INITIAL_METADATA};
	start(c, OP_HEADERS, &op);
}

static void receive(struct rpc_call *c)
{
	grpc_op op = {.op = GRPC_OP_RECV_MESSAGE};
	op.data.recv_message.recv_message = &c->received;
	c->receiving = true;
	start(c, OP_RECEIVE, &op);
}

static void send_status(struct rpc_call *c)
{
	if (c->finished)
		return;
	c->finished = true;
	grpc_op op = {.op = GRPC_OP_SEND_STATUS_FROM_SERVER};
	op.data.send_status_from_server.status = c->status;
	op.data.send_status_from_server.status_details = &c->status_text;
	start(c, OP_STATUS, &op);
}

// The status goes out after the message that is under way.
static void finish(struct rpc_call *c, grpc_status_code status, const char *text)
{
	if (c->finishing)
		return;
	c->finishing = true;
	c->status = status;
	c->status_text = grpc_slice_from_copied_string(text);
	if (!c->sending)
		send_status(c);
}

static void on_accepted(struct rpc_call *c)
{
	struct rpc_server *s = c->server;
	s->next_call = NULL;
	LIST_INSERT_HEAD(&s->calls, c, link);
	s->n_calls++;
	grpc_op op = {.op = GRPC_OP_RECV_CLOSE_ON_SERVER};
	op.data.recv_close_on_server.cancelled = &c->cancelled;
	start(c, OP_CLOSE, &op);
	send_headers(c);
	if (s->n_calls > s->n_calls_max) {
		finish(c, GRPC_STATUS_RESOURCE_EXHAUSTED, "too many calls");
	} else {
		struct str method = {(const char *)GRPC_SLICE_START_PTR(c->details.method),
			GRPC_SLICE_LENGTH(c->details.method)};
		char *peer = grpc_call_get_peer(c->call);
		c->ctx = s->events->on_open(s->ctx, c, method, peer);
		gpr_free(peer);
		if (c->ctx)
			receive(c);
		else
			finish(c, GRPC_STATUS_UNIMPLEMENTED, "not served here");
	}
	accept_next(s);
}

static void deliver(struct rpc_call *c, grpc_byte_buffer *buffer)
{
	grpc_byte_buffer_reader reader;
	if (!c->ctx || c->finishing || !grpc_byte_buffer_reader_init(&reader, buffer))
		return;
	grpc_slice bytes = grpc_byte_buffer_reader_readall(&reader);
	c->server->events->on_message(
		c->ctx, GRPC_SLICE_START_PTR(bytes), GRPC_SLICE_LENGTH(bytes));
	grpc_slice_unref(bytes);
	grpc_byte_buffer_reader_destroy(&reader);
}

// Without a message the client has closed its side, or the call is over.
static void on_received(struct rpc_call *c)
{
	grpc_byte_buffer *buffer = c->received;
	c->received = NULL;
	c->receiving = false;
	if (buffer) {
		deliver(c, buffer);
		grpc_byte_buffer_destroy(buffer);
		if (!c->finishing && !c->paused && !c->receiving)
			receive(c);
	} else if (!c->server->events->on_half_close) {
		finish(c, GRPC_STATUS_OK, "");
	} else if (c->ctx && !c->finishing) {
		c->half_closed = true;
		c->server->events->on_half_close(c->ctx);
	}
}

static void on_sent(struct rpc_call *c, bool success)
{
	c->sending = false;
	if (c->finishing)
		send_status(c);
	else if (success && c->ctx)
		c->server->events->on_sent(c->ctx);
}

static void on_closed(struct rpc_call *c)
{
	void *ctx = c->ctx;
	c->ctx = NULL;
	c->finishing = c->finished = true;
	if (ctx)
		c->server->events->on_closed(ctx);
}

static void call_unlink(struct rpc_call *c)
{
	struct rpc_server *s = c->server;
	if (s->next_call == c) {
		s->next_call = NULL;
		return;
	}
	LIST_REMOVE(c, link);
	s->n_calls--;
}

static void complete(struct rpc_server *s, struct rpc_op *op)
{
	struct rpc_call *c = op->call;
	if (op == &s->shutdown) {
		s->is_shut_down = true;
		return;
	}
	c->n_under_way--;
	switch (op->op) {
	case OP_ACCEPT:
		if (op->tag.success)
			on_accepted(c);
		break;
	case OP_CLOSE:
		on_closed(c);
		break;
	case OP_RECEIVE:
		on_received(c);
		break;
	case OP_SEND:
		on_sent(c, op->tag.success);
		break;
	case OP_HEADERS:
	case OP_STATUS:
	case OP_SHUTDOWN:
	case N_OPS:
		break;
	}
	if (c->n_under_way > 0)
		return;
	call_unlink(c);
	call_fini(c);
	if (s->next_call || s->closing)
		free(c);
	else
		accept_with(s, c);
}

void rpc_server_dispatch(struct rpc_server *s)
{
	for (struct rpc_tag *t = rpc_queue_take(&s->queue), *next; t; t = next) {
		next = t->next; // completing may free the operation
		complete(s, CONTAINER_OF(t, struct rpc_op, tag));
	}
}

static int bind_address(
	struct rpc_server *s, const struct rpc_server_conf *conf, struct lb_err *reterr)
{
	const struct rpc_server_tls *tls = conf->tls;
	s->creds = tls ? rpc_server_creds_new(tls) : NULL;
	if (tls && !s->creds)
		return lb_err_set(reterr, "out of memory");
	grpc_server_credentials *creds =
		tls ? rpc_server_creds_get(s->creds) : grpc_insecure_server_credentials_create();
	s->port = grpc_server_add_http2_port(s->server, conf->address, creds);
	grpc_server_credentials_release(creds);
	if (s->port > 0)
		return 0;
	return lb_err_set(reterr,
		"cannot listen on %s: it is not an address of this host, or its port is taken%s",
		conf->address, tls ? ", or the files of TLS are no good" : "");
}

static grpc_server *create_server(const struct rpc_server_conf *conf)
{
	static char reuse[] = GRPC_ARG_ALLOW_REUSEPORT, time[] = GRPC_ARG_KEEPALIVE_TIME_MS,
		    timeout[] = GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
		    permit[] = GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS,
		    interval[] = GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
		    size[] = GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH;
	grpc_arg list[] = {
		{GRPC_ARG_INTEGER, reuse, {.integer = 0}},
		{GRPC_ARG_INTEGER, time, {.integer = KEEPALIVE_MS}},
		{GRPC_ARG_INTEGER, timeout, {.integer = KEEPALIVE_TIMEOUT_MS}},
		{GRPC_ARG_INTEGER, permit, {.integer = 1}},
		{GRPC_ARG_INTEGER, interval, {.integer = CLIENT_PING_INTERVAL_MS}},
		{GRPC_ARG_INTEGER, size, {.integer = (int)conf->message_len_max}},
	};
	grpc_channel_args args = {sizeof(list) / sizeof(list[0]), list};
	return grpc_server_create(&args, NULL);
}

static void wait_alone(void *ctx, int fd, int timeout_ms)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	(void)poll(&wait, 1, timeout_ms);
}

int rpc_server_new(const struct rpc_server_conf *conf, const struct rpc_events *events, void *ctx,
	struct rpc_server **ret, struct lb_err *reterr)
{
	struct rpc_server *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	*s = (struct rpc_server){.events = events,
		.ctx = ctx,
		.n_calls_max = conf->n_calls_max,
		.wait = conf->wait ? conf->wait : wait_alone,
		.cut = conf->cut,
		.end_ctx = conf->end_ctx,
		.shutdown = {.op = OP_SHUTDOWN}};
	int r = rpc_queue_init(&s->queue);
	if (r < 0) {
		free(s);
		return r;
	}
	s->server = create_server(conf);
	grpc_server_register_completion_queue(s->server, s->queue.queue, NULL);
	r = conf->address ? bind_address(s, conf, reterr) : 0;
	grpc_server_start(s->server); // what is not started can't be shut down either
	if (r < 0) {
		rpc_server_free(s);
		return r;
	}
	accept_next(s);
	if (!s->next_call) { // nothing else would ever accept one
		rpc_server_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / NS_PER_MS;
}

// True = all calls have ended.
static bool wait_for_calls(struct rpc_server *s, uint64_t ms)
{
	for (uint64_t until = now_ms() + ms, now; (now = now_ms()) < until;) {
		if (s->is_shut_down && LIST_EMPTY(&s->calls) && !s->next_call)
			return true;
		s->wait(s->end_ctx, s->queue.fd, (int)(until - now));
		rpc_server_dispatch(s);
	}
	return false;
}

void rpc_server_free(struct rpc_server *s)
{
	if (!s)
		return;
	s->closing = true;
	grpc_server_shutdown_and_notify(s->server, s->queue.queue, &s->shutdown);
	for (struct rpc_call *c = LIST_FIRST(&s->calls); c; c = LIST_NEXT(c, link))
		finish(c, GRPC_STATUS_UNAVAILABLE, "the server ends");
	bool are_over = wait_for_calls(s, LINGER_MS);
	if (!are_over) {
		grpc_server_cancel_all_calls(s->server);
		if (s->cut)
			s->cut(s->end_ctx);
		are_over = wait_for_calls(s, END_MS);
	}
	for (struct rpc_call *c = LIST_FIRST(&s->calls); c; c = LIST_NEXT(c, link))
		on_closed(c); // libgrpc ends no call that it writes to: all goes with the process
	if (!are_over)
		return;
	grpc_server_destroy(s->server);
	rpc_server_creds_free(s->creds);
	if (!rpc_queue_stop(&s->queue))
		return;
	rpc_queue_fini(&s->queue);
	free(s);
}

void rpc_server_connect(struct rpc_server *s, int fd)
{
	static const int yes = 1;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	grpc_server_credentials *creds = grpc_insecure_server_credentials_create();
	grpc_server_add_channel_from_fd(s->server, fd, creds);
	grpc_server_credentials_release(creds);
}

int rpc_server_port(const struct rpc_server *s)
{
	return s->port;
}

int rpc_server_fd(const struct rpc_server *s)
{
	return s->queue.fd;
}

static void send_buffer(struct rpc_call *c, grpc_byte_buffer *buffer)
{
	grpc_op op = {.op = GRPC_OP_SEND_MESSAGE};
	op.data.send_message.send_message = buffer;
	c->sending = true;
	start(c, OP_SEND, &op);
	grpc_byte_buffer_destroy(buffer); // libgrpc holds its own reference to the bytes
}

void rpc_call_send(struct rpc_call *c, const uint8_t *bytes, size_t len)
{
	DCHECK(!c->sending);
	if (c->finishing)
		return;
	grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, len);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	send_buffer(c, buffer);
}

void rpc_call_send_parts(struct rpc_call *c, const struct rpc_part *parts, size_t n)
{
	DCHECK(!c->sending);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(NULL, 0);
	for (size_t i = 0; i < n; i++)
		grpc_slice_buffer_add(&buffer->data.raw.slice_buffer,
			grpc_slice_new(parts[i].bytes, parts[i].len, free));
	if (c->finishing)
		grpc_byte_buffer_destroy(buffer);
	else
		send_buffer(c, buffer);
}

void rpc_call_pause(struct rpc_call *c)
{
	c->paused = true;
}

void rpc_call_resume(struct rpc_call *c)
{
	c->paused = false;
	if (!c->receiving && !c->half_closed && !c->finishing)
		receive(c);
}

void rpc_call_finish(struct rpc_call *c)
{
	finish(c, GRPC_STATUS_OK, "");
}

void rpc_call_end(struct rpc_call *c, enum rpc_status status, const char *text)
{
	finish(c, (grpc_status_code)status, text);
}

void rpc_call_cancel(struct rpc_call *c)
{
	grpc_call_cancel(c->call, NULL);
}
