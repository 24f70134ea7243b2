// SPDX-License-Identifier: Apache-2.0
#include "dataplane/handover.h"

#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/spsc.h"
#include "lb/pick/limits.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

// Frames on the way of one pair. Beyond them they are lost, as in a device whose queue is full:
// TCP slows down. Copies, which anybody on the link can cause, leave half of it to segments.
#define RING_FRAMES 1024
#define COPIES_LEAVE (RING_FRAMES / 2)

// clang-format off
#define HANDOVER_COUNTERS(X)                                                                       \
	X(given)                                                                                   \
	X(copies_given)                                                                            \
	X(taken)                                                                                   \
	X(ring_full)                                                                               \
	X(wake_ups)
// clang-format on

#define X(name) HANDOVER_##name,
enum handover_counter { HANDOVER_COUNTERS(X) HANDOVER_N_COUNTERS };
#undef X

// What goes from one worker to another.
struct channel {
	struct spsc ring;
	// Grows after each publishing, before the writer asks whether the reader sleeps. w: writer
	// (seq_cst), r: reader (seq_cst)
	_Alignas(64) uint32_t rung;
};

struct handover_end {
	// Read by all: a line of its own. w: its worker; one that wakes it (seq_cst), r: all
	// (seq_cst)
	_Alignas(64) uint32_t asleep;
	_Alignas(64) struct handover *all;
	uint32_t worker;
	int fd; // -1 = nobody sleeps
	uint64_t got; // bit w: something for worker w isn't published
	uint32_t first; // channel to begin to take from
	uint64_t counters[HANDOVER_N_COUNTERS];
};

struct handover {
	uint32_t n;
	bool may_sleep;
	struct channel *channels; // owned; [from * n + to]
	struct handover_end *ends; // owned; [n]
};

_Static_assert(LB_MAX_WORKERS <= 64, "bits of got");

static struct channel *channel_of(const struct handover *h, uint32_t from, uint32_t to)
{
	return &h->channels[from * h->n + to];
}

static int make(struct handover *h)
{
	h->ends = cacheline_alloc(h->n, sizeof(*h->ends));
	h->channels = cacheline_alloc((size_t)h->n * h->n, sizeof(*h->channels));
	if (!h->ends || !h->channels)
		return -1;
	for (uint32_t i = 0; i < h->n; i++)
		h->ends[i] = (struct handover_end){.all = h, .worker = i, .fd = -1};
	for (uint32_t i = 0; i < h->n; i++) {
		if (h->may_sleep)
			h->ends[i].fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (h->may_sleep && h->ends[i].fd < 0)
			return -1;
		for (uint32_t to = 0; to < h->n; to++)
			if (to != i && spsc_init(&channel_of(h, i, to)->ring,
					       sizeof(struct handover_item), RING_FRAMES))
				return -1;
	}
	return 0;
}

struct handover *handover_new(uint32_t n_workers, bool may_sleep)
{
	DCHECK(n_workers >= 1 && n_workers <= LB_MAX_WORKERS);
	struct handover *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->n = n_workers;
	h->may_sleep = may_sleep && n_workers > 1;
	if (make(h) != 0) {
		handover_free(h, NULL);
		return NULL;
	}
	return h;
}

void handover_free(struct handover *h, void (*drop)(void *frame))
{
	if (!h)
		return;
	for (uint32_t i = 0; h->channels && i < h->n * h->n; i++) {
		struct handover_item item;
		if (!h->channels[i].ring.items)
			continue;
		spsc_publish(&h->channels[i].ring);
		while (spsc_read(&h->channels[i].ring, &item))
			drop(item.frame);
		spsc_fini(&h->channels[i].ring);
	}
	for (uint32_t i = 0; h->ends && i < h->n; i++)
		if (h->ends[i].fd >= 0)
			close(h->ends[i].fd);
	cacheline_free(h->channels);
	cacheline_free(h->ends);
	free(h);
}

struct handover_end *handover_end(struct handover *h, uint32_t worker)
{
	DCHECK(worker < h->n);
	return &h->ends[worker];
}

bool handover_give(struct handover_end *e, uint32_t to, const struct handover_item *item)
{
	DCHECK(to != e->worker && to < e->all->n);
	struct spsc *ring = &channel_of(e->all, e->worker, to)->ring;
	if ((item->is_copy && spsc_room(ring) <= COPIES_LEAVE) || !spsc_stage(ring, item)) {
		counter_add(&e->counters[HANDOVER_ring_full], 1);
		return false;
	}
	e->got |= UINT64_C(1) << to;
	counter_add(&e->counters[item->is_copy ? HANDOVER_copies_given : HANDOVER_given], 1);
	return true;
}

// Either the sleeper-to-be sees what was published, or this sees that it sleeps: both write first
// and look then, in one order for all (handover_sleep()).
static void wake(struct handover_end *e, struct channel *channel, struct handover_end *sleeper)
{
	__atomic_fetch_add(&channel->rung, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&sleeper->asleep, __ATOMIC_SEQ_CST) ||
		!__atomic_exchange_n(&sleeper->asleep, 0, __ATOMIC_SEQ_CST))
		return;
	uint64_t one = 1;
	if (write(sleeper->fd, &one, sizeof(one)) == sizeof(one))
		counter_add(&e->counters[HANDOVER_wake_ups], 1);
}

void handover_flush(struct handover_end *e)
{
	struct handover *h = e->all;
	while (e->got) {
		uint32_t to = (uint32_t)__builtin_ctzll(e->got);
		e->got &= e->got - 1;
		struct channel *channel = channel_of(h, e->worker, to);
		spsc_publish(&channel->ring);
		if (h->may_sleep)
			wake(e, channel, &h->ends[to]);
	}
}

uint32_t handover_take(struct handover_end *e, struct handover_item *ret, uint32_t max)
{
	struct handover *h = e->all;
	uint32_t n = 0, from = e->first;
	for (uint32_t i = 0; i < h->n && n < max; i++) {
		if (from != e->worker)
			n += spsc_read_many(
				&channel_of(h, from, e->worker)->ring, ret + n, max - n);
		from = from + 1 < h->n ? from + 1 : 0;
	}
	e->first = from; // who was served last comes last
	if (n > 0)
		counter_add(&e->counters[HANDOVER_taken], n);
	return n;
}

bool handover_sleep(struct handover_end *e)
{
	struct handover *h = e->all;
	if (!h->may_sleep)
		return true;
	__atomic_store_n(&e->asleep, 1, __ATOMIC_SEQ_CST);
	for (uint32_t from = 0; from < h->n; from++) {
		struct channel *channel = channel_of(h, from, e->worker);
		if (from == e->worker)
			continue;
		(void)__atomic_load_n(&channel->rung, __ATOMIC_SEQ_CST);
		if (!spsc_is_empty(&channel->ring)) {
			handover_awake(e);
			return false;
		}
	}
	return true;
}

void handover_awake(struct handover_end *e)
{
	if (!e->all->may_sleep)
		return;
	__atomic_store_n(&e->asleep, 0, __ATOMIC_SEQ_CST);
	// Also when nobody seems to have rung: one may have been about to, after the last sleep.
	uint64_t n;
	(void)!read(e->fd, &n, sizeof(n));
}

int handover_wait_fd(const struct handover_end *e)
{
	return e->fd;
}

struct counter_set handover_counters(const struct handover_end *e)
{
	static const char *const names[] = {HANDOVER_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){
		.names = names, .values = e->counters, .n = HANDOVER_N_COUNTERS};
}
