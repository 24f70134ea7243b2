// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/client.h"

#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/client_inside.h"

#include <stdlib.h>
#include <string.h>

static const char *const outcome_names[N_OUTCOMES] = {
	"ok", "lost", "timed_out", "altered", "doubled", "status", "reset", "refused", "cut"};

const char *outcome_name(enum outcome o)
{
	return outcome_names[o];
}

static bool all_issued(const struct client *c)
{
	if (c->phase >= CLIENT_ENDING)
		return true;
	if (c->conf.n_requests && c->n_begun >= c->conf.n_requests)
		return true;
	return c->conf.rate > 0 && c->conf.duration_ns && c->n_begun >= c->n_planned;
}

static uint64_t planned_ns(const struct client *c)
{
	if (c->conf.rate == 0)
		return c->now_ns;
	return c->start_ns + (uint64_t)((double)c->n_begun * (double)NS_PER_SECOND / c->conf.rate);
}

// The next request on this connection; one that is sent again goes first. False = none is due.
static bool issue_on(struct client *c, struct client_conn *k)
{
	struct request *r = client_take_resend(c);
	if (!r) {
		uint64_t at = planned_ns(c);
		if (c->phase == CLIENT_PROBING || all_issued(c) || at > c->now_ns)
			return false;
		r = client_request_new(c, at, false);
		if (!r)
			return false;
	}
	if (!client_request_send(c, k, r))
		return false;
	k->n_issued++;
	if (c->conf.per_conn && k->n_issued == c->conf.per_conn)
		client_leave(c, k);
	return true;
}

static bool send_probe(struct client *c)
{
	struct client_conn *k = c->now_ns >= c->next_probe_ns ? client_conn_take_ready(c) : NULL;
	if (!k)
		return false;
	struct request *r =
		client_conn_has_room(c, k) ? client_request_new(c, c->now_ns, true) : NULL;
	if (r && client_request_send(c, k, r))
		c->next_probe_ns = UINT64_MAX;
	client_conn_make_ready(c, k);
	return true;
}

static bool issue_all(struct client *c)
{
	bool any = false;
	if (c->phase == CLIENT_PROBING && TAILQ_EMPTY(&c->resend))
		return send_probe(c);
	if (c->phase == CLIENT_OPENING || (c->phase >= CLIENT_ENDING && TAILQ_EMPTY(&c->resend)))
		return false;
	struct client_conn *k;
	while ((k = client_conn_take_ready(c))) {
		if (!client_conn_has_room(c, k)) {
			if (k->n_open > 0)
				continue; // a stream that ends makes it ready again
			client_conn_make_ready(
				c, k); // closing connections still hold what it needs
			break;
		}
		bool issued = issue_on(c, k);
		client_conn_make_ready(c, k);
		if (!issued)
			break;
		any = true;
	}
	return any;
}

static void set_phase(struct client *c, enum client_phase phase)
{
	c->phase = phase;
	if (phase == CLIENT_MEASURED)
		c->measured_from_ns = c->now_ns;
	if (phase == CLIENT_ENDING) {
		c->measured_to_ns = c->now_ns;
		c->result.idle_held = c->n_idle_up;
	}
}

static void begin(struct client *c)
{
	c->start_ns = c->now_ns;
	set_phase(c, c->conf.warm_up_ns ? CLIENT_WARMING : CLIENT_MEASURED);
}

static void prepare(struct client *c)
{
	bool all_up = c->n_up == c->conf.n_conns && c->n_idle_up == c->conf.n_idle;
	if (all_up && (c->probed || !c->conf.probe)) {
		begin(c);
	} else if (c->now_ns >= c->opening_ns + c->conf.timeout_ns) {
		c->result.gave_up = true;
		set_phase(c, CLIENT_ENDING);
	} else if (all_up) {
		c->phase = CLIENT_PROBING;
	}
}

