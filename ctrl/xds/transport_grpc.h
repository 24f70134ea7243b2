// SPDX-License-Identifier: Apache-2.0
// The real transport: libgrpc's C surface API. One thread of its own blocks in libgrpc's completion
// queue and hands events over; everything else, callbacks included, runs on the control thread.
// Thread: ctrl, all of it. The threads that libgrpc and this file start inherit the affinity of the
// thread that calls new().
#pragma once

#include "ctrl/xds/transport.h"

struct xds_grpc;

// Starts libgrpc and the thread. NULL = out of memory or no thread.
struct xds_grpc *xds_grpc_new(void);
// Its transports were freed before. Waits for the thread.
void xds_grpc_free(struct xds_grpc *);

struct xds_transport_factory xds_grpc_factory(struct xds_grpc *);

// Readable when there is something to dispatch.
int xds_grpc_fd(const struct xds_grpc *);
// Calls the event functions of what has happened. Returns the bytes of the messages among it.
size_t xds_grpc_dispatch(struct xds_grpc *);
