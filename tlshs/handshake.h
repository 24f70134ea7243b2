// SPDX-License-Identifier: Apache-2.0
// One handshake of TLS 1.2 or 1.3, of either role: bytes in, bytes out, until there is a result, or
// an outcome that says why there is none. It knows no socket, thread or clock.
// Thread: one at a time, and none that must not allocate.
#pragma once

#include "tlshs/context.h"
#include "tlshs/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TLSHS_MAX_HELLO 16384 // bytes of a ClientHello
#define TLSHS_MAX_FLIGHT (128 * 1024) // bytes of the peer that one may be given, until it ends

struct tlshs_handshake;
struct tlshs_keylog;
struct tlshs_promise;

// Takes a reference of its own. server_name: a client's, what it asks for; "" = nothing, as for an
// address. peer: a hash of the address and port of a client's server, with which it resumes a
// session, and from which it keeps others, if its context allows that; 0 = none. NULL = out of
// memory. A client has bytes for the peer at once.
struct tlshs_handshake *tlshs_handshake_new(
	struct tlshs_context *, struct str server_name, uint64_t peer);
// Its secrets are told there from now on, for as long as somebody asks for them; borrowed.
void tlshs_handshake_log_keys(struct tlshs_handshake *, struct tlshs_keylog *);
void tlshs_handshake_free(struct tlshs_handshake *); // NULL is fine; overwrites secrets

// Bytes of the peer, at the cost of their copy; what comes behind the handshake waits as its rest.
// More than a hello may be ends it, while one is due.
void tlshs_handshake_gather(struct tlshs_handshake *, const uint8_t *, size_t len);
// Goes on with what was gathered. No effect on one that has ended.
void tlshs_handshake_run(struct tlshs_handshake *);
// Both. True = it has ended: there is an outcome.
bool tlshs_handshake_feed(struct tlshs_handshake *, const uint8_t *, size_t len);
// Moves up to `room` bytes for the peer; 0 = there are none. After an error these end with the
// alert, if the peer is to get one.
size_t tlshs_handshake_drain(struct tlshs_handshake *, uint8_t *to, size_t room);
// Ends it for a reason outside: timeout, lost. No effect on one that has ended.
void tlshs_handshake_stop(struct tlshs_handshake *, enum tlshs_outcome);

bool tlshs_handshake_ended(const struct tlshs_handshake *);
// Of one that has ended.
enum tlshs_outcome tlshs_handshake_outcome(const struct tlshs_handshake *);
// Says more than the outcome's name, for operators. "" with TLSHS_ok. Borrowed.
const char *tlshs_handshake_why(const struct tlshs_handshake *);
// With TLSHS_ok, once: the caller wipes it. Without a peer's certificate all else of it stays as it
// was in `ret`.
void tlshs_handshake_take(struct tlshs_handshake *, struct tlshs_result *);
// Of a client that has ended with TLSHS_ok, once: what makes a session of the server's tickets, the
// caller's (session.h). NULL = nothing does.
struct tlshs_promise *tlshs_handshake_take_promise(struct tlshs_handshake *);
// How many bytes of the peer lie behind the handshake, and moves up to `room` of them: the first to
// give to tls_conn_feed().
size_t tlshs_handshake_n_rest(const struct tlshs_handshake *);
size_t tlshs_handshake_drain_rest(struct tlshs_handshake *, uint8_t *to, size_t room);
