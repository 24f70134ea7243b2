// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/overrides.h"

#include "ctrl/base/strmap.h"
#include "lb/base/container_of.h"
#include "lb/base/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct entry {
	STAILQ_ENTRY(entry) link; // of its cluster
	struct ip_port address;
	struct override what;
};

struct cluster_overrides {
	struct strmap_link by_name;
	TAILQ_ENTRY(cluster_overrides) link; // in order of their first override
	STAILQ_HEAD(, entry) list; // owned; never empty
	struct entry **sorted; // owned; the same ones, by address
	uint32_t n, room; // of sorted
	uint64_t revision;
	char name[];
};

struct overrides {
	struct strmap clusters;
	TAILQ_HEAD(, cluster_overrides) all; // owned
	uint32_t n; // entries
	uint64_t n_changes;
};

struct overrides *overrides_new(void)
{
	struct overrides *o = calloc(1, sizeof(*o));
	if (o)
		TAILQ_INIT(&o->all);
	return o;
}

// Where in `sorted` the address is, or would be.
static uint32_t place_of(const struct cluster_overrides *c, const struct ip_port *address)
{
	uint32_t low = 0, high = c->n;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (ip_port_cmp(&c->sorted[middle]->address, address) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void drop_entry(struct overrides *o, struct cluster_overrides *c, struct entry *e)
{
	uint32_t at = place_of(c, &e->address);
	c->n--;
	memmove(c->sorted + at, c->sorted + at + 1, (c->n - at) * sizeof(struct entry *));
	STAILQ_REMOVE(&c->list, e, entry, link);
	free(e);
	o->n--;
}

static void drop_cluster(struct overrides *o, struct cluster_overrides *c)
{
	strmap_remove(&o->clusters, &c->by_name);
	TAILQ_REMOVE(&o->all, c, link);
	free(c->sorted);
	free(c);
}

void overrides_free(struct overrides *o)
{
	if (!o)
		return;
	for (struct cluster_overrides *c; (c = TAILQ_FIRST(&o->all));) {
		for (struct entry *e; (e = STAILQ_FIRST(&c->list));)
			drop_entry(o, c, e);
		drop_cluster(o, c);
	}
	strmap_fini(&o->clusters);
	free(o);
}

static struct cluster_overrides *find_cluster(const struct overrides *o, const char *name)
{
	struct strmap_link *l = o && o->n ? strmap_find(&o->clusters, name) : NULL;
	return l ? CONTAINER_OF(l, struct cluster_overrides, by_name) : NULL;
}

static struct entry *find_entry(const struct cluster_overrides *c, const struct ip_port *address)
{
	uint32_t at = c ? place_of(c, address) : 0;
	return c && at < c->n && ip_port_eq(&c->sorted[at]->address, address) ? c->sorted[at]
	                                                                      : NULL;
}

// NULL = out of memory.
static struct cluster_overrides *add_cluster(struct overrides *o, const char *name)
{
	size_t size = strlen(name) + 1;
	struct cluster_overrides *c = calloc(1, sizeof(*c) + size);
	if (!c)
		return NULL;
	memcpy(c->name, name, size);
	STAILQ_INIT(&c->list);
	if (strmap_add(&o->clusters, &c->by_name, c->name)) {
		free(c);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&o->all, c, link);
	return c;
}

// False = out of memory; nothing has changed.
static bool add(struct overrides *o, struct cluster_overrides *c, struct entry *e)
{
	if (!grow(&c->sorted, c->n, &c->room, sizeof(c->sorted[0])))
		return false;
	uint32_t at = place_of(c, &e->address);
	memmove(c->sorted + at + 1, c->sorted + at, (c->n - at) * sizeof(struct entry *));
	c->sorted[at] = e;
	c->n++;
	STAILQ_INSERT_TAIL(&c->list, e, link);
	o->n++;
	return true;
}

// NULL = out of memory; nothing has changed.
static struct entry *add_to(
	struct overrides *o, struct cluster_overrides *c, const char *name, const struct ip_port *a)
{
	struct entry *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->address = *a;
	struct cluster_overrides *to = c ? c : add_cluster(o, name);
	if (to && add(o, to, e))
		return e;
	if (to && !c)
		drop_cluster(o, to);
	free(e);
	return NULL;
}

static bool is_none(const struct override *w)
{
	return !w->has_health && !w->weight;
}

int overrides_set(struct overrides *o, const char *cluster, const struct ip_port *address,
	struct override what, struct lb_err *reterr)
{
	struct cluster_overrides *c = find_cluster(o, cluster);
	struct entry *e = find_entry(c, address);
	if (!e && is_none(&what))
		return 0;
	if (!e && o->n == OVERRIDES_MAX)
		return lb_err_set(reterr, "there are %d overrides, the maximum", OVERRIDES_MAX);
	if (!e && !(e = add_to(o, c, cluster, address)))
		return lb_err_set(reterr, "out of memory");
	c = c ? c : find_cluster(o, cluster);
	e->what = what;
	c->revision = ++o->n_changes;
	if (is_none(&what))
		drop_entry(o, c, e);
	if (STAILQ_EMPTY(&c->list))
		drop_cluster(o, c);
	return 0;
}

struct override overrides_find(const struct overrides *o, const char *cluster,
	const struct ip_port *addresses, uint32_t n_addresses)
{
	const struct cluster_overrides *c = find_cluster(o, cluster);
	for (uint32_t i = 0; i < n_addresses; i++) {
		const struct entry *e = find_entry(c, &addresses[i]);
		if (e)
			return e->what;
	}
	return (struct override){.has_health = false};
}

uint64_t overrides_revision(const struct overrides *o, const char *cluster)
{
	const struct cluster_overrides *c = find_cluster(o, cluster);
	return c ? c->revision : 0;
}

// Applying.

// A list of endpoints in the form that it is made of. All is owned.
struct parts {
	struct lb_leaf_priority *priorities;
	struct lb_leaf_locality *localities;
	struct lb_leaf_endpoint *endpoints;
	const struct override **overrides; // [n_all] of the list; NULL = it has none
};

static bool parts_init(struct parts *p, const struct lb_leaf_endpoints *from)
{
	p->priorities = calloc((size_t)from->n_priorities + 1, sizeof(*p->priorities));
	p->localities = calloc((size_t)from->n_spans + 1, sizeof(*p->localities));
	p->endpoints = calloc((size_t)from->n_all + 1, sizeof(*p->endpoints));
	p->overrides = calloc((size_t)from->n_all + 1, sizeof(*p->overrides));
	return p->priorities && p->localities && p->endpoints && p->overrides;
}

static void parts_fini(struct parts *p)
{
	free(p->priorities);
	free(p->localities);
	free(p->endpoints);
	free(p->overrides);
}

// An endpoint of a locality whose weights add up to `sum`, which has to fit (A27-V06).
static void put(struct lb_leaf_endpoint *e, const struct override *what, uint64_t *sum)
{
	if (!what)
		return;
	if (what->has_health)
		e->health = what->health;
	uint64_t others = *sum - e->weight, room = UINT32_MAX - others;
	if (what->weight)
		e->weight = what->weight < room ? what->weight : (uint32_t)room;
	*sum = others + e->weight;
}

static uint32_t fill_locality(const struct parts *p, const struct lb_leaf_endpoints *from,
	const struct lb_leaf_span *span, struct lb_leaf_endpoint *to)
{
	uint32_t n_used = span->n_serving + span->n_draining, n = n_used + span->n_unused;
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i < n_used ? span->first + i : span->first_unused + i - n_used;
		to[i] = lb_leaf_endpoints_at(from, at);
		sum += to[i].weight;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i < n_used ? span->first + i : span->first_unused + i - n_used;
		put(&to[i], p->overrides[at], &sum);
	}
	return n;
}

static void fill(const struct lb_leaf_endpoints *from, struct parts *p)
{
	const uint32_t *ends = lb_leaf_endpoints_ends(from);
	struct lb_leaf_endpoint *at = p->endpoints;
	for (uint32_t i = 0; i < from->n_spans; i++) {
		const struct lb_leaf_span *span = &from->spans[i];
		uint32_t n = fill_locality(p, from, span, at);
		p->localities[i] = (struct lb_leaf_locality){
			.name = span->name,
			.weight = span->weight,
			.endpoints = at,
			.n_endpoints = n,
		};
		at += n;
	}
	for (uint32_t i = 0, first = 0; i < from->n_priorities; first = ends[i++])
		p->priorities[i] =
			(struct lb_leaf_priority){p->localities + first, ends[i] - first};
}

// Which of the list's endpoints have one; returns how many.
static uint32_t match(
	const struct cluster_overrides *c, const struct lb_leaf_endpoints *from, struct parts *p)
{
	uint32_t n = 0;
	const struct entry *e;
	STAILQ_FOREACH(e, &c->list, link)
	{
		uint32_t at = lb_leaf_endpoints_find(from, &e->address);
		if (at == UINT32_MAX || p->overrides[at])
			continue;
		p->overrides[at] = &e->what;
		n++;
	}
	return n;
}

struct lb_leaf_endpoints *overrides_apply(
	const struct overrides *o, const char *cluster, struct lb_leaf_endpoints *from)
{
	const struct cluster_overrides *c = find_cluster(o, cluster);
	if (!c)
		return lb_leaf_endpoints_get(from);
	struct parts p;
	struct lb_leaf_endpoints *list = NULL;
	const struct ip_port *second;
	if (parts_init(&p, from)) {
		if (match(c, from, &p)) {
			fill(from, &p);
			list = lb_leaf_endpoints_new(p.priorities, from->n_priorities, &second);
		} else {
			list = lb_leaf_endpoints_get(from);
		}
	}
	parts_fini(&p);
	return list;
}

const char *override_print(const struct override *w, char text[OVERRIDE_TEXT_MAX])
{
	const char *health = !w->has_health                  ? ""
	                     : w->health == LB_LEAF_DRAINING ? "drain"
	                     : w->health == LB_LEAF_HEALTHY  ? "up"
	                                                     : "down";
	int n = snprintf(text, OVERRIDE_TEXT_MAX, "%s", health);
	if (w->weight)
		snprintf(text + n, OVERRIDE_TEXT_MAX - (size_t)n, "%sweight %u", n ? " " : "",
			w->weight);
	return text;
}

void overrides_each(const struct overrides *o,
	void (*fn)(void *ctx, const char *cluster, const struct ip_port *, const struct override *),
	void *ctx)
{
	const struct cluster_overrides *c;
	const struct entry *e;
	TAILQ_FOREACH(c, &o->all, link)
	STAILQ_FOREACH(e, &c->list, link)
	fn(ctx, c->name, &e->address, &e->what);
}
