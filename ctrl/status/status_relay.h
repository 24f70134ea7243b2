// SPDX-License-Identifier: Apache-2.0
// Where TLS of the status port ends: libgrpc takes over connections in the clear alone, and would
// otherwise have to listen, accept and count itself. It hears of a client once the handshake is
// done, by one end of a socket pair, and bytes are carried between that and the client from then
// on. A handshake has 10 s. No turn of the loop has more than one handshake's work in it, nor more
// than a piece of 16 KiB of each client and for it; who does not read is not read for. A client
// that closes its side has ended it whole, as without TLS.
// Thread: ctrl.
#pragma once

#include <stdint.h>

struct event_base;
struct socket_counts;
struct status_relay;
struct tlshs_context;
struct twheel;

struct status_relay_conf { // all borrowed, outlives it
	struct event_base *base;
	struct twheel *wheel;
	uint64_t (*clock_ns)(void); // monotonic; for the end, when no loop runs
	struct socket_counts *counts;
	// What the next handshake goes by, borrowed for the moment; NULL = there is none yet:
	// whoever comes is hung up on.
	struct tlshs_context *(*context)(void *ctx);
	// A client who is let in, as it was added: its bytes in the clear. Takes fd alone.
	void (*connect)(void *ctx, int client, int fd);
	void *ctx;
};

// NULL = out of memory.
struct status_relay *status_relay_new(const struct status_relay_conf *);
// A client that comes. Takes the descriptor, which is shut down when it closes: others who have one
// of the same connection see the end.
void status_relay_add(struct status_relay *, int fd);
// For who ends the server while the loop does not run: as poll() of this one descriptor, but that
// bytes are carried meanwhile. Nobody is let in any more.
void status_relay_wait(struct status_relay *, int fd, int timeout_ms);
// Ends all connections. What the server has said reaches the clients before, if they read it within
// a fifth of a second. NULL is fine.
void status_relay_free(struct status_relay *);
