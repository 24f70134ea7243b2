// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_tunnels.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_numbers.h"

#include <errno.h>

// Packets from there are dropped before anybody looks for a tunnel.
static int check_sources(
	const struct config *c, const struct config_tunnel *t, struct lb_err *reterr)
{
	for (unsigned i = 0; i < t->n_from; i++)
		for (unsigned k = 0; k < c->n_vips; k++)
			if (config_prefixes_overlap(&t->sources[i], &c->vips[k].range))
				return lb_err_set(reterr, "from[%u]: %s overlaps vips[%u]: %s", i,
					t->from[i], k, c->vips[k].prefix);
	return 0;
}

static int parse_list(char *const *texts, unsigned n, const char *field, struct ip_prefix *ret,
	struct lb_err *reterr)
{
	for (unsigned i = 0; i < n; i++)
		if (config_prefix_parse_of_hosts(texts[i], &ret[i], reterr))
			return lb_err_within(reterr, "%s[%u]", field, i);
	return 0;
}

static int check_gue(struct config_tunnel *t, struct lb_err *reterr)
{
	uint32_t port;
	if (config_number_check(CONFIG_TUNNEL_PORT, t->port, &port, reterr))
		return -EINVAL;
	t->udp_port = (uint16_t)port;
	if (parse_list(t->hops, t->n_hops, "hops", t->relays, reterr))
		return -EINVAL;
	for (unsigned i = 0; i < t->n_hops; i++)
		if (!ip_is_v4(&t->relays[i].ip))
			return lb_err_set(
				reterr, "hops[%u]: %s: GLB names hosts by IPv4", i, t->hops[i]);
	return 0;
}

static int check_tunnel(const struct config *c, struct config_tunnel *t, struct lb_err *reterr)
{
	if (parse_list(t->from, t->n_from, "from", t->sources, reterr) ||
		check_sources(c, t, reterr))
		return -EINVAL;
	if (t->kind == CONFIG_TUNNEL_GUE)
		return check_gue(t, reterr);
	if (t->port || t->n_hops)
		return lb_err_set(reterr, "%s: only of kind gue", t->port ? "port" : "hops");
	return 0;
}

int config_check_tunnels(struct config *c, struct lb_err *reterr)
{
	if (c->n_tunnels && !c->n_vips)
		return lb_err_set(
			reterr, "tunnels: what they bring is for vips, and there are none");
	for (unsigned i = 0; i < c->n_tunnels; i++)
		if (check_tunnel(c, &c->tunnels[i], reterr))
			return lb_err_within(reterr, "tunnels[%u]", i);
	return 0;
}
