// SPDX-License-Identifier: Apache-2.0
// The real pick path, in the order in which a request passes it (A27-I01), and what
// waits.
#include "lb/pick/breaker.h"
#include "lb/pick/loads.h"
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

#include <stdio.h>

const struct lb_leaf_layer *sim_layer(const struct sim *s)
{
	return s->picker ? lb_leaf_layer(s->picker) : NULL;
}

static void request_connect(struct sim *s, struct sim_worker *w, uint32_t member)
{
	if (w->connect_requested[member] == w->version)
		return;
	w->connect_requested[member] = w->version;
	sim_want(s, member);
}

static void failed(struct sim_request *r, enum sim_outcome outcome, const char *text)
{
	r->outcome = outcome;
	snprintf(r->text, sizeof(r->text), "%s", text);
}

// To this one, if it is connected here; else it waits for that.
static void send(struct sim *s, struct sim_request *r, const struct lb_endpoint *e, uint32_t member)
{
	struct sim_worker *w = &s->workers[r->worker];
	const struct lb_leaf_layer *layer = lb_leaf_layer(w->picker);
	if (!(w->ready[e->id / 64] >> (e->id % 64) & 1)) {
		sim_open(s, r->worker, e);
		return;
	}
	if (layer) {
		if (!lb_breaker_enter(layer->breaker, layer->max_requests)) {
			failed(r, SIM_REFUSED, "circuit breaker");
			return;
		}
		r->breaker = layer->breaker;
	}
	r->outcome = SIM_SENT;
	r->endpoint = e->id;
	r->member = member;
	r->address = plan_number(&e->addr);
	r->end_ns = r->lasts_ns == UINT64_MAX ? UINT64_MAX : twheel_now(s->wheel) + r->lasts_ns;
	s->n_served[r->address]++;
	if (s->on_served)
		s->on_served(s->on_ctx, r->address);
	if (r->n_cookie)
		w->used_ns[member] = twheel_now(s->wheel);
	if (r->counts_active)
		s->active[member]++;
}

static bool pick_bound(struct sim *s, struct sim_request *r, const struct lb_leaf_layer *layer)
{
	struct sim_worker *w = &s->workers[r->worker];
	struct lb_affinity_host host;
	switch (lb_affinity_map_pick(layer->sessions, r->cookie, r->n_cookie, &host)) {
	case LB_AFFINITY_CHILD:
		return false;
	case LB_AFFINITY_CONNECT:
		request_connect(s, w, host.member);
		return true;
	case LB_AFFINITY_QUEUE:
		return true;
	case LB_AFFINITY_USE:
		send(s, r, host.state->endpoint, host.member);
		return true;
	}
	return true;
}

static void pick(struct sim *s, struct sim_request *r)
{
	struct sim_worker *w = &s->workers[r->worker];
	if (!w->picker)
		return;
	const struct lb_leaf_layer *layer = lb_leaf_layer(w->picker);
	r->n_picks++;
	r->counts_active = r->wants_report = false;
	if (layer) {
		uint32_t category = lb_drops_draw(layer->drops, &r->dropped, layer->id, &w->rand);
		if (category != LB_DROP_NONE) {
			failed(r, SIM_DROPPED, lb_drops_name(layer->drops, category));
			return;
		}
		if (lb_breaker_in_flight(layer->breaker) >= layer->max_requests) {
			failed(r, SIM_REFUSED, "circuit breaker");
			return;
		}
		if (r->n_cookie && layer->sessions && pick_bound(s, r, layer))
			return;
	}
	struct lb_pick_ctx ctx = {.rand = &w->rand,
		.positions = w->positions,
		.ready = w->ready,
		.hash = &r->hash,
		.active = s->active};
	struct lb_pick p = lb_pick(w->picker, &ctx);
	if (p.connect_request)
		request_connect(s, w, p.connect_request - 1);
	if (p.want)
		sim_open(s, r->worker, p.want);
	if (p.kind == LB_PICK_FAIL) {
		if (!r->waits_for_ready)
			failed(r, SIM_FAILED, p.text);
		return;
	}
	if (p.kind == LB_PICK_QUEUE)
		return;
	r->counts_active = p.cell->counts_active;
	r->wants_report = p.cell->wants_report;
	send(s, r, p.cell->endpoint, p.cell->member);
}

struct sim_request *sim_begin(struct sim *s, uint32_t worker)
{
	for (uint32_t i = 0; i < SIM_REQUESTS; i++) {
		struct sim_request *r = &s->requests[i];
		if (r->in_use)
			continue;
		s->n_slots_used = i < s->n_slots_used ? s->n_slots_used : i + 1;
		*r = (struct sim_request){.in_use = true,
			.worker = worker,
			.order = s->n_requests++,
			.lasts_ns = UINT64_MAX,
			.end_ns = UINT64_MAX,
			.deadline_ns = UINT64_MAX};
		return r;
	}
	fail_msg("more than %d requests", SIM_REQUESTS);
	return NULL;
}

void sim_bind(struct sim_request *r, uint32_t address)
{
	r->cookie[r->n_cookie++] = plan_address(address);
}

