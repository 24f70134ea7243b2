// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/client.h"

#include "lb/base/check.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/client_inside.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CONNECTING 256 // at one time; and at the end closing
#define MAX_CLOSING 64 // in one turn: more FINs than a device holds would be lost
#define RETRY_CONNECT_NS UINT64_C(100000000)
#define RETRY_PROBE_NS UINT64_C(20000000)

static const char *const outcome_names[N_OUTCOMES] = {
	"ok", "lost", "timed_out", "altered", "doubled", "status", "reset", "refused", "cut"};

const char *outcome_name(enum outcome o)
{
	return outcome_names[o];
}

static void make_ready(struct client *c, struct client_conn *k)
{
	if (k->ready || k->is_idle || k->leaving || !k->conn.h2)
		return;
	k->ready = true;
	k->ready_next = NULL;
	if (c->ready_tail)
		c->ready_tail->ready_next = k;
	else
		c->ready_head = k;
	c->ready_tail = k;
}

static void release(struct client *c, struct client_conn *k)
{
	if (k->gone && !k->ready && !k->in_closing)
		pool_put(&c->conns, k);
}

static struct client_conn *take_ready(struct client *c)
{
	for (;;) {
		struct client_conn *k = c->ready_head;
		if (!k)
			return NULL;
		c->ready_head = k->ready_next;
		if (!c->ready_head)
			c->ready_tail = NULL;
		k->ready = false;
		if (!k->gone)
			return k;
		release(c, k);
	}
}

static bool has_room(const struct client *c, const struct client_conn *k)
{
	const struct client_conf *conf = &c->conf;
	return k->conn.h2 && !k->leaving && k->n_open < conf->n_streams &&
	       h2_conn_stream_room(k->conn.h2) > 0;
}

void client_leave(struct client *c, struct client_conn *k)
{
	if (k->leaving)
		return;
	k->leaving = true;
	if (k->up && !k->is_idle)
		c->n_up--;
	if (k->up && k->is_idle)
		c->n_idle_up--;
	if (k->is_idle)
		c->n_idle--;
	else
		c->n_active--;
}

static void close_soon(struct client *c, struct client_conn *k)
{
	if (k->in_closing)
		return;
	k->in_closing = true;
	k->closing_next = c->closing;
	c->closing = k;
}

void client_conn_freed(struct client *c, struct client_conn *k)
{
	if (k->leaving && k->n_open == 0 && k->conn.h2)
		close_soon(c, k);
	else
		make_ready(c, k);
}

static void on_up(struct conn *conn)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	k->up = true;
	c->n_connecting--;
	c->result.opened++;
	c->progress_ns = c->now_ns;
	histogram_add(&c->result.connect, c->now_ns - k->begun_ns);
	if (k->is_idle)
		c->n_idle_up++;
	else
		c->n_up++;
	make_ready(c, k);
}

static void on_over(struct conn *conn, const char *why)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	bool was_wanted = !k->leaving;
	client_leave(c, k);
	if (!k->up) {
		c->n_connecting--;
		c->result.connect_failed++;
		c->next_connect_ns = c->now_ns + RETRY_CONNECT_NS;
	} else if (was_wanted && c->phase < CLIENT_ENDING) {
		c->result.conns_lost++;
		c->result.idle_lost += k->is_idle;
	}
	if (was_wanted)
		c->result.why = why;
}

static void on_gone(struct conn *conn)
{
	struct client_conn *k = client_conn_of(conn);
	struct client *c = k->client;
	if (k->prev)
		k->prev->next = k->next;
	else
		c->all = k->next;
	if (k->next)
		k->next->prev = k->prev;
	c->n_closing -= k->closes_last;
	k->gone = true;
	release(c, k);
}

static const struct conn_ops conn_ops = {
	.h2 = &client_events, .role = H2_CLIENT, .up = on_up, .over = on_over, .gone = on_gone};

static bool connect_one(struct client *c, bool is_idle)
{
	struct client_conn *k = pool_take(&c->conns);
	if (!k)
		return false;
	*k = (struct client_conn){.client = c, .is_idle = is_idle, .begun_ns = c->now_ns};
	struct tcp_flow flow = {
		.local = c->sources[c->next_source++ % c->conf.n_sources],
		.remote = c->conf.to.ip,
		.remote_port = c->conf.to.port,
	};
	if (!conn_connect(&k->conn, &c->side, &conn_ops, &flow, c->conf.timeout_ns)) {
		pool_put(&c->conns, k);
		c->result.why = "no free port, or out of memory";
		c->next_connect_ns = c->now_ns + RETRY_CONNECT_NS;
		return false;
	}
	k->next = c->all;
	if (k->next)
		k->next->prev = k;
	c->all = k;
	c->n_connecting++;
	if (is_idle)
		c->n_idle++;
	else
		c->n_active++;
	return true;
}

static bool all_issued(const struct client *c)
{
	if (c->phase >= CLIENT_ENDING)
		return true;
	if (c->conf.n_requests && c->n_begun >= c->conf.n_requests)
		return true;
	return c->conf.rate > 0 && c->conf.duration_ns && c->n_begun >= c->n_planned;
}

