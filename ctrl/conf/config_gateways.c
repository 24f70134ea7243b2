// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_gateways.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_numbers.h"

#include <errno.h>

static bool is_on_link(const struct config_port *p, const struct ip_addr *ip)
{
	for (unsigned i = 0; i < p->n_addresses; i++) {
		const struct ip_addr *ours = &p->address_ips[i];
		unsigned bits = p->address_lens[i] + (ip_is_v4(ours) ? IP_V4_BITS : 0u);
		if (ip_in_prefix(ip, ours, bits))
			return true;
	}
	return false;
}

// The text is that of a gateway, of the family that *ret has.
static int add(
	struct config_port *p, const char *text, const struct ip_addr *ip, struct lb_err *reterr)
{
	if (!ip_is_v4(ip) && !p->has_ip6)
		return lb_err_set(reterr, "this port has no IPv6 address");
	if (!ip_is_link_local(ip) && !is_on_link(p, ip))
		return lb_err_set(reterr, "%s is in no subnet of this port", text);
	for (unsigned i = 0; i < p->n_gateway_ips; i++)
		if (ip_eq(&p->gateway_ips[i], ip))
			return lb_err_set(reterr, "%s is in the list already", text);
	p->gateway_ips[p->n_gateway_ips++] = *ip;
	return 0;
}

static int add_lone(struct config_port *p, bool v4, struct lb_err *reterr)
{
	const char *text = v4 ? p->gateway : p->gateway6, *name = v4 ? "gateway" : "gateway6";
	struct ip_addr ip;
	if (!text)
		return 0;
	if (!ip_parse(text, &ip) || ip_is_v4(&ip) != v4)
		return lb_err_set(
			reterr, "%s: '%s' is not an %s address", name, text, v4 ? "IPv4" : "IPv6");
	return add(p, text, &ip, reterr) ? lb_err_within(reterr, "%s", name) : 0;
}

static int add_list(struct config_port *p, struct lb_err *reterr)
{
	if (p->n_gateways && (p->gateway || p->gateway6))
		return lb_err_set(reterr, "gateways: this port has %s besides; name it here",
			p->gateway ? "a gateway" : "a gateway6");
	for (unsigned i = 0; i < p->n_gateways; i++) {
		struct ip_addr ip;
		const char *text = p->gateways[i];
		if (!ip_parse(text, &ip))
			return lb_err_set(
				reterr, "gateways[%u]: '%s' is not an IP address", i, text);
		if (add(p, text, &ip, reterr))
			return lb_err_within(reterr, "gateways[%u]", i);
	}
	return 0;
}

static bool has_ip6_gateway(const struct config_port *p)
{
	for (unsigned i = 0; i < p->n_gateway_ips; i++)
		if (!ip_is_v4(&p->gateway_ips[i]))
			return true;
	return false;
}

static int check_watch(struct config_port *p, struct lb_err *reterr)
{
	static const struct config_gateway_watch absent;
	const struct config_gateway_watch *w = p->gateway_watch ? p->gateway_watch : &absent;
	struct config_watch *to = &p->watch;
	if (config_number_check(CONFIG_WATCH_INTERVAL, w->interval_ms, &to->interval_ms, reterr) ||
		config_number_check(CONFIG_WATCH_MISSED, w->missed, &to->missed, reterr) ||
		config_number_check(CONFIG_WATCH_ANSWERED, w->answered, &to->answered, reterr))
		return -EINVAL;
	if (to->interval_ms && to->interval_ms < CONFIG_LEAST_WATCH_MS)
		return lb_err_set(reterr,
			"gateway_watch.interval_ms: %u is neither 0 nor at least %d",
			to->interval_ms, CONFIG_LEAST_WATCH_MS);
	return 0;
}

int config_check_gateways(struct config_port *p, struct lb_err *reterr)
{
	if (add_list(p, reterr) || add_lone(p, true, reterr) || add_lone(p, false, reterr) ||
		check_watch(p, reterr))
		return -EINVAL;
	if (p->accept_ra && (has_ip6_gateway(p) || !p->has_ip6))
		return lb_err_set(reterr, "accept_ra: this port has %s",
			!p->has_ip6   ? "no IPv6 address"
			: p->gateway6 ? "a gateway6"
				      : "a gateway for IPv6");
	return 0;
}
