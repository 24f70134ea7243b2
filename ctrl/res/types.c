// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/types.h"

#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"

// Make before break: what routes need is asked for before what needs it goes (xDS protocol,
// "Eventual consistency considerations").
const struct xds_type *const res_types[RES_N_TYPES] = {
	&res_type_cluster,
	&res_type_endpoints,
	&res_type_listener,
	&res_type_route_config,
};
