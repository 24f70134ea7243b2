// SPDX-License-Identifier: Apache-2.0
#include "lb/member/subchannel.h"

#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/member/attempts.h"
#include "lb/pick/cells.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEWS_NS NS_PER_SECOND // from one attempt that news make sooner to the next one

struct lb_subchannel_effort {
	struct twheel_timer timer; // TRANSIENT_FAILURE: its end
	struct lb_subchannel *subchannel;
	struct backoff backoff; // BO-01
	uint64_t started_ns; // of the last attempt
	uint64_t not_before_ns; // the next attempt starts no earlier, if this one fails (BO-02)
	struct lb_text *why; // counted: the last one failed, or it was lost; NULL = none
};

// Watchers are being told of this one's state.
struct lb_subchannel_round {
	struct lb_subchannel_round *outer;
	const struct lb_subchannel *subchannel;
	struct lb_subchannel_watcher *next; // so that a watcher may leave meanwhile
};

static void on_timer(struct twheel_timer *);

static struct lb_subchannel_env *env_of(const struct lb_subchannel *s)
{
	return lb_endpoint_table_user(lb_endpoint_table_of(&s->endpoint));
}

static struct lb_subchannel_effort *effort_of(const struct lb_subchannel *s)
{
	return s->has_effort ? s->effort : NULL;
}

void lb_subchannel_init(struct lb_subchannel *s)
{
	s->state = LB_IDLE;
	s->has_effort = s->waits = false;
	s->watchers = NULL;
	s->started_ns = 0;
}

static void drop_effort(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = effort_of(s);
	if (!e)
		return;
	twheel_cancel(env_of(s)->wheel, &e->timer);
	s->has_effort = false;
	env_of(s)->n_efforts--;
	s->started_ns = e->started_ns;
	lb_text_put(e->why);
	free(e);
}

// Nobody is told any more by the rounds that are under way.
static void end_rounds(const struct lb_subchannel_env *env, const struct lb_subchannel *s)
{
	for (struct lb_subchannel_round *r = env->rounds; r; r = r->outer)
		if (r->subchannel == s)
			r->next = NULL;
}

static uint64_t started_ns(const struct lb_subchannel *s)
{
	return s->has_effort ? s->effort->started_ns : s->started_ns;
}

// It is over, or not wanted any more. To be called while the effort is the attempt's.
static void end_attempt(struct lb_subchannel *s)
{
	struct lb_attempts *attempts = env_of(s)->attempts;
	bool waited = s->waits;
	s->waits = false;
	if (s->state != LB_CONNECTING || !attempts)
		return;
	if (waited)
		lb_attempts_leave(attempts, s->endpoint.id);
	else
		lb_attempts_end(attempts, s->endpoint.id, started_ns(s));
}

void lb_subchannel_fini(struct lb_subchannel *s)
{
	end_attempt(s);
	drop_effort(s);
	s->watchers = NULL;
	end_rounds(env_of(s), s);
}

// NULL = out of memory.
static struct lb_subchannel_effort *have_effort(struct lb_subchannel *s)
{
	if (s->has_effort)
		return s->effort;
	struct lb_subchannel_effort *e = malloc(sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct lb_subchannel_effort){
		.timer = {.fire = on_timer}, .subchannel = s, .started_ns = s->started_ns};
	if (e->started_ns)
		e->not_before_ns = e->started_ns + backoff_next_ns(&e->backoff, env_of(s)->rand);
	s->has_effort = true;
	env_of(s)->n_efforts++;
	return s->effort = e;
}

const char *lb_subchannel_last_error(const struct lb_subchannel *s)
{
	const struct lb_subchannel_effort *e = effort_of(s);
	if (!e || !e->why)
		return "";
	char address[IP_PORT_TEXT_MAX], *said = env_of(s)->said;
	snprintf(said, sizeof(env_of(s)->said), "%s: %s", ip_port_print(&s->endpoint.addr, address),
		e->why->text);
	return said;
}

void lb_subchannel_watch(struct lb_subchannel *s, struct lb_subchannel_watcher *w)
{
	w->next = s->watchers;
	s->watchers = w;
}

void lb_subchannel_unwatch(struct lb_subchannel *s, struct lb_subchannel_watcher *w)
{
	struct lb_subchannel_watcher **link = &s->watchers;
	while (*link != w) {
		CHECK(*link);
		link = &(*link)->next;
	}
	*link = w->next;
	for (struct lb_subchannel_round *r = env_of(s)->rounds; r; r = r->outer)
		if (r->next == w)
			r->next = w->next;
}

// A watcher may change the state again (it asks for a connection as soon as it hears IDLE): then
// the inner round tells everybody the newer state and the outer one has nothing left to say.
static void enter(struct lb_subchannel *s, enum lb_state state)
{
	s->state = (unsigned)state & 3;
	if (!s->watchers)
		return;
	struct lb_subchannel_env *env = env_of(s);
	struct lb_subchannel_round r = {env->rounds, s, s->watchers};
	end_rounds(env, s);
	env->rounds = &r;
	while (r.next) {
		struct lb_subchannel_watcher *w = r.next;
		r.next = w->next;
		env->on_state(w, state);
	}
	env->rounds = r.outer;
}

