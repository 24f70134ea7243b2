// SPDX-License-Identifier: Apache-2.0
// Decoding of bytes that somebody else wrote. protobuf-c follows nested messages by recursion
// without a bound; here the nesting is measured first, so that no message exhausts the stack.
// Thread: any.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include <stddef.h>
#include <stdint.h>

#define PROTO_DEPTH_MAX 100 // messages within messages, as protobuf's own parsers have it

// NULL = malformed, nested too deeply, or no memory. Freed by protobuf_c_message_free_unpacked().
// An Any inside is not opened: its bytes come here again, with a bound of their own.
ProtobufCMessage *proto_unpack(
	const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len);
