// SPDX-License-Identifier: Apache-2.0
// What single situations begin and end with: a small world, requests of its first client, and what
// must have become of them.
// Thread: the test's.
#pragma once

#include "lb/pick/check.h"
#include "tests/sim/proxy/world.h"

// One client, two backends.
struct world *a_world(void);
// The first one, up when this returns.
void open_client(struct world *);
void use_backends(struct world *, uint32_t mask);
// Client connected, both backends too. NULL = a_world().
struct world *ready_world(const struct world_conf *conf);
// Of 20 clients, with n requests under way at two backends that never answer.
struct world *world_of_hanging(uint32_t n);
// Of two backends whose connections begin with this header. In the world one backend is used, and
// all clients are connected.
struct world_conf headed(const struct lb_header *, uint32_t n_clients);
struct world *headed_world(const struct lb_header *, uint32_t n_clients);
// Every second, with a path (not copied) that says what the backends do (peers.h). The caller's
// (lb_check_put).
struct lb_check *a_check(enum lb_check_kind, const char *path);
struct ask *ask(struct world *, enum kind kind, uint32_t size);
// With grpc-timeout and x-fail (peers.h), NULL = without.
struct ask *ask_with(
	struct world *, enum kind kind, uint32_t size, const char *timeout, const char *fail);
void finish(struct world *);
// Cancels all requests, and frees the world.
void abandon(struct world *);
void finish_of(struct world *, const struct ask *); // others may go on
// How long it took, as its client saw it.
uint64_t took_ns(const struct ask *);
void assert_ok(const struct world *, const struct ask *);
// A local reply to gRPC.
void assert_reply(const struct ask *, int grpc);
