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

static struct lb_failure_attempt try_from(
	const struct proxy_request *r, uint64_t from_ns, enum lb_cause cause, int grpc_status)
{
	return (struct lb_failure_attempt){.after_us = us_since(r->began_ns, from_ns),
		.took_us = us_since(from_ns, r->proxy->now_ns),
		.cause = (uint8_t)cause,
		.grpc_status = (uint8_t)grpc_status};
}

// Of the one under way.
static struct lb_failure_attempt try_now(
	const struct proxy_request *r, enum lb_cause cause, int grpc_status)
{
	struct lb_failure_attempt a = try_from(r, r->trail.sent_ns, cause, grpc_status);
	a.has_backend = true;
	a.backend = r->proxy->backends[r->endpoint_id].addr;
	return a;
}

// Of many the last ones stay.
static void add_try(struct proxy_request *r, const struct lb_failure_attempt *a)
{
	r->tries[r->trail.n_tries++ % LB_FAILURE_ATTEMPTS] = *a;
}

void proxy_trail_try(struct proxy_request *r, enum lb_cause cause, int grpc_status)
{
	const struct lb_failure_attempt a = try_now(r, cause, grpc_status);
	add_try(r, &a);
}

void proxy_trail_pick_failed(struct proxy_request *r, int grpc_status)
{
	const struct lb_failure_attempt a =
		try_from(r, r->proxy->now_ns, LB_CAUSE_NO_HEALTHY, grpc_status);
	add_try(r, &a);
}

static void draw_id(struct rand *rand, uint64_t id[2])
{
	id[0] = rand_u64(rand);
	id[1] = rand_u64(rand);
}

// As a UUID, version 4 (RFC 9562 5.4).
static struct str write_id(const uint64_t id[2], char *text)
{
	static const char hex[] = "0123456789abcdef";
	uint64_t words[2] = {(id[0] & ~UINT64_C(0xf000)) | UINT64_C(0x4000),
		(id[1] & ~(UINT64_C(3) << 62)) | UINT64_C(1) << 63};
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

static struct str copy_id(struct str id, char *room)
{
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

// Of one that has none of its client: what it was told before, else a new one.
static struct str own_id(struct proxy_request *r, struct str answers, char *room)
{
	struct lb_failure told;
	if (r->failed_answer &&
		lb_failures_read(r->proxy->link->failed_answers, r->failed_number, &told))
		return copy_id(str_from(told.id), room);
	if (answers.len)
		return copy_id(answers, room);
	if (!r->has_id)
		draw_id(&r->proxy->rand, r->id);
	r->has_id = true;
	return write_id(r->id, room);
}

// The client's, else the one that the backend's answer has, else one of our own.
static struct str id_beside(struct proxy_request *r, struct str answers, char *room)
{
	if (!r->access.is_on) {
		const struct h2_message m = head_of(r);
		struct str clients = proxy_replay_request_id(&m);
		return clients.len ? copy_id(clients, room) : own_id(r, answers, room);
	}
	proxy_access_keep(r);
	struct lb_access_record *a = r->access.record;
	if (!a->made[LB_ACCESS_REQUEST_ID])
		lb_access_put(a, LB_ACCESS_REQUEST_ID, own_id(r, answers, room));
	return lb_access_get(a, LB_ACCESS_REQUEST_ID);
}

struct str proxy_trail_id(struct proxy_request *r, char *room)
{
	return id_beside(r, STR(""), room);
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

// now: the one under way; NULL = there is none.
static void put_tries(
	const struct proxy_request *r, const struct lb_failure_attempt *now, struct lb_failure *f)
{
	uint32_t n = r->trail.n_tries, most = LB_FAILURE_ATTEMPTS - (now != NULL);
	uint32_t n_old = n < most ? n : most;
	for (uint32_t i = 0; i < n_old; i++)
		f->attempts[i] = r->tries[(n - n_old + i) % LB_FAILURE_ATTEMPTS];
	if (now)
		f->attempts[n_old] = *now;
	f->n_attempts = n + (now != NULL);
	f->n_kept = (uint8_t)(n_old + (now != NULL));
}

static void keep(struct lb_failures *in, const struct proxy_request *r,
	const struct lb_failure_attempt *now, struct lb_failure *f, struct str text, struct str id)
{
	struct proxy *p = r->proxy;
	struct str texts[LB_FAILURE_N_TEXTS] = {{0}};
	f->began_ns = r->began_ns;
	f->at_ns = p->now_ns;
	f->frontend = r->frontend;
	f->has_backend = proxy_request_has_backend(r);
	if (f->has_backend)
		f->backend = p->backends[r->endpoint_id].addr;
	put_tries(r, now, f);
	f->route_index = proxy_trail_texts(r, texts);
	texts[LB_FAILURE_text] = text;
	texts[LB_FAILURE_id] = id;
	lb_failures_add(in, f, texts);
}

void proxy_trail_fail(struct proxy_request *r, const struct proxy_reply *reply, struct str id)
{
	struct lb_failure f = {.cause = (uint8_t)reply->cause};
	if (r->ended)
		return;
	if (r->upstream)
		proxy_trail_try(r, reply->cause, reply->grpc_status);
	keep(r->proxy->link->failures, r, NULL, &f, reply->text, id);
}

static struct str value_of(const struct h2_message *m, struct str name)
{
	const struct field *f = field_find(m->fields, m->n_fields, name);
	return f ? f->value : STR("");
}

struct str proxy_trail_answer(struct proxy_request *r, const struct h2_message *m, char *room)
{
	struct lb_failures *in = r->proxy->link->failed_answers;
	struct lb_failure f = {.cause = LB_CAUSE_OK,
		.http_status = m->status,
		.grpc_status = r->is_grpc ? r->answer : LB_FAILURE_NO_GRPC};
	struct str answers = proxy_replay_request_id(m);
	struct str id = id_beside(r, answers, room);
	if (!r->failed_answer) {
		const struct lb_failure_attempt now = try_now(r, LB_CAUSE_OK, f.grpc_status);
		r->failed_number = lb_failures_count(in);
		keep(in, r, &now, &f, value_of(m, STR("grpc-message")), id);
		r->failed_answer = true;
	}
	return answers.len ? STR("") : id;
}

struct str proxy_trail_refuse(struct proxy_client *c, const struct h2_message *m,
	const struct proxy_reply *reply, char *room)
{
	struct proxy *p = c->conn.proxy;
	struct str id = proxy_replay_request_id(m);
	if (id.len) {
		id = copy_id(id, room);
	} else {
		uint64_t drawn[2];
		draw_id(&p->rand, drawn);
		id = write_id(drawn, room);
	}
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
