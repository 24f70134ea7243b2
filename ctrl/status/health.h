// SPDX-License-Identifier: Apache-2.0
// gRPC's health service (grpc.health.v1.Health). It knows one service, "": the daemon as a whole.
// Thread: ctrl.
#pragma once

#include <stdbool.h>

struct health;
struct rpc_call;

struct health *health_new(void); // NOT_SERVING; NULL = out of memory
// Call after all calls are closed. NULL is fine.
void health_free(struct health *);
// Watchers are told of changes; one that does not read gets only the last.
void health_set_serving(struct health *, bool serving);

// Open calls of the two methods; NULL = out of memory.
struct status_call *health_open_check(struct health *, struct rpc_call *);
struct status_call *health_open_watch(struct health *, struct rpc_call *);
