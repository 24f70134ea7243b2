// SPDX-License-Identifier: Apache-2.0
// Workers' connections over the pretended network: what dataplane/proxy/backend.c does, with one
// connection an address and no bytes.
#include "lb/member/connectivity.h"
#include "lb/pick/link.h"
#include "tests/sim/balance/sim.h"
#include "tests/support/check.h"

#include <stdio.h>

static void set_ready(struct sim_worker *w, uint32_t id, bool ready)
{
	uint64_t bit = UINT64_C(1) << id % 64;
	w->ready[id / 64] = ready ? w->ready[id / 64] | bit : w->ready[id / 64] & ~bit;
	w->changed = true;
}

static void tell(
	struct sim *s, uint32_t worker, uint32_t id, enum lb_event_kind kind, const char *why)
{
	struct lb_event e = {.kind = kind, .endpoint_id = id};
	snprintf(e.why, sizeof(e.why), "%s", why);
	lb_connectivity_event(s->connectivity, worker, &e);
}

static void begin(struct sim *s, uint32_t worker, struct sim_conn *c)
{
	uint32_t number = plan_number(&c->address);
	const struct sim_host *h = &s->hosts[number];
	assert_false(c->is_connecting || c->is_ready);
	assert_true(s->n_syns < SIM_SYNS);
	s->syns[s->n_syns++] = (struct sim_syn){sim_now(s), number, worker};
	c->is_connecting = true;
	c->kind = h->kind;
	c->due_ns = twheel_now(s->wheel) + h->syn_ns;
	if (h->kind == SIM_UP || h->kind == SIM_HANGS_UP)
		c->due_ns += h->settings_ns;
	else if (h->kind != SIM_REFUSES)
		c->due_ns = twheel_now(s->wheel) + SIM_CONNECT_TIMEOUT;
	if (s->on_syn)
		s->on_syn(s->on_ctx, number);
	if (s->n_workers > 1)
		sim_write(s, "syn %u by %u", number, worker);
	else
		sim_write(s, "syn %u", number);
}

static struct sim_conn *use(struct sim *s, uint32_t worker, const struct lb_endpoint *e)
{
	struct sim_worker *w = &s->workers[worker];
	assert_true(e->id < SIM_IDS);
	s->n_ids = e->id < s->n_ids ? s->n_ids : e->id + 1;
	struct sim_conn *c = &w->conns[e->id];
	if (!c->is_known) {
		*c = (struct sim_conn){
			.is_known = true, .address = e->addr, .n_release_owed = c->n_release_owed};
		w->ready[e->id / 64] &= ~(UINT64_C(1) << e->id % 64);
	}
	assert_true(ip_port_eq(&c->address, &e->addr)); // no other address before RELEASED
	if (c->is_releasing && c->is_ready) // UPD-03: what is left serves on
		set_ready(w, e->id, true);
	c->is_releasing = false;
	return c;
}

void sim_connect(struct sim *s, struct lb_endpoint *e)
{
	uint32_t worker = lb_endpoint_anchor(e->id, s->n_workers);
	struct sim_conn *c = use(s, worker, e);
	c->connect_owed = true;
	if (!c->is_ready && !c->is_connecting)
		begin(s, worker, c);
}

void sim_release(struct sim *s, struct lb_endpoint *e)
{
	for (uint32_t i = 0; i < s->n_workers; i++) {
		struct sim_conn *c = use(s, i, e);
		c->is_releasing = true;
		c->n_release_owed++;
		c->told_up = c->connect_owed = false;
	}
	if (s->on_released)
		s->on_released(s->on_ctx, plan_number(&e->addr));
}

bool sim_open(struct sim *s, uint32_t worker, const struct lb_endpoint *e)
{
	struct sim_conn *c = use(s, worker, e);
	if (c->is_ready || c->is_connecting || twheel_now(s->wheel) < c->retry_ns)
		return false;
	begin(s, worker, c);
	return true;
}

static void ended(
	struct sim *s, uint32_t worker, uint32_t id, enum lb_event_kind kind, const char *why)
{
	struct sim_conn *c = &s->workers[worker].conns[id];
	c->is_ready = false;
	set_ready(&s->workers[worker], id, false);
	if (c->told_up) {
		c->told_up = false;
		tell(s, worker, id, kind, why);
	}
}

