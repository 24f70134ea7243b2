// SPDX-License-Identifier: Apache-2.0
// Building of an xds_config: mutable here, immutable once delivered. Not for users of configs.
// Thread: ctrl.
#pragma once

#include "ctrl/base/arena.h"
#include "ctrl/deps/depmgr.h"

#include <stdbool.h>

struct config_builder {
	struct xds_config *config; // count 1; clusters has room for n_clusters, zeroed
	struct xds_arena *arena; // of the config
};

// Takes references of both. 0 or -ENOMEM.
[[nodiscard]] int config_builder_init(struct config_builder *, struct res_listener *,
	struct res_route_config *, int32_t vhost, uint32_t n_clusters);
// By name, where clusters were filled in in another order.
void config_builder_sort(struct config_builder *);
// A text of the configuration; NULL = no memory.
const char *config_builder_text(struct config_builder *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// Same parts and same texts.
bool xds_config_eq(const struct xds_config *, const struct xds_config *);
