// SPDX-License-Identifier: Apache-2.0
#include "ctrl/deps/depmgr.h"

#include "ctrl/deps/compose.h"
#include "ctrl/deps/config.h"
#include "ctrl/deps/dns_source.h"
#include "ctrl/deps/nodes.h"
#include "ctrl/deps/walk.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/listener.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_NAMES_SHOWN 5 // of what is missing
#define RETRY_NS NS_PER_SECOND // after running out of memory
// What waits holds newer endpoints of what serves up no longer: most often it is there sooner.
#define MEANWHILE_NS NS_PER_SECOND
// What no server can be asked for holds up what others say no longer than what is absent (FM-04).
#define PATIENCE_NS (15 * NS_PER_SECOND)
#define IN_USE_INTERVAL_NS NS_PER_SECOND // of clusters that requests hold
#define REFRESH_INTERVAL_NS NS_PER_SECOND // many connections fail at once
// A configuration is made as a whole, so that many changes of a large one would take the square of
// its size: the next one rests for several times as long as this one took. Small ones need none.
#define REST_FROM_CLUSTERS 1000
#define REST_NS_PER_CLUSTER 10000ull

struct depmgr {
	struct depmgr_conf conf;
	struct depmgr_sub *subs;
	char *listener_name, *authority, *node_id;
	struct nodes nodes;
	struct node *listener; // in nodes, always
	struct xds_settled settled;
	struct twheel_timer kick;
	struct twheel_timer retry;
	struct twheel_timer refresh; // of names
	struct twheel_timer patience; // with servers that can't be reached
	struct twheel_timer meanwhile; // newer endpoints of what serves
	struct twheel_timer in_use; // asks whether requests hold clusters still
	uint64_t refreshed_ns; // the last time; 0 = never
	uint64_t rest_until_ns;
	struct walk_found found; // by the last walk
	bool busy; // a pass is running
	struct xds_config *config; // counted; the last delivered one; NULL = none
	char *error; // the last delivered one; NULL = none
	char *waiting, *refused; // for operators
};

static void set_text(char **at, char *text)
{
	free(*at);
	*at = text;
}

static void find_out(struct depmgr *dm)
{
	const struct walk from = {
		.nodes = &dm->nodes,
		.listener = dm->listener,
		.authority = dm->authority,
		.subs = dm->subs,
		.in_use = dm->conf.in_use,
		.ctx = dm->conf.ctx,
		.serves = dm->config,
	};
	walk(&from, &dm->found);
}

static void deliver_error(struct depmgr *dm, const char *text)
{
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	if (!dm->config && dm->error && strcmp(dm->error, text) == 0)
		return;
	xds_config_put(dm->config);
	dm->config = NULL;
	dm->nodes.serving = false;
	nodes_give_up(&dm->nodes);
	set_text(&dm->error, strdup(text));
	dm->conf.on_error(dm->conf.ctx, text);
}

// The config is counted for the manager.
static void put_in_use(struct depmgr *dm, struct xds_config *config)
{
	if (config->n_clusters >= REST_FROM_CLUSTERS)
		dm->rest_until_ns =
			twheel_now(dm->conf.wheel) + config->n_clusters * REST_NS_PER_CLUSTER;
	if (dm->config && xds_config_eq(dm->config, config)) {
		xds_config_put(config);
		return;
	}
	xds_config_put(dm->config);
	dm->config = config;
	dm->nodes.serving = true;
	set_text(&dm->error, NULL);
	dm->conf.on_update(dm->conf.ctx, config);
}

// DM-05, DM-29: a change is delivered once, equal content not at all. False = out of memory.
static bool deliver(struct depmgr *dm)
{
	struct xds_config *config = compose(&(struct composition){
		.nodes = &dm->nodes,
		.n_clusters = nodes_take(&dm->nodes),
		.listener = dm->listener,
		.route_node = dm->found.route_node,
		.routes = dm->found.routes,
		.vhost = dm->found.vhost,
		.node_id = dm->node_id,
		.last = dm->config,
	});
	if (!config)
		return false;
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	put_in_use(dm, config);
	if (dm->found.keeps) // no longer: the next pass sweeps them
		dm->nodes.dirty = dm->nodes.reshaped = true;
	return true;
}

// Unlike DM-05, by which nothing is delivered while anything is missing: endpoints that are gone
// serve nobody, and a cluster that never comes would hold all others to theirs.
static void meanwhile_fired(struct twheel_timer *t)
{
	struct depmgr *dm = CONTAINER_OF(t, struct depmgr, meanwhile);
	const struct composition in = {
		.nodes = &dm->nodes,
		.listener = dm->listener,
		.route_node = dm->found.route_node,
		.node_id = dm->node_id,
		.last = dm->config,
	};
	struct xds_config *config;
	if (compose_meanwhile(&in, &config))
		twheel_arm(dm->conf.wheel, t, twheel_now(dm->conf.wheel) + RETRY_NS);
	else if (config)
		put_in_use(dm, config);
}

