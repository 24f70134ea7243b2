// SPDX-License-Identifier: Apache-2.0
// The candidates of a path wait in a heap, ordered by route number: one for each list that the path
// selects, its next taking its place. A regex set waits with its smallest route; only when that is
// the smallest number left it is scanned, and its hits take its place: a match found before never
// pays for it, and no set runs twice. How many can wait at once is known when the virtual host is
// built (vhost.c), so the heap never overflows, however prefixes nest.
#include "lb/base/check.h"
#include "lb/index/radix.h"
#include "lb/index/string_index.h"
#include "lb/route/req.h"
#include "lb/route/vhost.h"

#define CANDIDATE UINT32_MAX // in place of a set's number

// What a path leads to; NULL = nothing.
struct selected {
	const struct lb_vhost_exact *exact, *exact_fold;
	const struct lb_vhost_prefix *prefix, *prefix_fold;
};

struct search {
	const struct lb_vhost *vhost;
	struct str path; // query and fragment cut
	struct lb_header_view view;
	struct lb_route_ctx *ctx;
};

struct heap {
	uint64_t *list; // route << 32 | set, or CANDIDATE
	uint32_t n, room;
};

static uint64_t entry(uint32_t route, uint32_t set)
{
	return (uint64_t)route << 32 | set;
}

static void sink(struct heap *h, uint64_t x)
{
	uint32_t i = 0;
	for (;;) {
		uint32_t child = 2 * i + 1;
		if (child >= h->n)
			break;
		child += child + 1 < h->n && h->list[child + 1] < h->list[child];
		if (h->list[child] >= x)
			break;
		h->list[i] = h->list[child];
		i = child;
	}
	h->list[i] = x;
}

static void push(struct heap *h, uint64_t x)
{
	DCHECK(h->n < h->room);
	uint32_t i = h->n++;
	for (; i > 0 && h->list[(i - 1) / 2] > x; i = (i - 1) / 2)
		h->list[i] = h->list[(i - 1) / 2];
	h->list[i] = x;
}

static void drop_top(struct heap *h)
{
	if (--h->n)
		sink(h, h->list[h->n]);
}

static void push_route(struct heap *h, uint32_t route)
{
	if (route != LB_VHOST_NONE)
		push(h, entry(route, CANDIDATE));
}

static void push_prefixes(struct heap *h, const struct lb_vhost *v, const struct lb_radix *tree,
	const struct lb_vhost_prefix *x)
{
	for (; x; x = lb_radix_up(tree, x)) {
		push_route(h, x->first);
		if (tree != v->prefix || v->n_sets == 0)
			continue;
		for (uint32_t s = x->sets; s != LB_VHOST_NONE; s = v->sets[s].next)
			push(h, entry(v->sets[s].smallest, s));
	}
}

static enum lb_route_verdict judge(struct search *s, uint32_t route, uint32_t *ret_header)
{
	uint32_t i = s->vhost->routes[route].criteria;
	if (i == LB_VHOST_NONE)
		return LB_VERDICT_MATCH;
	const struct lb_vhost_criteria *c = &s->vhost->criteria[i];
	for (uint32_t k = 0; k < c->n_matchers; k++) {
		if (lb_header_view_match(&s->view, c->matchers + k))
			continue;
		*ret_header = k;
		return LB_VERDICT_HEADER;
	}
	if (c->grpc_only && !s->view.req->is_grpc)
		return LB_VERDICT_NOT_GRPC;
	// Last, and a draw for each route (A28-O04); `<`, so that 0 is never (A28-O03).
	if (c->ppm < LB_PPM_ALWAYS && rand_below(s->ctx->rand, LB_PPM_ALWAYS) >= c->ppm)
		return LB_VERDICT_FRACTION;
	return LB_VERDICT_MATCH;
}

static bool takes(struct search *s, uint32_t route)
{
	uint32_t header = 0;
	enum lb_route_verdict verdict = judge(s, route, &header);
	if (s->ctx->trace)
		s->ctx->trace(s->ctx->trace_ctx, &(struct lb_route_step){route, verdict, header});
	return verdict == LB_VERDICT_MATCH;
}

static void scan(struct search *s, struct heap *h, const struct lb_vhost_set *set)
{
	uint64_t hits = lb_regex_set_match(set->set, s->view.regex, s->view.thread, s->path);
	for (hits &= set->used; hits; hits &= hits - 1)
		push_route(h, set->first[__builtin_ctzll(hits)]);
}

