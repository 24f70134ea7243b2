// SPDX-License-Identifier: Apache-2.0
// Applies one frontend's configurations to the clusters, which all frontends share: which frontends
// hold a cluster, and whose configuration of it is used.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct assembled_frontend;
struct xds_config;

// Holds the clusters that the configuration's routes refer to, for its entries from `from` on, and
// makes new ones, which wait for their configuration. Returns how many entries, from the first on,
// hold theirs now: all, unless out of memory or out of numbers (reterr).
[[nodiscard]] uint32_t frontend_clusters_hold(const struct assembled_frontend *,
	const struct xds_config *, uint32_t from, struct lb_err *reterr);
// Releases those of its first n entries. A cluster that nobody holds is leaving.
void frontend_clusters_release(
	const struct assembled_frontend *, const struct xds_config *, uint32_t n);
// Implements assembler_in_use().
bool frontend_clusters_in_use(const struct assembled_frontend *, const char *cluster);
// Configures the clusters of `wanted`, which takes effect; all are held. A cluster that fails does
// not hold up others (A74-T07). ret_refused: why the first one failed, and how many others did.
void frontend_clusters_configure(const struct assembled_frontend *, struct lb_err *ret_refused);
// While a newer configuration cannot take effect, gives its endpoints to the clusters of the
// serving one, and nothing else of it (DM-28).
void frontend_clusters_follow_endpoints(const struct assembled_frontend *);
