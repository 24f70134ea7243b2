// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/leaf_layout.h"

#include "lb/leaf/child_names.h"
#include "lb/leaf/leaf_members.h"
#include "lb/leaf/subset.h"
#include "lb/member/member.h"
#include "lb/pick/security.h"
#include "lb/policy/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How endpoints are spoken to.

// "" in plain text.
static struct str server_name(const struct lb_leaf_layout *l, const struct ip_port *address)
{
	struct str name = l->security ? str_from(l->security->server_name) : STR("");
	if (!l->security || !l->sni_is_hostname)
		return name;
	uint32_t at = lb_leaf_endpoints_find(l->endpoints, address);
	struct str host = at == UINT32_MAX ? STR("") : lb_leaf_endpoints_hostname(l->endpoints, at);
	host = str_until(host, ':'); // an authority may have a port
	struct ip_addr ip;
	bool is_name = host.len && host.p[0] != '[' && !ip_parse_str(host, &ip); // RFC 6066 3
	return is_name ? host : name;
}

// HC-06. NULL = none.
static const struct ip_port *proxy_of(const struct lb_leaf_layout *l, const struct ip_port *address)
{
	const struct lb_leaf_endpoints *e = l->endpoints;
	if (!l->uses_proxies || !e->proxies)
		return NULL;
	uint32_t at = lb_leaf_endpoints_find(e, address);
	return at != UINT32_MAX && e->proxies[at].port ? &e->proxies[at] : NULL;
}

static struct lb_security_conf wanted(const struct lb_leaf_layout *l, const struct ip_port *address)
{
	const struct lb_security *s = l->security;
	return (struct lb_security_conf){.credential = s ? s->credential : LB_PLAIN_TEXT,
		.server_name = server_name(l, address),
		.proxy = proxy_of(l, address),
		.header = s ? s->header : (struct lb_header){.version = 0}};
}

int lb_leaf_layout_security(
	const struct lb_leaf_layout *l, const struct ip_port *address, struct lb_security **ret)
{
	const struct lb_security_conf conf = wanted(l, address);
	*ret = NULL;
	if (!l->security && !conf.proxy)
		return 0;
	bool is_clusters = !conf.proxy && conf.server_name.p == l->security->server_name;
	*ret = is_clusters ? lb_security_get(l->security) : lb_security_new_as(&conf);
	return *ret ? 0 : -ENOMEM;
}

static bool fits(const void *layout, const struct ip_port *address, const struct lb_security *s)
{
	const struct lb_leaf_layout *l = layout;
	const struct lb_security_conf conf = wanted(l, address);
	return s ? lb_security_is(s, &conf) : !l->security && !conf.proxy;
}

bool lb_leaf_layout_fits(const struct lb_leaf_layout *l, const struct lb_member *m)
{
	return lb_member_is_secured(m, fits, l);
}

// All that was connected for the layout before can stay so.
static bool is_secured_alike(const struct lb_leaf_layout *l, const struct lb_leaf_layout *before)
{
	if ((l->uses_proxies && l->endpoints->proxies) ||
		(before->uses_proxies && before->endpoints->proxies))
		return false; // look at each
	if (!l->security || !before->security)
		return !l->security && !before->security;
	return lb_security_eq(l->security, before->security) && !l->sni_is_hostname &&
	       !before->sni_is_hostname;
}

// The members.

// Counted. Most updates leave most endpoints where they were. PF-08: the same in any order. One
// that has connections of another security is not the same (TLS-161).
static struct lb_member *take_member(struct lb_leaf_members *all, const struct lb_leaf_layout *l,
	const struct ip_port *list, uint32_t n, uint32_t at)
{
	const struct lb_leaf_layout *before = all->layout;
	if (!before)
		return lb_leaf_members_make(all, list, n);
	struct lb_member *m = at < before->roster->n ? before->roster->members[at] : NULL;
	if (!m || !lb_member_same_set(m, list, n))
		m = lb_leaf_members_find(all, list, n);
	if (m && (is_secured_alike(l, before) || lb_leaf_layout_fits(l, m)))
		return lb_member_get(m);
	return lb_leaf_members_make(all, list, n);
}

// Counted. NULL = out of memory, or no number is left.
static struct lb_roster *take_members(struct lb_leaf_members *all, const struct lb_leaf_layout *l)
{
	const struct lb_leaf_endpoints *e = l->endpoints;
	if (all->layout && is_secured_alike(l, all->layout) &&
		lb_leaf_endpoints_same_addresses(all->layout->endpoints, e))
		return lb_roster_get(all->layout->roster);
	uint32_t n_before = all->layout ? all->layout->endpoints->n : 0;
	all->env.n_expected = e->n > n_before ? e->n - n_before : 0;
	struct lb_roster *r = lb_roster_new(e->n);
	while (r && r->n < e->n) {
		uint32_t n;
		const struct ip_port *list = lb_leaf_endpoints_addresses(e, r->n, &n);
		struct lb_member *m = take_member(all, l, list, n, r->n);
		if (m) {
			lb_roster_add(r, m);
		} else {
			lb_roster_put(r);
			r = NULL;
		}
	}
	all->env.n_expected = 0;
	return r;
}

