// SPDX-License-Identifier: Apache-2.0
// One watched resource in a client's cache: its value, its errors, its expiry, and its watchers.
// verdict.h applies responses to it, news.h tells its watchers, subs.h asks the server.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"
#include "ctrl/xds/variants/variants.h"
#include "ctrl/xds/watchers.h"
#include "lb/base/list.h"
#include "lb/base/twheel.h"

// What the watchers of an entry have yet to be told.
enum xds_news {
	XDS_NEWS_NONE,
	XDS_NEWS_RESOURCE,
	XDS_NEWS_ERROR,
	XDS_NEWS_AMBIENT,
	XDS_NEWS_CLEAR,
	XDS_NEWS_RESOURCE_AMBIENT, // two events
};

// The problems of a resource. Few entries have any.
struct xds_trouble {
	char *error; // the resource's own last error; NULL = none
	uint64_t error_ns;
	char *error_version; // rejected; NULL = none
	struct xds_refused *refused; // counted; NULL = none
	char *said; // RECEIVED_ERROR: the server's text
	int32_t said_code;
	struct xds_constraints *said_of; // counted
	struct twheel_timer outlived; // when it fires, a deletion that watchers outlive is logged
	struct xds_entry *entry;
};

// The expiry of a value with a TTL (RS-04). Few have one.
struct xds_ttl {
	struct twheel_timer timer;
	struct xds_entry *entry;
	uint64_t expires_ns;
};

// One watched (type, name). It may have both a value and a data error (A88).
struct xds_entry {
	struct list_link all; // subscriptions of the type, in order of subscription
	// none = not wanted any more, but the server has not been told
	struct xds_watchers watchers;
	struct xds_sub *sub; // name, parameters, and the server's variant for them
	struct xds_cache *cache;
	struct list_link pending; // in the list for the next request
	struct list_link in_flight; // in the list of the request being sent

	struct xds_res *value; // counted; NULL = none
	const char *version; // of the value; counted (version.h); NULL = none
	uint64_t updated_ns;
	struct xds_trouble *trouble; // owned; NULL = none

	struct xds_ttl *ttl; // of the value, owned; NULL = no expiry

	struct twheel_timer absent; // no answer yet (FM-04 to FM-07)
	uint64_t seen; // number of the last response that mentioned it

	struct xds_entry *next_news;

	uint32_t n_asking; // watchers that require asking the server for the name
	// Bit fields, since there are two entries per cluster.
	uint32_t type : 5;
	enum xds_status status : 4;
	enum xds_code error_code : 5;
	enum xds_news news : 3;
	bool error_is_data : 1; // a data error, not a transient one (DE-01)
	bool ignores_deletion : 1; // the value was deleted but stays in use (A53)
	bool ambient : 1; // the watchers know of a problem besides the value
	bool has_expired : 1; // there is no value since its TTL ended
	bool dead : 1; // dropped while its watchers were being told
	bool is_kept : 1; // the value was kept by an earlier run (standby.h)
	bool is_stale : 1; // and the server has said nothing of it yet; or its absence is presumed
	// An earlier run kept that the server did not have it, and the server has not spoken of it.
	bool was_absent : 1;
	bool is_looked_up : 1; // and there is no other
	// On this stream:
	bool asked : 1; // requests sent so far subscribe to it
	bool answered : 1; // a response mentioned it
	bool is_resumed : 1; // for "*": answered on an earlier stream, but not yet on this one
	// For "*": the next response may still answer earlier requests for names.
	bool is_behind : 1;
};

_Static_assert(XDS_MAX_TYPES <= 1 << 5, "an entry holds its type");
_Static_assert(XDS_STATUS_TIMEOUT < 1 << 4, "an entry holds its status");
_Static_assert(XDS_UNAVAILABLE < 1 << 5, "an entry holds its error's code");
_Static_assert(XDS_NEWS_RESOURCE_AMBIENT < 1 << 3, "an entry holds its news");

// Makes an entry without watchers. Returns NULL if out of memory.
struct xds_entry *xds_entry_new(struct xds_cache *, uint32_t type);
void xds_entry_free(struct xds_entry *);
// Takes it out of the cache; it stays in memory while watchers are being told (dead).
void xds_entry_drop(struct xds_entry *);
void xds_entry_cancel_timers(struct xds_entry *);
// True if the entry is for "*".
bool xds_entry_is_wildcard(const struct xds_entry *);

// A response mentions it (FM-06), whatever it says.
void xds_entry_answered(struct xds_entry *);
// It has been requested: starts the timer for a missing answer (FM-04), if one is needed.
void xds_entry_await(struct xds_entry *);
// Likewise, if it has been requested; the time so far does not count.
void xds_entry_await_anew(struct xds_entry *);
// It is not there for all that is known: an earlier run kept that, and nothing has been told yet.
bool xds_entry_may_presume(const struct xds_entry *);
// Its absence is presumed: who watches it was told so, the server has not spoken of it.
bool xds_entry_is_presumed(const struct xds_entry *);
// How long a silence means that there is no such resource, or no server (FM-04, FM-08).
uint64_t xds_entry_patience_ns(const struct xds_entry *);
// Resets it to the state before the server's first answer.
void xds_entry_forget(struct xds_entry *);

void xds_entry_drop_value(struct xds_entry *); // requires a value
void xds_entry_set_stale(struct xds_entry *, bool is_stale); // which the cache counts
// The value expires at this time. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_entry_hold_until(struct xds_entry *, uint64_t expires_ns);
void xds_entry_hold_for_good(struct xds_entry *);

// It may yet get a value that an earlier run kept, so that its server's failure is not told yet.
bool xds_entry_waits(const struct xds_entry *);

// Never NULL: an entry without problems has an empty one.
const struct xds_trouble *xds_entry_trouble(const struct xds_entry *);
// Sets the resource's own last error, which concerns a rejected version only if set below.
void xds_entry_set_error(struct xds_entry *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// The rejected version, and the rejected resource (counts its own reference; NULL = unknown). Both
// follow set_error(), and store nothing if out of memory.
void xds_entry_set_rejected(struct xds_entry *, const char *version, struct xds_refused *);
// Sets the server's text (RECEIVED_ERROR). Counts its own reference to the constraints; NULL =
// none.
void xds_entry_set_said(
	struct xds_entry *, int32_t code, const char *text, struct xds_constraints *);
void xds_entry_clear_trouble(struct xds_entry *); // no effect if there are no problems

// For display and for proxies. Texts are valid until the next call.
void xds_entry_info(const struct xds_entry *, struct xds_entry_info *ret);
void xds_entry_word(const struct xds_entry *, struct xds_word *ret);
