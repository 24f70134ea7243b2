// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/session.h"

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/cluster.h"
#include "lb/route/route.h"
#include "lb/route/session.h"
#include "lb/snapshot.h"

static const struct lb_cluster *cluster_of(const struct proxy *p, uint32_t id)
{
	return lb_snapshot_cluster(p->snapshot, id);
}

static bool names(
	const struct proxy *p, const struct lb_session_cookie *cookie, uint32_t cluster_id)
{
	const struct lb_cluster *c = cluster_of(p, cluster_id);
	return c && lb_session_is_cluster(cookie, str_from(c->name));
}

// True = the cookie names the cluster in *to, which may be another one now.
static bool use_cluster(const struct proxy_request *r, const struct lb_session_cookie *cookie,
	struct lb_route_result *to)
{
	struct proxy *p = r->proxy;
	const struct lb_route_table *routes = lb_snapshot_frontend(p->snapshot, r->chain)->routes;
	uint32_t id;
	if (!cookie->cluster.len)
		return false;
	if (names(p, cookie, to->cluster_id))
		return true;
	for (uint32_t i = 0; lb_route_cluster(routes, to, i, &id); i++)
		if (names(p, cookie, id))
			return lb_route_use_cluster(routes, to, id);
	return false;
}

static bool keep(struct proxy *p, struct buf *b, struct str s)
{
	return buf_append(b, p->chunks, s.p, s.len);
}

bool proxy_session_begin(struct proxy_request *r, const struct lb_session *filter,
	const struct lb_req *req, struct lb_route_result *to)
{
	struct proxy *p = r->proxy;
	struct proxy_session *s = &r->session;
	struct ip_port addresses[LB_SESSION_MAX_ADDRESSES];
	// Of several filters the first one counts, as there is one endpoint to choose.
	if (s->on || !lb_session_covers(filter, req->path))
		return true;
	struct lb_session_cookie cookie =
		lb_session_read(filter, req, (char *)p->scratch.bytes, p->scratch.size);
	s->on = true;
	s->ttl_s = filter->ttl_s;
	s->name_len = (uint32_t)filter->cookie.len;
	s->path_len = (uint32_t)filter->path.len;
	s->list_len = (uint32_t)cookie.addresses.len;
	s->n_addresses = (uint8_t)lb_session_addresses(cookie.addresses, addresses);
	s->same_cluster = use_cluster(r, &cookie, to);
	struct str binary = {(const char *)addresses, s->n_addresses * sizeof(addresses[0])};
	return keep(p, &s->kept, binary) && keep(p, &s->kept, filter->cookie) &&
	       keep(p, &s->kept, filter->path) && keep(p, &s->kept, cookie.addresses);
}

enum lb_affinity_kind proxy_session_pick(const struct proxy_request *r,
	const struct lb_affinity_map *map, struct lb_affinity_host *ret)
{
	const struct proxy_session *s = &r->session;
	struct ip_port addresses[LB_SESSION_MAX_ADDRESSES];
	buf_copy_out(&s->kept, 0, addresses, s->n_addresses * sizeof(addresses[0]));
	return lb_affinity_map_pick(map, addresses, s->n_addresses, ret);
}

static struct str take(char **at, size_t len)
{
	struct str s = {*at, len};
	*at += len;
	return s;
}

void proxy_session_sent(struct proxy_request *r, const struct lb_cluster *cluster,
	const struct lb_affinity_host *host)
{
	struct proxy *p = r->proxy;
	struct proxy_session *s = &r->session;
	buf_clear(&s->set_cookie, p->chunks); // of an earlier attempt
	if (!host)
		return;
	size_t binary_len = s->n_addresses * sizeof(struct ip_port);
	size_t len = s->kept.len - binary_len;
	if (len > p->scratch.size)
		return; // a path that long fits no answer
	char *at = (char *)p->scratch.bytes;
	buf_copy_out(&s->kept, binary_len, at, len);
	struct lb_session filter = {.enabled = true, .ttl_s = s->ttl_s};
	filter.cookie = take(&at, s->name_len);
	filter.path = take(&at, s->path_len);
	struct str list = take(&at, s->list_len);
	size_t room = p->scratch.size - len;
	size_t addresses_len = lb_affinity_print(host, at, room);
	struct str addresses = take(&at, addresses_len);
	if (s->same_cluster && str_eq(list, addresses)) {
		proxy_count(p, PROXY_sessions_kept);
		return;
	}
	struct lb_session_cookie now = {addresses, str_from(cluster->name)};
	len = addresses_len ? lb_session_write(&filter, &now, at, room - addresses_len) : 0;
	// Without chunks for it, it is the client's next answer that sets it.
	if (len && keep(p, &s->set_cookie, (struct str){at, len}))
		proxy_count(p, PROXY_sessions_set);
}

void proxy_session_drop(struct proxy *p, struct proxy_session *s)
{
	buf_clear(&s->kept, p->chunks);
	buf_clear(&s->set_cookie, p->chunks);
	s->on = false;
}
