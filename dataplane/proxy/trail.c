// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/trail.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/client.h"
#include "dataplane/proxy/local_reply.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/time.h"
#include "lb/cluster.h"
#include "lb/pick/access.h"
#include "lb/pick/link.h"
#include "lb/snapshot.h"

#define UUID_LEN 36

static uint32_t us_since(uint64_t from_ns, uint64_t to_ns)
{
	uint64_t us = (to_ns - from_ns) / NS_PER_US;
	return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

// Of many the last ones stay.
static struct lb_failure_attempt *add_try(
	struct proxy_request *r, uint64_t from_ns, enum lb_cause cause, int grpc_status)
{
	struct lb_failure_attempt *a = &r->tries[r->trail.n_tries++ % LB_FAILURE_ATTEMPTS];
	*a = (struct lb_failure_attempt){.after_us = us_since(r->began_ns, from_ns),
		.took_us = us_since(from_ns, r->proxy->now_ns),
		.cause = (uint8_t)cause,
		.grpc_status = (uint8_t)grpc_status};
	return a;
}

void proxy_trail_try(struct proxy_request *r, enum lb_cause cause, int grpc_status)
{
	struct lb_failure_attempt *a = add_try(r, r->trail.sent_ns, cause, grpc_status);
	a->has_backend = true;
	a->backend = r->proxy->backends[r->endpoint_id].addr;
}

void proxy_trail_pick_failed(struct proxy_request *r, int grpc_status)
{
	add_try(r, r->proxy->now_ns, LB_CAUSE_NO_HEALTHY, grpc_status);
}

// Random, version 4 (RFC 9562 5.4).
static struct str make_id(struct rand *rand, char *text)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t words[2] = {rand_u64(rand), rand_u64(rand)};
	words[0] = (words[0] & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	words[1] = (words[1] & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63;
	for (unsigned i = 0, digit = 0; i < UUID_LEN; i++) {
		if (i == 8 || i == 13 || i == 18 || i == 23) {
			text[i] = '-';
			continue;
		}
		text[i] = hex[words[digit / 16] >> (60 - digit % 16 * 4) & 15];
		digit++;
	}
	return (struct str){text, UUID_LEN};
}

// The client's, copied; else a new one.
static struct str id_of(struct proxy *p, const struct h2_message *m, char *room)
{
	struct str id = proxy_replay_request_id(m);
	if (!id.len)
		return make_id(&p->rand, room);
	id.len = id.len < PROXY_ID_MAX ? id.len : PROXY_ID_MAX;
	memcpy(room, id.p, id.len);
	return (struct str){room, id.len};
}

static struct h2_message head_of(const struct proxy_request *r)
{
	struct h2_message m = {0};
	if (r->proxy->fresh == r)
		m = *r->proxy->fresh_head;
	else if (!proxy_replay_known(r->proxy, &r->replay, &m))
		m = (struct h2_message){0};
	return m;
}

struct str proxy_trail_id(struct proxy_request *r, char *room)
{
	if (!r->access.is_on) {
		const struct h2_message m = head_of(r);
		return id_of(r->proxy, &m, room);
	}
	proxy_access_keep(r);
	struct lb_access_record *a = r->access.record;
	if (!a->made[LB_ACCESS_REQUEST_ID])
		lb_access_put(a, LB_ACCESS_REQUEST_ID, make_id(&r->proxy->rand, room));
	return lb_access_get(a, LB_ACCESS_REQUEST_ID);
}

static void put_head(const struct proxy_request *r, struct str texts[LB_FAILURE_N_TEXTS])
{
	const struct lb_access_record *a = r->access.record;
	if (a) {
		texts[LB_FAILURE_method] = lb_access_get(a, LB_ACCESS_METHOD);
		texts[LB_FAILURE_authority] = lb_access_get(a, LB_ACCESS_AUTHORITY);
		texts[LB_FAILURE_path] = lb_access_get(a, LB_ACCESS_PATH);
		texts[LB_FAILURE_id] = lb_access_get(a, LB_ACCESS_REQUEST_ID);
		return;
	}
	const struct h2_message m = head_of(r);
	texts[LB_FAILURE_method] = m.method;
	texts[LB_FAILURE_authority] = m.authority;
	texts[LB_FAILURE_path] = m.path;
	texts[LB_FAILURE_id] = proxy_replay_request_id(&m);
}

uint32_t proxy_trail_texts(const struct proxy_request *r, struct str texts[LB_FAILURE_N_TEXTS])
{
	const struct lb_snapshot *s = r->proxy->snapshot;
	struct lb_route_names names;
	const struct lb_cluster *c =
		r->cluster_id == PROXY_NO_CLUSTER ? NULL : lb_snapshot_cluster(s, r->cluster_id);
	const struct lb_route_table *t = lb_snapshot_frontend(s, r->chain)->routes;
	put_head(r, texts);
	texts[LB_FAILURE_cluster] = str_from(c ? c->name : NULL);
	if (!t || !lb_route_names(t, &r->trail.routed, &names))
		return LB_NO_ROUTE;
	texts[LB_FAILURE_vhost] = names.vhost;
	texts[LB_FAILURE_route] = names.route;
	return names.index;
}

static void put_tries(const struct proxy_request *r, struct lb_failure *f)
{
	uint32_t n = r->trail.n_tries;
	f->n_attempts = n;
	f->n_kept = (uint8_t)(n < LB_FAILURE_ATTEMPTS ? n : LB_FAILURE_ATTEMPTS);
	for (uint32_t i = 0; i < f->n_kept; i++)
		f->attempts[i] = r->tries[(n - f->n_kept + i) % LB_FAILURE_ATTEMPTS];
}

void proxy_trail_fail(struct proxy_request *r, const struct proxy_reply *reply, struct str id)
{
	struct proxy *p = r->proxy;
	struct str texts[LB_FAILURE_N_TEXTS] = {{0}};
	if (r->ended)
		return;
	struct lb_failure f = {.began_ns = r->began_ns,
		.at_ns = p->now_ns,
		.frontend = r->frontend,
		.cause = (uint8_t)reply->cause,
		.has_backend = proxy_request_has_backend(r)};
	if (f.has_backend)
		f.backend = p->backends[r->endpoint_id].addr;
	if (r->upstream)
		proxy_trail_try(r, reply->cause, reply->grpc_status);
	put_tries(r, &f);
	f.route_index = proxy_trail_texts(r, texts);
	texts[LB_FAILURE_text] = reply->text;
	texts[LB_FAILURE_id] = id;
	lb_failures_add(p->link->failures, &f, texts);
}

struct str proxy_trail_refuse(struct proxy_client *c, const struct h2_message *m,
	const struct proxy_reply *reply, char *room)
{
	struct proxy *p = c->conn.proxy;
	struct str id = id_of(p, m, room);
	const struct lb_failure f = {.began_ns = p->now_ns,
		.at_ns = p->now_ns,
		.frontend = c->frontend,
		.cause = (uint8_t)reply->cause,
		.route_index = LB_NO_ROUTE};
	const struct str texts[LB_FAILURE_N_TEXTS] = {[LB_FAILURE_text] = reply->text,
		[LB_FAILURE_id] = id,
		[LB_FAILURE_method] = m->method,
		[LB_FAILURE_authority] = m->authority,
		[LB_FAILURE_path] = m->path};
	lb_failures_add(p->link->failures, &f, texts);
	return id;
}
