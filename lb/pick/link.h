// SPDX-License-Identifier: Apache-2.0
// The channel between the control thread and one worker, besides the snapshot slot: two rings, a
// block of counters, the last failures and what is in flight. Neither side waits for the other.
// Thread: as tagged.
#pragma once

#include "lb/base/company.h"
#include "lb/base/counter.h"
#include "lb/base/gateways.h"
#include "lb/base/histogram.h"
#include "lb/base/pool.h"
#include "lb/base/spsc.h"
#include "lb/base/time.h"
#include "lb/pick/access.h"
#include "lb/pick/answer.h"
#include "lb/pick/capture.h"
#include "lb/pick/cause.h"
#include "lb/pick/endpoint.h"
#include "lb/pick/failures.h"
#include "lb/pick/inflight.h"
#include "lb/pick/limits.h"
#include "lb/pick/orca.h"
#include "lb/pick/ping.h"
#include "lb/pick/probe.h"
#include "lb/pick/timers.h"
#include "lb/pick/trace.h"

// ctrl → worker
enum lb_command_kind {
	LB_COMMAND_CONNECT, // endpoint: ensure one connection; answer CONNECTED or FAILED once
	// endpoint: finish its streams, close its connections, answer RELEASED exactly once, even
	// if there is nothing to close, or if a later CONNECT keeps what is left (RELEASED then
	// comes before CONNECTED; UPD-03)
	LB_COMMAND_RELEASE,
	// GOAWAY to all clients, accept no new connections; deadline_ns; answer DRAINED
	LB_COMMAND_DRAIN,
	// GOAWAY to all clients and to newcomers, who are accepted still until shortly before
	// deadline_ns, and from then on hear nothing (FL-41)
	LB_COMMAND_FAREWELL,
	// frontend: accept no new connections there, and send its clients away until deadline_ns
	LB_COMMAND_LEAVE,
	// frontend: accept connections there again; who has been told to leave may take his time
	LB_COMMAND_RETURN,
	LB_COMMAND_INFLIGHT, // answer what lb_link.inflight asks, in parts
	LB_COMMAND_PING, // send the echo requests that lb_link.ping asks for
	LB_COMMAND_CAPTURE, // copy the frames that lb_link.capture asks for
	LB_COMMAND_CAPTURE_END, // no longer
	// probe: do its check; answer PROBED once, unless PROBE_END comes before
	LB_COMMAND_PROBE,
	// company: what others answer is left to them from now on; lb_link.company tells that it is
	LB_COMMAND_COMPANY,
	LB_COMMAND_RELAYS, // use the ways to other processes that there are by now
	LB_COMMAND_CLEAR_MAXIMA, // begin anew: the longest turn, the peaks of pools
	LB_COMMAND_PROBE_END, // probe: let go of its connection; answer PROBE_ENDED once
};
struct lb_command {
	enum lb_command_kind kind;
	uint32_t frontend; // LEAVE, RETURN: of shunt.yaml
	union {
		struct lb_endpoint *endpoint; // CONNECT, RELEASE
		struct lb_probe *probe; // PROBE, PROBE_END
		enum lb_company company; // COMPANY
	};
	// DRAIN, LEAVE: monotonic; streams still open then are reset. FAREWELL: when DRAIN comes
	uint64_t deadline_ns;
};