static uint32_t merge(const struct lb_vhost *v, const struct lb_vhost_query *q, struct str path,
	const struct selected *from)
{
	q->table_scratch->generation++;
	struct search s = {.vhost = v,
		.path = path,
		.view = {.matchers = v->matchers,
			.req = q->req,
			.hides_transport = q->hides_transport,
			.table_scratch = q->table_scratch,
			.text = q->text,
			.regex = q->regex,
			.thread = q->thread},
		.ctx = q->ctx};
	struct heap h = {.list = q->table_scratch->candidates, .room = v->needs.n_candidates};
	if (from->exact)
		push_route(&h, from->exact->first);
	if (from->exact_fold)
		push_route(&h, from->exact_fold->first);
	push_prefixes(&h, v, v->prefix, from->prefix);
	push_prefixes(&h, v, v->prefix_fold, from->prefix_fold);
	while (h.n) {
		uint32_t route = (uint32_t)(h.list[0] >> 32), set = (uint32_t)h.list[0];
		if (set != CANDIDATE) {
			drop_top(&h);
			scan(&s, &h, &v->sets[set]);
			continue;
		}
		if (takes(&s, route))
			return route;
		uint32_t next = v->routes[route].next;
		if (next == LB_VHOST_NONE)
			drop_top(&h);
		else
			sink(&h, entry(next, CANDIDATE));
	}
	return LB_VHOST_NONE;
}

// Not 0 if a byte of x is.
static uint64_t zero_bytes(uint64_t x)
{
	const uint64_t ones = 0x0101010101010101;
	return (x - ones) & ~x & (ones << 7);
}

// The query and the fragment take no part in matching (A28-P06).
static struct str cut(struct str path)
{
	const uint64_t ones = 0x0101010101010101;
	if (path.len >= 8) {
		uint64_t found = 0, word;
		for (size_t i = 0; i + 8 < path.len; i += 8) {
			memcpy(&word, path.p + i, sizeof(word));
			found |= zero_bytes(word ^ ones * '?') | zero_bytes(word ^ ones * '#');
		}
		memcpy(&word, path.p + path.len - 8, sizeof(word)); // the rest, and some again
		found |= zero_bytes(word ^ ones * '?') | zero_bytes(word ^ ones * '#');
		if (!found)
			return path;
	}
	size_t len = 0;
	while (len < path.len && path.p[len] != '?' && path.p[len] != '#')
		len++;
	return (struct str){path.p, len};
}

static struct selected select_paths(const struct lb_vhost *v, struct str path)
{
	struct selected s = {.prefix = lb_radix_find(v->prefix, path).longest};
	if (v->has_exact)
		s.exact = lb_string_index_find_value(v->exact, path);
	if (v->has_exact_fold) {
		struct lb_radix_hit hit = lb_radix_find(v->exact_fold, path);
		s.exact_fold = hit.is_whole ? hit.longest : NULL;
	}
	if (v->has_prefix_fold)
		s.prefix_fold = lb_radix_find(v->prefix_fold, path).longest;
	return s;
}

static void take_smaller(struct lb_vhost_found *best, uint32_t route, uint32_t action)
{
	if (route < best->route)
		*best = (struct lb_vhost_found){route, action};
}

struct lb_vhost_found lb_vhost_search(const struct lb_vhost *v, const struct lb_vhost_query *q)
{
	struct str path = cut(q->req->path);
	struct selected from = select_paths(v, path);
	struct lb_vhost_found best = {LB_VHOST_NONE, LB_VHOST_NONE};
	uint32_t set = LB_VHOST_NONE;
	if (from.prefix) {
		take_smaller(&best, from.prefix->smallest, from.prefix->action);
		if (v->n_sets)
			set = from.prefix->smallest_set;
	}
	if (from.prefix_fold)
		take_smaller(&best, from.prefix_fold->smallest, from.prefix_fold->action);
	if (from.exact)
		take_smaller(&best, from.exact->first, from.exact->action);
	if (from.exact_fold)
		take_smaller(&best, from.exact_fold->first, from.exact_fold->action);
	// Mostly the smallest number is that of a route with no more criteria than its path.
	if (best.route < set && best.action != LB_VHOST_NONE && !q->ctx->trace)
		return best;
	if (best.route == LB_VHOST_NONE && set == LB_VHOST_NONE)
		return best;
	uint32_t route = merge(v, q, path, &from);
	return (struct lb_vhost_found){
		route, route == LB_VHOST_NONE ? LB_VHOST_NONE : v->routes[route].action};
}
