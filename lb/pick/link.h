// SPDX-License-Identifier: Apache-2.0
// How the control thread and one worker meet, besides the snapshot slot: two rings and a block of
// counters. Neither waits for the other.
// Thread: as tagged.
#pragma once

#include "lb/base/counter.h"
#include "lb/base/pool.h"
#include "lb/base/spsc.h"
#include "lb/base/time.h"
#include "lb/pick/cause.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/limits.h"
#include "lb/pick/orca.h"

// ctrl → worker
enum lb_command_kind {
	LB_COMMAND_CONNECT, // endpoint: make sure of one connection; answer CONNECTED or FAILED,
	// once
	LB_COMMAND_RELEASE, // endpoint: finish its streams, close its connections, answer RELEASED
	// exactly once, also when there is nothing to close, and when a later CONNECT keeps what
	// is left (then RELEASED comes before CONNECTED; UPD-03)
	LB_COMMAND_DRAIN, // GOAWAY to all clients, take no new connections; deadline_ns; answer
	// DRAINED
};
struct lb_command {
	enum lb_command_kind kind;
	struct lb_endpoint *endpoint; // CONNECT, RELEASE
	uint64_t deadline_ns; // DRAIN: monotonic; streams still open then are cut
};

// worker → ctrl
enum lb_event_kind {
	LB_EVENT_CONNECTED, // SETTINGS arrived on the first connection to the endpoint
	LB_EVENT_FAILED, // the attempt asked for ended without one
	LB_EVENT_LOST, // the last connection to the endpoint is gone (or took GOAWAY)
	// The same of one that was of no use: it answered nothing, and did not last
	// LB_SHORT_LIVED_NS. A backend that accepts and hangs up must not be tried again at once.
	LB_EVENT_SHORT_LIVED,
	LB_EVENT_RELEASED,
	LB_EVENT_DRAINED,
	// A request waits for this IDLE member: connect it (lb_pick.connect_request,
	// LB_AFFINITY_CONNECT). Once a member and snapshot.
	LB_EVENT_CONNECT_REQUEST,
	LB_EVENT_ORCA, // the newest of the member's reports of the last while
	LB_EVENT_METRIC, // one value of one request, for load reports (LR-10)
	LB_EVENT_NEIGHBOR, // a host that was not known on a link is there, or says so anew
};
struct lb_event {
	enum lb_event_kind kind;
	union {
		uint32_t endpoint_id;
		uint32_t member; // CONNECT_REQUEST, ORCA
		uint32_t load; // METRIC: of the locality
	};
	union {
		char why[64]; // FAILED to SHORT_LIVED: "refused", "connect timeout", …
		struct ip_addr neighbor; // NEIGHBOR
		struct lb_orca_report orca;
		struct {
			double value;
			uint32_t list; // lb_metrics.list of those that were wanted
			uint32_t index; // in it, or LB_METRIC_NONE: by name
			// As the backend calls it. 0 ends it; a longer one is not sent, a cut one
			// would be another.
			char name[48];
		} metric;
	};
};

// Requests of one cluster on one worker. started = sum of ended[] + active, always.
struct lb_cluster_counters {
	uint64_t started;
	uint64_t active; // gauge: holds the cluster alive (A31-C02)
	uint64_t queued; // gauge: waiting for a backend, a delay or a retry's backoff
	uint64_t ended[LB_N_CAUSES];
};
struct lb_endpoint_counters {
	uint64_t started; // streams opened to it
	uint64_t active; // gauge
	uint64_t connections; // gauge
};

// Requests that were sent to one member of a leaf's. issued - ok - failed - unjudged are in flight.
struct lb_member_counters {
	uint64_t issued;
	uint64_t ok, failed; // as outlier detection tells them apart (A50-E05)
	uint64_t unjudged; // ended by what is none of the backend's doing
	uint64_t used_ns; // when one of a session was last sent to it (A75-O12); 0 = never
};
// Of a locality or, issued alone, of a category of drops (A27-I10). Grow for ever: a reader keeps
// what it has read.
struct lb_load_counters {
	uint64_t issued, ok, failed;
};

#define LB_LONG_TURN_NS NS_PER_MS
#define LB_SHORT_LIVED_NS 100000000ull

struct lb_worker_counters {
	uint64_t turns; // of the poll loop
	uint64_t empty_turns; // that found nothing to do
	uint64_t busy_ns; // time of turns that did something
	uint64_t idle_ns; // time of empty turns and of sleeping
	uint64_t longest_turn_ns;
	uint64_t long_turns; // of more than LB_LONG_TURN_NS
	uint64_t snapshot_version; // adopted
	uint64_t beat_ns; // clock of the last turn
	uint64_t requests;
	uint64_t ended[LB_N_CAUSES]; // of all requests, those without a cluster too
	uint64_t client_connections; // gauge
	uint64_t frontend_requests[LB_MAX_FRONTENDS];
	uint64_t frontend_connections[LB_MAX_FRONTENDS]; // accepted in all
};

#define LB_LINK_MAX_GROUPS 16
struct lb_counter_group {
	const char *name; // "tcp", "h2", "port0"
	struct counter_set set;
};

// What all workers have in common. Each request reads the first line.
struct lb_shared {
	// [LB_MAX_MEMBERS] requests in flight of members whose picks count them (MC-12); w: workers
	// (relaxed).
	uint32_t *active;
	// [LB_MAX_MEMBERS] which load counters the member's requests go to besides; 0 = none. A
	// request keeps the one with which it was sent. w: ctrl (relaxed), r: workers.
	uint32_t *loads;
	// The gauge of FI-08; w: workers (relaxed), only when a fault hits.
	_Alignas(64) uint32_t active_faults;
};
struct lb_shared *lb_shared_new(void); // NULL = out of memory
void lb_shared_free(struct lb_shared *); // NULL is fine

struct lb_link {
	uint32_t worker; // number of the worker, from 0
	int core; // it is pinned to
	struct spsc commands; // w: ctrl, r: worker
	struct spsc events; // w: worker, r: ctrl
	struct lb_worker_counters counters; // w: worker (relaxed), r: ctrl
	struct lb_cluster_counters *clusters; // [LB_MAX_CLUSTERS] w: worker (relaxed), r: ctrl
	struct lb_endpoint_counters *endpoints; // [LB_MAX_ENDPOINTS] w: worker (relaxed), r: ctrl
	struct lb_member_counters *members; // [LB_MAX_MEMBERS] w: worker (relaxed), r: ctrl
	struct lb_load_counters *loads; // [LB_MAX_LOADS] likewise; 0 is nobody's
	struct lb_shared *shared; // borrowed
	// Filled before the worker starts, constant afterwards: each module's own counters, by
	// name.
	struct lb_counter_group groups[LB_LINK_MAX_GROUPS];
	uint32_t n_groups;
	struct pool_list pools; // likewise
};

// Room of the rings. A writer that finds its ring full keeps the item and tries again in its next
// turn: neither commands nor events may be lost, but for METRIC and NEIGHBOR, which are written
// only while more than half of the ring is free: whatever hosts say, the others have room.
#define LB_LINK_COMMANDS 16384
#define LB_LINK_EVENTS 16384

// What they share outlives it. NULL = out of memory.
struct lb_link *lb_link_new(uint32_t worker, int core, struct lb_shared *);
void lb_link_free(struct lb_link *); // worker stopped; NULL is fine
// Before the worker starts; CHECKs the bound.
void lb_link_add_group(struct lb_link *, const char *name, struct counter_set);
