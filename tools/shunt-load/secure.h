// SPDX-License-Identifier: Apache-2.0
// The TLS part of a connection (docs/load.md): a handshake in place, then records. Between TCP and
// the protocol above, which writes to `plain`.
// Thread: the polling thread.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/tls/tls.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_conn;
struct tlshs_context;
struct tlshs_handshake;

// What all connections of a role have in common. All zero = plain text.
struct secure_conf {
	struct tlshs_context *context; // borrowed; NULL = plain text
	struct str alpn; // that it must agree upon; static
	struct pool *chunks; // borrowed
	struct tls_context *records; // owned
};

struct secure {
	const struct secure_conf *conf;
	struct tlshs_handshake *handshake; // owned; NULL = not begun, or over
	struct tls_conn *tls; // owned; NULL = there are no keys
	struct buf plain; // output that is to be sealed
};

// Once its other fields are set: makes `records`. now_ns: the turn's time, borrowed. False = out of
// memory.
[[nodiscard]] bool secure_conf_init(
	struct secure_conf *, uint32_t max_conns, const uint64_t *now_ns);
void secure_conf_fini(struct secure_conf *);

// TCP is connected; the client's first bytes are queued. False = out of memory.
[[nodiscard]] bool secure_begin(struct secure *, const struct secure_conf *, struct tcp_conn *);
// Gives back all memory; twice is fine.
void secure_end(struct secure *);

enum secure_state { SECURE_SHAKING, SECURE_READY, SECURE_BROKEN };

// Input during the handshake, which takes all of it. READY = there are keys: begin the session,
// then secure_feed_rest(). BROKEN: *ret_why says why, static.
enum secure_state secure_shake(struct secure *, struct tcp_conn *, const uint8_t *, size_t len,
	const struct tls_events *, void *user, const char **ret_why);
// What came behind the handshake. False = it was not taken.
[[nodiscard]] bool secure_feed_rest(struct secure *);
// Moves what is in `plain` to TCP, as far as there is room. True = something moved.
bool secure_seal(struct secure *, struct tcp_conn *);
// So much may be written to `plain`, to fit into TCP's room.
size_t secure_plain_room(const struct secure *, const struct tcp_conn *);
