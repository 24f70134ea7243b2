// SPDX-License-Identifier: Apache-2.0
// An address is found in a hash table whose buckets are one cache line each, 16 slots of 32 bits:
// the address's number, and above it some bits of its hash. What finds its bucket full goes to the
// next.
#include "lb/affinity_map.h"

#include "lb/base/check.h"

#include <stdlib.h>

#define NUMBER_BITS 20
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
#define NONE UINT32_MAX
#define BUCKET_SLOTS 16
#define BUCKET_USED 12 // of them, on average
#define FILTER_USED 4 // addresses a word, on average

// 0 = free, and so are those behind it; else the address's number + 1, and bits of its hash.
struct bucket {
	_Alignas(64) uint32_t slots[BUCKET_SLOTS];
};

struct lb_affinity_index {
	uint32_t n_refs; // ctrl only
	uint32_t n; // endpoints
	uint32_t n_addresses;
	uint32_t n_buckets;
	struct bucket *buckets; // owned
	struct lb_affinity_filter filter; // owned
	struct ip_port *addresses; // owned; [n_addresses], endpoint by endpoint
	uint32_t *first; // owned; [n + 1], each one's first address; NULL = they have one each
	uint32_t *hostnames; // owned; [n], where in texts; NULL = nobody has one
	char *texts; // owned
};

// Where an address is or belongs.
struct place {
	uint32_t bucket;
	uint32_t bits;
};

static struct place place_of(const struct lb_affinity_index *x, uint64_t hash)
{
	return (struct place){
		(uint32_t)((hash >> 32) * x->n_buckets >> 32), (uint32_t)hash & ~NUMBER_MASK};
}

static uint32_t next_bucket(const struct lb_affinity_index *x, uint32_t bucket)
{
	return bucket + 1 < x->n_buckets ? bucket + 1 : 0;
}

// NONE = absent.
static uint32_t search(const struct lb_affinity_index *x, const struct ip_port *a, struct place p)
{
	for (;; p.bucket = next_bucket(x, p.bucket)) {
		const uint32_t *slots = x->buckets[p.bucket].slots;
		for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
			uint32_t number = (slots[i] & NUMBER_MASK) - 1;
			if (slots[i] == 0)
				return NONE;
			if ((slots[i] & ~NUMBER_MASK) == p.bits &&
				ip_port_eq(&x->addresses[number], a))
				return number;
		}
	}
}

static uint32_t number_of(const struct lb_affinity_index *x, const struct ip_port *a)
{
	uint64_t hash = lb_affinity_hash(a);
	return lb_affinity_filter_has(x->filter, hash) ? search(x, a, place_of(x, hash)) : NONE;
}

static void insert(struct lb_affinity_index *x, const struct ip_port *a, uint32_t number)
{
	uint64_t hash = lb_affinity_hash(a);
	struct place p = place_of(x, hash);
	if (search(x, a, p) != NONE)
		return;
	*lb_affinity_filter_word(x->filter, hash) |= lb_affinity_filter_bits(hash);
	for (;; p.bucket = next_bucket(x, p.bucket)) {
		uint32_t *slots = x->buckets[p.bucket].slots;
		for (uint32_t i = 0; i < BUCKET_SLOTS; i++) {
			if (slots[i])
				continue;
			slots[i] = p.bits | (number + 1);
			return;
		}
	}
}

// Whose address it is.
static uint32_t host_of(const struct lb_affinity_index *x, uint32_t number)
{
	if (!x->first)
		return number;
	uint32_t low = 0, high = x->n;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (x->first[middle] <= number)
			low = middle;
		else
			high = middle;
	}
	return low;
}

// What the parts take.
struct sizes {
	size_t addresses, texts;
};

static struct sizes sizes_of(const struct lb_affinity_conf *list, uint32_t n)
{
	struct sizes s = {0, 0};
	for (uint32_t i = 0; i < n; i++) {
		s.addresses += list[i].n_addresses;
		s.texts += list[i].hostname.len ? list[i].hostname.len + 1 : 0;
	}
	return s;
}

