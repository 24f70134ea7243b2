// SPDX-License-Identifier: Apache-2.0
// What is in flight on a worker, when an operator asks: one question of the control thread, and the
// oldest requests or connections that match it, in memory of a fixed size. It belongs to one side
// at a time: the control thread writes the question, lb_inflight_ask() makes all of it the worker's
// (LB_COMMAND_INFLIGHT wakes it), and lb_inflight_done() makes it the control thread's again. It
// may then mark rows of the answer, and have them ended by lb_inflight_end() in the same way.
// Thread: as tagged; is_free(), ask(), end() and take_back() on ctrl, find_place() and done() on
// the worker.
#pragma once

#include "lb/base/ip.h"
#include "lb/base/str.h"
#include "lb/pick/limits.h"
#include "lb/pick/tcp_info.h"

#include <stdbool.h>
#include <stdint.h>

#define LB_INFLIGHT_ROWS 1000 // that a worker tells

enum lb_inflight_kind {
	LB_INFLIGHT_REQUESTS,
	LB_INFLIGHT_CONNS,
	// Not in flight, but asked for in the same way: what the network layer knows.
	LB_INFLIGHT_NEIGHBORS,
	LB_INFLIGHT_ADDRESSES,
};

// What a request does, which docs/stats.md explains; as operators read and write it.
#define LB_INFLIGHT_REQUEST_STATES(X)                                                              \
	X(paused)                                                                                  \
	X(picking)                                                                                 \
	X(connecting)                                                                              \
	X(queued)                                                                                  \
	X(sending)                                                                                 \
	X(sent)                                                                                    \
	X(answering)                                                                               \
	X(delivering)
#define X(name) LB_REQUEST_##name,
enum lb_request_state { LB_INFLIGHT_REQUEST_STATES(X) LB_N_REQUEST_STATES };
#undef X

// The same of a connection.
#define LB_INFLIGHT_CONN_STATES(X)                                                                 \
	X(connecting)                                                                              \
	X(header)                                                                                  \
	X(handshake)                                                                               \
	X(open)                                                                                    \
	X(idle)                                                                                    \
	X(leaving)                                                                                 \
	X(closing)
#define X(name) LB_CONN_##name,
enum lb_conn_state { LB_INFLIGHT_CONN_STATES(X) LB_N_CONN_STATES };
#undef X

// The same of a neighbor, as RFC 4861 7.3.2 has it; incomplete: its MAC address is not known.
#define LB_INFLIGHT_NEIGHBOR_STATES(X)                                                             \
	X(incomplete)                                                                              \
	X(stale)                                                                                   \
	X(probe)                                                                                   \
	X(reachable)
#define X(name) LB_NEIGHBOR_##name,
enum lb_neighbor_state { LB_INFLIGHT_NEIGHBOR_STATES(X) LB_N_NEIGHBOR_STATES };
#undef X

// Of a kind: the name of the nth state; NULL = there are no more.
const char *lb_inflight_state_name(enum lb_inflight_kind, uint32_t n);

#define LB_INFLIGHT_ANY UINT32_MAX

// Names one request or connection of a process: its place in the worker's pool of such objects, and
// when it began. Nothing that is told and begins later has the same.
struct lb_inflight_handle {
	uint64_t began_ns;
	uint32_t slot;
	uint16_t worker;
	bool is_backend; // of a connection: not of a client
};
#define LB_INFLIGHT_ID_MAX 72 // of an x-request-id, with the NUL at its end

// Conditions, all of which must hold.
struct lb_inflight_query {
	enum lb_inflight_kind kind;
	uint32_t limit; // rows, 1 to LB_INFLIGHT_ROWS
	uint64_t before_ns; // began then or earlier; UINT64_MAX = at any time
	uint32_t states; // bits: 1 << state; UINT32_MAX = any
	uint32_t frontend; // of requests and clients; LB_INFLIGHT_ANY
	uint32_t cluster; // of requests; id, or LB_INFLIGHT_ANY
	bool has_handle;
	struct lb_inflight_handle handle; // this one alone
	char id[LB_INFLIGHT_ID_MAX]; // of requests; "" = any
	bool has_source;
	struct ip_prefix source; // of the client; of a neighbor, or of ours, its address
	bool by_endpoint; // connections to these endpoints alone
	uint64_t endpoints[LB_MAX_ENDPOINTS / 64]; // bits, by id
};

