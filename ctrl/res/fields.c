// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/fields.h"

#include "ctrl/res/common.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "lb/base/check.h"

#include <errno.h>

static const void *at(const void *message, unsigned offset)
{
	return (const char *)message + offset;
}

static const void *message_in(const void *message, const ProtobufCFieldDescriptor *f)
{
	return *(const void *const *)at(message, f->offset);
}

static bool is_set_message(const void *m, const ProtobufCFieldDescriptor *f)
{
	if (m && f->descriptor == &google__protobuf__bool_value__descriptor)
		return ((const Google__Protobuf__BoolValue *)m)->value;
	return m;
}

// Of the types that the tables have.
static bool is_set(const void *m, const ProtobufCFieldDescriptor *f)
{
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)at(m, f->quantifier_offset) == f->id;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)at(m, f->quantifier_offset) > 0;
	switch (f->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		return is_set_message(message_in(m, f), f);
	case PROTOBUF_C_TYPE_STRING:
		return **(const char *const *)at(m, f->offset);
	case PROTOBUF_C_TYPE_BOOL:
		return *(const protobuf_c_boolean *)at(m, f->offset);
	case PROTOBUF_C_TYPE_ENUM:
		return *(const int *)at(m, f->offset);
	default:
		DCHECK(false); // no table has one
		return true;
	}
}

static int read_inside(struct res_reader *rd, const struct res_field *row,
	const ProtobufCFieldDescriptor *f, const void *m, void *ret)
{
	int rc = res_fields_read(rd, row->inside, message_in(m, f), ret);
	return rc == -EINVAL ? lb_err_within(rd->err, "%s", row->name) : rc;
}

static int read_row(struct res_reader *rd, const struct res_field *row,
	const ProtobufCFieldDescriptor *f, const void *m, void *ret)
{
	if (row->fate == RES_FIELD_READ)
		return row->inside ? read_inside(rd, row, f, m, ret) : row->read(rd, m, ret);
	if (row->unless && row->unless(ret))
		return 0;
	return lb_err_set(rd->err, "%s: is not supported", row->name);
}

int res_fields_read(
	struct res_reader *rd, const struct res_fields *fields, const void *message, void *ret)
{
	for (size_t i = 0; i < fields->n; i++) {
		const struct res_field *row = &fields->rows[i];
		if (row->fate == RES_FIELD_IGNORED)
			continue;
		const ProtobufCFieldDescriptor *f =
			protobuf_c_message_descriptor_get_field_by_name(fields->type, row->name);
		CHECK(f); // else what must be refused would be taken
		int rc = is_set(message, f) ? read_row(rd, row, f, message, ret) : 0;
		if (rc)
			return rc;
	}
	return 0;
}
