// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/actions.h"

#include "ctrl/base/slice.h"
#include "ctrl/base/strmap.h"
#include "ctrl/res/route.h"
#include "lb/base/arena.h"
#include "lb/base/container_of.h"
#include "lb/base/grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_ACTION UINT32_MAX

// Most have one cluster, which is their name: equal actions have equal ones.
struct entry {
	struct action view; // first member
	struct strmap_link by_name;
	uint32_t index;
};

// Of several clusters.
struct weighted {
	struct entry base; // first member
	struct strmap_link by_key; // keys are equal for equal actions
	const char *set; // equal for those with the same clusters
};

struct actions {
	struct res_route_config *routes; // counted
	struct lb_arena arena;
	struct strmap by_key, by_name;
	struct entry **list; // owned
	uint32_t n, room;
	uint32_t **of_route; // [n_vhosts], arena: the action of each route; NULL = not asked for
};

struct actions_job {
	struct actions *a; // owned
	uint32_t next, end; // of the vhosts
	struct action_target *targets; // owned; of the route at hand
	uint32_t targets_room;
	char *text; // owned; its key
	size_t text_room;
};

static struct weighted *find_weighted(const struct strmap *map, const char *key)
{
	struct strmap_link *l = strmap_find(map, key);
	return l ? CONTAINER_OF(l, struct weighted, by_key) : NULL;
}

static struct entry *find_plain(const struct actions *a, const char *name)
{
	struct strmap_link *l = strmap_find(&a->by_name, name);
	return l ? CONTAINER_OF(l, struct entry, by_name) : NULL;
}

static struct weighted *weighted_of(const struct entry *e) // NULL = it has one cluster
{
	return e->view.n_targets > 1 ? (struct weighted *)(uintptr_t)e : NULL;
}

static int by_name(const void *pa, const void *pb)
{
	const struct action_target *a = pa, *b = pb;
	return strcmp(a->cluster, b->cluster);
}

// The route's clusters, sorted; of those that are there twice the sum (A28-W07).
static uint32_t gather(struct actions_job *w, const struct res_route *r)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->n_clusters; i++)
		w->targets[i] = (struct action_target){r->clusters[i].name, r->clusters[i].weight};
	if (r->n_clusters > 1)
		qsort(w->targets, r->n_clusters, sizeof(*w->targets), by_name);
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		if (n && strcmp(w->targets[n - 1].cluster, w->targets[i].cluster) == 0)
			w->targets[n - 1].weight += w->targets[i].weight;
		else
			w->targets[n++] = w->targets[i];
	}
	return n;
}

