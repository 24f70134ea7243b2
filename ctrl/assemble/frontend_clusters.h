// SPDX-License-Identifier: Apache-2.0
// What one frontend's configurations mean for the clusters, which all frontends share: who holds
// them, and whose word on them counts.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct assembled_frontend;
struct xds_config;

// Holds the clusters whose numbers the configuration's routes need, of its entries from `from` on.
// Those that are new are made, and wait for their configuration. How many entries hold theirs now,
// counted from the first: all, or there is no memory for the next one, or no number (reterr).
[[nodiscard]] uint32_t frontend_clusters_hold(const struct assembled_frontend *,
	const struct xds_config *, uint32_t from, struct lb_err *reterr);
// The reverse, of its first n entries. What nobody holds any more is leaving.
void frontend_clusters_release(
	const struct assembled_frontend *, const struct xds_config *, uint32_t n);
// As assembler_in_use().
bool frontend_clusters_in_use(const struct assembled_frontend *, const char *cluster);
// Configures those of `wanted`, which takes effect; all are held. One that cannot follow holds
// up no other (A74-T07). ret_refused: why the first of them cannot, and how many others.
void frontend_clusters_configure(const struct assembled_frontend *, struct lb_err *ret_refused);
// While a newer configuration cannot take effect, the clusters of the one that serves are told
// where their endpoints are now. Nothing else of the newer one is seen (DM-28).
void frontend_clusters_follow_endpoints(const struct assembled_frontend *);
