// SPDX-License-Identifier: Apache-2.0
// The client: opens connections, sends the plan's requests, checks every answer, and counts. Closed
// loop: each connection keeps a number of streams busy. Open loop: requests have scheduled times,
// and latency counts from those even if they are sent late: a slow server cannot hide by slowing
// the client. It knows no device and no clock: TCP and time are passed in.
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
struct tlshs_context;
struct twheel;

// The outcomes of a request: exactly one each.
enum outcome {
	OUTCOME_OK,
	OUTCOME_LOST, // its connection was lost, or it was not sent at its time
	OUTCOME_TIMED_OUT, // no answer within the timeout
	OUTCOME_ALTERED, // the answer has wrong bytes, or violates its protocol
	OUTCOME_DOUBLED, // the answer belongs to another request
	OUTCOME_STATUS, // an HTTP status or gRPC status other than 200 and 0
	OUTCOME_RESET, // RST_STREAM, of HTTP/2 alone
	OUTCOME_REFUSED, // not processed, repeatedly
	OUTCOME_CUT, // in flight when the run was interrupted: not a failure
	N_OUTCOMES,
};
const char *outcome_name(enum outcome);

struct client_conf {
	struct tcp_stack *tcp; // these three borrowed
	struct twheel *wheel;
	struct pool *chunks;
	struct tlshs_context *tls; // borrowed; NULL = plain text
	const struct plan *plan; // borrowed
	const struct ip_addr *sources; // copied; used in turn
	uint32_t n_sources;
	struct ip_port to;
	bool is_http1; // HTTP/1.1, with one stream and without gRPC; else HTTP/2
	uint32_t n_conns; // connections that send requests
	uint32_t n_streams; // streams per connection at one time
	uint32_t n_idle; // connections that are only kept open
	uint32_t per_conn; // requests per connection before it is replaced; 0 = no limit
	uint64_t n_requests; // 0 = until duration
	uint64_t duration_ns; // 0 = until n_requests
	uint64_t warm_up_ns; // checked, but not counted in figures
	bool probe; // start only after a probe succeeded
	uint64_t hold_ns; // how long all connections stay open after the last answer
	// for a connection attempt, for a request, and for all connections at the start
	uint64_t timeout_ns;
	double rate; // requests per second in open loop; 0 = closed loop
	uint64_t seed;
};

struct client_result {
	uint64_t ended[N_OUTCOMES];
	uint64_t sent; // requests, each once
	uint64_t resent; // requests sent again, since they were certainly not processed
	uint64_t measured; // answers in the figures
	uint64_t window_ns; // time in which they arrived
	uint64_t content_in, content_out; // bytes of bodies
	// goaways: those that the peer told to go, by GOAWAY or by connection: close.
	uint64_t opened, connect_failed, conns_lost, goaways;
	uint64_t unasked; // those on which bytes came while no request was open (HTTP/1.1)
	uint32_t idle_held, idle_lost; // connections at the end, and lost ones
	uint16_t odd_http; // the first HTTP status other than 200; 0 = none
	int odd_grpc; // -1 = none
	const char *why; // the reason of the last failed or lost connection; static; NULL = none
	bool gave_up; // no connection came up in time, or no probe succeeded
	struct histogram latency, connect; // ns
};

enum client_phase {
	CLIENT_OPENING, // until all connections are up
	CLIENT_PROBING, // until a probe succeeds; probes are not counted
	CLIENT_WARMING, // up to warm_up_ns
	CLIENT_MEASURED,
	CLIENT_ENDING, // sends nothing more; waits for answers
	CLIENT_HOLDING, // has all answers; connections stay for hold_ns
	CLIENT_CLOSING, // has all answers, or waits no longer
	CLIENT_DONE,
};

// Returns NULL if out of memory.
struct client *client_new(const struct client_conf *);
// Call before freeing the stack it uses.
void client_free(struct client *);
// Call before the turn's input.
void client_begin_turn(struct client *, uint64_t now_ns);
// Call after the turn's input: ends, starts and sends requests. Returns true if there was work.
bool client_end_turn(struct client *);
// When it next has work without input; the turn's now_ns = at once.
uint64_t client_due_ns(const struct client *);
// Call between turns. Ends the run early, without waiting for answers.
void client_stop(struct client *);
// True if it cannot even start.
void client_give_up(struct client *);
enum client_phase client_phase(const struct client *);
const struct client_result *client_result(const struct client *);
// True if all requests ended well, none is missing, and no answer came that nobody had asked for.
bool client_result_is_good(const struct client_result *);
// The common part of this client's request ids; never 0.
uint32_t client_tag(const struct client *);
