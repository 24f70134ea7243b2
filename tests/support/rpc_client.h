// SPDX-License-Identifier: Apache-2.0
// A gRPC client on libgrpc's C surface API, for tests of what serves gRPC in the same thread: while
// it waits, the server is given its turns. Every wait is bounded and asserts that it ended.
// Thread: the test's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rpc_client;
struct rpc_client_call;

// turn(ctx) lets the server do what it can without waiting.
struct rpc_client *rpc_client_new(int port, void (*turn)(void *ctx), void *ctx);
void rpc_client_free(struct rpc_client *); // all calls were freed before
void rpc_client_turns(struct rpc_client *, unsigned n); // some milliseconds each

struct rpc_client_call *client_call_begin(struct rpc_client *, const char *method);
// Cancels it if it is not over.
void client_call_free(struct rpc_client_call *);
void client_call_say(struct rpc_client_call *, const uint8_t *bytes, size_t len);
void client_call_half_close(struct rpc_client_call *);
// Asks for the next message, which takes time; heard() says whether it, or the end, is here.
void client_call_listen(struct rpc_client_call *);
bool client_call_heard(struct rpc_client_call *);
// Waits for the next message (after listen() for the one that it asked for): free. NULL = there is
// none any more.
uint8_t *client_call_hear(struct rpc_client_call *, size_t *ret_len);
// Waits for the end: gRPC's status. text (borrowed from the call) may be NULL.
int client_call_status(struct rpc_client_call *, const char **text);
bool client_call_over(struct rpc_client_call *); // without waiting
