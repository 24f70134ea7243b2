// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/watchers.h"

#include "ctrl/xds/client.h"

#include <stddef.h>

void xds_watchers_add(struct xds_watchers *list, struct xds_watcher *w, uint64_t round)
{
	w->seen = round;
	w->next = NULL;
	w->prev = list->last;
	*(list->last ? &list->last->next : &list->first) = w;
	list->last = w;
}

void xds_watchers_remove(struct xds_watchers *list, struct xds_watcher *w)
{
	*(w->prev ? &w->prev->next : &list->first) = w->next;
	*(w->next ? &w->next->prev : &list->last) = w->prev;
	w->next = w->prev = NULL;
}

// After each call the list is read from its start, and `seen` says who has been told.
bool xds_watchers_tell(struct xds_watchers *list, const struct xds_event *event, uint64_t round)
{
	bool told = false;
	struct xds_watcher *w = list->first;
	while (w) {
		if (w->seen >= round) {
			w = w->next;
			continue;
		}
		told = true;
		w->seen = round;
		w->on_event(w, event);
		w = list->first;
	}
	return told;
}
