// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/endpoints.h"

#include "ctrl/res/common.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "lb/domains.h"

#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LocalityLbEndpoints InLocality;
typedef Envoy__Config__Endpoint__V3__LbEndpoint InEndpoint;
typedef Envoy__Config__Core__V3__Address Address;
typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment__Policy__DropOverload InDrop;

// Addresses seen so far in one resource (A27-V04): open addressing, sized once.
struct addr_set {
	struct ip_port *slots; // port 0 = free
	size_t mask;
};

static bool addr_set_add(struct addr_set *s, const struct ip_port *a)
{
	size_t at = XXH64(a->ip.b, sizeof(a->ip.b), a->port) & s->mask;
	for (; s->slots[at].port; at = (at + 1) & s->mask)
		if (ip_port_eq(&s->slots[at], a))
			return false;
	s->slots[at] = *a;
	return true;
}

static int addr_set_init(struct addr_set *s, const Assignment *m)
{
	size_t n = 0, size = 16;
	for (size_t i = 0; i < m->n_endpoints; i++) {
		const InLocality *l = m->endpoints[i];
		for (size_t k = 0; k < l->n_lb_endpoints; k++) {
			const InEndpoint *e = l->lb_endpoints[k];
			n++;
			if (e->host_identifier_case ==
				ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT)
				n += e->endpoint->n_additional_addresses;
		}
	}
	while (size < 2 * n)
		size *= 2;
	s->slots = calloc(size, sizeof(*s->slots));
	s->mask = size - 1;
	return s->slots ? 0 : -ENOMEM;
}

// A27-V04, V05.
static int read_address(
	const Address *in, struct addr_set *seen, struct ip_port *ret, struct lb_err *err)
{
	if (!in || in->address_case != ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS)
		return lb_err_set(err, "no socket_address");
	const Envoy__Config__Core__V3__SocketAddress *s = in->socket_address;
	struct ip_port a = {0};
	if (!ip_parse(s->address, &a.ip))
		return lb_err_set(err, "\"%.64s\" is no IP address", s->address);
	if (s->port_specifier_case !=
		ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE)
		return lb_err_set(err, "%.64s: no port_value", s->address);
	if (s->port_value == 0 || s->port_value > UINT16_MAX)
		return lb_err_set(err, "%.64s: port %u", s->address, s->port_value);
	a.port = (uint16_t)s->port_value;
	if (!addr_set_add(seen, &a)) {
		char text[IP_PORT_TEXT_MAX];
		return lb_err_set(err, "%s is there twice", ip_port_print(&a, text));
	}
	*ret = a;
	return 0;
}

// The string at filter_metadata["envoy.lb"]["hash_key"] (gRFC A76); "" = there is none. Of entries
// with one key the last counts.
static const char *find_hash_key(const Envoy__Config__Core__V3__Metadata *m)
{
	const Google__Protobuf__Struct *at = NULL;
	for (size_t i = 0; m && i < m->n_filter_metadata; i++)
		if (strcmp(m->filter_metadata[i]->key, "envoy.lb") == 0)
			at = m->filter_metadata[i]->value;
	const Google__Protobuf__Value *v = NULL;
	for (size_t i = 0; at && i < at->n_fields; i++)
		if (strcmp(at->fields[i]->key, "hash_key") == 0)
			v = at->fields[i]->value;
	bool is_string = v && v->kind_case == GOOGLE__PROTOBUF__VALUE__KIND_STRING_VALUE;
	return is_string ? v->string_value : "";
}