void lb_subchannel_begin(struct lb_subchannel *s)
{
	struct lb_subchannel_env *env = env_of(s);
	struct lb_subchannel_effort *e = effort_of(s);
	uint64_t now_ns = twheel_now(env->wheel);
	s->waits = false;
	if (e) {
		e->started_ns = now_ns;
		e->not_before_ns = now_ns + backoff_next_ns(&e->backoff, env->rand);
	} else {
		s->started_ns = now_ns;
	}
	env->connect(env->ctx, &s->endpoint);
}

static void want_attempt(struct lb_subchannel *s)
{
	struct lb_attempts *attempts = env_of(s)->attempts;
	s->waits = attempts && !lb_attempts_want(attempts, s->endpoint.id);
	if (!s->waits)
		lb_subchannel_begin(s);
}

static void on_timer(struct twheel_timer *t)
{
	struct lb_subchannel_effort *e = CONTAINER_OF(t, struct lb_subchannel_effort, timer);
	enter(e->subchannel, LB_IDLE); // BO-04
}

void lb_subchannel_request(struct lb_subchannel *s)
{
	if (s->state != LB_IDLE)
		return;
	want_attempt(s);
	enter(s, LB_CONNECTING);
}

bool lb_subchannel_expedite(struct lb_subchannel *s)
{
	struct lb_attempts *attempts = env_of(s)->attempts;
	if (s->state != LB_CONNECTING || !attempts)
		return false;
	if (s->waits)
		return lb_attempts_expedite(attempts, s->endpoint.id);
	return lb_attempts_is_young(attempts, started_ns(s));
}

void lb_subchannel_connected(struct lb_subchannel *s)
{
	if (s->state == LB_READY)
		return;
	end_attempt(s);
	drop_effort(s);
	enter(s, LB_READY);
}

// Counted; NULL = out of memory.
static struct lb_text *reason_of(struct lb_subchannel_env *env, const char *why)
{
	for (uint32_t i = 0; i < LB_SUBCHANNEL_REASONS; i++)
		if (env->reasons[i] && strcmp(env->reasons[i]->text, why) == 0)
			return lb_text_get(env->reasons[i]);
	struct lb_text *text = lb_text_new(why);
	if (!text)
		return NULL;
	struct lb_text **oldest = &env->reasons[env->n_reasons++ % LB_SUBCHANNEL_REASONS];
	lb_text_put(*oldest);
	*oldest = text;
	return lb_text_get(text);
}

void lb_subchannel_env_fini(struct lb_subchannel_env *env)
{
	for (uint32_t i = 0; i < LB_SUBCHANNEL_REASONS; i++) {
		lb_text_put(env->reasons[i]);
		env->reasons[i] = NULL;
	}
}

// If there is memory for it.
static void note_error(struct lb_subchannel *s, const char *why)
{
	struct lb_subchannel_effort *e = have_effort(s);
	if (!e)
		return;
	lb_text_put(e->why);
	e->why = reason_of(env_of(s), why);
}

// BO-04. Without memory nothing is waited for.
static void rest(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = effort_of(s);
	if (e)
		twheel_arm(env_of(s)->wheel, &e->timer, e->not_before_ns);
	enter(s, LB_TRANSIENT_FAILURE);
	if (s->state == LB_TRANSIENT_FAILURE && !s->has_effort)
		enter(s, LB_IDLE);
}

void lb_subchannel_failed(struct lb_subchannel *s, const char *why)
{
	// Not of the attempt that is under way: another one has brought a connection meanwhile.
	if (s->state != LB_CONNECTING || s->waits)
		return;
	end_attempt(s);
	struct lb_subchannel_effort *e = effort_of(s);
	if (e && e->why && strcmp(e->why->text, why) != 0) {
		backoff_reset(&e->backoff);
		e->not_before_ns = e->started_ns + backoff_next_ns(&e->backoff, env_of(s)->rand);
	}
	note_error(s, why);
	rest(s);
}

void lb_subchannel_lost(struct lb_subchannel *s, const char *why, bool was_short_lived)
{
	if (s->state != LB_READY)
		return;
	note_error(s, why); // no failure to connect, but what operators ask for
	struct lb_subchannel_effort *e = effort_of(s);
	if (e)
		backoff_reset(&e->backoff); // BO-03
	if (!was_short_lived) {
		enter(s, LB_IDLE);
		return;
	}
	// A worker may have made it by itself, long after the attempt that is known here.
	struct lb_subchannel_env *env = env_of(s);
	if (e)
		e->not_before_ns = twheel_now(env->wheel) + backoff_next_ns(&e->backoff, env->rand);
	rest(s);
}

bool lb_subchannel_retry(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = effort_of(s);
	if (s->state != LB_TRANSIENT_FAILURE || !e)
		return false;
	backoff_reset(&e->backoff);
	twheel_cancel(env_of(s)->wheel, &e->timer);
	enter(s, LB_IDLE);
	return true;
}

bool lb_subchannel_heard(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = effort_of(s);
	if (s->state != LB_TRANSIENT_FAILURE || !e)
		return false;
	backoff_reset(&e->backoff);
	uint64_t sooner_ns = e->started_ns + NEWS_NS;
	if (sooner_ns >= e->not_before_ns)
		return false;
	e->not_before_ns = sooner_ns;
	twheel_arm(env_of(s)->wheel, &e->timer, sooner_ns);
	return true;
}
