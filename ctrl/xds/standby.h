// SPDX-License-Identifier: Apache-2.0
// What an earlier run kept of a server's resources stands in for the server until it speaks
// (docs/decisions/cold-start.md): once it has been silent for XDS_STANDBY_NS since something was
// first asked of it, or could not be reached twice, each name that is asked for gets the value of
// then, decoded and checked as the server's own word would be, and marked stale, or is absent as it
// was. The first response ends it: from then on the server's word comes, and takes the place of
// what is stale name by name. Nobody waits for names that were absent as long as for others if they
// are asked for until XDS_STANDBY_ABSENT_NS later, and the server has not spoken of them.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"
#include "lb/base/time.h"

#include <stdint.h>

#define XDS_STANDBY_NS (2 * NS_PER_SECOND)
#define XDS_STANDBY_ATTEMPTS 2
#define XDS_STANDBY_ABSENT_NS (15 * NS_PER_SECOND)

struct xds_standby;
struct xds_state;

// Of what the state has of the cache's server; both are borrowed and outlive it. Returns 0 with
// *ret NULL if that is nothing; -ENOMEM.
[[nodiscard]] int xds_standby_new(
	struct xds_cache *, const struct xds_state *, struct xds_standby **ret);
void xds_standby_free(struct xds_standby *); // NULL is fine, in all of these
// Somebody watches a name that nobody did.
void xds_standby_watched(struct xds_standby *, struct xds_entry *);
// A stream ended, or none could be opened.
void xds_standby_failed(struct xds_standby *);
// The server has spoken: it is over, as cache.stands_by says. Values that are stale stay, and its
// whole time begins for them.
void xds_standby_end(struct xds_standby *);
