// SPDX-License-Identifier: Apache-2.0
#include "ctrl/bond_watch.h"

#include "lb/base/log.h"

#include <string.h>

static unsigned count_carrying(const struct show_port *p)
{
	unsigned n = 0;
	for (uint32_t i = 0; i < p->n_members; i++)
		n += p->members[i].carries;
	return n;
}

static bool is_lost(const char *state)
{
	return strcmp(state, "down") == 0 || strcmp(state, "gone") == 0;
}

// carrying: how many are left to send by. At a start links may be yet to come.
static void tell(const struct bond_watch *w, unsigned port, unsigned i, const struct show_port *p,
	const char *was)
{
	const char *device = log_quote(w->config->ports[port].bond->members[i]);
	const char *is = p->members[i].state;
	unsigned n = count_carrying(p);
	if (!is_lost(is))
		log_info("bond member", "port=%u member=%s state=%s was=%s carrying=%u", port,
			device, is, was ? was : "new", n);
	else if (n || !was)
		log_warn("bond member", "port=%u member=%s state=%s was=%s carrying=%u", port,
			device, is, was ? was : "new", n);
	else
		log_error("bond member", "port=%u member=%s state=%s was=%s carrying=0", port,
			device, is, was);
}

static void look_at_partners(struct bond_watch *w, unsigned port, const struct show_port *p)
{
	const char *one = "", *other = "";
	for (uint32_t i = 0; i < p->n_members; i++) {
		const char *partner = p->members[i].carries ? p->members[i].partner : "";
		if (!one[0])
			one = partner;
		else if (partner[0] && strcmp(one, partner) != 0)
			other = partner;
	}
	if (other[0] && !w->differ[port])
		log_error("bond partners differ", "port=%u partner=%s other=%s", port, one, other);
	w->differ[port] = other[0];
}

void bond_watch_look(struct bond_watch *w, const struct show_port *ports)
{
	for (unsigned p = 0; p < w->config->n_ports; p++) {
		for (uint32_t i = 0; i < ports[p].n_members; i++) {
			const char *was = w->was[p][i], *is = ports[p].members[i].state;
			w->was[p][i] = is;
			if (!was || strcmp(was, is) != 0)
				tell(w, p, i, &ports[p], was);
		}
		look_at_partners(w, p, &ports[p]);
	}
}