// worker → ctrl
enum lb_event_kind {
	LB_EVENT_CONNECTED, // the first connection to the endpoint received SETTINGS
	LB_EVENT_FAILED, // the attempt for CONNECT failed
	LB_EVENT_LOST, // the last connection to the endpoint is lost (or got GOAWAY)
	// The same for a short-lived connection: it answered nothing and ended within
	// LB_SHORT_LIVED_NS. A backend that accepts and hangs up must not be tried again at once.
	LB_EVENT_SHORT_LIVED,
	LB_EVENT_RELEASED,
	LB_EVENT_DRAINED, // the worker's last answer to DRAIN
	// A request waits for this IDLE member: connect it (lb_pick.connect_request,
	// LB_AFFINITY_CONNECT). Once per member and snapshot.
	LB_EVENT_CONNECT_REQUEST,
	LB_EVENT_ORCA, // the newest of the member's load reports in a period
	LB_EVENT_METRIC, // one value of one request, for load reports (LR-10)
	// a neighbor that was unknown on a link was seen, or announced itself again
	LB_EVENT_NEIGHBOR,
	LB_EVENT_PROBED, // a health check is over
	LB_EVENT_PROBE_ENDED,
};
struct lb_event {
	enum lb_event_kind kind;
	union {
		uint32_t endpoint_id;
		uint32_t member; // CONNECT_REQUEST, ORCA
		uint32_t load; // METRIC: of the locality
		uint32_t probe; // PROBED, PROBE_ENDED: its id
		uint32_t n_cut; // DRAINED: requests that the deadline ended
	};
	union {
		char why[LB_ENDPOINT_WHY_MAX]; // FAILED to SHORT_LIVED: "refused", …
		struct ip_addr neighbor; // NEIGHBOR
		struct lb_orca_report orca;
		struct {
			uint8_t result; // enum lb_probe_result
			char why[LB_PROBE_WHY_MAX];
		} probed; // PROBED
		struct {
			double value;
			uint32_t list; // lb_metrics.list that the index refers to
			uint32_t index; // in the list, or LB_METRIC_NONE: by name
			// The backend's name for it, ended by 0. Longer names are not sent: cut
			// ones could be mistaken.
			char name[48];
		} metric;
	};
};

// Requests of one cluster on one worker. Invariant: started = sum of ended[] + active.
struct lb_cluster_counters {
	uint64_t started;
	uint64_t active; // gauge: keeps the cluster alive (A31-C02)
	uint64_t queued; // gauge: waiting for a backend, a delay or a retry's backoff
	uint64_t ended[LB_N_CAUSES];
};
// Bytes of bodies, without what frames them: from clients, and to them.
struct lb_bodies {
	uint64_t in, out;
};
// Answers, bodies and times of one cluster's requests on one worker, apart from the counters that
// each step of a request touches (docs/metrics.md: what each time is).
struct lb_cluster_times {
	struct lb_bodies bodies; // of requests that are over
	uint64_t answers[LB_N_ANSWERS]; // likewise
	uint64_t bad; // of LB_CAUSE_OK, those whose answer says that the server failed
	struct histogram request, added; // of requests that are over
	struct histogram attempt; // of attempts that are over
};
// The same of one frontend's requests, those without a cluster included, and by which cause they
// ended.
struct lb_frontend_times {
	uint64_t ended[LB_N_CAUSES];
	struct lb_bodies bodies;
	uint64_t answers[LB_N_ANSWERS];
	uint64_t bad;
	struct histogram request, added;
};
// What a virtual host's requests on one worker were like, if they are counted apart.
// started = sum of ended[] + those in flight.
struct lb_vhost_counters {
	uint64_t started;
	// Of requests that are over:
	uint64_t ended[LB_N_CAUSES];
	uint64_t answers[LB_N_ANSWERS];
	struct histogram request;
};
struct lb_endpoint_counters {
	uint64_t started; // streams opened to it
	uint64_t active; // gauge
	uint64_t connections; // gauge
};

// Requests sent to one member of a leaf. In flight: issued - ok - failed - unjudged.
struct lb_member_counters {
	uint64_t issued;
	uint64_t ok, failed; // as outlier detection distinguishes them (A50-E05)
	uint64_t unjudged; // ended for reasons other than the backend
	uint64_t used_ns; // when a session's request was last sent to it (A75-O12); 0 = never
};
// Load counters of a locality or, issued alone, of a category of drops (A27-I10). They only grow: a
// reader remembers the values it has read.
struct lb_load_counters {
	uint64_t issued, ok, failed;
};

#define LB_LONG_TURN_NS NS_PER_MS
#define LB_SHORT_LIVED_NS (100 * NS_PER_MS)

struct lb_worker_counters {
	uint64_t turns; // of the poll loop
	uint64_t empty_turns; // turns that found nothing to do
	uint64_t busy_ns; // time of turns that found work
	uint64_t idle_ns; // time of empty turns and of sleeping
	uint64_t longest_turn_ns; // since the start, or CLEAR_MAXIMA
	uint64_t long_turns; // turns of more than LB_LONG_TURN_NS
	uint64_t snapshot_version; // the version in use
	uint64_t beat_ns; // time of the last turn
	uint64_t requests;
	uint64_t ended[LB_N_CAUSES]; // all requests, including those without a cluster
	uint64_t client_connections; // gauge
	uint64_t frontend_requests[LB_MAX_FRONTENDS];
	uint64_t frontend_connections[LB_MAX_FRONTENDS]; // total connections accepted
	// gauge: connected clients, and one more while others are accepted; 0 = it has drained
	uint64_t frontend_uses[LB_MAX_FRONTENDS];
};

