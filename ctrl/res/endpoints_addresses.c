// SPDX-License-Identifier: Apache-2.0
// The endpoints of LOGICAL_DNS clusters, made of the addresses that ctrl/dns has found.
#include "ctrl/res/endpoints.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The addresses, each once, in the order given.
static uint32_t copy_once(const struct ip_port *from, uint32_t n, struct ip_port *to)
{
	uint32_t n_kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = 0;
		while (k < n_kept && !ip_port_eq(&to[k], &from[i]))
			k++;
		if (k == n_kept)
			to[n_kept++] = from[i];
	}
	return n_kept;
}

static int set_addresses(
	struct res_endpoints *r, const struct ip_port *list, uint32_t n, const char *hostname)
{
	const struct lb_leaf_endpoint endpoint = {.addresses = list,
		.n_addresses = n,
		.weight = 1,
		.health = LB_LEAF_UNKNOWN,
		.hostname = str_from(hostname)};
	const struct lb_leaf_locality locality = {STR("//"), 1, &endpoint, 1};
	const struct lb_leaf_priority priority = {&locality, 1};
	const struct ip_port *second;
	r->list = lb_leaf_endpoints_new(&priority, n > 0, &second);
	return r->list ? 0 : -ENOMEM;
}

struct res_endpoints *res_endpoints_of_addresses(
	const char *name, const struct ip_port *addresses, uint32_t n, const char *hostname)
{
	size_t hostname_size = strlen(hostname) + 1;
	uint8_t *bytes = malloc(n * sizeof(*addresses) + hostname_size);
	if (!bytes)
		return NULL;
	n = copy_once(addresses, n, (struct ip_port *)bytes);
	memcpy(bytes + n * sizeof(*addresses), hostname, hostname_size);
	struct xds_res *base = xds_res_new(&res_type_endpoints, sizeof(struct res_endpoints), name,
		bytes, n * sizeof(*addresses) + hostname_size);
	free(bytes);
	if (!base)
		return NULL;
	struct res_endpoints *r = res_endpoints_from(base);
	if (set_addresses(r, (const struct ip_port *)base->bytes, n, hostname)) {
		xds_res_put(base);
		return NULL;
	}
	return r;
}
