// SPDX-License-Identifier: Apache-2.0
#include "tlshs/queue.h"

#include "lb/base/container_of.h"
#include "lb/base/min.h"
#include "lb/base/time.h"

#define NS_PER_BYTE 400 // of certificates, most of which is the library's decoding of keys
#define SHARE 8 // of a thread that a source has to itself: one part in so many
#define MOST_NS NS_PER_SECOND // that a source owes

void tlshs_queue_init(struct tlshs_queue *q)
{
	list_init(&q->ready);
}

void tlshs_queue_add(struct tlshs_queue *q, struct tlshs_seat *s, uint64_t now_ns)
{
	if (list_linked(&s->ready))
		return;
	s->since_ns = now_ns;
	list_append(&q->ready, &s->ready);
}

// What is not later than `least` counts as that.
static uint64_t free_at_ns(const struct tlshs_queue *q, uint64_t source, uint64_t least)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < SKETCH_ROWS && first > least; i++)
		first = min_u64(first, q->free_at_ns[i][sketch_place(source, i)]);
	return max_u64(first, least);
}

// While its source owes, all of its seats are due at once, and the first in the list is first.
static uint64_t due_ns(const struct tlshs_queue *q, const struct tlshs_seat *s)
{
	return free_at_ns(q, s->source, s->since_ns + s->n_unanswered * NS_PER_BYTE);
}

struct tlshs_seat *tlshs_queue_take(struct tlshs_queue *q)
{
	struct tlshs_seat *first = NULL;
	uint64_t first_due_ns = UINT64_MAX;
	for (struct list_link *l = list_first(&q->ready); l; l = list_after(&q->ready, l)) {
		struct tlshs_seat *s = CONTAINER_OF(l, struct tlshs_seat, ready);
		if (s->since_ns >= first_due_ns) // and so are all behind it
			break;
		uint64_t s_due_ns = due_ns(q, s);
		if (s_due_ns < first_due_ns) {
			first = s;
			first_due_ns = s_due_ns;
		}
	}
	if (first)
		list_remove(&first->ready);
	return first;
}

void tlshs_queue_charge(struct tlshs_queue *q, uint64_t source, uint64_t spent_ns, uint64_t now_ns)
{
	uint64_t end_ns = free_at_ns(q, source, now_ns) + spent_ns * SHARE;
	end_ns = min_u64(end_ns, now_ns + MOST_NS);
	for (uint32_t i = 0; i < SKETCH_ROWS; i++) {
		uint64_t *place = &q->free_at_ns[i][sketch_place(source, i)];
		*place = max_u64(*place, end_ns); // who shares it may owe longer
	}
}
