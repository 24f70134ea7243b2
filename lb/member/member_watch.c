// SPDX-License-Identifier: Apache-2.0
// Nearly every member is watched by one list, which it knows itself. Where there are more, as
// while one list takes over from another, each list has links for its members.
#include "lb/base/check.h"
#include "lb/member/member_inside.h"

#include <stdlib.h>

// Of the watcher's member of this index: its place among those who watch that.
struct lb_member_link {
	struct lb_member_link *next;
	struct lb_member_watcher *watcher;
};

struct listener {
	struct lb_member_watcher *watcher; // NULL = nobody
	uint32_t index;
};

// Watchers are being told of this member.
struct lb_member_round {
	struct lb_member_round *outer;
	const struct lb_member *member;
	struct listener next; // so that a watcher may leave meanwhile
};

static struct listener listener_of(const struct lb_member_link *link)
{
	if (!link)
		return (struct listener){NULL, 0};
	return (struct listener){link->watcher, (uint32_t)(link - link->watcher->links)};
}

static struct listener first_of(const struct lb_member *m)
{
	if (m->is_linked)
		return listener_of(m->links);
	return (struct listener){m->watcher, m->watcher_index};
}

static struct listener next_of(const struct lb_member *m, struct listener l)
{
	return listener_of(m->is_linked ? l.watcher->links[l.index].next : NULL);
}

static bool have_links(struct lb_member_watcher *w)
{
	if (!w->links)
		w->links = malloc(w->n * sizeof(w->links[0]));
	return w->links;
}

static void link_first(struct lb_member *m, struct lb_member_watcher *w, uint32_t index)
{
	struct lb_member_link *link = &w->links[index];
	*link = (struct lb_member_link){m->links, w};
	m->links = link;
	w->n_linked++;
}

static void unlinked(struct lb_member_watcher *w)
{
	if (--w->n_linked)
		return;
	free(w->links);
	w->links = NULL;
}

bool lb_member_watch(struct lb_member *m, struct lb_member_watcher *w, uint32_t index)
{
	DCHECK(index < w->n);
	struct listener only = first_of(m);
	if (!only.watcher) {
		m->watcher = w;
		m->watcher_index = index;
		return true;
	}
	if (!have_links(w))
		return false;
	if (!m->is_linked) {
		if (!have_links(only.watcher)) {
			w->n_linked++;
			unlinked(w);
			return false;
		}
		m->is_linked = true;
		m->links = NULL;
		link_first(m, only.watcher, only.index);
	}
	link_first(m, w, index);
	return true;
}

bool lb_member_is_watched(const struct lb_member *m)
{
	return m->watcher;
}

static void unlink_from(struct lb_member *m, struct lb_member_link *link)
{
	struct lb_member_link **at = &m->links;
	while (*at != link) {
		CHECK(*at);
		at = &(*at)->next;
	}
	*at = link->next;
	unlinked(link->watcher);
	struct lb_member_link *last = m->links;
	if (last->next)
		return;
	struct listener only = listener_of(last);
	m->is_linked = false;
	m->watcher = only.watcher;
	m->watcher_index = only.index;
	unlinked(only.watcher);
}

void lb_member_unwatch(struct lb_member *m, struct lb_member_watcher *w, uint32_t index)
{
	struct listener leaves = {w, index}, after = next_of(m, leaves);
	for (struct lb_member_round *r = lb_member_env_of(m)->rounds; r; r = r->outer)
		if (r->member == m && r->next.watcher == w && r->next.index == index)
			r->next = after;
	if (m->is_linked) {
		unlink_from(m, &w->links[index]);
		return;
	}
	CHECK(m->watcher == w && m->watcher_index == index);
	m->watcher = NULL;
}

void lb_member_tell(struct lb_member *m)
{
	struct lb_member_env *env = lb_member_env_of(m);
	struct lb_member_round r = {env->rounds, m, {NULL, 0}};
	env->rounds = &r;
	if (env->on_change)
		env->on_change(env->ctx, m);
	// Whoever was still to be told by an outer round is told by this one.
	for (struct lb_member_round *o = r.outer; o; o = o->outer)
		if (o->member == m)
			o->next.watcher = NULL;
	r.next = first_of(m);
	while (r.next.watcher) {
		struct listener l = r.next;
		r.next = next_of(m, l);
		l.watcher->on_change(l.watcher, l.index);
	}
	env->rounds = r.outer;
}

bool lb_member_is_told(const struct lb_member *m)
{
	for (const struct lb_member_round *r = lb_member_env_of(m)->rounds; r; r = r->outer)
		if (r->member == m)
			return true;
	return false;
}