static void reconcile_later(struct depmgr *dm)
{
	uint64_t now_ns = twheel_now(dm->conf.wheel);
	twheel_arm(
		dm->conf.wheel, &dm->kick, now_ns < dm->rest_until_ns ? dm->rest_until_ns : now_ns);
}

// As long as nothing at all comes in, there is nothing that could be held up.
static void be_patient(struct depmgr *dm)
{
	if (dm->nodes.n_withheld == 0)
		twheel_cancel(dm->conf.wheel, &dm->patience);
	else if (dm->nodes.heard && !twheel_armed(&dm->patience))
		twheel_arm(dm->conf.wheel, &dm->patience, twheel_now(dm->conf.wheel) + PATIENCE_NS);
	if (dm->nodes.n_unresolved[true] == 0) // all is delivered
		dm->nodes.heard = false;
}

static void reconcile(struct depmgr *dm)
{
	if (dm->busy)
		return;
	dm->busy = true;
	do { // a watch that fails at once comes back as an event
		xds_federation_begin(dm->conf.client);
		if (dm->nodes.reshaped)
			find_out(dm);
		// The walk has read what came inside it.
		dm->nodes.dirty = dm->nodes.reshaped = false;
		xds_federation_end(dm->conf.client);
	} while (dm->nodes.dirty);
	bool out_of_memory = dm->found.outcome == WALK_OUT_OF_MEMORY;
	if (dm->found.outcome == WALK_FAILED)
		deliver_error(dm, dm->found.error ? dm->found.error : "out of memory");
	else if (dm->found.outcome == WALK_COMPLETE && dm->nodes.n_unresolved[true] == 0)
		out_of_memory = !deliver(dm);
	else if (dm->config && !twheel_armed(&dm->meanwhile))
		twheel_arm(
			dm->conf.wheel, &dm->meanwhile, twheel_now(dm->conf.wheel) + MEANWHILE_NS);
	dm->busy = false;
	twheel_cancel(dm->conf.wheel, &dm->retry);
	if (out_of_memory) { // no event may ever come: the server has said everything
		dm->nodes.reshaped = true;
		twheel_arm(dm->conf.wheel, &dm->retry, twheel_now(dm->conf.wheel) + RETRY_NS);
	}
	if (dm->found.n_held && !twheel_armed(&dm->in_use))
		twheel_arm(dm->conf.wheel, &dm->in_use,
			twheel_now(dm->conf.wheel) + IN_USE_INTERVAL_NS);
	be_patient(dm);
	if (dm->nodes.dirty)
		reconcile_later(dm);
}

static void on_settled(struct xds_settled *s)
{
	struct depmgr *dm = CONTAINER_OF(s, struct depmgr, settled);
	if (!dm->nodes.dirty || twheel_armed(&dm->kick))
		return;
	if (twheel_now(dm->conf.wheel) < dm->rest_until_ns)
		reconcile_later(dm);
	else
		reconcile(dm);
}

static void kick_fired(struct twheel_timer *t)
{
	reconcile(CONTAINER_OF(t, struct depmgr, kick));
}

static void retry_fired(struct twheel_timer *t)
{
	reconcile(CONTAINER_OF(t, struct depmgr, retry));
}

static void patience_fired(struct twheel_timer *t)
{
	struct depmgr *dm = CONTAINER_OF(t, struct depmgr, patience);
	nodes_give_up(&dm->nodes);
	dm->nodes.heard = false; // what routes still hold up must wait for them
	reconcile(dm);
}

static void in_use_fired(struct twheel_timer *t)
{
	struct depmgr *dm = CONTAINER_OF(t, struct depmgr, in_use);
	dm->nodes.reshaped = true;
	reconcile(dm);
}

// All that is found out in one turn of the wheel is one event.
static void on_news(struct nodes *nodes)
{
	struct depmgr *dm = CONTAINER_OF(nodes, struct depmgr, nodes);
	if (!dm->busy)
		reconcile_later(dm);
}

static void refresh_names(struct depmgr *dm)
{
	dm->refreshed_ns = twheel_now(dm->conf.wheel);
	for (const struct node *n = dm->nodes.all; n; n = n->next)
		if (n->dns)
			dns_source_refresh(n->dns);
}

static void refresh_fired(struct twheel_timer *t)
{
	refresh_names(CONTAINER_OF(t, struct depmgr, refresh));
}

void depmgr_reresolve(struct depmgr *dm)
{
	uint64_t at_ns = dm->refreshed_ns ? dm->refreshed_ns + REFRESH_INTERVAL_NS : 0;
	if (twheel_armed(&dm->refresh))
		return;
	if (twheel_now(dm->conf.wheel) < at_ns)
		twheel_arm(dm->conf.wheel, &dm->refresh, at_ns);
	else
		refresh_names(dm);
}

