// SPDX-License-Identifier: Apache-2.0
#include "ctrl/rpc/unary.h"

#include "ctrl/rpc/channel.h"
#include "ctrl/rpc/queue.h"
#include "lb/base/check.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/support/time.h>

#include <stdio.h>
#include <stdlib.h>

struct rpc_unary {
	struct rpc_queue queue;
	struct rpc_tag tag;
	grpc_channel *channel;
	rpc_done_fn *on_done;
	void *ctx;
	// Of the call under way.
	grpc_call *call; // NULL = none is
	grpc_metadata_array headers, trailers;
	grpc_byte_buffer *answer;
	grpc_status_code status;
	grpc_slice text;
};

struct rpc_unary *rpc_unary_new(const char *target, rpc_done_fn *on_done, void *ctx)
{
	struct rpc_unary *c = calloc(1, sizeof(*c));
	if (!c || rpc_queue_init(&c->queue)) {
		free(c);
		return NULL;
	}
	c->on_done = on_done;
	c->ctx = ctx;
	c->channel = rpc_channel_new(target);
	return c;
}

void rpc_unary_call(struct rpc_unary *c, const char *method, const uint8_t *bytes, size_t len,
	uint64_t timeout_ns)
{
	CHECK(!c->call);
	gpr_timespec deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
		gpr_time_from_nanos((int64_t)timeout_ns, GPR_TIMESPAN));
	grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, len);
	grpc_byte_buffer *message = grpc_raw_byte_buffer_create(&slice, 1);
	grpc_slice_unref(slice);
	grpc_metadata_array_init(&c->headers);
	grpc_metadata_array_init(&c->trailers);
	c->answer = NULL;
	c->text = grpc_empty_slice();
	grpc_slice name = grpc_slice_from_copied_string(method);
	c->call = grpc_channel_create_call(c->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		c->queue.queue, name, NULL, deadline, NULL);
	grpc_slice_unref(name);
	const grpc_op ops[] = {
		{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = message},
		{.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &c->headers},
		{.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->answer},
		{.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
			.data.recv_status_on_client = {.trailing_metadata = &c->trailers,
				.status = &c->status,
				.status_details = &c->text}},
	};
	// An error would be a call of ours that breaks libgrpc's rules.
	CHECK(grpc_call_start_batch(c->call, ops, sizeof(ops) / sizeof(ops[0]), &c->tag, NULL) ==
		GRPC_CALL_OK);
	grpc_byte_buffer_destroy(message); // libgrpc keeps what it needs
}

static void end_call(struct rpc_unary *c)
{
	grpc_call_unref(c->call);
	grpc_metadata_array_destroy(&c->headers);
	grpc_metadata_array_destroy(&c->trailers);
	grpc_slice_unref(c->text);
	if (c->answer)
		grpc_byte_buffer_destroy(c->answer);
	c->call = NULL;
}

static grpc_slice read_answer(struct rpc_unary *c)
{
	grpc_byte_buffer_reader reader;
	if (!c->answer || !grpc_byte_buffer_reader_init(&reader, c->answer))
		return grpc_empty_slice();
	grpc_slice whole = grpc_byte_buffer_reader_readall(&reader);
	grpc_byte_buffer_reader_destroy(&reader);
	return whole;
}

void rpc_unary_dispatch(struct rpc_unary *c)
{
	char text[256];
	if (!rpc_queue_take(&c->queue))
		return;
	grpc_slice answer = read_answer(c);
	struct rpc_result result = {.status = (int)c->status,
		.text = text,
		.answer = GRPC_SLICE_START_PTR(answer),
		.len = GRPC_SLICE_LENGTH(answer)};
	snprintf(text, sizeof(text), "%.*s", (int)GRPC_SLICE_LENGTH(c->text),
		(const char *)GRPC_SLICE_START_PTR(c->text));
	end_call(c); // the callback may begin another one
	c->on_done(c->ctx, &result);
	grpc_slice_unref(answer);
}

int rpc_unary_fd(const struct rpc_unary *c)
{
	return c->queue.fd;
}

void rpc_unary_free(struct rpc_unary *c)
{
	if (!c)
		return;
	if (c->call)
		grpc_call_cancel(c->call, NULL);
	if (!rpc_queue_stop(&c->queue))
		return;
	if (c->call)
		end_call(c);
	grpc_channel_destroy(c->channel);
	rpc_queue_fini(&c->queue);
	free(c);
}
