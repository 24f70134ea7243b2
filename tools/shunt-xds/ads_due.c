// SPDX-License-Identifier: Apache-2.0
// Responses: what is due, in which order, and when.
#include "ctrl/xds/variants/constraints.h"
#include "lb/base/time.h"
#include "tools/shunt-xds/ads_stream_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BREAK_DELAY_NS NS_PER_SECOND // from the last exchange about what uses it
#define MAKE_PATIENCE_NS NS_PER_SECOND // a change waits no longer for what it may refer to

#define BIT(type) (1u << (type))
// What may still use a resource of this type. Endpoints name nothing; but clusters are not taken
// away while the endpoints of those that follow them are on their way.
static const unsigned users_of[CATALOG_TYPES_MAX] = {
	[RESOURCE_CLUSTER] =
		BIT(RESOURCE_ENDPOINTS) | BIT(RESOURCE_LISTENER) | BIT(RESOURCE_ROUTES),
	[RESOURCE_ENDPOINTS] =
		BIT(RESOURCE_CLUSTER) | BIT(RESOURCE_LISTENER) | BIT(RESOURCE_ROUTES),
	[RESOURCE_ROUTES] = BIT(RESOURCE_LISTENER),
};
static const enum resource_type breaking_order[] = {
	RESOURCE_ROUTES, RESOURCE_CLUSTER, RESOURCE_ENDPOINTS};
#define N_BREAKING (sizeof(breaking_order) / sizeof(breaking_order[0]))

void ads_items_clear(struct ads_items *items)
{
	for (size_t i = 0; i < items->n; i++)
		xds_variant_put(items->list[i].variant);
	items->n = 0;
}

static int items_reserve(struct ads_items *items, size_t n)
{
	if (n <= items->room)
		return 0;
	struct ads_item *list = realloc(items->list, n * sizeof(*list));
	if (!list)
		return -ENOMEM;
	items->list = list;
	items->room = n;
	return 0;
}

static void items_add(struct ads_items *items, const char *name, struct xds_variant *v)
{
	items->list[items->n++] = (struct ads_item){name, xds_variant_get(v)};
}

static int identity_cmp(const struct xds_variant *a, const struct xds_variant *b)
{
	return xds_constraints_cmp(a ? a->constraints : NULL, b ? b->constraints : NULL);
}

static int item_cmp(const void *a, const void *b)
{
	const struct ads_item *x = a, *y = b;
	return identity_cmp(x->variant, y->variant);
}

// Sorts those from `first` on, which are of one name, and leaves one of each identity.
static void items_unique(struct ads_items *items, size_t first)
{
	size_t n = first;
	if (items->n - first < 2)
		return;
	qsort(items->list + first, items->n - first, sizeof(*items->list), item_cmp);
	for (size_t i = first; i < items->n; i++) {
		if (n > first && item_cmp(&items->list[n - 1], &items->list[i]) == 0)
			xds_variant_put(items->list[i].variant);
		else
			items->list[n++] = items->list[i];
	}
	items->n = n;
}

// Takes out of those from `first` on what is in `others` too; both are sorted.
static void items_subtract(struct ads_items *items, size_t first, const struct ads_items *others)
{
	size_t n = first, k = 0;
	for (size_t i = first; i < items->n; i++) {
		while (k < others->n && item_cmp(&others->list[k], &items->list[i]) < 0)
			k++;
		if (k < others->n && item_cmp(&others->list[k], &items->list[i]) == 0)
			xds_variant_put(items->list[i].variant);
		else
			items->list[n++] = items->list[i];
	}
	items->n = n;
}

// What it sees, unless that is not for it.
static struct xds_variant *seen_by(const struct subscription_entry *e)
{
	struct xds_variant *v = e->sub->variant;
	return v && !e->left && v->change > e->after ? v : NULL;
}

static bool is_same(const struct subscription_entry *e)
{
	const struct xds_variant *a = e->sent, *b = seen_by(e);
	return a == b || (a && b && strcmp(a->version, b->version) == 0 &&
				 xds_constraints_eq(a->constraints, b->constraints));
}