static struct lb_affinity_index *allocate(uint32_t n, const struct sizes *s)
{
	if (s->texts >= UINT32_MAX || s->addresses >= UINT32_MAX / 2)
		return NULL;
	struct lb_affinity_index *x = calloc(1, sizeof(*x));
	if (!x)
		return NULL;
	x->n_refs = 1;
	x->n_buckets = (uint32_t)s->addresses / BUCKET_USED + 1;
	x->buckets = aligned_alloc(sizeof(struct bucket), x->n_buckets * sizeof(struct bucket));
	x->addresses = malloc((s->addresses + 1) * sizeof(x->addresses[0]));
	x->filter.n = (uint32_t)s->addresses / FILTER_USED + 1;
	x->filter.words = calloc(x->filter.n, sizeof(x->filter.words[0]));
	bool is_complete = x->buckets && x->addresses && x->filter.words;
	if (x->buckets)
		memset(x->buckets, 0, x->n_buckets * sizeof(struct bucket));
	if (s->addresses > n) {
		x->first = malloc(((size_t)n + 1) * sizeof(x->first[0]));
		is_complete &= x->first != NULL;
	}
	if (s->texts) {
		x->hostnames = malloc((size_t)n * sizeof(x->hostnames[0]));
		x->texts = calloc(1, s->texts + 1);
		is_complete &= x->hostnames && x->texts;
	}
	if (is_complete)
		return x;
	lb_affinity_index_put(x);
	return NULL;
}

static void add(struct lb_affinity_index *x, const struct lb_affinity_conf *c)
{
	for (uint32_t i = 0; i < c->n_addresses; i++) {
		uint32_t number = x->n_addresses++;
		x->addresses[number] = c->addresses[i];
		// An address beyond what slots can say binds nobody.
		if (number < NUMBER_MASK)
			insert(x, &c->addresses[i], number);
	}
	x->n++;
	if (x->first)
		x->first[x->n] = x->n_addresses;
}

struct lb_affinity_index *lb_affinity_index_new(const struct lb_affinity_conf *list, uint32_t n)
{
	struct sizes sizes = sizes_of(list, n);
	struct lb_affinity_index *x = allocate(n, &sizes);
	if (!x)
		return NULL;
	if (x->first)
		x->first[0] = 0;
	uint32_t at = 1; // texts begin with a ""
	for (uint32_t i = 0; i < n; i++) {
		add(x, &list[i]);
		struct str name = list[i].hostname;
		if (x->hostnames)
			x->hostnames[i] = name.len ? at : 0;
		if (name.len == 0)
			continue;
		memcpy(x->texts + at, name.p, name.len);
		at += (uint32_t)name.len + 1;
	}
	return x;
}

struct lb_affinity_index *lb_affinity_index_get(struct lb_affinity_index *x)
{
	x->n_refs++;
	return x;
}

void lb_affinity_index_put(struct lb_affinity_index *x)
{
	if (!x)
		return;
	CHECK(x->n_refs > 0);
	if (--x->n_refs)
		return;
	free(x->buckets);
	free(x->filter.words);
	free(x->addresses);
	free(x->first);
	free(x->hostnames);
	free(x->texts);
	free(x);
}

uint32_t lb_affinity_index_find(const struct lb_affinity_index *x, const struct ip_port *a)
{
	uint32_t number = number_of(x, a);
	return number == NONE ? UINT32_MAX : host_of(x, number);
}

static struct str hostname_of(const struct lb_affinity_index *x, uint32_t host)
{
	return x->hostnames ? str_from(x->texts + x->hostnames[host]) : STR("");
}

bool lb_affinity_index_is_of(
	const struct lb_affinity_index *x, const struct lb_affinity_conf *list, uint32_t n)
{
	if (x->n != n)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t first = x->first ? x->first[i] : i;
		uint32_t end = x->first ? x->first[i + 1] : i + 1;
		if (end - first != list[i].n_addresses ||
			!str_eq(hostname_of(x, i), list[i].hostname))
			return false;
		for (uint32_t k = first; k < end; k++)
			if (!ip_port_eq(&x->addresses[k], &list[i].addresses[k - first]))
				return false;
	}
	return true;
}

