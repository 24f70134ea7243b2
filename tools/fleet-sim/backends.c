// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet-sim/backends.h"

#include "lb/pick/leaf_endpoints.h"

#include <stdlib.h>

#define FIRST 0x0a000000 // 10.0.0.0
#define PORT 50051

static const char names[BACKENDS_LOCALITIES_MAX] = {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'};

static struct lb_leaf_endpoints *make(
	const struct lb_leaf_endpoint *list, uint32_t n, uint32_t n_localities)
{
	struct lb_leaf_locality localities[BACKENDS_LOCALITIES_MAX];
	const struct lb_leaf_priority only = {localities, n_localities};
	const struct ip_port *second;
	for (uint32_t i = 0, at = 0; i < n_localities; i++) {
		uint32_t end = (uint32_t)((uint64_t)n * (i + 1) / n_localities);
		localities[i] = (struct lb_leaf_locality){{&names[i], 1}, 1, list + at, end - at};
		at = end;
	}
	return lb_leaf_endpoints_new(&only, 1, &second);
}

struct lb_leaf_endpoints *backends_new(uint32_t n, uint32_t n_replaced, uint32_t n_localities)
{
	struct ip_port *addresses = malloc(n * sizeof(*addresses));
	struct lb_leaf_endpoint *list = malloc(n * sizeof(*list));
	struct lb_leaf_endpoints *made = NULL;
	for (uint32_t i = 0; addresses && list && i < n; i++) {
		uint32_t at = i < n_replaced ? n + i : i;
		addresses[i] = (struct ip_port){ip_from_v4(FIRST + at), PORT};
		list[i] = (struct lb_leaf_endpoint){
			&addresses[i], 1, 1, LB_LEAF_HEALTHY, STR(""), STR("")};
	}
	if (addresses && list)
		made = make(list, n, n_localities);
	free(addresses);
	free(list);
	return made;
}
