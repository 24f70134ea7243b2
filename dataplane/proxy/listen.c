// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/listen.h"

#include "dataplane/proxy/state.h"
#include "lb/base/min.h"
#include "lb/own_ranges.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

#include <stdlib.h>

_Static_assert(TCP_MAX_LISTENERS >= LB_MAX_FRONTENDS + LB_MAX_VIPS, "each has its place");
_Static_assert(sizeof(struct lb_frontend_times) % sizeof(uint64_t) == 0, "counters alone");

static void tell(struct proxy *p, uint32_t place, const struct ip_addr *ip)
{
	if (p->conf.serve)
		p->conf.serve(p->conf.source_ctx, place, ip);
}

static void leave(struct proxy_listener *l)
{
	if (!l->at.port)
		return;
	tcp_unlisten(l->proxy->tcp, &l->at.ip, l->at.port);
	l->at.port = 0;
}

// Frontends

static bool is_wanted(const struct proxy_listener *l)
{
	const struct lb_frontend_conf *f = l->proxy->frontends[l->frontend];
	return (f->port || f->by_listeners) && !l->gone_by_ns && !l->is_left;
}

static void note(struct proxy_listener *l)
{
	struct proxy *p = l->proxy;
	bool is_counted = is_wanted(l);
	if (is_counted && !l->is_counted)
		counter_add(&p->link->counters.frontend_uses[l->frontend], 1);
	if (!is_counted && l->is_counted)
		counter_sub(&p->link->counters.frontend_uses[l->frontend], 1);
	l->is_counted = is_counted;
}

// Returns 0, or -1: the address is taken.
static int listen_at(struct proxy_listener *l)
{
	struct proxy *p = l->proxy;
	const struct lb_frontend_conf *f = p->frontends[l->frontend];
	if (!is_wanted(l) || !f->port || l->at.port)
		return 0;
	if (tcp_listen(p->tcp, &f->address, f->port, p->accept, l))
		return -1;
	l->at = (struct ip_port){f->address, f->port};
	tell(p, l->frontend, &f->address);
	return 0;
}

int proxy_listen_begin(struct proxy *p, tcp_accept_fn accept)
{
	p->accept = accept;
	p->frontends = calloc((size_t)p->conf.n_frontends + 1, sizeof(p->frontends[0]));
	for (uint32_t i = 0; p->frontends && i < p->conf.n_frontends; i++) {
		const struct lb_frontend_conf *f = &p->conf.frontends[i];
		struct proxy_listener *l = &p->listeners[i];
		p->frontends[i] = f;
		*l = (struct proxy_listener){
			.proxy = p, .frontend = i, .wants_header = f->header.n_allow != 0};
		for (uint32_t v = 0; f->by_listeners && v < LB_MAX_VIPS; v++)
			p->vips[v] = (struct proxy_listener){
				.proxy = p, .frontend = i, .is_vip = true, .vip = v};
		note(l);
		if (listen_at(l))
			return -1;
	}
	return p->frontends ? 0 : -1;
}

// Another frontend than before begins with nothing counted.
static void begin_anew(struct proxy_listener *l)
{
	struct lb_link *link = l->proxy->link;
	uint32_t i = l->frontend;
	uint64_t *times = (uint64_t *)&link->frontends[i];
	for (size_t k = 0; k < sizeof(link->frontends[i]) / sizeof(*times); k++)
		counter_set_to(&times[k], 0);
	counter_set_to(&link->counters.frontend_requests[i], 0);
	counter_set_to(&link->counters.frontend_connections[i], 0);
	l->gone_by_ns = 0;
}

// What an operator's drain leaves them may be less.
static void leave_by(struct proxy_listener *l, uint64_t by_ns)
{
	l->gone_by_ns = l->gone_by_ns ? min_u64(l->gone_by_ns, by_ns) : by_ns;
}

// True = its clients are to leave.
static bool take(struct proxy_listener *l, const struct lb_live_frontend *to)
{
	struct proxy *p = l->proxy;
	const struct ip_port at = {to->conf.address, to->conf.port};
	p->frontends[l->frontend] = &to->conf;
	l->live = to->number;
	l->wants_header = to->conf.header.n_allow != 0;
	if (l->owner != to->owner && !to->is_left)
		begin_anew(l);
	l->owner = to->owner;
	l->is_left = to->is_left;
	if (to->is_left)
		leave_by(l, twheel_now(p->wheel) + p->conf.terms.listener_drain_ns);
	bool goes = l->at.port && (!is_wanted(l) || !ip_port_eq(&l->at, &at));
	if (goes)
		leave(l);
	if (goes || to->is_left)
		tell(p, l->frontend, NULL);
	note(l);
	return to->is_left;
}

