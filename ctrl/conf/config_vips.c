// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_vips.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_address.h"

#include <errno.h>

static bool has_family(const struct config *c, bool v4)
{
	for (unsigned i = 0; i < c->n_ports; i++)
		for (unsigned j = 0; j < c->ports[i].n_addresses; j++)
			if (ip_is_v4(&c->ports[i].address_ips[j]) == v4)
				return true;
	return false;
}

// Who has an address of a prefix is us (dataplane/net/route.c): so the link's other hosts would be,
// who are heard no more; and what is for a port's own address alone would be for everybody who may
// reach a VIP.
static int check_own(const struct config *c, const struct config_vip *v, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct config_port *p = &c->ports[i];
		for (unsigned j = 0; j < p->n_addresses; j++)
			if (ip_in_prefix(&p->address_ips[j], &v->range.ip, v->range.bits))
				return lb_err_set(reterr, "%s contains ports[%u].addresses[%u]: %s",
					v->prefix, i, j, p->addresses[j]);
	}
	return 0;
}

// What this host answers for it can't send to.
static int check_gateways(const struct config *c, const struct config_vip *v, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct config_port *p = &c->ports[i];
		for (unsigned k = 0; k < p->n_gateway_ips; k++)
			if (ip_in_prefix(&p->gateway_ips[k], &v->range.ip, v->range.bits))
				return lb_err_set(
					reterr, "%s contains a gateway of ports[%u]", v->prefix, i);
	}
	return 0;
}

static int check_vip(const struct config *c, unsigned i, struct lb_err *reterr)
{
	struct config_vip *v = &c->vips[i];
	if (config_prefix_parse_of_hosts(v->prefix, &v->range, reterr))
		return -EINVAL;
	v->answers = !v->arp || *v->arp;
	bool v4 = ip_is_v4(&v->range.ip);
	if (!has_family(c, v4))
		return lb_err_set(
			reterr, "%s: no port has an %s address", v->prefix, v4 ? "IPv4" : "IPv6");
	for (unsigned k = 0; k < i; k++)
		if (config_prefixes_overlap(&v->range, &c->vips[k].range))
			return lb_err_set(reterr, "%s overlaps vips[%u]: %s", v->prefix, k,
				c->vips[k].prefix);
	return check_own(c, v, reterr) ? -EINVAL : check_gateways(c, v, reterr);
}

int config_check_vips(struct config *c, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_vips; i++)
		if (check_vip(c, i, reterr))
			return lb_err_within(reterr, "vips[%u].prefix", i);
	return 0;
}

const struct config_vip *config_vip_of(const struct config *c, const struct ip_addr *ip)
{
	for (unsigned i = 0; i < c->n_vips; i++)
		if (ip_in_prefix(ip, &c->vips[i].range.ip, c->vips[i].range.bits))
			return &c->vips[i];
	return NULL;
}
