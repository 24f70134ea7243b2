// SPDX-License-Identifier: Apache-2.0
// First all types are listed by name, then each is described: types refer to each other in circles.
#include "proto/pool.h"

#include "google/protobuf/descriptor.pb-c.h"
#include "google/protobuf/struct.pb-c.h"
#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/base/grow.h"
#include "proto/registry.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Google__Protobuf__FileDescriptorSet set_message;
typedef Google__Protobuf__FileDescriptorProto file_message;
typedef Google__Protobuf__DescriptorProto type_message;
typedef Google__Protobuf__FieldDescriptorProto field_message;
typedef Google__Protobuf__EnumDescriptorProto enum_message;

// A message's own memory: after what all messages have, a slot for each field or oneof, of the
// largest size that any field needs.
struct slot {
	uint64_t quantifier; // a count, "is there", or which member of the oneof is
	uint64_t value[2];
};
_Static_assert(
	sizeof(ProtobufCBinaryData) <= sizeof(((struct slot *)0)->value), "the largest value fits");
_Static_assert(sizeof(ProtobufCMessage) % sizeof(uint64_t) == 0, "slots are aligned");

// One type; either of the two.
struct node {
	const char *name;
	size_t order; // in which it was listed
	bool is_proto3;
	const type_message *type;
	const enum_message *enumeration;
	ProtobufCMessageDescriptor *message_desc;
	ProtobufCEnumDescriptor *enum_desc;
};

struct proto_pool {
	struct lb_arena arena;
	set_message *set; // names are its
	struct node *nodes; // by name
	size_t n, n_messages;
	uint32_t room;
};

// Listing

static const char *join(struct proto_pool *p, const char *scope, const char *name)
{
	size_t room = strlen(scope) + strlen(name) + 2;
	char *text = lb_arena_alloc(&p->arena, room, 1);
	if (text)
		snprintf(text, room, "%s%s%s", scope, *scope ? "." : "", name);
	return text;
}

// NULL = no memory.
static struct node *add_node(struct proto_pool *p, const char *scope, const char *name)
{
	if (!grow(&p->nodes, p->n, &p->room, sizeof(p->nodes[0])))
		return NULL;
	struct node *node = &p->nodes[p->n];
	*node = (struct node){.name = join(p, scope, name ? name : ""), .order = p->n};
	if (!node->name)
		return NULL;
	p->n++;
	return node;
}

static int add_enums(struct proto_pool *p, const char *scope, enum_message *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct node *node = add_node(p, scope, list[i]->name);
		if (!node)
			return -ENOMEM;
		node->enumeration = list[i];
		node->enum_desc = lb_arena_alloc(&p->arena, 1, sizeof(*node->enum_desc));
		if (!node->enum_desc)
			return -ENOMEM;
	}
	return 0;
}

static int add_types(struct proto_pool *p, const char *scope, type_message *const *list, size_t n,
	bool is_proto3)
{
	int rc = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		const type_message *t = list[i];
		struct node *node = add_node(p, scope, t->name);
		if (!node)
			return -ENOMEM;
		node->type = t;
		node->is_proto3 = is_proto3 || (t->options && t->options->map_entry);
		node->message_desc = lb_arena_alloc(&p->arena, 1, sizeof(*node->message_desc));
		if (!node->message_desc)
			return -ENOMEM;
		const char *name = node->name;
		rc = add_enums(p, name, t->enum_type, t->n_enum_type);
		if (!rc) // as deep as the message could be read
			rc = add_types(p, name, t->nested_type, t->n_nested_type, is_proto3);
	}
	return rc;
}

static int by_name(const void *a, const void *b)
{
	const struct node *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : x->order < y->order ? -1 : 1;
}

static int list_all(struct proto_pool *p)
{
	int rc = 0;
	for (size_t i = 0; i < p->set->n_file && !rc; i++) {
		const file_message *f = p->set->file[i];
		const char *package = f->package ? f->package : "";
		bool is_proto3 = f->syntax && strcmp(f->syntax, "proto3") == 0;
		rc = add_enums(p, package, f->enum_type, f->n_enum_type);
		if (!rc)
			rc = add_types(p, package, f->message_type, f->n_message_type, is_proto3);
	}
	if (rc || !p->n)
		return rc;
	qsort(p->nodes, p->n, sizeof(*p->nodes), by_name);
	size_t n = 1;
	for (size_t i = 1; i < p->n; i++)
		if (strcmp(p->nodes[i].name, p->nodes[n - 1].name) != 0)
			p->nodes[n++] = p->nodes[i];
	p->n = n;
	return 0;
}

