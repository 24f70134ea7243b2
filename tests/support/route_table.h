// SPDX-License-Identifier: Apache-2.0
// Makes a whole table of routes at once.
// Thread: the test's own.
#pragma once

#include "lb/route/route.h"

// conf->n_vhosts virtual hosts, of which `compiled` is the rest. NULL: reterr says why.
static inline struct lb_route_table *route_table_of(const struct lb_route_table_conf *conf,
	const struct lb_vhost_conf *vhosts, struct lb_vhost *const *compiled, struct lb_err *reterr)
{
	struct lb_route_table *t = lb_route_table_new(conf);
	int rc = 0;
	for (uint32_t i = 0; t && !rc && i < conf->n_vhosts; i++)
		rc = lb_route_table_add(t, &vhosts[i], compiled[i], reterr);
	if (t && !rc && lb_route_table_seal(t, reterr) == 0)
		return t;
	lb_route_table_put(t);
	return NULL;
}
