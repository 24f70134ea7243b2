// SPDX-License-Identifier: Apache-2.0
// A member's one connection among its addresses (PF-01..PF-08).
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/member/connectivity.h"
#include "lb/member/leg.h"
#include "lb/member/member_inside.h"

#include <stdlib.h>

#define DELAY_MIN_NS (100 * NS_PER_MS) // PF-02
#define DELAY_MAX_NS (2 * NS_PER_SECOND)

// PF-09. A network that gets its other family back has it used from then on.
#define SILENT_NS (10 * 60 * NS_PER_SECOND)

#define STUCK_NS (5 * NS_PER_SECOND)
#define TEXT_OF(n) #n
#define NUMBER(n) TEXT_OF(n)
#define STUCK_TEXT "no room for more than " NUMBER(LB_MAX_ENDPOINTS) " addresses"

struct stuck {
	struct twheel_timer timer;
	struct lb_member *member;
};

static struct twheel *wheel_of(const struct lb_member *m)
{
	return lb_connectivity_wheel(lb_member_connectivity(m));
}

static bool is_stuck(const struct lb_member *m)
{
	return m->phase == PHASE_STUCK;
}

void lb_member_give_back(struct lb_member *m)
{
	m->tells_error = false;
	if (is_stuck(m)) {
		twheel_cancel(wheel_of(m), &m->stuck->timer);
		free(m->stuck);
		m->stuck = NULL;
	}
	if (!m->has_many) {
		lb_leg_fini(&m->only, lb_member_connectivity(m));
		return;
	}
	lb_leg_race_free(m->many->race);
	m->many->race = NULL;
}

// What it says.

static enum lb_state raw_of(struct lb_member *m)
{
	static const enum lb_state states[] = {[PHASE_IDLE] = LB_IDLE,
		[PHASE_PASS] = LB_CONNECTING,
		[PHASE_READY] = LB_READY,
		[PHASE_STUCK] = LB_TRANSIENT_FAILURE};
	if (m->phase != PHASE_FAILED)
		return states[m->phase];
	for (uint32_t i = 0; i < lb_leg_count(m); i++)
		if (lb_subchannel_state(lb_leg_subchannel(lb_leg_at(m, i))) == LB_CONNECTING)
			return LB_CONNECTING;
	return LB_TRANSIENT_FAILURE;
}

struct lb_endpoint *lb_member_endpoint(const struct lb_member *m)
{
	if (m->phase != PHASE_READY)
		return NULL;
	return lb_subchannel_endpoint(lb_leg_subchannel(lb_leg_in_use(m)));
}

const char *lb_member_last_error(const struct lb_member *m)
{
	if (is_stuck(m))
		return STUCK_TEXT;
	const struct lb_leg *leg = m->tells_error ? &m->only : NULL;
	if (m->has_many)
		leg = m->many->race ? m->many->race->last_failed : NULL;
	return leg ? lb_subchannel_last_error(lb_leg_subchannel(leg)) : "";
}

static void begin(struct lb_member *m)
{
	if (m->n_busy++ == 0)
		m->wants_resolution = false; // heard already, if a watcher begins this
	lb_member_env_of(m)->rests_ns = 0;
}

static void enter(struct lb_member *m, enum lb_member_phase phase)
{
	m->has_news |= m->phase != phase;
	m->phase = (unsigned)phase & 7;
}

static void count(const struct lb_member *m, enum lb_state before, enum lb_state now)
{
	struct lb_connect_counts *c = lb_member_env_of(m)->connects;
	if (!c)
		return;
	c->succeeded += before == LB_CONNECTING && now == LB_READY;
	c->failed += before == LB_CONNECTING && now == LB_TRANSIENT_FAILURE && !is_stuck(m);
	c->disconnections += before == LB_READY && now != LB_READY;
}

