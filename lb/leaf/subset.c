// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/subset.h"

#include "lb/index/hash.h"
#include "lb/pick/leaf_endpoints.h"
#include "lb/policy/policy_spec.h"

#include <errno.h>
#include <stdlib.h>

struct chooser {
	const struct lb_leaf_endpoints *endpoints;
	uint8_t *is_out; // [endpoints->n]
	uint64_t *hashes; // [endpoints->n], of all endpoints
	uint64_t *list; // [endpoints->n], of those that are chosen among
};

uint32_t lb_subset_of_priority(const struct lb_policy_spec *spec)
{
	return spec->subset_size;
}

// Whatever is below wrr_locality sees one locality.
uint32_t lb_subset_of_locality(const struct lb_policy_spec *spec)
{
	uint32_t least = 0;
	for (spec = spec->child; spec; spec = spec->child)
		if (spec->subset_size && (!least || spec->subset_size < least))
			least = spec->subset_size;
	return least;
}

// As bytes, not as the text that gRPC hashes: any uniform hash will do, and texts take ten times as
// long (A68-02).
static uint64_t hash_of(const struct lb_leaf_endpoints *e, uint32_t i, uint64_t seed)
{
	uint32_t n;
	const struct ip_port *first = lb_leaf_endpoints_addresses(e, i, &n);
	_Static_assert(sizeof(*first) == sizeof(first->ip) + sizeof(first->port), "has no padding");
	return lb_xxh64_seeded(seed, first, sizeof(*first));
}

// The k-th least of n, 1 <= k <= n, byte by byte from the top: where many of many are taken, too,
// it takes eight steps for each. *ret_equal: how many of those that are equal to it belong to the
// first k.
static uint64_t find_kth(const uint64_t *list, uint32_t n, uint32_t k, uint32_t *ret_equal)
{
	uint64_t top = 0;
	for (int shift = 56; shift >= 0; shift -= 8) {
		uint32_t counts[256] = {0}, byte = 0;
		for (uint32_t i = 0; i < n; i++)
			if (list[i] >> shift >> 8 == top)
				counts[list[i] >> shift & 255]++;
		while (k > counts[byte])
			k -= counts[byte++];
		top = top << 8 | byte;
	}
	*ret_equal = k;
	return top;
}

// Among the serving endpoints of these spans that are not left out yet.
static void choose(
	const struct chooser *c, const struct lb_leaf_span *spans, uint32_t n_spans, uint32_t size)
{
	uint32_t n = 0, n_equal;
	for (uint32_t i = 0; i < n_spans; i++)
		for (uint32_t k = spans[i].first; k < spans[i].first + spans[i].n_serving; k++)
			if (!c->is_out[k])
				c->list[n++] = c->hashes[k];
	if (!size || n <= size) // A68-03
		return;
	uint64_t last = find_kth(c->list, n, size, &n_equal);
	for (uint32_t i = 0; i < n_spans; i++) {
		for (uint32_t k = spans[i].first; k < spans[i].first + spans[i].n_serving; k++) {
			bool is_last = !c->is_out[k] && c->hashes[k] == last && n_equal;
			n_equal -= is_last;
			c->is_out[k] |= c->hashes[k] >= last && !is_last;
		}
	}
}

static void choose_all(const struct chooser *c, const struct lb_policy_spec *spec)
{
	const struct lb_leaf_endpoints *e = c->endpoints;
	const uint32_t *ends = lb_leaf_endpoints_ends(e);
	for (uint32_t i = 0, from = 0; i < e->n_priorities; from = ends[i++])
		choose(c, e->spans + from, ends[i] - from, lb_subset_of_priority(spec));
	for (uint32_t i = 0; i < e->n_spans; i++)
		choose(c, e->spans + i, 1, lb_subset_of_locality(spec));
}

int lb_subset_choose(const struct lb_leaf_endpoints *e, const struct lb_policy_spec *spec,
	uint64_t seed, uint8_t **ret)
{
	*ret = NULL;
	if (!lb_subset_of_priority(spec) && !lb_subset_of_locality(spec))
		return 0;
	uint64_t *hashes = malloc((e->n + (size_t)1) * 2 * sizeof(*hashes));
	uint8_t *is_out = calloc(e->n + (size_t)1, 1);
	if (!hashes || !is_out) {
		free(hashes);
		free(is_out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < e->n; i++)
		hashes[i] = hash_of(e, i, seed);
	const struct chooser c = {e, is_out, hashes, hashes + e->n};
	choose_all(&c, spec);
	free(hashes);
	*ret = is_out;
	return 0;
}
