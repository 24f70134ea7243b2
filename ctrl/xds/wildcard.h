// SPDX-License-Identifier: Apache-2.0
// Wildcards: a subscription to "*" stands for all names that the server has for its parameters
// (SW-*, DL-*). Each name that comes so becomes an entry like any other, but for the server not
// being asked for it.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

// A response has a resource of this name: those who watch "*" with parameters that match may watch
// the name before it is listed, since only what is watched is taken in. 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_adopt(
	struct xds_cache *, uint32_t type, const char *name, const struct xds_constraints *);
// All resources of a response are listed. The first one to a wildcard that outlived its stream has
// all names, and of what it leaves out the server did not know. 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_sweep(struct xds_cache *, uint32_t type);
// The request of the type that is in flight has left.
void xds_wildcard_sent(struct xds_cache *, uint32_t type);
void xds_wildcard_answered(struct xds_entry *);
// All of the response has been applied: was it an answer to a wildcard?
void xds_wildcard_settle(struct xds_cache *, uint32_t type);
