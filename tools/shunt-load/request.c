// SPDX-License-Identifier: Apache-2.0
// A request's life: sent, answered or not, judged.
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tools/shunt-load/client_inside.h"

#include <stdlib.h>

#define MAX_SENDS 10
#define RETRY_PROBE_NS (20 * NS_PER_MS)
#define GRPC_NONE (-1)

struct request *client_request_new(struct client *c, uint64_t planned_ns, bool is_probe)
{
	struct request *r = pool_take(&c->requests);
	if (!r)
		return NULL;
	*r = (struct request){.client = c,
		.id = body_id(c->tag, c->next_id++),
		.planned_ns = planned_ns,
		.path = plan_draw(c->conf.plan, &c->rand),
		.is_probe = is_probe};
	c->n_live++;
	c->n_begun += !is_probe;
	c->result.sent += !is_probe;
	return r;
}

struct request *client_take_resend(struct client *c)
{
	struct request *r = TAILQ_FIRST(&c->resend);
	if (r)
		TAILQ_REMOVE(&c->resend, r, link);
	return r;
}

static void finish(struct request *r, enum outcome outcome)
{
	struct client *c = r->client;
	if (r->is_probe) {
		bool well = outcome == OUTCOME_OK;
		c->next_probe_ns = well ? 0 : c->now_ns + RETRY_PROBE_NS;
		c->probed |= well;
		c->n_live--;
		pool_put(&c->requests, r);
		return;
	}
	c->result.ended[outcome]++;
	if (outcome == OUTCOME_OK && c->measured_from_ns) {
		if (r->planned_ns >= c->measured_from_ns)
			histogram_add(&c->result.latency, r->answered_ns - r->planned_ns);
		c->result.measured += c->phase == CLIENT_MEASURED;
	}
	c->progress_ns = c->now_ns;
	c->n_live--;
	pool_put(&c->requests, r);
}

bool client_request_send(struct client *c, struct client_conn *k, struct request *r)
{
	struct h2_message m;
	struct field fields[PLAN_MAX_FIELDS + 1];
	char id_text[16];
	const struct plan *p = c->conf.plan;
	plan_request(p, r->path, r->id, fields, id_text, &m);
	// Where all answers must be alike, so must the requests.
	r->out = (struct body_out){.id = p->check == PLAN_CHECK_CONTENT ? r->id : 0,
		.size = p->body_size,
		.is_grpc = p->is_grpc,
		.ends = true};
	r->in = (struct body_in){.id = r->id, .id_known = true, .is_grpc = p->is_grpc};
	r->http_status = 0;
	r->grpc_status = GRPC_NONE;
	r->hash = UINT64_C(0xcbf29ce484222325);
	r->has_ended = false;
	r->stream = c->protocol->open(k->conn.session, &m, r);
	if (!r->stream) {
		TAILQ_INSERT_HEAD(&c->resend, r, link);
		r->sent_ns = r->sent_ns ? r->sent_ns : c->now_ns;
		return false;
	}
	c->result.resent += r->n_sends > 0;
	r->n_sends++;
	r->on = k;
	r->sent_ns = c->now_ns;
	k->n_open++;
	TAILQ_INSERT_TAIL(&c->flying, r, link);
	conn_touch(&k->conn);
	if (!m.end_stream && c->protocol->push && !c->protocol->push(r))
		c->protocol->reset(r);
	return true;
}

void client_answer_ended(struct request *r)
{
	r->has_ended = true;
	r->answered_ns = r->client->now_ns;
}

void client_answer_message(struct request *r, const struct h2_message *m)
{
	if (m->kind == H2_INFORMATIONAL)
		return;
	if (m->kind == H2_RESPONSE)
		r->http_status = m->status;
	for (size_t i = 0; r->in.is_grpc && i < m->n_fields; i++) {
		uint64_t status;
		if (str_eq(m->fields[i].name, STR("grpc-status")) &&
			str_number(m->fields[i].value, INT32_MAX, &status))
			r->grpc_status = (int)status;
	}
}

