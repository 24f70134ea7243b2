// SPDX-License-Identifier: Apache-2.0
// A federation of toy resource types (client_fixture.h) against three scripted servers, "ads:0" to
// "ads:2", in virtual time.
// Thread: the test's.
#pragma once

#include "ctrl/xds/federation.h"
#include "tests/unit/ctrl/xds/client_fixture.h"

struct world {
	// One a server, for what client_fixture.h does to fixture.server; nothing else is used.
	struct fixture at[3];
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	uint64_t now_ns;
	struct xds_federation *federation;
	char logged[1024]; // lines, each with its end
};

// A server's JSON, with "'" for "\"".
#define ADS(n) "{'server_uri':'ads:" #n "','channel_creds':[{'type':'insecure'}]}"
#define ADS_FAILS_ON_DATA_ERRORS(n)                                                                \
	"{'server_uri':'ads:" #n "','channel_creds':[{'type':'insecure'}],"                        \
	"'server_features':['fail_on_data_errors']}"

// bootstrap: JSON with "'" for "\"".
void world_init(struct world *, const char *bootstrap);
void world_init_dropping(struct world *, const char *bootstrap); // what was deleted (gRFC A53)
void world_init_kept(struct world *, const char *bootstrap, const struct xds_state *);
void world_fini(struct world *);
void world_pass(struct world *, uint64_t ns);
void world_listen(struct world *, const struct xds_type *, const char *name, struct ear *);
void world_cancel(struct world *, struct ear *);
// The stream of the server ends before any answer, again.
void world_refuse(struct world *, unsigned server);
bool world_connected(const struct world *, unsigned server); // there is a stream to it
const char *world_state(struct world *, const char *name); // "ACKED v1"; "" = not watched
