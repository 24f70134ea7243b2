// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faultlink/line.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/list.h"
#include "lb/base/time.h"
#include "tests/support/faultlink/frame.h"

#include <stdlib.h>
#include <string.h>

struct waiting {
	struct list_link link;
	uint64_t due_ns;
	size_t len;
	uint8_t frame[];
};

struct line {
	struct faults faults;
	struct fates fates;
	struct list_link out; // by due_ns, then as they came
	uint64_t last_ns; // when the latest of those in order is due
	uint64_t free_ns; // when the bottleneck has sent all that it has
	uint64_t *departures; // a ring: when each frame that waits for it will be gone
	uint64_t first, n;
	uint64_t counters[LINE_N_COUNTERS];
};

struct line *line_new(const struct faults *faults, uint64_t seed, unsigned direction)
{
	struct line *l = calloc(1, sizeof(*l));
	CHECK(l);
	l->faults = *faults;
	fates_init(&l->fates, seed, direction);
	list_init(&l->out);
	l->departures = calloc(faults->queue + 1, sizeof(*l->departures));
	CHECK(l->departures);
	return l;
}

static void drop(struct waiting *w)
{
	list_remove(&w->link);
	free(w);
}

void line_free(struct line *l)
{
	while (!list_empty(&l->out))
		drop(CONTAINER_OF(l->out.next, struct waiting, link));
	free(l->departures);
	free(l);
}

// Nearly always at the end: who looks for its place begins there.
static void insert(struct line *l, struct waiting *w)
{
	struct list_link *after = l->out.prev;
	while (after != &l->out && CONTAINER_OF(after, struct waiting, link)->due_ns > w->due_ns)
		after = after->prev;
	list_append(after->next, &w->link);
}

static uint8_t *keep(struct line *l, const uint8_t *frame, size_t len, uint64_t due_ns)
{
	struct waiting *w = malloc(sizeof(*w) + len);
	CHECK(w);
	*w = (struct waiting){.due_ns = due_ns, .len = len};
	memcpy(w->frame, frame, len);
	insert(l, w);
	return w->frame;
}

static bool is_dark(const struct faults *f, uint64_t now_ns)
{
	return now_ns >= f->dark_from_ns && now_ns - f->dark_from_ns < f->dark_ns;
}

// Through the bottleneck. False = its queue is full.
static bool serialize(struct line *l, size_t len, uint64_t now_ns, uint64_t *ret_ns)
{
	const struct faults *f = &l->faults;
	*ret_ns = now_ns;
	if (!f->rate)
		return true;
	uint64_t size = f->queue + 1; // those that wait, and the one that is being sent
	for (; l->n && l->departures[l->first] <= now_ns; l->n--)
		l->first = (l->first + 1) % size;
	if (l->n == size)
		return false;
	uint64_t begin = l->free_ns > now_ns ? l->free_ns : now_ns;
	l->free_ns = begin + (uint64_t)len * 8 * NS_PER_SECOND / f->rate;
	l->departures[(l->first + l->n++) % size] = l->free_ns;
	*ret_ns = l->free_ns;
	return true;
}

static uint64_t after_pause(const struct faults *f, uint64_t t)
{
	if (!f->pause_ns || t < f->pause_every_ns || t % f->pause_every_ns >= f->pause_ns)
		return t;
	return t - t % f->pause_every_ns + f->pause_ns;
}

// When a frame that leaves the bottleneck arrives, behind all before it.
static uint64_t arrival(struct line *l, uint64_t left_ns, uint64_t jitter_ns)
{
	uint64_t t = after_pause(&l->faults, left_ns + l->faults.delay_ns + jitter_ns);
	if (t < l->last_ns)
		t = l->last_ns;
	l->last_ns = t;
	return t;
}

static void put_numbered(struct line *l, const uint8_t *frame, size_t len, uint64_t now_ns)
{
	struct fate fate = fates_next(&l->fates, &l->faults);
	uint64_t left_ns;
	line_count(l, LINE_numbered, 1);
	if (fate.lost) {
		line_count(l, fate.burst ? LINE_burst_lost : LINE_lost, 1);
		return;
	}
	if (!serialize(l, len, now_ns, &left_ns)) {
		line_count(l, LINE_queue_full, 1);
		return;
	}
	// Held back, it says nothing about the place of those that follow.
	uint64_t due = fate.late_ns ? left_ns + l->faults.delay_ns + fate.late_ns
	                            : arrival(l, left_ns, fate.jitter_ns);
	line_count(l, LINE_reordered, fate.late_ns != 0);
	uint8_t *kept = keep(l, frame, len, due);
	if (fate.forged)
		line_count(l, LINE_forged, frame_forge(kept, len, fate.where));
	if (fate.corrupt) {
		frame_corrupt(kept, len, fate.where);
		line_count(l, LINE_corrupted, 1);
	}
	if (fate.twice) {
		(void)!keep(l, frame, len, due);
		line_count(l, LINE_duplicated, 1);
	}
}

void line_put_own(struct line *l, const uint8_t *frame, size_t len, uint64_t now_ns)
{
	(void)!keep(l, frame, len, now_ns + l->faults.delay_ns);
}

bool line_put(struct line *l, const uint8_t *frame, size_t len, uint64_t now_ns)
{
	const struct faults *f = &l->faults;
	size_t ip_len = frame_ip_len(frame, len);
	DCHECK(len <= FRAME_MAX);
	if (is_dark(f, now_ns)) {
		line_count(l, LINE_dark, 1);
	} else if (f->mtu && ip_len > f->mtu) {
		line_count(l, LINE_too_big, 1);
		return f->silent;
	} else if (ip_len) {
		put_numbered(l, frame, len, now_ns);
	} else {
		line_count(l, LINE_others, 1);
		line_put_own(l, frame, len, now_ns);
	}
	return true;
}

size_t line_take(struct line *l, uint64_t now_ns, uint8_t *ret)
{
	if (line_next_ns(l) > now_ns)
		return 0;
	struct waiting *w = CONTAINER_OF(l->out.next, struct waiting, link);
	size_t len = w->len;
	memcpy(ret, w->frame, len);
	drop(w);
	line_count(l, LINE_sent, 1);
	return len;
}

uint64_t line_next_ns(const struct line *l)
{
	return list_empty(&l->out) ? UINT64_MAX
	                           : CONTAINER_OF(l->out.next, struct waiting, link)->due_ns;
}

void line_count(struct line *l, enum line_counter which, uint64_t n)
{
	l->counters[which] += n;
}

uint64_t line_counter(const struct line *l, enum line_counter which)
{
	return l->counters[which];
}
