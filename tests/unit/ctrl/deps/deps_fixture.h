// SPDX-License-Identifier: Apache-2.0
// A dependency manager over the real client, real resource types, a scripted server that holds a
// set of resources and says them when told to, and the real resolver over scripted name servers.
// Thread: the test's.
#pragma once

#include "ctrl/deps/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/res/types.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "tests/support/fake_ads.h"
#include "tests/support/fake_lookups.h"

#include <stdbool.h>

#define S NS_PER_SECOND
#define DEPS_MAX_HELD 64
#define DEPS_MAX_ASKED 1024

struct res_listener;

struct held {
	const struct xds_type *type;
	char name[64];
	uint8_t *bytes;
	size_t len;
};

struct deps_fixture {
	struct fake_ads server;
	struct held held[DEPS_MAX_HELD];
	unsigned n_held, n_said;
	char asked[RES_N_TYPES]
		  [DEPS_MAX_ASKED]; // names of the last request, " a b " with blanks around
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	uint64_t now_ns;
	struct xds_federation *client;
	struct fake_lookups name_servers;
	struct dns_resolver *resolver;
	struct depmgr *dm; // has the resolver
	const char *in_use; // clusters that requests hold, " a b "; NULL = none
	struct xds_config *config; // borrowed; NULL = none, or an error came after it
	unsigned n_updates, n_errors; // since the last look
	char error[512];
};

// features: as in a bootstrap, "" = none. authority: pinned; NULL = none.
void deps_init(struct deps_fixture *, const char *features, const char *authority);
// And then web → rc → blue → e-blue, 10.0.0.1, delivered.
void deps_init_blue(struct deps_fixture *, const char *features);
void deps_fini(struct deps_fixture *);
// A second manager, which only `hears` what is delivered; the caller's.
struct depmgr *deps_start(
	const struct deps_fixture *, struct deps_fixture *hears, const char *authority, bool dns);
// Likewise, of this listener.
struct depmgr *deps_start_with(
	const struct deps_fixture *, struct deps_fixture *hears, struct res_listener *);
// Starts a second manager time and again, from what the first one has, with each allocation of its
// pass failing once, and asserts that it comes to the same all the same. How many there are.
size_t deps_starve_each(struct deps_fixture *, const char *authority);
void deps_pass_time(struct deps_fixture *, uint64_t ns);

// What the server holds from now on; replaces what has the same type and name.
void hold(struct deps_fixture *, const struct xds_type *, const char *name, const char *json);
void drop(struct deps_fixture *, const struct xds_type *, const char *name);
// Short forms: a listener "web" with these routes by name; a cluster with its endpoints' name; one
// endpoint 10.0.0.<n>:80; a route configuration with one virtual host for domain "*" or, in full
// form, several.
void hold_listener(struct deps_fixture *, const char *routes);
void hold_cluster(struct deps_fixture *, const char *name, const char *endpoints);
void hold_endpoint(struct deps_fixture *, const char *name, int n);
void hold_aggregate(struct deps_fixture *, const char *name, const char *children); // "a b"
void hold_name(struct deps_fixture *, const char *name, const char *host); // LOGICAL_DNS, port 80
// A cluster whose endpoints have its name, and one of them.
void hold_leaf(struct deps_fixture *, const char *name, int n);
void hold_routes(struct deps_fixture *, const char *name, const char *cluster, ...)
	__attribute__((sentinel)); // to each of the clusters, by path

// The server answers one type: all it holds of what was asked for last.
void say(struct deps_fixture *, const struct xds_type *);
// Answers until nobody asks for anything that is held and was not said.
void say_all(struct deps_fixture *);
bool asked_for(struct deps_fixture *, const struct xds_type *, const char *name);

// The last config as text: "rc: blue=e-blue/10.0.0.1 green!"; none: "!". An aggregate: "a[b c]"; of
// a name all addresses: "d=db/10.0.0.1+10.0.0.2"; what no route names: "~b=…".
const char *look(struct deps_fixture *);
// Of an entry of the last config. It must be there.
const char *error_of(struct deps_fixture *, const char *name);
const char *note_of(struct deps_fixture *, const char *name);
// How many of each since the last time.
void expect_updates(struct deps_fixture *, unsigned n_updates, unsigned n_errors);