static void attempt_over(struct sim *s, uint32_t worker, uint32_t id)
{
	static const char *const why[] = {[SIM_REFUSES] = "refused",
		[SIM_SILENT] = "connect timeout",
		[SIM_MUTE] = "no SETTINGS"};
	struct sim_worker *w = &s->workers[worker];
	struct sim_conn *c = &w->conns[id];
	c->is_connecting = false;
	if (c->kind != SIM_UP && c->kind != SIM_HANGS_UP) {
		c->retry_ns = twheel_now(s->wheel) + backoff_next_ns(&c->backoff, &w->rand);
		bool owed = c->connect_owed;
		c->connect_owed = false;
		w->changed = true;
		if (owed)
			tell(s, worker, id, LB_EVENT_FAILED, why[c->kind]);
		return;
	}
	backoff_reset(&c->backoff);
	c->retry_ns = 0;
	c->is_ready = true;
	set_ready(w, id, true);
	if (s->on_connected)
		s->on_connected(s->on_ctx, plan_number(&c->address));
}

// As proxy_backend_tell_all(): what is, against what the control thread knows.
static void tell_one(struct sim *s, uint32_t worker, uint32_t id)
{
	struct sim_worker *w = &s->workers[worker];
	struct sim_conn *c = &w->conns[id];
	if (c->is_releasing) {
		if (w->ready[id / 64] >> (id % 64) & 1)
			set_ready(w, id, false);
		if (sim_requests_on(s, worker, id))
			return; // they finish first
		*c = (struct sim_conn){.n_release_owed = c->n_release_owed};
	}
	while (c->n_release_owed) {
		c->n_release_owed--;
		tell(s, worker, id, LB_EVENT_RELEASED, "");
	}
	if (!c->is_known)
		return;
	if (c->is_ready && (!c->told_up || c->connect_owed)) {
		c->told_up = true;
		c->connect_owed = false;
		tell(s, worker, id, LB_EVENT_CONNECTED, "");
	}
	if (c->is_ready && c->kind == SIM_HANGS_UP)
		ended(s, worker, id, LB_EVENT_SHORT_LIVED, "closed by peer");
}

void sim_turn_workers(struct sim *s)
{
	uint64_t now = twheel_now(s->wheel);
	for (uint32_t i = 0; i < s->n_workers; i++) {
		for (uint32_t id = 0; id < s->n_ids; id++) {
			struct sim_conn *c = &s->workers[i].conns[id];
			if (!c->is_known)
				continue;
			if (c->is_connecting && !c->is_releasing && c->due_ns <= now)
				attempt_over(s, i, id);
			tell_one(s, i, id);
		}
	}
}

uint64_t sim_next_of_workers(const struct sim *s)
{
	uint64_t next = UINT64_MAX, now = twheel_now(s->wheel);
	for (uint32_t i = 0; i < s->n_workers; i++) {
		for (uint32_t id = 0; id < s->n_ids; id++) {
			const struct sim_conn *c = &s->workers[i].conns[id];
			if (c->is_known && c->is_connecting && c->due_ns < next)
				next = c->due_ns;
			// What waits for this worker's own attempt.
			if (c->is_known && c->retry_ns > now && c->retry_ns < next)
				next = c->retry_ns;
		}
	}
	return next;
}

void sim_set(struct sim *s, uint32_t address, enum sim_host_kind kind)
{
	s->hosts[address].kind = kind;
}

static void end_at(struct sim *s, uint32_t worker, uint32_t address, const char *why, bool cuts)
{
	for (uint32_t id = 0; id < s->n_ids; id++) {
		struct sim_conn *c = &s->workers[worker].conns[id];
		if (!c->is_known || !c->is_ready || plan_number(&c->address) != address)
			continue;
		if (cuts)
			sim_requests_lost(s, worker, id);
		ended(s, worker, id, LB_EVENT_LOST, why);
	}
}

void sim_reset_at(struct sim *s, uint32_t worker, uint32_t address)
{
	end_at(s, worker, address, "reset by peer", true);
}

void sim_reset(struct sim *s, uint32_t address)
{
	for (uint32_t i = 0; i < s->n_workers; i++)
		sim_reset_at(s, i, address);
}

void sim_goaway(struct sim *s, uint32_t address)
{
	for (uint32_t i = 0; i < s->n_workers; i++)
		end_at(s, i, address, "GOAWAY", false);
}

uint32_t sim_count_syns(const struct sim *s, uint32_t address)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_syns; i++)
		n += s->syns[i].address == address;
	return n;
}

bool sim_is_connected(const struct sim *s, uint32_t worker, uint32_t address)
{
	for (uint32_t id = 0; id < s->n_ids; id++) {
		const struct sim_conn *c = &s->workers[worker].conns[id];
		if (c->is_known && c->is_ready && plan_number(&c->address) == address)
			return true;
	}
	return false;
}

uint32_t sim_n_connections(const struct sim *s, uint32_t address)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < s->n_workers; i++)
		n += sim_is_connected(s, i, address);
	return n;
}
