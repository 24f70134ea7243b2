// SPDX-License-Identifier: Apache-2.0
// Two steps. The bytes are rewritten first, so that protobuf-c, which refuses known fields of
// another wire type, does not merge the members of a oneof, and knows fields that Shunt ignores,
// reads what protobuf means: occurrences of a singular message become one by concatenation, which
// is how protobuf defines merging. Then the message is unpacked and checked.
#include "tests/support/eds_oracle.h"

#include "ctrl/res/endpoints.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "lb/base/check.h"
#include "lb/base/str.h"
#include "lb/route/domains.h"
#include "proto/wire.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LocalityLbEndpoints InLocality;
typedef Envoy__Config__Endpoint__V3__LbEndpoint InEndpoint;
typedef Envoy__Config__Core__V3__Address Address;

#define PROXY_KEY "envoy.http11_proxy_transport_socket.proxy_address"
#define ADDRESS_URL "/envoy.config.core.v3.Address"

struct buffer {
	uint8_t *bytes;
	size_t n, room;
};

static void put(struct buffer *b, const void *bytes, size_t n)
{
	if (b->n + n > b->room) {
		b->room = 2 * (b->n + n);
		b->bytes = realloc(b->bytes, b->room);
		CHECK(b->bytes);
	}
	if (n)
		memcpy(b->bytes + b->n, bytes, n);
	b->n += n;
}

static void put_varint(struct buffer *b, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		put(b, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
	put(b, &(uint8_t){(uint8_t)v}, 1);
}

// What is read of each message: numbers of fields, negative = only whether they are there.
static const struct rule {
	const char *type;
	int fields[7];
	const char *key; // of a map's entry: the only one that is looked into
} rules[] = {
	{"envoy.config.endpoint.v3.ClusterLoadAssignment", {1, 2, 4}, NULL},
	{"envoy.config.endpoint.v3.ClusterLoadAssignment.Policy", {2}, NULL},
	{"envoy.config.endpoint.v3.ClusterLoadAssignment.Policy.DropOverload", {1, 2}, NULL},
	{"envoy.type.v3.FractionalPercent", {1, 2}, NULL},
	{"envoy.config.endpoint.v3.LocalityLbEndpoints", {1, 2, 3, 5, 9}, NULL},
	{"envoy.config.core.v3.Locality", {1, 2, 3}, NULL},
	{"google.protobuf.UInt32Value", {1}, NULL},
	{"envoy.config.endpoint.v3.LbEndpoint", {1, 2, 3, 4, 5}, NULL},
	{"envoy.config.endpoint.v3.Endpoint", {1, 3, 4}, NULL},
	{"envoy.config.endpoint.v3.Endpoint.AdditionalAddress", {1}, NULL},
	{"envoy.config.core.v3.Address", {1, -2, -3}, NULL},
	{"envoy.config.core.v3.SocketAddress", {2, 3, 4}, NULL},
	{"envoy.config.core.v3.Metadata", {1, 2}, NULL},
	{"envoy.config.core.v3.Metadata.TypedFilterMetadataEntry", {1, 2}, PROXY_KEY},
	{"google.protobuf.Any", {1, 2}, NULL},
	{"envoy.config.core.v3.Metadata.FilterMetadataEntry", {1, 2}, "envoy.lb"},
	{"google.protobuf.Struct", {1}, NULL},
	{"google.protobuf.Struct.FieldsEntry", {1, 2}, "hash_key"},
	{"google.protobuf.Value", {1, 2, 3, 4, -5, -6}, NULL},
};

static const struct rule *find_rule(const ProtobufCMessageDescriptor *type)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (strcmp(rules[i].type, type->name) == 0)
			return &rules[i];
	CHECK(!"a message that is read has a rule");
}

enum reading { IGNORED, MARKED, READ };

