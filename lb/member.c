// SPDX-License-Identifier: Apache-2.0
#include "lb/member.h"

#include "lb/base/check.h"
#include "lb/base/twheel.h"
#include "lb/connectivity.h"
#include "lb/limits.h"
#include "lb/subchannel.h"

#include <stddef.h>
#include <stdlib.h>

#define DELAY_MIN_NS 100000000ull // PF-02
#define DELAY_MAX_NS 2000000000ull

#define STUCK_NS 5000000000ull
#define TEXT_OF(n) #n
#define NUMBER(n) TEXT_OF(n)
#define STUCK_TEXT "no room for more than " NUMBER(LB_MAX_ENDPOINTS) " addresses"
#define N_FEW 16 // addresses that are compared without sorting them

enum phase {
	PHASE_IDLE,
	PHASE_PASS, // walks the addresses
	PHASE_FAILED, // each failed once: all are tried again, each after its backoff (PF-05)
	PHASE_READY,
	PHASE_STUCK, // asks now and then for the subchannels that it could not have
};

// One address, from the first pass on.
struct leg {
	struct lb_subchannel_watcher watcher;
	struct lb_member *member;
	struct lb_subchannel *subchannel; // counted and watched; NULL = given back
	bool has_failed; // in this pass
};

// What several addresses need besides.
struct race {
	struct twheel_timer timer; // until the next address is tried beside
	uint32_t n;
	uint32_t n_begun; // of this pass
	struct leg legs[]; // in the order of trying (PF-01)
};

// STUCK.
struct stuck {
	struct twheel_timer timer;
	struct lb_member *member;
};

struct lb_member {
	uint32_t n_refs;
	uint32_t id;
	uint32_t place;
	uint32_t n_addresses;
	uint16_t n_failed; // attempts since it last wanted a resolution
	uint16_t n_telling; // rounds of telling that are under way
	uint8_t n_busy; // changes that are under way: watchers hear of them when they are over
	uint8_t n_lists;
	uint8_t phase;
	uint8_t raw; // the state that goes with the phase
	bool is_ejected;
	bool has_news; // for the watchers
	bool must_disconnect; // as soon as it is not busy
	bool wants_resolution; // while that is told
	const struct lb_member_env *env;
	struct lb_member_watcher *watchers;
	struct lb_member_watcher *next_told; // so that a watcher may leave while they are told
	struct leg *in_use; // READY: the one that is
	struct leg *last_failed; // whose error is told; NULL = none
	// Most members have one address: its leg lies here.
	union {
		struct leg only;
		struct race *race; // owned; NULL before the first pass
		struct stuck *stuck; // owned; STUCK, whatever it has
	};
	struct ip_port addresses[]; // [n_addresses], in EDS order
};

static struct leg *legs_of(struct lb_member *m, uint32_t *ret_n)
{
	bool is_single = m->n_addresses == 1;
	*ret_n = is_single ? 1 : m->race ? m->race->n : 0;
	return is_single ? &m->only : m->race ? m->race->legs : NULL;
}

static void on_timer(struct twheel_timer *);

static bool leg_init(struct leg *leg, struct lb_member *m, const struct ip_port *address)
{
	*leg = (struct leg){.member = m};
	leg->subchannel = lb_connectivity_get(m->env->connectivity, address);
	if (!leg->subchannel)
		return false;
	lb_subchannel_watch(leg->subchannel, &leg->watcher);
	return true;
}

static void leg_fini(struct leg *leg)
{
	struct lb_subchannel *s = leg->subchannel;
	if (!s)
		return;
	leg->subchannel = NULL;
	lb_subchannel_unwatch(s, &leg->watcher);
	lb_connectivity_put(leg->member->env->connectivity, s);
}

static void race_free(struct race *r, struct lb_member *m)
{
	if (!r)
		return;
	twheel_cancel(lb_connectivity_wheel(m->env->connectivity), &r->timer);
	for (uint32_t i = 0; i < r->n; i++)
		leg_fini(&r->legs[i]);
	free(r);
}

