// SPDX-License-Identifier: Apache-2.0
// All servers of a bootstrap as one client: a name belongs to an authority (gRFC A47), and an
// authority has servers in order of preference (gRFC A71). There is one xds_client per distinct
// server, shared by the authorities that list it (FE-07); an authority with several servers has an
// xds_fallback over them. Watchers and events are those of client.h, which has the protocol and the
// cache.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_federation;

// Takes a client's conf, but ignores `server`. Returns NULL if out of memory. Sends nothing before
// the first watch.
struct xds_federation *xds_federation_new(const struct xds_client_conf *);
void xds_federation_free(struct xds_federation *); // as xds_client_free(); NULL is fine

// As xds_client_watch(). A name that is malformed, of another type (FE-02) or of an authority that
// the bootstrap lacks (FE-04) is reported as an error at once, and not watched.
[[nodiscard]] int xds_federation_watch(
	struct xds_federation *, const struct xds_type *, const char *name, struct xds_watcher *);
// Watches "*", all that the server for old-style names has of the type (SW-09): w has on_name. Each
// name that comes is watched by the same call, inside on_name, by a watcher with by_wildcard; one
// of federation is not one of these. Where several servers stand for old-style names, that is
// reported as an error at once, and nothing is watched: which one's list counts A71 does not say.
[[nodiscard]] int xds_federation_watch_all(
	struct xds_federation *, const struct xds_type *, const char *name, struct xds_watcher *);
void xds_federation_cancel(struct xds_federation *, struct xds_watcher *);

// As for the client, over all servers.
void xds_federation_begin(struct xds_federation *);
void xds_federation_end(struct xds_federation *);
void xds_federation_add_settled(struct xds_federation *, struct xds_settled *);
void xds_federation_remove_settled(struct xds_federation *, struct xds_settled *);

// Lists what is watched, by authority: each name once, with the value in use.
void xds_federation_each(const struct xds_federation *,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);
// Lists each distinct server of the bootstrap, in its order; one that was never needed is IDLE.
// Texts are valid until the next call into the federation.
void xds_federation_each_server(const struct xds_federation *,
	void (*fn)(void *ctx, const struct xds_server_info *), void *ctx);
// The clients of the servers in use.
void xds_federation_each_client(
	struct xds_federation *, void (*fn)(void *ctx, struct xds_client *), void *ctx);
// The server in use for old-style names.
void xds_federation_server(const struct xds_federation *, struct xds_server_info *ret);
