// SPDX-License-Identifier: Apache-2.0
// Clients and backends by hand: the other ends of the worker's TCP connections, as far as they have
// to be there for its bytes to flow. What they say is the fuzzer's.
// Thread: one.
#pragma once

#include "tests/fuzz/path/worker.h"

#include <stdbool.h>
#include <stdint.h>

#define PEER_CLIENTS 4
#define PEER_BACKENDS 8 // connections of backends
#define PEERS (PEER_CLIENTS + PEER_BACKENDS)
#define PEER_PORT_BACKENDS 50051

enum peer_state {
	PEER_NONE,
	PEER_OPENING, // a client's SYN is out
	PEER_OPEN,
	PEER_GONE, // answers with RST
	PEER_SILENT, // answers nothing
};

struct peer {
	enum peer_state state;
	struct ip_addr address, other; // its own and the worker's
	uint16_t port, other_port;
	uint32_t seq, ack; // next to send, next expected
	uint16_t window;
	bool holds_acks;
	// HTTP/2 of what it got, as far as the streams' numbers go.
	uint32_t skip; // bytes of a preface or a payload
	uint8_t head[9];
	uint32_t n_head;
	uint32_t last_stream; // of a HEADERS
	uint32_t next_stream; // of a client's next request
};

struct peers {
	struct path_worker *worker;
	struct peer list[PEERS]; // clients first
	uint32_t listening; // backends by bit: 10.0.2.1 + i
	bool answers_arp;
	uint16_t next_port;
};

void peers_init(struct peers *, struct path_worker *);
// Anew, to the frontend, from one of few addresses.
void peer_connect(struct peers *, uint32_t client, uint32_t frontend, uint32_t source);
// In segments; nothing unless it is open.
void peer_say(struct peers *, struct peer *, const uint8_t *, size_t len);
// One segment with these flags; seq and ack are offsets from what is right.
void peer_segment(struct peers *, struct peer *, uint8_t flags, uint32_t seq, uint32_t ack,
	const uint8_t *, size_t len);
void peer_finish(struct peers *, struct peer *); // FIN
void peer_reset(struct peers *, struct peer *); // RST; it is gone
