// SPDX-License-Identifier: Apache-2.0
// Wildcards: a subscription to "*" stands for all names that the server has for its parameters
// (SW-*, DL-*). Each name received through it becomes an ordinary entry, except that the server is
// not asked for it.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

// A response has a resource of this name, be it good or refused: before it takes effect, watchers
// of "*" with matching parameters may watch the name, since only watched resources are stored.
// Returns 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_adopt(
	struct xds_cache *, uint32_t type, const char *name, const struct xds_constraints *);
// All resources of a response are listed. The first response to a wildcard that outlived its stream
// lists all names: removes those that it omits. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_sweep(struct xds_cache *, uint32_t type);
// The request of the type that was in flight has been sent.
void xds_wildcard_sent(struct xds_cache *, uint32_t type);
void xds_wildcard_answered(struct xds_entry *);
// The whole response has been applied: checks whether it answered a wildcard. lists_all: what it
// does not list was deleted.
void xds_wildcard_settle(struct xds_cache *, uint32_t type, bool lists_all);