// EDS may have no priority, and then there is one without localities.
const struct lb_leaf_span *lb_leaf_layout_spans(
	const struct lb_leaf_layout *l, uint32_t rank, uint32_t *ret_n)
{
	const struct lb_leaf_endpoints *e = l->endpoints;
	const uint32_t *ends = lb_leaf_endpoints_ends(e);
	uint32_t from = rank ? ends[rank - 1] : 0;
	*ret_n = rank < e->n_priorities ? ends[rank] - from : 0;
	return e->spans + from;
}

// The children's names.

void lb_leaf_child_name(uint32_t number, char ret[LB_LEAF_CHILD_NAME_MAX])
{
	snprintf(ret, LB_LEAF_CHILD_NAME_MAX, "child%u", number);
}

// To be freed. NULL = out of memory.
static struct lb_child_names_priority *list_names(const struct lb_leaf_layout *l)
{
	uint32_t n = l->n_priorities, n_spans = l->endpoints->n_spans;
	struct lb_child_names_priority *list =
		malloc(n * sizeof(*list) + n_spans * sizeof(struct str));
	if (!list)
		return NULL;
	struct str *localities = (struct str *)(list + n);
	for (uint32_t i = 0; i < n_spans; i++)
		localities[i] = l->endpoints->spans[i].name;
	for (uint32_t i = 0; i < n; i++) {
		lb_leaf_layout_spans(l, i, &list[i].n_localities);
		list[i].localities = localities;
		localities += list[i].n_localities;
	}
	return list;
}

static struct lb_child_names *choose_names(const struct lb_leaf_layout *l,
	const struct lb_leaf_layout *before, bool (*exists)(void *ctx, uint32_t number), void *ctx)
{
	struct lb_child_names_priority *list = list_names(l);
	struct lb_child_names_priority *list_before = before ? list_names(before) : NULL;
	struct lb_child_names *names = NULL;
	if (list && (list_before || !before))
		names = lb_child_names_new(before ? before->names : NULL, list_before, list,
			l->n_priorities, exists, ctx);
	free(list);
	free(list_before);
	return names;
}

static int compare(const void *a, const void *b)
{
	return strcmp(
		((const struct lb_leaf_child *)a)->name, ((const struct lb_leaf_child *)b)->name);
}

static void name_children(struct lb_leaf_layout *l)
{
	char *text = (char *)(l->children + l->n_priorities);
	for (uint32_t i = 0; i < l->n_priorities; i++, text += LB_LEAF_CHILD_NAME_MAX) {
		lb_leaf_child_name(lb_child_names_at(l->names, i), text);
		l->children[i] = text;
		l->by_name[i] = (struct lb_leaf_child){text, i};
	}
	qsort(l->by_name, l->n_priorities, sizeof(*l->by_name), compare);
}

uint32_t lb_leaf_layout_find(const struct lb_leaf_layout *l, const char *child)
{
	uint32_t low = 0, high = l->n_priorities;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = strcmp(l->by_name[middle].name, child);
		if (order == 0)
			return l->by_name[middle].rank;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return UINT32_MAX;
}

// The whole.

// With what it has for each priority, and the note, behind it.
static struct lb_leaf_layout *allocate(uint32_t n_priorities, const char *note)
{
	size_t each = sizeof(struct lb_leaf_child) + sizeof(char *) + LB_LEAF_CHILD_NAME_MAX;
	size_t note_size = strlen(note) + 1;
	struct lb_leaf_layout *l = calloc(1, sizeof(*l) + n_priorities * each + note_size);
	if (!l)
		return NULL;
	l->n_priorities = n_priorities;
	l->by_name = (struct lb_leaf_child *)(l + 1);
	l->children = (const char **)(l->by_name + n_priorities);
	char *texts = (char *)(l->children + n_priorities);
	l->note = memcpy(texts + n_priorities * (size_t)LB_LEAF_CHILD_NAME_MAX, note, note_size);
	return l;
}

