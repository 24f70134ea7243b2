// SPDX-License-Identifier: Apache-2.0
// What client.c (watches and events) and respond.c (responses to cache) share. Nobody else's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/ads.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/node.h"
#include "ctrl/xds/strmap.h"
#include "lb/base/twheel.h"

// What is still to be told to the watchers of an entry.
enum news { NEWS_NONE, NEWS_RESOURCE, NEWS_ERROR, NEWS_AMBIENT, NEWS_CLEAR };

// One (type, name) that somebody watches. The value may stand beside a data error (A88).
struct xds_entry {
	struct strmap_link link; // by name, in its type's map
	struct xds_client *client;
	uint32_t type;
	struct xds_entry *next, *prev; // subscriptions of the type, in order of subscription
	struct xds_watcher *watchers; // newest last; NULL = unsubscribed, not yet told (WA-13)
	struct xds_watcher *watchers_last;
	char *name;

	enum xds_status status;
	struct xds_res *value; // counted; NULL = none
	char *version; // of the value; NULL = none
	uint64_t updated_ns;
	char *error; // the resource's own last failure; NULL = none
	enum xds_code error_code;
	char *error_version; // rejected; NULL = none
	uint64_t error_ns;

	struct twheel_timer absent; // no answer yet (FM-04 to FM-07)
	bool answered; // a response of this stream spoke of it
	bool in_flight; // named in the request that is being sent
	bool ambient; // the watchers have been told of trouble beside the value
	uint64_t seen; // number of the last response that spoke of it

	enum news news;
	struct xds_entry *next_news;
	bool dead; // dropped while news of it was being told
};

struct entry_list {
	struct xds_entry *first, *last;
	uint32_t n; // with watchers
	uint32_t n_unwatched; // to be dropped when the server has been told
	bool in_flight; // the request under way names entries that are to get a timer
	bool newcomers; // there may be entries that were in no request of this stream yet
	struct strmap by_name;
};

struct xds_client {
	struct xds_client_conf conf;
	struct xds_node node;
	struct xds_ads *ads;
	struct entry_list *lists; // [conf.n_types]
	struct xds_settled *settled; // hooks
	struct xds_settled *settled_next; // while they run
	bool unsettled; // events were told since the hooks ran
	unsigned depth; // of begin()
	uint64_t n_events; // numbers responses and rounds of news; watchers remember the last
	struct xds_entry *news; // entries with news, in order
	struct xds_entry *news_last;
	char *failure; // the server is not reachable (FM-01); NULL = it is, or was until now
};

// Puts an entry on the list of news; a later piece replaces an earlier one.
void xds_client_add_news(struct xds_entry *, enum news);
// Tells the watchers all news. Watchers that came after `round` know already.
void xds_client_tell(struct xds_client *, uint64_t round);
void xds_client_log(struct xds_client *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

// Replaces an owned text by a printed one; keeps the old one when there is no memory.
void xds_set_text(char **at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void xds_clear_text(char **at);

// The resource is refused or gone: what A88 makes of it (DE-02 to DE-04). is_data: NACK, deletion,
// NOT_FOUND and PERMISSION_DENIED; otherwise it is transient. The text is entry->error.
void xds_entry_fail(struct xds_entry *, enum xds_status, enum xds_code, bool is_data);
// xds_ads_owner's.
char *xds_client_respond(struct xds_client *, uint32_t type, const struct xds_response *);