// Texts of a request and what is kept of each, with the NUL at its end; those of lb/pick/failures.h
// of the same names.
#define LB_INFLIGHT_TEXTS(X)                                                                       \
	X(id, LB_INFLIGHT_ID_MAX)                                                                  \
	X(method, 16)                                                                              \
	X(authority, 128)                                                                          \
	X(path, 256)                                                                               \
	X(vhost, 96)                                                                               \
	X(route, 96)                                                                               \
	X(cluster, 120)

struct lb_inflight_request {
	struct ip_port endpoint;
	bool has_endpoint; // one was chosen, and has yet to answer to the end
	uint32_t route_index; // in its virtual host's resource; UINT32_MAX = not known
	uint32_t n_attempts; // sent, or picks that failed and count as such
#define X(name, size) char name[size];
	LB_INFLIGHT_TEXTS(X)
#undef X
};

struct lb_inflight_conn {
	struct ip_port local;
	uint32_t endpoint; // id; LB_INFLIGHT_ANY = it is a client's
	uint32_t n_streams;
	uint64_t waiting; // bytes for the peer that it has not acknowledged
	struct lb_tcp_info tcp;
	uint16_t tls; // version as in records (RFC 8446 4.1.2); 0 = none, or not agreed upon
	uint8_t http; // 20, 11 or 10; 0 = not known yet
};

struct lb_inflight_neighbor {
	uint8_t mac[6];
	uint8_t port;
	bool has_mac, is_gateway;
	uint8_t n_held; // frames that wait for it
	uint8_t n_asks; // questions without an answer
};

enum lb_address_kind {
	LB_ADDRESS_port, // of a port, as configured
	LB_ADDRESS_link_local, // likewise, made of its MAC address
	LB_ADDRESS_vips, // a prefix of vips
	LB_ADDRESS_vip, // an address of one that is served
};
#define LB_ADDRESS_ALL_PORTS UINT8_MAX
struct lb_inflight_address {
	uint64_t rival_ns; // when another host was last heard to claim it; 0 = none was
	uint8_t rival[6]; // its MAC address
	uint8_t port; // or LB_ADDRESS_ALL_PORTS
	uint8_t kind; // enum lb_address_kind
	uint8_t bits; // of its prefix; of an IPv4 one with IP_V4_BITS
	bool answers; // ARP and neighbor discovery tell of it
};

struct lb_inflight_row {
	uint64_t began_ns; // of the worker's clock; of a neighbor, when its MAC was last confirmed
	uint64_t bytes_in, bytes_out; // of bodies; of a connection TCP's, out: acknowledged
	struct ip_port peer; // the client, the backend, the neighbor; or the address of ours
	uint16_t frontend; // of requests and clients
	uint8_t state; // of the query's kind
	bool is_marked; // w: ctrl: it is to end
	uint32_t slot; // of its handle
	union {
		struct lb_inflight_request request;
		struct lb_inflight_conn conn;
		struct lb_inflight_neighbor neighbor;
		struct lb_inflight_address address;
	};
};

struct lb_inflight {
	bool asked; // w: both (release), r: both (acquire): it is the worker's
	struct lb_inflight_query query;
	// The answer. Objects come and go while the worker looks at one after the other.
	uint64_t n_all, n_matching; // of the kind, and that match
	uint32_t n_rows;
	bool ends; // the question is to end the marked rows
	uint32_t n_ended; // the answer: of these, what was there still
	uint32_t heap[LB_INFLIGHT_ROWS]; // indexes of rows, the youngest first; the worker's
	struct lb_inflight_row rows[LB_INFLIGHT_ROWS]; // n_rows, in no order
};

// Its memory becomes resident as it is used. NULL = out of memory.
struct lb_inflight *lb_inflight_new(void);
void lb_inflight_free(struct lb_inflight *); // NULL is fine

// The control thread may read the answer, or ask.
bool lb_inflight_is_free(const struct lb_inflight *);
void lb_inflight_ask(struct lb_inflight *, const struct lb_inflight_query *);
// The same: the rows of the last answer that are marked are to end, if they are there still.
void lb_inflight_end(struct lb_inflight *);
// After ask() or end(), if no command was sent.
void lb_inflight_take_back(struct lb_inflight *);

// Where to write the row of one that matches and began then; counts it. NULL = there are as many
// older ones as the query wants. What was written there before was younger.
struct lb_inflight_row *lb_inflight_find_place(struct lb_inflight *, uint64_t began_ns);
// All has been looked at.
void lb_inflight_done(struct lb_inflight *);

// Writes a text, cut to what fits, and its NUL.
void lb_inflight_put(char *to, size_t size, struct str);
