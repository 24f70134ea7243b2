// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH_DELIMITED 2 // wire type
#define PATH_MAX_DEPTH 8 // levels that an error names
#define REPLACEMENT "\xef\xbf\xbd" // U+FFFD

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

char *proto_text(struct lb_arena *arena, struct str s)
{
	char *text = lb_arena_alloc(arena, s.len + 1, strlen(REPLACEMENT)), *p = text;
	for (size_t i = 0, n; text && i < s.len; i += n ? n : 1) {
		n = proto_utf8_len((const uint8_t *)s.p + i, s.len - i);
		p = mempcpy(p, n ? s.p + i : REPLACEMENT, n ? n : strlen(REPLACEMENT));
	}
	return text;
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

int proto_pack(const ProtobufCMessage *m, uint8_t **ret, size_t *ret_len)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *bytes = malloc(len ? len : 1);
	if (!bytes)
		return -ENOMEM;
	protobuf_c_message_pack(m, bytes);
	*ret = bytes;
	*ret_len = len;
	return 0;
}

size_t proto_varint_write(uint64_t v, uint8_t to[PROTO_VARINT_MAX])
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

struct proto_head proto_head_of(uint32_t number, size_t len)
{
	struct proto_head h;
	h.len = proto_varint_write((uint64_t)number << 3 | LENGTH_DELIMITED, h.bytes);
	h.len += proto_varint_write(len, h.bytes + h.len);
	return h;
}

bool proto_field_next(const uint8_t **p, const uint8_t *end, struct proto_field *ret)
{
	const uint8_t *at = *p;
	uint64_t tag, n = 0;
	if (!read_varint(&at, end, &tag) || tag >> 3 == 0 || tag >> 32)
		return false;
	ret->number = (uint32_t)(tag >> 3);
	ret->type = tag & 7;
	ret->bytes = at;
	switch (ret->type) {
	case 0:
		if (!read_varint(&at, end, &n))
			return false;
		n = 0;
		break;
	case 1:
		n = 8;
		break;
	case LENGTH_DELIMITED:
		if (!read_varint(&at, end, &n))
			return false;
		ret->bytes = at;
		break;
	case 5:
		n = 4;
		break;
	default:
		return false;
	}
	if (n > (uint64_t)(end - at))
		return false;
	*p = at + n;
	ret->len = (size_t)(*p - ret->bytes);
	return true;
}

// What a message may still have.
struct allowance {
	unsigned depth; // of the message at hand
	size_t fields, most;
	bool is_shell; // bytes count for nothing
};

static int guard(const ProtobufCMessageDescriptor *type, const uint8_t *p, size_t len,
	struct allowance *, struct lb_err *err);

static int spend(struct allowance *a, size_t n, struct lb_err *err)
{
	if (a->fields < n)
		return lb_err_set(err, "more than %zu fields", a->most);
	a->fields -= n;
	return 0;
}

static int guard_message(const ProtobufCFieldDescriptor *f, const struct proto_field *in,
	struct allowance *a, struct lb_err *err)
{
	a->depth++;
	int rc = guard(f->descriptor, in->bytes, in->len, a, err);
	a->depth--;
	return rc;
}

static int guard_field(const ProtobufCFieldDescriptor *f, const struct proto_field *in,
	struct allowance *a, struct lb_err *err)
{
	if (f->type == PROTOBUF_C_TYPE_MESSAGE)
		return guard_message(f, in, a, err);
	if (f->type == PROTOBUF_C_TYPE_BYTES && a->is_shell)
		return 0;
	if (f->type != PROTOBUF_C_TYPE_STRING) // bytes, or numbers that are packed
		return spend(a, in->len / PROTO_BYTES_PER_FIELD, err);
	if (memchr(in->bytes, 0, in->len))
		return lb_err_set(err, "holds a NUL");
	return is_text(in->bytes, in->len) ? 0 : lb_err_set(err, "not UTF-8 text");
}

// Puts "field: " or "field[7]: " in front of what is wrong with it. The innermost names of a very
// deep path say nothing, and would push out the text.
static int name_field(const ProtobufCFieldDescriptor *f, const uint8_t *message,
	const struct proto_field *at, unsigned depth, struct lb_err *err)
{
	if (depth > PATH_MAX_DEPTH)
		return -EINVAL;
	if (f->label != PROTOBUF_C_LABEL_REPEATED)
		return lb_err_within(err, "%s", f->name);
	size_t index = 0;
	struct proto_field before;
	while (proto_field_next(&message, at->bytes, &before) && before.bytes != at->bytes)
		index += before.number == at->number;
	return lb_err_within(err, "%s[%zu]", f->name, index);
}

static int guard(const ProtobufCMessageDescriptor *type, const uint8_t *p, size_t len,
	struct allowance *a, struct lb_err *err)
{
	if (a->depth > PROTO_DEPTH_MAX)
		return lb_err_set(
			err, "%s: nested deeper than %d", type->short_name, PROTO_DEPTH_MAX);
	const uint8_t *message = p, *end = p + len;
	while (p < end) {
		struct proto_field in;
		if (!proto_field_next(&p, end, &in))
			return lb_err_set(err, "%s: malformed protobuf", type->short_name);
		const ProtobufCFieldDescriptor *f =
			in.type == LENGTH_DELIMITED
				? protobuf_c_message_descriptor_get_field(type, in.number)
				: NULL; // others hold nothing that could hurt, or are unknown
		if (spend(a, 1, err) || (f && guard_field(f, &in, a, err)))
			return f ? name_field(f, message, &in, a->depth, err) : -EINVAL;
	}
	return 0;
}

void *proto_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	struct lb_err *err)
{
	size_t any_number = SIZE_MAX;
	return proto_unpack_within(type, bytes, len, &any_number, err);
}

static void *unpack(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	bool is_shell, size_t *left, struct lb_err *err)
{
	static const uint8_t nothing;
	if (len == 0)
		bytes = &nothing;
	struct allowance a = {.depth = 1, .fields = *left, .most = *left, .is_shell = is_shell};
	if (guard(type, bytes, len, &a, err))
		return NULL;
	*left = a.fields;
	void *message = protobuf_c_message_unpack(type, NULL, len, bytes);
	if (!message)
		lb_err_set(err, "%s: malformed protobuf", type->short_name);
	return message;
}

void *proto_unpack_within(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	size_t *left, struct lb_err *err)
{
	return unpack(type, bytes, len, false, left, err);
}

void *proto_unpack_shell(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	size_t *left, struct lb_err *err)
{
	return unpack(type, bytes, len, true, left, err);
}

void *proto_unpack_but(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	uint32_t number, size_t *left, struct lb_err *err)
{
	const uint8_t *end = bytes + len, *next = bytes;
	struct proto_field f;
	size_t rest_len = 0;
	for (const uint8_t *p = bytes; proto_field_next(&next, end, &f); p = next)
		rest_len += f.number == number ? 0 : (size_t)(next - p);
	if (next != end) {
		lb_err_set(err, "%s: malformed protobuf", type->short_name);
		return NULL;
	}
	uint8_t *rest = malloc(rest_len + 1), *to = rest;
	if (!rest)
		return NULL;
	next = bytes;
	for (const uint8_t *p = bytes; proto_field_next(&next, end, &f); p = next)
		if (f.number != number)
			to = (uint8_t *)memcpy(to, p, (size_t)(next - p)) + (next - p);
	void *message = proto_unpack_within(type, rest, rest_len, left, err);
	free(rest);
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