// The next address from *at on that is of this family, or n.
static uint32_t next_of_family(const struct lb_member *m, uint32_t at, bool v4)
{
	while (at < m->n_addresses && ip_is_v4(&m->addresses[at].ip) != v4)
		at++;
	return at;
}

// RFC 8305 4: the families take turns, as long as there are both; the first address stays first.
static struct race *race_new(struct lb_member *m)
{
	struct race *r = calloc(1, sizeof(*r) + m->n_addresses * sizeof(r->legs[0]));
	if (!r)
		return NULL;
	r->timer.fire = on_timer;
	bool v4 = ip_is_v4(&m->addresses[0].ip);
	uint32_t at[2];
	for (int family = 0; family < 2; family++)
		at[family] = next_of_family(m, 0, family);
	while (r->n < m->n_addresses) {
		if (at[v4] == m->n_addresses)
			v4 = !v4;
		if (!leg_init(&r->legs[r->n], m, &m->addresses[at[v4]])) {
			race_free(r, m);
			return NULL;
		}
		r->n++;
		at[v4] = next_of_family(m, at[v4] + 1, v4);
		v4 = !v4;
	}
	return r;
}

struct lb_member *lb_member_new(
	const struct lb_member_env *env, uint32_t id, const struct ip_port *addresses, uint32_t n)
{
	DCHECK(n > 0);
	struct lb_member *m = calloc(1, sizeof(*m) + n * sizeof(m->addresses[0]));
	if (!m)
		return NULL;
	m->n_refs = 1;
	m->id = id;
	m->n_addresses = n;
	m->env = env;
	memcpy(m->addresses, addresses, n * sizeof(m->addresses[0]));
	return m;
}

struct lb_member *lb_member_get(struct lb_member *m)
{
	m->n_refs++;
	return m;
}

bool lb_member_is_shared(const struct lb_member *m)
{
	return m->n_refs > 1;
}

static void give_back(struct lb_member *m)
{
	m->in_use = m->last_failed = NULL;
	if (m->phase == PHASE_STUCK) {
		twheel_cancel(lb_connectivity_wheel(m->env->connectivity), &m->stuck->timer);
		free(m->stuck);
		m->only = (struct leg){0};
		return;
	}
	if (m->n_addresses == 1) {
		leg_fini(&m->only);
		return;
	}
	race_free(m->race, m);
	m->race = NULL;
}

static void destroy(struct lb_member *m)
{
	const struct lb_member_env *env = m->env;
	uint32_t id = m->id;
	give_back(m);
	free(m);
	if (env->on_gone)
		env->on_gone(env->ctx, id);
}

void lb_member_put(struct lb_member *m)
{
	if (!m)
		return;
	CHECK(m->n_refs > 0);
	if (--m->n_refs)
		return;
	DCHECK(!m->watchers);
	if (m->n_telling == 0 && m->n_busy == 0)
		destroy(m);
}

uint32_t lb_member_id(const struct lb_member *m)
{
	return m->id;
}

uint32_t lb_member_place(const struct lb_member *m)
{
	return m->place;
}

void lb_member_set_place(struct lb_member *m, uint32_t place)
{
	m->place = place;
}

void lb_member_list(struct lb_member *m)
{
	m->n_lists++;
}

void lb_member_unlist(struct lb_member *m)
{
	CHECK(m->n_lists > 0);
	m->n_lists--;
}

uint32_t lb_member_n_lists(const struct lb_member *m)
{
	return m->n_lists;
}

uint32_t lb_member_n_addresses(const struct lb_member *m)
{
	return m->n_addresses;
}

const struct ip_port *lb_member_address(const struct lb_member *m, uint32_t i)
{
	DCHECK(i < m->n_addresses);
	return &m->addresses[i];
}

