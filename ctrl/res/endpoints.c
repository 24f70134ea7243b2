// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/endpoints.h"

#include "ctrl/res/address.h"
#include "ctrl/res/common.h"
#include "ctrl/res/endpoints_wire.h"
#include "lb/index/hash.h"
#include "lb/route/domains.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ADDRESSES 64 // of one endpoint

// A locality that counts, and where it came from.
struct kept {
	struct eds_locality in;
	size_t index;
	uint32_t place; // among those kept, by priority
};

struct reader {
	struct kept *kept; // owned, as all lists here; in the order given
	size_t n_kept, kept_room;
	struct eds_drop *drops;
	size_t n_drops, drops_room;
	struct eds_address *additional; // room for those of one endpoint
	size_t additional_room;
	size_t n_localities; // the skipped ones, too
	size_t n_endpoints, n_addresses; // of those kept
	// What the list of endpoints is made of: in the scratch arena.
	struct lb_leaf_priority *priorities;
	size_t n_priorities;
	struct lb_leaf_locality *localities; // [n_kept]
	struct lb_arena scratch;
	struct lb_leaf_endpoint *endpoints; // owned; [n_endpoints], locality by locality
	struct ip_port *addresses; // owned; [n_endpoints], each one's first
	struct res_endpoints *r;
	struct lb_err *err;
};

// The list with room for `need`, NULL = out of memory (and it is as before).
static void *grow(void *list, size_t *room, size_t need, size_t size)
{
	size_t more = *room ? 2 * *room : 8;
	more = more < need ? need : more;
	void *grown = realloc(list, more * size); // a multiple of bytes that are in memory
	if (grown)
		*room = more;
	return grown;
}

// Hashes seen so far, by half of each to stay in the cache: open addressing, sized once. Whoever
// finds one there compares.
struct seen {
	uint32_t *slots; // 0 = free
	size_t mask;
};

static int seen_init(struct seen *s, size_t n)
{
	size_t size = 16;
	while (size < 2 * n)
		size *= 2;
	s->slots = calloc(size, sizeof(*s->slots));
	s->mask = size - 1;
	return s->slots ? 0 : -ENOMEM;
}

// True = it is new.
static bool seen_add(struct seen *s, uint64_t hash)
{
	uint32_t half = (uint32_t)(hash >> 32) | 1;
	size_t at = hash & s->mask;
	for (; s->slots[at]; at = (at + 1) & s->mask)
		if (s->slots[at] == half)
			return false;
	s->slots[at] = half;
	return true;
}

// All addresses of an endpoint that has several.
static int read_additional(
	struct reader *rd, struct str bytes, size_t n, struct lb_leaf_endpoint *e)
{
	struct ip_port *list = lb_arena_alloc(&rd->scratch, n + 1, sizeof(*list));
	if (n > rd->additional_room) {
		void *more = grow(rd->additional, &rd->additional_room, n, sizeof(*rd->additional));
		if (!more)
			return -ENOMEM;
		rd->additional = more;
	}
	if (!list)
		return -ENOMEM;
	struct eds_endpoint again;
	int rc = eds_read_endpoint(bytes, &again, rd->additional, rd->additional_room, rd->err);
	list[0] = e->addresses[0];
	for (size_t i = 0; !rc && i < n; i++) {
		rc = res_address_read(&rd->additional[i], &list[i + 1], rd->err);
		if (rc)
			lb_err_within(rd->err, "endpoint.additional_addresses[%zu]", i);
	}
	e->addresses = list;
	e->n_addresses = (uint32_t)n + 1;
	rd->n_addresses += n;
	return rc;
}

static int read_endpoint(
	struct reader *rd, struct str bytes, struct ip_port *address, struct lb_leaf_endpoint *e)
{
	struct eds_endpoint in;
	int rc = eds_read_endpoint(bytes, &in, NULL, 0, rd->err);
	if (rc)
		return rc;
	if (!in.is_endpoint)
		return lb_err_set(rd->err, "no endpoint");
	if (in.n_additional >= MAX_ADDRESSES)
		return lb_err_set(rd->err, "endpoint.additional_addresses: more than %d addresses",
			MAX_ADDRESSES);
	if (res_address_read(&in.address, address, rd->err))
		return lb_err_within(rd->err, "endpoint.address");
	rd->n_addresses++;
	bool is_known = (uint32_t)in.health < LB_LEAF_OTHER;
	*e = (struct lb_leaf_endpoint){.addresses = address,
		.n_addresses = 1,
		.weight = in.has_weight ? in.weight : 1,
		.health = is_known ? (enum lb_leaf_health)in.health : LB_LEAF_OTHER,
		.hostname = in.hostname,
		.hash_key = in.hash_key};
	if (e->weight == 0) // A27-V06
		return lb_err_set(rd->err, "load_balancing_weight: must not be 0");
	// It becomes the :authority of requests (AR-01).
	if (in.hostname.len && !lb_authority_is_valid(in.hostname))
		return lb_err_set(rd->err, "endpoint.hostname: \"%.*s\" is not an authority",
			in.hostname.len < 64 ? (int)in.hostname.len : 64, in.hostname.p);
	if (res_address_read_proxy(&in.proxy, &e->proxy, rd->err))
		return -EINVAL;
	return in.n_additional ? read_additional(rd, bytes, in.n_additional, e) : 0;
}

