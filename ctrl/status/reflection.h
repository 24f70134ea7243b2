// SPDX-License-Identifier: Apache-2.0
// gRPC's server reflection (grpc.reflection.v1 and v1alpha, which differ only in name): tools like
// grpcurl use it to list services.
// Thread: ctrl.
#pragma once

#include <stddef.h>

struct descriptors;
struct reflection;
struct rpc_call;

// The descriptors and the full names of the services outlive it. Returns NULL if out of memory.
struct reflection *reflection_new(
	const struct descriptors *, const char *const *services, size_t n_services);
// Call after all calls are closed. NULL is fine.
void reflection_free(struct reflection *);

struct status_call *reflection_open(struct reflection *, struct rpc_call *); // NULL = out of memory
