// SPDX-License-Identifier: Apache-2.0
#include "lb/subchannel.h"

#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/cells.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

struct lb_subchannel_effort {
	// TRANSIENT_FAILURE: its end; CONNECTING: the start of the attempt; READY: the end of this.
	struct twheel_timer timer;
	struct lb_subchannel *subchannel;
	struct backoff backoff; // BO-01
	uint64_t started_ns; // of the last attempt
	uint64_t not_before_ns; // the next attempt starts no earlier (BO-02)
	bool waits; // CONNECTING, but its start is not due yet
	struct lb_text
		*error; // counted: of the last one that failed, or why it was lost; NULL = none
};

static void on_timer(struct twheel_timer *);

void lb_subchannel_init(
	struct lb_subchannel *s, struct lb_endpoint *endpoint, const struct lb_subchannel_env *env)
{
	*s = (struct lb_subchannel){.endpoint = endpoint, .env = env};
}

static void drop_effort(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = s->effort;
	if (!e)
		return;
	twheel_cancel(s->env->wheel, &e->timer);
	lb_text_put(e->error);
	free(e);
	s->effort = NULL;
}

void lb_subchannel_fini(struct lb_subchannel *s)
{
	drop_effort(s);
	s->watchers = s->next_told = NULL;
}

// NULL = no memory.
static struct lb_subchannel_effort *have_effort(struct lb_subchannel *s)
{
	if (s->effort)
		return s->effort;
	s->effort = calloc(1, sizeof(*s->effort));
	if (s->effort)
		*s->effort =
			(struct lb_subchannel_effort){.timer = {.fire = on_timer}, .subchannel = s};
	return s->effort;
}

struct lb_endpoint *lb_subchannel_endpoint(const struct lb_subchannel *s)
{
	return s->endpoint;
}

enum lb_state lb_subchannel_state(const struct lb_subchannel *s)
{
	return (enum lb_state)s->state;
}

bool lb_subchannel_failing(const struct lb_subchannel *s)
{
	return s->is_failing;
}

const char *lb_subchannel_last_error(const struct lb_subchannel *s)
{
	bool is_known = s->state != LB_READY && s->effort && s->effort->error;
	return is_known ? s->effort->error->text : "";
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
	s->state = (uint8_t)state;
	s->next_told = s->watchers;
	while (s->next_told) {
		struct lb_subchannel_watcher *w = s->next_told;
		s->next_told = w->next;
		w->on_state(w, state);
	}
}

static void start_attempt(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = s->effort;
	if (e) {
		e->waits = false;
		e->started_ns = twheel_now(s->env->wheel);
		e->not_before_ns = e->started_ns + backoff_next_ns(&e->backoff, s->env->rand);
	}
	s->env->connect(s->env->ctx, s->endpoint);
}

static void on_timer(struct twheel_timer *t)
{
	struct lb_subchannel_effort *e =
		(void *)((char *)t - offsetof(struct lb_subchannel_effort, timer));
	struct lb_subchannel *s = e->subchannel;
	if (s->state == LB_TRANSIENT_FAILURE)
		enter(s, LB_IDLE); // BO-04
	else if (s->state == LB_READY)
		drop_effort(s);
	else
		start_attempt(s);
}

void lb_subchannel_request(struct lb_subchannel *s)
{
	if (s->state != LB_IDLE)
		return;
	struct lb_subchannel_effort *e = have_effort(s);
	// A backend that accepts and hangs up at once is tried no more often than BO-01 allows.
	if (e && twheel_now(s->env->wheel) < e->not_before_ns) {
		e->waits = true;
		twheel_arm(s->env->wheel, &e->timer, e->not_before_ns);
	} else {
		start_attempt(s);
	}
	enter(s, LB_CONNECTING);
}

// As if the attempt had been the first.
static void start_over(struct lb_subchannel *s, struct lb_subchannel_effort *e)
{
	backoff_reset(&e->backoff);
	uint64_t first_ns = e->started_ns + backoff_next_ns(&e->backoff, s->env->rand);
	if (first_ns < e->not_before_ns)
		e->not_before_ns = first_ns;
	backoff_reset(&e->backoff);
}

void lb_subchannel_connected(struct lb_subchannel *s)
{
	struct lb_subchannel_effort *e = s->effort;
	if (s->state == LB_READY)
		return;
	if (e) // BO-03: also for the wait that the attempt itself began
		start_over(s, e);
	s->is_failing = false;
	// It is kept for as long as another attempt would have to wait.
	if (e && twheel_now(s->env->wheel) < e->not_before_ns)
		twheel_arm(s->env->wheel, &e->timer, e->not_before_ns);
	else
		drop_effort(s);
	enter(s, LB_READY);
}

// "10.82.0.3:50051: refused", if there is memory for it.
static void note_error(struct lb_subchannel *s, const char *why)
{
	char address[IP_PORT_TEXT_MAX], text[IP_PORT_TEXT_MAX + 72];
	struct lb_subchannel_effort *e = have_effort(s);
	if (!e)
		return;
	snprintf(text, sizeof(text), "%s: %s", ip_port_print(&s->endpoint->addr, address), why);
	lb_text_put(e->error);
	e->error = lb_text_new(text);
}

void lb_subchannel_failed(struct lb_subchannel *s, const char *why)
{
	// Not of the attempt that is under way: another one has brought a connection meanwhile.
	if (s->state != LB_CONNECTING || (s->effort && s->effort->waits))
		return;
	s->is_failing = true;
	note_error(s, why);
	if (s->effort)
		twheel_arm(s->env->wheel, &s->effort->timer, s->effort->not_before_ns);
	enter(s, LB_TRANSIENT_FAILURE);
	if (s->state == LB_TRANSIENT_FAILURE && !s->effort)
		enter(s, LB_IDLE);
}

void lb_subchannel_lost(struct lb_subchannel *s, const char *why)
{
	if (s->state != LB_READY)
		return;
	note_error(s, why); // no failure to connect, but what operators ask for
	if (s->effort)
		twheel_cancel(s->env->wheel, &s->effort->timer);
	enter(s, LB_IDLE);
}
