// SPDX-License-Identifier: Apache-2.0
// The xDS client of one server: watches by type and name, a cache, and an ADS stream, state of the
// world or incremental (PC-*, SW-*, DL-*, FM-*, WA-*, DE-*). A state machine: time comes from the
// wheel, messages from the transport, chance from `rand`. It never looks inside a resource.
// Not here: which resources are needed (ctrl/deps), what they mean (ctrl/res).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/settled.h"
#include "ctrl/xds/transport.h"
#include "ctrl/xds/type.h"

#include <stdbool.h>
#include <stdint.h>

struct rand;
struct twheel;
struct xds_bootstrap;
struct xds_client;
struct xds_constraints;
struct xds_params;
struct xds_server_conf;
struct xds_variant;

// Canonical gRPC status codes that errors carry.
enum xds_code { XDS_OK = 0, XDS_INVALID_ARGUMENT = 3, XDS_NOT_FOUND = 5, XDS_UNAVAILABLE = 14 };

// How ADS is spoken.
struct xds_protocol;
extern const struct xds_protocol xds_protocol_sotw, xds_protocol_delta;

struct xds_client_conf {
	const struct xds_bootstrap *bootstrap; // borrowed, outlives the client
	const struct xds_server_conf *server; // one of it; NULL = the first at the top
	const struct xds_protocol *protocol; // NULL = state of the world
	// A resource that the server has deleted is dropped, unless that server is not to be
	// believed (A53), not kept beside an ambient error (A88): DE-05, DE-06.
	bool drops_deleted;
	const struct xds_type *const *types; // static; in the order in which requests go out
	uint32_t n_types;
	struct xds_transport_factory transport;
	struct twheel *wheel; // ctrl's wheel and clock
	struct rand *rand; // jitter
	const char *user_agent_version; // "0.1.0"
	// One line for the operator (a refused resource, a lost server); NULL = silent.
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

// NULL = out of memory. Nothing is sent before the first watch.
struct xds_client *xds_client_new(const struct xds_client_conf *);
// Watchers that are left are forgotten: they get no event any more.
void xds_client_free(struct xds_client *);

enum xds_event_kind {
	XDS_EVENT_RESOURCE, // res: a new value
	XDS_EVENT_ERROR, // no value (any more): stop using an earlier one; code and text say why
	// Trouble, or with code XDS_OK its end; go on using the value (A88).
	XDS_EVENT_AMBIENT,
};
struct xds_event {
	enum xds_event_kind kind;
	struct xds_res *res; // RESOURCE: borrowed, xds_res_get() to keep
	enum xds_code code;
	const char *text; // ERROR, AMBIENT: borrowed; names the resource, the server and the node
	// ERROR: no server can be asked. Of the resource itself that says nothing (FM-09).
	bool no_server;
};

// The watcher's storage is its owner's. Zeroed before the first use.
struct xds_watcher {
	void (*on_event)(struct xds_watcher *, const struct xds_event *);
	struct xds_entry *entry; // client's; NULL = not watching
	struct xds_fallback_entry *fallback; // the authority's, if it has several servers
	// A value from elsewhere is in use: silence of this server says nothing (FM-05).
	bool held;
	// What it watches came by a wildcard: the server is not asked for it by name.
	bool by_wildcard;
	// Of "*", all names with its parameters: the server has sent a resource of a name that is
	// not watched through the wildcard yet; who watches it now, by_wildcard, has it with this
	// response. The event of "*" itself is a RESOURCE without res: the first response has come.
	// 0 or -ENOMEM.
	int (*on_name)(struct xds_watcher *, const char *name);
	struct xds_watcher *next, *prev; // its list's (watchers.h)
	uint64_t seen; // likewise: the last round that it knows of
};

// Starts a watch. A cached value or a known error is told at once, inside the call (WA-02, WA-03).
// Watchers may be started and cancelled inside any event. 0 or -ENOMEM.
[[nodiscard]] int xds_client_watch(
	struct xds_client *, const struct xds_type *, const char *name, struct xds_watcher *);
// The same with parameters of its own, instead of the bootstrap's: for a proxy, whose clients have
// theirs. The name may be "*", if the watcher has on_name.
[[nodiscard]] int xds_client_watch_locator(struct xds_client *, const struct xds_type *,
	const char *name, struct xds_params *, struct xds_watcher *);
// No event comes after it returns; not watching = nothing happens (WA-11).
void xds_client_cancel(struct xds_client *, struct xds_watcher *);

// Another type may have this place in the list from now on, whose URL changes then: the stream
// forgets what was said of it. False = something is watched still, or the server has not been told
// that it is not.
bool xds_client_reset_type(struct xds_client *, const struct xds_type *);

// Watches and cancels between begin and end cost one request a type at most. They nest.
void xds_client_begin(struct xds_client *);
void xds_client_end(struct xds_client *);
// How many begins have no end yet; the client begins its own events, too.
unsigned xds_client_depth(const struct xds_client *);

// A hook for when the events of one message, timer or transport event have been told. It may watch
// and cancel.
void xds_client_add_settled(struct xds_client *, struct xds_settled *);
void xds_client_remove_settled(struct xds_client *, struct xds_settled *);

// For operators. The names and numbers are CSDS's ClientResourceStatus (CS-05).
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
	uint64_t expires_ns; // when the value's TTL is over (RS-04); 0 = it holds for good
	const char *error; // the last failure, "" = none; cleared by acceptance
	enum xds_code error_code;
	bool error_is_data; // not a transient one (DE-01)
	const char *error_version; // the rejected version, "" = none
	struct xds_refused
		*refused; // what was rejected, borrowed; NULL = nothing, or it is not kept
	uint64_t error_ns; // when it failed
};
void xds_client_each(
	const struct xds_client *, void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);

