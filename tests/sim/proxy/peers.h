// SPDX-License-Identifier: Apache-2.0
// The two ends: clients that ask and check every byte of the answer, backends that answer as the
// path says. Both on the real h2/ and tcp/.
//
// Paths are /<route>/<kind>/<id>/<size>; /check/… are the proxy's own checks. Bodies are a pattern
// of id and offset.
// Thread: one.
#pragma once

#include "dataplane/h2/h2.h"
#include "tests/sim/proxy/tls_end.h"
#include "tests/sim/proxy/wire.h"

#include <stdbool.h>
#include <stdint.h>

enum kind {
	KIND_ECHO, // gRPC: headers, the request's body, trailers
	KIND_DOWNLOAD, // gRPC: `size` bytes whatever was asked
	KIND_TRAILERS_ONLY, // gRPC: status 5 in one HEADERS, `size` bytes larger
	KIND_PLAIN, // HTTP: 103 twice, 200, `size` bytes
	KIND_HEAD, // HTTP: HEAD
	KIND_EARLY, // gRPC: the whole answer at the request's HEADERS
	KIND_RESET, // RST_STREAM(size) at the request's HEADERS
	KIND_RESET_LATE, // headers, a thousand bytes, RST_STREAM(size)
	KIND_REFUSE, // RST_STREAM(REFUSED_STREAM), always
	KIND_REFUSE_ONCE, // … the first time, then as ECHO
	KIND_BAD_LENGTH, // a response that does not fit its content-length
	KIND_HANG, // nothing
	KIND_STALL, // gRPC: headers, `size` bytes of messages of 15 bytes each, then nothing
	KIND_STALL_PLAIN, // HTTP: headers, `size` bytes, then nothing
	N_KINDS,
};

// A request may ask for its first attempts to fail: the field x-fail is "<attempts> <how> <code>",
// and after it perhaps a grpc-retry-pushback-ms, of attempt n alone with "@n". How: `status`
// (Trailers-Only with this gRPC status), `http` (HEADERS alone with this HTTP status), `reset`
// (RST_STREAM with this code), `late` (like status, but after the request's last byte), `lose` (the
// connection breaks), `hint` (the same after an informational response), `page`, `cut` and `stall`
// (a body with this HTTP status: whole, reset after it, or nothing after it).

#define ASK_TO_WAIT "x-shunt-wait-for-ready"

// What backends saw of one request, in all attempts that came to them.
#define MAX_SEEN 12
struct seen {
	uint32_t n; // refused ones too
	uint32_t n_delivered; // that an application saw
	uint32_t n_excused; // deliveries answered with status 14, or on a lost connection
	uint32_t n_failed; // as x-fail asked
	struct {
		uint64_t at_ns;
		uint8_t backend; // last byte of its address
		uint32_t conn; // of the backend's, counted from 1
		char timeout[12], previous[12]; // fields of gRPC; "" = absent
		char authority[32], scheme[8];
		bool was_asked_to_wait;
		char forwarded_for[64]; // all values, one behind the other
		struct ip_port source, target; // as its connection's PROXY header says
		uint8_t tlvs[32]; // likewise, the first of these bytes
		uint16_t n_tlvs;
	} attempts[MAX_SEEN];
	enum h2_error end_code; // of the last stream that ended
	bool ended_by_peer;
};

#define ASK_EXTRA 7

// One request as the client sees it.
struct ask {
	struct client *client;
	struct h2_stream *stream; // NULL = over
	uint32_t id;
	enum kind kind;
	const char *route; // "one"
	uint32_t size; // of the request's body, or what the kind says
	uint32_t sent, received; // body bytes
	uint32_t cancel_after; // bytes received, then RST_STREAM(CANCEL); UINT32_MAX = never
	uint32_t n_informational;
	uint32_t held; // received and no window given back
	int http_status, grpc_status; // -1 = not seen
	bool begun, got_end, closed, by_peer, cancelled;
	bool conn_lost; // closed because its client's connection went away
	bool omit_te, broken; // broken: the answer is not what was asked
	bool request_trailers;
	bool open_ended; // plain: the request never ends
	bool huge; // with more header bytes than the proxy takes
	const char *fail, *timeout; // x-fail, grpc-timeout; NULL = without
	const char *method; // NULL = the kind's
	bool has_body; // of `size` bytes, though its kind has none
	struct field extra[ASK_EXTRA]; // any more; without a name: none
	struct ip_port from; // its client's address
	uint64_t begun_ns, closed_ns;
	enum h2_error code;
	char message[128]; // grpc-message, or the body of a plain local reply
	char cause[24]; // x-shunt-cause
	char request_id[72]; // x-request-id of the answer
	uint32_t n_set_cookies, n_backend_cookies; // by the proxy, by the backend
	uint32_t n_reports; // of backends' load
	char set_cookie[256]; // the proxy's last one
};

