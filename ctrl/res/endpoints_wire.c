// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/endpoints_wire.h"

#include "proto/scan.h"

#include <errno.h>
#include <string.h>

#define VARINT(number) PROTO_TAG(number, PROTO_VARINT)
#define BYTES(number) PROTO_TAG(number, PROTO_BYTES)
#define FIXED64(number) PROTO_TAG(number, PROTO_FIXED64)

// Views are not cleared between two occurrences of a message, so that these merge.

static int finish(const struct proto_scan *s, struct lb_err *err)
{
	return s->is_malformed ? lb_err_set(err, "malformed protobuf") : 0;
}

static int within(int rc, const char *field, struct lb_err *err)
{
	return rc == -EINVAL ? lb_err_within(err, "%s", field) : rc;
}

static int read_text(struct str bytes, struct str *ret, const char *field, struct lb_err *err)
{
	if (!proto_is_text(bytes))
		return lb_err_set(err, "%s: not UTF-8 text", field);
	*ret = bytes;
	return 0;
}

// google.protobuf.UInt32Value
static int read_u32(struct str bytes, uint32_t *ret, struct lb_err *err)
{
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; proto_scan_next(&s, &i);)
		if (i.tag == VARINT(1))
			*ret = (uint32_t)i.value;
	return finish(&s, err);
}

static int read_socket_address(struct str bytes, struct eds_address *a, struct lb_err *err)
{
	int rc = 0;
	struct str named_port;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(2):
			rc = read_text(i.bytes, &a->text, "address", err);
			break;
		case VARINT(3):
			a->has_port = true;
			a->port = (uint32_t)i.value;
			break;
		case BYTES(4):
			a->has_port = false;
			rc = read_text(i.bytes, &named_port, "named_port", err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

static int read_address(struct str bytes, struct eds_address *a, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			a->is_socket = true;
			rc = within(read_socket_address(i.bytes, a, err), "socket_address", err);
			break;
		case BYTES(2): // pipe
		case BYTES(3): // envoy_internal_address
			*a = (struct eds_address){0};
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

// Endpoint.AdditionalAddress
static int read_additional(struct str bytes, struct eds_address *a, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	*a = (struct eds_address){0};
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);)
		if (i.tag == BYTES(1))
			rc = within(read_address(i.bytes, a, err), "address", err);
	return rc ? rc : finish(&s, err);
}

static int read_host(struct str bytes, struct eds_endpoint *e, struct eds_address *additional,
	size_t room, struct lb_err *err)
{
	int rc = 0;
	struct eds_address counted;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			rc = within(read_address(i.bytes, &e->address, err), "address", err);
			break;
		case BYTES(3):
			rc = read_text(i.bytes, &e->hostname, "hostname", err);
			break;
		case BYTES(4):
			rc = read_additional(i.bytes,
				e->n_additional < room ? &additional[e->n_additional] : &counted,
				err);
			if (rc)
				lb_err_within(err, "additional_addresses[%zu]", e->n_additional);
			e->n_additional++;
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

// google.protobuf.Value: its string, none if it is something else.
static int read_string_value(struct str bytes, void *ret, struct lb_err *err)
{
	int rc = 0;
	struct str *v = ret;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(3):
			rc = read_text(i.bytes, v, "string_value", err);
			break;
		case VARINT(1): // null_value
		case FIXED64(2): // number_value
		case VARINT(4): // bool_value
		case BYTES(5): // struct_value
		case BYTES(6): // list_value
			*v = (struct str){0};
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

// An entry of map<string, message>.
static int read_entry_key(struct str bytes, struct str *ret, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);)
		if (i.tag == BYTES(1))
			rc = read_text(i.bytes, ret, "key", err);
	return rc ? rc : finish(&s, err);
}

// Reads the value that a map<string, message>, the field `map` of its message, has at the key into
// *ret, which is `size` bytes. Of two entries with one key the later counts alone. What other keys
// have is not looked into.
static int read_map(struct str bytes, uint32_t map, struct str key,
	int (*read_value)(struct str, void *ret, struct lb_err *), void *ret, size_t size,
	struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		struct str found = {0};
		if (i.tag != map)
			continue;
		rc = read_entry_key(i.bytes, &found, err);
		if (rc || !str_eq(found, key))
			continue;
		memset(ret, 0, size);
		struct proto_scan entry = proto_scan_of(i.bytes);
		for (struct proto_item k; !rc && proto_scan_next(&entry, &k);)
			if (k.tag == BYTES(2))
				rc = read_value(k.bytes, ret, err);
	}
	return rc ? rc : finish(&s, err);
}

