// SPDX-License-Identifier: Apache-2.0
// The subscriptions of one type: who watches what, what of it the server has been asked for, and
// what came of it. Both protocols read here what a request has to say. What the server has is one
// thing (variants.h), what the watchers use another: it may be kept though the server has it no
// more, or be dropped though it has (A88).
// Thread: ctrl.
#pragma once

#include "ctrl/base/chain.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/variants/variants.h"
#include "ctrl/xds/watchers.h"
#include "lb/base/twheel.h"

// What is still to be told to the watchers of an entry.
enum xds_news {
	XDS_NEWS_NONE,
	XDS_NEWS_RESOURCE,
	XDS_NEWS_ERROR,
	XDS_NEWS_AMBIENT,
	XDS_NEWS_CLEAR,
	XDS_NEWS_RESOURCE_AMBIENT, // two events
};

// Why a resource is not as the server would have it. Few entries have this.
struct xds_trouble {
	char *error; // the resource's own last failure; NULL = none
	uint64_t error_ns;
	char *error_version; // rejected; NULL = none
	struct xds_refused *refused; // counted; NULL = none
	char *said; // RECEIVED_ERROR: the server's own words
	int32_t said_code;
	struct xds_constraints *said_of; // counted
	struct twheel_timer outlived; // a deletion that its watchers outlive is logged then
	struct xds_entry *entry;
};

// For how long a value holds that has a TTL (RS-04). Few have one.
struct xds_lease {
	struct twheel_timer timer;
	struct xds_entry *entry;
	uint64_t expires_ns;
};

// One (type, name) that somebody watches. The value may stand beside a data error (A88).
struct xds_entry {
	struct xds_chain all; // subscriptions of the type, in order of subscription
	struct xds_watchers watchers; // none = not wanted any more, the server not told yet
	struct xds_sub *sub; // name, parameters, and what the server has for them
	struct xds_client *client;
	struct xds_chain pending; // the next request speaks of it
	struct xds_chain in_flight; // the request that is being sent asked for it

	struct xds_res *value; // counted; NULL = none
	const char *version; // of the value; counted (version.h); NULL = none
	uint64_t updated_ns;
	struct xds_trouble *trouble; // owned; NULL = none

	struct xds_lease *lease; // of the value, owned; NULL = it holds for good

	struct twheel_timer absent; // no answer yet (FM-04 to FM-07)
	uint64_t seen; // number of the last response that spoke of it

	struct xds_entry *next_news;

	uint32_t n_asking; // of the watchers for whom the server is asked for it by name
	// Bits, as there are two entries a cluster.
	uint32_t type : 5;
	enum xds_status status : 4;
	enum xds_code error_code : 5;
	enum xds_news news : 3;
	bool error_is_data : 1; // not a transient one (DE-01)
	bool ignores_deletion : 1; // of the value, which serves on (A53)
	bool ambient : 1; // the watchers have been told of trouble beside the value
	bool dead : 1; // dropped while news of it was being told
	// On this stream:
	bool asked : 1; // it is subscribed to, as far as requests have been sent
	bool answered : 1; // a response spoke of it
	bool is_resumed : 1; // of "*": it was answered on an earlier stream, not yet on this one
	// Of "*": the next response may be the answer to names of earlier requests.
	bool is_behind : 1;
};

struct xds_subs {
	struct xds_chain all; // xds_entry.all
	struct xds_chain pending; // wanted but not asked for, or asked for but not wanted
	struct xds_chain in_flight;
	uint32_t n; // wanted, by name
	// sotw.c's: all of those as requests list them; owned; NULL = to be made anew.
	uint8_t *names;
	size_t names_len;
	struct xds_server_updates updates; // so far
	struct xds_variants *variants; // what the server has, as far as it was said and is wanted
};

_Static_assert(XDS_MAX_TYPES <= 1 << 5, "an entry holds its type");
_Static_assert(XDS_STATUS_TIMEOUT < 1 << 4, "an entry holds its status");
_Static_assert(XDS_UNAVAILABLE < 1 << 5, "an entry holds its error's code");
_Static_assert(XDS_NEWS_RESOURCE_AMBIENT < 1 << 3, "an entry holds its news");

struct xds_protocol;
struct xds_type;

// 0 or -ENOMEM.
[[nodiscard]] int xds_subs_init(
	struct xds_subs *, const struct xds_type *, const struct xds_protocol *);
// Frees the entries; their watchers are forgotten.
void xds_subs_fini(struct xds_subs *);

// NULL = none
struct xds_entry *xds_subs_find(
	const struct xds_subs *, const char *name, const struct xds_params *);
// An entry that nobody wants yet: xds_subs_want() follows. NULL = no memory.
struct xds_entry *xds_subs_add(struct xds_subs *, struct xds_client *, uint32_t type,
	const char *name, struct xds_params *);
// The first watcher that asks has come. ask_again: also if the server has not been told of the end
// of the last subscription.
void xds_subs_want(struct xds_subs *, struct xds_entry *, bool ask_again);
// The last watcher that asks has gone. What the server does not know of is dropped at once, if
// nobody else watches it, the rest with the request that says so: until then the server goes on
// sending it, and a watch finds it (WA-13).
void xds_subs_unwant(struct xds_subs *, struct xds_entry *);
// A watcher that came by a wildcard has gone.
void xds_subs_left(struct xds_subs *, struct xds_entry *);

// A request has been made of all that is pending: what is wanted is in flight now, what is not is
// dropped (WA-09).
void xds_subs_sending(struct xds_subs *);
// The stream is over: the next one starts with asking for everything.
void xds_subs_lost(struct xds_subs *);
// Never NULL: of an entry without trouble one that is empty.
const struct xds_trouble *xds_entry_trouble(const struct xds_entry *);
// To write to, which it has from now on; NULL = no memory.
struct xds_trouble *xds_entry_make_trouble(struct xds_entry *);
// Its error is not about a version that was rejected.
void xds_entry_clear_rejected(struct xds_entry *);
void xds_entry_clear_trouble(struct xds_entry *); // there is none, or none any more
// Its value holds until then, and expires (xds_entry_expire()). 0 or -ENOMEM.
[[nodiscard]] int xds_entry_hold_until(struct xds_entry *, uint64_t expires_ns);
void xds_entry_hold_for_good(struct xds_entry *);
// Of an entry that was freed from telling news of it (dead).
void xds_entry_free(struct xds_entry *);
