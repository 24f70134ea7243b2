// SPDX-License-Identifier: Apache-2.0
// One session of a client: what of it is kept between handshakes, as bytes, and how the TLS library
// gets it back. Of 1.2 it is there when the handshake is over. Of 1.3 it comes with a ticket among
// the records, which workers read: then all that it takes are the secret that the handshake left
// for that and the ticket's nonce (RFC 8446 4.6.1), so that no object of the library has to wait.
// Thread: any but workers; a value belongs to one at a time.
#pragma once

#include "lb/base/list.h"
#include "tlshs/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tlshs_context;
struct tlshs_handshake;
struct tlshs_promise;

// With whom a session is, and what it is good for.
struct tlshs_origin {
	struct tlshs_context *context;
	uint64_t peer; // a hash of the server's address and port
	int64_t until_s; // wall clock: when what the server was judged by is over
	uint8_t name_len;
	char name[TLSHS_MAX_NAME]; // that was asked for
};

struct tlshs_session {
	struct list_link same, age; // of the store
	struct tlshs_origin origin; // its context is borrowed: it drops its sessions before it ends
	int64_t until_s; // not beyond the origin's
	size_t peer_len, der_len;
	uint8_t bytes[]; // who the server is (struct tlshs_peer, as much as there is); SSL_SESSION
};

void tlshs_session_free(struct tlshs_session *); // NULL is fine; overwrites it

// A client that is about to begin: offers the server what the store has.
void tlshs_session_offer(struct tlshs_handshake *);
// A client that has succeeded: a session of 1.2 goes to the store, of 1.3 there is a promise now.
void tlshs_session_keep(struct tlshs_handshake *);
// One that has failed, or is given up: if it offered a session, none is for a while.
void tlshs_session_failed(const struct tlshs_handshake *);

// What a handshake of 1.3 leaves until the server's tickets come: a reference to its context is
// within.
void tlshs_promise_free(struct tlshs_promise *); // NULL is fine; overwrites it
// A session for the store, by the body of a NewSessionTicket. NULL = it is of no use, or no memory.
struct tlshs_session *tlshs_promise_redeem(
	const struct tlshs_promise *, const uint8_t *ticket, size_t len, int64_t now_s);

// sessions.c: the store. What is put there is its own, and pushes others out.
void tlshs_sessions_put(struct tlshs_session *);
// The newest one that is good for this, the caller's from then on. NULL = there is none.
struct tlshs_session *tlshs_sessions_take(const struct tlshs_origin *, int64_t now_s);
// Ends all that take() could find; for a while it finds none.
void tlshs_sessions_forget(const struct tlshs_origin *, int64_t now_s);
void tlshs_sessions_drop(const struct tlshs_context *); // all of a context that ends
void tlshs_sessions_count(unsigned counter); // enum tlshs_session_counter