static void end_of_time(struct client *c)
{
	uint64_t end = c->measured_from_ns + c->conf.duration_ns;
	if (!c->conf.duration_ns || c->now_ns < end)
		return;
	// Open loop: what was planned is owed, even late.
	bool owes = c->conf.rate > 0 && c->n_begun < c->n_planned;
	if (owes && c->now_ns < end + c->conf.timeout_ns)
		return;
	if (owes)
		c->result.ended[OUTCOME_LOST] += c->n_planned - c->n_begun;
	set_phase(c, CLIENT_ENDING);
	c->measured_to_ns = end;
}

// Nothing is answered any more, and nobody lets us in.
static void give_up_if_stalled(struct client *c)
{
	if (c->phase >= CLIENT_ENDING || c->n_live || c->n_up ||
		c->now_ns < c->progress_ns + c->conf.timeout_ns)
		return;
	if (c->conf.n_requests)
		c->result.ended[OUTCOME_LOST] += c->conf.n_requests - c->n_begun;
	c->result.gave_up = true;
	set_phase(c, CLIENT_ENDING);
}

// All of them idle, whatever they were opened for.
static void hold(struct client *c)
{
	set_phase(c, CLIENT_HOLDING);
	c->hold_until_ns = c->now_ns + c->conf.hold_ns;
	c->result.idle_held = c->n_up + c->n_idle_up;
}

static void close_all(struct client *c)
{
	if (c->measured_from_ns)
		c->result.window_ns = c->measured_to_ns - c->measured_from_ns;
	set_phase(c, CLIENT_CLOSING);
	for (struct client_conn *k = LIST_FIRST(&c->all); k; k = LIST_NEXT(k, link)) {
		client_leave(c, k);
		if (k->conn.session)
			client_conn_close_soon(c, k);
		else if (!k->up && k->conn.tcp)
			conn_abort(&k->conn, "done");
	}
}

static void move_on(struct client *c)
{
	switch (c->phase) {
	case CLIENT_OPENING:
	case CLIENT_PROBING:
		prepare(c);
		break;
	case CLIENT_WARMING:
		give_up_if_stalled(c);
		if (c->phase == CLIENT_WARMING && c->now_ns >= c->start_ns + c->conf.warm_up_ns)
			set_phase(c, CLIENT_MEASURED);
		break;
	case CLIENT_MEASURED:
		end_of_time(c);
		give_up_if_stalled(c);
		if (c->phase == CLIENT_MEASURED && c->conf.n_requests && all_issued(c) &&
			c->n_live == 0)
			set_phase(c, CLIENT_ENDING);
		break;
	case CLIENT_ENDING:
		if (c->n_live == 0 && c->conf.hold_ns && !c->result.gave_up)
			hold(c);
		else if (c->n_live == 0)
			close_all(c);
		break;
	case CLIENT_HOLDING:
		if (c->now_ns < c->hold_until_ns)
			break;
		// Whoever closed one or told it to go, with GOAWAY.
		c->result.idle_lost += c->result.idle_held - (c->n_up + c->n_idle_up);
		close_all(c);
		break;
	case CLIENT_CLOSING:
		if (LIST_EMPTY(&c->all))
			c->phase = CLIENT_DONE;
		break;
	case CLIENT_DONE:
		break;
	}
}

void client_begin_turn(struct client *c, uint64_t now_ns)
{
	c->now_ns = now_ns;
	if (c->opening_ns == 0)
		c->opening_ns = now_ns;
}

bool client_end_turn(struct client *c)
{
	client_expire(c);
	bool any = side_pump(&c->side); // streams end, and make room
	client_conns_close(c);
	move_on(c);
	if (!all_issued(c) || !TAILQ_EMPTY(&c->resend))
		any |= client_conns_open(c);
	any |= issue_all(c);
	any |= side_pump(&c->side);
	return any;
}