// False = nothing has changed.
static bool take_all(struct proxy *p, bool *ret_some_leave)
{
	const struct lb_snapshot *s = p->snapshot;
	if (s->n_live == p->n_live)
		return false;
	p->n_live = s->n_live;
	for (uint32_t i = 0; i < p->conf.n_frontends; i++) {
		const struct lb_live_frontend *live = lb_snapshot_frontend(s, i)->live;
		if (live && live->number != p->listeners[i].live)
			*ret_some_leave |= take(&p->listeners[i], live);
	}
	return true;
}

static void listen_at_all(struct proxy *p)
{
	for (uint32_t i = 0; i < p->conf.n_frontends; i++)
		if (listen_at(&p->listeners[i]))
			proxy_count(p, PROXY_vips_refused);
}

// Vips

// The frontend of all vips.
static bool vips_are_left(const struct proxy *p)
{
	const struct proxy_listener *l = &p->vips[0];
	return l->proxy && p->listeners[l->frontend].gone_by_ns;
}

// False = nothing has changed.
static bool leave_old_vips(struct proxy *p)
{
	const struct lb_vips *vips = p->snapshot->vips;
	uint64_t version = vips ? vips->version : 0;
	if (version == p->vips_version || p->drain.step != PROXY_DRAIN_NONE || vips_are_left(p))
		return false;
	p->vips_version = version;
	for (uint32_t i = 0; i < LB_MAX_VIPS; i++) {
		struct proxy_listener *l = &p->vips[i];
		if (!l->at.port || lb_vips_chains(vips, i, &l->at))
			continue;
		leave(l);
		tell(p, p->conf.n_frontends + i, NULL);
	}
	return true;
}

static void listen_at_vips(struct proxy *p)
{
	const struct lb_vips *vips = p->snapshot->vips;
	for (uint32_t i = 0; vips && i < vips->n && i < LB_MAX_VIPS && !vips_are_left(p); i++) {
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

// All of them

// Before anything listens there.
static void follow_ranges(struct proxy *p)
{
	const struct lb_own_ranges *r = p->snapshot->ranges;
	if (!r || r->version == p->ranges_version)
		return;
	p->ranges_version = r->version;
	if (p->conf.own)
		p->conf.own(p->conf.source_ctx, r);
}

// What goes makes room for what comes: an address may move to another frontend, from a frontend to
// a vip, or the other way.
bool proxy_listen_follow(struct proxy *p)
{
	bool some_leave = false;
	follow_ranges(p);
	bool has_news = take_all(p, &some_leave);
	has_news |= leave_old_vips(p);
	if (has_news && p->drain.step == PROXY_DRAIN_NONE) {
		listen_at_all(p);
		listen_at_vips(p);
	}
	return some_leave;
}

void proxy_listen_end(struct proxy *p)
{
	for (uint32_t i = 0; i < p->conf.n_frontends; i++)
		leave(&p->listeners[i]);
	for (uint32_t i = 0; i < LB_MAX_VIPS; i++)
		leave(&p->vips[i]);
}

void proxy_listen_leave(struct proxy *p, uint32_t frontend, uint64_t gone_by_ns)
{
	struct proxy_listener *l = &p->listeners[frontend];
	if (p->drain.step != PROXY_DRAIN_NONE || l->is_left)
		return;
	bool was_left = l->gone_by_ns;
	l->gone_by_ns = gone_by_ns;
	if (was_left)
		return;
	note(l);
	if (p->frontends[frontend]->by_listeners)
		leave_vips(p);
	else
		leave(l);
}

void proxy_listen_return(struct proxy *p, uint32_t frontend)
{
	struct proxy_listener *l = &p->listeners[frontend];
	if (!l->gone_by_ns || l->is_left || p->drain.step != PROXY_DRAIN_NONE)
		return;
	l->gone_by_ns = 0;
	note(l);
	if (p->frontends[frontend]->by_listeners) {
		leave_old_vips(p);
		listen_at_vips(p);
	} else if (listen_at(l)) {
		proxy_count(p, PROXY_vips_refused);
	}
}
