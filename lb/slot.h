// SPDX-License-Identifier: Apache-2.0
// The published pointer to the newest snapshot (urcu-qsbr). Readers take no lock and write nothing;
// the writer swaps the pointer and frees the old snapshot once no worker can still read it.
// Thread: as marked.
#pragma once

struct lb_slot;
struct lb_snapshot;

// ctrl; takes over first; NULL = out of memory
struct lb_slot *lb_slot_new(struct lb_snapshot *first);
void lb_slot_free(struct lb_slot *); // ctrl, workers stopped; NULL is fine; frees all snapshots

// Worker: once before the first read and after the last one.
void lb_slot_reader_start(void);
void lb_slot_reader_stop(void);
// Worker, once per turn: no pointer obtained before survives this call.
void lb_slot_quiescent(void);
// Worker: around anything that may block or sleep; no snapshot is held in between.
void lb_slot_offline(void);
void lb_slot_online(void);
// Worker: the current snapshot, valid until the next quiescent(), offline() or reader_stop().
const struct lb_snapshot *lb_slot_read(const struct lb_slot *);
// Any thread that is no worker and may wait for the slowest of them: returns when each has passed a
// quiescent state, or was offline. Not ctrl.
void lb_slot_wait(void);

// ctrl: publishes the snapshot, takes it over and returns at once; a reclaimer frees the old one
// after a grace period. Never waits for a worker (docs/threads.md).
void lb_slot_publish(struct lb_slot *, struct lb_snapshot *);
// ctrl, from its loop: frees snapshots past their grace period, since only ctrl touches lb counts.
// Returns how many snapshots are alive, the published one included. Grace periods take 10 to 20 ms,
// since liburcu batches them. A publisher that waits while 3 are alive (but not for long: a stalled
// worker must not stall publishing, MC-18) bounds memory and coalesces bursts of updates.
unsigned lb_slot_reclaim(struct lb_slot *);
// ctrl: the published snapshot.
const struct lb_snapshot *lb_slot_current(const struct lb_slot *);
// ctrl: the oldest one that is alive, the published one if no other is. Good until the next
// lb_slot_reclaim().
const struct lb_snapshot *lb_slot_oldest(const struct lb_slot *);
