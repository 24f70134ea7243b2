// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/transport_grpc.h"

#include "ctrl/rpc/queue.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "lb/base/time.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/time.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MESSAGE_LEN ((size_t)256 << 20)
#define KEEPALIVE_MS (5 * 60 * 1000)

// One operation of a stream.
struct tag {
	struct rpc_tag base; // first member
	struct xds_stream *stream;
};

enum op { OP_START, OP_HEADERS, OP_SEND, OP_END, OP_RECV, OP_STATUS, N_OPS };

struct xds_grpc {
	struct rpc_queue queue;
	size_t n_bytes; // of messages, in this dispatch
	size_t max_len; // of a message
};

struct grpc_transport {
	struct xds_transport base; // first member
	struct xds_grpc *grpc;
	char *uri;
	grpc_channel_credentials *creds;
	grpc_channel *channel; // NULL until the first stream
};

struct xds_stream {
	struct xds_grpc *grpc;
	grpc_call *call;
	const struct xds_stream_events *events;
	void *ctx;
	struct tag tags[N_OPS];
	unsigned n_outstanding; // tags under way or not yet dispatched
	bool detached; // freed by its owner; goes with the last tag
	bool receiving, over;
	grpc_metadata_array headers, trailers;
	grpc_byte_buffer *received;
	grpc_slice message; // the last one that was delivered
	grpc_status_code status;
	grpc_slice status_text;
};

// Streams

static void start(struct xds_stream *s, enum op op, const grpc_op *ops, size_t n_ops)
{
	// An error would be a call of ours that breaks libgrpc's rules.
	CHECK(grpc_call_start_batch(s->call, ops, n_ops, &s->tags[op], NULL) == GRPC_CALL_OK);
	s->n_outstanding++;
}

// A channel that is not connected is made anew: libgrpc would keep its own backoff in it, and an
// attempt of ours is to be an attempt (FM-03).
static bool refresh_channel(struct grpc_transport *t)
{
	if (t->channel &&
		grpc_channel_check_connectivity_state(t->channel, 0) == GRPC_CHANNEL_READY)
		return true;
	if (t->channel)
		grpc_channel_destroy(t->channel);
	grpc_arg args[] = {
		{.type = GRPC_ARG_INTEGER,
			.key = (char[]){GRPC_ARG_KEEPALIVE_TIME_MS},
			.value.integer = KEEPALIVE_MS},
		{.type = GRPC_ARG_INTEGER,
			.key = (char[]){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH},
			.value.integer =
				t->grpc->max_len < INT_MAX ? (int)t->grpc->max_len : INT_MAX},
		{.type = GRPC_ARG_INTEGER,
			.key = (char[]){GRPC_ARG_ENABLE_RETRIES},
			.value.integer = 0},
		// Not shared with channels of others in this process, and so not their backoff.
		{.type = GRPC_ARG_INTEGER,
			.key = (char[]){GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL},
			.value.integer = 1},
	};
	grpc_channel_args list = {sizeof(args) / sizeof(args[0]), args};
	t->channel = grpc_channel_create(t->uri, t->creds, &list);
	return t->channel;
}

static struct xds_stream *stream_new(struct xds_transport *base, const char *method,
	const struct xds_stream_events *events, void *ctx)
{
	struct grpc_transport *t = CONTAINER_OF(base, struct grpc_transport, base);
	struct xds_stream *s = calloc(1, sizeof(*s));
	if (!s || !refresh_channel(t)) {
		free(s);
		return NULL;
	}
	s->grpc = t->grpc;
	s->events = events;
	s->ctx = ctx;
	for (int i = 0; i < N_OPS; i++)
		s->tags[i].stream = s;
	grpc_metadata_array_init(&s->headers);
	grpc_metadata_array_init(&s->trailers);
	s->status_text = grpc_empty_slice();
	s->message = grpc_empty_slice();
	s->call = grpc_channel_create_call(t->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		t->grpc->queue.queue, grpc_slice_from_static_string(method), NULL,
		gpr_inf_future(GPR_CLOCK_REALTIME), NULL);

	// Three batches: the server may send its headers only with the first response, and the
	// status comes at the end.
	start(s, OP_START, &(grpc_op){.op = GRPC_OP_SEND_INITIAL_METADATA}, 1);
	start(s, OP_HEADERS,
		&(grpc_op){.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &s->headers},
		1);
	start(s, OP_STATUS,
		&(grpc_op){.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			.data.recv_status_on_client = {.trailing_metadata = &s->trailers,
				.status = &s->status,
				.status_details = &s->status_text}},
		1);
	return s;
}

