// SPDX-License-Identifier: Apache-2.0
// JSON → message. A message under construction is whole at every moment (counts, oneof cases and
// pointers agree), so whatever goes wrong, freeing it is enough.
#include "google/protobuf/any.pb-c.h"
#include "google/protobuf/duration.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "google/protobuf/timestamp.pb-c.h"
#include "lb/base/err.h"
#include "proto/json.h"
#include "proto/json_scalar.h"
#include "proto/json_types.h"
#include "proto/pool.h"
#include "proto/registry.h"
#include "proto/text.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int read_message(const struct json_place *, const ProtobufCMessageDescriptor *, json_t *,
	ProtobufCMessage **ret);

// One value of the field's type into the room for it; what stood there is overwritten.
static int read_value(
	const struct json_place *at, const ProtobufCFieldDescriptor *f, json_t *v, void *ret)
{
	int64_t i;
	uint64_t u;
	int r;
	switch (f->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		r = json_read_signed(at, v, INT32_MIN, INT32_MAX, &i);
		if (r == 0)
			*(int32_t *)ret = (int32_t)i;
		return r;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		return json_read_signed(at, v, INT64_MIN, INT64_MAX, ret);
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		r = json_read_unsigned(at, v, UINT32_MAX, &u);
		if (r == 0)
			*(uint32_t *)ret = (uint32_t)u;
		return r;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return json_read_unsigned(at, v, UINT64_MAX, ret);
	case PROTOBUF_C_TYPE_FLOAT:
		return json_read_float(at, v, ret);
	case PROTOBUF_C_TYPE_DOUBLE:
		return json_read_double(at, v, ret);
	case PROTOBUF_C_TYPE_BOOL:
		if (!json_is_boolean(v))
			return json_fail(at, "not true or false");
		*(protobuf_c_boolean *)ret = json_is_true(v);
		return 0;
	case PROTOBUF_C_TYPE_ENUM:
		return json_read_enum(at, f->descriptor, v, ret);
	case PROTOBUF_C_TYPE_STRING:
		return json_read_text(at, v, ret);
	case PROTOBUF_C_TYPE_BYTES:
		return json_read_bytes(at, v, ret);
	case PROTOBUF_C_TYPE_MESSAGE:
		return read_message(at, f->descriptor, v, ret);
	}
	return json_fail(at, "of a type that is not supported");
}

static ProtobufCMessage *message_new(const ProtobufCMessageDescriptor *desc)
{
	ProtobufCMessage *m = calloc(1, desc->sizeof_message);
	if (m && desc->message_init)
		desc->message_init(m);
	else if (m) // of a pool
		m->descriptor = desc;
	return m;
}

static void *member(ProtobufCMessage *m, unsigned offset)
{
	return (char *)m + offset;
}

static bool takes_null(const ProtobufCFieldDescriptor *f)
{
	return f->descriptor == &google__protobuf__value__descriptor ||
	       f->descriptor == &google__protobuf__null_value__descriptor;
}

// Makes room for n elements; none are there yet.
static int repeated_init(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t n)
{
	if (n == 0)
		return 0;
	void *elements = calloc(n, proto_json_element_size(f));
	if (!elements)
		return -ENOMEM;
	*(void **)member(m, f->offset) = elements;
	return 0;
}

static int read_list(const struct json_place *at, ProtobufCMessage *m,
	const ProtobufCFieldDescriptor *f, json_t *list)
{
	if (!json_is_array(list))
		return json_fail(at, "not a list");
	int r = repeated_init(m, f, json_array_size(list));
	if (r < 0)
		return r;
	size_t i;
	json_t *v;
	json_array_foreach(list, i, v)
	{
		struct json_place here = json_place_of_element(at, i);
		if (json_is_null(v) && !takes_null(f))
			return json_fail(&here, "null in a list");
		char *elements = *(char **)member(m, f->offset);
		r = read_value(&here, f, v, elements + i * proto_json_element_size(f));
		if (r < 0)
			return r;
		*(size_t *)member(m, f->quantifier_offset) = i + 1;
	}
	return 0;
}