#define LB_LINK_MAX_GROUPS 32
struct lb_counter_group {
	const char *name; // "tcp", "h2", "port0"
	struct counter_set set;
};

// What all workers share. Each request reads the first cache line.
struct lb_shared {
	// [LB_MAX_MEMBERS] requests in flight, for members whose picks compare them (MC-12); w:
	// workers (relaxed).
	uint32_t *active;
	// [LB_MAX_MEMBERS] load counters of the member's locality; 0 = none. A request keeps the
	// value it was sent with. w: ctrl (relaxed), r: workers.
	uint32_t *loads;
	// [LB_MAX_ENDPOINTS] of the endpoint's connections; w: ctrl (relaxed), r: workers.
	struct lb_timers *timers;
	// The gauge of FI-08; w: workers (relaxed), only when a fault is injected.
	_Alignas(64) uint32_t active_faults;
	struct lb_gateways gateways; // w, r: as it says
};
struct lb_shared *lb_shared_new(void); // NULL = out of memory
void lb_shared_free(struct lb_shared *); // NULL is fine

struct lb_link {
	uint32_t worker; // the worker's number, from 0
	int core; // the core that it is pinned to
	struct spsc commands; // w: ctrl, r: worker
	struct spsc events; // w: worker, r: ctrl
	struct lb_worker_counters counters; // w: worker (relaxed), r: ctrl
	struct lb_cluster_counters *clusters; // [LB_MAX_CLUSTERS] w: worker (relaxed), r: ctrl
	// [LB_MAX_CLUSTERS + 1] and [LB_MAX_FRONTENDS], likewise. Their memory becomes resident
	// with the first request that is counted there. Requests without a cluster are counted
	// in the last of `times`, which nobody reads.
	struct lb_cluster_times *times;
	struct lb_frontend_times *frontends;
	// [LB_MAX_COUNTED_VHOSTS + 1] by lb_vhost's number, likewise; 0 is unused.
	struct lb_vhost_counters *vhosts;
	// Samples of connections' smoothed round trips, a second apart or more; likewise.
	struct histogram client_round_trips, backend_round_trips;
	struct lb_endpoint_counters *endpoints; // [LB_MAX_ENDPOINTS] w: worker (relaxed), r: ctrl
	struct lb_member_counters *members; // [LB_MAX_MEMBERS] w: worker (relaxed), r: ctrl
	struct lb_load_counters *loads; // [LB_MAX_LOADS] likewise; 0 is unused
	// Requests that the proxy itself answered or cut, and those that a backend answered with a
	// status of failure: apart, so that many of these leave those there. w: worker, r: ctrl
	struct lb_failures *failures, *failed_answers;
	struct lb_inflight *inflight; // owned; w: as it says
	struct lb_ping ping; // w: as it says
	// owned; NULL = neither access logs nor traces. Set before the worker starts
	struct lb_access *access;
	struct lb_trace *trace; // owned; NULL = no traces. Likewise
	// owned; NULL = there are no captures. Set before the worker starts
	struct lb_capture *capture;
	struct lb_shared *shared; // borrowed
	enum lb_company company; // w: worker (release), r: ctrl (acquire)
	// Filled before the worker starts, constant afterwards: each module's own counters, by
	// name.
	struct lb_counter_group groups[LB_LINK_MAX_GROUPS];
	uint32_t n_groups;
	struct pool_list pools; // likewise
};

// Capacity of the rings. A writer that finds its ring full keeps the item and tries again in its
// next turn: no command or event may be lost, except METRIC and NEIGHBOR, which are written only
// while more than half of the ring is free, so that they never displace the others.
#define LB_LINK_COMMANDS 16384
#define LB_LINK_EVENTS 16384

// shared is borrowed and outlives the link. Returns NULL if out of memory.
struct lb_link *lb_link_new(uint32_t worker, int core, struct lb_shared *);
void lb_link_free(struct lb_link *); // after the worker stopped; NULL is fine
// Call before the worker starts. CHECKs the bound.
void lb_link_add_group(struct lb_link *, const char *name, struct counter_set);
// CLEAR_MAXIMA. The worker's own thread.
void lb_link_clear_maxima(struct lb_link *);
