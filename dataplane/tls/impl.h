// SPDX-License-Identifier: Apache-2.0
// What the files of this folder share.
// Thread: the worker that owns the context.
#pragma once

#include "dataplane/tls/aead.h"
#include "dataplane/tls/counters.h"
#include "dataplane/tls/record.h"
#include "dataplane/tls/tls.h"
#include "lb/base/gcra.h"

#define TLS_EXPLICIT_NONCE 8 // RFC 5288 3
#define TLS_MESSAGE_HEADER 4 // of a handshake message: type, length

// RFC 8446 5.1
enum tls_type {
	TLS_CHANGE_CIPHER_SPEC = 20,
	TLS_ALERT = 21,
	TLS_HANDSHAKE = 22,
	TLS_DATA = 23,
};

// Why we fail a connection, in the order of their counters; tls_conn_fail() knows the alerts.
enum tls_cause {
	TLS_BAD_TAG,
	TLS_OVERSIZE_RECORD,
	TLS_UNEXPECTED_RECORD,
	TLS_UNEXPECTED_HANDSHAKE,
	TLS_WRONG_VERSION,
	TLS_BAD_LENGTH,
	TLS_BAD_VALUE,
	TLS_RENEGOTIATION,
	TLS_EMPTY_FLOOD,
	TLS_MESSAGE_FLOOD,
	TLS_WARNING_FLOOD,
	TLS_LATE_RECORD,
	TLS_SEQUENCE_END,
	TLS_N_CAUSES,
};

struct tls_context {
	struct tls_conf conf;
	struct pool conns;
	struct pool *chunks; // borrowed
	struct aead *aead;
	const struct tls_direction **keys; // whose key is expanded at this place; NULL = nobody's
	bool feeding; // the scratch is in use
	uint64_t counters[TLS_N_COUNTERS];
	// One record that was opened, and what a tag that was wrong left there.
	uint8_t scratch[TLS_MAX_PLAIN + 64] __attribute__((aligned(64)));
};

// TLS_ANSWER_KEYS: the peer, whose keys are new, asks for ours.
enum tls_update { TLS_KEEP_KEYS, TLS_UPDATE_KEYS, TLS_UPDATE_BOTH_KEYS, TLS_ANSWER_KEYS };

struct tls_conn {
	struct tls_context *ctx;
	const struct tls_events *events;
	void *user;
	struct tls_direction read, write;
	// Of the record that has begun: its header, and its body so far.
	struct buf part;
	uint64_t part_since_ns;
	uint64_t sealed_ns; // when a record of data was sealed last
	struct gcra empties, messages, warnings; // budgets of the peer
	uint32_t run; // bytes sealed without a pause until sealed_ns, up to what makes records long
	uint32_t place; // of the keys, in the context's
	uint32_t skip; // bytes of a handshake message that are still to be dropped
	uint16_t taken; // bytes that on_plain took of the record at hand
	uint16_t version; // enum tls_version
	uint16_t max_plain; // bytes of plaintext in a record (TLS-250)
	uint8_t head[TLS_HEADER];
	uint8_t n_head;
	uint8_t message[TLS_MESSAGE_HEADER + 1]; // a handshake message that is cut
	uint8_t n_message;
	uint8_t aead; // enum tls_aead
	uint8_t hash; // enum tls_hash
	uint8_t role; // enum tls_role
	uint8_t alert; // that is to be sent, or that the peer sent
	uint8_t update; // enum tls_update: what is to be sent
	bool waits; // the record at hand is whole, and on_plain does not take it
	bool starves; // there was no chunk for a part of the record at hand
	bool ended; // close_notify came
	bool truncated; // FIN came before that, and is counted
	bool failed;
	bool by_peer; // failed by a fatal alert of the peer
	bool shutting; // close_notify follows all plaintext
	bool shut; // the last alert is written
};

// In libc's terms: no time passes without a clock.
static inline uint64_t tls_now(const struct tls_context *ctx)
{
	return ctx->conf.now_ns ? *ctx->conf.now_ns : 0;
}

static inline void tls_count(struct tls_conn *c, enum tls_counter counter)
{
	counter_add(&c->ctx->counters[counter], 1);
}

// 1.2 only: ChaCha20-Poly1305 has none (RFC 7905 2).
static inline size_t tls_explicit_nonce(const struct tls_conn *c)
{
	bool has = c->version == TLS_1_2 && c->aead != TLS_CHACHA20_POLY1305;
	return has ? TLS_EXPLICIT_NONCE : 0;
}

// What a record adds to its plaintext.
static inline size_t tls_overhead(const struct tls_conn *c)
{
	size_t inner_type = c->version == TLS_1_3;
	return TLS_HEADER + tls_explicit_nonce(c) + inner_type + AEAD_TAG;
}

// conn.c. Idempotent: the first cause counts.
void tls_conn_fail(struct tls_conn *, enum tls_cause);

// keys.c: the place of a direction's expanded key. Valid until the next call.
uint32_t tls_keys_at(struct tls_conn *, const struct tls_direction *);
// Forgets the expanded key.
void tls_keys_drop(struct tls_conn *, const struct tls_direction *);
// Key and IV of the next traffic secret (RFC 8446 7.2); the sequence number begins anew.
void tls_keys_update(struct tls_conn *, struct tls_direction *);
// RFC 8446 5.3; RFC 5288 3 with AES-GCM under 1.2, where explicit_nonce is 8 bytes.
void tls_keys_nonce(const struct tls_conn *, const struct tls_direction *,
	const uint8_t *explicit_nonce, uint8_t *ret);
// What the tag covers besides (RFC 8446 5.2, RFC 5246 6.2.3.3). head is a record's header; len is
// the length of its plaintext, which 1.3 doesn't ask for.
void tls_keys_aad(const struct tls_conn *, const struct tls_direction *, const uint8_t *head,
	size_t len, struct aead_record *);

// messages.c: plaintext of a handshake record, and of an alert.
void tls_messages_feed(struct tls_conn *, const uint8_t *, size_t len);
void tls_messages_alert(struct tls_conn *, const uint8_t *, size_t len);
