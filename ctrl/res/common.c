// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/common.h"

#include "lb/base/time.h"
#include "lb/route/timeouts.h"
#include "proto/json.h"
#include "udpa/type/v1/typed_struct.pb-c.h"
#include "xds/type/v3/typed_struct.pb-c.h"

#include <errno.h>

#define SPECIFIER(x) ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_##x
#define DENOMINATOR(x) ENVOY__TYPE__V3__FRACTIONAL_PERCENT__DENOMINATOR_TYPE__##x
#define TYPED_STRUCT (&xds__type__v3__typed_struct__descriptor)
#define DURATION_MAX_S 315576000000ll // google/protobuf/duration.proto
#define DURATION_MAX_NS 999999999

static bool is_text(const uint8_t *p, size_t len)
{
	for (size_t n; len; p += n, len -= n) {
		n = proto_utf8_len(p, len);
		if (n == 0)
			return false;
	}
	return true;
}

char *res_name_in(const uint8_t *bytes, size_t len)
{
	const uint8_t *p = bytes;
	struct proto_field f;
	while (proto_field_next(&p, bytes + len, &f))
		if (f.number == 1 && f.type == 2)
			return f.len && is_text(f.bytes, f.len)
			               ? strndup((const char *)f.bytes, f.len)
			               : NULL;
	return NULL;
}

int res_copy(struct res_reader *rd, const char *text, struct str *ret)
{
	const char *copy = lb_arena_strdup(rd->arena, text);
	if (!copy)
		return -ENOMEM;
	*ret = str_from(copy);
	return 0;
}

int res_copy_folded(struct res_reader *rd, const char *text, struct str *ret)
{
	char *copy = lb_arena_strdup(rd->arena, text);
	if (!copy)
		return -ENOMEM;
	for (char *p = copy; *p; p++)
		*p = str_fold(*p);
	*ret = str_from(copy);
	return 0;
}

int res_any_open(const Google__Protobuf__Any *any, struct res_any *ret, struct lb_err *err)
{
	*ret = (struct res_any){.type_url = any->type_url, .bytes = &any->value};
	if (!proto_any_is(any->type_url, TYPED_STRUCT) &&
		!proto_any_is(any->type_url, &udpa__type__v1__typed_struct__descriptor))
		return 0;
	// The two have one form.
	size_t left = RES_FIELDS_MAX;
	Xds__Type__V3__TypedStruct *t =
		proto_unpack_within(TYPED_STRUCT, any->value.data, any->value.len, &left, err);
	if (!t)
		return -EINVAL;
	ret->typed_struct = t;
	ret->type_url = t->type_url;
	ret->json = t->value;
	return 0;
}

void res_any_close(struct res_any *a)
{
	proto_free(a->typed_struct);
}

void *res_any_decode(
	const struct res_any *a, const ProtobufCMessageDescriptor *type, struct lb_err *err)
{
	size_t left = RES_FIELDS_MAX;
	if (!a->typed_struct)
		return proto_unpack_within(type, a->bytes->data, a->bytes->len, &left, err);
	json_t *json = a->json ? proto_json_encode(&a->json->base) : json_object();
	ProtobufCMessage *message = NULL;
	if (json && proto_json_decode(type, json, &message, err))
		message = NULL;
	json_decref(json);
	return message;
}

bool res_any_stands_for(const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type)
{
	struct res_any a;
	struct lb_err ignored;
	if (res_any_open(any, &a, &ignored))
		return false;
	bool found = proto_any_is(a.type_url, type);
	res_any_close(&a);
	return found;
}

void *res_any_unpack(const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type,
	struct lb_err *err)
{
	struct res_any a;
	if (res_any_open(any, &a, err))
		return NULL;
	void *message = res_any_decode(&a, type, err);
	res_any_close(&a);
	return message;
}

const char *res_enum_name(const ProtobufCEnumDescriptor *type, int value)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(type, value);
	return v ? v->name : "unknown";
}

bool res_is_ads(const Envoy__Config__Core__V3__ConfigSource *c)
{
	return c && (c->config_source_specifier_case == SPECIFIER(ADS) ||
			    c->config_source_specifier_case == SPECIFIER(SELF));
}

int res_check_duration(const Google__Protobuf__Duration *d, const char *field, struct lb_err *err)
{
	if (!d)
		return 0;
	if (d->seconds < 0 || d->seconds > DURATION_MAX_S)
		return lb_err_set(err, "%s: seconds must be in [0, %lld]", field, DURATION_MAX_S);
	if (d->nanos < 0 || d->nanos > DURATION_MAX_NS)
		return lb_err_set(err, "%s: nanos must be in [0, %d]", field, DURATION_MAX_NS);
	return 0;
}

uint64_t res_duration_ns(const Google__Protobuf__Duration *d)
{
	uint64_t s = (uint64_t)d->seconds;
	return s >= UINT64_MAX / NS_PER_SECOND ? UINT64_MAX
	                                       : s * NS_PER_SECOND + (uint64_t)d->nanos;
}

uint64_t res_idle_ns(const Google__Protobuf__Duration *d)
{
	if (!d)
		return 0;
	uint64_t ns = res_duration_ns(d);
	return ns ? ns : LB_NO_TIMEOUT;
}

int res_denominator(const Envoy__Type__V3__FractionalPercent *p, uint32_t *ret, struct lb_err *err)
{
	switch (p->denominator) {
	case DENOMINATOR(HUNDRED):
		*ret = 100;
		return 0;
	case DENOMINATOR(TEN_THOUSAND):
		*ret = 10000;
		return 0;
	case DENOMINATOR(MILLION):
		*ret = 1000000;
		return 0;
	default:
		return lb_err_set(err, "unknown denominator %d", (int)p->denominator);
	}
}

int res_name_set_add(struct strmap *set, struct lb_arena *arena, const char *name)
{
	if (strmap_find(set, name))
		return -EEXIST;
	struct strmap_link *l = lb_arena_alloc(arena, 1, sizeof(*l));
	return l ? strmap_add(set, l, name) : -ENOMEM;
}
