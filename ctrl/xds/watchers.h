// SPDX-License-Identifier: Apache-2.0
// The watchers of one name, in order of arrival, and how events reach them.
// Thread: ctrl.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct xds_event;
struct xds_watcher;

// TAILQ_INIT before the first use; nothing to free.
TAILQ_HEAD(xds_watchers, xds_watcher);

// Appends the watcher. It does not get events of rounds up to this one.
void xds_watchers_add(struct xds_watchers *, struct xds_watcher *, uint64_t round);
void xds_watchers_remove(struct xds_watchers *, struct xds_watcher *); // it must be on the list

// Tells the watchers that have not had this round; rounds ascend. Watchers may start and cancel
// watches inside; the list itself must stay allocated. Returns true if any was told.
bool xds_watchers_tell(struct xds_watchers *, const struct xds_event *, uint64_t round);