static int read_more(const InEndpoint *in, struct xds_arena *arena, struct addr_set *seen,
	struct res_endpoint *e, struct lb_err *err)
{
	const char *hash_key = find_hash_key(in->metadata);
	struct str hostname = str_from(in->endpoint->hostname);
	size_t n = in->endpoint->n_additional_addresses;
	if (n == 0 && hostname.len == 0 && !*hash_key)
		return 0;
	// It becomes the :authority of requests (AR-01).
	if (hostname.len && !lb_authority_is_valid(hostname))
		return lb_err_set(err, "hostname: \"%.64s\" is no authority", hostname.p);
	struct res_endpoint_more *more = xds_arena_alloc(arena, 1, sizeof(*more));
	struct ip_port *list = xds_arena_alloc(arena, n, sizeof(*list));
	if (!more || !list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int rc = read_address(
			in->endpoint->additional_addresses[i]->address, seen, &list[i], err);
		if (rc)
			return rc;
	}
	more->additional = list;
	more->n_additional = (uint32_t)n;
	more->hostname = xds_arena_strdup(arena, hostname.p);
	more->hash_key = xds_arena_strdup(arena, hash_key);
	e->more = more;
	return more->hostname && more->hash_key ? 0 : -ENOMEM;
}

static int read_endpoint(const InEndpoint *in, struct xds_arena *arena, struct addr_set *seen,
	struct res_endpoint *e, struct lb_err *err)
{
	if (in->host_identifier_case !=
		ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT)
		return lb_err_set(err, "no endpoint");
	int rc = read_address(in->endpoint->address, seen, &e->addr, err);
	if (rc == 0)
		rc = read_more(in, arena, seen, e, err);
	if (rc)
		return rc;
	e->weight = in->load_balancing_weight ? in->load_balancing_weight->value : 1;
	if (e->weight == 0) // A27-V06
		return lb_err_set(err, "load_balancing_weight: must not be 0");
	bool is_known = (unsigned)in->health_status < RES_HEALTH_OTHER;
	e->health = is_known ? (uint8_t)in->health_status : RES_HEALTH_OTHER;
	return 0;
}

static int read_locality(const InLocality *in, struct xds_arena *arena, struct addr_set *seen,
	struct res_locality *l, struct lb_err *err)
{
	if (!in->locality)
		return lb_err_set(err, "no locality");
	l->region = xds_arena_strdup(arena, in->locality->region);
	l->zone = xds_arena_strdup(arena, in->locality->zone);
	l->sub_zone = xds_arena_strdup(arena, in->locality->sub_zone);
	struct res_endpoint *list = xds_arena_alloc(arena, in->n_lb_endpoints, sizeof(*list));
	if (!l->region || !l->zone || !l->sub_zone || !list)
		return -ENOMEM;
	l->weight = in->load_balancing_weight->value;
	l->endpoints = list;
	l->n_endpoints = (uint32_t)in->n_lb_endpoints;
	uint64_t sum = 0;
	for (size_t i = 0; i < in->n_lb_endpoints; i++) {
		int rc = read_endpoint(in->lb_endpoints[i], arena, seen, &list[i], err);
		if (rc == -EINVAL)
			return lb_err_within(err, "lb_endpoints[%zu]", i);
		if (rc)
			return rc;
		sum += list[i].weight;
	}
	if (sum > UINT32_MAX)
		return lb_err_set(err, "endpoint weights add up to %llu", (unsigned long long)sum);
	return 0;
}

// A locality that counts, and where it came from.
struct kept {
	const InLocality *in;
	size_t index;
};

static int compare_kept(const void *pa, const void *pb)
{
	const struct kept *a = pa, *b = pb;
	if (a->in->priority != b->in->priority)
		return a->in->priority < b->in->priority ? -1 : 1;
	return a->index < b->index ? -1 : 1; // in the order given
}

static int compare_localities(const void *pa, const void *pb)
{
	const struct res_locality *const *a = pa, *const *b = pb;
	int d = strcmp((*a)->region, (*b)->region);
	d = d ? d : strcmp((*a)->zone, (*b)->zone);
	return d ? d : strcmp((*a)->sub_zone, (*b)->sub_zone);
}