static const struct node *find(const struct proto_pool *p, struct str name)
{
	size_t low = 0, high = p->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct str here = str_from(p->nodes[middle].name);
		size_t len = here.len < name.len ? here.len : name.len;
		int order = len ? memcmp(here.p, name.p, len) : 0;
		if (order == 0 && here.len == name.len)
			return &p->nodes[middle];
		if (order < 0 || (order == 0 && here.len < name.len))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

// Describing

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot ? dot + 1 : name;
}

// Runs of consecutive numbers, as protobuf-c looks them up. numbers are in order.
static const ProtobufCIntRange *make_ranges(
	struct proto_pool *p, const int *numbers, unsigned n, unsigned *ret_n)
{
	ProtobufCIntRange *ranges = lb_arena_alloc(&p->arena, (size_t)n + 1, sizeof(*ranges));
	*ret_n = 0;
	for (unsigned i = 0; ranges && i < n; i++)
		if (i == 0 || numbers[i] != numbers[i - 1] + 1)
			ranges[(*ret_n)++] = (ProtobufCIntRange){numbers[i], i};
	if (ranges)
		ranges[*ret_n] = (ProtobufCIntRange){0, n};
	return ranges;
}

static int by_value(const void *a, const void *b)
{
	int x = ((const ProtobufCEnumValue *)a)->value, y = ((const ProtobufCEnumValue *)b)->value;
	return x < y ? -1 : x > y;
}

static int by_value_name(const void *a, const void *b)
{
	return strcmp(((const ProtobufCEnumValueIndex *)a)->name,
		((const ProtobufCEnumValueIndex *)b)->name);
}

// A number may have several names.
static int describe_enum(struct proto_pool *p, const struct node *node)
{
	const enum_message *e = node->enumeration;
	unsigned n = 0, n_names = (unsigned)e->n_value;
	ProtobufCEnumValue *values = lb_arena_alloc(&p->arena, n_names, sizeof(*values));
	ProtobufCEnumValueIndex *names = lb_arena_alloc(&p->arena, n_names, sizeof(*names));
	int *numbers = lb_arena_alloc(&p->arena, n_names, sizeof(*numbers));
	if (!values || !names || !numbers)
		return -ENOMEM;
	for (unsigned i = 0; i < n_names; i++) {
		const char *name = e->value[i]->name ? e->value[i]->name : "";
		values[i] = (ProtobufCEnumValue){name, name, e->value[i]->number};
		names[i].name = name;
	}
	qsort(values, n_names, sizeof(*values), by_value);
	for (unsigned i = 0; i < n_names; i++)
		if (i == 0 || values[i].value != values[n - 1].value)
			values[n++] = values[i];
	for (unsigned i = 0; i < n; i++)
		numbers[i] = values[i].value;
	for (unsigned i = 0; i < n_names; i++)
		while (values[names[i].index].value != e->value[i]->number)
			names[i].index++;
	qsort(names, n_names, sizeof(*names), by_value_name);
	*node->enum_desc = (ProtobufCEnumDescriptor){
		.magic = PROTOBUF_C__ENUM_DESCRIPTOR_MAGIC,
		.name = node->name,
		.short_name = last_part(node->name),
		.c_name = node->name,
		.package_name = "",
		.n_values = n,
		.values = values,
		.n_value_names = n_names,
		.values_by_name = names,
	};
	node->enum_desc->value_ranges =
		make_ranges(p, numbers, n, &node->enum_desc->n_value_ranges);
	return node->enum_desc->value_ranges ? 0 : -ENOMEM;
}

// By number; -1 = there is none like it here.
static int type_of(const field_message *f)
{
	static const signed char types[] = {-1, PROTOBUF_C_TYPE_DOUBLE, PROTOBUF_C_TYPE_FLOAT,
		PROTOBUF_C_TYPE_INT64, PROTOBUF_C_TYPE_UINT64, PROTOBUF_C_TYPE_INT32,
		PROTOBUF_C_TYPE_FIXED64, PROTOBUF_C_TYPE_FIXED32, PROTOBUF_C_TYPE_BOOL,
		PROTOBUF_C_TYPE_STRING, -1, PROTOBUF_C_TYPE_MESSAGE, PROTOBUF_C_TYPE_BYTES,
		PROTOBUF_C_TYPE_UINT32, PROTOBUF_C_TYPE_ENUM, PROTOBUF_C_TYPE_SFIXED32,
		PROTOBUF_C_TYPE_SFIXED64, PROTOBUF_C_TYPE_SINT32, PROTOBUF_C_TYPE_SINT64};
	unsigned type = (unsigned)f->type;
	return type < sizeof(types) ? types[type] : -1;
}

