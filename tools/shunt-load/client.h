// SPDX-License-Identifier: Apache-2.0
// The client: opens connections, sends what the plan says when it says, checks every answer, and
// counts. Closed loop: each connection keeps so many streams busy. Open loop: requests have planned
// times, and latency counts from those, sent late or not: a slow server can't hide by slowing us.
// Knows no device and no clock: it is given TCP and the time.
// Thread: the polling thread.
#pragma once

#include "lb/base/ip.h"
#include "tools/shunt-load/histogram.h"
#include "tools/shunt-load/plan.h"

#include <stdbool.h>
#include <stdint.h>

struct client;
struct pool;
struct tcp_stack;
struct twheel;

// How a request ended: each in exactly one way.
enum outcome {
	OUTCOME_OK,
	OUTCOME_LOST, // its connection went away, or it was never sent though its time had come
	OUTCOME_TIMED_OUT, // no answer within the timeout
	OUTCOME_ALTERED, // the answer has other bytes than it should, or breaks HTTP/2's rules
	OUTCOME_DOUBLED, // the answer is another request's
	OUTCOME_STATUS, // an HTTP status or gRPC status other than 200 and 0
	OUTCOME_RESET, // RST_STREAM
	OUTCOME_REFUSED, // not processed, again and again
	OUTCOME_CUT, // in flight when the run was interrupted: no failure
	N_OUTCOMES,
};
const char *outcome_name(enum outcome);

struct client_conf {
	struct tcp_stack *tcp; // these three borrowed
	struct twheel *wheel;
	struct pool *chunks;
	const struct plan *plan; // borrowed
	const struct ip_addr *sources; // copied; used in turn
	uint32_t n_sources;
	struct ip_port to;
	uint32_t n_conns; // that carry requests
	uint32_t n_streams; // of each, at one time
	uint32_t n_idle; // connections that are only held
	uint32_t per_conn; // requests, then it is closed and another one opened; 0 = for ever
	uint64_t n_requests; // 0 = until duration
	uint64_t duration_ns; // 0 = until n_requests
	uint64_t warm_up_ns; // checked, but in no figure
	bool probe; // begin when a request was answered well
	uint64_t hold_ns; // that all connections stay open for when the last answer is there
	uint64_t timeout_ns; // of a connection attempt, a request, and the wait for all of them
	double rate; // requests a second, open loop; 0 = closed loop
	uint64_t seed;
};

struct client_result {
	uint64_t ended[N_OUTCOMES];
	uint64_t sent; // requests, each once
	uint64_t resent; // of them again, since they were surely not processed
	uint64_t measured; // answers that the figures are made of
	uint64_t window_ns; // in which they came
	uint64_t content_in, content_out; // bytes of bodies
	uint64_t opened, connect_failed, conns_lost, goaways;
	uint32_t idle_held, idle_lost; // connections at the end, and all while they were held
	uint16_t odd_http; // the first such status; 0 = none
	int odd_grpc; // -1 = none
	const char *why; // the last connection that failed or was lost; static, NULL = none did
	bool gave_up; // no connection came up in time, or no probe was answered well
	struct histogram latency, connect; // ns
};

enum client_phase {
	CLIENT_OPENING, // until all connections are there
	CLIENT_PROBING, // until a request is answered well; none of these is counted
	CLIENT_WARMING, // up to warm_up_ns
	CLIENT_MEASURED,
	CLIENT_ENDING, // nothing more is sent; answers are waited for
	CLIENT_HOLDING, // they are; connections stay for hold_ns
	CLIENT_CLOSING, // all answers are there, or never will be
	CLIENT_DONE,
};

// NULL = out of memory.
struct client *client_new(const struct client_conf *);
// Before the stack it uses.
void client_free(struct client *);
// Before the turn's input.
void client_begin_turn(struct client *, uint64_t now_ns);
// After it: ends, begins and sends what there is. True = there was something to do.
bool client_end_turn(struct client *);
// When it next has something to do by itself, if nothing arrives; now_ns of the turn = at once.
uint64_t client_due_ns(const struct client *);
// Between turns. Ends it early; answers still to come are waited for no longer.
void client_stop(struct client *);
// It can't even begin.
void client_give_up(struct client *);
enum client_phase client_phase(const struct client *);
const struct client_result *client_result(const struct client *);
// No request ended but well, and none is missing.
bool client_result_is_good(const struct client_result *);
// What the ids of this client's requests have in common; never 0.
uint32_t client_tag(const struct client *);
