// SPDX-License-Identifier: Apache-2.0
#include "ctrl/gateway_watch.h"

#include "ctrl/base/show_port.h"
#include "lb/base/log.h"

// Those of the gateway's family that answer.
static unsigned count_up(const struct config_port *c, const struct show_port *p, bool v4)
{
	unsigned n = 0;
	for (unsigned i = 0; i < c->n_gateway_ips; i++)
		n += ip_is_v4(&c->gateway_ips[i]) == v4 && p->gateways[i].state == LB_GATEWAY_UP;
	return n;
}

static void tell(
	const struct gateway_watch *w, unsigned port, unsigned i, const struct show_port *p)
{
	const struct config_port *c = &w->config->ports[port];
	const struct ip_addr *ip = &c->gateway_ips[i];
	unsigned n_up = count_up(c, p, ip_is_v4(ip));
	char text[IP_PORT_TEXT_MAX];
	ip_print(ip, text);
	if (p->gateways[i].state == LB_GATEWAY_UP)
		log_info("gateway up", "port=%u gateway=%s up=%u", port, text, n_up);
	else if (n_up)
		log_warn("gateway down", "port=%u gateway=%s up=%u", port, text, n_up);
	else
		log_error("gateway down", "port=%u gateway=%s up=0", port, text);
}

void gateway_watch_look(struct gateway_watch *w, struct show_port *ports)
{
	for (unsigned p = 0; p < w->config->n_ports; p++) {
		const struct config_port *c = &w->config->ports[p];
		(void)lb_gateways_changes(w->gateways); // what came before a state is seen with it
		for (unsigned i = 0; i < c->n_gateway_ips; i++)
			ports[p].gateways[i] = lb_gateway_read(&w->gateways->list[p][i]);
		for (unsigned i = 0; i < c->n_gateway_ips; i++) {
			enum lb_gateway_state is = ports[p].gateways[i].state;
			if (is != w->was[p][i])
				tell(w, p, i, &ports[p]);
			w->was[p][i] = is;
		}
	}
}