// Of a message or an enum; the well-known ones are those that are compiled in, which json.h knows.
// NULL = not there.
static const void *target_of(const struct proto_pool *p, const field_message *f)
{
	const char *name = f->type_name ? f->type_name : "";
	struct str full = str_from(name[0] == '.' ? name + 1 : name);
	bool is_message = f->type == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE;
	if (!is_message && str_eq(full, str_from(google__protobuf__null_value__descriptor.name)))
		return &google__protobuf__null_value__descriptor;
	if (is_message)
		return proto_pool_find(p, full);
	const struct node *node = find(p, full);
	return node ? node->enum_desc : NULL;
}

// Whether it may say that it is there though it has no value.
static bool has_presence(const struct node *node, const field_message *f)
{
	return !node->is_proto3 || f->proto3_optional;
}

static bool is_packed(const struct node *node, const field_message *f, ProtobufCType type)
{
	if (type == PROTOBUF_C_TYPE_STRING || type == PROTOBUF_C_TYPE_BYTES ||
		type == PROTOBUF_C_TYPE_MESSAGE)
		return false;
	return f->options && f->options->has_packed ? f->options->packed : node->is_proto3;
}

static size_t slot_offset(unsigned slot)
{
	return sizeof(ProtobufCMessage) + slot * sizeof(struct slot);
}

static void describe_field(const struct node *node, const field_message *f, ProtobufCType type,
	const void *target, unsigned slot, ProtobufCFieldDescriptor *ret)
{
	*ret = (ProtobufCFieldDescriptor){
		.name = f->name ? f->name : "",
		.id = (uint32_t)f->number,
		.label = PROTOBUF_C_LABEL_NONE,
		.type = type,
		.quantifier_offset =
			(unsigned)(slot_offset(slot) + offsetof(struct slot, quantifier)),
		.offset = (unsigned)(slot_offset(slot) + offsetof(struct slot, value)),
		.descriptor = target,
	};
	if (f->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_REPEATED) {
		ret->label = PROTOBUF_C_LABEL_REPEATED;
		ret->flags = is_packed(node, f, type) ? PROTOBUF_C_FIELD_FLAG_PACKED : 0;
	} else if (f->has_oneof_index && !f->proto3_optional) {
		ret->flags = PROTOBUF_C_FIELD_FLAG_ONEOF;
	} else if (type == PROTOBUF_C_TYPE_MESSAGE || has_presence(node, f)) {
		ret->label = PROTOBUF_C_LABEL_OPTIONAL;
	}
}

static int by_number(const void *a, const void *b)
{
	int x = (*(const field_message *const *)a)->number;
	int y = (*(const field_message *const *)b)->number;
	return x < y ? -1 : x > y;
}

static int by_field_name(const void *a, const void *b, void *ctx)
{
	const ProtobufCFieldDescriptor *fields = ctx;
	return strcmp(fields[*(const unsigned *)a].name, fields[*(const unsigned *)b].name);
}

// The slot of the field: its own, or its oneof's. oneofs are slots by index, 0 = none yet; the
// first slot is 1.
static int slot_for(
	const type_message *t, const field_message *f, unsigned *oneofs, unsigned *n, unsigned *ret)
{
	if (!f->has_oneof_index || f->proto3_optional) {
		*ret = ++*n;
		return 0;
	}
	if (f->oneof_index < 0 || (size_t)f->oneof_index >= t->n_field)
		return -EINVAL; // there are more oneofs than fields
	unsigned *slot = &oneofs[f->oneof_index];
	if (!*slot)
		*slot = ++*n;
	*ret = *slot;
	return 0;
}

struct sketch {
	const field_message **from; // by number
	ProtobufCFieldDescriptor *fields;
	unsigned *by_name, *oneofs;
	int *numbers;
	unsigned n, n_slots;
};