// The entries of one name.
struct group {
	struct subscription_entry *entries;
	size_t n;
	bool is_pending; // one of them is
};

// The source has nothing to say of it yet. What is there under a wildcard comes with the rest,
// unless nobody ever says that this was all.
static bool is_pending(const struct ads_type *t, const struct subscription_entry *e)
{
	if (!e->named)
		return t->wild_is_pending && !(t->wild_is_open && seen_by(e));
	const struct catalog_word *word = catalog_word(e->sub);
	return !seen_by(e) && (e->sub->variant || (word && word->is_pending));
}

static struct group group_at(const struct ads_type *t, size_t i)
{
	const struct subscription *sub = &t->sub;
	struct group g = {&sub->entries[i], 0, sub->n_wild > 0 && t->wild_is_pending};
	while (i + g.n < sub->n && g.entries[g.n].sub->name == g.entries[0].sub->name) {
		const struct subscription_entry *e = &g.entries[g.n++];
		g.is_pending |= !e->left && is_pending(t, e);
	}
	return g;
}

// Nothing is told of it yet. What is left stays as long as who keeps it may come to see it.
static bool waits(
	const struct ads_type *t, const struct group *g, const struct subscription_entry *e)
{
	return e->left ? g->is_pending : is_pending(t, e);
}

// The error that the client should know of; 0 = none.
static uint64_t error_of(const struct subscription_entry *e)
{
	const struct catalog_word *word = e->named ? catalog_word(e->sub) : NULL;
	return word ? word->error : 0;
}

static enum ads_due due_of(const struct ads_stream *s, const struct ads_type *t,
	const struct group *g, const struct subscription_entry *e)
{
	bool is_delta = s->protocol == ADS_DELTA, asked = e->asked && (is_delta || seen_by(e));
	if (waits(t, g, e))
		return ADS_DUE_NOTHING;
	if (asked || error_of(e) != e->error)
		return ADS_DUE_CHANGE;
	if (seen_by(e))
		return is_same(e) ? ADS_DUE_NOTHING : ADS_DUE_CHANGE;
	bool is_told = is_delta || s->catalog->types[t - s->types].info.full_state;
	return e->sent && is_told ? ADS_DUE_REMOVAL : ADS_DUE_NOTHING;
}

static enum ads_due group_due(
	const struct ads_stream *s, const struct ads_type *t, const struct group *g)
{
	enum ads_due due = ADS_DUE_NOTHING;
	for (size_t i = 0; i < g->n; i++) {
		enum ads_due its = due_of(s, t, g, &g->entries[i]);
		due = its > due ? its : due;
	}
	return due;
}

// Counts what nothing is known of yet.
static void note_pending(struct ads_stream *s, struct ads_type *t)
{
	t->n_pending = 0;
	t->wild_is_pending = false;
	t->wild_is_open = s->catalog->types[t - s->types].newest_wins;
	if (!s->catalog->source)
		return;
	for (size_t i = 0; i < t->sub.n_wild; i++) {
		const struct catalog_word *word = catalog_word(t->sub.wild[i]);
		t->wild_is_pending |= word && word->is_pending;
	}
	for (size_t i = 0; i < t->sub.n; i++)
		t->n_pending += t->sub.entries[i].named && is_pending(t, &t->sub.entries[i]);
}

// An answer is owed, and can be given, also an empty one.
static bool owes_answer(const struct ads_stream *s, const struct ads_type *t, bool full_state)
{
	if (!t->asked || t->wild_is_pending)
		return false;
	return s->protocol == ADS_DELTA ||
	       (full_state && t->n_pending == 0 && (t->sub.n_wild > 0 || t->sub.n > 0));
}

