// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/common.h"

#include "udpa/type/v1/typed_struct.pb-c.h"
#include "xds/type/v3/typed_struct.pb-c.h"

#include <errno.h>

#define NS_PER_S 1000000000ull
#define SPECIFIER(x) ENVOY__CONFIG__CORE__V3__CONFIG_SOURCE__CONFIG_SOURCE_SPECIFIER_##x
#define DURATION_MAX_S 315576000000ll // google/protobuf/duration.proto
#define DURATION_MAX_NS 999999999

bool res_any_stands_for(const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type)
{
	if (proto_any_is(any->type_url, type))
		return true;
	struct lb_err ignored;
	bool found = false;
	if (proto_any_is(any->type_url, &xds__type__v3__typed_struct__descriptor)) {
		Xds__Type__V3__TypedStruct *t =
			proto_unpack(&xds__type__v3__typed_struct__descriptor, any->value.data,
				any->value.len, &ignored);
		found = t && proto_any_is(t->type_url, type);
		proto_free(t);
	} else if (proto_any_is(any->type_url, &udpa__type__v1__typed_struct__descriptor)) {
		Udpa__Type__V1__TypedStruct *t =
			proto_unpack(&udpa__type__v1__typed_struct__descriptor, any->value.data,
				any->value.len, &ignored);
		found = t && proto_any_is(t->type_url, type);
		proto_free(t);
	}
	return found;
}

void *res_any_unpack(const Google__Protobuf__Any *any, const ProtobufCMessageDescriptor *type,
	const char *field, struct lb_err *err)
{
	void *message = proto_unpack(type, any->value.data, any->value.len, err);
	if (!message)
		lb_err_within(err, "%s", field);
	return message;
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
	return s >= UINT64_MAX / NS_PER_S ? UINT64_MAX : s * NS_PER_S + (uint64_t)d->nanos;
}

int res_name_set_add(struct strmap *set, struct xds_arena *arena, const char *name)
{
	if (strmap_find(set, name))
		return -EEXIST;
	struct strmap_link *l = xds_arena_alloc(arena, 1, sizeof(*l));
	return l ? strmap_add(set, l, name) : -ENOMEM;
}
