// SPDX-License-Identifier: Apache-2.0
// A daemon with two frontends, "web" and "api", one worker that does not run, and an xDS server
// that says what the test tells it to; asked as an operator asks.
// Thread: the test's.
#pragma once

#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show.h"
#include "ctrl/xds/federation.h"
#include "lb/base/rand.h"
#include "lb/base/str.h"
#include "tests/support/fake_ads.h"

#include <jansson.h>

struct drains;

#define SHOW_WORLD_URI "ads:1" // of the server

struct world {
	struct config_frontend frontends[2];
	struct config config;
	struct twheel *wheel;
	struct lb_slot *slot;
	struct lb_shared *shared;
	struct lb_link *link;
	struct workers *workers;
	struct assembler *assembler;
	struct xds_bootstrap *bootstrap;
	struct fake_ads server;
	struct rand rand;
	struct xds_federation *xds;
	struct load_report *loads;
	struct drains *drains;
	struct show_conf conf;
	struct show *show;
	struct events *events;
	const char *waiting[2], *refused;
};

int show_world_set_up(void **state); // as cmocka calls it; the state is a struct world
int show_world_tear_down(void **state);

// The data of a command's JSON, for an admin.
json_t *show_world_ask(struct world *, const char *command);

void show_world_forget_event(struct xds_watcher *, const struct xds_event *);
const struct xds_type *show_world_cluster_type(void);
// A response with two clusters.
void show_world_say_clusters(
	struct world *, const char *version, struct str first, struct str second);
// Cluster {name, type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}; and without the latter.
#define GOOD(name) "\x0a\x01" name "\x10\x03\x1a\x04\x0a\x02\x1a\x00"
#define BAD(name) "\x0a\x01" name "\x10\x03"
