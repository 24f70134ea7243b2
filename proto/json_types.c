// SPDX-License-Identifier: Apache-2.0
// The well-known types are recognised by their descriptors.
#include "proto/json_types.h"

#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "google/protobuf/wrappers.pb-c.h"
#include "proto/text.h"

#include <string.h>

static const struct {
	const ProtobufCMessageDescriptor *desc;
	enum proto_json_type type;
} special[] = {
	{&google__protobuf__any__descriptor, PROTO_JSON_ANY},
	{&google__protobuf__duration__descriptor, PROTO_JSON_DURATION},
	{&google__protobuf__timestamp__descriptor, PROTO_JSON_TIMESTAMP},
	{&google__protobuf__struct__descriptor, PROTO_JSON_STRUCT},
	{&google__protobuf__list_value__descriptor, PROTO_JSON_LIST},
	{&google__protobuf__value__descriptor, PROTO_JSON_VALUE},
	{&google__protobuf__bool_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__bytes_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__double_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__float_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__int32_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__int64_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__string_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__uint32_value__descriptor, PROTO_JSON_WRAPPER},
	{&google__protobuf__uint64_value__descriptor, PROTO_JSON_WRAPPER},
};

enum proto_json_type proto_json_type(const ProtobufCMessageDescriptor *desc)
{
	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (special[i].desc == desc)
			return special[i].type;
	return PROTO_JSON_PLAIN;
}

bool proto_json_is_map(const ProtobufCFieldDescriptor *f)
{
	if (f->label != PROTOBUF_C_LABEL_REPEATED || f->type != PROTOBUF_C_TYPE_MESSAGE)
		return false;
	const ProtobufCMessageDescriptor *d = f->descriptor;
	if (d->n_fields != 2 || strcmp(d->fields[0].name, "key") != 0 || d->fields[0].id != 1 ||
		d->fields[0].type != PROTOBUF_C_TYPE_STRING ||
		strcmp(d->fields[1].name, "value") != 0 || d->fields[1].id != 2)
		return false;
	char camel[PROTO_NAME_MAX];
	size_t n = strlen(proto_camel_name(f->name, camel));
	if (camel[0] >= 'a' && camel[0] <= 'z')
		camel[0] = (char)(camel[0] - 'a' + 'A');
	return strncmp(d->short_name, camel, n) == 0 && strcmp(d->short_name + n, "Entry") == 0;
}

size_t proto_json_element_size(const ProtobufCFieldDescriptor *f)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return 4;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(char *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_MESSAGE:
		break;
	}
	return sizeof(ProtobufCMessage *);
}