static int stream_send(struct xds_stream *s, const uint8_t *bytes, size_t len)
{
	if (s->over)
		return 0; // on_closed has been called or is about to be
	grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, len);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	start(s, OP_SEND,
		&(grpc_op){.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer},
		1);
	grpc_byte_buffer_destroy(buffer); // libgrpc keeps what it needs
	return 0;
}

static void drop_message(struct xds_stream *s)
{
	grpc_slice_unref(s->message);
	s->message = grpc_empty_slice();
}

static void stream_read(struct xds_stream *s)
{
	drop_message(s);
	if (s->over)
		return;
	s->receiving = true;
	start(s, OP_RECV,
		&(grpc_op){
			.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &s->received},
		1);
}

static void stream_end(struct xds_stream *s)
{
	if (!s->over)
		start(s, OP_END, &(grpc_op){.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT}, 1);
}

static void destroy(struct xds_stream *s)
{
	grpc_call_unref(s->call);
	grpc_metadata_array_destroy(&s->headers);
	grpc_metadata_array_destroy(&s->trailers);
	grpc_slice_unref(s->status_text);
	if (s->received)
		grpc_byte_buffer_destroy(s->received);
	free(s);
}

static void stream_free(struct xds_stream *s)
{
	s->detached = true;
	drop_message(s);
	if (s->n_outstanding)
		grpc_call_cancel(s->call, NULL);
	else
		destroy(s);
}

static void deliver_message(struct xds_stream *s)
{
	grpc_byte_buffer *buffer = s->received;
	s->received = NULL;
	if (!buffer)
		return; // the end; the status follows
	grpc_byte_buffer_reader reader;
	bool is_read = !s->detached && grpc_byte_buffer_reader_init(&reader, buffer);
	if (is_read) {
		s->message = grpc_byte_buffer_reader_readall(&reader);
		grpc_byte_buffer_reader_destroy(&reader);
	}
	grpc_byte_buffer_destroy(buffer); // it is not needed beside its copy
	if (!is_read)
		return;
	size_t len = GRPC_SLICE_LENGTH(s->message);
	s->grpc->n_bytes += len;
	s->events->on_message(s->ctx, GRPC_SLICE_START_PTR(s->message), len);
}

