// SPDX-License-Identifier: Apache-2.0
// The endpoints of LOGICAL_DNS clusters. Not asking for them (ctrl/dns).
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

static int set_addresses(struct res_endpoints *r, const struct ip_port *list, uint32_t n)
{
	struct {
		struct res_priority priority;
		struct res_locality locality;
		struct res_endpoint endpoint;
		struct res_endpoint_more more;
	} *m = xds_arena_alloc(&r->base.arena, 1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->more = (struct res_endpoint_more){
		.additional = list + 1,
		.n_additional = n - 1,
		.hostname = (const char *)(list + n),
		.hash_key = "",
	};
	m->endpoint = (struct res_endpoint){
		.addr = list[0],
		.weight = 1,
		.more = n > 1 || *m->more.hostname ? &m->more : NULL,
	};
	m->locality = (struct res_locality){"", "", "", 1, &m->endpoint, 1};
	m->priority = (struct res_priority){&m->locality, 1};
	r->priorities = &m->priority;
	r->n_priorities = 1;
	return 0;
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
	if (n > 0 && set_addresses(r, (const struct ip_port *)base->bytes, n)) {
		xds_res_put(base);
		return NULL;
	}
	return r;
}
