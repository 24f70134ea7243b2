// SPDX-License-Identifier: Apache-2.0
// Both changes are merges of two sorted lists into a new one: linear, and undone by forgetting it.
#include "tools/shunt-xds/subscription.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void entry_fini(struct subscription_entry *e)
{
	free(e->name);
	resource_put(e->sent);
}

void subscription_fini(struct subscription *s)
{
	for (size_t i = 0; i < s->n; i++)
		entry_fini(&s->entries[i]);
	free(s->entries);
	*s = (struct subscription){0};
}

static int by_text(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;
	return strcmp(*x, *y);
}

// The names sorted, each once, without "*"; pointers are borrowed. *ret_star: it was among them.
// NULL = no memory.
static const char **sorted_names(char *const *names, size_t n, size_t *ret_n, bool *ret_star)
{
	const char **sorted = malloc((n + 1) * sizeof(char *));
	if (!sorted)
		return NULL;
	size_t n_kept = 0;
	*ret_star = false;
	for (size_t i = 0; i < n; i++)
		sorted[i] = names[i];
	if (n > 0)
		qsort(sorted, n, sizeof(char *), by_text);
	for (size_t i = 0; i < n; i++) {
		if (strcmp(sorted[i], "*") == 0)
			*ret_star = true;
		else if (n_kept == 0 || strcmp(sorted[n_kept - 1], sorted[i]) != 0)
			sorted[n_kept++] = sorted[i];
	}
	*ret_n = n_kept;
	return sorted;
}

// A list of entries under construction. Entries are moved in from the old list or made new; until
// commit() the old list still owns what was moved.
struct merge {
	struct subscription_entry *out;
	size_t n;
	size_t n_new;
};

static int merge_init(struct merge *m, size_t room)
{
	*m = (struct merge){.out = calloc(room + 1, sizeof(struct subscription_entry))};
	return m->out ? 0 : -ENOMEM;
}

static int merge_add(struct merge *m, const char *name, bool named)
{
	struct subscription_entry e = {.name = strdup(name), .named = named};
	if (!e.name)
		return -ENOMEM;
	m->out[m->n++] = e;
	m->n_new++;
	return 0;
}

static void merge_move(struct merge *m, const struct subscription_entry *e, bool named)
{
	m->out[m->n] = *e;
	m->out[m->n++].named = named;
}

// Frees what was made new: the entries whose name is not one of the old list's.
static void merge_undo(struct merge *m, const struct subscription *s)
{
	for (size_t i = 0, old = 0; i < m->n; i++) {
		while (old < s->n && s->entries[old].name != m->out[i].name &&
			strcmp(s->entries[old].name, m->out[i].name) < 0)
			old++;
		if (old == s->n || s->entries[old].name != m->out[i].name)
			entry_fini(&m->out[i]);
	}
	free(m->out);
}

// Frees the old entries that were not moved, and puts the new list in place.
static void merge_commit(struct merge *m, struct subscription *s)
{
	for (size_t i = 0, now = 0; i < s->n; i++) {
		while (now < m->n && strcmp(m->out[now].name, s->entries[i].name) < 0)
			now++;
		if (now == m->n || m->out[now].name != s->entries[i].name)
			entry_fini(&s->entries[i]);
	}
	free(s->entries);
	s->entries = m->out;
	s->n = m->n;
}

static int order_of(const struct subscription *s, size_t i, const char *name)
{
	if (i == s->n)
		return 1;
	return name ? strcmp(s->entries[i].name, name) : -1;
}

static int merge_names(struct merge *m, const struct subscription *s, const char *const *names,
	size_t n, bool wildcard)
{
	size_t old = 0;
	for (size_t i = 0; i < n || old < s->n;) {
		const char *name = i < n ? names[i] : NULL;
		int order = order_of(s, old, name);
		if (order > 0) {
			if (merge_add(m, name, true) < 0)
				return -ENOMEM;
			i++;
		} else if (order == 0) {
			merge_move(m, &s->entries[old++], true);
			i++;
		} else {
			if (wildcard)
				merge_move(m, &s->entries[old], false);
			old++;
		}
	}
	return 0;
}

int subscription_set_names(
	struct subscription *s, char *const *names, size_t n, bool empty_is_wildcard)
{
	size_t n_sorted;
	bool star;
	const char **sorted = sorted_names(names, n, &n_sorted, &star);
	if (!sorted)
		return -ENOMEM;
	bool wildcard = star || (n == 0 && empty_is_wildcard && !s->ever_named);
	struct merge m;
	int r = merge_init(&m, n_sorted + s->n);
	if (r == 0) {
		r = merge_names(&m, s, sorted, n_sorted, wildcard);
		if (r < 0)
			merge_undo(&m, s);
	}
	free(sorted);
	if (r < 0)
		return r;
	merge_commit(&m, s);
	s->wildcard = wildcard;
	s->ever_named |= n > 0;
	return 0;
}

// Entries of names that are in the set only, and none of those that are neither wanted by name, nor
// there, nor held by the client.
static int merge_wildcard(
	struct merge *m, const struct subscription *s, const struct resource_list *list)
{
	size_t old = 0;
	for (size_t i = 0; i < list->n || old < s->n;) {
		const char *name = i < list->n ? list->items[i]->name : NULL;
		int order = order_of(s, old, name);
		if (order > 0) {
			if (merge_add(m, name, false) < 0)
				return -ENOMEM;
			i++;
			continue;
		}
		const struct subscription_entry *e = &s->entries[old++];
		i += order == 0;
		if (order == 0 || e->named || e->sent)
			merge_move(m, e, e->named);
	}
	return 0;
}

int subscription_refresh(
	struct subscription *s, const struct resource_set *set, enum resource_type type)
{
	const struct resource_list *list = &set->types[type];
	if (s->wildcard) {
		struct merge m;
		if (merge_init(&m, s->n + list->n) < 0)
			return -ENOMEM;
		if (merge_wildcard(&m, s, list) < 0) {
			merge_undo(&m, s);
			return -ENOMEM;
		}
		merge_commit(&m, s);
	}
	for (size_t i = 0; i < s->n; i++)
		s->entries[i].current = resource_set_find(set, type, s->entries[i].name);
	return 0;
}

void subscription_forget(struct subscription *s)
{
	for (size_t i = 0; i < s->n; i++)
		subscription_sent(&s->entries[i], NULL);
}

void subscription_sent(struct subscription_entry *e, struct resource *r)
{
	struct resource *before = e->sent;
	e->sent = r ? resource_get(r) : NULL;
	resource_put(before);
}