static void add_name_part(char **to, struct str part)
{
	for (size_t i = 0; i < part.len; i++) {
		if (part.p[i] == '/' || part.p[i] == '\\')
			*(*to)++ = '\\';
		*(*to)++ = part.p[i];
	}
}

// Slashes of its parts are escaped, so that no two localities have the same name.
static int name_locality(struct reader *rd, const struct eds_locality *l, struct str *ret)
{
	char *text = lb_arena_alloc(
		&rd->scratch, 1, 2 * (l->region.len + l->zone.len + l->sub_zone.len) + 2);
	if (!text)
		return -ENOMEM;
	char *end = text;
	add_name_part(&end, l->region);
	*end++ = '/';
	add_name_part(&end, l->zone);
	*end++ = '/';
	add_name_part(&end, l->sub_zone);
	*ret = (struct str){text, (size_t)(end - text)};
	return 0;
}

struct res_locality res_locality_of(struct str name, char *buf)
{
	const char *parts[3] = {buf};
	uint32_t n = 1;
	for (size_t i = 0; i < name.len; i++) {
		bool is_end = name.p[i] == '/' && n < 3;
		if (name.p[i] == '\\' && i + 1 < name.len)
			i++;
		*buf++ = name.p[i];
		if (is_end) {
			buf[-1] = '\0';
			parts[n++] = buf;
		}
	}
	*buf = '\0';
	while (n < 3)
		parts[n++] = buf;
	return (struct res_locality){parts[0], parts[1], parts[2]};
}

static int begin_locality(struct reader *rd, const struct kept *k)
{
	const struct eds_locality *in = &k->in;
	struct lb_leaf_locality *l = &rd->localities[k->place];
	if (name_locality(rd, in, &l->name))
		return -ENOMEM;
	l->weight = in->weight;
	l->n_endpoints = (uint32_t)in->n_endpoints;
	return 0;
}

// The lists have room for its endpoints.
static int read_locality(struct reader *rd, const struct kept *k, struct lb_leaf_endpoint *list,
	struct ip_port *addresses)
{
	const struct eds_locality *in = &k->in;
	if (!in->is_named)
		return lb_err_set(rd->err, "no locality");
	if (begin_locality(rd, k))
		return -ENOMEM;
	struct ip_port proxy;
	if (res_address_read_proxy(&in->proxy, &proxy, rd->err))
		return -EINVAL;
	rd->localities[k->place].endpoints = list;
	uint64_t sum = 0;
	struct str at = in->bytes, bytes;
	for (size_t i = 0; eds_next_endpoint(&at, &bytes); i++) {
		int rc = read_endpoint(rd, bytes, &addresses[i], &list[i]);
		if (rc == -EINVAL)
			return lb_err_within(rd->err, "lb_endpoints[%zu]", i);
		if (rc)
			return rc;
		if (!list[i].proxy.port)
			list[i].proxy = proxy; // HC-04
		sum += list[i].weight;
	}
	if (sum > UINT32_MAX) // A27-V06
		return lb_err_set(
			rd->err, "endpoint weights add up to %llu", (unsigned long long)sum);
	return 0;
}

// Gives each locality kept its place in its priority, in the order given, and counts priorities.
// A27-V01: none below another is without localities.
static int place_localities(struct reader *rd)
{
	size_t n = rd->n_kept, n_levels = 0;
	for (size_t i = 0; i < n; i++)
		if (rd->kept[i].in.priority >= n_levels)
			n_levels = (size_t)rd->kept[i].in.priority + 1;
	n_levels = n_levels < n ? n_levels : n; // more would have gaps
	rd->localities = lb_arena_alloc(&rd->scratch, n, sizeof(*rd->localities));
	rd->priorities = lb_arena_alloc(&rd->scratch, n_levels, sizeof(*rd->priorities));
	if (!rd->localities || !rd->priorities)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (rd->kept[i].in.priority < n_levels)
			rd->priorities[rd->kept[i].in.priority].n_localities++;
	uint32_t level = 0, next = 0;
	for (; level < n_levels && rd->priorities[level].n_localities; level++) {
		rd->priorities[level].localities = &rd->localities[next];
		next += rd->priorities[level].n_localities;
		rd->priorities[level].n_localities = 0;
	}
	if (next != n)
		return lb_err_set(rd->err, "priority %u is missing", level);
	for (size_t i = 0; i < n; i++) {
		struct lb_leaf_priority *p = &rd->priorities[rd->kept[i].in.priority];
		rd->kept[i].place = (uint32_t)(p->localities - rd->localities) + p->n_localities++;
	}
	rd->n_priorities = level;
	return 0;
}