uint64_t client_due_ns(const struct client *c)
{
	bool planned = c->conf.rate > 0 && !all_issued(c) &&
	               (c->phase == CLIENT_WARMING || c->phase == CLIENT_MEASURED);
	return planned ? planned_ns(c) : c->phase == CLIENT_HOLDING ? c->hold_until_ns : UINT64_MAX;
}

void client_stop(struct client *c)
{
	c->conf.hold_ns = c->hold_until_ns = 0;
	if (c->phase >= CLIENT_ENDING)
		return;
	set_phase(c, CLIENT_ENDING);
	client_cut(c);
}

void client_give_up(struct client *c)
{
	c->result.gave_up = true;
}

static bool make(struct client *c)
{
	const struct client_conf *conf = &c->conf;
	uint32_t n_conns = 2 * (conf->n_conns + conf->n_idle) + CLIENT_MAX_CONNECTING;
	uint64_t n_requests = (uint64_t)conf->n_conns * conf->n_streams;
	if (n_requests > CLIENT_MAX_IN_FLIGHT)
		n_requests = CLIENT_MAX_IN_FLIGHT;
	c->protocol = conf->is_http1 ? &client_http1 : &client_http2;
	c->side = (struct side){.tcp = conf->tcp,
		.wheel = conf->wheel,
		.chunks = conf->chunks,
		.protocol = c->protocol->conn,
		.context = c->protocol->context_new(c, n_conns, (uint32_t)n_requests)};
	c->sources = malloc(conf->n_sources * sizeof(c->sources[0]));
	c->alike = calloc(conf->plan->n_paths, sizeof(c->alike[0]));
	return c->side.context && c->sources && c->alike &&
	       side_init(&c->side, conf->tls, n_conns, &c->now_ns) &&
	       pool_init(&c->conns, sizeof(struct client_conn), n_conns) == 0 &&
	       pool_init(&c->requests, sizeof(struct request), (uint32_t)n_requests + 1) == 0;
}

struct client *client_new(const struct client_conf *conf)
{
	DCHECK(conf->n_conns && conf->n_streams && conf->n_sources);
	DCHECK(!conf->is_http1 || (conf->n_streams == 1 && !conf->plan->is_grpc));
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	if (conf->rate > 0 && conf->duration_ns)
		c->n_planned = (uint64_t)((double)(conf->warm_up_ns + conf->duration_ns) *
					  conf->rate / 1e9);
	c->result.odd_grpc = -1;
	STAILQ_INIT(&c->ready);
	TAILQ_INIT(&c->flying);
	TAILQ_INIT(&c->resend);
	rand_init(&c->rand, conf->seed);
	c->tag = (uint32_t)(rand_u64(&c->rand) >> BODY_SEQ_BITS) | 1;
	if (!make(c)) {
		client_free(c);
		return NULL;
	}
	memcpy(c->sources, conf->sources, conf->n_sources * sizeof(c->sources[0]));
	return c;
}

void client_free(struct client *c)
{
	if (!c)
		return;
	for (struct client_conn *k = LIST_FIRST(&c->all); k; k = LIST_NEXT(k, link))
		if (k->conn.tcp)
			conn_abort(&k->conn, "done");
	side_fini(&c->side);
	c->protocol->context_free(c->side.context);
	pool_fini(&c->conns);
	pool_fini(&c->requests);
	free(c->sources);
	free(c->alike);
	free(c);
}

enum client_phase client_phase(const struct client *c)
{
	return c->phase;
}

const struct client_result *client_result(const struct client *c)
{
	return &c->result;
}

uint32_t client_tag(const struct client *c)
{
	return c->tag;
}

bool client_result_is_good(const struct client_result *r)
{
	for (int o = OUTCOME_OK + 1; o < N_OUTCOMES; o++)
		if (o != OUTCOME_CUT && r->ended[o])
			return false;
	return !r->gave_up && r->idle_lost == 0 && r->unasked == 0;
}
