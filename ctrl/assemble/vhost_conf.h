// SPDX-License-Identifier: Apache-2.0
// One decoded virtual host as input of lb_vhost_new(): clusters by id, patterns by their compiled
// sets, rewrites only from trusted servers. Short-lived: it borrows from the resource.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"
#include "lb/route/route.h"

#include <stdbool.h>

struct cluster_set;
struct res_vhost;

struct vhost_conf_env {
	const struct cluster_set *clusters;
	bool is_trusted; // the server is trusted (AR-01, AR-02)
	// The compiled forms of the patterns in the order of vhost_patterns().
	const struct lb_regex_ref *paths, *headers;
	uint16_t number; // of its counters; 0 = none
};

struct vhost_conf {
	struct lb_vhost_conf conf;
	struct lb_arena arena; // the conf's arrays
};

// Returns 0, or -EINVAL with the reason: out of memory, or a cluster that is not in the set. Call
// fini() either way.
[[nodiscard]] int vhost_conf_init(struct vhost_conf *, const struct res_vhost *,
	const struct vhost_conf_env *, struct lb_err *reterr);
void vhost_conf_fini(struct vhost_conf *);

// The patterns of its paths and of its headers. With NULL lists it only counts.
void vhost_patterns(const struct res_vhost *, struct str *paths, uint32_t *ret_n_paths,
	struct str *headers, uint32_t *ret_n_headers);
