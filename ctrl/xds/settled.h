// SPDX-License-Identifier: Apache-2.0
// Hooks that are called when all events of one message, timer or transport event have been told, so
// that a watcher of many resources acts once. The last one that was added runs first.
// Thread: ctrl.
#pragma once

// Its owner's storage.
struct xds_settled {
	void (*fn)(struct xds_settled *);
	struct xds_settled *next; // the list's
};

// Zeroed before the first use; nothing to free.
struct xds_settled_list {
	struct xds_settled *first;
	struct xds_settled *following; // while they run: who is next
};
void xds_settled_add(struct xds_settled_list *, struct xds_settled *);
// It does not run any more. Not on the list = nothing happens.
void xds_settled_remove(struct xds_settled_list *, struct xds_settled *);
// Hooks may come and go while they run, but not run again inside.
void xds_settled_run(struct xds_settled_list *);