struct depmgr_sub *depmgr_subscribe(struct depmgr *dm, const char *cluster)
{
	struct depmgr_sub *s = dm->subs;
	while (s && strcmp(s->name, cluster) != 0)
		s = s->next;
	if (!s) {
		size_t size = strlen(cluster) + 1;
		s = calloc(1, sizeof(*s) + size);
		if (!s)
			return NULL;
		memcpy(s->name, cluster, size);
		s->dm = dm;
		s->next = dm->subs;
		dm->subs = s;
		dm->nodes.dirty = dm->nodes.reshaped = true;
		reconcile_later(dm);
	}
	s->n_refs++;
	return s;
}

void depmgr_unsubscribe(struct depmgr_sub **sub)
{
	struct depmgr_sub *s = *sub;
	*sub = NULL;
	if (!s || --s->n_refs > 0)
		return;
	struct depmgr *dm = s->dm;
	struct depmgr_sub **at = &dm->subs;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	free(s);
	dm->nodes.dirty = dm->nodes.reshaped = true;
	reconcile_later(dm);
}

struct depmgr *depmgr_new(const struct depmgr_conf *conf)
{
	struct depmgr *dm = calloc(1, sizeof(*dm));
	if (!dm)
		return NULL;
	dm->conf = *conf;
	dm->nodes = (struct nodes){
		.client = conf->client,
		.dns = conf->dns,
		.reshaped = true,
		.on_news = on_news,
	};
	dm->settled.fn = on_settled;
	dm->kick.fire = kick_fired;
	dm->retry.fire = retry_fired;
	dm->refresh.fire = refresh_fired;
	dm->patience.fire = patience_fired;
	dm->meanwhile.fire = meanwhile_fired;
	dm->in_use.fire = in_use_fired;
	dm->listener_name = strdup(conf->listener_name);
	dm->node_id = strdup(conf->node_id);
	dm->authority = conf->authority ? strdup(conf->authority) : NULL;
	xds_federation_add_settled(conf->client, &dm->settled);
	// What is cached is acted on in the first turn of the wheel, not inside this call.
	twheel_arm(conf->wheel, &dm->kick, twheel_now(conf->wheel));
	if (dm->listener_name && dm->node_id && (dm->authority || !conf->authority))
		dm->listener = conf->listener ? node_fixed(&dm->nodes, &conf->listener->base)
		                              : node_new(&dm->nodes, &res_type_listener,
							dm->listener_name, NULL);
	if (!dm->listener) {
		depmgr_free(dm);
		return NULL;
	}
	return dm;
}

void depmgr_free(struct depmgr *dm)
{
	if (!dm)
		return;
	CHECK(!dm->subs);
	twheel_cancel(dm->conf.wheel, &dm->kick);
	twheel_cancel(dm->conf.wheel, &dm->retry);
	twheel_cancel(dm->conf.wheel, &dm->refresh);
	twheel_cancel(dm->conf.wheel, &dm->patience);
	twheel_cancel(dm->conf.wheel, &dm->meanwhile);
	twheel_cancel(dm->conf.wheel, &dm->in_use);
	xds_federation_remove_settled(dm->conf.client, &dm->settled);
	xds_federation_begin(dm->conf.client);
	nodes_fini(&dm->nodes);
	xds_federation_end(dm->conf.client);
	xds_config_put(dm->config);
	free(dm->error);
	free(dm->waiting);
	free(dm->refused);
	free(dm->found.error);
	free(dm->listener_name);
	free(dm->authority);
	free(dm->node_id);
	free(dm);
}

struct missing {
	FILE *f;
	unsigned n;
};

static void tell_missing(struct missing *m, const char *what, const char *name)
{
	if (m->n++ < N_NAMES_SHOWN)
		fprintf(m->f, "%s%s %s", m->n > 1 ? ", " : "", what, name);
}

const char *depmgr_waiting(struct depmgr *dm)
{
	set_text(&dm->waiting, NULL);
	size_t len;
	FILE *f = open_memstream(&dm->waiting, &len);
	if (!f)
		return "";
	struct missing m = {.f = f};
	for (const struct node *i = dm->nodes.all; i; i = i->next) {
		if (i->waited && !node_resolved(i))
			tell_missing(&m, i->type->label, node_name(i));
		if (i->waited && i->dns && !i->dns->answered)
			tell_missing(&m, "addresses of", i->dns->cluster->dns.host);
	}
	if (m.n > N_NAMES_SHOWN)
		fprintf(f, " and %u more", m.n - N_NAMES_SHOWN);
	return fclose(f) == 0 ? dm->waiting : "";
}

static void find_refused(void *ctx, const struct xds_entry_info *e)
{
	struct depmgr *dm = ctx;
	if (e->status != XDS_STATUS_NACKED || dm->refused)
		return;
	const struct node *own[] = {dm->listener, dm->found.route_node};
	for (int i = 0; i < 2; i++)
		if (own[i] && own[i]->type == e->type && strcmp(node_name(own[i]), e->name) == 0)
			set_text(&dm->refused, strdup(e->error));
}

const char *depmgr_refused(struct depmgr *dm)
{
	set_text(&dm->refused, NULL);
	xds_federation_each(dm->conf.client, find_refused, dm);
	return dm->refused ? dm->refused : "";
}
