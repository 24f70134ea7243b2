// SPDX-License-Identifier: Apache-2.0
// The control thread's end of all workers' links: sends commands (never lost, although rings are
// finite), receives events, and watches that the workers' loops run.
// Thread: ctrl.
#pragma once

#include "lb/base/time.h"
#include "lb/pick/link.h"

#include <stdbool.h>
#include <stdint.h>

struct workers;

// links are borrowed and outlive it. workers_poll() calls on_event. Returns NULL if out of memory.
struct workers *workers_new(struct lb_link *const *links, uint32_t n,
	void (*on_event)(void *ctx, uint32_t worker, const struct lb_event *), void *ctx);
void workers_free(struct workers *); // NULL is fine
uint32_t workers_count(const struct workers *);
struct lb_link *workers_link(const struct workers *, uint32_t worker);

// Sends a command at once, or at a later poll if the ring is full; keeps the order. False = out of
// memory: the command is lost, which is logged.
bool workers_send(struct workers *, uint32_t worker, const struct lb_command *);
void workers_send_all(struct workers *, const struct lb_command *);

// Call at every tick: receives events and sends waiting commands.
void workers_poll(struct workers *);
// Call about every second: logs a worker whose loop hangs or runs again; samples busy shares.
void workers_watch(struct workers *, uint64_t now_ns);
// Whether a loop hangs whose last turn began at beat_ns.
static inline bool workers_stalls(uint64_t beat_ns, uint64_t now_ns)
{
	return now_ns > beat_ns + NS_PER_SECOND;
}
// Whether at the last look the loop of one hung for a second or longer.
bool workers_stalled(const struct workers *);
// Has all workers begin their maxima anew: longest turns, peaks of pools. They do within a turn.
void workers_clear_maxima(struct workers *, uint64_t now_ns);
// When that was done last; 0 = never, they are of all the time.
uint64_t workers_maxima_since(const struct workers *);
// The share of the last sampled period that turns with work took, 0..1.
double workers_busy_share(const struct workers *, uint32_t worker);

// One of the layers' own counters, by its group and name (lb_link_add_group()), summed over all
// workers; 0 if there is none.
uint64_t workers_counter(const struct workers *, const char *group, const char *name);

// Requests of a cluster, summed over all workers.
struct cluster_totals {
	uint64_t started, active, queued;
	uint64_t ended[LB_N_CAUSES];
	uint64_t bad; // of LB_CAUSE_OK, those that a backend answered that it failed
};
void workers_cluster_totals(
	const struct workers *, uint32_t cluster_id, struct cluster_totals *ret);
// Answers, bodies and times of one, likewise. Only for one that has had requests: what is read
// becomes resident.
void workers_cluster_times(
	const struct workers *, uint32_t cluster_id, struct lb_cluster_times *ret);
void cluster_times_since(struct lb_cluster_times *, const struct lb_cluster_times *before);
// Of a frontend.
void workers_frontend_times(
	const struct workers *, uint32_t frontend, struct lb_frontend_times *ret);
// Of a worker's requests at so many frontends: those that backends answered that they failed.
uint64_t workers_bad_answers(const struct workers *, uint32_t worker, uint32_t n_frontends);
// Subtracts what was counted before: ids are reused, but the workers' counters only grow.
void cluster_totals_since(struct cluster_totals *, const struct cluster_totals *before);
uint64_t workers_cluster_active(const struct workers *, uint32_t cluster_id);
// true if any request is queued
bool workers_cluster_queued(const struct workers *, uint32_t cluster_id);
