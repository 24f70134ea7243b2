// SPDX-License-Identifier: Apache-2.0
// gRPC's server reflection (grpc.reflection.v1 and v1alpha, which differ in their name only): tools
// like grpcurl ask it what there is to call.
// Thread: ctrl.
#pragma once

#include <stddef.h>

struct descriptors;
struct reflection;
struct rpc_call;

// Both outlive it: what is known of types, and the full names of the services. NULL = out of
// memory.
struct reflection *reflection_new(
	const struct descriptors *, const char *const *services, size_t n_services);
// All calls have been closed. NULL is fine.
void reflection_free(struct reflection *);

struct status_call *reflection_open(struct reflection *, struct rpc_call *); // NULL = out of memory
