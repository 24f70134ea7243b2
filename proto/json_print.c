// SPDX-License-Identifier: Apache-2.0
// Message → JSON. Whatever a peer put into a message can be shown; nothing here fails but for want
// of memory.
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "proto/json.h"
#include "proto/json_types.h"
#include "proto/registry.h"
#include "proto/text.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *print_message(const ProtobufCMessage *, unsigned depth);

static json_t *print_text(const char *text)
{
	if (proto_is_utf8(text))
		return json_string_nocheck(text);
	char *ascii = strdup(text);
	if (!ascii)
		return NULL;
	for (char *c = ascii; *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	json_t *v = json_string_nocheck(ascii);
	free(ascii);
	return v;
}

static json_t *print_bytes(const ProtobufCBinaryData *bytes)
{
	char *text = malloc((bytes->len + 2) / 3 * 4 + 1);
	if (!text)
		return NULL;
	proto_base64_encode(bytes->data, bytes->len, text);
	json_t *v = json_string(text);
	free(text);
	return v;
}

static json_t *print_double(double d)
{
	if (isnan(d))
		return json_string("NaN");
	if (isinf(d))
		return json_string(d > 0 ? "Infinity" : "-Infinity");
	return json_real(d);
}

// The fewest digits that give the same float back: 0.1, not 0.100000001490116.
static json_t *print_float(float f)
{
	char text[32];
	for (int digits = 6; digits <= 9 && isfinite(f); digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)f);
		if (strtof(text, NULL) == f)
			return json_real(strtod(text, NULL));
	}
	return print_double((double)f);
}

static json_t *print_enum(const ProtobufCEnumDescriptor *desc, int number)
{
	if (desc == &google__protobuf__null_value__descriptor)
		return json_null();
	const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(desc, number);
	return value ? json_string(value->name) : json_integer(number);
}

static json_t *print_value(const ProtobufCFieldDescriptor *f, const void *at, unsigned depth)
{
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		return json_integer(*(const int32_t *)at);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		return json_integer(*(const uint32_t *)at);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return json_sprintf("%" PRId64, *(const int64_t *)at);
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return json_sprintf("%" PRIu64, *(const uint64_t *)at);
	case PROTOBUF_C_TYPE_FLOAT:
		return print_float(*(const float *)at);
	case PROTOBUF_C_TYPE_DOUBLE:
		return print_double(*(const double *)at);
	case PROTOBUF_C_TYPE_BOOL:
		return json_boolean(*(const protobuf_c_boolean *)at);
	case PROTOBUF_C_TYPE_ENUM:
		return print_enum(f->descriptor, *(const int *)at);
	case PROTOBUF_C_TYPE_STRING:
		return print_text(*(const char *const *)at);
	case PROTOBUF_C_TYPE_BYTES:
		return print_bytes(at);
	case PROTOBUF_C_TYPE_MESSAGE:
		break;
	}
	return print_message(*(const ProtobufCMessage *const *)at, depth);
}

static const void *member(const ProtobufCMessage *m, unsigned offset)
{
	return (const char *)m + offset;
}

static json_t *print_list(
	const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, unsigned depth)
{
	size_t n = *(const size_t *)member(m, f->quantifier_offset);
	const char *elements = *(const char *const *)member(m, f->offset);
	json_t *list = json_array();
	for (size_t i = 0; list && i < n; i++)
		if (json_array_append_new(list,
			    print_value(f, elements + i * proto_json_element_size(f), depth)) < 0) {
			json_decref(list);
			return NULL;
		}
	return list;
}

static json_t *print_map(
	const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, unsigned depth)
{
	const ProtobufCMessageDescriptor *desc = f->descriptor;
	size_t n = *(const size_t *)member(m, f->quantifier_offset);
	ProtobufCMessage *const *entries = *(ProtobufCMessage *const *const *)member(m, f->offset);
	json_t *object = json_object();
	for (size_t i = 0; object && i < n; i++) {
		json_t *key = print_value(
			&desc->fields[0], member(entries[i], desc->fields[0].offset), 0);
		json_t *v = print_value(
			&desc->fields[1], member(entries[i], desc->fields[1].offset), depth);
		int r = key ? json_object_set_new(object, json_string_value(key), v) : -1;
		if (!key)
			json_decref(v);
		json_decref(key);
		if (r < 0) {
			json_decref(object);
			return NULL;
		}
	}
	return object;
}

