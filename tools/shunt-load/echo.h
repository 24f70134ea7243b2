// SPDX-License-Identifier: Apache-2.0
// The echo backend: answers every request, gRPC or plain. shunt-load's own requests say how much
// they want and get bytes that follow from their ids; anybody else's body comes back as it is, and
// who sends none gets a body of a fixed size. It can be told to do wrong, so that those who check
// can be checked.
// Knows no device and no clock: it is given TCP and the time.
// Thread: the polling thread.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct echo;
struct pool;
struct tcp_stack;
struct twheel;

enum echo_fault {
	ECHO_FAULT_NONE,
	ECHO_FAULT_ALTER, // one byte of the answer is another
	ECHO_FAULT_CUT, // the last byte is missing
	ECHO_FAULT_SWAP, // the answer to the request before
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
	const struct ip_addr *addresses; // where it listens
	uint32_t n_addresses;
	uint16_t port;
	uint32_t max_conns;
	uint32_t max_streams; // advertised, of each connection
	uint32_t answer_size; // for who neither asks for a size nor sends a body
	enum echo_fault fault;
	uint32_t fault_every; // so many requests; 0 = never
	uint64_t seed;
};

struct echo_result {
	uint64_t requests, answered, aborted;
	uint64_t altered; // requests of shunt-load with other bytes than they should have
	uint64_t doubled; // requests that came twice
	uint64_t faults; // answers spoiled on purpose
	uint64_t no_memory; // requests refused
	uint64_t accepted, refused; // connections
	uint32_t open;
};

// Listens at once. NULL = out of memory, or a port is taken twice.
struct echo *echo_new(const struct echo_conf *);
// Before the stack it uses.
void echo_free(struct echo *);
// Requests of this client (client_tag()) may not come twice, from now on.
void echo_watch(struct echo *, uint32_t tag);
// Between turns. GOAWAY and FIN to all, so that clients know.
void echo_close(struct echo *);
// No more answers are spoiled from now on.
void echo_heal(struct echo *);
// Before the turn's input.
void echo_begin_turn(struct echo *, uint64_t now_ns);
// After it. True = there was something to do.
bool echo_end_turn(struct echo *);
const struct echo_result *echo_result(const struct echo *);
