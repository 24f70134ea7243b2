// SPDX-License-Identifier: Apache-2.0
// One resource that somebody watches, as a client's cache has it: its value, what is wrong with it,
// until when it holds, and who watches it. Not here: what a response makes of it (verdict.h), what
// its watchers hear (news.h), what the server is asked (subs.h).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"
#include "ctrl/xds/variants/variants.h"
#include "ctrl/xds/watchers.h"
#include "lb/base/list.h"
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
struct xds_ttl {
	struct twheel_timer timer;
	struct xds_entry *entry;
	uint64_t expires_ns;
};

// One (type, name) that somebody watches. The value may stand beside a data error (A88).
struct xds_entry {
	struct list_link all; // subscriptions of the type, in order of subscription
	struct xds_watchers watchers; // none = not wanted any more, the server not told yet
	struct xds_sub *sub; // name, parameters, and what the server has for them
	struct xds_cache *cache;
	struct list_link pending; // the next request speaks of it
	struct list_link in_flight; // the request that is being sent asked for it

	struct xds_res *value; // counted; NULL = none
	const char *version; // of the value; counted (version.h); NULL = none
	uint64_t updated_ns;
	struct xds_trouble *trouble; // owned; NULL = none

	struct xds_ttl *ttl; // of the value, owned; NULL = it holds for good

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

_Static_assert(XDS_MAX_TYPES <= 1 << 5, "an entry holds its type");
_Static_assert(XDS_STATUS_TIMEOUT < 1 << 4, "an entry holds its status");
_Static_assert(XDS_UNAVAILABLE < 1 << 5, "an entry holds its error's code");
_Static_assert(XDS_NEWS_RESOURCE_AMBIENT < 1 << 3, "an entry holds its news");

// One that nobody wants yet. NULL = out of memory.
struct xds_entry *xds_entry_new(struct xds_cache *, uint32_t type);
void xds_entry_free(struct xds_entry *);
// It leaves the cache, but stays in memory while there is news of it to tell (dead).
void xds_entry_drop(struct xds_entry *);
void xds_entry_cancel_timers(struct xds_entry *);
// The entry is not of a name but of "*".
bool xds_entry_is_wildcard(const struct xds_entry *);

// A response speaks of it (FM-06), whatever that says.
void xds_entry_answered(struct xds_entry *);
// It has been asked for: from now on silence is measured (FM-04), where an answer is missing.
void xds_entry_await(struct xds_entry *);
// As if the server had not spoken of it yet.
void xds_entry_forget(struct xds_entry *);

void xds_entry_drop_value(struct xds_entry *); // it has one
// Its value holds until then, and expires. 0 or -ENOMEM.
[[nodiscard]] int xds_entry_hold_until(struct xds_entry *, uint64_t expires_ns);
void xds_entry_hold_for_good(struct xds_entry *);

// Never NULL: of an entry without trouble one that is empty.
const struct xds_trouble *xds_entry_trouble(const struct xds_entry *);
// The resource's own last failure, which is not about a rejected version until that is said.
void xds_entry_set_error(struct xds_entry *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
// What failed is this version, and what is known of it: counted here, too; NULL = nothing. Both
// follow set_error(), and note nothing where there was no memory for that.
void xds_entry_set_rejected(struct xds_entry *, const char *version, struct xds_refused *);
// The server's own words (RECEIVED_ERROR). The constraints are counted here, too; NULL = none.
void xds_entry_set_said(
	struct xds_entry *, int32_t code, const char *text, struct xds_constraints *);
void xds_entry_clear_trouble(struct xds_entry *); // there is none, or none any more

// For operators, and for whoever passes it on. Texts are valid until the next call.
void xds_entry_info(const struct xds_entry *, struct xds_entry_info *ret);
void xds_entry_word(const struct xds_entry *, struct xds_word *ret);
