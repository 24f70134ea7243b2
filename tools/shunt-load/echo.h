// SPDX-License-Identifier: Apache-2.0
// The echo backend: answers every request, gRPC or plain. shunt-load's own requests name an answer
// size and get bytes derived from their ids. Any other request gets its own body back, or without
// one a body of a fixed size. It can make errors on request, to test the checks. It knows no device
// and no clock: TCP and time are passed in.
// Thread: the polling thread.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct echo;
struct pool;
struct tcp_stack;
struct tlshs_context;
struct twheel;

enum echo_fault {
	ECHO_FAULT_NONE,
	ECHO_FAULT_ALTER, // one byte of the answer is wrong
	ECHO_FAULT_CUT, // the last byte is missing
	ECHO_FAULT_SWAP, // the answer to the previous request
	ECHO_FAULT_STATUS, // 503, or gRPC's UNAVAILABLE
	ECHO_FAULT_RESET, // RST_STREAM
	ECHO_FAULT_SILENT, // no answer
	ECHO_N_FAULTS,
};
const char *echo_fault_name(enum echo_fault);

struct echo_conf {
	struct tcp_stack *tcp; // these three borrowed
	struct twheel *wheel;
	struct pool *chunks;
	struct tlshs_context *tls; // borrowed; NULL = plain text
	const struct ip_addr *addresses; // where it listens
	uint32_t n_addresses;
	uint16_t port;
	uint32_t max_conns;
	uint32_t max_streams; // advertised per connection
	uint32_t answer_size; // for requests without a size and without a body
	enum echo_fault fault;
	uint32_t fault_every; // one error per this many requests; 0 = none
	uint64_t seed;
};

struct echo_result {
	uint64_t requests, answered, aborted;
	uint64_t altered; // shunt-load's requests with wrong bytes
	uint64_t doubled; // requests received twice
	uint64_t faults; // deliberately wrong answers
	uint64_t no_memory; // requests refused
	uint64_t accepted, refused; // connections
	uint32_t open;
};

// Listens at once. Returns NULL if out of memory, or if a port is used twice.
struct echo *echo_new(const struct echo_conf *);
// Call before freeing the stack it uses.
void echo_free(struct echo *);
// From now on, counts requests of this client (client_tag()) that come twice.
void echo_watch(struct echo *, uint32_t tag);
// Call between turns. Sends GOAWAY and FIN to all clients.
void echo_close(struct echo *);
// Stops making errors.
void echo_heal(struct echo *);
// Call before the turn's input.
void echo_begin_turn(struct echo *, uint64_t now_ns);
// Call after the turn's input. Returns true if there was work.
bool echo_end_turn(struct echo *);
const struct echo_result *echo_result(const struct echo *);
