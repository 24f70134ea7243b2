// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <string.h>

size_t proto_utf8_len(const uint8_t *p, size_t left)
{
	if (left == 0 || p[0] == 0)
		return 0;
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
	if (p[0] < 0xc2 || p[0] > 0xf4 || left < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool surrogate = p[0] == 0xed && p[1] > 0x9f;
	bool too_large = p[0] == 0xf4 && p[1] > 0x8f;
	return overlong || surrogate || too_large ? 0 : n;
}

static bool is_text(const uint8_t *p, size_t len)
{
	while (len) {
		size_t n = proto_utf8_len(p, len);
		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

// False when the varint is cut or longer than ten bytes.
static bool read_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned shift = 0; *p < end && shift < 70; shift += 7) {
		uint8_t b = *(*p)++;
		v |= (uint64_t)(b & 0x7f) << (shift < 64 ? shift : 63);
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

static int guard(const ProtobufCMessageDescriptor *type, const uint8_t *p, size_t len,
	unsigned depth, struct lb_err *err);

static int guard_field(const ProtobufCMessageDescriptor *type, uint32_t number, const uint8_t *p,
	size_t len, unsigned depth, struct lb_err *err)
{
	const ProtobufCFieldDescriptor *f = protobuf_c_message_descriptor_get_field(type, number);
	if (!f)
		return 0; // unknown: skipped
	if (f->type == PROTOBUF_C_TYPE_STRING && !is_text(p, len))
		return lb_err_set(err, "%s: not UTF-8 text", f->name);
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return guard(f->descriptor, p, len, depth + 1, err);
	return 0;
}

static int guard(const ProtobufCMessageDescriptor *type, const uint8_t *p, size_t len,
	unsigned depth, struct lb_err *err)
{
	static const char CUT[] = "%s: malformed protobuf";
	if (depth > PROTO_DEPTH_MAX)
		return lb_err_set(
			err, "%s: nested deeper than %d", type->short_name, PROTO_DEPTH_MAX);
	const uint8_t *end = p + len;
	while (p < end) {
		uint64_t tag, n = 0;
		if (!read_varint(&p, end, &tag) || tag >> 3 == 0 || tag >> 32)
			return lb_err_set(err, CUT, type->short_name);
		switch (tag & 7) {
		case 0:
			if (!read_varint(&p, end, &n))
				return lb_err_set(err, CUT, type->short_name);
			continue;
		case 1:
			n = 8;
			break;
		case 2:
			if (!read_varint(&p, end, &n))
				return lb_err_set(err, CUT, type->short_name);
			break;
		case 5:
			n = 4;
			break;
		default:
			return lb_err_set(err, CUT, type->short_name);
		}
		if (n > (uint64_t)(end - p))
			return lb_err_set(err, CUT, type->short_name);
		if ((tag & 7) == 2) {
			int rc = guard_field(type, (uint32_t)(tag >> 3), p, n, depth, err);
			if (rc)
				return rc;
		}
		p += n;
	}
	return 0;
}

void *proto_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	struct lb_err *err)
{
	static const uint8_t nothing;
	if (len == 0)
		bytes = &nothing;
	if (guard(type, bytes, len, 1, err))
		return NULL;
	void *message = protobuf_c_message_unpack(type, NULL, len, bytes);
	if (!message)
		lb_err_set(err, "%s: malformed protobuf", type->short_name);
	return message;
}

void proto_free(void *message)
{
	if (message)
		protobuf_c_message_free_unpacked(message, NULL);
}

bool proto_any_is(const char *type_url, const ProtobufCMessageDescriptor *type)
{
	const char *slash = strrchr(type_url, '/');
	return slash && strcmp(slash + 1, type->name) == 0;
}