static int read_map(const struct json_place *at, ProtobufCMessage *m,
	const ProtobufCFieldDescriptor *f, json_t *object)
{
	const ProtobufCMessageDescriptor *entry_desc = f->descriptor;
	const ProtobufCFieldDescriptor *key_field = &entry_desc->fields[0];
	const ProtobufCFieldDescriptor *value_field = &entry_desc->fields[1];
	if (!json_is_object(object))
		return json_fail(at, "not an object");
	int r = repeated_init(m, f, json_object_size(object));
	if (r < 0)
		return r;
	size_t *n = member(m, f->quantifier_offset);
	const char *name;
	json_t *v;
	json_object_foreach(object, name, v)
	{
		struct json_place here = json_place_of_member(at, name);
		if (json_is_null(v) && !takes_null(value_field))
			return json_fail(&here, "null in a map");
		ProtobufCMessage *entry = message_new(entry_desc);
		if (!entry)
			return -ENOMEM;
		(*(ProtobufCMessage ***)member(m, f->offset))[(*n)++] = entry;
		char *key = strdup(name);
		if (!key)
			return -ENOMEM;
		*(char **)member(entry, key_field->offset) = key;
		r = read_value(&here, value_field, v, member(entry, value_field->offset));
		if (r < 0)
			return r;
	}
	return 0;
}

// Whether it says that it is there by more than its value: `optional`.
static bool has_presence(const ProtobufCFieldDescriptor *f)
{
	return f->label == PROTOBUF_C_LABEL_OPTIONAL && f->type != PROTOBUF_C_TYPE_MESSAGE &&
	       f->type != PROTOBUF_C_TYPE_STRING;
}

static int read_member(const struct json_place *at, ProtobufCMessage *m,
	const ProtobufCFieldDescriptor *f, json_t *v)
{
	if (json_is_null(v) && (f->label == PROTOBUF_C_LABEL_REPEATED || !takes_null(f)))
		return 0;
	if (proto_json_is_map(f))
		return read_map(at, m, f, v);
	if (f->label == PROTOBUF_C_LABEL_REPEATED)
		return read_list(at, m, f, v);
	if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) {
		if (has_presence(f))
			*(protobuf_c_boolean *)member(m, f->quantifier_offset) = true;
		return read_value(at, f, v, member(m, f->offset));
	}
	uint32_t *oneof_case = member(m, f->quantifier_offset);
	if (*oneof_case != 0) {
		char name[PROTO_NAME_MAX];
		return json_fail(at, "only one of this and %s may be set",
			proto_camel_name(
				protobuf_c_message_descriptor_get_field(m->descriptor, *oneof_case)
					->name,
				name));
	}
	int r = read_value(at, f, v, member(m, f->offset));
	if (r == 0)
		*oneof_case = f->id;
	return r;
}

// ret_twice: the object has the field under its other name also.
static const ProtobufCFieldDescriptor *find_field(
	const ProtobufCMessageDescriptor *desc, json_t *object, const char *key, bool *ret_twice)
{
	char camel[PROTO_NAME_MAX];
	for (unsigned i = 0; i < desc->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &desc->fields[i];
		bool original = strcmp(f->name, key) == 0;
		if (!original && strcmp(proto_camel_name(f->name, camel), key) != 0)
			continue;
		*ret_twice = !original && json_object_get(object, f->name);
		return f;
	}
	return NULL;
}

static int skip_field(const struct json_place *at, const ProtobufCMessageDescriptor *desc)
{
	const struct proto_json_scope *s = at->scope;
	bool is_whole = s && s->whole && strncmp(desc->name, s->whole, strlen(s->whole)) == 0;
	if (s && s->pool && !is_whole)
		is_whole = proto_pool_find(s->pool, str_from(desc->name)) == desc;
	if (is_whole)
		return json_fail(at, "unknown field of %s", desc->name);
	return json_leave_out(at, "unknown field of %s", desc->name);
}

