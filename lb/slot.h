// SPDX-License-Identifier: Apache-2.0
// The one published pointer (urcu-qsbr). Readers take no lock and write nothing; the writer swaps
// and has the old snapshot freed once no worker can still read it.
// Thread: as marked.
#pragma once

struct lb_slot;
struct lb_snapshot;

struct lb_slot *lb_slot_new(struct lb_snapshot *first); // ctrl; takes it over; NULL = out of memory
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

// ctrl: publishes (takes it over) and returns at once; the old one is freed by a reclaimer after a
// grace period. Never waits for a worker (docs/threads.md).
void lb_slot_publish(struct lb_slot *, struct lb_snapshot *);
// ctrl, from its loop: drops what passed its grace period; lb counts stay ctrl-only. Returns how
// many snapshots are still alive, the published one included. Grace periods take 10 to 20 ms, since
// liburcu gathers them; a publisher that holds back while 3 are alive (but not for long: a stalled
// worker must not stall publishing, MC-18) keeps memory bounded and coalesces storms of updates.
unsigned lb_slot_reclaim(struct lb_slot *);
// ctrl: what is published now.
const struct lb_snapshot *lb_slot_current(const struct lb_slot *);