// A27-V02, V03. scratch has room for the localities of the priority.
static int check_priority(
	const struct res_priority *p, const struct res_locality **scratch, struct lb_err *err)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < p->n_localities; i++) {
		scratch[i] = &p->localities[i];
		sum += p->localities[i].weight;
	}
	if (sum > UINT32_MAX)
		return lb_err_set(err, "locality weights add up to %llu", (unsigned long long)sum);
	qsort(scratch, p->n_localities, sizeof(const struct res_locality *), compare_localities);
	for (uint32_t i = 1; i < p->n_localities; i++)
		if (compare_localities(&scratch[i - 1], &scratch[i]) == 0)
			return lb_err_set(err, "locality %.64s/%.64s/%.64s is there twice",
				scratch[i]->region, scratch[i]->zone, scratch[i]->sub_zone);
	return 0;
}

// `kept` is sorted by priority. A27-V01.
static int read_priorities(const struct kept *kept, size_t n, struct addr_set *seen,
	struct res_endpoints *r, struct lb_err *err)
{
	struct xds_arena *arena = &r->base.arena;
	struct res_locality *localities = xds_arena_alloc(arena, n, sizeof(*localities));
	struct res_priority *priorities = xds_arena_alloc(arena, n, sizeof(*priorities));
	const struct res_locality **scratch =
		calloc(n ? n : 1, sizeof(const struct res_locality *));
	int rc = localities && priorities && scratch ? 0 : -ENOMEM;
	uint32_t level = 0;
	for (size_t i = 0, first; !rc && i < n; level++) {
		if (kept[i].in->priority != level) {
			rc = lb_err_set(err, "priority %u is missing", level);
			break;
		}
		for (first = i; !rc && i < n && kept[i].in->priority == level; i++) {
			rc = read_locality(kept[i].in, arena, seen, &localities[i], err);
			if (rc == -EINVAL)
				lb_err_within(err, "endpoints[%zu]", kept[i].index);
		}
		priorities[level] = (struct res_priority){
			.localities = &localities[first],
			.n_localities = (uint32_t)(i - first),
		};
		if (!rc)
			rc = check_priority(&priorities[level], scratch, err);
	}
	free(scratch);
	r->priorities = priorities;
	r->n_priorities = level;
	return rc;
}

static int read_localities(const Assignment *m, struct res_endpoints *r, struct lb_err *err)
{
	struct kept *kept = calloc(m->n_endpoints ? m->n_endpoints : 1, sizeof(*kept));
	struct addr_set seen = {0};
	int rc = kept ? addr_set_init(&seen, m) : -ENOMEM;
	size_t n = 0;
	for (size_t i = 0; !rc && i < m->n_endpoints; i++) {
		const InLocality *l = m->endpoints[i];
		if (l->load_balancing_weight && l->load_balancing_weight->value) // CL-05
			kept[n++] = (struct kept){l, i};
	}
	if (!rc) {
		qsort(kept, n, sizeof(*kept), compare_kept);
		rc = read_priorities(kept, n, &seen, r, err);
	}
	free(seen.slots);
	free(kept);
	return rc;
}

// A27-V08; WF-05: above 100 % counts as 100 %.
static int read_drop(
	const InDrop *in, struct xds_arena *arena, struct res_drop *d, struct lb_err *err)
{
	if (!*in->category)
		return lb_err_set(err, "no category");
	if (!in->drop_percentage)
		return lb_err_set(err, "no drop_percentage");
	static const uint32_t SCALE[] = {10000, 100, 1}; // HUNDRED, TEN_THOUSAND, MILLION
	unsigned denominator = (unsigned)in->drop_percentage->denominator;
	if (denominator >= sizeof(SCALE) / sizeof(SCALE[0]))
		return lb_err_set(err, "drop_percentage: denominator %u", denominator);
	uint64_t ppm = (uint64_t)in->drop_percentage->numerator * SCALE[denominator];
	d->per_million = ppm < 1000000 ? (uint32_t)ppm : 1000000;
	d->category = xds_arena_strdup(arena, in->category);
	return d->category ? 0 : -ENOMEM;
}