// Tells the watchers what changed since begin(). They may change more, and the inner round tells
// everybody: then the outer one has nothing left to say. The member may be gone after this.
static void end(struct lb_member *m)
{
	if (--m->n_busy > 0)
		return;
	if (m->must_disconnect) {
		m->must_disconnect = false;
		lb_member_take_up(m);
		lb_member_give_back(m);
		enter(m, PHASE_IDLE);
	}
	enum lb_state now = raw_of(m);
	count(m, (enum lb_state)m->raw, now);
	m->raw = (unsigned)now & 3;
	if (m->has_news) {
		m->has_news = false;
		lb_member_tell(m);
		m->wants_resolution = false;
	}
	lb_member_end(m);
}

// A pass.

static bool is_v4(const struct lb_leg *leg)
{
	return ip_is_v4(&lb_subchannel_endpoint(lb_leg_subchannel(leg))->addr.ip);
}

// PF-09: whoever began before the winner and has neither failed nor got an answer leads nowhere, as
// does, most likely, whatever else is of its family.
static void remember_silence(struct lb_member *m, const struct lb_leg *winner)
{
	const struct lb_race *r = m->many->race;
	for (uint32_t i = 0; i < r->n_begun && &r->runners[i].leg != winner; i++) {
		const struct lb_leg *leg = &r->runners[i].leg;
		const struct lb_subchannel *s = lb_leg_subchannel(leg);
		if (!s || lb_subchannel_state(s) != LB_CONNECTING || s->waits ||
			lb_leg_has_failed(m, leg) || is_v4(leg) == is_v4(winner))
			continue;
		m->many->silent_v4 = is_v4(leg);
		m->many->silent_until_ns = twheel_now(wheel_of(m)) + SILENT_NS;
		return;
	}
}

// PF-03: the others are cancelled.
static void use(struct lb_member *m, struct lb_leg *winner)
{
	if (m->has_many) {
		struct lb_race *r = m->many->race;
		remember_silence(m, winner);
		for (uint32_t i = 0; i < r->n; i++)
			if (&r->runners[i].leg != winner)
				lb_leg_fini(&r->runners[i].leg, lb_member_connectivity(m));
		twheel_cancel(wheel_of(m), &r->timer);
		r->in_use = winner;
		m->many->n_failed = 0;
	}
	lb_leg_set_last_failed(m, NULL);
	enter(m, PHASE_READY);
}

static void fail(struct lb_member *m, struct lb_leg *leg)
{
	if (!m->has_many || ++m->many->n_failed >= m->many->n) {
		if (m->has_many)
			m->many->n_failed = 0;
		m->wants_resolution = true;
	}
	lb_leg_set_failed(m, leg, true);
	lb_leg_set_last_failed(m, leg);
	m->has_news = true; // the error's text
}

// PF-05
static void finish_if_all_failed(struct lb_member *m)
{
	for (uint32_t i = 0; i < lb_leg_count(m); i++)
		if (!lb_leg_has_failed(m, lb_leg_at(m, i)))
			return;
	enter(m, PHASE_FAILED);
	for (uint32_t i = 0; i < lb_leg_count(m); i++)
		lb_subchannel_request(
			lb_leg_subchannel(lb_leg_at(m, i))); // only those that are IDLE
}

// True = it is under way.
static bool begin_leg(struct lb_member *m, struct lb_leg *leg)
{
	struct lb_subchannel *s = lb_leg_subchannel(leg);
	if (lb_subchannel_state(s) == LB_TRANSIENT_FAILURE) { // PF-04
		fail(m, leg);
		return false;
	}
	lb_leg_set_failed(m, leg, false);
	lb_subchannel_request(s); // only if IDLE: else it has begun already
	return true;
}

