// SPDX-License-Identifier: Apache-2.0
// A gRPC server over loopback that runs out of memory. What libgrpc itself allocates is never
// failed: it ends the program then.
#include "ctrl/rpc/server.h"
#include "lb/base/err.h"
#include "tests/support/check.h"
#include "tests/support/rpc_client.h"

#include <stdlib.h>

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

static unsigned n_open;
static bool starves_when_opened, is_starved;

static void *on_open(void *ctx, struct rpc_call *call, struct str method, const char *peer)
{
	(void)call, (void)method, (void)peer;
	n_open++;
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

RUN_SUITE("rpc/server", cmocka_unit_test(after_running_out_of_memory_it_accepts_calls_again))
