// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/stream.h"

#include "ctrl/rpc/channel.h"
#include "ctrl/rpc/queue.h"
#include "lb/base/check.h"

#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <stdio.h>
#include <stdlib.h>

struct rpc_stream {
	struct rpc_queue queue;
	grpc_channel *channel;
	const struct rpc_stream_events *events;
	void *ctx;
	// Of the call under way.
	grpc_call *call; // NULL = none is
	struct rpc_tag begun, sent, finished, over; // operations
	unsigned n_under_way; // of these
	grpc_metadata_array headers, trailers;
	grpc_byte_buffer *answer; // the last word, which says nothing
	grpc_status_code status;
	grpc_slice text;
};

struct rpc_stream *rpc_stream_new(
	const char *target, const struct rpc_stream_events *events, void *ctx)
{
	struct rpc_stream *s = calloc(1, sizeof(*s));
	if (!s || rpc_queue_init(&s->queue)) {
		free(s);
		return NULL;
	}
	s->events = events;
	s->ctx = ctx;
	s->channel = rpc_channel_new(target);
	return s;
}

bool rpc_stream_is_open(const struct rpc_stream *s)
{
	return s->call;
}

static void start(struct rpc_stream *s, const grpc_op *ops, size_t n, struct rpc_tag *tag)
{
	// An error would be a call of ours that breaks libgrpc's rules.
	CHECK(grpc_call_start_batch(s->call, ops, n, tag, NULL) == GRPC_CALL_OK);
	s->n_under_way++;
}

void rpc_stream_open(struct rpc_stream *s, const char *method)
{
	CHECK(!s->call);
	grpc_metadata_array_init(&s->headers);
	grpc_metadata_array_init(&s->trailers);
	s->answer = NULL;
	s->text = grpc_empty_slice();
	grpc_slice name = grpc_slice_from_copied_string(method);
	s->call = grpc_channel_create_call(s->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		s->queue.queue, name, NULL, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
	grpc_slice_unref(name);
	const grpc_op begin = {.op = GRPC_OP_SEND_INITIAL_METADATA};
	const grpc_op end[] = {
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &s->headers},
		{.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &s->answer},
		{.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			.data.recv_status_on_client = {.trailing_metadata = &s->trailers,
				.status = &s->status,
				.status_details = &s->text}},
	};
	start(s, &begin, 1, &s->begun);
	start(s, end, sizeof(end) / sizeof(end[0]), &s->over);
}

void rpc_stream_send(struct rpc_stream *s, const struct rpc_piece *pieces, size_t n)
{
	grpc_slice slices[8];
	CHECK(n <= sizeof(slices) / sizeof(slices[0]));
	for (size_t i = 0; i < n; i++)
		slices[i] = grpc_slice_from_copied_buffer(pieces[i].bytes, pieces[i].len);
	grpc_byte_buffer *message = grpc_raw_byte_buffer_create(slices, n);
	for (size_t i = 0; i < n; i++)
		grpc_slice_unref(slices[i]);
	const grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message};
	start(s, &op, 1, &s->sent);
	grpc_byte_buffer_destroy(message); // libgrpc keeps what it needs
}

void rpc_stream_finish(struct rpc_stream *s)
{
	const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
	start(s, &op, 1, &s->finished);
}

static void end_call(struct rpc_stream *s)
{
	grpc_call_unref(s->call);
	grpc_metadata_array_destroy(&s->headers);
	grpc_metadata_array_destroy(&s->trailers);
	grpc_slice_unref(s->text);
	if (s->answer)
		grpc_byte_buffer_destroy(s->answer);
	s->call = NULL;
}

static void tell_end(struct rpc_stream *s)
{
	char text[256];
	int status = (int)s->status;
	snprintf(text, sizeof(text), "%.*s", (int)GRPC_SLICE_LENGTH(s->text),
		(const char *)GRPC_SLICE_START_PTR(s->text));
	end_call(s); // the callback may begin another one
	s->events->on_end(s->ctx, status, text);
}

void rpc_stream_dispatch(struct rpc_stream *s)
{
	for (struct rpc_tag *t = rpc_queue_take(&s->queue), *next; t; t = next) {
		next = t->next;
		s->n_under_way--;
		if (t == &s->sent && t->success)
			s->events->on_sent(s->ctx);
	}
	// Whatever of a call is under way ends with it.
	if (s->call && !s->n_under_way)
		tell_end(s);
}

int rpc_stream_fd(const struct rpc_stream *s)
{
	return s->queue.fd;
}

void rpc_stream_free(struct rpc_stream *s)
{
	if (!s)
		return;
	if (s->call)
		grpc_call_cancel(s->call, NULL);
	if (!rpc_queue_stop(&s->queue))
		return;
	if (s->call)
		end_call(s);
	grpc_channel_destroy(s->channel);
	rpc_queue_fini(&s->queue);
	free(s);
}
