// SPDX-License-Identifier: Apache-2.0
#include "ctrl/loop.h"

#include "lb/base/time.h"

#include <event2/event.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define TICK_US 2000
#define MAX_WATCHES 16

struct watch {
	struct event *event; // owned
	void (*fn)(void *arg);
	void *arg;
};

struct loop {
	struct event_base *base;
	struct event *tick;
	struct twheel *wheel;
	void (*on_tick)(void *arg);
	void *tick_arg;
	struct watch watches[MAX_WATCHES];
	unsigned n_watches;
};

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

uint64_t loop_clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t loop_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

static void tick(evutil_socket_t fd, short what, void *arg)
{
	struct loop *l = arg;
	twheel_advance(l->wheel, loop_clock_ns());
	if (l->on_tick)
		l->on_tick(l->tick_arg);
}

static void watch_ready(evutil_socket_t fd, short what, void *arg)
{
	struct watch *w = arg;
	w->fn(w->arg);
}

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l)
		return NULL;
	l->wheel = twheel_new(loop_clock_ns());
	l->base = event_base_new();
	if (l->base)
		l->tick = event_new(l->base, -1, EV_PERSIST, tick, l);
	struct timeval period = {.tv_usec = TICK_US};
	if (!l->wheel || !l->tick || event_add(l->tick, &period) != 0) {
		loop_free(l);
		return NULL;
	}
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < l->n_watches; i++)
		if (l->watches[i].event)
			event_free(l->watches[i].event);
	if (l->tick)
		event_free(l->tick);
	if (l->base)
		event_base_free(l->base);
	twheel_free(l->wheel);
	free(l);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

struct twheel *loop_wheel(struct loop *l)
{
	return l->wheel;
}

void loop_set_tick(struct loop *l, void (*fn)(void *arg), void *arg)
{
	l->on_tick = fn;
	l->tick_arg = arg;
}

static int watch_add(struct loop *l, int fd, short what, void (*fn)(void *arg), void *arg)
{
	unsigned i = 0;
	while (i < l->n_watches && l->watches[i].event)
		i++;
	if (i == MAX_WATCHES)
		return -ENOMEM;
	struct watch *w = &l->watches[i];
	*w = (struct watch){.fn = fn, .arg = arg};
	w->event = event_new(l->base, fd, what | EV_PERSIST, watch_ready, w);
	if (!w->event)
		return -ENOMEM;
	l->n_watches += i == l->n_watches;
	return event_add(w->event, NULL) == 0 ? 0 : -ENOMEM;
}

int loop_watch_fd(struct loop *l, int fd, void (*fn)(void *arg), void *arg)
{
	return watch_add(l, fd, EV_READ, fn, arg);
}

void loop_unwatch_fd(struct loop *l, int fd)
{
	for (unsigned i = 0; i < l->n_watches; i++) {
		struct watch *w = &l->watches[i];
		if (!w->event || event_get_fd(w->event) != fd ||
			event_get_events(w->event) & EV_SIGNAL)
			continue;
		event_free(w->event);
		w->event = NULL;
	}
}

int loop_watch_signal(struct loop *l, int number, void (*fn)(void *arg), void *arg)
{
	return watch_add(l, number, EV_SIGNAL, fn, arg);
}

void loop_run(struct loop *l)
{
	event_base_dispatch(l->base);
}

void loop_stop(struct loop *l)
{
	event_base_loopbreak(l->base);
}
