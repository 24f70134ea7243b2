// SPDX-License-Identifier: Apache-2.0
// The balancing of one cluster as a whole in virtual time: the real tree (a leaf, or an aggregate
// of leaves) and the real pick path, a control thread that publishes to workers as the daemon's
// does, and pretended workers with connections of their own over a pretended network. What happens
// is written down, a line each, for tests to read.
// Thread: the test's.
#pragma once

#include "lb/base/backoff.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/leaf/aggregate.h"
#include "lb/member/member.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/orca.h"
#include "tests/sim/balance/plan.h"

#define SIM_MS NS_PER_MS
#define SIM_S NS_PER_SECOND
#define SIM_START (1000 * SIM_S) // lines tell times from here
#define SIM_WORKERS 8
#define SIM_IDS 1024 // of endpoints, of members, of slots
#define SIM_LEAVES 4
#define SIM_REQUESTS 4096
#define SIM_SYNS 65536
#define SIM_CONNECT_TIMEOUT (20 * SIM_S) // BO-02
#define SIM_GRACE (10 * SIM_MS) // until a worker has let go of an older snapshot

enum sim_host_kind {
	SIM_UP,
	SIM_REFUSES, // SYNs are answered with RST
	SIM_SILENT, // nothing comes back
	SIM_MUTE, // accepts, sends no SETTINGS
	SIM_HANGS_UP, // as soon as it has sent them
};
struct sim_host { // of an address
	enum sim_host_kind kind;
	uint64_t syn_ns; // until a SYN is answered
	uint64_t settings_ns; // from there until SETTINGS come
	uint32_t fails_percent; // of its requests
};

// An address as one worker has it (dataplane/proxy/backend.h).
struct sim_conn {
	bool is_known; // told of, not released yet
	struct ip_port address;
	bool is_connecting, is_ready;
	bool told_up, connect_owed, is_releasing;
	uint32_t n_release_owed;
	enum sim_host_kind kind; // of the attempt's end
	uint64_t due_ns; // of it
	uint64_t retry_ns; // own attempts no earlier
	struct backoff backoff;
};

struct sim_worker {
	struct lb_picker *picker; // counted; NULL = none yet
	uint64_t version;
	uint64_t ready[SIM_IDS / 64];
	struct sim_conn conns[SIM_IDS]; // by endpoint id
	uint32_t positions[SIM_IDS];
	struct rand rand;
	uint64_t connect_requested[SIM_IDS]; // version for which the member was requested
	uint64_t n_ok[SIM_IDS], n_failed[SIM_IDS], used_ns[SIM_IDS]; // by member
	bool changed; // what waits is to be picked anew
};

enum sim_outcome { SIM_WAITS, SIM_SENT, SIM_FAILED, SIM_DROPPED, SIM_REFUSED, SIM_DONE };
struct sim_request {
	bool in_use;
	uint32_t worker;
	uint64_t order; // of arrival
	enum sim_outcome outcome;
	uint64_t lasts_ns; // once sent; UINT64_MAX = until the test ends it
	uint64_t end_ns;
	uint64_t deadline_ns; // of waiting; UINT64_MAX = none
	bool waits_for_ready;
	struct lb_pick_hash hash;
	struct lb_drop_once dropped;
	struct ip_port cookie[4];
	uint32_t n_cookie;
	// Of the last pick.
	uint32_t endpoint; // id
	uint32_t address; // number
	uint32_t member;
	bool counts_active, wants_report;
	struct lb_breaker *breaker; // entered
	uint32_t n_picks;
	char text[256]; // FAILED
};

struct sim_leaf {
	char name[16];
	struct plan plan;
	struct lb_leaf_config config;
	struct lb_outlier_conf outlier;
};

struct sim_syn {
	uint64_t at_ns;
	uint32_t address, worker;
};