// FNV-1a.
static uint64_t hash_more(uint64_t hash, const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = (hash ^ p[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void client_answer_data(struct request *r, const uint8_t *p, size_t len)
{
	struct client *c = r->client;
	if (c->conf.plan->check == PLAN_CHECK_CONTENT) {
		body_in_feed(&r->in, p, len);
	} else {
		r->in.at += len;
		if (c->conf.plan->check == PLAN_CHECK_SAME)
			r->hash = hash_more(r->hash, p, len);
	}
	c->result.content_in += len;
}

static enum outcome judge_content(const struct request *r)
{
	uint64_t said, id = r->id;
	if (body_in_is(&r->in, r->client->conf.plan->answer_size))
		return OUTCOME_OK;
	bool is_ours = body_in_said_id(&r->in, &said) && said != id &&
	               body_id_tag(said) == body_id_tag(id) &&
	               body_id_seq(said) < r->client->next_id;
	return is_ours ? OUTCOME_DOUBLED : OUTCOME_ALTERED;
}

static enum outcome judge_alike(const struct request *r)
{
	struct alike *a = &r->client->alike[r->path];
	if (!a->known)
		*a = (struct alike){.known = true, .hash = r->hash, .size = r->in.at};
	return a->hash == r->hash && a->size == r->in.at ? OUTCOME_OK : OUTCOME_ALTERED;
}

static enum outcome judge(struct request *r)
{
	struct client_result *result = &r->client->result;
	bool is_grpc = r->client->conf.plan->is_grpc;
	if (r->http_status != 200 || (is_grpc && r->grpc_status != 0)) {
		if (!result->odd_http && !r->is_probe) {
			result->odd_http = r->http_status;
			result->odd_grpc = is_grpc ? r->grpc_status : GRPC_NONE;
		}
		return OUTCOME_STATUS;
	}
	switch (r->client->conf.plan->check) {
	case PLAN_CHECK_CONTENT:
		return judge_content(r);
	case PLAN_CHECK_SAME:
		return judge_alike(r);
	default:
		return OUTCOME_OK;
	}
}

void client_request_over(struct request *r, enum request_end end)
{
	struct client *c = r->client;
	bool malformed = end == REQUEST_MALFORMED, unprocessed = end == REQUEST_UNPROCESSED;
	TAILQ_REMOVE(&c->flying, r, link);
	r->stream = NULL;
	r->on->n_open--;
	client_conn_freed(c, r->on);
	if (r->has_ended && !malformed)
		finish(r, judge(r));
	else if (r->is_cut)
		finish(r, OUTCOME_CUT);
	else if (r->is_expired)
		finish(r, OUTCOME_TIMED_OUT);
	else if (malformed)
		finish(r, OUTCOME_ALTERED);
	else if (unprocessed && r->n_sends < MAX_SENDS)
		TAILQ_INSERT_TAIL(&c->resend, r, link);
	else if (unprocessed)
		finish(r, OUTCOME_REFUSED);
	else
		finish(r, end == REQUEST_LOST ? OUTCOME_LOST : OUTCOME_RESET);
}

void client_expire(struct client *c)
{
	struct request *r;
	while ((r = TAILQ_FIRST(&c->flying)) && c->now_ns >= r->sent_ns + c->conf.timeout_ns) {
		r->is_expired = true;
		conn_touch(&r->on->conn);
		c->protocol->reset(r);
	}
	while ((r = TAILQ_FIRST(&c->resend)) && c->now_ns >= r->sent_ns + c->conf.timeout_ns) {
		TAILQ_REMOVE(&c->resend, r, link);
		finish(r, OUTCOME_TIMED_OUT);
	}
}

void client_cut(struct client *c)
{
	struct request *r;
	while ((r = TAILQ_FIRST(&c->flying))) {
		r->is_cut = true;
		conn_touch(&r->on->conn);
		c->protocol->reset(r);
	}
	while ((r = client_take_resend(c)))
		finish(r, OUTCOME_CUT);
}