static void begin_next(struct lb_member *m)
{
	if (!m->has_many) {
		if (!begin_leg(m, &m->only))
			finish_if_all_failed(m);
		return;
	}
	struct lb_race *r = m->many->race;
	struct twheel *wheel = wheel_of(m);
	twheel_cancel(wheel, &r->timer);
	while (r->n_begun < r->n)
		if (begin_leg(m, &r->runners[r->n_begun++].leg))
			break;
	uint64_t delay = lb_member_env_of(m)->attempt_delay_ns;
	delay = delay < DELAY_MIN_NS ? DELAY_MIN_NS : delay > DELAY_MAX_NS ? DELAY_MAX_NS : delay;
	if (r->n_begun < r->n)
		twheel_arm(wheel, &r->timer, twheel_now(wheel) + delay);
	else
		finish_if_all_failed(m);
}

static void on_timer(struct twheel_timer *t)
{
	struct lb_race *r = CONTAINER_OF(t, struct lb_race, timer);
	struct lb_member *m = r->member;
	begin(m);
	begin_next(m);
	end(m);
}

// False = out of memory.
static bool take(struct lb_member *m)
{
	if (!m->has_many)
		return lb_leg_take_only(m);
	struct lb_race *r = lb_leg_race_new(m, on_timer);
	if (!r)
		return false;
	lb_leg_race_free(
		m->many->race); // after the new one has taken the subchannel that this one kept
	m->many->race = r;
	return true;
}

static bool use_if_ready(struct lb_member *m, struct lb_leg *leg)
{
	lb_leg_set_failed(m, leg, false);
	bool is_ready = lb_subchannel_state(lb_leg_subchannel(leg)) == LB_READY;
	if (is_ready)
		use(m, leg);
	return is_ready;
}

static void start(struct lb_member *m)
{
	begin(m);
	enter(m, PHASE_PASS);
	bool is_ready = !m->has_many && use_if_ready(m, &m->only);
	for (uint32_t i = 0; m->has_many && !is_ready && i < m->many->race->n; i++)
		is_ready = use_if_ready(m, &m->many->race->runners[i].leg);
	if (!is_ready)
		begin_next(m);
	end(m);
}

static void try_later(struct stuck *s)
{
	struct twheel *wheel = wheel_of(s->member);
	twheel_arm(wheel, &s->timer, twheel_now(wheel) + STUCK_NS);
}

static void on_stuck(struct twheel_timer *t)
{
	struct stuck *s = CONTAINER_OF(t, struct stuck, timer);
	struct lb_member *m = s->member;
	m->stuck = NULL; // a single address's leg lies there
	if (!take(m)) {
		m->stuck = s;
		try_later(s);
		return;
	}
	free(s);
	start(m);
}

// Requests are not to wait for what has no room.
static void get_stuck(struct lb_member *m)
{
	bool is_full = lb_connectivity_is_full(lb_member_connectivity(m));
	struct stuck *s = is_full ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return;
	begin(m);
	lb_member_give_back(m);
	*s = (struct stuck){.timer.fire = on_stuck, .member = m};
	m->stuck = s;
	enter(m, PHASE_STUCK);
	try_later(s);
	end(m);
}

void lb_member_connect(struct lb_member *m)
{
	if (m->phase != PHASE_IDLE)
		return;
	lb_member_take_up(m);
	if (take(m))
		start(m);
	else
		get_stuck(m);
}

void lb_member_need(struct lb_member *m)
{
	lb_member_connect(m);
	(void)lb_member_expedite(m);
}

// What somebody has a connection to, or is about to, costs no attempt.
static bool is_known(const struct lb_member *m)
{
	bool is_known = false;
	for (uint32_t i = 0; !is_known && i < lb_member_n_addresses(m); i++) {
		const struct ip_port *address = lb_member_address(m, i);
		struct lb_security *security;
		if (lb_leg_security(m, address, &security))
			return false;
		is_known = lb_connectivity_has(lb_member_connectivity(m), address, security);
		lb_security_put(security);
	}
	return is_known;
}

bool lb_member_connect_in_turn(struct lb_member *m)
{
	struct lb_member_env *env = lb_member_env_of(m);
	if (m->phase != PHASE_IDLE || !env->queued.take ||
		lb_connectivity_admits(env->connectivity) || is_known(m)) {
		lb_member_connect(m);
		return false;
	}
	if (!m->is_put_off)
		lb_connectivity_put_off(env->connectivity);
	m->is_put_off = true;
	env->rests_ns = 0;
	lb_connectivity_queue(env->connectivity, &env->queued);
	return true;
}

