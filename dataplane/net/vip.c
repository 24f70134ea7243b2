// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/vip.h"

#include "dataplane/net/ip6.h"
#include "lb/base/check.h"

#include <errno.h>
#include <stdlib.h>

// A device's queue takes them between other frames.
#define PACE_NS NS_PER_MS
#define PER_STEP 32 // addresses

static void announce(struct net *net, const struct ip_addr *ip)
{
	for (uint32_t p = 0; p < net->n_ports; p++) {
		if (!net_is_own_of_port(net, ip, p))
			continue;
		if (ip_is_v4(ip)) {
			arp_announce(net, p, ip);
			continue;
		}
		nd_announce(net, p, ip);
		net->vips.reports = true;
	}
}

static void report(struct net *net)
{
	net->vips.reports = false;
	for (uint32_t p = 0; p < net->n_ports; p++)
		if (net_port_has_ip6(&net->ports[p]))
			mld_join(&net->ports[p]);
}

static void fire(struct twheel_timer *timer)
{
	struct net_vips *v = CONTAINER_OF(timer, struct net_vips, timer);
	uint32_t left = PER_STEP;
	if (v->net->silent)
		return;
	for (uint32_t i = 0; i < v->n_places; i++) {
		if (!v->due[i])
			continue;
		if (left-- == 0) {
			twheel_arm(v->net->wheel, timer, twheel_now(v->net->wheel) + PACE_NS);
			return;
		}
		v->due[i] = false;
		announce(v->net, &v->served[i]);
	}
	if (v->reports)
		report(v->net);
}

static void announce_soon(struct net_vips *v, uint32_t place)
{
	v->due[place] = v->announces && !ip_is_none(&v->served[place]);
	if (v->due[place] && !twheel_armed(&v->timer))
		twheel_arm(v->net->wheel, &v->timer, twheel_now(v->net->wheel));
}

void net_vip_set_silent(struct net *net, bool silent)
{
	struct net_vips *v = &net->vips;
	if (v->announces && !silent && v->net && !twheel_armed(&v->timer))
		twheel_arm(net->wheel, &v->timer, twheel_now(net->wheel));
}

int net_set_vips(struct net *net, const struct net_vip *list, uint32_t n, uint32_t n_places)
{
	struct net_vips *v = &net->vips;
	DCHECK(n <= NET_MAX_VIPS && !v->net);
	v->net = net;
	v->timer.fire = fire;
	v->served = calloc((size_t)n_places + 1, sizeof(*v->served));
	v->due = calloc((size_t)n_places + 1, sizeof(*v->due));
	if (!v->served || !v->due)
		return -ENOMEM;
	for (; v->n < n; v->n++)
		v->list[v->n] = list[v->n];
	v->n_places = n_places;
	return 0;
}

static bool answers(const struct net_vips *v, const struct ip_addr *ip)
{
	const struct net_vip *in = net_vip_find(v, ip);
	return in && in->answers;
}

void net_change_vips(struct net *net, const struct net_vip *list, uint32_t n)
{
	static const struct ip_addr none;
	struct net_vips *v = &net->vips;
	DCHECK(n <= NET_MAX_VIPS && v->net);
	const struct net_vips before = *v; // whose places are the same
	v->n = n;
	for (uint32_t i = 0; i < n; i++)
		v->list[i] = list[i];
	net_forget_paths(net);
	for (uint32_t i = 0; i < v->n_places; i++) {
		const struct ip_addr ip = v->served[i];
		if (ip_is_none(&ip))
			continue;
		if (!net_vip_find(v, &ip))
			v->served[i] = none;
		else if (answers(v, &ip) && !answers(&before, &ip))
			announce_soon(v, i);
	}
}

void net_vip_fini(struct net *net)
{
	twheel_cancel(net->wheel, &net->vips.timer);
	free(net->vips.served);
	free(net->vips.due);
}

void net_serve(struct net *net, uint32_t place, const struct ip_addr *ip)
{
	static const struct ip_addr none;
	struct net_vips *v = &net->vips;
	if (place >= v->n_places)
		return;
	v->served[place] = ip && net_vip_find(v, ip) ? *ip : none;
	announce_soon(v, place);
}

void net_vip_announce_all(struct net *net)
{
	net->vips.announces = true;
	for (uint32_t i = 0; i < net->vips.n_places; i++)
		announce_soon(&net->vips, i);
}
