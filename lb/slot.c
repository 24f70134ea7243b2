// SPDX-License-Identifier: Apache-2.0
// The only file of lb/ that knows liburcu. Its helper thread waits for the grace periods and only
// marks what has passed one; freeing stays with ctrl, so that no count in lb/ needs to be atomic.
#include "lb/slot.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/snapshot.h"

#include <urcu-qsbr.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

// liburcu is not instrumented: ThreadSanitizer must be told that a grace period orders what readers
// did before their quiescent state with what follows it.
#if defined(__SANITIZE_THREAD__)
#define HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_TSAN 1
#endif
#endif
#ifdef HAS_TSAN
void __tsan_acquire(void *);
void __tsan_release(void *);
static char grace_period;
#define READER_IS_DONE() __tsan_release(&grace_period)
#define ALL_READERS_ARE_DONE() __tsan_acquire(&grace_period)
#else
#define READER_IS_DONE() ((void)0)
#define ALL_READERS_ARE_DONE() ((void)0)
#endif

struct lb_slot {
	struct lb_snapshot *current; // w: ctrl (release), r: workers (acquire)
	struct lb_snapshot *oldest, *newest; // owned: retired ones, in order; linked by `newer`
	struct call_rcu_data *helper; // owned: liburcu's thread for the grace periods
	unsigned n_alive;
};

_Static_assert(sizeof(struct rcu_head) <= sizeof(((struct lb_snapshot *)0)->retire.rcu),
	"snapshot.h keeps room for liburcu's list node");

struct lb_slot *lb_slot_new(struct lb_snapshot *first)
{
	struct lb_slot *slot = calloc(1, sizeof(*slot));
	if (!slot)
		return NULL;
	slot->helper = create_call_rcu_data(0, -1);
	slot->current = first;
	slot->n_alive = 1;
	return slot;
}

void lb_slot_free(struct lb_slot *slot)
{
	if (!slot)
		return;
	rcu_barrier();
	lb_slot_reclaim(slot);
	CHECK(slot->n_alive == 1);
	call_rcu_data_free(slot->helper);
	lb_snapshot_free(slot->current);
	free(slot);
}

void lb_slot_reader_start(void)
{
	rcu_register_thread();
}

void lb_slot_reader_stop(void)
{
	READER_IS_DONE();
	rcu_unregister_thread();
}

void lb_slot_quiescent(void)
{
	READER_IS_DONE();
	rcu_quiescent_state();
}

void lb_slot_offline(void)
{
	READER_IS_DONE();
	rcu_thread_offline();
}

void lb_slot_online(void)
{
	rcu_thread_online();
}

const struct lb_snapshot *lb_slot_read(const struct lb_slot *slot)
{
	// Pairs with the release in lb_slot_publish(): the reader sees the whole tree.
	return __atomic_load_n(&slot->current, __ATOMIC_ACQUIRE);
}

void lb_slot_wait(void)
{
	synchronize_rcu();
	ALL_READERS_ARE_DONE();
}

// On the helper's thread.
static void on_grace_period(struct rcu_head *head)
{
	void *(*room)[2] = (void *)head; // snapshot.h knows no struct rcu_head
	struct lb_snapshot *s = CONTAINER_OF(room, struct lb_snapshot, retire.rcu);
	ALL_READERS_ARE_DONE();
	// Pairs with the acquire in lb_slot_reclaim(): whoever read the snapshot is done with it.
	__atomic_store_n(&s->retire.passed, true, __ATOMIC_RELEASE);
}

void lb_slot_publish(struct lb_slot *slot, struct lb_snapshot *next)
{
	struct lb_snapshot *old = slot->current;
	// Pairs with the acquire in lb_slot_read().
	__atomic_store_n(&slot->current, next, __ATOMIC_RELEASE);
	slot->n_alive++;
	if (slot->newest)
		slot->newest->retire.newer = old;
	else
		slot->oldest = old;
	slot->newest = old;
	// With a helper of its own the caller need not be a registered reader: liburcu asks for
	// that only to protect its table of per-CPU helpers. Putting a node into the helper's queue
	// is wait-free.
	set_thread_call_rcu_data(slot->helper);
	call_rcu((void *)&old->retire.rcu, on_grace_period);
	set_thread_call_rcu_data(NULL);
}

unsigned lb_slot_reclaim(struct lb_slot *slot)
{
	// Pairs with the release in on_grace_period().
	while (slot->oldest && __atomic_load_n(&slot->oldest->retire.passed, __ATOMIC_ACQUIRE)) {
		struct lb_snapshot *s = slot->oldest;
		slot->oldest = s->retire.newer;
		if (!slot->oldest)
			slot->newest = NULL;
		slot->n_alive--;
		lb_snapshot_free(s);
	}
	return slot->n_alive;
}

const struct lb_snapshot *lb_slot_current(const struct lb_slot *slot)
{
	return slot->current;
}

const struct lb_snapshot *lb_slot_oldest(const struct lb_slot *slot)
{
	return slot->oldest ? slot->oldest : slot->current;
}
