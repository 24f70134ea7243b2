// SPDX-License-Identifier: Apache-2.0
// TLS records (RFC 8446 5, RFC 5246 6) of connections whose handshake is over: received bytes are
// fed and come out as plaintext, plaintext is sealed into a queue. Both roles, 1.2 and 1.3, AEADs
// alone. It knows no socket, TCP or HTTP, and no clock but the one it is lent; how a record fails
// is told in docs/tls.md.
// Thread: the worker that owns the context. Callbacks run inside tls_conn_feed().
// Memory: only from the context's pools; nothing calls malloc after tls_context_new(). Secrets are
// overwritten when their connection is freed, and when a KeyUpdate replaces them.
#pragma once

#include "dataplane/buf/buf.h"
#include "lb/base/counter.h"
#include "lb/base/pool.h"
#include "tlshs/secrets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct aead_ops; // aead.h
struct tls_context; // a worker's pool, scratch, expanded keys, counters
struct tls_conn;

// Of plaintext in a record (RFC 8446 5.1), and what a record adds to it at most.
#define TLS_MAX_PLAIN 16384
#define TLS_MAX_OVERHEAD 29 // header, explicit nonce, tag

enum tls_role { TLS_SERVER, TLS_CLIENT };

// RFC 8446 6, RFC 5246 7.2: those that we send, and some that we know when we receive them.
enum tls_alert {
	TLS_CLOSE_NOTIFY = 0,
	TLS_UNEXPECTED_MESSAGE = 10,
	TLS_BAD_RECORD_MAC = 20,
	TLS_RECORD_OVERFLOW = 22,
	TLS_ILLEGAL_PARAMETER = 47,
	TLS_DECODE_ERROR = 50,
	TLS_PROTOCOL_VERSION = 70,
	TLS_INTERNAL_ERROR = 80,
	TLS_USER_CANCELED = 90,
	TLS_NO_RENEGOTIATION = 100,
};

// As the RFCs write it; "unknown" of others. Static.
const char *tls_alert_name(uint8_t);

struct tls_conf {
	uint32_t max_conns;
	// The time of the turn, for budgets, deadlines and the size of records. Borrowed, outlives
	// the context. NULL = time does not advance.
	const uint64_t *now_ns;
	const struct aead_ops *aead; // NULL = the best that this CPU runs
	// From the first byte of a record to its last. 0 = 20 s.
	uint64_t record_timeout_ns;
	// Records sent under one key of AES-GCM. 0 = 2^23, well below 2^24.5 (RFC 8446 5.5).
	uint64_t max_records;
	uint32_t n_keys; // expanded keys kept, a power of two from 2; 0 = 512, of 1 KiB each
};

// Callbacks to the owner of a connection, all inside tls_conn_feed(). They may call anything on any
// connection but tls_conn_free() on this one; tls_conn_feed() takes nothing then.
struct tls_events {
	// Verified plaintext, in order, borrowed until return; len > 0. Returns how many bytes it
	// took. The rest comes again, not before the next tls_conn_feed().
	size_t (*on_plain)(struct tls_conn *, void *user, const uint8_t *, size_t len);
	// The peer's close_notify, after all its plaintext was taken: what comes behind it is
	// dropped. With 1.3 we may go on sending; with 1.2 the peer expects tls_conn_shutdown().
	void (*on_eof)(struct tls_conn *, void *user);
	// Client, 1.3: the body of a NewSessionTicket (RFC 8446 4.6.1) that lay in one record.
	// NULL = tickets are dropped.
	void (*on_ticket)(struct tls_conn *, void *user, const uint8_t *, size_t len);
	// A record of so many bytes, padding included, was opened, and what was in it delivered; as
	// often as it is opened. Without data: new keys perhaps. NULL = nobody counts them.
	void (*on_opened)(struct tls_conn *, void *user, bool has_data, size_t len);
};

// Returns NULL if out of memory, or if conf->aead does not run here. chunks is borrowed and
// outlives the context.
struct tls_context *tls_context_new(const struct tls_conf *, struct pool *chunks);
void tls_context_free(struct tls_context *);
// Of the AEADs that run: "ipsec-mb AVX512", "openssl", … Static.
const char *tls_context_aead_name(const struct tls_context *);