struct client {
	struct host *host;
	struct h2_context *ctx;
	struct tcp_conn *tcp;
	struct h2_conn *h2;
	const struct tls_end_conf *tls; // NULL = plain text
	struct tls_end secure;
	uint32_t frontend;
	struct str header; // PROXY, before all else
	uint8_t source; // last byte of its address; 0 = 1
	bool up, over, goaway;
	bool silent; // says nothing, not even its preface, before it asks
	bool was_reset; // its connection ended by RST
	bool stays; // does not end its side when the other end has
	bool slow; // gives no window back
	bool deaf; // reads nothing from TCP but
	size_t ration; // so many bytes more
};

#define BACKENDS_COOKIE "own=1"
struct backend {
	struct host *host;
	struct h2_context *ctx;
	struct ip_addr address;
	const struct tls_end_conf *tls; // NULL = plain text
	struct tls_end *newest; // of its connections; NULL = there was none, or it is gone
	bool listening;
	bool mute; // answers nothing
	bool deaf; // reads nothing from TCP
	bool sets_cookies; // BACKENDS_COOKIE in each answer
	const char *request_id; // x-request-id of its answers that fail as asked; NULL = none
	bool wants_header; // of PROXY, before all else
	uint32_t n_local; // connections whose header says that they are nobody's
	bool is_shy; // says nothing over connections that come now, not even SETTINGS
	bool leaves_at_once; // GOAWAY behind SETTINGS
	uint32_t leaves_after; // requests of a connection, then GOAWAY; 0 = never
	// Resets of streams that a connection lets pass, and as many a second; then it is closed,
	// as by nghttpd. 0 = any number.
	uint32_t max_resets, resets_per_second;
	const char *report_field, *report; // of its load, in what ends an answer; NULL = none
	uint32_t n_conns, n_accepted;
	struct backend_conn *conns;
	uint32_t *n_done; // by request id: answered here or elsewhere; shared by all backends
	uint8_t *n_refused; // by request id; shared
	struct seen *seen; // by request id; shared
	uint32_t n_ids;
	uint32_t *served; // ids in the order in which backends began with them; shared
	uint32_t *n_all_served; // shared
	uint32_t n_served, n_bad_requests;
	uint32_t n_angry; // connections that it closed for their resets
};

#define EARLY_SIZE 100000 // more than a window

uint8_t pattern(uint32_t id, uint32_t at);

// Connects to the frontend's address.
void client_open(struct client *, struct host *, struct h2_context *, uint32_t frontend,
	struct ip_addr, uint16_t port);
void client_abort(struct client *);
void client_say(struct client *, const void *, size_t len); // beside HTTP/2, and TLS
bool client_has_room(const struct client *);
// Fields of ask: id, kind, route, size and the flags.
void client_ask(struct client *, struct ask *);
void client_cancel(struct ask *); // nothing if it is over
void client_resume(struct client *, struct ask *); // gives the window back
void client_listen(struct client *); // no longer deaf
void client_pump(struct client *);

void backend_open(struct backend *, struct host *, struct ip_addr, const struct h2_conf *);
// The ops of a new connection, whose user they set, as a listener does.
const struct tcp_conn_ops *backend_accept(void *backend, struct tcp_conn *, void **ret_user);
void backend_close(struct backend *); // listens no more and drops its connections
void backend_unlisten(struct backend *);
void backend_goaway(struct backend *, bool at_once); // every connection; at once: last id as of now
// Those of this client, or NULL = those whose PROXY header says that they are nobody's.
void backend_goaway_of(struct backend *, const struct ip_port *client);
void backend_shut_of(struct backend *, const struct ip_port *client); // FIN
void backend_abort_of(struct backend *, const struct ip_port *client);
void backend_abort_conns(struct backend *);
void backend_shut_conns(struct backend *); // FIN
void backend_say(struct backend *, const void *, size_t len); // on all of them, beside HTTP/2
void backend_fini(struct backend *);
void backend_listen(struct backend *); // no longer deaf
void backend_pump(struct backend *);