static uint32_t count(const struct ip_port *list, uint32_t n, const struct ip_port *a)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < n; i++)
		found += ip_port_eq(&list[i], a);
	return found;
}

static bool same_few(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (count(a, n, &b[i]) != count(b, n, &b[i]))
			return false;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct ip_port *x = a, *y = b;
	int order = memcmp(&x->ip, &y->ip, sizeof(x->ip));
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

// How many stand at the same place in both.
static uint32_t same_in_order(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	uint32_t i = 0;
	while (i < n && ip_port_eq(&a[i], &b[i]))
		i++;
	return i;
}

static bool same_many(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	struct ip_port *sorted = malloc(2 * (size_t)n * sizeof(*sorted));
	if (!sorted)
		return same_few(a, b, n);
	memcpy(sorted, a, n * sizeof(*sorted));
	memcpy(sorted + n, b, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	qsort(sorted + n, n, sizeof(*sorted), compare);
	bool same = same_in_order(sorted, sorted + n, n) == n;
	free(sorted);
	return same;
}

// An endpoint has a handful of addresses; pick_first makes one member of many endpoints.
bool lb_member_same_set(const struct lb_member *m, const struct ip_port *addresses, uint32_t n)
{
	if (n != m->n_addresses)
		return false;
	uint32_t done = same_in_order(m->addresses, addresses, n), rest = n - done;
	const struct ip_port *a = m->addresses + done, *b = addresses + done;
	return rest <= N_FEW ? same_few(a, b, rest) : same_many(a, b, rest);
}

bool lb_member_reorder(struct lb_member *m, const struct ip_port *addresses)
{
	DCHECK(lb_member_same_set(m, addresses, m->n_addresses));
	bool is_other = !ip_port_eq(&m->addresses[0], &addresses[0]);
	memcpy(m->addresses, addresses, m->n_addresses * sizeof(m->addresses[0]));
	return is_other;
}

static enum lb_state raw_of(struct lb_member *m)
{
	static const enum lb_state states[] = {[PHASE_IDLE] = LB_IDLE,
		[PHASE_PASS] = LB_CONNECTING,
		[PHASE_READY] = LB_READY,
		[PHASE_STUCK] = LB_TRANSIENT_FAILURE};
	if (m->phase != PHASE_FAILED)
		return states[m->phase];
	uint32_t n;
	const struct leg *legs = legs_of(m, &n);
	for (uint32_t i = 0; i < n; i++)
		if (lb_subchannel_state(legs[i].subchannel) == LB_CONNECTING)
			return LB_CONNECTING;
	return LB_TRANSIENT_FAILURE;
}

enum lb_state lb_member_raw_state(const struct lb_member *m)
{
	return m->raw;
}

enum lb_state lb_member_state(const struct lb_member *m)
{
	if (m->is_ejected || m->phase == PHASE_FAILED)
		return LB_TRANSIENT_FAILURE;
	return m->raw;
}

struct lb_endpoint *lb_member_endpoint(const struct lb_member *m)
{
	return m->phase == PHASE_READY ? lb_subchannel_endpoint(m->in_use->subchannel) : NULL;
}

const char *lb_member_last_error(const struct lb_member *m)
{
	if (m->phase == PHASE_STUCK)
		return STUCK_TEXT;
	return m->last_failed ? lb_subchannel_last_error(m->last_failed->subchannel) : "";
}

bool lb_member_wants_resolution(const struct lb_member *m)
{
	return m->wants_resolution;
}

bool lb_member_is_ejected(const struct lb_member *m)
{
	return m->is_ejected;
}

void lb_member_watch(struct lb_member *m, struct lb_member_watcher *w)
{
	w->next = m->watchers;
	m->watchers = w;
}

bool lb_member_is_watched(const struct lb_member *m)
{
	return m->watchers;
}

void lb_member_unwatch(struct lb_member *m, struct lb_member_watcher *w)
{
	struct lb_member_watcher **link = &m->watchers;
	while (*link != w) {
		CHECK(*link);
		link = &(*link)->next;
	}
	*link = w->next;
	if (m->next_told == w)
		m->next_told = w->next;
}

static void begin(struct lb_member *m)
{
	if (m->n_busy++ == 0)
		m->wants_resolution = false; // heard already, if a watcher begins this
}

static void enter(struct lb_member *m, enum phase phase)
{
	m->has_news |= m->phase != phase;
	m->phase = (uint8_t)phase;
}

static void tell(struct lb_member *m)
{
	m->has_news = false;
	m->n_telling++;
	if (m->env->on_change)
		m->env->on_change(m->env->ctx, m);
	m->next_told = m->watchers;
	while (m->next_told) {
		struct lb_member_watcher *w = m->next_told;
		m->next_told = w->next;
		w->on_change(w);
	}
	m->wants_resolution = false;
	m->n_telling--;
}

// Tells the watchers what changed since begin(). They may change more, and the inner round tells
// everybody: then the outer one has nothing left to say. The member may be gone after this.
static void end(struct lb_member *m)
{
	if (--m->n_busy > 0)
		return;
	if (m->must_disconnect) {
		m->must_disconnect = false;
		give_back(m);
		enter(m, PHASE_IDLE);
	}
	m->raw = (uint8_t)raw_of(m);
	if (m->has_news)
		tell(m);
	if (m->n_refs == 0 && m->n_telling == 0)
		destroy(m);
}

// PF-03: the others are cancelled.
static void use(struct lb_member *m, struct leg *winner)
{
	uint32_t n;
	struct leg *legs = legs_of(m, &n);
	for (uint32_t i = 0; i < n; i++)
		if (&legs[i] != winner)
			leg_fini(&legs[i]);
	if (m->n_addresses > 1)
		twheel_cancel(lb_connectivity_wheel(m->env->connectivity), &m->race->timer);
	m->in_use = winner;
	m->n_failed = 0;
	m->last_failed = NULL;
	enter(m, PHASE_READY);
}

static void fail(struct lb_member *m, struct leg *leg)
{
	if (++m->n_failed >= m->n_addresses || m->n_failed == UINT16_MAX) {
		m->n_failed = 0;
		m->wants_resolution = true;
	}
	leg->has_failed = true;
	m->last_failed = leg;
	m->has_news = true; // the error's text
}

// PF-05
static void finish_if_all_failed(struct lb_member *m)
{
	uint32_t n;
	struct leg *legs = legs_of(m, &n);
	for (uint32_t i = 0; i < n; i++)
		if (!legs[i].has_failed)
			return;
	enter(m, PHASE_FAILED);
	for (uint32_t i = 0; i < n; i++)
		lb_subchannel_request(legs[i].subchannel); // only those that are IDLE
}

// True = it is under way.
static bool begin_leg(struct lb_member *m, struct leg *leg)
{
	if (lb_subchannel_state(leg->subchannel) == LB_TRANSIENT_FAILURE) { // PF-04
		fail(m, leg);
		return false;
	}
	leg->has_failed = false;
	lb_subchannel_request(leg->subchannel); // only if IDLE: else it has begun already
	return true;
}

static void begin_next(struct lb_member *m)
{
	if (m->n_addresses == 1) {
		begin_leg(m, &m->only);
		finish_if_all_failed(m);
		return;
	}
	struct race *r = m->race;
	struct twheel *wheel = lb_connectivity_wheel(m->env->connectivity);
	twheel_cancel(wheel, &r->timer);
	while (r->n_begun < r->n)
		if (begin_leg(m, &r->legs[r->n_begun++]))
			break;
	uint64_t delay = m->env->attempt_delay_ns;
	delay = delay < DELAY_MIN_NS ? DELAY_MIN_NS : delay > DELAY_MAX_NS ? DELAY_MAX_NS : delay;
	if (r->n_begun < r->n)
		twheel_arm(wheel, &r->timer, twheel_now(wheel) + delay);
	else
		finish_if_all_failed(m);
}

static void on_timer(struct twheel_timer *t)
{
	struct race *r = (void *)((char *)t - offsetof(struct race, timer));
	struct lb_member *m = r->legs[0].member;
	begin(m);
	begin_next(m);
	end(m);
}

// False = no memory.
static bool take(struct lb_member *m)
{
	if (m->n_addresses == 1)
		return m->only.subchannel || leg_init(&m->only, m, &m->addresses[0]);
	struct race *r = race_new(m);
	if (!r)
		return false;
	race_free(m->race, m); // after the new one has taken the subchannel that this one kept
	m->race = r;
	return true;
}

static void start(struct lb_member *m)
{
	begin(m);
	uint32_t n;
	struct leg *legs = legs_of(m, &n);
	enter(m, PHASE_PASS);
	for (uint32_t i = 0; i < n && m->phase == PHASE_PASS; i++) {
		legs[i].has_failed = false;
		if (lb_subchannel_state(legs[i].subchannel) == LB_READY)
			use(m, &legs[i]);
	}
	if (m->phase == PHASE_PASS)
		begin_next(m);
	end(m);
}

static void try_later(struct stuck *s)
{
	struct twheel *wheel = lb_connectivity_wheel(s->member->env->connectivity);
	twheel_arm(wheel, &s->timer, twheel_now(wheel) + STUCK_NS);
}

static void on_stuck(struct twheel_timer *t)
{
	struct stuck *s = (struct stuck *)((char *)t - offsetof(struct stuck, timer));
	struct lb_member *m = s->member;
	m->only = (struct leg){0};
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
	bool is_full = lb_connectivity_is_full(m->env->connectivity);
	struct stuck *s = is_full ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return;
	begin(m);
	give_back(m);
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
	if (take(m))
		start(m);
	else
		get_stuck(m);
}

static void on_failure(struct lb_member *m, struct leg *leg)
{
	if (m->phase == PHASE_IDLE) // somebody else's attempt
		return;
	fail(m, leg);
	if (m->phase == PHASE_FAILED)
		return;
	// Whoever was begun last has the next one begin; earlier ones only count.
	if (m->n_addresses == 1 || m->race->n_begun == m->race->n)
		finish_if_all_failed(m);
	else if (leg == &m->race->legs[m->race->n_begun - 1])
		begin_next(m);
}

static void on_idle(struct lb_member *m, struct leg *leg)
{
	if (m->phase == PHASE_FAILED)
		lb_subchannel_request(leg->subchannel);
}

void lb_member_on_state(struct lb_subchannel_watcher *w, enum lb_state state)
{
	struct leg *leg = (struct leg *)w;
	struct lb_member *m = leg->member;
	begin(m);
	// PF-06. The subchannel stays: it knows how soon it may try again. IDLE itself goes unheard
	// where another of its users asks for it anew before we are told.
	if (leg == m->in_use && state != LB_READY) {
		m->in_use = NULL;
		m->last_failed = leg; // says why
		m->wants_resolution = true;
		enter(m, PHASE_IDLE);
	}
	switch (state) {
	case LB_READY:
		use(m, leg);
		break;
	case LB_TRANSIENT_FAILURE:
		on_failure(m, leg);
		break;
	case LB_IDLE:
		on_idle(m, leg);
		break;
	case LB_CONNECTING:
		m->has_news |= m->phase == PHASE_FAILED; // the raw state may be another one
		break;
	}
	end(m);
}

void lb_member_set_ejected(struct lb_member *m, bool ejected)
{
	if (ejected == m->is_ejected)
		return;
	begin(m);
	m->is_ejected = ejected;
	m->has_news = true;
	end(m);
}

void lb_member_disconnect(struct lb_member *m)
{
	begin(m);
	m->must_disconnect = true;
	end(m);
}
