// SPDX-License-Identifier: Apache-2.0
// lb/slot.h where nobody reads while ctrl writes: what was published before is freed at once, so
// that no thread decides when. In place of lb/slot.c in programs that bring it.
// Thread: one.
#include "lb/slot.h"
#include "lb/snapshot.h"

#include <stdlib.h>

struct lb_slot {
	struct lb_snapshot *current;
};

struct lb_slot *lb_slot_new(struct lb_snapshot *first)
{
	struct lb_slot *slot = calloc(1, sizeof(*slot));
	if (slot)
		slot->current = first;
	return slot;
}

void lb_slot_free(struct lb_slot *slot)
{
	if (slot)
		lb_snapshot_free(slot->current);
	free(slot);
}

void lb_slot_publish(struct lb_slot *slot, struct lb_snapshot *next)
{
	lb_snapshot_free(slot->current);
	slot->current = next;
}

unsigned lb_slot_reclaim(struct lb_slot *slot)
{
	(void)slot;
	return 1;
}

const struct lb_snapshot *lb_slot_current(const struct lb_slot *slot)
{
	return slot->current;
}

const struct lb_snapshot *lb_slot_oldest(const struct lb_slot *slot)
{
	return slot->current;
}