// A27-V03.
static int check_weights(const struct reader *rd)
{
	for (size_t i = 0; i < rd->n_priorities; i++) {
		uint64_t sum = 0;
		for (uint32_t k = 0; k < rd->priorities[i].n_localities; k++)
			sum += rd->priorities[i].localities[k].weight;
		if (sum > UINT32_MAX)
			return lb_err_set(rd->err, "priority %zu: locality weights add up to %llu",
				i, (unsigned long long)sum);
	}
	return 0;
}

static uint64_t hash_locality(const struct eds_locality *l)
{
	const uint64_t parts[] = {l->priority, lb_hash(l->region.p, l->region.len),
		lb_hash(l->zone.p, l->zone.len), lb_hash(l->sub_zone.p, l->sub_zone.len)};
	return lb_hash(parts, sizeof(parts));
}

static bool is_same_locality(const struct eds_locality *a, const struct eds_locality *b)
{
	return a->priority == b->priority && str_eq(a->region, b->region) &&
	       str_eq(a->zone, b->zone) && str_eq(a->sub_zone, b->sub_zone);
}

// So many bytes of it are told.
static int shown(struct str s)
{
	return s.len < 64 ? (int)s.len : 64;
}

// A27-V02.
static int check_localities(const struct reader *rd)
{
	struct seen seen;
	if (seen_init(&seen, rd->n_kept))
		return -ENOMEM;
	int rc = 0;
	for (size_t i = 0; !rc && i < rd->n_kept; i++) {
		const struct kept *k = &rd->kept[i];
		size_t before = seen_add(&seen, hash_locality(&k->in)) ? i : 0;
		while (before < i && !is_same_locality(&rd->kept[before].in, &k->in))
			before++;
		if (before < i)
			rc = lb_err_set(rd->err,
				"endpoints[%zu]: locality %.*s/%.*s/%.*s is a duplicate", k->index,
				shown(k->in.region), k->in.region.p, shown(k->in.zone),
				k->in.zone.p, shown(k->in.sub_zone), k->in.sub_zone.p);
	}
	free(seen.slots);
	return rc;
}

// A27-V04, A55-V07: on endpoints of any health. Says where the address is for the second time.
static int refuse_twice(const struct reader *rd, const struct ip_port *a)
{
	bool is_second = false;
	char text[IP_PORT_TEXT_MAX];
	for (size_t i = 0; i < rd->n_kept; i++) {
		const struct lb_leaf_locality *l = &rd->localities[rd->kept[i].place];
		for (uint32_t k = 0; k < l->n_endpoints; k++) {
			const struct lb_leaf_endpoint *e = &l->endpoints[k];
			for (uint32_t j = 0; j < e->n_addresses; j++) {
				if (!ip_port_eq(&e->addresses[j], a))
					continue;
				if (is_second)
					return lb_err_set(rd->err,
						"endpoints[%zu]: lb_endpoints[%u]: %s is a "
						"duplicate",
						rd->kept[i].index, k, ip_port_print(a, text));
				is_second = true;
			}
		}
	}
	return lb_err_set(rd->err, "%s is a duplicate", ip_port_print(a, text));
}

static int build_list(struct reader *rd)
{
	const struct ip_port *second;
	if (rd->n_addresses > LB_ADDRESS_INDEX_MAX)
		return lb_err_set(rd->err, "more than %u addresses", LB_ADDRESS_INDEX_MAX);
	rd->r->list = lb_leaf_endpoints_new(rd->priorities, (uint32_t)rd->n_priorities, &second);
	if (!rd->r->list)
		return -ENOMEM;
	return second ? refuse_twice(rd, second) : 0;
}

static int read_localities(struct reader *rd)
{
	size_t at = 0;
	rd->endpoints = malloc((rd->n_endpoints + 1) * sizeof(*rd->endpoints));
	rd->addresses = malloc((rd->n_endpoints + 1) * sizeof(*rd->addresses));
	int rc = rd->endpoints && rd->addresses ? place_localities(rd) : -ENOMEM;
	for (size_t i = 0; !rc && i < rd->n_kept; i++) {
		rc = read_locality(rd, &rd->kept[i], rd->endpoints + at, rd->addresses + at);
		if (rc == -EINVAL)
			lb_err_within(rd->err, "endpoints[%zu]", rd->kept[i].index);
		at += rd->kept[i].in.n_endpoints;
	}
	if (!rc)
		rc = check_weights(rd);
	if (!rc)
		rc = check_localities(rd);
	return rc ? rc : build_list(rd);
}

