// SPDX-License-Identifier: Apache-2.0
// The xDS client of one server: watches by type and name, a cache, and an ADS stream, state of the
// world or incremental (PC-*, SW-*, DL-*, FM-*, WA-*, DE-*). A state machine: time comes from the
// wheel, messages from the transport, randomness from `rand`. It never looks inside a resource.
// ctrl/deps decides which resources are needed, ctrl/res what they mean.
// Thread: ctrl.
#pragma once

#include "ctrl/base/slice.h"
#include "ctrl/xds/settled.h"
#include "ctrl/xds/transport.h"
#include "ctrl/xds/type.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct rand;
struct twheel;
struct xds_bootstrap;
struct xds_client;
struct xds_constraints;
struct xds_params;
struct xds_server_conf;
struct xds_state;
struct xds_variant;

// Canonical gRPC status codes that errors carry.
enum xds_code { XDS_OK = 0, XDS_INVALID_ARGUMENT = 3, XDS_NOT_FOUND = 5, XDS_UNAVAILABLE = 14 };

// The ADS variant in use.
struct xds_protocol;
extern const struct xds_protocol xds_protocol_sotw, xds_protocol_delta;

// Of a response; 0 = none. One beyond them is refused as a whole, unread.
struct xds_limits {
	size_t n_resources; // errors and removals counted
	size_t len; // bytes
};

struct xds_client_conf {
	const struct xds_bootstrap *bootstrap; // borrowed, outlives the client
	const struct xds_server_conf *server; // an entry of it; NULL = the first top-level one
	const struct xds_protocol *protocol; // NULL = state of the world
	// Drop a resource that the server has deleted, unless the server's deletions are ignored
	// (A53), instead of keeping it with an ambient error (A88): DE-05, DE-06.
	bool drops_deleted;
	const struct xds_type *const *types; // static; in the order of requests
	uint32_t n_types;
	struct xds_transport_factory transport;
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	const char *user_agent_version; // "0.1.0"
	struct xds_limits limits;
	struct slice slice; // how much of a response is done before the wheel moves on
	// What earlier runs kept of servers (standby.h), borrowed; NULL = nothing.
	const struct xds_state *state;
	// Writes one log line (a rejected resource, a lost server); may be NULL.
	void (*log)(void *ctx, const char *line);
	void (*note)(void *ctx, const char *line); // the same of what is no trouble
	void *log_ctx;
};

// Returns NULL if out of memory. Sends nothing before the first watch.
struct xds_client *xds_client_new(const struct xds_client_conf *);
// Remaining watchers are forgotten and get no further event.
void xds_client_free(struct xds_client *);

enum xds_event_kind {
	XDS_EVENT_RESOURCE, // res: a new value
	XDS_EVENT_ERROR, // no value (any more): stop using the old one; see code and text
	// A problem, or with code XDS_OK its end; keep using the value (A88).
	XDS_EVENT_AMBIENT,
};
struct xds_event {
	enum xds_event_kind kind;
	struct xds_res *res; // RESOURCE: borrowed, xds_res_get() to keep
	enum xds_code code;
	const char *text; // ERROR, AMBIENT: borrowed; names the resource, the server and the node
	// ERROR: no server is reachable. Says nothing about the resource itself (FM-09).
	bool no_server;
};

// A watcher, in its owner's storage. Zeroed before the first use.
struct xds_watcher {
	void (*on_event)(struct xds_watcher *, const struct xds_event *);
	struct xds_entry *entry; // the client's; NULL = not watching
	struct xds_fallback_entry *fallback; // the authority's, if it has several servers
	// A value from another server is in use: this server's silence is no error (FM-05).
	bool held;
	// The watch comes from a wildcard: the server is not asked for the name.
	bool by_wildcard;
	// For a watcher of "*", all names with its parameters: the server sent a resource whose
	// name is not watched through the wildcard yet. A watcher with by_wildcard that starts now
	// gets it with this response. The event of "*" itself is a RESOURCE without res: the first
	// response is complete. Returns 0 or -ENOMEM.
	int (*on_name)(struct xds_watcher *, const char *name);
	TAILQ_ENTRY(xds_watcher) link; // in its list (watchers.h)
	uint64_t seen; // the last round of events that it has got
};

// Starts a watch. Reports a cached value or a known error at once, inside the call (WA-02, WA-03).
// Watches may start and be cancelled inside any event. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_client_watch(
	struct xds_client *, const struct xds_type *, const char *name, struct xds_watcher *);
// The same with the given parameters instead of the bootstrap's: for a proxy, whose clients have
// their own. The name may be "*" if the watcher has on_name.
[[nodiscard]] int xds_client_watch_locator(struct xds_client *, const struct xds_type *,
	const char *name, struct xds_params *, struct xds_watcher *);
// No event follows after it returns. No effect if not watching (WA-11).
void xds_client_cancel(struct xds_client *, struct xds_watcher *);