static int read_drops(const Assignment *m, struct res_endpoints *r, struct lb_err *err)
{
	size_t n = m->policy ? m->policy->n_drop_overloads : 0;
	struct res_drop *drops = xds_arena_alloc(&r->base.arena, n, sizeof(*drops));
	if (!drops)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		int rc = read_drop(m->policy->drop_overloads[i], &r->base.arena, &drops[i], err);
		if (rc == -EINVAL)
			return lb_err_within(err, "policy.drop_overloads[%zu]", i);
		if (rc)
			return rc;
	}
	r->drops = drops;
	r->n_drops = (uint32_t)n;
	return 0;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	Assignment *m =
		proto_unpack(&envoy__config__endpoint__v3__cluster_load_assignment__descriptor,
			bytes, len, &ret->err);
	if (!m) {
		ret->name = res_name_in(bytes, len);
		return;
	}
	ret->name = strdup(m->cluster_name);
	struct xds_res *base =
		!ret->name ? NULL
			   : xds_res_new(&res_type_endpoints, sizeof(struct res_endpoints),
				     m->cluster_name, bytes, len);
	if (base) {
		struct res_endpoints *r = res_endpoints_from(base);
		if (read_localities(m, r, &ret->err) || read_drops(m, r, &ret->err)) {
			xds_res_put(base);
			base = NULL;
		}
	}
	ret->res = base;
	proto_free(m);
}

// The addresses, each once, in the order given.
static uint32_t copy_once(const struct ip_port *from, uint32_t n, struct ip_port *to)
{
	uint32_t n_kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < n_kept && !ip_port_eq(&to[k], &from[i]))
			k++;
		if (k == n_kept)
			to[n_kept++] = from[i];
	}
	return n_kept;
}

static int set_addresses(struct res_endpoints *r, const struct ip_port *list, uint32_t n)
{
	struct {
		struct res_priority priority;
		struct res_locality locality;
		struct res_endpoint endpoint;
		struct res_endpoint_more more;
	} *m = xds_arena_alloc(&r->base.arena, 1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->more = (struct res_endpoint_more){
		.additional = list + 1,
		.n_additional = n - 1,
		.hostname = (const char *)(list + n),
		.hash_key = "",
	};
	m->endpoint = (struct res_endpoint){
		.addr = list[0],
		.weight = 1,
		.more = n > 1 || *m->more.hostname ? &m->more : NULL,
	};
	m->locality = (struct res_locality){"", "", "", 1, &m->endpoint, 1};
	m->priority = (struct res_priority){&m->locality, 1};
	r->priorities = &m->priority;
	r->n_priorities = 1;
	return 0;
}

struct res_endpoints *res_endpoints_of_addresses(
	const char *name, const struct ip_port *addresses, uint32_t n, const char *hostname)
{
	size_t hostname_size = strlen(hostname) + 1;
	uint8_t *bytes = malloc(n * sizeof(*addresses) + hostname_size);
	if (!bytes)
		return NULL;
	n = copy_once(addresses, n, (struct ip_port *)bytes);
	memcpy(bytes + n * sizeof(*addresses), hostname, hostname_size);
	struct xds_res *base = xds_res_new(&res_type_endpoints, sizeof(struct res_endpoints), name,
		bytes, n * sizeof(*addresses) + hostname_size);
	free(bytes);
	if (!base)
		return NULL;
	struct res_endpoints *r = res_endpoints_from(base);
	if (n > 0 && set_addresses(r, (const struct ip_port *)base->bytes, n)) {
		xds_res_put(base);
		return NULL;
	}
	return r;
}

const struct xds_type res_type_endpoints = {
	.url = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	.label = "endpoints",
	.decode = decode,
};