static const char *status_name(grpc_status_code code)
{
	static const char *const NAMES[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
		"UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};
	return (unsigned)code < sizeof(NAMES) / sizeof(NAMES[0]) ? NAMES[code] : "unknown status";
}

static void deliver_end(struct xds_stream *s)
{
	char why[512];
	snprintf(why, sizeof(why), "%s: %.*s", status_name(s->status),
		(int)GRPC_SLICE_LENGTH(s->status_text),
		(const char *)GRPC_SLICE_START_PTR(s->status_text));
	s->events->on_closed(s->ctx, why);
}

static void handle(struct tag *t)
{
	struct xds_stream *s = t->stream;
	switch ((enum op)(t - s->tags)) {
	case OP_SEND:
		if (t->base.success && !s->detached && !s->over)
			s->events->on_sent(s->ctx);
		break;
	case OP_RECV:
		s->receiving = false;
		deliver_message(s);
		break;
	case OP_STATUS:
		s->over = true;
		break;
	case OP_START:
	case OP_HEADERS:
	case OP_END:
	case N_OPS:
		break;
	}
	bool closing = t == &s->tags[OP_STATUS] || t == &s->tags[OP_RECV];
	if (closing && s->over && !s->receiving && !s->detached)
		deliver_end(s);
	// Counted until here, so that a stream_free() inside an event only detaches.
	if (--s->n_outstanding == 0 && s->detached)
		destroy(s);
}

size_t xds_grpc_dispatch(struct xds_grpc *g)
{
	g->n_bytes = 0;
	for (struct rpc_tag *t = rpc_queue_take(&g->queue), *next; t; t = next) {
		next = t->next; // handling may free it
		handle(CONTAINER_OF(t, struct tag, base));
	}
	return g->n_bytes;
}

// Transports

static void transport_free(struct xds_transport *base)
{
	struct grpc_transport *t = CONTAINER_OF(base, struct grpc_transport, base);
	if (t->channel)
		grpc_channel_destroy(t->channel);
	grpc_channel_credentials_release(t->creds);
	free(t->uri);
	free(t);
}

static const struct xds_transport_ops transport_ops = {
	.stream_new = stream_new,
	.stream_send = stream_send,
	.stream_read = stream_read,
	.stream_end = stream_end,
	.stream_free = stream_free,
	.free = transport_free,
};

// gRFC A65: libgrpc reads the files again by itself. Without a CA file it takes the system's roots.
static grpc_channel_credentials *tls_creds(const struct xds_server_conf *conf)
{
	grpc_tls_credentials_options *options = grpc_tls_credentials_options_create();
	if (conf->files.ca || conf->files.cert) {
		uint64_t refresh_s = conf->files.refresh_ns / NS_PER_SECOND;
		if (refresh_s > UINT32_MAX)
			refresh_s = UINT32_MAX;
		grpc_tls_certificate_provider *files =
			grpc_tls_certificate_provider_file_watcher_create(
				conf->files.key ? conf->files.key : "",
				conf->files.cert ? conf->files.cert : "",
				conf->files.ca ? conf->files.ca : "", (unsigned)refresh_s);
		grpc_tls_credentials_options_set_certificate_provider(options, files);
		grpc_tls_certificate_provider_release(files);
		if (conf->files.ca)
			grpc_tls_credentials_options_watch_root_certs(options);
		if (conf->files.cert)
			grpc_tls_credentials_options_watch_identity_key_cert_pairs(options);
	}
	return grpc_tls_credentials_create(options); // takes the options
}

static int check_readable(const char *path, struct lb_err *err)
{
	if (!path || access(path, R_OK) == 0)
		return 0;
	return lb_err_set(err, "%s: %s", path, strerror(errno));
}

static int make_creds(
	const struct xds_server_conf *conf, grpc_channel_credentials **ret, struct lb_err *err)
{
	switch (conf->creds) {
	case XDS_CREDS_INSECURE:
		*ret = grpc_insecure_credentials_create();
		break;
	case XDS_CREDS_GOOGLE_DEFAULT:
		*ret = grpc_google_default_credentials_create(NULL);
		break;
	case XDS_CREDS_TLS:
		// Said here with the path; libgrpc would only log it.
		if (check_readable(conf->files.ca, err) || check_readable(conf->files.cert, err) ||
			check_readable(conf->files.key, err))
			return -EINVAL;
		*ret = tls_creds(conf);
		break;
	}
	return *ret ? 0 : lb_err_set(err, "channel credentials cannot be made");
}

static int factory_connect(void *ctx, const struct xds_server_conf *conf,
	struct xds_transport **ret, struct lb_err *err)
{
	struct grpc_transport *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base.ops = &transport_ops;
	t->grpc = ctx;
	t->uri = strdup(conf->uri);
	int rc = t->uri ? make_creds(conf, &t->creds, err) : -ENOMEM;
	if (rc) {
		free(t->uri);
		free(t);
		return rc;
	}
	*ret = &t->base;
	return 0;
}

struct xds_transport_factory xds_grpc_factory(struct xds_grpc *g)
{
	return (struct xds_transport_factory){factory_connect, g};
}

struct xds_grpc *xds_grpc_new(void)
{
	struct xds_grpc *g = calloc(1, sizeof(*g));
	if (!g || rpc_queue_init(&g->queue)) {
		free(g);
		return NULL;
	}
	g->max_len = MAX_MESSAGE_LEN;
	return g;
}

void xds_grpc_set_max_len(struct xds_grpc *g, size_t len)
{
	g->max_len = len;
}

void xds_grpc_free(struct xds_grpc *g)
{
	if (!g)
		return;
	if (!rpc_queue_stop(&g->queue)) // all streams are cancelled
		return;
	xds_grpc_dispatch(g); // frees the detached streams
	rpc_queue_fini(&g->queue);
	free(g);
}

int xds_grpc_fd(const struct xds_grpc *g)
{
	return g->queue.fd;
}
