// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/watchers.h"

#include "ctrl/xds/client.h"

void xds_watchers_add(struct xds_watchers *list, struct xds_watcher *w, uint64_t round)
{
	w->seen = round;
	TAILQ_INSERT_TAIL(list, w, link);
}

void xds_watchers_remove(struct xds_watchers *list, struct xds_watcher *w)
{
	TAILQ_REMOVE(list, w, link);
}

// After each call the list is read from its start, and `seen` says who has been told.
bool xds_watchers_tell(struct xds_watchers *list, const struct xds_event *event, uint64_t round)
{
	bool told = false;
	struct xds_watcher *w = TAILQ_FIRST(list);
	while (w) {
		if (w->seen >= round) {
			w = TAILQ_NEXT(w, link);
			continue;
		}
		told = true;
		w->seen = round;
		w->on_event(w, event);
		w = TAILQ_FIRST(list);
	}
	return told;
}