void lb_member_take_up(struct lb_member *m)
{
	if (m->is_put_off)
		lb_connectivity_take_up(lb_member_connectivity(m));
	m->is_put_off = false;
}

bool lb_member_ask_again(struct lb_member *m)
{
	if (!m->is_put_off)
		return false;
	begin(m);
	lb_member_take_up(m);
	m->has_news = true;
	end(m);
	return true;
}

bool lb_member_expedite(struct lb_member *m)
{
	if (m->is_put_off) {
		lb_connectivity_admit_all(lb_member_connectivity(m), true);
		lb_member_ask_again(m);
		lb_connectivity_admit_all(lb_member_connectivity(m), false);
	}
	bool is_tried = m->phase == PHASE_PASS || m->phase == PHASE_FAILED;
	bool is_young = false;
	for (uint32_t i = 0; is_tried && i < lb_leg_count(m); i++)
		is_young |= lb_subchannel_expedite(lb_leg_subchannel(lb_leg_at(m, i)));
	return is_young;
}

// What subchannels say.

static void on_failure(struct lb_member *m, struct lb_leg *leg)
{
	if (m->phase == PHASE_IDLE) // somebody else's attempt
		return;
	fail(m, leg);
	if (m->phase == PHASE_FAILED)
		return;
	// Whoever was begun last has the next one begin; earlier ones only count.
	struct lb_race *r = m->has_many ? m->many->race : NULL;
	if (!r || r->n_begun == r->n)
		finish_if_all_failed(m);
	else if (leg == &r->runners[r->n_begun - 1].leg)
		begin_next(m);
}

// PF-06. The subchannel stays: it knows how soon it may try again. IDLE itself goes unheard where
// another of its users asks for it anew before we are told.
static void on_loss(struct lb_member *m, struct lb_leg *leg)
{
	if (m->has_many)
		m->many->race->in_use = NULL;
	lb_leg_set_last_failed(m, leg); // says why
	m->wants_resolution = true;
	enter(m, PHASE_IDLE);
}

void lb_member_on_state(struct lb_subchannel_watcher *w, enum lb_state state)
{
	struct lb_leg *leg = CONTAINER_OF(w, struct lb_leg, watcher);
	struct lb_member *m = lb_leg_member(leg);
	begin(m);
	if (leg == lb_leg_in_use(m) && state != LB_READY)
		on_loss(m, leg);
	switch (state) {
	case LB_READY:
		use(m, leg);
		break;
	case LB_TRANSIENT_FAILURE:
		on_failure(m, leg);
		break;
	case LB_IDLE:
		if (m->phase == PHASE_FAILED)
			lb_subchannel_request(lb_leg_subchannel(leg));
		break;
	case LB_CONNECTING:
		m->has_news |= m->phase == PHASE_FAILED; // the raw state may be another one
		break;
	}
	end(m);
}

// What others want.

void lb_member_set_ejected(struct lb_member *m, bool ejected)
{
	if (ejected == m->is_ejected)
		return;
	begin(m);
	m->is_ejected = ejected;
	m->has_news = true;
	end(m);
}

void lb_member_set_health(struct lb_member *m, enum lb_member_health health)
{
	if (health == lb_member_health(m))
		return;
	begin(m);
	m->health = (uint8_t)health;
	m->has_news = true;
	end(m);
}

void lb_member_apply_timers(struct lb_member *m)
{
	for (uint32_t i = 0; i < lb_leg_count(m); i++)
		lb_leg_apply_timers(lb_leg_at(m, i), lb_member_connectivity(m));
}

void lb_member_disconnect(struct lb_member *m)
{
	begin(m);
	m->must_disconnect = true;
	end(m);
}
