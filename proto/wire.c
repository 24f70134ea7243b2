// SPDX-License-Identifier: Apache-2.0
// The nesting is measured without recursion: a stack of the ends of the messages that are open.
#include "proto/wire.h"

#include <stdbool.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct open_message {
	const ProtobufCMessageDescriptor *desc;
	const uint8_t *end;
};

static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *ret)
{
	uint64_t x = 0;
	for (unsigned shift = 0; shift < 64 && *at < end; shift += 7) {
		uint8_t b = *(*at)++;
		x |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*ret = x;
			return true;
		}
	}
	return false;
}

static const ProtobufCMessageDescriptor *child_of(
	const ProtobufCMessageDescriptor *desc, uint64_t id)
{
	const ProtobufCFieldDescriptor *f =
		id <= UINT32_MAX ? protobuf_c_message_descriptor_get_field(desc, (unsigned)id)
				 : NULL;
	return f && f->type == PROTOBUF_C_TYPE_MESSAGE ? f->descriptor : NULL;
}

// Moves over one field. False = it does not fit. *ret_child is set when the field is a message to
// go into; *at is then its first byte and *ret_end its end.
static bool step(const ProtobufCMessageDescriptor *desc, const uint8_t **at, const uint8_t *end,
	const ProtobufCMessageDescriptor **ret_child, const uint8_t **ret_end)
{
	uint64_t tag, n;
	*ret_child = NULL;
	if (!read_varint(at, end, &tag))
		return false;
	switch (tag & 7) {
	case WIRE_VARINT:
		return read_varint(at, end, &n);
	case WIRE_FIXED64:
		n = 8;
		break;
	case WIRE_FIXED32:
		n = 4;
		break;
	case WIRE_BYTES:
		if (!read_varint(at, end, &n))
			return false;
		*ret_child = child_of(desc, tag >> 3);
		break;
	default: // groups, which no schema here has, and numbers that mean nothing
		return false;
	}
	if (n > (uint64_t)(end - *at))
		return false;
	if (*ret_child)
		*ret_end = *at + n;
	else
		*at += n;
	return true;
}

static bool nesting_is_bounded(
	const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t len)
{
	struct open_message stack[PROTO_DEPTH_MAX];
	unsigned depth = 0;
	stack[0] = (struct open_message){desc, bytes + len};
	for (const uint8_t *at = bytes;;) {
		while (at == stack[depth].end) {
			if (depth == 0)
				return true;
			depth--;
		}
		const ProtobufCMessageDescriptor *child;
		const uint8_t *end;
		if (!step(stack[depth].desc, &at, stack[depth].end, &child, &end))
			return false;
		if (!child)
			continue;
		if (++depth == PROTO_DEPTH_MAX)
			return false;
		stack[depth] = (struct open_message){child, end};
	}
}

ProtobufCMessage *proto_unpack(
	const ProtobufCMessageDescriptor *desc, const uint8_t *bytes, size_t len)
{
	static const uint8_t nothing;
	if (len == 0)
		bytes = &nothing;
	if (!nesting_is_bounded(desc, bytes, len))
		return NULL;
	return protobuf_c_message_unpack(desc, NULL, len, bytes);
}