static enum reading reading_of(const struct rule *rule, unsigned number)
{
	for (size_t i = 0; i < 7 && rule->fields[i]; i++)
		if (number == (unsigned)abs(rule->fields[i]))
			return rule->fields[i] < 0 ? MARKED : READ;
	return IGNORED;
}

struct wire_field {
	unsigned number, wire;
	const uint8_t *bytes; // of a varint: as it stands there
	size_t len;
	const ProtobufCFieldDescriptor *d; // NULL = not read
	enum reading reading;
	bool is_done; // merged into an earlier one, or undone by a later member of its oneof
};

static bool take_varint(const uint8_t **p, const uint8_t *end, size_t n_max, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < n_max && *p < end; i++) {
		uint8_t b = *(*p)++;
		*ret |= (uint64_t)(b & 0x7f) << 7 * i;
		if (b < 0x80)
			return true;
	}
	return false;
}

static bool take_field(const uint8_t **p, const uint8_t *end, struct wire_field *f)
{
	uint64_t tag, v, len;
	if (!take_varint(p, end, 5, &tag) || tag >> 32 || tag < 8)
		return false;
	*f = (struct wire_field){.number = (unsigned)(tag >> 3), .wire = tag & 7, .bytes = *p};
	if (f->wire == 0) {
		if (!take_varint(p, end, 10, &v))
			return false;
		f->len = (size_t)(*p - f->bytes);
		return true;
	}
	if (f->wire == 2) {
		if (!take_varint(p, end, 5, &len))
			return false;
		f->bytes = *p;
	} else if (f->wire == 1 || f->wire == 5) {
		len = f->wire == 1 ? 8 : 4;
	} else {
		return false;
	}
	if (len > (uint64_t)(end - *p))
		return false;
	*p += len;
	f->len = (size_t)len;
	return true;
}

static unsigned wire_of(const ProtobufCFieldDescriptor *d)
{
	switch (d->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_BYTES:
	case PROTOBUF_C_TYPE_MESSAGE:
		return 2;
	case PROTOBUF_C_TYPE_DOUBLE:
		return 1;
	default:
		return 0;
	}
}

static bool is_in_oneof_with(const struct wire_field *a, const struct wire_field *b)
{
	return a->d->flags & b->d->flags & PROTOBUF_C_FIELD_FLAG_ONEOF &&
	       a->d->quantifier_offset == b->d->quantifier_offset;
}

static bool is_text(const uint8_t *p, size_t len)
{
	while (len) {
		size_t n = proto_utf8_len(p, len);
		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

static bool rewrite(const ProtobufCMessageDescriptor *, const uint8_t *, size_t, struct buffer *);

// Each occurrence must be well-formed by itself, used or not.
static bool is_good(const struct wire_field *f)
{
	struct buffer ignored = {0};
	bool good = true;
	if (f->d->type == PROTOBUF_C_TYPE_STRING)
		good = is_text(f->bytes, f->len);
	else if (f->d->type == PROTOBUF_C_TYPE_MESSAGE && f->reading == READ)
		good = rewrite(f->d->descriptor, f->bytes, f->len, &ignored);
	free(ignored.bytes);
	return good;
}

static bool has_key(const struct wire_field *f, size_t n, const char *key)
{
	const struct wire_field *last = NULL;
	for (size_t i = 0; i < n; i++)
		if (f[i].d && f[i].number == 1)
			last = &f[i];
	return last && last->len == strlen(key) && memcmp(last->bytes, key, last->len) == 0;
}

static void write_message(struct wire_field *f, size_t n, struct buffer *ret)
{
	struct buffer whole = {0}, inside = {0};
	put(&whole, f->bytes, f->len);
	for (size_t i = 1; i < n && f->d->label != PROTOBUF_C_LABEL_REPEATED; i++) {
		if (f[i].d == f->d && !f[i].is_done) {
			put(&whole, f[i].bytes, f[i].len);
			f[i].is_done = true;
		}
	}
	if (f->reading == READ)
		CHECK(rewrite(f->d->descriptor, whole.bytes, whole.n, &inside));
	put_varint(ret, inside.n);
	put(ret, inside.bytes, inside.n);
	free(whole.bytes);
	free(inside.bytes);
}

static void write_fields(struct wire_field *f, size_t n, struct buffer *ret)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; f[i].d && k < n; k++)
			if (f[k].d && f[k].d != f[i].d && is_in_oneof_with(&f[i], &f[k]))
				f[i].is_done = true;
	for (size_t i = 0; i < n; i++) {
		if (!f[i].d || f[i].is_done)
			continue;
		put_varint(ret, (uint64_t)f[i].number << 3 | f[i].wire);
		if (f[i].d->type == PROTOBUF_C_TYPE_MESSAGE) {
			write_message(&f[i], n - i, ret);
			continue;
		}
		if (f[i].wire == 2)
			put_varint(ret, f[i].len);
		put(ret, f[i].bytes, f[i].len);
	}
}