// google.protobuf.Struct
static int read_struct(struct str bytes, void *hash_key, struct lb_err *err)
{
	return read_map(bytes, BYTES(1), STR("hash_key"), read_string_value, hash_key,
		sizeof(struct str), err);
}

// google.protobuf.Any
static int read_any(struct str bytes, void *ret, struct lb_err *err)
{
	int rc = 0;
	struct eds_any *any = ret;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			rc = read_text(i.bytes, &any->type_url, "type_url", err);
			break;
		case BYTES(2):
			any->value = i.bytes;
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

static int read_metadata(
	struct str bytes, struct str *hash_key, struct eds_any *proxy, struct lb_err *err)
{
	int rc = read_map(
		bytes, BYTES(1), STR("envoy.lb"), read_struct, hash_key, sizeof(*hash_key), err);
	return rc ? rc
	          : read_map(bytes, BYTES(2), STR(EDS_PROXY_KEY), read_any, proxy, sizeof(*proxy),
			    err);
}

bool eds_any_is_address(const struct eds_any *any)
{
	static const struct str name = STR("/envoy.config.core.v3.Address");
	struct str url = any->type_url;
	return url.len >= name.len && memcmp(url.p + url.len - name.len, name.p, name.len) == 0;
}

int eds_read_proxy(const struct eds_any *any, struct eds_address *ret, struct lb_err *err)
{
	*ret = (struct eds_address){0};
	return read_address(any->value, ret, err);
}

// A varint of one to three bytes that takes just these.
static bool read_short(const uint8_t *at, size_t len, uint32_t *ret)
{
	uint32_t value = 0;
	if (len == 0 || len > 3)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (at[i] >> 7 != (i + 1 < len))
			return false;
		value |= (uint32_t)(at[i] & 0x7f) << 7 * i;
	}
	*ret = value;
	return true;
}

// What nearly all endpoints of large clusters look like, read at once: an address and its port,
// health or none, weight or none, as serializers write them: in the order of their numbers, each
// once, lengths of one byte. False = it looks otherwise, and *ret is undefined; that says nothing
// about it.
static bool read_usual(struct str bytes, struct eds_endpoint *ret)
{
	const uint8_t *at = (const uint8_t *)bytes.p, *end = at + bytes.len;
	// endpoint { address { socket_address { address; port_value } } }, which end together.
	if (bytes.len < 10 || at[0] != BYTES(1) || at[2] != BYTES(1) || at[4] != BYTES(1) ||
		at[6] != BYTES(2))
		return false;
	size_t inner = at[5], len = at[7];
	if (at[1] >= 0x80 || at[1] != inner + 4 || at[3] != inner + 2 || inner + 6 > bytes.len ||
		len + 4 > inner || at[8 + len] != VARINT(3))
		return false;
	*ret = (struct eds_endpoint){.is_endpoint = true,
		.address = {
			.is_socket = true, .has_port = true, .text = {(const char *)at + 8, len}}};
	if (!read_short(at + 9 + len, inner - len - 3, &ret->address.port))
		return false;
	at += 6 + inner;
	if (end - at >= 2 && at[0] == VARINT(2) && at[1] < 0x80) {
		ret->health = at[1];
		at += 2;
	}
	if (end - at >= 4 && at[0] == BYTES(4) && at[1] == end - at - 2 && at[2] == VARINT(1)) {
		ret->has_weight = true;
		if (!read_short(at + 3, at[1] - 1u, &ret->weight))
			return false;
		at = end;
	}
	return at == end && proto_is_text(ret->address.text);
}

