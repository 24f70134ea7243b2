// SPDX-License-Identifier: Apache-2.0
// Who watches one name, in the order in which they came, and how they are told of it.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct xds_event;
struct xds_watcher;

// Zeroed before the first use; nothing to free.
struct xds_watchers {
	struct xds_watcher *first, *last;
};

// To the end. It knows already what is told in rounds up to this one.
void xds_watchers_add(struct xds_watchers *, struct xds_watcher *, uint64_t round);
void xds_watchers_remove(struct xds_watchers *, struct xds_watcher *); // it is there

// Tells those that do not know this round yet; rounds ascend. Watchers may cancel themselves and
// others and start new ones inside; the list itself must last. True = somebody was told.
bool xds_watchers_tell(struct xds_watchers *, const struct xds_event *, uint64_t round);