// Set, and if it is a scalar outside of a oneof: not its default, which proto3 does not send.
static bool is_shown(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
	if (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)member(m, f->quantifier_offset) == f->id;
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)member(m, f->quantifier_offset) > 0;
	const void *at = member(m, f->offset);
	static const uint64_t zero;
	switch (f->type) {
	case PROTOBUF_C_TYPE_STRING:
		return *(const char *const *)at && **(const char *const *)at;
	case PROTOBUF_C_TYPE_MESSAGE:
		return *(const ProtobufCMessage *const *)at;
	case PROTOBUF_C_TYPE_BYTES:
		return ((const ProtobufCBinaryData *)at)->len > 0;
	default:
		return memcmp(at, &zero, proto_json_element_size(f)) != 0;
	}
}

static int print_fields(const ProtobufCMessage *m, json_t *object, unsigned depth)
{
	char name[PROTO_NAME_MAX];
	for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
		if (!is_shown(m, f))
			continue;
		json_t *v = proto_json_is_map(f) ? print_map(m, f, depth)
		            : f->label == PROTOBUF_C_LABEL_REPEATED
		                    ? print_list(m, f, depth)
		                    : print_value(f, member(m, f->offset), depth);
		if (json_object_set_new(object, proto_camel_name(f->name, name), v) < 0)
			return -1;
	}
	return 0;
}

// The fields of the message inside, or its one value; of what is not understood, the bytes.
static int print_any_value(const Google__Protobuf__Any *any, json_t *object, unsigned depth)
{
	const ProtobufCMessageDescriptor *desc = proto_registry_find(str_from(any->type_url));
	ProtobufCMessage *inner =
		desc && depth < PROTO_DEPTH_MAX
			? proto_unpack(desc, any->value.data, any->value.len, NULL)
			: NULL;
	int r;
	if (!inner)
		r = json_object_set_new(object, "value", print_bytes(&any->value));
	else if (proto_json_type(desc) == PROTO_JSON_PLAIN)
		r = print_fields(inner, object, depth);
	else
		r = json_object_set_new(object, "value", print_message(inner, depth));
	if (inner)
		protobuf_c_message_free_unpacked(inner, NULL);
	return r;
}

static json_t *print_any(const Google__Protobuf__Any *any, unsigned depth)
{
	json_t *object = json_object();
	if (!object || (any->type_url[0] == '\0' && any->value.len == 0))
		return object;
	if (json_object_set_new(object, "@type", print_text(any->type_url)) < 0 ||
		print_any_value(any, object, depth) < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *print_plain(const ProtobufCMessage *m, unsigned depth)
{
	json_t *object = json_object();
	if (object && print_fields(m, object, depth) < 0) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *print_kind(const ProtobufCMessage *m, unsigned depth)
{
	const Google__Protobuf__Value *v = (const Google__Protobuf__Value *)m;
	const ProtobufCFieldDescriptor *f =
		protobuf_c_message_descriptor_get_field(m->descriptor, (unsigned)v->kind_case);
	return f ? print_value(f, member(m, f->offset), depth) : json_null();
}

static json_t *print_message(const ProtobufCMessage *m, unsigned depth)
{
	char text[PROTO_TIME_TEXT_MAX];
	if (!m) // a map entry that came without its value
		return json_object();
	const ProtobufCFieldDescriptor *only = m->descriptor->fields; // NULL if there are none
	depth++;
	switch (proto_json_type(m->descriptor)) {
	case PROTO_JSON_PLAIN:
		return print_plain(m, depth);
	case PROTO_JSON_WRAPPER:
		return print_value(only, member(m, only->offset), depth);
	case PROTO_JSON_DURATION: {
		const Google__Protobuf__Duration *d = (const Google__Protobuf__Duration *)m;
		return json_string(proto_duration_print(d->seconds, d->nanos, text));
	}
	case PROTO_JSON_TIMESTAMP: {
		const Google__Protobuf__Timestamp *t = (const Google__Protobuf__Timestamp *)m;
		return json_string(proto_timestamp_print(t->seconds, t->nanos, text));
	}
	case PROTO_JSON_ANY:
		return print_any((const Google__Protobuf__Any *)m, depth);
	case PROTO_JSON_STRUCT:
		return print_map(m, only, depth);
	case PROTO_JSON_LIST:
		return print_list(m, only, depth);
	case PROTO_JSON_VALUE:
		break;
	}
	return print_kind(m, depth);
}

json_t *proto_json_encode(const ProtobufCMessage *m)
{
	return print_message(m, 0);
}
