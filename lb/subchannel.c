// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel.h"

#include "lb/base/backoff.h"
#include "lb/base/check.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct lb_subchannel {
	struct lb_endpoint *endpoint; // borrowed
	struct lb_subchannel_env env;
	enum lb_state state;
	bool attempt_waits; // CONNECTING, but its start is not due yet
	struct backoff backoff; // BO-01
	uint64_t not_before_ns; // the next attempt starts no earlier (BO-02)
	struct twheel_timer timer; // TF: its end; CONNECTING: the start of the attempt
	struct lb_subchannel_watcher *watchers;
	// While the watchers are told: who is next, so that a watcher may leave meanwhile; and
	// whether to free the subchannel afterwards.
	struct lb_subchannel_watcher *next_told;
	uint32_t telling;
	bool doomed;
	char last_error[IP_PORT_TEXT_MAX + 72]; // "" unless failing
};

static void on_timer(struct twheel_timer *);

struct lb_subchannel *lb_subchannel_new(
	struct lb_endpoint *endpoint, const struct lb_subchannel_env *env)
{
	struct lb_subchannel *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->endpoint = endpoint;
	s->env = *env;
	s->timer.fire = on_timer;
	return s;
}

void lb_subchannel_free(struct lb_subchannel *s)
{
	if (!s)
		return;
	twheel_cancel(s->env.wheel, &s->timer);
	if (s->telling)
		s->doomed = true;
	else
		free(s);
}

struct lb_endpoint *lb_subchannel_endpoint(const struct lb_subchannel *s)
{
	return s->endpoint;
}

enum lb_state lb_subchannel_state(const struct lb_subchannel *s)
{
	return s->state;
}

bool lb_subchannel_failing(const struct lb_subchannel *s)
{
	return s->last_error[0];
}

const char *lb_subchannel_last_error(const struct lb_subchannel *s)
{
	return s->last_error;
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
	if (s->next_told == w)
		s->next_told = w->next;
}

// A watcher may change the state again (it asks for a connection as soon as it hears IDLE): then
// the inner round tells everybody the newer state and the outer one has nothing left to say.
static void enter(struct lb_subchannel *s, enum lb_state state)
{
	s->state = state;
	s->telling++;
	s->next_told = s->watchers;
	while (s->next_told && !s->doomed) {
		struct lb_subchannel_watcher *w = s->next_told;
		s->next_told = w->next;
		w->on_state(w, state);
	}
	if (--s->telling == 0 && s->doomed)
		free(s);
}

static void start_attempt(struct lb_subchannel *s)
{
	s->attempt_waits = false;
	s->not_before_ns = twheel_now(s->env.wheel) + backoff_next_ns(&s->backoff, s->env.rand);
	s->env.connect(s->env.ctx, s->endpoint);
}

static void on_timer(struct twheel_timer *t)
{
	struct lb_subchannel *s = (void *)((char *)t - offsetof(struct lb_subchannel, timer));
	if (s->state == LB_TRANSIENT_FAILURE)
		enter(s, LB_IDLE); // BO-04
	else
		start_attempt(s);
}

void lb_subchannel_request(struct lb_subchannel *s)
{
	if (s->state != LB_IDLE)
		return;
	// A backend that accepts and hangs up at once is tried no more often than BO-01 allows.
	s->attempt_waits = twheel_now(s->env.wheel) < s->not_before_ns;
	if (s->attempt_waits)
		twheel_arm(s->env.wheel, &s->timer, s->not_before_ns);
	else
		start_attempt(s);
	enter(s, LB_CONNECTING);
}

void lb_subchannel_connected(struct lb_subchannel *s)
{
	backoff_reset(&s->backoff); // BO-03
	if (s->state == LB_READY)
		return;
	twheel_cancel(s->env.wheel, &s->timer);
	s->last_error[0] = 0;
	enter(s, LB_READY);
}

void lb_subchannel_failed(struct lb_subchannel *s, const char *why)
{
	// Not of the attempt that is under way: another one has brought a connection meanwhile.
	if (s->state != LB_CONNECTING || s->attempt_waits)
		return;
	snprintf(s->last_error, sizeof(s->last_error), "%s: %s", s->endpoint->text, why);
	twheel_arm(s->env.wheel, &s->timer, s->not_before_ns);
	enter(s, LB_TRANSIENT_FAILURE);
}

void lb_subchannel_lost(struct lb_subchannel *s, const char *why)
{
	(void)why; // a connection that ends is no failure to connect
	if (s->state == LB_READY)
		enter(s, LB_IDLE);
}