// What there is to know of the name it watches. Texts are valid until the next call.
void xds_watcher_info(const struct xds_watcher *, struct xds_entry_info *ret);
// What the server has of it and said last, for whoever passes it on. Valid until the next call.
struct xds_word {
	const struct xds_variant *variant; // its content is the xds_res; NULL = none was sent
	enum xds_status status; // DOES_NOT_EXIST: the variant does not count any more (RS-04)
	// RECEIVED_ERROR: as it was said, and of which parameters. What was sent before may hold.
	int32_t code;
	const char *text;
	struct xds_constraints *constraints; // NULL = all
};
void xds_watcher_word(const struct xds_watcher *, struct xds_word *ret);
// Whom it watches at; NULL = it does not.
struct xds_client *xds_watcher_client(const struct xds_watcher *);
// Another server has given a newer value: what is cached of this one is forgotten, so that its next
// word is news, and it is asked as by one that has nothing. No event.
void xds_client_forget(struct xds_client *, struct xds_watcher *);

enum xds_server_state {
	XDS_SERVER_IDLE, // nothing is watched yet
	XDS_SERVER_CONNECTING, // a stream is open, no response yet
	XDS_SERVER_CONNECTED, // responses have come on this stream
	XDS_SERVER_BACKOFF, // waiting for the next attempt
};
const char *xds_server_state_name(enum xds_server_state);

#define XDS_MAX_TYPES 32 // of one client

struct xds_server_info {
	const char *uri;
	const char *protocol; // "sotw", "delta"
	enum xds_server_state state;
	const char *error; // why the last stream ended, "" = none; cleared by a response
	uint64_t since_ns; // of this state
	uint64_t n_streams, n_requests, n_responses, n_acks, n_nacks, n_undecodable, n_unknown_type;
	// Resources that nobody had subscribed to, or only with other parameters (PC-08, TP2-L03).
	uint64_t n_unwanted;
	// gRFC A78 (CS-09). Nothing has gone wrong since its streams worked last.
	bool connected;
	uint64_t n_failures; // times that it became unreachable
	struct xds_server_updates {
		uint64_t n_valid, n_invalid; // resources that came, changed or not
	} updates[XDS_MAX_TYPES]; // by index in xds_client_conf.types
};
// Why the server is not reachable (FM-01); NULL = it is, was until now, or has not been tried.
// Valid until the next call.
const char *xds_client_failure(const struct xds_client *);
// The server in use. Texts are valid until the next call into the client.
void xds_client_server(const struct xds_client *, struct xds_server_info *ret);
