// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/listen.h"

#include "dataplane/proxy/state.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

_Static_assert(TCP_MAX_LISTENERS >= LB_MAX_FRONTENDS + LB_MAX_VIPS, "each has its place");

static void tell(struct proxy *p, uint32_t place, const struct ip_addr *ip)
{
	if (p->conf.serve)
		p->conf.serve(p->conf.source_ctx, place, ip);
}

int proxy_listen_begin(struct proxy *p, tcp_accept_fn accept)
{
	p->accept = accept;
	for (uint32_t i = 0; i < p->conf.n_frontends; i++) {
		const struct proxy_frontend *f = &p->conf.frontends[i];
		struct proxy_listener *l = &p->listeners[i];
		counter_add(&p->link->counters.frontend_uses[i], 1);
		if (f->by_listeners) {
			for (uint32_t v = 0; v < LB_MAX_VIPS; v++)
				p->vips[v] = (struct proxy_listener){
					.proxy = p, .frontend = i, .is_vip = true, .vip = v};
			continue;
		}
		*l = (struct proxy_listener){.proxy = p,
			.frontend = i,
			.wants_header = f->header.n_allow != 0,
			.at = {f->address, f->port}};
		if (tcp_listen(p->tcp, &f->address, f->port, accept, l)) {
			l->at.port = 0;
			return -1;
		}
		tell(p, i, &f->address);
	}
	return 0;
}

static void leave(struct proxy_listener *l)
{
	if (!l->at.port)
		return;
	tcp_unlisten(l->proxy->tcp, &l->at.ip, l->at.port);
	l->at.port = 0;
}

// The frontend of all vips.
static bool vips_are_left(const struct proxy *p)
{
	const struct proxy_listener *l = &p->vips[0];
	return l->proxy && p->listeners[l->frontend].gone_by_ns;
}

// What went makes room for what came: an address may have moved to another place.
void proxy_listen_follow(struct proxy *p, const struct lb_vips *vips)
{
	uint64_t version = vips ? vips->version : 0;
	if (version == p->vips_version || p->drain.step != PROXY_DRAIN_NONE || vips_are_left(p))
		return;
	p->vips_version = version;
	for (uint32_t i = 0; i < LB_MAX_VIPS; i++) {
		struct proxy_listener *l = &p->vips[i];
		const struct lb_vip *v = lb_vips_at(vips, i);
		if (!l->at.port || (v && ip_port_eq(&v->at, &l->at)))
			continue;
		leave(l);
		tell(p, p->conf.n_frontends + i, NULL);
	}
	for (uint32_t i = 0; vips && i < vips->n && i < LB_MAX_VIPS; i++) {
		struct proxy_listener *l = &p->vips[i];
		const struct lb_vip *v = lb_vips_at(vips, i);
		if (!v || l->at.port || !l->proxy)
			continue;
		if (tcp_listen(p->tcp, &v->at.ip, v->at.port, p->accept, l)) {
			proxy_count(p, PROXY_vips_refused);
			continue;
		}
		l->at = v->at;
		tell(p, p->conf.n_frontends + i, &v->at.ip);
	}
}

void proxy_listen_end(struct proxy *p)
{
	for (uint32_t i = 0; i < p->conf.n_frontends; i++)
		leave(&p->listeners[i]);
	for (uint32_t i = 0; i < LB_MAX_VIPS; i++)
		leave(&p->vips[i]);
}

static void leave_vips(struct proxy *p)
{
	for (uint32_t i = 0; i < LB_MAX_VIPS; i++) {
		if (!p->vips[i].at.port)
			continue;
		leave(&p->vips[i]);
		tell(p, p->conf.n_frontends + i, NULL);
	}
	p->vips_version = 0; // all are to be taken up again
}

void proxy_listen_leave(struct proxy *p, uint32_t frontend, uint64_t gone_by_ns)
{
	struct proxy_listener *l = &p->listeners[frontend];
	if (p->drain.step != PROXY_DRAIN_NONE)
		return;
	bool was_left = l->gone_by_ns;
	l->gone_by_ns = gone_by_ns;
	if (was_left)
		return;
	counter_sub(&p->link->counters.frontend_uses[frontend], 1);
	if (p->conf.frontends[frontend].by_listeners)
		leave_vips(p);
	else
		leave(l);
}

void proxy_listen_return(struct proxy *p, uint32_t frontend)
{
	const struct proxy_frontend *f = &p->conf.frontends[frontend];
	struct proxy_listener *l = &p->listeners[frontend];
	if (!l->gone_by_ns || p->drain.step != PROXY_DRAIN_NONE)
		return;
	l->gone_by_ns = 0;
	counter_add(&p->link->counters.frontend_uses[frontend], 1);
	if (f->by_listeners) {
		proxy_listen_follow(p, p->snapshot->vips);
		return;
	}
	if (tcp_listen(p->tcp, &f->address, f->port, p->accept, l))
		proxy_count(p, PROXY_vips_refused);
	else
		l->at = (struct ip_port){f->address, f->port};
}