// Replaces the URL of a type in the list: the stream forgets its state of it. Returns false if
// something of it is still watched, or the server has not been told of the last unsubscription.
bool xds_client_reset_type(struct xds_client *, const struct xds_type *);

// Watches and cancellations between begin and end cause at most one request per type. May nest.
void xds_client_begin(struct xds_client *);
void xds_client_end(struct xds_client *);
// The number of begins without an end, including those of the client's own events.
unsigned xds_client_depth(const struct xds_client *);

// Adds a hook that runs when all events of one message, timer or transport event have been
// reported. It may watch and cancel.
void xds_client_add_settled(struct xds_client *, struct xds_settled *);
void xds_client_remove_settled(struct xds_client *, struct xds_settled *);

// For display. Names and numbers are those of CSDS's ClientResourceStatus (CS-05).
enum xds_status {
	XDS_STATUS_REQUESTED = 1,
	XDS_STATUS_DOES_NOT_EXIST = 2,
	XDS_STATUS_ACKED = 3,
	XDS_STATUS_NACKED = 4,
	XDS_STATUS_RECEIVED_ERROR = 5,
	XDS_STATUS_TIMEOUT = 6,
};
const char *xds_status_name(enum xds_status); // "REQUESTED"

struct xds_entry_info {
	const struct xds_type *type;
	const char *name;
	enum xds_status status;
	struct xds_res *res; // the value in use, borrowed; NULL = none
	const char *version; // of the value; "" = none
	uint64_t updated_ns; // when the value was last accepted (wheel's clock); 0 = never
	uint64_t expires_ns; // when the value's TTL expires (RS-04); 0 = never
	const char *error; // the last error; "" = none; an accepted resource clears it
	enum xds_code error_code;
	bool error_is_data; // a data error, not a transient one (DE-01)
	const char *error_version; // the rejected version, "" = none
	struct xds_refused // the rejected resource, borrowed; NULL = none, or not kept
		*refused; // what was rejected, borrowed; NULL = nothing, or it is not kept
	uint64_t error_ns; // time of the error
	bool is_kept; // the value was kept by an earlier run
	// And its server says nothing of it yet. Without a value: it was absent then (OPS-280).
	bool is_stale;
};
void xds_client_each(
	const struct xds_client *, void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);

// The state of the name it watches. Texts are valid until the next call.
void xds_watcher_info(const struct xds_watcher *, struct xds_entry_info *ret);
// The server's last word on it, for a proxy that forwards it. Valid until the next call.
struct xds_word {
	const struct xds_variant *variant; // its content is the xds_res; NULL = none received
	enum xds_status status; // DOES_NOT_EXIST: ignore the variant (RS-04)
	// RECEIVED_ERROR: the server's text, and the parameters it concerns. The variant may still
	// be valid.
	int32_t code;
	const char *text;
	struct xds_constraints *constraints; // NULL = all
};
void xds_watcher_word(const struct xds_watcher *, struct xds_word *ret);
// Its value is stale, or it may get one that is: what an earlier run kept is not looked up yet.
bool xds_watcher_is_stale(const struct xds_watcher *);
bool xds_watcher_waits(const struct xds_watcher *);
// The client that it watches at; NULL = not watching.
struct xds_client *xds_watcher_client(const struct xds_watcher *);
// Another server has provided a newer value: forgets the cached value of this one, so that its next
// response is news and its requests list no version. Causes no event.
void xds_client_forget(struct xds_client *, struct xds_watcher *);

enum xds_server_state {
	XDS_SERVER_IDLE, // nothing is watched yet
	XDS_SERVER_CONNECTING, // a stream is open, no response yet
	XDS_SERVER_CONNECTED, // a response has arrived on this stream
	XDS_SERVER_BACKOFF, // waiting for the next attempt
};
const char *xds_server_state_name(enum xds_server_state);

#define XDS_MAX_TYPES 32 // of one client

struct xds_server_info {
	const char *uri;
	const char *protocol; // "sotw", "delta"
	enum xds_server_state state;
	const char *error; // why the last stream ended; "" = none; a response clears it
	uint64_t since_ns; // of this state
	uint64_t n_streams, n_requests, n_responses, n_acks, n_nacks, n_undecodable, n_unknown_type;
	uint64_t n_over_limit; // responses beyond xds_limits
	// Resources received without a subscription, or with other parameters (PC-08, TP2-L03).
	uint64_t n_unwanted;
	// gRFC A78 (CS-09). Nothing has failed since its streams last worked.
	bool connected;
	uint64_t n_failures; // times that the server became unreachable
	size_t n_stale; // resources whose value an earlier run kept, or that they were absent
	struct xds_server_updates {
		uint64_t n_valid, n_invalid; // received resources, changed or not
	} updates[XDS_MAX_TYPES]; // by index in xds_client_conf.types
};
// Why the server is unreachable (FM-01); NULL = it is reachable, or has not been tried. Valid until
// the next call.
const char *xds_client_failure(const struct xds_client *);
// The server's state. Texts are valid until the next call into the client.
void xds_client_server(const struct xds_client *, struct xds_server_info *ret);