static bool sketch_init(struct proto_pool *p, const type_message *t, struct sketch *s)
{
	*s = (struct sketch){.from = lb_arena_alloc(&p->arena, t->n_field, sizeof(*s->from)),
		.fields = lb_arena_alloc(&p->arena, t->n_field, sizeof(*s->fields)),
		.by_name = lb_arena_alloc(&p->arena, t->n_field, sizeof(*s->by_name)),
		.oneofs = lb_arena_alloc(&p->arena, t->n_field, sizeof(*s->oneofs)),
		.numbers = lb_arena_alloc(&p->arena, t->n_field, sizeof(*s->numbers))};
	return s->from && s->fields && s->by_name && s->oneofs && s->numbers;
}

static int describe_fields(
	struct proto_pool *p, const struct node *node, struct sketch *s, struct lb_err *err)
{
	const type_message *t = node->type;
	for (size_t i = 0; i < t->n_field; i++)
		s->from[i] = t->field[i];
	qsort(s->from, t->n_field, sizeof(*s->from), by_number);
	for (size_t i = 0; i < t->n_field; i++) {
		const field_message *f = s->from[i];
		int type = type_of(f);
		bool refers = type == PROTOBUF_C_TYPE_MESSAGE || type == PROTOBUF_C_TYPE_ENUM;
		const void *target = refers ? target_of(p, f) : NULL;
		unsigned slot;
		if (type < 0 || (refers && !target))
			continue;
		if (f->number <= 0 || (s->n && s->numbers[s->n - 1] == f->number) ||
			slot_for(t, f, s->oneofs, &s->n_slots, &slot))
			return lb_err_set(err, "%.200s: field %d is malformed or a duplicate",
				node->name, f->number);
		describe_field(node, f, (ProtobufCType)type, target, slot - 1, &s->fields[s->n]);
		s->by_name[s->n] = s->n;
		s->numbers[s->n++] = f->number;
	}
	return 0;
}

static int describe_message(struct proto_pool *p, const struct node *node, struct lb_err *err)
{
	struct sketch s;
	if (!sketch_init(p, node->type, &s))
		return -ENOMEM;
	int rc = describe_fields(p, node, &s, err);
	if (rc)
		return rc;
	qsort_r(s.by_name, s.n, sizeof(*s.by_name), by_field_name, s.fields);
	*node->message_desc = (ProtobufCMessageDescriptor){
		.magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
		.name = node->name,
		.short_name = last_part(node->name),
		.c_name = node->name,
		.package_name = "",
		.sizeof_message = slot_offset(s.n_slots),
		.n_fields = s.n,
		.fields = s.fields,
		.fields_sorted_by_name = s.by_name,
	};
	node->message_desc->field_ranges =
		make_ranges(p, s.numbers, s.n, &node->message_desc->n_field_ranges);
	return node->message_desc->field_ranges ? 0 : -ENOMEM;
}

int proto_pool_new(const uint8_t *bytes, size_t len, struct proto_pool **ret, struct lb_err *reterr)
{
	struct proto_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	struct lb_err err = {""};
	p->set = proto_unpack(&google__protobuf__file_descriptor_set__descriptor, bytes, len, &err);
	int rc = p->set ? list_all(p) : -EINVAL;
	for (size_t i = 0; i < p->n && !rc; i++) {
		const struct node *node = &p->nodes[i];
		rc = node->type ? describe_message(p, node, &err) : describe_enum(p, node);
		p->n_messages += node->type != NULL;
	}
	if (rc) {
		if (reterr)
			*reterr = err;
		proto_pool_free(p);
		return rc;
	}
	*ret = p;
	return 0;
}

void proto_pool_free(struct proto_pool *p)
{
	if (!p)
		return;
	proto_free(p->set);
	free(p->nodes);
	lb_arena_fini(&p->arena);
	free(p);
}

size_t proto_pool_n_messages(const struct proto_pool *p)
{
	return p->n_messages;
}

const ProtobufCMessageDescriptor *proto_pool_find(const struct proto_pool *p, struct str name)
{
	static const char well_known[] = "google.protobuf.";
	size_t len = sizeof(well_known) - 1;
	if (name.len > len && memcmp(name.p, well_known, len) == 0) {
		const ProtobufCMessageDescriptor *compiled = proto_registry_find(name);
		if (compiled)
			return compiled;
	}
	const struct node *node = find(p, name);
	return node ? node->message_desc : NULL;
}
