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

static uint64_t debt_ns(const struct tlshs_queue *q, uint32_t source, uint64_t now_ns)
{
	uint64_t free_at_ns = q->free_at_ns[source];
	return free_at_ns > now_ns ? free_at_ns - now_ns : 0;
}

struct tlshs_seat *tlshs_queue_take(struct tlshs_queue *q, uint64_t now_ns)
{
	struct tlshs_seat *first = NULL;
	uint64_t first_due_ns = UINT64_MAX;
	for (struct list_link *l = list_first(&q->ready); l; l = list_after(&q->ready, l)) {
		struct tlshs_seat *s = CONTAINER_OF(l, struct tlshs_seat, ready);
		if (s->since_ns >= first_due_ns) // and so are all behind it
			break;
		uint64_t due_ns =
			s->since_ns + debt_ns(q, s->source, now_ns) + s->n_unanswered * NS_PER_BYTE;
		if (due_ns < first_due_ns) {
			first = s;
			first_due_ns = due_ns;
		}
	}
	if (first)
		list_remove(&first->ready);
	return first;
}

void tlshs_queue_charge(struct tlshs_queue *q, uint32_t source, uint64_t spent_ns, uint64_t now_ns)
{
	uint64_t debt = debt_ns(q, source, now_ns) + spent_ns * SHARE;
	q->free_at_ns[source] = now_ns + min_u64(debt, MOST_NS);
}
