// SPDX-License-Identifier: Apache-2.0
// Hooks that run when all events of one message, timer or transport event have been reported, so
// that a watcher of many resources acts once. The hook added last runs first.
// Thread: ctrl.
#pragma once

// In its owner's storage.
struct xds_settled {
	void (*fn)(struct xds_settled *);
	struct xds_settled *next; // the list's
};

// Zeroed before the first use; nothing to free.
struct xds_settled_list {
	struct xds_settled *first;
	struct xds_settled *following; // while hooks run: the next one
};
void xds_settled_add(struct xds_settled_list *, struct xds_settled *);
// Removes a hook. No effect if it is not on the list.
void xds_settled_remove(struct xds_settled_list *, struct xds_settled *);
// Runs the hooks. They may be added and removed meanwhile, but the call does not nest.
void xds_settled_run(struct xds_settled_list *);