// False = it is no protobuf where Shunt reads it.
static bool rewrite(const ProtobufCMessageDescriptor *type, const uint8_t *bytes, size_t len,
	struct buffer *ret)
{
	const struct rule *rule = find_rule(type);
	const uint8_t *p = bytes, *end = bytes + len;
	struct wire_field *f = calloc(len / 2 + 1, sizeof(*f));
	size_t n = 0;
	bool good = true;
	CHECK(f);
	while (good && p < end) {
		good = take_field(&p, end, &f[n]);
		if (!good)
			break;
		const ProtobufCFieldDescriptor *d =
			protobuf_c_message_descriptor_get_field(type, f[n].number);
		f[n].reading = reading_of(rule, f[n].number);
		f[n].d = f[n].reading != IGNORED && f[n].wire == wire_of(d) ? d : NULL;
		n++;
	}
	bool is_wanted = !rule->key || has_key(f, n, rule->key);
	for (size_t i = 0; good && i < n; i++)
		good = !f[i].d || (!is_wanted && f[i].number != 1) || is_good(&f[i]);
	if (good && is_wanted)
		write_fields(f, n, ret);
	free(f);
	return good;
}

// What follows checks messages, the plain way.

static bool read_address(const Address *in, struct ip_port *ret)
{
	if (!in || in->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
		return false;
	const Envoy__Config__Core__V3__SocketAddress *s = in->socket_address;
	struct in_addr v4;
	struct in6_addr v6;
	if (inet_pton(AF_INET, s->address, &v4) == 1)
		ret->ip = ip_from_v4(ntohl(v4.s_addr));
	else if (inet_pton(AF_INET6, s->address, &v6) != 1 || IN6_IS_ADDR_LINKLOCAL(&v6))
		return false;
	else
		memcpy(ret->ip.b, &v6, sizeof(v6));
	ret->port = (uint16_t)s->port_value;
	return s->port_specifier_case ==
	               ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE &&
	       s->port_value && s->port_value <= UINT16_MAX;
}

static const char *find_hash_key(const Envoy__Config__Core__V3__Metadata *m)
{
	const Google__Protobuf__Value *v = NULL;
	const Google__Protobuf__Struct *at = NULL;
	for (size_t i = 0; m && i < m->n_filter_metadata; i++)
		if (strcmp(m->filter_metadata[i]->key, "envoy.lb") == 0)
			at = m->filter_metadata[i]->value;
	for (size_t i = 0; at && i < at->n_fields; i++)
		if (strcmp(at->fields[i]->key, "hash_key") == 0)
			v = at->fields[i]->value;
	return v && v->kind_case == GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE ? v->string_value
	                                                                       : "";
}

static bool read_proxy_address(const Google__Protobuf__Any *any, struct ip_port *ret)
{
	static const ProtobufCMessageDescriptor *const TYPE =
		&envoy__config__core__v3__address__descriptor;
	struct buffer plain = {0};
	struct lb_err err;
	if (!rewrite(TYPE, any->value.data, any->value.len, &plain)) {
		free(plain.bytes);
		return false;
	}
	Address *a = proto_unpack(TYPE, plain.bytes, plain.n, &err);
	CHECK(a);
	bool good = read_address(a, ret);
	proto_free(a);
	free(plain.bytes);
	return good;
}

// gRFC A86. Port 0 = none. False = wrong.
static bool read_proxy(const Envoy__Config__Core__V3__Metadata *m, struct ip_port *ret)
{
	const Google__Protobuf__Any *any = NULL;
	*ret = (struct ip_port){.port = 0};
	for (size_t i = 0; m && i < m->n_typed_filter_metadata; i++)
		if (strcmp(m->typed_filter_metadata[i]->key, PROXY_KEY) == 0)
			any = m->typed_filter_metadata[i]->value;
	size_t n = strlen(ADDRESS_URL), len = any ? strlen(any->type_url) : 0;
	if (len < n || strcmp(any->type_url + len - n, ADDRESS_URL) != 0)
		return true;
	return read_proxy_address(any, ret);
}

static bool read_endpoint(const InEndpoint *in, struct lb_arena *arena, struct lb_leaf_endpoint *e)
{
	if (in->host_identifier_case !=
		ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT)
		return false;
	size_t n = in->endpoint->n_additional_addresses;
	if (n > 63)
		return false;
	struct ip_port *list = lb_arena_alloc(arena, n + 1, sizeof(*list));
	CHECK(list);
	bool good = read_address(in->endpoint->address, &list[0]);
	for (size_t i = 0; good && i < n; i++)
		good = read_address(in->endpoint->additional_addresses[i]->address, &list[i + 1]);
	*e = (struct lb_leaf_endpoint){.addresses = list,
		.n_addresses = (uint32_t)n + 1,
		.weight = in->load_balancing_weight ? in->load_balancing_weight->value : 1,
		.health = (unsigned)in->health_status < LB_LEAF_OTHER
	                          ? (enum lb_leaf_health)in->health_status
	                          : LB_LEAF_OTHER,
		.hostname = str_from(in->endpoint->hostname),
		.hash_key = str_from(find_hash_key(in->metadata))};
	return good && read_proxy(in->metadata, &e->proxy) && e->weight &&
	       (e->hostname.len == 0 || lb_authority_is_valid(e->hostname));
}

// "region/zone/sub_zone", slashes and backslashes in these escaped.
static struct str name_of(const struct res_locality *l, struct lb_arena *arena)
{
	const char *const parts[] = {l->region, l->zone, l->sub_zone};
	char *name = lb_arena_alloc(
		arena, 2, strlen(l->region) + strlen(l->zone) + strlen(l->sub_zone) + 2);
	CHECK(name);
	size_t len = 0;
	for (int i = 0; i < 3; i++) {
		if (i)
			name[len++] = '/';
		for (const char *c = parts[i]; *c; c++) {
			if (strchr("/\\", *c))
				name[len++] = '\\';
			name[len++] = *c;
		}
	}
	return (struct str){name, len};
}

static bool is_same_locality(const struct res_locality *a, const struct res_locality *b)
{
	return strcmp(a->region, b->region) == 0 && strcmp(a->zone, b->zone) == 0 &&
	       strcmp(a->sub_zone, b->sub_zone) == 0;
}

static bool comes_apart(struct str name, const struct res_locality *l, struct lb_arena *arena)
{
	char *buf = lb_arena_alloc(arena, 1, name.len + 1);
	CHECK(buf);
	const struct res_locality parts = res_locality_of(name, buf);
	return is_same_locality(&parts, l);
}

static bool read_locality(const InLocality *in, struct lb_arena *arena, struct res_locality *names,
	struct lb_leaf_locality *l)
{
	struct lb_leaf_endpoint *list = lb_arena_alloc(arena, in->n_lb_endpoints, sizeof(*list));
	CHECK(list);
	struct ip_port proxy;
	if (!in->locality || !read_proxy(in->metadata, &proxy))
		return false;
	*names = (struct res_locality){lb_arena_strdup(arena, in->locality->region),
		lb_arena_strdup(arena, in->locality->zone),
		lb_arena_strdup(arena, in->locality->sub_zone)};
	*l = (struct lb_leaf_locality){name_of(names, arena), in->load_balancing_weight->value,
		list, (uint32_t)in->n_lb_endpoints};
	CHECK(comes_apart(l->name, names, arena));
	uint64_t sum = 0;
	for (size_t i = 0; i < in->n_lb_endpoints; i++) {
		if (!read_endpoint(in->lb_endpoints[i], arena, &list[i]))
			return false;
		if (!list[i].proxy.port)
			list[i].proxy = proxy;
		sum += list[i].weight;
	}
	return sum <= UINT32_MAX;
}

// Those of one priority. False = wrong; none = there is no such priority.
static bool read_priority(const Assignment *m, uint32_t level, struct lb_arena *arena,
	struct res_locality *names, struct lb_leaf_priority *p)
{
	struct lb_leaf_locality *list = lb_arena_alloc(arena, m->n_endpoints, sizeof(*list));
	uint64_t sum = 0;
	CHECK(list);
	p->localities = list;
	for (size_t i = 0; i < m->n_endpoints; i++) {
		const InLocality *in = m->endpoints[i];
		if (!in->load_balancing_weight || !in->load_balancing_weight->value ||
			in->priority != level)
			continue;
		uint32_t at = p->n_localities++;
		if (!read_locality(in, arena, &names[at], &list[at]))
			return false;
		sum += list[at].weight;
		for (uint32_t k = 0; k < at; k++)
			if (is_same_locality(&names[k], &names[at]))
				return false;
	}
	return sum <= UINT32_MAX;
}

static bool has_unique_addresses(const struct lb_leaf_endpoints *l)
{
	for (size_t i = 0; i < l->n_addresses; i++)
		for (size_t k = 0; k < i; k++)
			if (ip_port_eq(&l->addresses[i], &l->addresses[k]))
				return false;
	return true;
}

static bool read_priorities(const Assignment *m, struct res_endpoints *r)
{
	struct lb_arena *arena = &r->base.arena;
	struct lb_leaf_priority *list = lb_arena_alloc(arena, m->n_endpoints + 1, sizeof(*list));
	struct res_locality *names = lb_arena_alloc(arena, m->n_endpoints, sizeof(*names));
	const struct ip_port *second;
	size_t n_left = 0, n_read = 0;
	uint32_t n = 0;
	CHECK(list && names);
	for (size_t i = 0; i < m->n_endpoints; i++)
		n_left += m->endpoints[i]->load_balancing_weight &&
		          m->endpoints[i]->load_balancing_weight->value;
	for (; n_read < n_left; n++) {
		if (!read_priority(m, n, arena, names + n_read, &list[n]) || !list[n].n_localities)
			return false;
		n_read += list[n].n_localities;
	}
	r->list = lb_leaf_endpoints_new(list, n, &second);
	CHECK(r->list);
	return has_unique_addresses(r->list);
}

static bool read_drops(const Assignment *m, struct res_endpoints *r)
{
	size_t n = m->policy ? m->policy->n_drop_overloads : 0;
	struct res_drop *list = lb_arena_alloc(&r->base.arena, n, sizeof(*list));
	CHECK(list);
	for (size_t i = 0; i < n; i++) {
		const Envoy__Config__Endpoint__V3__ClusterLoadAssignment__Policy__DropOverload *in =
			m->policy->drop_overloads[i];
		static const double PARTS[] = {100, 10000, 1000000};
		if (!*in->category || !in->drop_percentage ||
			(unsigned)in->drop_percentage->denominator > 2)
			return false;
		double ppm = 1e6 * in->drop_percentage->numerator /
		             PARTS[in->drop_percentage->denominator];
		list[i].category = lb_arena_strdup(&r->base.arena, in->category);
		list[i].per_million = ppm > 1e6 ? 1000000 : (uint32_t)(ppm + 0.5);
	}
	r->drops = list;
	r->n_drops = (uint32_t)n;
	return true;
}

struct xds_res *eds_oracle_decode(const uint8_t *bytes, size_t len)
{
	static const ProtobufCMessageDescriptor *const TYPE =
		&envoy__config__endpoint__v3__cluster_load_assignment__descriptor;
	struct buffer plain = {0};
	struct xds_res *base = NULL;
	if (rewrite(TYPE, bytes, len, &plain)) {
		struct lb_err err;
		Assignment *m = proto_unpack(TYPE, plain.bytes, plain.n, &err);
		CHECK(m);
		base = xds_res_new(&res_type_endpoints, sizeof(struct res_endpoints),
			m->cluster_name, bytes, len);
		CHECK(base);
		struct res_endpoints *r = res_endpoints_from(base);
		if (!read_priorities(m, r) || !read_drops(m, r)) {
			xds_res_put(base);
			base = NULL;
		}
		proto_free(m);
	}
	free(plain.bytes);
	return base;
}

// Content.

static bool is_same_endpoint(
	const struct lb_leaf_endpoints *in_a, const struct lb_leaf_endpoints *in_b, uint32_t i)
{
	const struct lb_leaf_endpoint a = lb_leaf_endpoints_at(in_a, i);
	const struct lb_leaf_endpoint b = lb_leaf_endpoints_at(in_b, i);
	if (a.n_addresses != b.n_addresses || a.health != b.health || a.weight != b.weight ||
		!str_eq(a.hostname, b.hostname) || !str_eq(a.hash_key, b.hash_key) ||
		!ip_port_eq(&a.proxy, &b.proxy))
		return false;
	for (uint32_t k = 0; k < a.n_addresses; k++)
		if (!ip_port_eq(&a.addresses[k], &b.addresses[k]))
			return false;
	return true;
}

static bool is_same_span(const struct lb_leaf_span *a, const struct lb_leaf_span *b)
{
	return str_eq(a->name, b->name) && a->weight == b->weight && a->first == b->first &&
	       a->n_serving == b->n_serving && a->n_draining == b->n_draining &&
	       a->first_unused == b->first_unused && a->n_unused == b->n_unused;
}

static bool is_same_list(const struct lb_leaf_endpoints *a, const struct lb_leaf_endpoints *b)
{
	if (a->n_priorities != b->n_priorities || a->n_spans != b->n_spans ||
		a->n_all != b->n_all || a->n != b->n || !a->firsts != !b->firsts ||
		!a->hostnames != !b->hostnames || !a->hash_keys != !b->hash_keys ||
		!a->proxies != !b->proxies ||
		memcmp(lb_leaf_endpoints_ends(a), lb_leaf_endpoints_ends(b),
			a->n_priorities * sizeof(uint32_t)) != 0)
		return false;
	for (uint32_t i = 0; i < a->n_spans; i++)
		if (!is_same_span(&a->spans[i], &b->spans[i]))
			return false;
	for (uint32_t i = 0; i < a->n_all; i++)
		if (!is_same_endpoint(a, b, i))
			return false;
	return true;
}

bool eds_oracle_same(const struct res_endpoints *a, const struct res_endpoints *b)
{
	if (strcmp(a->base.name, b->base.name) != 0 || a->n_drops != b->n_drops ||
		!is_same_list(a->list, b->list))
		return false;
	for (uint32_t i = 0; i < a->n_drops; i++)
		if (a->drops[i].per_million != b->drops[i].per_million ||
			strcmp(a->drops[i].category, b->drops[i].category) != 0)
			return false;
	return true;
}
