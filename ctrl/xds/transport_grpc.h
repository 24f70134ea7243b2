// SPDX-License-Identifier: Apache-2.0
// The transport on libgrpc's C surface API. A thread of its own blocks in libgrpc's completion
// queue and passes events on; everything else, callbacks included, runs on the control thread.
// Thread: ctrl. Threads started by libgrpc and this file inherit the affinity of the thread that
// calls new().
#pragma once

#include "ctrl/xds/transport.h"

struct xds_grpc;

// Starts libgrpc and the thread. Returns NULL if out of memory or without a thread.
struct xds_grpc *xds_grpc_new(void);
// Call after its transports are freed. Waits for the thread.
void xds_grpc_free(struct xds_grpc *);

// Of messages of streams that are opened from now on; a longer one ends its stream. Without it
// 256 MiB.
void xds_grpc_set_max_len(struct xds_grpc *, size_t len);

struct xds_transport_factory xds_grpc_factory(struct xds_grpc *);

// Readable when there is something to dispatch.
int xds_grpc_fd(const struct xds_grpc *);
// Calls the callbacks of pending events. Returns the bytes of the messages among them.
size_t xds_grpc_dispatch(struct xds_grpc *);
