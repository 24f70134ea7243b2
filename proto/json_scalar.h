// SPDX-License-Identifier: Apache-2.0
// The leaves of JSON → message: one value into one C variable, and the place that an error names.
// All readers: 0, -EINVAL with the error told, -ENOMEM.
// Thread: any.
#pragma once

#include <jansson.h>
#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_err;
struct proto_json_scope;

// Where the reader stands: a list through the stack, from the innermost outwards.
struct json_place {
	const struct json_place *up; // NULL = the message that was asked for
	const char *name; // NULL = an element of the list that `up` names
	size_t index;
	unsigned depth;
	struct lb_err *err; // may be NULL
	const struct proto_json_scope *scope;
};

static inline struct json_place json_place_of_member(const struct json_place *up, const char *name)
{
	struct json_place at = *up;
	at.up = up;
	at.name = name;
	return at;
}

static inline struct json_place json_place_of_element(const struct json_place *up, size_t index)
{
	struct json_place at = *up;
	at.up = up;
	at.name = NULL;
	at.index = index;
	return at;
}

// Tells "place: text" and returns -EINVAL.
int json_fail(const struct json_place *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
// The same where what is not known may be left out: tells that, and returns 0.
int json_leave_out(const struct json_place *, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

[[nodiscard]] int json_read_signed(
	const struct json_place *, json_t *, int64_t min, int64_t max, int64_t *ret);
[[nodiscard]] int json_read_unsigned(
	const struct json_place *, json_t *, uint64_t max, uint64_t *ret);
[[nodiscard]] int json_read_double(const struct json_place *, json_t *, double *ret);
[[nodiscard]] int json_read_float(const struct json_place *, json_t *, float *ret);
[[nodiscard]] int json_read_enum(
	const struct json_place *, const ProtobufCEnumDescriptor *, json_t *, int *ret);
// What the last two give is the caller's, from malloc().
[[nodiscard]] int json_read_text(const struct json_place *, json_t *, char **ret);
[[nodiscard]] int json_read_bytes(const struct json_place *, json_t *, ProtobufCBinaryData *ret);