struct sim {
	uint32_t n_workers;
	struct twheel *wheel;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_member_env member_env;
	struct lb_leaf_env env;
	struct lb_breakers *breakers;
	struct lb_orca_table *orca;
	struct lb_leaf *leaf; // one of the two
	struct lb_aggregate *aggregate;
	struct sim_leaf leaves[SIM_LEAVES];
	uint32_t n_leaves;
	bool member_taken[SIM_IDS], slot_taken[SIM_IDS];
	uint32_t next_member, next_slot, n_members, n_slots;
	uint64_t n_resolutions;
	uint64_t expedite_ns; // when it is next looked whether requests wait
	uint32_t active[SIM_IDS]; // by member
	// Published, and the ones before that some worker may still hold.
	enum lb_state state;
	struct lb_picker *picker;
	uint64_t version;
	struct {
		struct lb_picker *picker;
		uint64_t until_ns;
	} old[256];
	uint32_t n_old;
	struct sim_worker workers[SIM_WORKERS];
	uint32_t n_ids; // endpoint ids are less
	struct sim_host hosts[PLAN_ADDRESSES];
	struct sim_request requests[SIM_REQUESTS];
	uint64_t n_requests; // in all
	uint32_t n_slots_used; // of requests, at most
	// One that lasts no time, of worker 0 after each step: who serves now.
	bool probes;
	uint64_t load_ns; // between requests of the load, of the workers in turn; 0 = none
	uint64_t load_at_ns;
	uint32_t load_worker;
	uint32_t n_served[PLAN_ADDRESSES]; // requests sent, by address
	// NULL = nobody wants to know.
	void (*on_served)(void *ctx, uint32_t address);
	void (*on_syn)(void *ctx, uint32_t address);
	void (*on_connected)(void *ctx, uint32_t address);
	void (*on_released)(void *ctx, uint32_t address); // nobody uses it any more
	void *on_ctx;
	struct sim_syn syns[SIM_SYNS];
	uint32_t n_syns;
	char *log; // owned; written since it was read last
	size_t log_len;
	char label[300]; // of the last probe
};

// A leaf "orders" with one worker and the seed 1, everybody up, 1 ms for each step of a handshake.
struct sim *sim_new(uint32_t n_workers, uint64_t seed);
// Its attempts to connect are paced (lb/member/attempts.h), and as many as may be young may wait;
// as the daemon's assembler does, the leaf of requests that wait is expedited every 20 ms.
struct sim *sim_new_paced(
	uint32_t n_workers, uint64_t seed, uint32_t max_young, uint32_t max_attempts);
void sim_free(struct sim *); // checks that nothing is left
uint64_t sim_now(const struct sim *); // from the start
void sim_update(struct sim *, const char *plan); // with leaves[0].config
// A flat list of names; plans and configs are leaves'.
void sim_aggregate(struct sim *, uint32_t n, const char *const *names);
void sim_update_leaf(struct sim *, uint32_t leaf, const char *plan); // of an aggregate
void sim_run_to(struct sim *, uint64_t ns); // from the start
void sim_run(struct sim *, uint64_t ns);
// What was written since the last time is this.
void sim_expect(struct sim *, const char *lines);
void sim_forget(struct sim *); // what was written
void sim_write(struct sim *, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The network.
void sim_set(struct sim *, uint32_t address, enum sim_host_kind); // for attempts from now on
void sim_reset(struct sim *, uint32_t address); // RST on all of its connections
void sim_reset_at(struct sim *, uint32_t worker, uint32_t address); // on this worker's
void sim_goaway(struct sim *, uint32_t address);
uint32_t sim_count_syns(const struct sim *, uint32_t address);
bool sim_is_connected(const struct sim *, uint32_t worker, uint32_t address);
uint32_t sim_n_connections(const struct sim *, uint32_t address); // of all workers

// Requests. Borrowed until ended.
struct sim_request *sim_begin(struct sim *, uint32_t worker);
void sim_bind(struct sim_request *, uint32_t address); // one more of its cookie's
void sim_start(struct sim *, struct sim_request *);
void sim_end(struct sim *, struct sim_request *); // it is over, whatever it was
// Begins, starts and ends one; its address, or UINT32_MAX.
uint32_t sim_once(struct sim *, uint32_t worker);
const struct lb_leaf_layer *sim_layer(const struct sim *);

// Inside.
void sim_turn_workers(struct sim *); // whatever is due for them now
uint64_t sim_next_of_workers(const struct sim *);
void sim_connect(struct sim *, struct lb_endpoint *);
void sim_release(struct sim *, struct lb_endpoint *);
void sim_want(struct sim *, uint32_t member);
bool sim_open(struct sim *, uint32_t worker, const struct lb_endpoint *); // a worker's own attempt
void sim_requests_turn(struct sim *, uint32_t worker);
void sim_requests_expire(struct sim *);
uint64_t sim_next_of_requests(const struct sim *);
void sim_requests_lost(struct sim *, uint32_t worker, uint32_t endpoint);
bool sim_requests_on(const struct sim *, uint32_t worker, uint32_t endpoint);
void sim_probe(struct sim *);
