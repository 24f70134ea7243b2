// SPDX-License-Identifier: Apache-2.0
// Events: what the watchers of an entry are told, and in which order.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

// Puts an entry on the list of news; a later piece replaces an earlier one, but a new value is told
// with whatever came of it since.
void xds_news_add(struct xds_entry *, enum xds_news);
// Tells the watchers all news of the event. Those that came after it know already.
void xds_news_tell(struct xds_cache *, uint64_t event);
// The last round of telling that an event takes: each takes two.
static inline uint64_t xds_news_round(uint64_t event)
{
	return 2 * event + 1;
}
// What a new watcher is to know at once (WA-02, WA-03, FM-10).
void xds_news_tell_new(struct xds_entry *, struct xds_watcher *);