struct lb_leaf_layout *lb_leaf_layout_new(struct lb_leaf_members *all,
	const struct lb_leaf_config *config, bool (*exists)(void *ctx, uint32_t number), void *ctx)
{
	uint32_t n = config->endpoints->n_priorities;
	struct lb_leaf_layout *l = allocate(n ? n : 1, config->note);
	if (!l)
		return NULL;
	l->spec = config->spec;
	l->endpoints = lb_leaf_endpoints_get(config->endpoints);
	l->security = lb_security_get(config->security);
	l->sni_is_hostname = config->sni_is_hostname;
	l->uses_proxies = config->uses_proxies;
	l->roster = take_members(all, l);
	l->names = choose_names(l, all->layout, exists, ctx);
	int err = lb_subset_choose(l->endpoints, l->spec, all->leaf_env->subset_seed, &l->is_out);
	if (err || !l->roster || !l->names) {
		lb_leaf_layout_free(l);
		return NULL;
	}
	name_children(l);
	return l;
}

void lb_leaf_layout_free(struct lb_leaf_layout *l)
{
	if (!l)
		return;
	lb_roster_put(l->roster);
	lb_leaf_endpoints_put(l->endpoints);
	lb_child_names_free(l->names);
	lb_security_put(l->security);
	free(l->is_out);
	free(l);
}

bool lb_leaf_layout_reorder(const struct lb_leaf_layout *l)
{
	const struct lb_leaf_endpoints *e = l->endpoints;
	bool is_other = false;
	for (uint32_t i = 0; e->firsts && i < e->n; i++) // a single address has but one order
		is_other |= lb_member_reorder(l->roster->members[i], &e->addresses[e->firsts[i]]);
	return is_other;
}

struct lb_member **lb_leaf_layout_list(const struct lb_leaf_layout *l, uint32_t *ret_n)
{
	uint32_t n = l->roster->n, first = 0, last = n;
	struct lb_member **list = malloc((n + (size_t)1) * sizeof(struct lb_member *));
	for (uint32_t i = 0; list && i < n; i++)
		list[lb_leaf_layout_is_out(l, i) ? --last : first++] = l->roster->members[i];
	*ret_n = first;
	return list;
}

// What policies are told.

// A113: the product of both shares, as fractions of 2^31; no member weighs nothing.
static uint32_t weight_among_all(uint64_t locality, uint64_t localities, uint64_t own, uint64_t all)
{
	uint64_t product = (locality << 31) / localities * ((own << 31) / all) >> 31;
	return product ? (uint32_t)product : 1;
}

static uint64_t sum_of(const struct lb_leaf_endpoints *e, uint32_t first, uint32_t n)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += lb_leaf_endpoints_weight(e, first + i);
	return sum;
}

// The members of a priority's localities, and their keys, as far as they are listed.
struct lists {
	struct lb_node_member *members; // the next one's place
	const char **keys; // likewise; NULL = none has one
};

// Returns how many there are.
static uint32_t list_members(const struct lb_leaf_layout *l, const struct lb_leaf_span *span,
	uint64_t localities, struct lists *to)
{
	const struct lb_leaf_endpoints *e = l->endpoints;
	uint64_t all = sum_of(e, span->first, span->n_serving + span->n_draining);
	bool is_split = l->spec->kind == LB_POLICY_WRR_LOCALITY; // A42-T09
	uint32_t n = 0;
	for (uint32_t i = span->first; i < span->first + span->n_serving; i++) { // A55-O03
		if (lb_leaf_layout_is_out(l, i))
			continue;
		uint32_t own = lb_leaf_endpoints_weight(e, i);
		to->members[n] = (struct lb_node_member){l->roster->members[i],
			is_split ? own : weight_among_all(span->weight, localities, own, all)};
		if (to->keys)
			to->keys[n] = e->hash_keys[i];
		n++;
	}
	to->members += n;
	to->keys += to->keys ? n : 0;
	return n;
}

// With room behind it for all of the priority's localities, members and keys. NULL = out of memory.
static struct lb_node_config *config_allocate(const struct lb_leaf_layout *l,
	const struct lb_leaf_span *spans, uint32_t n, struct lists *ret)
{
	size_t n_members = 0, n_keys = 0;
	for (uint32_t i = 0; i < n; i++)
		n_members += spans[i].n_serving;
	if (l->endpoints->hash_keys)
		n_keys = n_members;
	struct lb_node_config *c =
		malloc(sizeof(*c) + n * sizeof(struct lb_node_locality) +
			n_members * sizeof(struct lb_node_member) + n_keys * sizeof(char *));
	if (!c)
		return NULL;
	struct lb_node_locality *localities = (struct lb_node_locality *)(c + 1);
	*c = (struct lb_node_config){l->spec, localities, n};
	ret->members = (struct lb_node_member *)(localities + n);
	ret->keys = n_keys ? (const char **)(ret->members + n_members) : NULL;
	return c;
}

