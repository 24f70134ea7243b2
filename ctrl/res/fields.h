// SPDX-License-Identifier: Apache-2.0
// What becomes of each field of a message, by a table that decoders go by and docs/xds.md shows:
// it is read, ignored, or refused where it is set. One without a row is unknown, and ignored.
// Thread: ctrl.
#pragma once

#include <protobuf-c/protobuf-c.h>

#include <stdbool.h>
#include <stddef.h>

struct res_fields;
struct res_reader;

enum res_field_fate { RES_FIELD_IGNORED, RES_FIELD_READ, RES_FIELD_REFUSED };

struct res_field {
	const char *name; // in the .proto file, from which ignored ones may be cut
	enum res_field_fate fate;
	// How one is read that is set, of the message that has it: as a message by rows of its own,
	// or by a function that returns 0, -ENOMEM, or -EINVAL with the place and the reason.
	const struct res_fields *inside; // NULL = by the function
	int (*read)(struct res_reader *, const void *message, void *ret);
	// One that would be refused is ignored where this is true of what the rows before it have
	// read. NULL = it never is.
	bool (*unless)(const void *ret);
};

struct res_fields {
	const ProtobufCMessageDescriptor *type;
	const struct res_field *rows; // in the order in which they are read
	size_t n;
};

// "Set" is what is not its default; of a BoolValue: true. Returns 0, -ENOMEM, or -EINVAL with the
// field and the reason; `ret` then has a part of it.
[[nodiscard]] int res_fields_read(
	struct res_reader *, const struct res_fields *, const void *message, void *ret);
