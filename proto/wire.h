// SPDX-License-Identifier: Apache-2.0
// Messages to bytes, and from bytes that nobody vouches for: protobuf-c, behind a guard. By itself
// it neither bounds the nesting (a Struct in a Struct in a … would use up the stack) nor checks
// strings, which proto3 wants in UTF-8 and which C wants without NUL.
// Thread: any.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/str.h"

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTO_DEPTH_MAX 100 // messages within messages, as protobuf's own parsers have it
#define PROTO_VARINT_MAX 10 // bytes
#define PROTO_HEAD_MAX (5 + PROTO_VARINT_MAX) // a tag has 5 at most

// The message, the caller's (proto_free); NULL: malformed, nested too deeply, not text where text
// is due, or no memory, with the reason in reterr (which may be NULL). An Any inside is not opened:
// its bytes come here again, with a bound of their own.
void *proto_unpack(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len,
	struct lb_err *reterr);
// The same of a message with up to *left fields, known or not, those of messages inside counted;
// so many are taken from *left. What is in a field of bytes, as in an Any, or of packed numbers,
// counts as one for each PROTO_BYTES_PER_FIELD. A field costs up to a microsecond and some 200
// bytes.
#define PROTO_BYTES_PER_FIELD 8
void *proto_unpack_within(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len,
	size_t *left, struct lb_err *reterr);
// The same of what holds others, which are opened later with bounds of their own: what is in a
// field of bytes counts for nothing.
void *proto_unpack_shell(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len,
	size_t *left, struct lb_err *reterr);
// As proto_unpack_within() without the field of this number, which may be large and is read
// otherwise.
void *proto_unpack_but(const ProtobufCMessageDescriptor *, const uint8_t *bytes, size_t len,
	uint32_t number, size_t *left, struct lb_err *reterr);
void proto_free(void *message); // NULL is fine

// *ret is the caller's (free). 0 or -ENOMEM.
[[nodiscard]] int proto_pack(const ProtobufCMessage *, uint8_t **ret, size_t *ret_len);

// One field of a message as it stands in the bytes.
struct proto_field {
	uint32_t number;
	unsigned type; // protobuf's wire type: 0, 1, 2 = length and bytes, 5
	const uint8_t *bytes; // borrowed; what follows the tag, or the length
	size_t len;
};
// Takes the next field from *p. False = there is none, or (*p is before end) what is there is none.
bool proto_field_next(const uint8_t **p, const uint8_t *end, struct proto_field *ret);

// Returns how many bytes it took.
size_t proto_varint_write(uint64_t, uint8_t to[PROTO_VARINT_MAX]);
// What stands before the bytes of a field that is a message or a text: its tag and their length.
struct proto_head {
	uint8_t bytes[PROTO_HEAD_MAX];
	size_t len;
};
struct proto_head proto_head_of(uint32_t number, size_t len);

// Does the Any's type URL name this message? What stands before the last '/' does not count
// (WF-04). Both may be "".
bool proto_any_is(const char *type_url, const ProtobufCMessageDescriptor *);

// Length of the well-formed UTF-8 sequence that starts at p, 0 = malformed or a NUL.
size_t proto_utf8_len(const uint8_t *p, size_t left);
// As a text of a message, in the arena: what is no UTF-8 is U+FFFD. NULL = out of memory.
char *proto_text(struct lb_arena *, struct str);
