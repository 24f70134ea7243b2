// SPDX-License-Identifier: Apache-2.0
// A server of HTTP/1.1 that answers shunt-load's requests as its echo backend does in HTTP/2, by
// dataplane/h1; and that does each thing wrong which a server can, on request.
// Thread: one.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

struct http1_peer;
struct pool;
struct tcp_stack;
struct tlshs_context;
struct twheel;

enum peer_fault {
	PEER_FAULT_NONE,
	PEER_FAULT_ALTER, // one byte of the body is wrong
	PEER_FAULT_SHORT, // a body that is one byte too short, and well framed
	PEER_FAULT_CUT, // FIN in the middle of the body
	PEER_FAULT_SWAP, // the answer to the request before
	PEER_FAULT_STATUS, // 503
	PEER_FAULT_SILENT, // no answer
	PEER_FAULT_RESET, // RST, and no answer
	PEER_FAULT_LEAVE, // the request is taken; then FIN, and no answer
	PEER_FAULT_UNFRAMED, // no length, and FIN behind the body
	PEER_FAULT_TWICE, // two answers
	PEER_FAULT_LATE, // something more a millisecond after the answer
	PEER_FAULT_CLOSE, // `connection: close`, and FIN: no error
	PEER_FAULT_EARLY, // an answer to a head, before its body
	// FIN behind a whole answer, that did not say so: no error, and whoever had sent the next
	// request meanwhile sends it again.
	PEER_FAULT_HANG_UP,
	PEER_N_FAULTS,
};

struct http1_peer_conf {
	struct tcp_stack *tcp; // these three borrowed
	struct twheel *wheel;
	struct pool *chunks;
	const struct ip_addr *address; // copied
	uint16_t port;
	uint32_t max_conns;
	bool chunked; // answers have no content-length
	enum peer_fault fault;
	uint32_t fault_every; // requests
};

struct http1_peer_result {
	uint64_t requests; // that were taken whole
	uint64_t altered; // of those: with wrong bytes
	uint64_t doubled; // of those: that had come before
	uint64_t faults;
};

struct http1_peer *http1_peer_new(const struct http1_peer_conf *);
void http1_peer_free(struct http1_peer *);
const struct http1_peer_result *http1_peer_result(const struct http1_peer *);
