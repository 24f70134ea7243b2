// SPDX-License-Identifier: Apache-2.0
// Messages to and from protobuf's JSON form, by reflection on protobuf-c's descriptors: names in
// lowerCamelCase or as in the .proto file, enums by name or number, 64-bit numbers as text or (up
// to INT64_MAX) number, bytes in base64, and the well-known types in their own forms. An Any is
// written out with "@type"; its type must be in the registry, or in the scope. Maps are those with
// text keys.
// Thread: any.
#pragma once

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include <stddef.h>

struct lb_err;
struct proto_pool;

// What is read beyond what is compiled in, and what becomes of the rest. An Any may have its bytes
// in "@raw", in base64, whatever its type is.
struct proto_json_scope {
	const struct proto_pool *pool; // goes before the registry (pool.h); NULL = none
	// Types whose names begin so are compiled in with all their fields; NULL = none.
	const char *whole;
	// A field, or the type of an Any, is not known, and is left out: the text names its path.
	// The Any is empty then. NULL = that is an error, as it is always for a field of a type
	// that is `whole` or of the pool: then there is no such field.
	void (*left_out)(void *ctx, const char *text);
	void *ctx;
};

// 0, -ENOMEM or -EINVAL. reterr names the path of the first field that is wrong
// ("endpoints[0].lbEndpoints[2].endpoint: …"), or line and column where the text is not JSON.
// The message is freed by protobuf_c_message_free_unpacked().
[[nodiscard]] int proto_json_parse(const ProtobufCMessageDescriptor *, const char *text, size_t len,
	ProtobufCMessage **ret, struct lb_err *reterr);
[[nodiscard]] int proto_json_parse_in(const struct proto_json_scope *,
	const ProtobufCMessageDescriptor *, const char *text, size_t len, ProtobufCMessage **ret,
	struct lb_err *reterr);
// The same for JSON that is parsed already; the JSON stays the caller's.
[[nodiscard]] int proto_json_decode(const ProtobufCMessageDescriptor *, json_t *,
	ProtobufCMessage **ret, struct lb_err *reterr);

// Owned by the caller; fields with their default value are left out. NULL = no memory.
// What JSON cannot say is still shown: an Any that is not understood as
// {"@type": …, "value": base64}, bytes outside ASCII of a text that is not UTF-8 as "?".
json_t *proto_json_encode(const ProtobufCMessage *);
