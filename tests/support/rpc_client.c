// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rpc_client.h"

#include "tests/support/check.h"

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/time.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BOUND_S 30
#define TURN_MS 1

struct rpc_client {
	grpc_completion_queue *queue;
	grpc_channel *channel;
	void (*turn)(void *ctx);
	void *ctx;
	unsigned n_under_way; // operations
};

// An operation; its address is libgrpc's tag.
struct op {
	bool under_way;
};

struct rpc_client_call {
	struct rpc_client *client;
	grpc_call *call;
	struct op start, send, close, receive, end;
	grpc_metadata_array headers, trailers;
	grpc_byte_buffer *received;
	grpc_status_code status;
	grpc_slice status_text;
	char *text;
};

static void turn(struct rpc_client *c)
{
	c->turn(c->ctx);
	gpr_timespec until = gpr_time_add(
		gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_millis(TURN_MS, GPR_TIMESPAN));
	grpc_event e = grpc_completion_queue_next(c->queue, until, NULL);
	if (e.type != GRPC_OP_COMPLETE)
		return;
	struct op *op = e.tag;
	op->under_way = false;
	c->n_under_way--;
}

#define WAIT_WHILE(client, condition)                                                              \
	do {                                                                                       \
		time_t end = time(NULL) + BOUND_S;                                                 \
		while (condition) {                                                                \
			turn(client);                                                              \
			if (time(NULL) > end)                                                      \
				fail_msg("for ever: %s", #condition);                              \
		}                                                                                  \
	} while (0)

struct rpc_client *rpc_client_new(int port, void (*fn)(void *ctx), void *ctx)
{
	char target[64];
	snprintf(target, sizeof(target), "ipv4:127.0.0.1:%d", port);
	struct rpc_client *c = calloc(1, sizeof(*c));
	assert_non_null(c);
	grpc_init();
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_arg args[] = {
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH}, {.integer = -1}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL}, {.integer = 1}},
		// A window that stays small, so that what is not read stays with the server.
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_HTTP2_BDP_PROBE}, {.integer = 0}},
		{GRPC_ARG_INTEGER, (char[]){GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES},
			{.integer = 65536}},
	};
	grpc_channel_args list = {sizeof(args) / sizeof(args[0]), args};
	*c = (struct rpc_client){.queue = grpc_completion_queue_create_for_next(NULL),
		.channel = grpc_channel_create(target, creds, &list),
		.turn = fn,
		.ctx = ctx};
	grpc_channel_credentials_release(creds);
	return c;
}

void rpc_client_free(struct rpc_client *c)
{
	WAIT_WHILE(c, c->n_under_way > 0);
	grpc_channel_destroy(c->channel);
	grpc_completion_queue_shutdown(c->queue);
	while (grpc_completion_queue_next(c->queue, gpr_inf_future(GPR_CLOCK_REALTIME), NULL)
			.type != GRPC_QUEUE_SHUTDOWN)
		;
	grpc_completion_queue_destroy(c->queue);
	grpc_shutdown_blocking();
	free(c);
}

void rpc_client_turns(struct rpc_client *c, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		turn(c);
}

static void start(struct rpc_client_call *c, struct op *op, const grpc_op *ops, size_t n)
{
	assert_int_equal(grpc_call_start_batch(c->call, ops, n, op, NULL), GRPC_CALL_OK);
	op->under_way = true;
	c->client->n_under_way++;
}

struct rpc_client_call *client_call_begin(struct rpc_client *client, const char *method)
{
	struct rpc_client_call *c = calloc(1, sizeof(*c));
	assert_non_null(c);
	c->client = client;
	grpc_metadata_array_init(&c->headers);
	grpc_metadata_array_init(&c->trailers);
	c->status_text = grpc_empty_slice();
	grpc_slice path = grpc_slice_from_copied_string(method);
	c->call = grpc_channel_create_call(client->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
		client->queue, path, NULL, gpr_inf_future(GPR_CLOCK_REALTIME), NULL);
	grpc_slice_unref(path);
	const grpc_op begin[] = {{.op = GRPC_OP_SEND_INITIAL_METADATA},
		{.op = GRPC_OP_RECV_INITIAL_METADATA,
			.data.recv_initial_metadata.recv_initial_metadata = &c->headers}};
	const grpc_op end = {.op = GRPC_OP_RECV_STATUS_ON_CLIENT,
		.data.recv_status_on_client = {.trailing_metadata = &c->trailers,
			.status = &c->status,
			.status_details = &c->status_text}};
	start(c, &c->start, begin, 2);
	start(c, &c->end, &end, 1);
	return c;
}

void client_call_free(struct rpc_client_call *c)
{
	if (c->end.under_way)
		grpc_call_cancel(c->call, NULL);
	WAIT_WHILE(c->client, c->end.under_way || c->start.under_way || c->send.under_way ||
				      c->close.under_way || c->receive.under_way);
	grpc_call_unref(c->call);
	grpc_metadata_array_destroy(&c->headers);
	grpc_metadata_array_destroy(&c->trailers);
	grpc_slice_unref(c->status_text);
	grpc_byte_buffer_destroy(c->received);
	free(c->text);
	free(c);
}

void client_call_say(struct rpc_client_call *c, const uint8_t *bytes, size_t len)
{
	WAIT_WHILE(c->client, c->send.under_way);
	grpc_slice slice = grpc_slice_from_copied_buffer((const char *)bytes, len);
	grpc_byte_buffer *buffer = grpc_raw_byte_buffer_create(&slice, 1);
	const grpc_op op = {.op = GRPC_OP_SEND_MESSAGE, .data.send_message.send_message = buffer};
	start(c, &c->send, &op, 1);
	grpc_slice_unref(slice);
	grpc_byte_buffer_destroy(buffer);
}

void client_call_half_close(struct rpc_client_call *c)
{
	const grpc_op op = {.op = GRPC_OP_SEND_CLOSE_FROM_CLIENT};
	start(c, &c->close, &op, 1);
}

void client_call_listen(struct rpc_client_call *c)
{
	const grpc_op op = {
		.op = GRPC_OP_RECV_MESSAGE, .data.recv_message.recv_message = &c->received};
	if (!c->receive.under_way && !c->received)
		start(c, &c->receive, &op, 1);
}

bool client_call_heard(struct rpc_client_call *c)
{
	return !c->receive.under_way;
}

uint8_t *client_call_hear(struct rpc_client_call *c, size_t *ret_len)
{
	grpc_byte_buffer_reader reader;
	client_call_listen(c);
	WAIT_WHILE(c->client, c->receive.under_way);
	if (!c->received)
		return NULL;
	assert_true(grpc_byte_buffer_reader_init(&reader, c->received));
	grpc_slice all = grpc_byte_buffer_reader_readall(&reader);
	size_t len = GRPC_SLICE_LENGTH(all);
	uint8_t *bytes = malloc(len + 1);
	assert_non_null(bytes);
	memcpy(bytes, GRPC_SLICE_START_PTR(all), len);
	*ret_len = len;
	grpc_slice_unref(all);
	grpc_byte_buffer_reader_destroy(&reader);
	grpc_byte_buffer_destroy(c->received);
	c->received = NULL;
	return bytes;
}

int client_call_status(struct rpc_client_call *c, const char **text)
{
	WAIT_WHILE(c->client, c->end.under_way);
	free(c->text);
	c->text = grpc_slice_to_c_string(c->status_text);
	if (text)
		*text = c->text;
	return (int)c->status;
}

bool client_call_over(struct rpc_client_call *c)
{
	return !c->end.under_way;
}