static enum ads_due compare(const struct ads_stream *s, const struct ads_type *t, bool full_state)
{
	// What a full list leaves out is deleted: by a client that may have it, or goes by all.
	bool may_hold = t->resume_ns != 0 && t->nonce == 0;
	if (s->protocol == ADS_SOTW && full_state &&
		(t->wild_is_pending || (may_hold && t->n_pending > 0)))
		return ADS_DUE_NOTHING;
	enum ads_due due = owes_answer(s, t, full_state) ? ADS_DUE_CHANGE : ADS_DUE_NOTHING;
	for (size_t i = 0; i < t->sub.n && due != ADS_DUE_CHANGE;) {
		struct group g = group_at(t, i);
		enum ads_due its = group_due(s, t, &g);
		due = its > due ? its : due;
		i += g.n;
	}
	return due;
}

// Nothing that is known here uses a listener, or what is only passed on, so that taking one away is
// a change like any other.
static bool is_used(uint32_t type)
{
	return type < N_RESOURCE_TYPES && users_of[type] != 0;
}

static bool is_change(uint32_t type, enum ads_due due)
{
	return due == ADS_DUE_CHANGE || (due == ADS_DUE_REMOVAL && !is_used(type));
}

// Brings due of every type up to date.
static int compare_all(struct ads_stream *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->n_types; i++) {
		struct ads_type *t = &s->types[i];
		struct catalog_type *type = &s->catalog->types[i];
		if (t->is_compared && t->compared == type->generation)
			continue;
		int r = subscription_refresh(&t->sub, type);
		if (r < 0)
			return r;
		enum ads_due before = t->due;
		note_pending(s, t);
		t->due = compare(s, t, type->info.full_state);
		if (is_change(i, t->due) && !is_change(i, before))
			t->change_ns = now_ns;
		t->is_compared = true;
		t->compared = type->generation;
	}
	return 0;
}

// Until when a change waits: new routes may name clusters that the client is being sent, and whose
// endpoints it asks for before it accepts them. 0 = it need not; nor does what replaces nothing.
static uint64_t make_ns(const struct ads_stream *s, uint32_t type)
{
	const struct ads_type *t = &s->types[type];
	bool refers = type == RESOURCE_LISTENER || type == RESOURCE_ROUTES;
	if (!refers || (t->nonce == 0 && t->resume_ns == 0))
		return 0;
	for (int i = RESOURCE_CLUSTER; i <= RESOURCE_ENDPOINTS; i++) {
		const struct ads_type *made = &s->types[i];
		if ((made->nonce != 0 && !made->answered) || made->n_pending > 0)
			return t->change_ns + MAKE_PATIENCE_NS;
	}
	return 0;
}

// Something that may still use what is gone was not yet sent, not yet answered, or refused.
static bool users_are_busy(const struct ads_stream *s, uint32_t type)
{
	for (int i = 0; i < N_RESOURCE_TYPES; i++) {
		const struct ads_type *t = &s->types[i];
		if (!(users_of[type] & BIT(i)))
			continue;
		if (t->due == ADS_DUE_CHANGE || (t->nonce != 0 && !t->answered))
			return true;
		if (i != RESOURCE_ENDPOINTS && (t->refused || t->due == ADS_DUE_REMOVAL))
			return true;
	}
	return false;
}

// Before this time nothing of the type is taken away. What a client brings along from an earlier
// stream may be in use by what it has not asked for yet on this one.
static uint64_t break_ns(const struct ads_stream *s, uint32_t type)
{
	uint64_t last = s->types[type].resume_ns;
	for (int i = 0; i < N_RESOURCE_TYPES; i++)
		if ((users_of[type] & BIT(i)) && i != RESOURCE_ENDPOINTS &&
			s->types[i].exchange_ns > last)
			last = s->types[i].exchange_ns;
	return last == 0 ? 0 : last + BREAK_DELAY_NS;
}

static void group_told(const struct ads_type *t, const struct group *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (!waits(t, g, &g->entries[i]))
			subscription_told(&g->entries[i], seen_by(&g->entries[i]));
}

// Is one of the items from `first` on of these constraints?
static bool is_listed(
	const struct ads_items *items, size_t first, const struct xds_constraints *constraints)
{
	for (size_t i = first; i < items->n; i++) {
		const struct xds_variant *v = items->list[i].variant;
		if (xds_constraints_eq(v ? v->constraints : NULL, constraints))
			return true;
	}
	return false;
}

