// SPDX-License-Identifier: Apache-2.0
// All servers of a bootstrap as one client: a name belongs to an authority (gRFC A47), and an
// authority has servers in order of preference (gRFC A71). One xds_client a distinct server, shared
// by the authorities that list it (FE-07); an authority with one server is that client, one with
// more is an xds_fallback over them. Watchers and events are those of client.h.
// Not here: protocol and cache (client.h), load reports.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/client.h"

struct xds_federation;

// The conf is a client's, but for `server`, which is not read. NULL = out of memory. Nothing is
// sent before the first watch.
struct xds_federation *xds_federation_new(const struct xds_client_conf *);
void xds_federation_free(struct xds_federation *); // as xds_client_free(); NULL is fine

// As xds_client_watch(). A name that is malformed, of another type (FE-02) or of an authority that
// the bootstrap does not have (FE-04) is told as an error at once; then nothing is watched.
[[nodiscard]] int xds_federation_watch(
	struct xds_federation *, const struct xds_type *, const char *name, struct xds_watcher *);
void xds_federation_cancel(struct xds_federation *, struct xds_watcher *);

// As the client's, over all servers.
void xds_federation_begin(struct xds_federation *);
void xds_federation_end(struct xds_federation *);
void xds_federation_add_settled(struct xds_federation *, struct xds_settled *);
void xds_federation_remove_settled(struct xds_federation *, struct xds_settled *);

// What is watched, authority by authority. Each name is there once, with what is in use.
void xds_federation_each(const struct xds_federation *,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx);
// Every distinct server of the bootstrap, in its order; one that was not needed yet is IDLE. Texts
// are valid until the next call into the federation.
void xds_federation_each_server(const struct xds_federation *,
	void (*fn)(void *ctx, const struct xds_server_info *), void *ctx);
// The server in use for old-style names.
void xds_federation_server(const struct xds_federation *, struct xds_server_info *ret);
