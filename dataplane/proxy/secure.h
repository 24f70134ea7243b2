// SPDX-License-Identifier: Apache-2.0
// The part of a connection that speaks TLS (docs/tls.md), between TCP and the protocol above: first
// a handshake, whose bytes a thread takes and gives (handshakes.h), then records. A connection in
// plain text has none of this.
//
// It ends in one of two ways: by proxy_secure_close(), after which close_notify follows all output,
// or broken, for a handshake that failed or a record that is wrong. Then the alert is sent, if the
// peer is to get one, and nothing else.
// Thread: the owning worker.
#pragma once

#include "dataplane/buf/buf.h"
#include "dataplane/proxy/handshakes.h"
#include "dataplane/tls/tls.h"
#include "lb/base/list.h"
#include "lb/base/twheel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct h2_conn;
struct ip_port;
struct proxy;
struct proxy_peer;
struct tcp_conn;

#define PROXY_HANDSHAKE_NS (10 * NS_PER_SECOND) // that a client has, from its connection's begin

struct proxy_secure_events {
	// As tls_events.on_plain.
	size_t (*on_plain)(void *user, const uint8_t *, size_t len);
	// Something came to pass outside of the calls below: the handshake has ended, a record is
	// late, or there may be room for input or output that waits. The owner feeds, pumps and
	// looks at all of it.
	void (*on_change)(void *user);
};

enum proxy_protocol { PROXY_ANY_PROTOCOL, PROXY_HTTP2, PROXY_HTTP1 };

#define PROXY_SHORT_NAME 64 // a host name is rarely longer

struct proxy_secure {
	struct proxy *proxy;
	const struct proxy_secure_events *events;
	void *user;
	struct tcp_conn *tcp; // borrowed; NULL = not begun
	struct tls_conn *tls; // NULL = there are no keys
	struct proxy_handshake *handshake; // NULL = not begun, or over
	struct list_link again; // in proxy.secures_again
	struct twheel_timer timer; // the handshake's deadline, then that of a record
	struct buf plain; // output that is to be sealed
	struct buf back; // what the handshake gave back of the input: the next to be fed
	uint64_t n_put; // bytes that TCP's queue was given in total
	uint64_t
		owed; // bytes of input that the handshake has; with keys: and that are to come back
	union {
		uint64_t source; // a hash of the peer's address, until there are keys
		uint64_t tickets; // then of TLS_CLIENT: where the server's go; 0 = nowhere
	};
	const char *server_name; // of TLS_CLIENT, to ask for; borrowed
	struct proxy_peer *peer; // of TLS_SERVER; owned; NULL = the client has shown no certificate
	uint32_t credential; // id in the snapshot
	uint8_t role; // enum tls_role
	uint8_t protocol; // enum proxy_protocol: which ALPN agreed upon
	bool fresh; // the handshake has succeeded, and the owner is yet to be told
	bool eof; // the peer's close_notify came
	bool fin; // its FIN came during the handshake, whose end is yet to come
	uint8_t n_tickets; // of TLS_CLIENT: that have gone there
	uint8_t asked_len; // of TLS_SERVER: of the name that the client asked for; 0 = none
	bool broken, by_peer; // by_peer: it was the peer that gave up
	// The name, or if broken why, for operators. Of a connection that waits it is most of the
	// memory: what is longer than most stands elsewhere.
	char *long_text; // owned; NULL = it stands below
	char short_text[PROXY_SHORT_NAME];
};

struct proxy_secure_conf {
	enum tls_role role;
	uint32_t credential; // id in the snapshot, not LB_PLAIN_TEXT
	const char *server_name; // borrowed; for TLS_CLIENT; "" = none
	uint64_t source; // a hash of the peer's address
	const struct proxy_secure_events *events;
	void *user;
};

// The source of a server: who has the same resumes its sessions.
uint64_t proxy_secure_source(const struct proxy *, const struct ip_port *);
// NULL = the pool is exhausted.
struct proxy_secure *proxy_secure_new(struct proxy *, const struct proxy_secure_conf *);
// With a handshake under way it counts as lost. What waits is dropped.
void proxy_secure_free(struct proxy_secure *);
// TCP is established. A client begins to speak; a server waits for the peer's first bytes before it
// troubles a thread.
void proxy_secure_begin(struct proxy_secure *, struct tcp_conn *);

// Input, as tcp_conn_ops.on_data: returns how much of it is taken. on_change() comes when more may
// be, unless it is on_plain() that does not take it.
size_t proxy_secure_feed(struct proxy_secure *, const uint8_t *, size_t len);
// The peer's FIN. True = there is more to say of it than that: the connection is broken already, or
// a handshake has yet to say what the last bytes meant, an alert perhaps; on_change() comes, and
// then it is broken or proxy_secure_is_cut().
[[nodiscard]] bool proxy_secure_fin(struct proxy_secure *);
// Such a FIN is to be heeded now: the handshake has succeeded, and all that came with it is fed.
static inline bool proxy_secure_is_cut(const struct proxy_secure *s)
{
	return s->fin && s->tls && !s->owed && !s->back.len;
}
// Feeds what the handshake gave back, which comes before what TCP has. False = some is left.
[[nodiscard]] bool proxy_secure_feed_back(struct proxy_secure *);
// on_change() comes in this turn or the next one.
void proxy_secure_again(struct proxy_secure *);
// Moves output of HTTP/2 into records and these into TCP's queue, as far as there is room. True =
// more waits for room or memory. h2 NULL = it is over: only what it left.
bool proxy_secure_pump(struct proxy_secure *, struct h2_conn *);
// No output follows what is there. True = all of it is with TCP: FIN may follow. Otherwise ask
// again when there is room. During a handshake what waits is dropped.
[[nodiscard]] bool proxy_secure_close(struct proxy_secure *);
// The owner gives up a handshake, or has done so with none begun.
void proxy_secure_time_out(struct proxy_secure *);

// The name that a client asked for; "" = none, or the connection is broken.
static inline struct str proxy_secure_asked(const struct proxy_secure *s)
{
	return (struct str){
		s->long_text ? s->long_text : s->short_text, s->broken ? 0 : s->asked_len};
}

// Why it is broken, for operators; borrowed, until it is freed. Only if it is.
static inline const char *proxy_secure_why(const struct proxy_secure *s)
{
	return s->long_text ? s->long_text : s->short_text;
}

static inline bool proxy_secure_is_shaking(const struct proxy_secure *s)
{
	return !s->tls && !s->broken;
}

// Threads have something to do or have answered, or somebody waits for a turn: call
// proxy_secure_turn() in each, and sleep little between them.
bool proxy_secure_is_busy(const struct proxy *);
// Takes the answers of the threads, and calls those who wait for a turn.
void proxy_secure_turn(struct proxy *);
extern const struct proxy_handshakes_events proxy_secure_handshake_events; // of its connections
