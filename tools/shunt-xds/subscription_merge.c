// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-xds/subscription_merge.h"

#include "ctrl/xds/variants/params.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void subscription_entry_fini(struct subscription_entry *e, const struct catalog_type *type)
{
	xds_variant_put(e->sent);
	if (e->is_wanted)
		catalog_unwant(type, e->sub);
	(void)xds_sub_put(type->cache, e->sub);
}

static void merge_undo(struct subscription_merge *m, const struct catalog_type *type)
{
	for (size_t i = 0; i < m->n; i++) {
		struct subscription_entry *e = &m->out[i];
		if (e->is_new)
			subscription_entry_fini(e, type);
		else if (e->is_newly_wanted)
			catalog_unwant(type, e->sub);
	}
	free(m->out);
}

int subscription_entry_cmp(const struct subscription_entry *e, const struct locator *l)
{
	int order = strcmp(e->sub->name, l->name);
	return order ? order : xds_params_cmp(e->sub->params, l->params);
}

static int merge_add(
	struct subscription_merge *m, const struct catalog_type *type, const struct locator *l)
{
	struct subscription_entry e = {.is_listed = true, .is_new = true};
	bool is_new;
	int rc = xds_sub_get(type->cache, l->name, l->params, &e.sub, &is_new);
	if (!rc)
		m->out[m->n++] = e;
	return rc;
}

int subscription_merge_begin(struct subscription_merge *m, const struct subscription *s,
	const struct catalog_type *type, const struct locator *list, size_t n)
{
	*m = (struct subscription_merge){0};
	m->out = malloc((s->n + n + 1) * sizeof(*m->out));
	if (!m->out)
		return -ENOMEM;
	size_t old = 0, i = 0;
	while (i < n || old < s->n) {
		int order = old == s->n ? 1
		            : i == n    ? -1
		                        : subscription_entry_cmp(&s->entries[old], &list[i]);
		if (order > 0) {
			int rc = m->n < SUBSCRIPTION_MAX ? merge_add(m, type, &list[i++]) : -E2BIG;
			if (rc) {
				merge_undo(m, type);
				return rc;
			}
			continue;
		}
		m->out[m->n] = s->entries[old++];
		m->out[m->n].is_listed = order == 0;
		m->out[m->n].is_newly_wanted = false;
		m->out[m->n++].is_new = false;
		i += order == 0;
	}
	return 0;
}

// What is named fits into what the source has for one client.
static int merge_admit(const struct subscription_merge *m, const struct catalog_type *type)
{
	struct catalog_source *source = type->source;
	size_t len = 0;
	bool is_more = false;
	for (size_t i = 0; source && i < m->n; i++) {
		const struct subscription_entry *e = &m->out[i];
		if (e->named)
			len += source->len(source, e->sub);
		is_more |= e->named && !e->is_wanted;
	}
	return is_more ? source->admit(source, type->index, len) : 0;
}

// Asks the source for what is named. Undone with the merge.
static int merge_want(struct subscription_merge *m, const struct catalog_type *type)
{
	for (size_t i = 0; i < m->n; i++) {
		struct subscription_entry *e = &m->out[i];
		if (!e->named || e->is_wanted)
			continue;
		int rc = catalog_want(type, e->sub);
		if (rc)
			return rc;
		e->is_wanted = e->is_newly_wanted = true;
		const struct catalog_word *word = catalog_word(e->sub);
		e->after = word ? word->not_kept : 0;
	}
	return 0;
}

void subscription_merge_commit(
	struct subscription_merge *m, struct subscription *s, const struct catalog_type *type)
{
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		struct subscription_entry *e = &m->out[i];
		e->is_new = e->is_listed = e->is_newly_wanted = false;
		if (e->is_wanted && !e->named) {
			catalog_unwant(type, e->sub);
			e->is_wanted = false;
		}
		e->left &= !e->named && !e->wild && e->sent;
		if (e->named || e->wild || e->left)
			m->out[n++] = *e;
		else
			subscription_entry_fini(e, type);
	}
	free(s->entries);
	s->entries = m->out;
	s->n = n;
}

int subscription_merge_finish(
	struct subscription_merge *m, struct subscription *s, const struct catalog_type *type)
{
	int rc = merge_admit(m, type);
	if (!rc)
		rc = merge_want(m, type);
	if (rc)
		merge_undo(m, type);
	else
		subscription_merge_commit(m, s, type);
	return rc;
}
