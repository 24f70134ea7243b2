// SPDX-License-Identifier: Apache-2.0
// A gRPC server over loopback that runs out of memory, and one whose client does not read. What
// libgrpc itself allocates is never failed: it ends the program then.
#include "ctrl/rpc/server.h"
#include "lb/base/err.h"
#include "tests/support/check.h"
#include "tests/support/rpc_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool without_memory;

// The linker's --wrap: what the server calls.
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return without_memory ? NULL : __real_malloc(size);
}
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
	return without_memory ? NULL : __real_calloc(n, size);
}

#define ANSWER_LEN (8u << 20) // more than a socket holds
#define WHILE_MS 500 // for what fits to be written
#define MOST_S 20

static unsigned n_open;
static bool starves_when_opened, is_starved, answers_at_length;

static void *on_open(void *ctx, struct rpc_call *call, struct str method, const char *peer)
{
	(void)method, (void)peer;
	n_open++;
	if (answers_at_length) {
		uint8_t *bytes = calloc(1, ANSWER_LEN);
		rpc_call_send(call, bytes, ANSWER_LEN);
		free(bytes);
	}
	is_starved |= starves_when_opened;
	without_memory = is_starved;
	return ctx;
}

static void on_message(void *ctx, const uint8_t *bytes, size_t len)
{
	(void)ctx, (void)bytes, (void)len;
}

static void on_sent(void *ctx)
{
	(void)ctx;
}

static void on_closed(void *ctx)
{
	(void)ctx;
	n_open--;
}

static const struct rpc_events events = {on_open, on_message, on_sent, on_closed, NULL};

// Memory is there for everybody but the server.
static void turn(void *server)
{
	without_memory = is_starved;
	rpc_server_dispatch(server);
	without_memory = false;
}

static void one_call(struct rpc_client *client)
{
	struct rpc_client_call *c = client_call_begin(client, "/toy.Toy/Ask");
	client_call_half_close(c);
	assert_int_equal(client_call_status(c, NULL), RPC_OK);
	client_call_free(c);
}

// Neither when the only call begins nor when it ends is there memory for the next one.
static void after_running_out_of_memory_it_accepts_calls_again(void **state)
{
	static int anything;
	struct rpc_server *server;
	struct lb_err err;
	(void)state;
	const struct rpc_server_conf conf = {"127.0.0.1:0", 10, 1000};
	assert_int_equal(rpc_server_new(&conf, &events, &anything, &server, &err), 0);
	struct rpc_client *client = rpc_client_new(rpc_server_port(server), turn, server);
	one_call(client);
	starves_when_opened = true;
	one_call(client);
	rpc_client_turns(client, 20);
	assert_int_equal(n_open, 0);
	assert_true(is_starved);
	is_starved = starves_when_opened = false;
	one_call(client);
	one_call(client);
	rpc_client_free(client);
	rpc_server_free(server);
}

// RFC 9113: a preface, with windows as large as they may be, and one call.
static void call_without_reading(int fd)
{
	static const char bytes[] =
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		"\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff" // SETTINGS_INITIAL_WINDOW_SIZE
		"\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0" // WINDOW_UPDATE
		"\0\0\x33\1\5\0\0\0\1\x83\x86" // HEADERS: POST, http
		"\4\14/toy.Toy/Ask\1\1x\17\20\20"
		"application/grpc"
		"\0\2te\10trailers";
	assert_int_equal(write(fd, bytes, sizeof(bytes) - 1), sizeof(bytes) - 1);
}

static void cut(void *ctx)
{
	assert_int_equal(shutdown(*(int *)ctx, SHUT_RDWR), 0);
}

static void turns(struct rpc_server *server, int ms)
{
	struct pollfd ready = {.fd = rpc_server_fd(server), .events = POLLIN};
	for (; ms > 0; ms -= 10) {
		(void)poll(&ready, 1, 10);
		rpc_server_dispatch(server);
	}
}

// OPS-292: libgrpc waits for what it is writing before it closes a connection.
static void a_client_that_does_not_read_delays_the_end_by_a_moment_only(void **state)
{
	static int anything;
	struct rpc_server *server;
	struct lb_err err;
	int ends[2];
	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	int second = dup(ends[0]);
	const struct rpc_server_conf conf = {
		.n_calls_max = 10, .message_len_max = 1000, .cut = cut, .end_ctx = &second};
	assert_int_equal(rpc_server_new(&conf, &events, &anything, &server, &err), 0);
	answers_at_length = true;
	rpc_server_connect(server, ends[0]);
	call_without_reading(ends[1]);
	turns(server, WHILE_MS);
	assert_int_equal(n_open, 1);
	alarm(MOST_S); // it would be for ever
	rpc_server_free(server);
	alarm(0);
	assert_int_equal(n_open, 0);
	answers_at_length = false;
	close(second);
	close(ends[1]);
}

static int dial(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons((uint16_t)port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096;
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

// OPS-293: of one that libgrpc has accepted itself nobody has the socket.
static void a_client_of_the_address_that_does_not_read_is_left_behind(void **state)
{
	static struct rpc_server *left; // as it is
	static int anything;
	struct lb_err err;
	(void)state;
	const struct rpc_server_conf conf = {"127.0.0.1:0", 10, 1000};
	assert_int_equal(rpc_server_new(&conf, &events, &anything, &left, &err), 0);
	answers_at_length = true;
	int client = dial(rpc_server_port(left));
	call_without_reading(client);
	turns(left, WHILE_MS);
	assert_int_equal(n_open, 1);
	alarm(MOST_S); // TCP would give it 20
	rpc_server_free(left);
	alarm(0);
	assert_int_equal(n_open, 0);
	answers_at_length = false;
	close(client);
}

RUN_SUITE("rpc/server", cmocka_unit_test(after_running_out_of_memory_it_accepts_calls_again),
	cmocka_unit_test(a_client_that_does_not_read_delays_the_end_by_a_moment_only),
	cmocka_unit_test(a_client_of_the_address_that_does_not_read_is_left_behind))
