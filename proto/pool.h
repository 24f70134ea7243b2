// SPDX-License-Identifier: Apache-2.0
// Message types that are known at run time only: a FileDescriptorSet, as protoc writes it, made
// into descriptors like those that protoc-c generates, so that whatever goes by descriptors
// (protobuf-c, json.h) works with them. Their messages begin as zeros, without message_init().
// Thread: any, once it is made.
#pragma once

#include "lb/base/str.h"

#include <protobuf-c/protobuf-c.h>

#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct proto_pool;

// 0, -ENOMEM or -EINVAL: reterr names the type that is wrong. Sets may stand one behind the other;
// of duplicate definitions of a type the first counts. A field of a type that is not there is left
// out, so that it is as unknown as its type. The well-known types need not be there.
[[nodiscard]] int proto_pool_new(
	const uint8_t *bytes, size_t len, struct proto_pool **ret, struct lb_err *reterr);
void proto_pool_free(struct proto_pool *); // NULL is fine; no message of it is left

size_t proto_pool_n_messages(const struct proto_pool *);
// By its full name, without leading dot. NULL = not there.
const ProtobufCMessageDescriptor *proto_pool_find(const struct proto_pool *, struct str name);