int eds_read_endpoint(struct str bytes, struct eds_endpoint *ret, struct eds_address *additional,
	size_t room, struct lb_err *err)
{
	int rc = 0;
	struct str name;
	struct proto_scan s = proto_scan_of(bytes);
	if (read_usual(bytes, ret))
		return 0;
	*ret = (struct eds_endpoint){0};
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			ret->is_endpoint = true;
			rc = within(
				read_host(i.bytes, ret, additional, room, err), "endpoint", err);
			break;
		case VARINT(2):
			ret->health = (int32_t)i.value;
			break;
		case BYTES(3):
			rc = within(read_metadata(i.bytes, &ret->hash_key, &ret->proxy, err),
				"metadata", err);
			break;
		case BYTES(4):
			ret->has_weight = true;
			rc = within(
				read_u32(i.bytes, &ret->weight, err), "load_balancing_weight", err);
			break;
		case BYTES(5): // the other member of its oneof
			ret->is_endpoint = false;
			ret->address = (struct eds_address){0};
			ret->hostname = (struct str){0};
			ret->n_additional = 0;
			rc = read_text(i.bytes, &name, "endpoint_name", err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

static int read_locality_name(struct str bytes, struct eds_locality *l, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			rc = read_text(i.bytes, &l->region, "region", err);
			break;
		case BYTES(2):
			rc = read_text(i.bytes, &l->zone, "zone", err);
			break;
		case BYTES(3):
			rc = read_text(i.bytes, &l->sub_zone, "sub_zone", err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

int eds_read_locality(struct str bytes, struct eds_locality *ret, struct lb_err *err)
{
	int rc = 0;
	struct str hash_key; // of endpoints alone
	struct proto_scan s = proto_scan_of(bytes);
	*ret = (struct eds_locality){.bytes = bytes};
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			ret->is_named = true;
			rc = within(read_locality_name(i.bytes, ret, err), "locality", err);
			break;
		case BYTES(2):
			ret->n_endpoints++;
			break;
		case BYTES(3):
			rc = within(
				read_u32(i.bytes, &ret->weight, err), "load_balancing_weight", err);
			break;
		case VARINT(5):
			ret->priority = (uint32_t)i.value;
			break;
		case BYTES(9):
			rc = within(read_metadata(i.bytes, &hash_key, &ret->proxy, err), "metadata",
				err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

bool eds_next_endpoint(struct str *at, struct str *ret)
{
	struct proto_scan s = proto_scan_of(*at);
	struct proto_item i = {0};
	while (i.tag != BYTES(2) && proto_scan_next(&s, &i))
		;
	*at = (struct str){(const char *)s.at, (size_t)(s.end - s.at)};
	*ret = i.bytes;
	return i.tag == BYTES(2);
}

// google.type.v3.FractionalPercent
static int read_percentage(struct str bytes, struct eds_drop *d, struct lb_err *err)
{
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; proto_scan_next(&s, &i);) {
		if (i.tag == VARINT(1))
			d->numerator = (uint32_t)i.value;
		else if (i.tag == VARINT(2))
			d->denominator = (int32_t)i.value;
	}
	return finish(&s, err);
}

static int read_drop(struct str bytes, struct eds_drop *d, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	*d = (struct eds_drop){0};
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			rc = read_text(i.bytes, &d->category, "category", err);
			break;
		case BYTES(2):
			d->has_percentage = true;
			rc = within(read_percentage(i.bytes, d, err), "drop_percentage", err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}

static int read_policy(
	struct str bytes, const struct eds_sink *sink, size_t *n_drops, struct lb_err *err)
{
	int rc = 0;
	struct proto_scan s = proto_scan_of(bytes);
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		struct eds_drop d;
		if (i.tag != BYTES(2))
			continue;
		rc = read_drop(i.bytes, &d, err);
		if (!rc)
			rc = sink->on_drop(sink->ctx, &d, err);
		if (rc == -EINVAL)
			lb_err_within(err, "drop_overloads[%zu]", *n_drops);
		(*n_drops)++;
	}
	return rc ? rc : finish(&s, err);
}

int eds_read(
	struct str bytes, const struct eds_sink *sink, struct str *ret_name, struct lb_err *err)
{
	int rc = 0;
	size_t n_localities = 0, n_drops = 0;
	struct proto_scan s = proto_scan_of(bytes);
	*ret_name = STR("");
	for (struct proto_item i; !rc && proto_scan_next(&s, &i);) {
		switch (i.tag) {
		case BYTES(1):
			rc = read_text(i.bytes, ret_name, "cluster_name", err);
			break;
		case BYTES(2):
			rc = sink->on_locality(sink->ctx, i.bytes, err);
			if (rc == -EINVAL)
				lb_err_within(err, "endpoints[%zu]", n_localities);
			n_localities++;
			break;
		case BYTES(4):
			rc = within(read_policy(i.bytes, sink, &n_drops, err), "policy", err);
			break;
		}
	}
	return rc ? rc : finish(&s, err);
}
