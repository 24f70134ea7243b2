// SPDX-License-Identifier: Apache-2.0
// Calls in which the client alone speaks, over loopback, before our own server.
#include "ctrl/rpc/server.h"
#include "ctrl/rpc/stream.h"
#include "lb/base/err.h"
#include "tests/support/check.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 30000
#define METHOD "/toy.Toy/Tell"

static struct rpc_server *server;
static struct rpc_call *call; // the newest; NULL = it is over
static unsigned n_sent, n_ended;
static int status;
static char said[64]; // all messages, each with a bar behind it

static void *on_open(void *ctx, struct rpc_call *c, struct str method, const char *peer)
{
	call = c;
	return str_eq(method, STR(METHOD)) ? ctx : NULL;
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	size_t at = strlen(said);
	snprintf(said + at, sizeof(said) - at, "%.*s|", (int)len, (const char *)bytes);
}

static void on_server_sent(void *ctx)
{
}

static void on_closed(void *ctx)
{
	call = NULL;
}

static const struct rpc_events server_events = {
	on_open, on_message, on_server_sent, on_closed, NULL};

static void on_sent(void *ctx)
{
	n_sent++;
}

static void on_end(void *ctx, int code, const char *text)
{
	n_ended++;
	status = code;
}

static const struct rpc_stream_events events = {on_sent, on_end};

static void listen_at(int port)
{
	static int anything;
	struct lb_err err;
	char address[32];
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	const struct rpc_server_conf conf = {address, 10, 1000};
	assert_int_equal(rpc_server_new(&conf, &server_events, &anything, &server, &err), 0);
}

static struct rpc_stream *start(void)
{
	char target[32];
	n_sent = n_ended = 0;
	said[0] = 0;
	listen_at(0);
	snprintf(target, sizeof(target), "127.0.0.1:%d", rpc_server_port(server));
	struct rpc_stream *s = rpc_stream_new(target, &events, NULL);
	assert_non_null(s);
	assert_false(rpc_stream_is_open(s));
	return s;
}

static void turn(struct rpc_stream *s)
{
	struct pollfd fds[] = {
		{rpc_stream_fd(s), POLLIN, 0}, {server ? rpc_server_fd(server) : -1, POLLIN, 0}};
	assert_true(poll(fds, 2, PATIENCE_MS) > 0);
	if (server)
		rpc_server_dispatch(server);
	rpc_stream_dispatch(s);
}

static void say(struct rpc_stream *s, const char *first, const char *second)
{
	const struct rpc_piece pieces[] = {{first, strlen(first)}, {second, strlen(second)}};
	unsigned before = n_sent, ended = n_ended;
	rpc_stream_send(s, pieces, 2);
	while (n_sent == before && n_ended == ended)
		turn(s);
}

static void messages_come_in_order_and_the_server_ends_the_call(void **state)
{
	struct rpc_stream *s = start();
	for (unsigned i = 1; i <= 2; i++) {
		rpc_stream_open(s, METHOD);
		assert_true(rpc_stream_is_open(s));
		say(s, "on", "e");
		say(s, "", "two");
		rpc_stream_finish(s);
		while (n_ended < i)
			turn(s);
		assert_int_equal(status, RPC_OK);
		assert_int_equal(n_sent, 2 * i);
		assert_false(rpc_stream_is_open(s));
	}
	assert_string_equal(said, "one|two|one|two|");
	rpc_stream_free(s);
	rpc_server_free(server);
}

static void a_server_that_refuses_ends_the_call_with_its_status(void **state)
{
	struct rpc_stream *s = start();
	rpc_stream_open(s, "/toy.Toy/Nothing");
	while (!n_ended)
		turn(s);
	assert_int_equal(status, RPC_UNIMPLEMENTED);
	rpc_stream_open(s, METHOD);
	say(s, "a", "");
	while (!call || !*said)
		turn(s);
	rpc_call_end(call, RPC_RESOURCE_EXHAUSTED, "enough");
	while (n_ended < 2)
		turn(s);
	assert_int_equal(status, RPC_RESOURCE_EXHAUSTED);
	rpc_stream_free(s);
	rpc_server_free(server);
}

static void without_a_server_a_call_ends_and_with_one_the_next_does_not(void **state)
{
	struct rpc_stream *s = start();
	int port = rpc_server_port(server);
	rpc_server_free(server);
	server = NULL;
	rpc_stream_open(s, METHOD);
	say(s, "lost", "");
	while (!n_ended)
		turn(s);
	assert_int_equal(status, RPC_UNAVAILABLE);
	assert_int_equal(n_sent, 0);
	listen_at(port);
	while (!*said) { // libgrpc waits before it connects again
		if (rpc_stream_is_open(s)) {
			turn(s);
			continue;
		}
		n_ended = 0;
		rpc_stream_open(s, METHOD);
		say(s, "heard", "");
	}
	assert_string_equal(said, "heard|");
	rpc_stream_free(s);
	rpc_server_free(server);
}

static void of_a_call_that_is_given_up_nothing_is_told(void **state)
{
	struct rpc_stream *s = start();
	const struct rpc_piece piece = {"one", 3};
	rpc_stream_open(s, METHOD);
	rpc_stream_send(s, &piece, 1); // the server has no turn
	rpc_stream_free(s);
	assert_int_equal(n_sent + n_ended, 0);
	rpc_server_free(server);
}

RUN_SUITE("rpc/stream", cmocka_unit_test(messages_come_in_order_and_the_server_ends_the_call),
	cmocka_unit_test(a_server_that_refuses_ends_the_call_with_its_status),
	cmocka_unit_test(without_a_server_a_call_ends_and_with_one_the_next_does_not),
	cmocka_unit_test(of_a_call_that_is_given_up_nothing_is_told))