// Makes a connection from what its handshake left; the caller overwrites *secrets. Bytes that came
// behind the handshake are the first to feed. NULL = no connection left.
struct tls_conn *tls_conn_new(struct tls_context *, enum tls_role, const struct tls_secrets *,
	const struct tls_events *, void *user);
// Overwrites all secrets and gives back all memory.
void tls_conn_free(struct tls_conn *);

// Processes bytes from the peer. Returns the number consumed: all, or fewer if on_plain did not
// take all, or if there was no chunk for a part of a record: then the bytes from the last record
// (or from its last part) on are to be fed again, unchanged, as TCP does when it is resumed, or
// when the peer repeats what TCP had no chunk for either. Nothing is lost, nothing of it is
// delivered twice, and what is not consumed keeps TCP's window shut. A part of a record waits in
// chunks, 16 KiB and 256 bytes at most. After close_notify and after an error everything is
// consumed and dropped.
// An error makes tls_conn_failed() true: call tls_conn_seal(), which writes the alert, then close.
size_t tls_conn_feed(struct tls_conn *, const uint8_t *, size_t len);
// Bytes that are kept of a record that is not whole, or that on_plain did not take.
size_t tls_conn_unfinished(const struct tls_conn *);
// The last tls_conn_feed() had no chunk for a part of a record (counted): the owner resumes TCP at
// a later turn. The record's deadline goes on meanwhile, so that connections which hold parts do
// not wait for each other for ever.
bool tls_conn_wants_chunks(const struct tls_conn *);
// Both directions are over for an error: ours, which *ret_alert names, or, with *ret_by_peer, a
// fatal alert of the peer. Either may be NULL.
bool tls_conn_failed(const struct tls_conn *, uint8_t *ret_alert, bool *ret_by_peer);
// TCP's FIN came. True if close_notify had come before; if not it is counted, once, and whether the
// stream is whole only the protocol above can tell (RFC 8446 6.1).
bool tls_conn_ended(struct tls_conn *);

// By when the record that has begun must be whole; UINT64_MAX = none has begun, or it is whole and
// on_plain does not take it. The owner calls tls_conn_expire() then.
uint64_t tls_conn_deadline_ns(const struct tls_conn *);
// If the deadline is over, counts it and fails the connection with close_notify.
void tls_conn_expire(struct tls_conn *);

// Moves plaintext into records at the end of *out, of which at most `room` bytes are to be filled:
// small ones at the start of a stream and after idle time, 16 KiB in the long run. Alerts and
// KeyUpdates that wait are written whatever the room (100 bytes at most). Whole chunks are sealed
// where they lie and handed on. Returns true if plaintext waits for room or for memory. After
// tls_conn_failed() and behind our close_notify, plain stays as it is and nothing is written but
// what was queued.
bool tls_conn_seal(struct tls_conn *, struct buf *plain, struct buf *out, size_t room);
// Something waits for tls_conn_seal() besides plaintext: an alert, or an answer to a KeyUpdate.
bool tls_conn_wants_seal(const struct tls_conn *);
// So many bytes of plaintext fit into `room` bytes of output.
size_t tls_conn_plain_room(const struct tls_conn *, size_t room);
// We send no more: close_notify follows all plaintext that tls_conn_seal() is given. Receiving goes
// on.
void tls_conn_shutdown(struct tls_conn *);
// Our close_notify, or our fatal alert, is written: TCP's FIN may follow.
bool tls_conn_is_shut(const struct tls_conn *);
// New keys for what we send from the next record on (RFC 8446 4.6.3), and with ask_peer for what we
// receive, too. A peer who has just changed its own, and waits for an answer, is not asked. No
// effect with 1.2. By itself it happens after max_records.
void tls_conn_update_keys(struct tls_conn *, bool ask_peer);
// 1.2 knows no new keys: after max_records under AES-GCM the connection should be drained.
bool tls_conn_is_worn(const struct tls_conn *);

uint16_t tls_conn_version(const struct tls_conn *); // enum tls_version
struct counter_set tls_context_counters(const struct tls_context *);
void tls_context_list_pools(struct tls_context *, struct pool_list *);
