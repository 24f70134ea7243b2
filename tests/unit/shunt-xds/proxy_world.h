// SPDX-License-Identifier: Apache-2.0
// A caching proxy between a server of the same make and clients: the server's end of the proxy's
// stream, of either protocol, is an ads_stream behind the scripted transport. Virtual time, no I/O.
// Thread: the test's.
#pragma once

#include "lb/base/rand.h"
#include "tests/support/fake_ads.h"
#include "tests/unit/shunt-xds/stream_world.h"
#include "tools/shunt-xds/upstream.h"

#define GRACE (30 * NS_PER_SECOND)
#define NAMES_MAX 1000000 // as upstream_conf.names_max

struct proxy_world {
	bool is_delta; // how the proxy speaks to the server above
	struct server above; // server_publish() changes what it has
	struct ads_stream *stream; // the proxy's, as the server above sees it; NULL = none
	bool is_down; // the server above
	bool is_mute; // it takes requests and says nothing: the test says what it likes
	bool is_unsettled; // the proxy hears, and does not get to do anything about it yet
	struct fake_ads fake;
	bool fails; // the proxy's allocation of this number, each time that it settles
	size_t fail_nth;
	bool has_failed;
	unsigned n_asked; // delta: requests that were more than an answer
	struct server below; // peer_open() makes a client of it
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	struct upstream *upstream;
	char text[4096];
};

void proxy_init(struct proxy_world *, const struct xds_protocol *);
void proxy_fini(struct proxy_world *); // no client is left

// Lets everything that is under way between proxy and server arrive.
void proxy_run(struct proxy_world *);
void proxy_pass(struct proxy_world *, uint64_t ns);
void proxy_publish(struct proxy_world *, const char *words); // server_publish() above, and runs
// The server above is gone, or is there again, knowing nothing of streams that were.
void proxy_cut(struct proxy_world *);
void proxy_mend(struct proxy_world *);

// To what the server above sees the proxy subscribed: "C:* C:blue{env=prod} E:blue", by type and
// name.
const char *proxy_asked(struct proxy_world *);
#define ASKED(world, expected) assert_string_equal(proxy_asked(world), expected)
// What the client gets next, when all has arrived.
#define GETS(world, peer, expected)                                                                \
	(proxy_run(world), assert_string_equal(peer_next(peer), expected))