static char *put_number(char *to, uint64_t number)
{
	char digits[20];
	int n = 0;
	do {
		digits[n++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (n)
		*to++ = digits[--n];
	return to;
}

// False = out of memory.
static bool have_text(struct actions_job *w, uint32_t n)
{
	size_t need = sizeof("cds:");
	for (uint32_t i = 0; i < n; i++)
		need += strlen(w->targets[i].cluster) + 48;
	char *text = need > w->text_room ? realloc(w->text, 2 * need) : w->text;
	if (!text)
		return false;
	if (need > w->text_room)
		w->text_room = 2 * need;
	w->text = text;
	return true;
}

// "4:blue=3;5:green=1;", without the weights for a set. Lengths make it unambiguous. Once for each
// route, so without printf.
static const char *spell(struct actions_job *w, uint32_t n, bool weights)
{
	if (!have_text(w, n))
		return NULL;
	char *to = w->text;
	for (uint32_t i = 0; i < n; i++) {
		const struct action_target *t = &w->targets[i];
		size_t len = strlen(t->cluster);
		to = put_number(to, len);
		*to++ = ':';
		memcpy(to, t->cluster, len);
		to += len;
		if (weights) {
			*to++ = '=';
			to = put_number(to, t->weight);
		}
		*to++ = ';';
	}
	*to = 0;
	return w->text;
}

// Of the route at hand. NULL = out of memory.
static struct entry *entry_new(struct actions_job *w, uint32_t n, size_t size)
{
	struct actions *a = w->a;
	if (!grow(&a->list, a->n, &a->room, sizeof(a->list[0])))
		return NULL;
	struct entry *e = lb_arena_alloc(&a->arena, 1, size);
	struct action_target *targets = lb_arena_alloc(&a->arena, n, sizeof(*targets));
	if (!e || !targets)
		return NULL;
	memcpy(targets, w->targets, n * sizeof(*targets));
	e->view = (struct action){.targets = targets, .n_targets = n};
	e->index = a->n;
	return e;
}

static int give_name(struct actions *a, struct entry *e, const char *name)
{
	e->view.name = lb_arena_strdup(&a->arena, name);
	return e->view.name ? strmap_add(&a->by_name, &e->by_name, e->view.name) : -ENOMEM;
}

// Found or made; NULL = out of memory.
static struct entry *obtain_plain(struct actions_job *w)
{
	if (!have_text(w, 1))
		return NULL;
	strcpy(stpcpy(w->text, "cds:"), w->targets[0].cluster);
	struct entry *e = find_plain(w->a, w->text);
	if (e)
		return e;
	w->targets[0].weight = 1; // alone, any weight says the same
	e = entry_new(w, 1, sizeof(*e));
	if (!e || give_name(w->a, e, w->text))
		return NULL;
	w->a->list[w->a->n++] = e;
	return e;
}

static struct entry *obtain_weighted(struct actions_job *w, uint32_t n)
{
	struct actions *a = w->a;
	const char *key = spell(w, n, true);
	struct weighted *e = key ? find_weighted(&a->by_key, key) : NULL;
	if (!key || e)
		return e ? &e->base : NULL;
	e = (struct weighted *)entry_new(w, n, sizeof(*e));
	key = e ? lb_arena_strdup(&a->arena, key) : NULL;
	const char *set = key ? spell(w, n, false) : NULL;
	const char *kept = set ? lb_arena_strdup(&a->arena, set) : NULL;
	if (!kept || strmap_add(&a->by_key, &e->by_key, key))
		return NULL;
	e->set = kept;
	a->list[a->n++] = &e->base;
	return &e->base;
}

// False = out of memory.
static bool have_targets(struct actions_job *w, uint32_t n)
{
	if (n <= w->targets_room)
		return true;
	free(w->targets);
	w->targets_room = n;
	w->targets = calloc(n, sizeof(*w->targets));
	return w->targets;
}

static int add_route(struct actions_job *w, const struct res_route *r, uint32_t *ret)
{
	*ret = NO_ACTION;
	if (r->action != LB_ACTION_CLUSTERS)
		return 0;
	if (!have_targets(w, r->n_clusters))
		return -ENOMEM;
	uint32_t n = gather(w, r);
	const struct entry *e = n == 1 ? obtain_plain(w) : obtain_weighted(w, n);
	if (!e)
		return -ENOMEM;
	*ret = e->index;
	return 0;
}

static int add_vhost(struct actions_job *w, uint32_t index)
{
	const struct res_vhost *v = &w->a->routes->vhosts[index];
	uint32_t *list = lb_arena_alloc(&w->a->arena, v->n_routes, sizeof(*list));
	w->a->of_route[index] = list;
	for (uint32_t i = 0; list && i < v->n_routes; i++)
		if (add_route(w, &v->routes[i], &list[i]))
			return -ENOMEM;
	return list ? 0 : -ENOMEM;
}

// Names.

// Of one set of clusters: the old names that may be inherited.
struct left_name {
	struct strmap_link by_set;
	struct left_name *next; // of the same set, in order
	struct left_name *last; // of the first one: the set's last
	const char *name;
};

// Of one "weighted:a_b_": which number comes next.
struct numbering {
	struct strmap_link by_stem;
	uint32_t next;
};

struct naming {
	struct actions *a;
	const struct actions *before; // may be NULL
	struct lb_arena arena; // for the time of naming
	struct strmap left_names; // by set; the first of each
	struct strmap numberings;
};

static struct left_name *left_names_of(const struct naming *n, const char *set)
{
	struct strmap_link *l = strmap_find(&n->left_names, set);
	return l ? CONTAINER_OF(l, struct left_name, by_set) : NULL;
}

// A28-N04: what leaves. Plain clusters bear names that nobody else could want.
static int lay_out(struct naming *n)
{
	for (uint32_t i = 0; n->before && i < n->before->n; i++) {
		const struct weighted *old = weighted_of(n->before->list[i]);
		if (!old || find_weighted(&n->a->by_key, old->by_key.key))
			continue;
		struct left_name *h = lb_arena_alloc(&n->arena, 1, sizeof(*h));
		if (!h)
			return -ENOMEM;
		h->name = old->base.view.name;
		h->last = h;
		struct left_name *first = left_names_of(n, old->set);
		if (first) {
			first->last->next = h;
			first->last = h;
		} else if (strmap_add(&n->left_names, &h->by_set, old->set)) {
			return -ENOMEM;
		}
	}
	return 0;
}

// A28-N05: one name to one heir, none when the clusters differ.
static const char *inherit(struct naming *n, const struct weighted *e)
{
	struct left_name *first = left_names_of(n, e->set);
	if (!first || !first->name)
		return NULL;
	const char *name = first->name;
	if (first->next) { // the first one stays in the map, with the next one's name
		first->name = first->next->name;
		first->next = first->next->next;
	} else {
		first->name = NULL;
	}
	return name;
}

static bool is_taken(const struct naming *n, const char *name)
{
	return strmap_find(&n->a->by_name, name) ||
	       (n->before && strmap_find(&n->before->by_name, name));
}

// "weighted:a_b_": a number behind it makes the name.
static struct numbering *numbering_of(struct naming *n, const struct entry *e)
{
	size_t size = sizeof("weighted:") + 1;
	for (uint32_t i = 0; i < e->view.n_targets; i++)
		size += strlen(e->view.targets[i].cluster) + 1;
	char *stem = lb_arena_alloc(&n->arena, 1, size);
	if (!stem)
		return NULL;
	char *at = stpcpy(stem, "weighted:");
	for (uint32_t i = 0; i < e->view.n_targets; i++)
		at = stpcpy(stpcpy(at, e->view.targets[i].cluster), "_");
	struct strmap_link *l = strmap_find(&n->numberings, stem);
	if (l)
		return CONTAINER_OF(l, struct numbering, by_stem);
	struct numbering *made = lb_arena_alloc(&n->arena, 1, sizeof(*made));
	if (!made || strmap_add(&n->numberings, &made->by_stem, stem))
		return NULL;
	made->next = 1;
	return made;
}

static int invent(struct naming *n, struct entry *e)
{
	struct numbering *k = numbering_of(n, e);
	char *name = k ? malloc(strlen(k->by_stem.key) + 16) : NULL;
	if (!name)
		return -ENOMEM;
	do {
		sprintf(name, "%s%u", k->by_stem.key, k->next++);
	} while (is_taken(n, name));
	int err = give_name(n->a, e, name);
	free(name);
	return err;
}

// Those of several clusters.
static int name_all(struct naming *n)
{
	int err = lay_out(n);
	for (uint32_t i = 0; !err && i < n->a->n; i++) { // A28-N03
		struct weighted *e = weighted_of(n->a->list[i]);
		const struct weighted *old =
			e && n->before ? find_weighted(&n->before->by_key, e->by_key.key) : NULL;
		if (old)
			err = give_name(n->a, &e->base, old->base.view.name);
	}
	for (uint32_t i = 0; !err && i < n->a->n; i++) {
		struct weighted *e = weighted_of(n->a->list[i]);
		if (!e || e->base.view.name)
			continue;
		const char *old = inherit(n, e);
		err = old ? give_name(n->a, &e->base, old) : invent(n, &e->base);
	}
	return err;
}

static int give_names(struct actions *a, const struct actions *before)
{
	struct naming n = {.a = a, .before = before};
	int err = name_all(&n);
	strmap_fini(&n.left_names);
	strmap_fini(&n.numberings);
	lb_arena_fini(&n.arena);
	return err;
}

struct actions_job *actions_job_new(struct res_route_config *routes, int32_t vhost)
{
	struct actions_job *w = calloc(1, sizeof(*w));
	struct actions *a = w ? calloc(1, sizeof(*a)) : NULL;
	if (!a) {
		free(w);
		return NULL;
	}
	*w = (struct actions_job){.a = a,
		.next = vhost < 0 ? 0 : (uint32_t)vhost,
		.end = vhost < 0 ? routes->n_vhosts : (uint32_t)vhost + 1};
	a->routes = routes;
	xds_res_get(&routes->base);
	a->of_route = lb_arena_alloc(&a->arena, routes->n_vhosts, sizeof(*a->of_route));
	if (a->of_route)
		return w;
	actions_job_free(w);
	return NULL;
}

void actions_job_free(struct actions_job *w)
{
	if (!w)
		return;
	actions_free(w->a);
	free(w->targets);
	free(w->text);
	free(w);
}

int actions_job_run(struct actions_job *w, struct slice *slice, const struct actions *before,
	struct actions **ret)
{
	while (w->next < w->end) {
		if (add_vhost(w, w->next++))
			return -ENOMEM;
		if (slice_over(slice))
			return -EAGAIN;
	}
	if (give_names(w->a, before))
		return -ENOMEM;
	*ret = w->a;
	w->a = NULL;
	return 0;
}

void actions_free(struct actions *a)
{
	if (!a)
		return;
	strmap_fini(&a->by_key);
	strmap_fini(&a->by_name);
	free(a->list);
	lb_arena_fini(&a->arena);
	xds_res_put(&a->routes->base);
	free(a);
}

uint32_t actions_count(const struct actions *a)
{
	return a->n;
}

const struct action *actions_at(const struct actions *a, uint32_t index)
{
	return &a->list[index]->view;
}

int64_t actions_of(const struct actions *a, uint32_t vhost, uint32_t route)
{
	uint32_t index = a->of_route[vhost][route];
	return index == NO_ACTION ? -1 : (int64_t)index;
}