// The members of an object into the fields of a message; the key `skip` (may be NULL) is passed
// over.
static int read_fields(
	const struct json_place *at, ProtobufCMessage *m, json_t *object, const char *skip)
{
	const char *key;
	json_t *v;
	json_object_foreach(object, key, v)
	{
		struct json_place here = json_place_of_member(at, key);
		bool twice = false;
		if (skip && strcmp(key, skip) == 0)
			continue;
		const ProtobufCFieldDescriptor *f = find_field(m->descriptor, object, key, &twice);
		if (twice)
			return json_fail(&here, "given twice, also as %s", f->name);
		int r = f ? read_member(&here, m, f, v) : skip_field(&here, m->descriptor);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_duration(const struct json_place *at, ProtobufCMessage *m, json_t *v)
{
	Google__Protobuf__Duration *d = (Google__Protobuf__Duration *)m;
	if (!json_is_string(v) ||
		!proto_duration_parse(json_string_value(v), &d->seconds, &d->nanos))
		return json_fail(at, "not a duration like \"1.5s\"");
	return 0;
}

static int read_timestamp(const struct json_place *at, ProtobufCMessage *m, json_t *v)
{
	Google__Protobuf__Timestamp *t = (Google__Protobuf__Timestamp *)m;
	if (!json_is_string(v) ||
		!proto_timestamp_parse(json_string_value(v), &t->seconds, &t->nanos))
		return json_fail(at, "not a time like \"2026-01-29T17:48:45Z\"");
	return 0;
}

static const char *value_kind(json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT:
		return "struct_value";
	case JSON_ARRAY:
		return "list_value";
	case JSON_STRING:
		return "string_value";
	case JSON_INTEGER:
	case JSON_REAL:
		return "number_value";
	case JSON_TRUE:
	case JSON_FALSE:
		return "bool_value";
	case JSON_NULL:
		return "null_value";
	}
	return NULL;
}

// The bytes as they are, of whatever type.
static int read_raw(
	const struct json_place *at, Google__Protobuf__Any *any, json_t *v, const char *type_url)
{
	struct json_place here = json_place_of_member(at, "@raw");
	if (json_object_size(v) != 2)
		return json_fail(at, "\"@raw\" takes just \"@type\" beside it");
	char *copy = strdup(type_url);
	if (!copy)
		return -ENOMEM;
	any->type_url = copy;
	return json_read_bytes(&here, json_object_get(v, "@raw"), &any->value);
}

static const ProtobufCMessageDescriptor *find_type(
	const struct json_place *at, const char *type_url)
{
	struct str url = str_from(type_url);
	const ProtobufCMessageDescriptor *desc = NULL;
	if (at->scope && at->scope->pool)
		desc = proto_pool_find(at->scope->pool, proto_type_name(url));
	return desc ? desc : proto_registry_find(url);
}

static int read_any(const struct json_place *at, ProtobufCMessage *m, json_t *v)
{
	Google__Protobuf__Any *any = (Google__Protobuf__Any *)m;
	if (!json_is_object(v))
		return json_fail(at, "not an object with \"@type\"");
	if (json_object_size(v) == 0)
		return 0;
	const char *type_url = json_string_value(json_object_get(v, "@type"));
	struct json_place type_place = json_place_of_member(at, "@type");
	if (!type_url)
		return json_fail(&type_place, "missing, or not text");
	if (at->scope && json_object_get(v, "@raw"))
		return read_raw(at, any, v, type_url);
	const ProtobufCMessageDescriptor *desc = find_type(at, type_url);
	if (!desc)
		return json_leave_out(&type_place, "unknown type %.160s", type_url);
	ProtobufCMessage *inner = NULL;
	int r;
	if (proto_json_type(desc) == PROTO_JSON_PLAIN) {
		inner = message_new(desc);
		r = inner ? read_fields(at, inner, v, "@type") : -ENOMEM;
	} else {
		json_t *value = json_object_get(v, "value");
		struct json_place here = json_place_of_member(at, "value");
		if (!value || json_object_size(v) != 2)
			r = json_fail(at, "%s takes just \"@type\" and \"value\"", desc->name);
		else
			r = read_message(&here, desc, value, &inner);
	}
	if (r == 0) {
		any->value.len = protobuf_c_message_get_packed_size(inner);
		any->value.data = malloc(any->value.len + 1);
		char *copy = strdup(type_url);
		if (copy)
			any->type_url = copy;
		if (!any->value.data || !copy)
			r = -ENOMEM;
		else
			protobuf_c_message_pack(inner, any->value.data);
	}
	if (inner)
		protobuf_c_message_free_unpacked(inner, NULL);
	return r;
}

static int read_plain(const struct json_place *at, ProtobufCMessage *m, json_t *v)
{
	if (!json_is_object(v))
		return json_fail(at, "not an object");
	return read_fields(at, m, v, NULL);
}

static int read_into(const struct json_place *at, ProtobufCMessage *m, json_t *v)
{
	const ProtobufCFieldDescriptor *only = m->descriptor->fields; // NULL = there is none
	switch (proto_json_type(m->descriptor)) {
	case PROTO_JSON_PLAIN:
		return read_plain(at, m, v);
	case PROTO_JSON_WRAPPER:
		return read_value(at, only, v, member(m, only->offset));
	case PROTO_JSON_DURATION:
		return read_duration(at, m, v);
	case PROTO_JSON_TIMESTAMP:
		return read_timestamp(at, m, v);
	case PROTO_JSON_ANY:
		return read_any(at, m, v);
	case PROTO_JSON_STRUCT:
		return read_map(at, m, only, v);
	case PROTO_JSON_LIST:
		return read_list(at, m, only, v);
	case PROTO_JSON_VALUE:
		return read_member(at, m,
			protobuf_c_message_descriptor_get_field_by_name(
				m->descriptor, value_kind(v)),
			v);
	}
	return json_fail(at, "of a type that is not supported");
}

static int read_message(const struct json_place *at, const ProtobufCMessageDescriptor *desc,
	json_t *v, ProtobufCMessage **ret)
{
	struct json_place here = *at;
	if (++here.depth > PROTO_DEPTH_MAX)
		return json_fail(at, "nested too deeply");
	ProtobufCMessage *m = message_new(desc);
	if (!m)
		return -ENOMEM;
	int r = read_into(&here, m, v);
	if (r < 0) {
		protobuf_c_message_free_unpacked(m, NULL);
		return r;
	}
	*ret = m;
	return 0;
}

int proto_json_decode(const ProtobufCMessageDescriptor *desc, json_t *json, ProtobufCMessage **ret,
	struct lb_err *reterr)
{
	struct json_place top = {.err = reterr};
	return read_message(&top, desc, json, ret);
}

int proto_json_parse(const ProtobufCMessageDescriptor *desc, const char *text, size_t len,
	ProtobufCMessage **ret, struct lb_err *reterr)
{
	return proto_json_parse_in(NULL, desc, text, len, ret, reterr);
}

int proto_json_parse_in(const struct proto_json_scope *scope,
	const ProtobufCMessageDescriptor *desc, const char *text, size_t len,
	ProtobufCMessage **ret, struct lb_err *reterr)
{
	json_error_t error;
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!json && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!json)
		return lb_err_set(
			reterr, "line %d, column %d: %s", error.line, error.column, error.text);
	struct json_place top = {.err = reterr, .scope = scope};
	int r = read_message(&top, desc, json, ret);
	json_decref(json);
	return r;
}
