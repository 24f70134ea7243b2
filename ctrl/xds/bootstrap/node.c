// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap/node.h"

#include "ctrl/xds/bootstrap/bootstrap.h"

#include <jansson.h>

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Google__Protobuf__Struct Struct;
typedef Google__Protobuf__Struct__FieldsEntry Field;
typedef Google__Protobuf__ListValue List;
typedef Google__Protobuf__Value Value;

// The bootstrap's parser (jansson) bounds the depth, 2048.
static Value *value_from_json(struct lb_arena *a, const json_t *j);

static Struct *struct_from_json(struct lb_arena *a, json_t *j)
{
	size_t n = json_object_size(j);
	Struct *s = lb_arena_alloc(a, 1, sizeof(*s));
	Field *fields = lb_arena_alloc(a, n, sizeof(*fields));
	Field **list = lb_arena_alloc(a, n, sizeof(Field *));
	if (!s || !fields || !list)
		return NULL;
	google__protobuf__struct__init(s);
	s->fields = list;
	const char *key;
	json_t *value;
	json_object_foreach(j, key, value)
	{
		Field *f = &fields[s->n_fields];
		google__protobuf__struct__fields_entry__init(f);
		f->key = lb_arena_strdup(a, key);
		f->value = value_from_json(a, value);
		if (!f->key || !f->value)
			return NULL;
		list[s->n_fields++] = f;
	}
	return s;
}

static List *list_from_json(struct lb_arena *a, const json_t *j)
{
	size_t n = json_array_size(j);
	List *l = lb_arena_alloc(a, 1, sizeof(*l));
	Value **values = lb_arena_alloc(a, n, sizeof(Value *));
	if (!l || !values)
		return NULL;
	google__protobuf__list_value__init(l);
	l->values = values;
	for (size_t i = 0; i < n; i++) {
		values[l->n_values] = value_from_json(a, json_array_get(j, i));
		if (!values[l->n_values])
			return NULL;
		l->n_values++;
	}
	return l;
}

static Value *value_from_json(struct lb_arena *a, const json_t *j)
{
	Value *v = lb_arena_alloc(a, 1, sizeof(*v));
	if (!v)
		return NULL;
	google__protobuf__value__init(v);
	switch (json_typeof(j)) {
	case JSON_OBJECT:
		v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRUCT_VALUE;
		v->struct_value = struct_from_json(a, (json_t *)(uintptr_t)j);
		return v->struct_value ? v : NULL;
	case JSON_ARRAY:
		v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_LIST_VALUE;
		v->list_value = list_from_json(a, j);
		return v->list_value ? v : NULL;
	case JSON_STRING:
		v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
		v->string_value = lb_arena_strdup(a, json_string_value(j));
		return v->string_value ? v : NULL;
	case JSON_INTEGER:
	case JSON_REAL:
		v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NUMBER_VALUE;
		v->number_value = json_number_value(j);
		return v;
	case JSON_TRUE:
	case JSON_FALSE:
		v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_BOOL_VALUE;
		v->bool_value = json_is_true(j);
		return v;
	case JSON_NULL:
		break;
	}
	v->kind_case = GOOGLE__PROTOBUF__VALUE__KIND_NULL_VALUE;
	return v;
}

int xds_node_init(struct xds_node *n, const struct xds_bootstrap *b, const char *user_agent_version)
{
	static char OVERPROVISIONING[] = "envoy.lb.does_not_support_overprovisioning";
	static char WRAPPED[] = "xds.config.resource-in-sotw";
	static char TTL[] = "xds.config.supports-resource-ttl";
	static char *FEATURES[] = {OVERPROVISIONING, WRAPPED, TTL};
	static char USER_AGENT[] = "shunt";

	*n = (struct xds_node){0};
	Envoy__Config__Core__V3__Node *m = &n->msg;
	envoy__config__core__v3__node__init(m);
	m->id = b->node_id;
	m->cluster = b->node_cluster;
	m->user_agent_name = USER_AGENT;
	m->user_agent_version_type_case =
		ENVOY__CONFIG__CORE__V3__NODE__USER_AGENT_VERSION_TYPE_USER_AGENT_VERSION;
	m->user_agent_version = lb_arena_strdup(&n->arena, user_agent_version);
	m->client_features = FEATURES;
	m->n_client_features = sizeof(FEATURES) / sizeof(FEATURES[0]);
	bool ok = m->user_agent_version;
	if (ok && (*b->region || *b->zone || *b->sub_zone)) {
		m->locality = lb_arena_alloc(&n->arena, 1, sizeof(*m->locality));
		ok = m->locality;
		if (ok) {
			envoy__config__core__v3__locality__init(m->locality);
			m->locality->region = b->region;
			m->locality->zone = b->zone;
			m->locality->sub_zone = b->sub_zone;
		}
	}
	if (ok && b->metadata) {
		m->metadata = struct_from_json(&n->arena, b->metadata);
		ok = m->metadata;
	}
	if (ok)
		return 0;
	xds_node_fini(n);
	return -ENOMEM;
}

void xds_node_fini(struct xds_node *n)
{
	lb_arena_fini(&n->arena);
}
