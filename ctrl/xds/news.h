// SPDX-License-Identifier: Apache-2.0
// The events that the watchers of an entry get, and their order.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

// Puts an entry on the list of news. Later news replaces earlier news, except that a new value is
// reported together with what followed it.
void xds_news_add(struct xds_entry *, enum xds_news);
// Reports all news of the event. Watchers that were added after it have had it already.
void xds_news_tell(struct xds_cache *, uint64_t event);
// The number of the event's last round; each event takes two.
static inline uint64_t xds_news_round(uint64_t event)
{
	return 2 * event + 1;
}
// Reports the present state to a new watcher (WA-02, WA-03, FM-10).
void xds_news_tell_new(struct xds_entry *, struct xds_watcher *);
