// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/stats/show_world.h"

#include "ctrl/assemble/drains.h"
#include "ctrl/base/events.h"
#include "ctrl/res/types.h"
#include "ctrl/stats/caller.h"
#include "ctrl/stats/stats_server.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

static const char BOOTSTRAP[] =
	"{\"xds_servers\":[{\"server_uri\":\"ads:1\",\"channel_creds\":[{\"type\":\"insecure\"}]}],"
	"\"authorities\":{\"\":{},\"q\\\"\\u0001\":{}},\"node\":{\"id\":\"me\"}}";

static const char *waiting(void *ctx, uint32_t frontend)
{
	const struct world *w = ctx;
	return w->waiting[frontend];
}

static const char *refused(void *ctx, uint32_t frontend)
{
	const struct world *w = ctx;
	return frontend == 1 && w->refused ? w->refused : "";
}

static void nothing(void *ctx)
{
}

int show_world_set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	log_set_level(LOG_LEVEL_ERROR);
	w->frontends[0] = (struct config_frontend){
		.name = strdup("web"), .address = strdup("10.0.0.1"), .target = strdup("t")};
	w->frontends[1] = (struct config_frontend){
		.name = strdup("api"), .address = strdup("10.0.0.1"), .target = strdup("u")};
	w->config = (struct config){.frontends = w->frontends, .n_frontends = 2};
	w->wheel = twheel_new(NS_PER_SECOND);
	w->slot = lb_slot_new(lb_snapshot_new(2, "nothing yet"));
	w->link = lb_link_new(0, 0, w->shared = lb_shared_new());
	w->workers = workers_new(&w->link, 1, NULL, NULL);
	w->assembler = assembler_new(&(struct assembler_conf){
		.config = &w->config, .slot = w->slot, .workers = w->workers, .wheel = w->wheel});
	struct lb_err err;
	assert_int_equal(
		xds_bootstrap_parse(BOOTSTRAP, strlen(BOOTSTRAP), "test", &w->bootstrap, &err), 0);
	rand_init(&w->rand, 1);
	w->xds = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = w->bootstrap,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = fake_ads_factory(&w->server),
		.wheel = w->wheel,
		.rand = &w->rand,
		.user_agent_version = "0",
	});
	w->loads = load_report_new(&(struct load_report_conf){
		.bootstrap = w->bootstrap,
		.transport = fake_ads_factory(&w->server),
		.workers = w->workers,
		.wheel = w->wheel,
		.rand = &w->rand,
		.user_agent_version = "0",
	});
	w->waiting[0] = w->waiting[1] = "";
	w->drains = drains_new(&(struct drains_conf){.config = &w->config,
		.workers = w->workers,
		.wheel = w->wheel,
		.changed = nothing});
	w->events = events_new();
	w->conf = (struct show_conf){
		.events = w->events,
		.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.xds = w->xds,
		.drains = w->drains,
		.loads = w->loads,
		.wheel = w->wheel,
		.waiting = waiting,
		.refused = refused,
		.ctx = w,
	};
	w->show = show_new(&w->conf);
	assert_non_null(w->show);
	*state = w;
	return 0;
}

int show_world_tear_down(void **state)
{
	struct world *w = *state;
	show_free(w->show);
	events_free(w->events);
	xds_federation_free(w->xds);
	load_report_free(w->loads);
	drains_free(w->drains);
	fake_ads_fini(&w->server);
	xds_bootstrap_free(w->bootstrap);
	lb_slot_free(w->slot);
	assembler_free(w->assembler);
	workers_free(w->workers);
	lb_link_free(w->link);
	lb_shared_free(w->shared);
	twheel_free(w->wheel);
	for (int i = 0; i < 2; i++) {
		free(w->frontends[i].name);
		free(w->frontends[i].address);
		free(w->frontends[i].target);
	}
	free(w);
	return 0;
}

json_t *show_world_ask(struct world *w, const char *command)
{
	static const struct stats_caller root = {.level = STATS_ADMIN};
	struct stats_follow *no_follow = NULL;
	char *text = show_answer(w->show, &root, command, &no_follow);
	json_t *whole = json_loads(text, 0, NULL);
	json_t *data = json_incref(json_object_get(whole, "data"));
	assert_non_null(data);
	json_decref(whole);
	free(text);
	return data;
}

void show_world_forget_event(struct xds_watcher *w, const struct xds_event *e)
{
}

const struct xds_type *show_world_cluster_type(void)
{
	for (uint32_t i = 0; i < RES_N_TYPES; i++)
		if (strcmp(res_types[i]->label, "cluster") == 0)
			return res_types[i];
	return NULL;
}

void show_world_say_clusters(
	struct world *w, const char *version, struct str first, struct str second)
{
	struct fake_resource r[] = {{.bytes = (const uint8_t *)first.p, .len = first.len},
		{.bytes = (const uint8_t *)second.p, .len = second.len}};
	fake_ads_settle(&w->server);
	fake_ads_respond(&w->server, show_world_cluster_type()->url, version, version, r, 2);
	fake_ads_settle(&w->server);
}