// The response so far, before the group.
struct marks {
	size_t resources, removed, errors;
};

// Errors of the group that the client does not know of, or, `all`, all of them; but one identity is
// never in a response twice (PC-07). What finds no place is told with the next.
static void pick_errors(
	struct ads_stream *s, const struct group *g, const struct marks *marks, bool all)
{
	for (size_t i = 0; i < g->n; i++) {
		struct subscription_entry *e = &g->entries[i];
		uint64_t error = error_of(e);
		bool is_new = error != e->error || e->asked;
		if (error == 0)
			e->error = 0;
		if (error == 0 || (!is_new && !all))
			continue;
		const struct catalog_word *word = catalog_word(e->sub);
		bool has_place = !is_listed(&s->resources, marks->resources, word->constraints) &&
		                 !is_listed(&s->removed, marks->removed, word->constraints);
		bool is_there = false;
		for (size_t k = marks->errors; k < s->n_errors; k++)
			is_there |= xds_constraints_eq(
				s->errors[k].word->constraints, word->constraints);
		if (has_place && !is_there)
			s->errors[s->n_errors++] = (struct ads_error){e->sub->name, word};
		// A list of all has the variants in it each time, which leave no place.
		if (has_place || is_there || all)
			e->error = error;
	}
}

// All that is there (full state), or what changed. An error stands for what it leaves in use.
static void pick_sotw(struct ads_stream *s, const struct ads_type *t, const struct group *g,
	bool full_state, bool keeps)
{
	const struct marks marks = {s->resources.n, s->removed.n, s->n_errors};
	const char *name = g->entries[0].sub->name;
	for (size_t i = 0; i < g->n; i++) {
		struct subscription_entry *e = &g->entries[i];
		bool stays = waits(t, g, e) || (keeps && !seen_by(e));
		struct xds_variant *v = stays ? e->sent : seen_by(e);
		bool is_stuck = error_of(e) != 0 && is_same(e);
		bool was_stuck = e->error != 0 && error_of(e) == 0;
		if (v && !is_stuck && (full_state || was_stuck || e->asked || !is_same(e)))
			items_add(&s->resources, name, v);
	}
	items_unique(&s->resources, marks.resources);
	pick_errors(s, g, &marks, full_state);
}

static void pick_delta(struct ads_stream *s, const struct ads_type *t, const struct group *g)
{
	const struct marks marks = {s->resources.n, s->removed.n, s->n_errors};
	const char *name = g->entries[0].sub->name;
	bool is_absent = false;
	for (size_t i = 0; i < g->n; i++) {
		struct subscription_entry *e = &g->entries[i];
		struct xds_variant *now = seen_by(e);
		bool was_stuck = e->error != 0 && error_of(e) == 0, asked = e->asked || was_stuck;
		if (waits(t, g, e)) {
			if (e->sent)
				items_add(&s->scratch, name, e->sent);
			continue;
		}
		if (now)
			items_add(&s->scratch, name, now);
		if (now && (asked || !is_same(e)))
			items_add(&s->resources, name, now);
		if (e->sent && (!now || identity_cmp(e->sent, now) != 0))
			items_add(&s->removed, name, e->sent);
		is_absent |= !now && !e->sent && asked && error_of(e) == 0;
	}
	items_unique(&s->resources, marks.resources);
	items_unique(&s->removed, marks.removed);
	// What others of this client see stays.
	items_unique(&s->scratch, 0);
	items_subtract(&s->removed, marks.removed, &s->scratch);
	ads_items_clear(&s->scratch);
	// No constraints come first in the order.
	bool is_told = marks.removed < s->removed.n &&
	               identity_cmp(s->removed.list[marks.removed].variant, NULL) == 0;
	if (is_absent && !is_told)
		items_add(&s->removed, name, NULL);
	pick_errors(s, g, &marks, false);
}

