// SPDX-License-Identifier: Apache-2.0
// What client.c (watches), tell.c (events), subs.c (the cache), respond.c (responses to cache) and
// verdict.c (what becomes of an entry) share. Nobody else's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/ads.h"
#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/subs.h"

struct xds_client {
	struct xds_client_conf conf;
	const struct xds_server_conf *server;
	struct xds_node node;
	struct xds_ads *ads;
	struct xds_subs *subs; // [conf.n_types]
	struct xds_settled_list settled;
	bool unsettled; // events were told since the hooks ran
	unsigned depth; // of begin()
	uint64_t n_events; // numbers responses and other events that make news
	struct xds_entry *news; // entries with news, in order
	struct xds_entry *news_last;
	uint64_t n_failures; // so far
	char *failure; // the server is not reachable (FM-01); NULL = it is, or was until now
};

// Puts an entry on the list of news; a later piece replaces an earlier one, but a new value is told
// with whatever came of it since.
void xds_client_add_news(struct xds_entry *, enum xds_news);
// Tells the watchers all news of the event. Those that came after it know already.
void xds_client_tell(struct xds_client *, uint64_t event);
// The last round of telling that an event takes: each takes two.
static inline uint64_t xds_client_round(uint64_t event)
{
	return 2 * event + 1;
}
// What a new watcher is to know at once (WA-02, WA-03, FM-10).
void xds_client_tell_new(struct xds_entry *, struct xds_watcher *);
void xds_client_log(struct xds_client *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

// Replaces an owned text by a printed one; keeps the old one when there is no memory.
void xds_set_text(char **at, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void xds_clear_text(char **at);
// The resource's own last failure, which is not about a rejected version until that is said.
void xds_entry_set_error(struct xds_entry *, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

// RS-04: the time of its value is over.
void xds_entry_expire(struct xds_entry *);

// Wildcards (wildcard.c).
// The entry is not of a name but of "*".
bool xds_entry_is_wildcard(const struct xds_entry *);
// A response has a resource of this name: those who watch "*" with parameters that match may watch
// the name before it is listed, since only what is watched is taken in. 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_adopt(
	struct xds_client *, uint32_t type, const char *name, const struct xds_constraints *);
// All resources of a response are listed. The first one to a wildcard that outlived its stream has
// all names, and of what it leaves out the server did not know. 0 or -ENOMEM.
[[nodiscard]] int xds_wildcard_sweep(struct xds_client *, uint32_t type);
// The request of the type that is in flight has left.
void xds_wildcard_sent(struct xds_client *, uint32_t type);
void xds_wildcard_answered(struct xds_entry *);
// All of the response has been applied: was it an answer to a wildcard?
void xds_wildcard_settle(struct xds_client *, uint32_t type);

// xds_ads_owner's.
int xds_client_respond(
	struct xds_client *, uint32_t type, const struct xds_response *, char **ret_nack);