void sim_start(struct sim *s, struct sim_request *r)
{
	pick(s, r);
}

// Once, whatever became of it (A32-I09, A48-02).
static void settle(struct sim *s, struct sim_request *r, bool ok)
{
	struct sim_worker *w = &s->workers[r->worker];
	if (r->breaker)
		lb_breaker_leave(r->breaker);
	r->breaker = NULL;
	if (r->counts_active)
		s->active[r->member]--;
	(ok ? w->n_ok : w->n_failed)[r->member]++;
	r->outcome = SIM_DONE;
}

static bool backend_fails(struct sim *s, const struct sim_request *r)
{
	return rand_below(&s->rand, 100) < s->hosts[r->address].fails_percent;
}

void sim_end(struct sim *s, struct sim_request *r)
{
	if (r->outcome == SIM_SENT)
		settle(s, r, !backend_fails(s, r));
	r->in_use = false;
}

uint32_t sim_once(struct sim *s, uint32_t worker)
{
	struct sim_request *r = sim_begin(s, worker);
	sim_start(s, r);
	uint32_t address = r->outcome == SIM_SENT ? r->address : UINT32_MAX;
	sim_end(s, r);
	return address;
}

void sim_requests_lost(struct sim *s, uint32_t worker, uint32_t endpoint)
{
	for (uint32_t i = 0; i < s->n_slots_used; i++) {
		struct sim_request *r = &s->requests[i];
		if (r->in_use && r->outcome == SIM_SENT && r->worker == worker &&
			r->endpoint == endpoint)
			settle(s, r, false);
	}
}

bool sim_requests_on(const struct sim *s, uint32_t worker, uint32_t endpoint)
{
	for (uint32_t i = 0; i < s->n_slots_used; i++) {
		const struct sim_request *r = &s->requests[i];
		if (r->in_use && r->outcome == SIM_SENT && r->worker == worker &&
			r->endpoint == endpoint)
			return true;
	}
	return false;
}

// Expired ones leave first; the rest in order of arrival (MC-17, Q-06).
void sim_requests_turn(struct sim *s, uint32_t worker)
{
	struct sim_worker *w = &s->workers[worker];
	uint64_t from = 0;
	w->changed = false;
	for (;;) {
		struct sim_request *next = NULL;
		for (uint32_t i = 0; i < s->n_slots_used; i++) {
			struct sim_request *r = &s->requests[i];
			if (r->in_use && r->outcome == SIM_WAITS && r->worker == worker &&
				r->order >= from && (!next || r->order < next->order))
				next = r;
		}
		if (!next)
			return;
		from = next->order + 1;
		pick(s, next);
	}
}

void sim_requests_expire(struct sim *s)
{
	uint64_t now = twheel_now(s->wheel);
	for (uint32_t i = 0; i < s->n_slots_used; i++) {
		struct sim_request *r = &s->requests[i];
		if (r->in_use && r->outcome == SIM_WAITS && r->deadline_ns <= now)
			failed(r, SIM_FAILED, "deadline exceeded");
		if (r->in_use && r->outcome == SIM_SENT && r->end_ns <= now)
			sim_end(s, r);
	}
}

uint64_t sim_next_of_requests(const struct sim *s)
{
	uint64_t next = s->load_ns ? s->load_at_ns : UINT64_MAX;
	for (uint32_t i = 0; i < s->n_slots_used; i++) {
		const struct sim_request *r = &s->requests[i];
		uint64_t at = !r->in_use                ? UINT64_MAX
		              : r->outcome == SIM_WAITS ? r->deadline_ns
		              : r->outcome == SIM_SENT  ? r->end_ns
		                                        : UINT64_MAX;
		next = at < next ? at : next;
	}
	return next;
}

static void label_of(const struct sim *s, const struct sim_request *r, char *ret, size_t size)
{
	static const char *const words[] = {
		[SIM_WAITS] = "queue", [SIM_DROPPED] = "drop", [SIM_REFUSED] = "refuse"};
	if (r->outcome == SIM_FAILED) {
		snprintf(ret, size, "fail: %s", r->text);
	} else if (r->outcome == SIM_SENT) {
		const struct lb_leaf_layer *layer = lb_leaf_layer(s->workers[0].picker);
		for (uint32_t i = 0; i < s->n_leaves; i++)
			if (strcmp(s->leaves[i].name, layer->name) == 0)
				snprintf(ret, size, "%s%sP%d", s->aggregate ? layer->name : "",
					s->aggregate ? " " : "",
					(int)plan_priority_of(&s->leaves[i].plan, r->address));
	} else {
		snprintf(ret, size, "%s", words[r->outcome]);
	}
}

void sim_probe(struct sim *s)
{
	char label[sizeof(s->label)];
	struct sim_request *r = sim_begin(s, 0);
	r->lasts_ns = 0;
	sim_start(s, r);
	label_of(s, r, label, sizeof(label));
	if (r->outcome == SIM_SENT)
		s->n_served[r->address]--;
	sim_end(s, r);
	if (strcmp(label, s->label) == 0)
		return;
	memcpy(s->label, label, sizeof(label));
	sim_write(s, "%s", label);
}