struct lb_affinity_map *lb_affinity_map_new(
	struct lb_affinity_index *x, const struct lb_cells *cells)
{
	DCHECK(cells->n == x->n);
	struct lb_affinity_map *m = malloc(sizeof(*m));
	if (m)
		*m = (struct lb_affinity_map){
			1, x->filter, lb_affinity_index_get(x), lb_cells_share(cells)};
	return m;
}

struct lb_affinity_map *lb_affinity_map_get(struct lb_affinity_map *m)
{
	m->n_refs++;
	return m;
}

void lb_affinity_map_put(struct lb_affinity_map *m)
{
	if (!m)
		return;
	CHECK(m->n_refs > 0);
	if (--m->n_refs)
		return;
	lb_affinity_index_put(m->index);
	lb_cells_fini(&m->cells);
	free(m);
}

static void describe(const struct lb_affinity_map *m, uint32_t number, struct lb_affinity_host *ret)
{
	const struct lb_affinity_index *x = m->index;
	uint32_t host = host_of(x, number);
	uint32_t first = x->first ? x->first[host] : host;
	const struct lb_cell *state = lb_cells_at(&m->cells, host);
	*ret = (struct lb_affinity_host){
		.state = state,
		.hostname = hostname_of(x, host),
		.addresses = &x->addresses[first],
		.n_addresses = x->first ? x->first[host + 1] - first : 1,
		.address = number - first,
		.member = state->member,
		.is_target = state->is_target,
	};
}

bool lb_affinity_map_find(
	const struct lb_affinity_map *m, const struct ip_port *a, struct lb_affinity_host *ret)
{
	uint32_t number = m ? number_of(m->index, a) : NONE;
	if (number == NONE)
		return false;
	describe(m, number, ret);
	return true;
}

size_t lb_affinity_print(const struct lb_affinity_host *h, char *out, size_t room)
{
	size_t len = 0;
	for (uint32_t i = 0; i < h->n_addresses; i++) {
		char text[IP_PORT_TEXT_MAX];
		uint32_t at = i == 0 ? h->address : i <= h->address ? i - 1 : i;
		size_t part = strlen(ip_port_print(&h->addresses[at], text));
		if (room - len < part + 1)
			return 0;
		if (i)
			out[len++] = ',';
		memcpy(out + len, text, part);
		len += part;
	}
	return len;
}

static struct lb_affinity_pick bind(
	const struct lb_affinity_map *m, enum lb_affinity_kind kind, uint32_t number)
{
	struct lb_affinity_pick p = {.kind = kind};
	struct lb_affinity_host *h = &p.host;
	describe(m, number, h);
	// The address in use, whichever of its addresses the cookie has.
	for (uint32_t i = 0; kind == LB_AFFINITY_USE && i < h->n_addresses; i++)
		if (ip_port_eq(&h->addresses[i], &h->state->endpoint->addr))
			h->address = i;
	return p;
}

// The first that is READY, or else IDLE, or else CONNECTING, or else without a connection (O05 to
// O08).
struct lb_affinity_pick lb_affinity_map_pick_known(
	const struct lb_affinity_map *m, const struct ip_port *addresses, uint32_t n)
{
	uint32_t idle = NONE, none = NONE;
	bool is_connecting = false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t number = number_of(m->index, &addresses[i]);
		const struct lb_cell *c =
			number == NONE ? NULL : lb_cells_at(&m->cells, host_of(m->index, number));
		if (c && c->is_target && !c->is_barred) {
			if (!c->has_connection) {
				none = none == NONE ? number : none;
			} else if (c->state == LB_READY) {
				return bind(m, LB_AFFINITY_USE, number);
			} else if (c->state == LB_IDLE) {
				idle = idle == NONE ? number : idle;
			}
			is_connecting |= c->has_connection && c->state == LB_CONNECTING;
		}
	}
	if (idle != NONE)
		return bind(m, LB_AFFINITY_WISH, idle);
	if (is_connecting)
		return (struct lb_affinity_pick){.kind = LB_AFFINITY_QUEUE};
	if (none != NONE)
		return bind(m, LB_AFFINITY_WISH, none);
	return (struct lb_affinity_pick){.kind = LB_AFFINITY_CHILD};
}