static bool connect_all(struct client *c)
{
	bool any = false;
	if (c->now_ns < c->next_connect_ns || (all_issued(c) && !c->resend.head))
		return false;
	while (c->n_active < c->conf.n_conns && c->n_connecting < MAX_CONNECTING &&
		connect_one(c, false))
		any = true;
	while (c->n_idle < c->conf.n_idle && c->n_connecting < MAX_CONNECTING &&
		connect_one(c, true))
		any = true;
	return any;
}

static uint64_t planned_ns(const struct client *c)
{
	if (c->conf.rate == 0)
		return c->now_ns;
	return c->start_ns + (uint64_t)((double)c->n_begun * 1e9 / c->conf.rate);
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

void client_probed(struct client *c, bool well)
{
	c->next_probe_ns = well ? 0 : c->now_ns + RETRY_PROBE_NS;
	c->probed |= well;
}

static bool send_probe(struct client *c)
{
	struct client_conn *k = c->now_ns >= c->next_probe_ns ? take_ready(c) : NULL;
	if (!k)
		return false;
	struct request *r = has_room(c, k) ? client_request_new(c, c->now_ns, true) : NULL;
	if (r && client_request_send(c, k, r))
		c->next_probe_ns = UINT64_MAX;
	make_ready(c, k);
	return true;
}

static bool issue_all(struct client *c)
{
	bool any = false;
	if (c->phase == CLIENT_PROBING && !c->resend.head)
		return send_probe(c);
	if (c->phase == CLIENT_OPENING || (c->phase >= CLIENT_ENDING && !c->resend.head))
		return false;
	struct client_conn *k;
	while ((k = take_ready(c))) {
		if (!has_room(c, k)) {
			if (k->n_open > 0)
				continue; // a stream that ends makes it ready again
			make_ready(c, k); // closing connections still hold what it needs
			break;
		}
		bool issued = issue_on(c, k);
		make_ready(c, k);
		if (!issued)
			break;
		any = true;
	}
	return any;
}

static void close_leaving(struct client *c)
{
	bool last = c->phase == CLIENT_CLOSING;
	for (int n = 0; c->closing && n < MAX_CLOSING; n++) {
		if (last && c->n_closing == MAX_CONNECTING)
			return;
		struct client_conn *k = c->closing;
		c->closing = k->closing_next;
		k->in_closing = false;
		if (k->conn.h2) {
			k->closes_last = last;
			c->n_closing += last;
			conn_close(&k->conn, "done");
		}
		release(c, k);
	}
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
	for (struct client_conn *k = c->all; k; k = k->next) {
		client_leave(c, k);
		if (k->conn.h2)
			close_soon(c, k);
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
		if (!c->all)
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
	close_leaving(c);
	move_on(c);
	any |= connect_all(c);
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
	uint32_t n_conns = 2 * (conf->n_conns + conf->n_idle) + MAX_CONNECTING;
	uint64_t n_requests = (uint64_t)conf->n_conns * conf->n_streams;
	if (n_requests > CLIENT_MAX_IN_FLIGHT)
		n_requests = CLIENT_MAX_IN_FLIGHT;
	struct h2_conf h2 = {
		.max_conns = n_conns,
		.max_streams = (uint32_t)n_requests + 1,
		.max_concurrent_streams = 0, // nobody asks us
		.stream_window = 256 * 1024,
		.conn_window = 4 * 1024 * 1024,
		.max_header_bytes = 64 * 1024,
		.max_header_fields = 256,
		.now_ns = &c->now_ns,
		.seed = conf->seed,
	};
	c->side = (struct side){.tcp = conf->tcp,
		.wheel = conf->wheel,
		.chunks = conf->chunks,
		.h2 = h2_context_new(&h2, conf->chunks)};
	c->sources = malloc(conf->n_sources * sizeof(c->sources[0]));
	c->alike = calloc(conf->plan->n_paths, sizeof(c->alike[0]));
	return c->side.h2 && c->sources && c->alike &&
	       pool_init(&c->conns, sizeof(struct client_conn), n_conns) == 0 &&
	       pool_init(&c->requests, sizeof(struct request), (uint32_t)n_requests + 1) == 0;
}

struct client *client_new(const struct client_conf *conf)
{
	DCHECK(conf->n_conns && conf->n_streams && conf->n_sources);
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	if (conf->rate > 0 && conf->duration_ns)
		c->n_planned = (uint64_t)((double)(conf->warm_up_ns + conf->duration_ns) *
					  conf->rate / 1e9);
	c->result.odd_grpc = -1;
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
	for (struct client_conn *k = c->all; k; k = k->next)
		if (k->conn.tcp)
			conn_abort(&k->conn, "done");
	if (c->side.h2)
		side_pump(&c->side);
	h2_context_free(c->side.h2);
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
	return !r->gave_up && r->idle_lost == 0;
}