// A27-V08; WF-05: above 100 % counts as 100 %.
static int read_drop(struct reader *rd, const struct eds_drop *in, struct res_drop *d)
{
	static const uint32_t SCALE[] = {10000, 100, 1}; // HUNDRED, TEN_THOUSAND, MILLION
	if (in->category.len == 0)
		return lb_err_set(rd->err, "no category");
	if (!in->has_percentage)
		return lb_err_set(rd->err, "no drop_percentage");
	if ((uint32_t)in->denominator >= sizeof(SCALE) / sizeof(SCALE[0]))
		return lb_err_set(rd->err, "drop_percentage: denominator %d", in->denominator);
	uint64_t ppm = (uint64_t)in->numerator * SCALE[in->denominator];
	struct str copy;
	if (!lb_arena_copy(&rd->r->base.arena, in->category, &copy))
		return -ENOMEM;
	d->per_million = ppm < 1000000 ? (uint32_t)ppm : 1000000;
	d->category = copy.p;
	return 0;
}

static int read_drops(struct reader *rd)
{
	if (rd->n_drops == 0)
		return 0;
	struct res_drop *drops = lb_arena_alloc(&rd->r->base.arena, rd->n_drops, sizeof(*drops));
	if (!drops)
		return -ENOMEM;
	for (size_t i = 0; i < rd->n_drops; i++) {
		int rc = read_drop(rd, &rd->drops[i], &drops[i]);
		if (rc == -EINVAL)
			return lb_err_within(rd->err, "policy.drop_overloads[%zu]", i);
		if (rc)
			return rc;
	}
	rd->r->drops = drops;
	rd->r->n_drops = (uint32_t)rd->n_drops;
	return 0;
}

// What is skipped must still be protobuf.
static int skip_endpoints(const struct eds_locality *l, struct lb_err *err)
{
	struct str at = l->bytes, bytes;
	struct eds_endpoint ignored;
	for (size_t i = 0; eds_next_endpoint(&at, &bytes); i++)
		if (eds_read_endpoint(bytes, &ignored, NULL, 0, err))
			return lb_err_within(err, "lb_endpoints[%zu]", i);
	return 0;
}

static int on_locality(void *ctx, struct str bytes, struct lb_err *err)
{
	struct reader *rd = ctx;
	struct kept k = {.index = rd->n_localities++};
	int rc = eds_read_locality(bytes, &k.in, err);
	if (rc)
		return rc;
	if (k.in.weight == 0) // CL-05
		return skip_endpoints(&k.in, err);
	if (rd->n_kept == rd->kept_room) {
		void *grown = grow(rd->kept, &rd->kept_room, 0, sizeof(*rd->kept));
		if (!grown)
			return -ENOMEM;
		rd->kept = grown;
	}
	rd->kept[rd->n_kept++] = k;
	rd->n_endpoints += k.in.n_endpoints;
	return 0;
}

static int on_drop(void *ctx, const struct eds_drop *d, struct lb_err *err)
{
	struct reader *rd = ctx;
	if (rd->n_drops == rd->drops_room) {
		void *grown = grow(rd->drops, &rd->drops_room, 0, sizeof(*rd->drops));
		if (!grown)
			return -ENOMEM;
		rd->drops = grown;
	}
	rd->drops[rd->n_drops++] = *d;
	return 0;
}

static void decode(const uint8_t *bytes, size_t len, struct xds_decoded *ret)
{
	struct reader rd = {.err = &ret->err};
	const struct eds_sink sink = {on_locality, on_drop, &rd};
	struct str name;
	int rc = eds_read((struct str){(const char *)bytes, len}, &sink, &name, rd.err);
	ret->name = rc ? res_name_in(bytes, len) : strndup(name.p, name.len);
	struct xds_res *base =
		rc || !ret->name ? NULL
				 : xds_res_new(&res_type_endpoints, sizeof(struct res_endpoints),
					   ret->name, bytes, len);
	if (base) {
		rd.r = res_endpoints_from(base);
		if (read_localities(&rd) || read_drops(&rd)) {
			xds_res_put(base);
			base = NULL;
		}
	}
	ret->res = base;
	free(rd.kept);
	free(rd.drops);
	free(rd.additional);
	free(rd.endpoints);
	free(rd.addresses);
	lb_arena_fini(&rd.scratch);
}

static void release(struct xds_res *base)
{
	lb_leaf_endpoints_put(res_endpoints_from(base)->list);
}

const struct xds_type res_type_endpoints = {
	.url = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
	.label = "endpoints",
	.decode = decode,
	.release = release,
};
