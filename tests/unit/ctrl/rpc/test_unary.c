// SPDX-License-Identifier: Apache-2.0
// Unary calls over loopback, before our own server.
#include "ctrl/rpc/server.h"
#include "ctrl/rpc/unary.h"
#include "lb/base/err.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TIMEOUT_NS (10 * NS_PER_SECOND)
#define PATIENCE_MS 30000
#define LARGE (8u << 20) // more than sockets hold
#define WHILE_MS 500 // for what fits to be written
#define MOST_S 15 // TCP would give the peer 20

static struct rpc_server *server;
static struct rpc_call *asked; // the newest; NULL = it is over
static unsigned n_done;
static int status;
static char answer[16];

// What the client says comes back when it has half-closed.
static char said[16];

static void *on_open(void *ctx, struct rpc_call *call, struct str method, const char *peer)
{
	asked = call;
	return str_eq(method, STR("/toys.of.others.Toy/AskOfIt")) ? ctx : NULL;
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	snprintf(said, sizeof(said), "%.*s", (int)len, (const char *)bytes);
	rpc_call_send(asked, bytes, len);
}

static void on_sent(void *ctx)
{
}

static void on_closed(void *ctx)
{
	asked = NULL;
}

static const struct rpc_events events = {on_open, on_message, on_sent, on_closed, NULL};

static void on_done(void *ctx, const struct rpc_result *r)
{
	n_done++;
	status = r->status;
	snprintf(answer, sizeof(answer), "%.*s", (int)r->len, (const char *)r->answer);
}

static struct rpc_unary *start(void)
{
	static int anything;
	struct lb_err err;
	char target[32];
	const struct rpc_server_conf conf = {"127.0.0.1:0", 10, 1000};
	n_done = 0;
	assert_int_equal(rpc_server_new(&conf, &events, &anything, &server, &err), 0);
	snprintf(target, sizeof(target), "127.0.0.1:%d", rpc_server_port(server));
	struct rpc_unary *c = rpc_unary_new(target, on_done, NULL);
	assert_non_null(c);
	return c;
}

static void wait_for(struct rpc_unary *c, unsigned number)
{
	while (n_done < number) {
		struct pollfd fds[] = {{rpc_unary_fd(c), POLLIN, 0},
			{server ? rpc_server_fd(server) : -1, POLLIN, 0}};
		assert_true(poll(fds, 2, PATIENCE_MS) > 0);
		if (server)
			rpc_server_dispatch(server);
		rpc_unary_dispatch(c);
	}
}

static void ask(struct rpc_unary *c, const char *method, const char *text)
{
	rpc_unary_call(c, method, (const uint8_t *)text, strlen(text), TIMEOUT_NS);
}

static void a_call_after_another_has_its_answer_or_its_status(void **state)
{
	struct rpc_unary *c = start();
	ask(c, "/toys.of.others.Toy/AskOfIt", "one");
	wait_for(c, 1);
	assert_int_equal(status, RPC_OK);
	assert_string_equal(answer, "one");
	ask(c, "/toys.of.others.Toy/AskOfIt", "two");
	wait_for(c, 2);
	assert_string_equal(answer, "two");
	assert_string_equal(said, "two");
	ask(c, "/toy.Toy/Nothing", "three");
	wait_for(c, 3);
	assert_int_equal(status, RPC_UNIMPLEMENTED);
	assert_string_equal(answer, "");
	rpc_unary_free(c);
	rpc_server_free(server);
}

static void without_a_server_a_call_is_unavailable(void **state)
{
	struct rpc_unary *c = start();
	rpc_server_free(server);
	server = NULL;
	ask(c, "/toys.of.others.Toy/AskOfIt", "one");
	wait_for(c, 1);
	assert_int_equal(status, RPC_UNAVAILABLE);
	rpc_unary_free(c);
}

static void of_a_call_that_is_given_up_nothing_is_told(void **state)
{
	struct rpc_unary *c = start();
	ask(c, "/toys.of.others.Toy/AskOfIt", "one"); // the server has no turn
	rpc_unary_free(c);
	assert_int_equal(n_done, 0);
	rpc_server_free(server);
}

static int listen_somewhere(char target[static 32])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	snprintf(target, 32, "127.0.0.1:%d", ntohs(at.sin_port));
	return fd;
}

// RFC 9113: as if it would read as much as there can be.
static int accept_and_promise(int listener)
{
	static const char bytes[] =
		"\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff" // SETTINGS_INITIAL_WINDOW_SIZE
		"\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0"; // WINDOW_UPDATE
	struct pollfd wait = {.fd = listener, .events = POLLIN};
	assert_int_equal(poll(&wait, 1, PATIENCE_MS), 1);
	int fd = accept(listener, NULL, NULL);
	assert_int_equal(write(fd, bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
	return fd;
}

static time_t now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

// OPS-293: libgrpc ends no call whose message it is writing.
static void a_peer_that_does_not_read_is_waited_for_a_moment_only(void **state)
{
	static struct rpc_unary *left; // what is left as it is
	char target[32];
	int listener = listen_somewhere(target);
	uint8_t *message = calloc(1, LARGE);
	left = rpc_unary_new(target, on_done, NULL);
	n_done = 0;
	rpc_unary_call(left, "/toy.Toy/Ask", message, LARGE, TIMEOUT_NS);
	free(message);
	int peer = accept_and_promise(listener);
	assert_int_equal(usleep(WHILE_MS * 1000), 0);
	time_t began_s = now_s();
	rpc_unary_free(left);
	assert_true(now_s() - began_s < MOST_S);
	assert_int_equal(n_done, 0);
	close(peer);
	close(listener);
}

RUN_SUITE("rpc/unary", cmocka_unit_test(a_call_after_another_has_its_answer_or_its_status),
	cmocka_unit_test(without_a_server_a_call_is_unavailable),
	cmocka_unit_test(of_a_call_that_is_given_up_nothing_is_told),
	cmocka_unit_test(a_peer_that_does_not_read_is_waited_for_a_moment_only))
