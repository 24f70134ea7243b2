// SPDX-License-Identifier: Apache-2.0
// A channel of libgrpc to one server, in the clear, of which little is expected: it answers with
// short messages, and may be away for long.
// Thread: the owner's.
#pragma once

#include <grpc/grpc.h>

// target: HOST:PORT, resolved by libgrpc. Not NULL. grpc_channel_destroy() it.
grpc_channel *rpc_channel_new(const char *target);
