// SPDX-License-Identifier: Apache-2.0
// The control thread's end of all workers' links: commands out (never lost, though rings are
// finite), events in, a watch over their beat.
// Thread: ctrl.
#pragma once

#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>

struct workers;

// links are borrowed and outlive it. on_event is called from workers_poll(). NULL = out of memory.
struct workers *workers_new(struct lb_link *const *links, uint32_t n,
	void (*on_event)(void *ctx, uint32_t worker, const struct lb_event *), void *ctx);
void workers_free(struct workers *); // NULL is fine
uint32_t workers_count(const struct workers *);
struct lb_link *workers_link(const struct workers *, uint32_t worker);

// Written at once, or at one of the next polls when the ring is full; the order is kept.
// False = out of memory: the command is lost and was logged.
bool workers_send(struct workers *, uint32_t worker, const struct lb_command *);
void workers_send_all(struct workers *, const struct lb_command *);

// Every tick: events in, waiting commands out.
void workers_poll(struct workers *);
// Every second or so: logs a worker whose loop stands still, and its return; samples busy shares.
void workers_watch(struct workers *, uint64_t now_ns);
// Share of the last watched period that turns with work took, 0..1.
double workers_busy_share(const struct workers *, uint32_t worker);

// Requests of a cluster over all workers.
struct cluster_totals {
	uint64_t started, active, queued;
	uint64_t ended[LB_N_CAUSES];
};
void workers_cluster_totals(
	const struct workers *, uint32_t cluster_id, struct cluster_totals *ret);
// Takes off what was counted before: ids are used again, the workers' counters only grow.
void cluster_totals_since(struct cluster_totals *, const struct cluster_totals *before);
uint64_t workers_cluster_active(const struct workers *, uint32_t cluster_id);
bool workers_cluster_queued(const struct workers *, uint32_t cluster_id); // some requests are
