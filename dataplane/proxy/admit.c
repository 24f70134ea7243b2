// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/admit.h"

#include "dataplane/proxy/client_header.h"
#include "dataplane/proxy/state.h"
#include "lb/chain_set.h"
#include "lb/route/chain_match.h"
#include "lb/snapshot.h"

#define PRESSURE_SHARE 8 // one place of so many is left: the longest idle clients go

_Static_assert(LB_MAX_FRONTENDS <= UINT16_MAX, "clients and requests know theirs");
_Static_assert(LB_MAX_VIPS < UINT16_MAX, "clients know theirs");

bool proxy_admit_is_short(const struct proxy *p)
{
	const struct pool *clients = &p->clients;
	return clients->n_used >= clients->n_total - clients->n_total / PRESSURE_SHARE;
}

// A source has a budget (TH-83), and where places run short a share of them. s: the newcomer's,
// NULL = not remembered.
static bool may_come(struct proxy *p, const struct proxy_source *s)
{
	const struct pool *clients = &p->clients;
	if (s && h2_shared_is_spent(&s->budgets, p->now_ns)) {
		proxy_count(p, PROXY_clients_over_budget);
		return false;
	}
	if (!proxy_admit_is_short(p))
		return true;
	if (!proxy_source_may_have(
		    &p->sources, s ? s->n_clients : 0, clients->n_used, clients->n_total)) {
		proxy_count(p, PROXY_clients_over_share);
		return false;
	}
	return true;
}

// Of the address that the connection came to, even if nobody listens there any more: that is for
// newcomers (FL-185). NULL = it has none, or l is somewhere else now.
static const struct lb_chain_set *chains_of(
	const struct proxy_listener *l, const struct tcp_conn *tcp)
{
	const struct lb_snapshot *s = l->proxy->snapshot;
	const struct tcp_flow *flow = tcp_conn_flow(tcp);
	const struct ip_port local = {flow->local, flow->local_port};
	if (l->is_vip)
		return lb_vips_chains(s->vips, l->vip, &local);
	const struct lb_frontend_conf *f = l->proxy->frontends[l->frontend];
	const struct ip_port at = {f->address, f->port};
	return ip_port_eq(&at, &local) ? lb_snapshot_frontend(s, l->frontend)->chains : NULL;
}

const struct tlv_types *proxy_admit_passed(
	const struct proxy_listener *l, const struct tcp_conn *tcp)
{
	const struct lb_chain_set *chains = chains_of(l, tcp);
	return chains ? &chains->passed : NULL;
}

static uint32_t find(const struct lb_chain_set *chains, const struct tcp_conn *tcp,
	const struct lb_chain_hello *hello)
{
	const struct tcp_flow *flow = tcp_conn_flow(tcp);
	const struct ip_port remote = {flow->remote, flow->remote_port};
	return lb_chain_set_find(chains, &flow->local, &remote, hello);
}

uint32_t proxy_admit_by(const struct proxy_listener *l, const struct tcp_conn *tcp,
	const struct lb_chain_hello *hello)
{
	const struct lb_chain_set *chains = chains_of(l, tcp);
	return chains ? find(chains, tcp, hello) : LB_NO_PLACE;
}

uint32_t proxy_admit(const struct proxy_listener *l, const struct tcp_conn *tcp,
	const struct proxy_source *source, const struct lb_inspector **ret_asks)
{
	struct proxy *p = l->proxy;
	const struct lb_chain_hello silent = {.tls = false};
	*ret_asks = NULL;
	if (l->wants_header && !proxy_client_header_allows(l, tcp))
		return LB_NO_PLACE;
	const struct lb_chain_set *chains = chains_of(l, tcp);
	uint32_t ret = l->is_vip ? LB_NO_PLACE : l->frontend;
	if (chains) {
		*ret_asks = lb_chain_set_inspector(chains);
		ret = *ret_asks ? l->frontend : find(chains, tcp, &silent);
	}
	if (ret == LB_NO_PLACE)
		proxy_count(p, PROXY_clients_unmatched);
	return ret != LB_NO_PLACE && may_come(p, source) ? ret : LB_NO_PLACE;
}