static int reserve(struct ads_stream *s, size_t n)
{
	int rc = items_reserve(&s->resources, n);
	if (!rc)
		rc = items_reserve(&s->removed, 2 * n);
	if (!rc)
		rc = items_reserve(&s->scratch, n);
	s->n_errors = 0;
	if (rc || !s->catalog->source || n <= s->errors_room)
		return rc;
	struct ads_error *errors = realloc(s->errors, n * sizeof(*errors));
	if (!errors)
		return -ENOMEM;
	s->errors = errors;
	s->errors_room = n;
	return 0;
}

static void pick_all(struct ads_stream *s, struct ads_type *t, bool keeps, bool full_state)
{
	enum ads_due left = ADS_DUE_NOTHING;
	for (size_t i = 0; i < t->sub.n;) {
		struct group g = group_at(t, i);
		enum ads_due due = group_due(s, t, &g);
		bool keeps_it = keeps && due == ADS_DUE_REMOVAL;
		i += g.n;
		if (keeps_it)
			left = ADS_DUE_REMOVAL;
		if (s->protocol == ADS_SOTW)
			pick_sotw(s, t, &g, full_state, keeps_it);
		else if (!keeps_it)
			pick_delta(s, t, &g);
		if (!keeps_it)
			group_told(t, &g);
		if (!keeps_it && group_due(s, t, &g) != ADS_DUE_NOTHING)
			left = ADS_DUE_CHANGE;
	}
	t->due = left;
}

static int pick(struct ads_stream *s, uint32_t type, uint64_t now_ns, struct ads_response *ret)
{
	struct ads_type *t = &s->types[type];
	const struct catalog_type *of = &s->catalog->types[type];
	bool keeps = is_used(type) && (users_are_busy(s, type) || now_ns < break_ns(s, type));
	int rc = reserve(s, t->sub.n);
	if (rc)
		return rc;
	pick_all(s, t, keeps, of->info.full_state);
	// Entries of what is gone are of no use any more.
	t->sub.wild_is_stale |= s->removed.n > 0 && t->sub.n_wild > 0;
	t->exchange_ns = now_ns;
	t->asked = false;
	t->answered = false;
	t->version = of->version;
	t->nonce = ++s->last_nonce;
	*ret = (struct ads_response){s->protocol, &of->info, t->version, t->nonce, s->wraps,
		s->resources.list, s->resources.n, s->removed.list, s->removed.n, s->errors,
		s->n_errors};
	return 1;
}

int ads_stream_drain(struct ads_stream *s, uint64_t now_ns, struct ads_response *ret)
{
	ads_items_clear(&s->resources);
	ads_items_clear(&s->removed);
	int r = compare_all(s, now_ns);
	if (r < 0)
		return r;
	for (uint32_t type = 0; type < s->n_types; type++)
		if (is_change(type, s->types[type].due) && now_ns >= make_ns(s, type))
			return pick(s, type, now_ns, ret);
	for (size_t i = 0; i < N_BREAKING; i++) {
		enum resource_type type = breaking_order[i];
		if (s->types[type].due == ADS_DUE_REMOVAL && !users_are_busy(s, type) &&
			now_ns >= break_ns(s, type))
			return pick(s, type, now_ns, ret);
	}
	return 0;
}

uint64_t ads_stream_due_ns(const struct ads_stream *s)
{
	uint64_t due = UINT64_MAX;
	for (int i = RESOURCE_LISTENER; i <= RESOURCE_ROUTES; i++) {
		enum resource_type type = (enum resource_type)i;
		uint64_t its = make_ns(s, type);
		if (is_change(type, s->types[i].due) && its < due)
			due = its;
	}
	for (size_t i = 0; i < N_BREAKING; i++) {
		enum resource_type type = breaking_order[i];
		bool is_free = s->types[type].due == ADS_DUE_REMOVAL && !users_are_busy(s, type);
		uint64_t its = is_free ? break_ns(s, type) : UINT64_MAX;
		due = its < due ? its : due;
	}
	return due;
}
