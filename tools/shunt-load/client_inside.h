// SPDX-License-Identifier: Apache-2.0
// What client.c (phases, when requests are sent), client_conn.c (connections), request.c (requests,
// answers) and the protocols, client_h1.c and client_h2.c, share.
// Thread: the polling thread.
#pragma once

#include "lb/base/container_of.h"
#include "lb/base/pool.h"
#include "lb/base/rand.h"
#include "tools/shunt-load/body.h"
#include "tools/shunt-load/client.h"
#include "tools/shunt-load/conn.h"

#include <sys/queue.h>

#define CLIENT_MAX_IN_FLIGHT 1000000
#define CLIENT_MAX_CONNECTING 256 // at one time; and at the end closing

struct client_conn {
	struct conn conn;
	struct client *client;
	LIST_ENTRY(client_conn) link; // in `all`
	STAILQ_ENTRY(client_conn) ready_next;
	SLIST_ENTRY(client_conn) closing_next;
	uint64_t begun_ns;
	uint32_t n_issued, n_open; // requests
	bool is_idle; // only kept open
	bool up; // has been up
	bool leaving; // takes no more requests
	bool ready; // in the list of connections that may have room
	bool in_closing; // in the list of connections to close
	bool closes_last; // counted in n_closing
	bool gone; // freed when it is in no list
};

static inline struct client_conn *client_conn_of(struct conn *c)
{
	return CONTAINER_OF(c, struct client_conn, conn);
}

struct request {
	struct client *client;
	struct client_conn *on;
	void *stream; // the protocol's; NULL = waits to be resent
	TAILQ_ENTRY(request) link; // in `flying` or `resend`
	uint64_t id;
	uint64_t planned_ns, sent_ns, answered_ns;
	struct body_out out;
	struct body_in in;
	uint64_t hash; // of the answer's body
	uint32_t path;
	uint32_t n_sends;
	uint16_t http_status; // 0 = no answer yet
	int grpc_status; // -1 = none yet
	bool has_ended; // the answer
	bool is_expired, is_cut;
	bool is_probe;
};

TAILQ_HEAD(request_list, request);

// The first answer to a path, with which later ones are compared.
struct alike {
	bool known;
	uint64_t hash, size;
};

// How requests and answers travel on a connection. Both protocols have HTTP/2's view of a message
// (dataplane/h2/h2.h).
struct client_protocol {
	const struct conn_protocol *conn;
	// The side's context. NULL = out of memory.
	void *(*context_new)(struct client *, uint32_t n_conns, uint32_t n_requests);
	void (*context_free)(void *); // NULL is fine
	// So many more requests may be open in the session.
	uint32_t (*room)(const void *session);
	// Sends a request's head. Returns its stream; NULL = no room or memory: nothing is sent.
	void *(*open)(void *session, const struct h2_message *, struct request *);
	// Sends the first of its body. False = out of memory. NULL = bodies go as TCP has room.
	bool (*push)(struct request *);
	// Gives it up; client_request_over() comes before this returns.
	void (*reset)(struct request *);
};
extern const struct client_protocol client_http1, client_http2;

// Why a protocol has done with a request.
enum request_end {
	REQUEST_ENDED, // its answer is complete, or it or its peer gave it up
	REQUEST_LOST, // with its connection
	REQUEST_MALFORMED, // what came breaks the protocol's rules
	REQUEST_UNPROCESSED, // the peer certainly did nothing with it
};

struct client {
	struct client_conf conf;
	const struct client_protocol *protocol;
	struct ip_addr *sources; // owned
	struct side side;
	struct pool conns, requests;
	struct rand rand;
	struct alike *alike; // owned; of each path
	LIST_HEAD(, client_conn) all;
	STAILQ_HEAD(, client_conn) ready;
	SLIST_HEAD(, client_conn) closing;
	struct request_list flying, resend; // in order of sending
	uint64_t n_begun, n_planned; // requests
	uint64_t next_id; // of requests and probes
	uint64_t next_probe_ns; // UINT64_MAX = one is under way
	uint64_t n_live; // requests in progress
	uint64_t now_ns, opening_ns, start_ns, measured_from_ns, measured_to_ns;
	uint64_t next_connect_ns;
	uint64_t hold_until_ns; // in CLIENT_HOLDING
	uint64_t progress_ns; // when the last request ended, or the last connection came up
	uint32_t n_connecting, n_active, n_idle, n_up, n_idle_up;
	uint32_t n_closing; // connections that wait for the peer's FIN at the end
	uint32_t next_source;
	uint32_t tag;
	enum client_phase phase;
	bool probed; // a probe succeeded
	struct client_result result;
};

// client_conn.c. Opens connections that are wanted, up to a bound. Returns true if any was begun.
bool client_conns_open(struct client *);
// Closes some of those that client_conn_close_soon() was called for.
void client_conns_close(struct client *);
void client_conn_close_soon(struct client *, struct client_conn *);
// Whether it may be given another request.
bool client_conn_has_room(const struct client *, const struct client_conn *);
// It may have room: client_conn_take_ready() returns it in its turn.
void client_conn_make_ready(struct client *, struct client_conn *);
struct client_conn *client_conn_take_ready(struct client *); // NULL = none
// No more requests on this connection.
void client_leave(struct client *, struct client_conn *);
// A request on it ended: it may have room, or may be finished.
void client_conn_freed(struct client *, struct client_conn *);

// request.c. Returns NULL if out of memory.
struct request *client_request_new(struct client *, uint64_t planned_ns, bool is_probe);
// False = it cannot be sent now: it waits at the front of `resend`.
bool client_request_send(struct client *, struct client_conn *, struct request *);
struct request *client_take_resend(struct client *);
// From protocols: a head or trailers, bytes of the body, and the end of both.
void client_answer_message(struct request *, const struct h2_message *);
void client_answer_data(struct request *, const uint8_t *, size_t len);
void client_answer_ended(struct request *);
// The last that is heard of it before it is sent again: judges it, or has it resent.
void client_request_over(struct request *, enum request_end);
// Ends the requests whose timeout has passed.
void client_expire(struct client *);
// Ends all requests without an answer.
void client_cut(struct client *);