struct lb_node_config *lb_leaf_layout_config(const struct lb_leaf_layout *l, uint32_t rank)
{
	uint32_t n;
	const struct lb_leaf_span *spans = lb_leaf_layout_spans(l, rank, &n);
	struct lists lists;
	struct lb_node_config *c = config_allocate(l, spans, n, &lists);
	if (!c)
		return NULL;
	struct lb_node_locality *localities = (struct lb_node_locality *)(c + 1);
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += spans[i].weight;
	for (uint32_t i = 0; i < n; i++) {
		localities[i] = (struct lb_node_locality){
			.name = spans[i].name,
			.weight = spans[i].weight,
			.members = lists.members,
			.hash_keys = lists.keys,
		};
		localities[i].n_members = list_members(l, &spans[i], sum, &lists);
	}
	return c;
}

static const char *key_of(const struct lb_leaf_layout *l, uint32_t i)
{
	return l->endpoints->hash_keys ? l->endpoints->hash_keys[i] : "";
}

static bool same_weights(const struct lb_leaf_endpoints *a, uint32_t of_a,
	const struct lb_leaf_endpoints *b, uint32_t of_b, uint32_t n)
{
	if (!a->weights && !b->weights)
		return true;
	for (uint32_t i = 0; i < n; i++)
		if (lb_leaf_endpoints_weight(a, of_a + i) != lb_leaf_endpoints_weight(b, of_b + i))
			return false;
	return true;
}

static bool same_span(const struct lb_leaf_layout *a, const struct lb_leaf_span *x,
	const struct lb_leaf_layout *b, const struct lb_leaf_span *y)
{
	uint32_t n = x->n_serving;
	if (!str_eq(x->name, y->name) || x->weight != y->weight || n != y->n_serving)
		return false;
	if (memcmp(a->roster->members + x->first, b->roster->members + y->first,
		    n * sizeof(struct lb_member *)) != 0 ||
		!same_weights(a->endpoints, x->first, b->endpoints, y->first, n))
		return false;
	// Those that drain have a share in what the others' weights are parts of (A113).
	if (a->spec->kind != LB_POLICY_WRR_LOCALITY &&
		sum_of(a->endpoints, x->first + n, x->n_draining) !=
			sum_of(b->endpoints, y->first + n, y->n_draining))
		return false;
	if (!a->endpoints->hash_keys && !b->endpoints->hash_keys)
		return true;
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(key_of(a, x->first + i), key_of(b, y->first + i)) != 0)
			return false;
	return true;
}

static bool same_priority(
	const struct lb_leaf_layout *a, const struct lb_leaf_layout *b, uint32_t rank)
{
	uint32_t n, n_b;
	const struct lb_leaf_span *x = lb_leaf_layout_spans(a, rank, &n);
	const struct lb_leaf_span *y = lb_leaf_layout_spans(b, rank, &n_b);
	if (n != n_b || strcmp(a->children[rank], b->children[rank]) != 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!same_span(a, &x[i], b, &y[i]))
			return false;
	return true;
}

static bool is_pick_first(const struct lb_policy_spec *spec)
{
	while (spec->kind == LB_POLICY_WRR_LOCALITY)
		spec = spec->child;
	return spec->kind == LB_POLICY_PICK_FIRST;
}

bool lb_leaf_layout_same_configs(const struct lb_leaf_layout *a, const struct lb_leaf_layout *b)
{
	if (a->n_priorities != b->n_priorities || a->spec != b->spec ||
		strcmp(a->note, b->note) != 0)
		return false;
	if (is_pick_first(a->spec) && !is_secured_alike(a, b))
		return false; // it connects to members of its own
	for (uint32_t i = 0; i < a->n_priorities; i++)
		if (!same_priority(a, b, i))
			return false;
	return true;
}

// What counts their requests.

// What is so already is not written: of most nobody ever wants to know, and a table that nobody
// wrote to takes no memory.
static void book_member(uint32_t *load, uint32_t of_locality)
{
	if (__atomic_load_n(load, __ATOMIC_RELAXED) != of_locality)
		__atomic_store_n(load, of_locality, __ATOMIC_RELAXED);
}

void lb_leaf_layout_book(
	const struct lb_leaf_layout *l, uint32_t *loads, const uint32_t *of_localities)
{
	for (uint32_t i = 0; loads && i < l->endpoints->n_spans; i++) {
		const struct lb_leaf_span *s = &l->endpoints->spans[i];
		for (uint32_t k = 0; k < s->n_serving + s->n_draining; k++)
			book_member(&loads[lb_member_id(l->roster->members[s->first + k])],
				of_localities ? of_localities[i] : 0);
	}
}
