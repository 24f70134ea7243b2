// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/load_report.h"

#include "ctrl/assemble/load_numbers.h"
#include "ctrl/assemble/load_servers.h"
#include "ctrl/base/strmap.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/pick/drop.h"
#include "lb/pick/link.h"
#include "lb/pick/loads.h"
#include "lb/pick/metrics.h"
#include "proto/text.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

// How often counters that nobody needs any more are looked at, and for how many looks in a row they
// must have stood still: a worker may pick by an older snapshot for a moment.
#define SWEEP_NS NS_PER_SECOND
#define QUIET_SWEEPS 2 // the rest of what is given back

enum kind { LOCALITY, CATEGORY, N_KINDS };

struct load_counter {
	struct strmap_link link; // by key
	struct load_counter *next; // of the leaf, in order of coming
	struct load_leaf *leaf;
	uint32_t index; // of lb_link.loads
	uint32_t update; // of the leaf's, the last that asked for it
	enum kind kind;
	bool leaving;
	uint8_t quiet; // looks in a row
	struct lb_load_counters told; // what the report has got, of all workers' sums
	struct xds_load_place place; // CATEGORY: its name is where a region's would be
	char texts[]; // key and place
};

struct load_leaf {
	LIST_ENTRY(load_leaf) link; // in the report's
	struct load_report *report;
	struct load_server *to;
	struct xds_load_cluster *cluster; // counted
	struct strmap by_key[N_KINDS];
	struct load_counter *first, **last;
	struct load_counter *expected; // during an update: most ask in the same order again
	uint32_t update;
	uint32_t n_leaving;
	bool gone; // freed but for its last requests
	struct lb_loads *drops; // counted; NULL = none
	struct lb_metrics *metrics; // counted; NULL = none are wanted
};

struct load_report {
	struct load_report_conf conf;
	struct load_servers servers;
	LIST_HEAD(, load_leaf) leaves;
	struct twheel_timer sweep; // armed while something is leaving
	struct load_numbers numbers; // whose owners are counters
	uint32_t n_leaving;
	uint32_t n_lists; // of metrics, so far
	bool refusing; // logged
	struct load_report_info counted;
};

// Counters

static void counter_free(struct load_counter *c)
{
	struct load_leaf *leaf = c->leaf;
	strmap_remove(&leaf->by_key[c->kind], &c->link);
	load_numbers_give(&leaf->report->numbers, c->index, c->kind == CATEGORY);
	leaf->report->counted.n_counters--;
	free(c);
}

// NULL = out of memory, or no number is left.
static struct load_counter *counter_new(
	struct load_leaf *leaf, enum kind kind, const struct xds_load_place *place, const char *key)
{
	struct load_report *r = leaf->report;
	size_t len = strlen(key) + 1;
	struct load_counter *c = calloc(1, sizeof(*c) + len + xds_load_place_size(place));
	if (!c)
		return NULL;
	memcpy(c->texts, key, len);
	c->place = xds_load_place_copy(place, c->texts + len);
	if (strmap_add(&leaf->by_key[kind], &c->link, c->texts)) {
		free(c);
		return NULL;
	}
	c->index = load_numbers_take(&r->numbers, c);
	if (!c->index) {
		strmap_remove(&leaf->by_key[kind], &c->link);
		free(c);
		return NULL;
	}
	c->leaf = leaf;
	c->kind = kind;
	c->told = load_numbers_sum(&r->numbers, c->index);
	r->counted.n_counters++;
	*leaf->last = c;
	leaf->last = &c->next;
	return c;
}

// Finds or makes.
static struct load_counter *counter_obtain(
	struct load_leaf *leaf, enum kind kind, const struct xds_load_place *place)
{
	char *key = xds_load_place_key(place);
	if (!key)
		return NULL;
	struct strmap_link *l = strmap_find(&leaf->by_key[kind], key);
	struct load_counter *c = l ? CONTAINER_OF(l, struct load_counter, link)
	                           : counter_new(leaf, kind, place, key);
	free(key);
	return c;
}

// The update asks for it.
static uint32_t use(struct load_counter *c)
{
	struct load_leaf *leaf = c->leaf;
	c->update = leaf->update;
	c->quiet = 0;
	if (c->leaving) {
		leaf->n_leaving--;
		leaf->report->n_leaving--;
	}
	c->leaving = false;
	return c->index;
}

static uint32_t refuse(struct load_report *r)
{
	r->counted.n_refused++;
	if (!r->refusing)
		log_warn("load reports are incomplete",
			"reason=\"no counter is left, or out of memory\" counters=%u",
			r->numbers.n - 1);
	r->refusing = true;
	return 0;
}

// Reports

// True = all that was counted is told, and nobody is in flight. in_progress: also tell those.
static bool tell_locality(struct load_counter *c, bool in_progress)
{
	const struct load_numbers *numbers = &c->leaf->report->numbers;
	struct lb_load_counters now = load_numbers_sum(numbers, c->index);
	int64_t n_open = load_numbers_in_flight(numbers, c->index, &now);
	struct xds_load_requests add = {
		.issued = now.issued - c->told.issued,
		.ok = now.ok - c->told.ok,
		.error = now.failed - c->told.failed,
		.in_progress = in_progress && n_open > 0 ? (uint64_t)n_open : 0,
	};
	bool quiet = !add.issued && !add.ok && !add.error && n_open == 0;
	if (c->leaving && quiet)
		return true;
	if (xds_load_add_requests(c->leaf->cluster, &c->place, &add) == 0)
		c->told = now; // else the next time tells it
	return quiet;
}

static bool tell_category(struct load_counter *c)
{
	struct lb_load_counters now = load_numbers_sum(&c->leaf->report->numbers, c->index);
	uint64_t n = now.issued - c->told.issued;
	if (n && xds_load_add_drops(c->leaf->cluster, c->place.region, n) == 0)
		c->told = now;
	return n == 0;
}

static bool tell(struct load_counter *c, bool in_progress)
{
	return c->kind == LOCALITY ? tell_locality(c, in_progress) : tell_category(c);
}

static void harvest(void *ctx, const struct load_server *server)
{
	const struct load_report *r = ctx;
	for (struct load_leaf *leaf = LIST_FIRST(&r->leaves); leaf; leaf = LIST_NEXT(leaf, link))
		for (struct load_counter *c = leaf->to == server ? leaf->first : NULL; c;
			c = c->next)
			(void)tell(c, true);
}

// Leaving

static void leaf_destroy(struct load_leaf *leaf)
{
	struct load_report *r = leaf->report;
	for (struct load_counter *c = leaf->first, *next; c; c = next) {
		next = c->next;
		r->n_leaving -= c->leaving;
		counter_free(c);
	}
	for (int kind = 0; kind < N_KINDS; kind++)
		strmap_fini(&leaf->by_key[kind]);
	lb_loads_put(leaf->drops);
	lb_metrics_put(leaf->metrics);
	xds_lrs_cluster_put(leaf->to->lrs, leaf->cluster);
	LIST_REMOVE(leaf, link);
	free(leaf);
}

static void sweep_leaf(struct load_leaf *leaf)
{
	for (struct load_counter **at = &leaf->first; *at;) {
		struct load_counter *c = *at;
		if (c->leaving)
			c->quiet = tell(c, false) ? (uint8_t)(c->quiet + 1) : 0;
		if (c->quiet < QUIET_SWEEPS) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		if (!c->next)
			leaf->last = at;
		leaf->n_leaving--;
		leaf->report->n_leaving--;
		counter_free(c);
	}
	if (leaf->gone && !leaf->first)
		leaf_destroy(leaf);
}

static void arm_sweep(struct load_report *r)
{
	if (r->n_leaving && !twheel_armed(&r->sweep))
		twheel_arm(r->conf.wheel, &r->sweep, twheel_now(r->conf.wheel) + SWEEP_NS);
}

static void sweep_fired(struct twheel_timer *t)
{
	struct load_report *r = CONTAINER_OF(t, struct load_report, sweep);
	for (struct load_leaf *leaf = LIST_FIRST(&r->leaves), *next; leaf; leaf = next) {
		next = LIST_NEXT(leaf, link);
		if (leaf->n_leaving)
			sweep_leaf(leaf);
	}
	arm_sweep(r);
}

// What the last update did not ask for.
static void leave(struct load_leaf *leaf)
{
	for (struct load_counter *c = leaf->first; c; c = c->next) {
		if (c->update == leaf->update || c->leaving)
			continue;
		c->leaving = true;
		leaf->n_leaving++;
		leaf->report->n_leaving++;
	}
	arm_sweep(leaf->report);
}

// The owner's side

struct load_report *load_report_new(const struct load_report_conf *conf)
{
	struct load_report *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->conf = *conf;
	r->sweep.fire = sweep_fired;
	uint32_t n_numbers = conf->max_counters ? conf->max_counters + 1 : LB_MAX_LOADS;
	r->servers = (struct load_servers){.conf = &r->conf, .harvest = harvest, .ctx = r};
	if (load_numbers_init(&r->numbers, conf->workers, conf->wheel, n_numbers) ||
		load_servers_init(&r->servers)) {
		load_report_free(r);
		return NULL;
	}
	return r;
}

void load_report_free(struct load_report *r)
{
	if (!r)
		return;
	for (struct load_leaf *leaf; (leaf = LIST_FIRST(&r->leaves));) {
		CHECK(leaf->gone);
		leaf_destroy(leaf);
	}
	twheel_cancel(r->conf.wheel, &r->sweep);
	load_servers_fini(&r->servers);
	load_numbers_fini(&r->numbers);
	free(r);
}

bool load_report_finish(struct load_report *r)
{
	return load_servers_finish(&r->servers);
}

void load_report_event(struct load_report *r, const struct lb_event *event)
{
	CHECK(event->kind == LB_EVENT_METRIC);
	const struct load_counter *c = load_numbers_owner(&r->numbers, event->load);
	const struct lb_metrics *m = c ? c->leaf->metrics : NULL;
	char made[sizeof(event->metric.name) + 16];
	const char *name = NULL;
	if (m && m->list == event->metric.list)
		name = event->metric.index == LB_METRIC_NONE
		               ? made
		               : lb_metrics_name(m, event->metric.index);
	snprintf(made, sizeof(made), "named_metrics.%s", event->metric.name);
	// A name that is not UTF-8 would make the server refuse the whole report.
	if (!name || c->kind != LOCALITY || !isfinite(event->metric.value) ||
		!proto_is_utf8(name) ||
		xds_load_add_metric(c->leaf->cluster, &c->place, name, 1, event->metric.value))
		r->counted.n_stray_metrics++;
}

struct load_leaf *load_leaf_new(struct load_report *r, const struct xds_server_conf *server,
	const char *cluster, const char *eds_service)
{
	struct load_leaf *leaf = calloc(1, sizeof(*leaf));
	struct load_server *to = leaf ? load_servers_obtain(&r->servers, server) : NULL;
	struct xds_load_cluster *c = to ? xds_lrs_cluster_get(to->lrs, cluster, eds_service) : NULL;
	if (!c) {
		free(leaf);
		return NULL;
	}
	*leaf = (struct load_leaf){.report = r, .to = to, .cluster = c, .last = &leaf->first};
	LIST_INSERT_HEAD(&r->leaves, leaf, link);
	return leaf;
}

void load_leaf_free(struct load_leaf *leaf)
{
	if (!leaf)
		return;
	leaf->gone = true;
	leaf->update++;
	leave(leaf);
	if (!leaf->first)
		leaf_destroy(leaf);
}

int load_leaf_set_metrics(struct load_leaf *leaf, const char *const *metrics, uint32_t n)
{
	struct lb_metrics *m;
	int rc = lb_metrics_new(metrics, n, leaf->report->n_lists + 1, &m);
	if (rc)
		return rc;
	if (lb_metrics_same(leaf->metrics, m)) {
		lb_metrics_put(m);
		return 0;
	}
	leaf->report->n_lists++;
	lb_metrics_put(leaf->metrics);
	leaf->metrics = m;
	return 0;
}

struct lb_metrics *load_leaf_metrics(const struct load_leaf *leaf)
{
	return leaf->metrics;
}

void load_leaf_begin(struct load_leaf *leaf)
{
	leaf->update++;
	leaf->expected = leaf->first;
}

static bool is_at(const struct load_counter *c, const struct xds_load_place *p)
{
	return strcmp(c->place.region, p->region) == 0 && strcmp(c->place.zone, p->zone) == 0 &&
	       strcmp(c->place.sub_zone, p->sub_zone) == 0;
}

uint32_t load_leaf_locality(
	struct load_leaf *leaf, const char *region, const char *zone, const char *sub_zone)
{
	struct xds_load_place place = {region, zone, sub_zone};
	struct load_counter *c = leaf->expected;
	if (!c || c->kind != LOCALITY || !is_at(c, &place))
		c = counter_obtain(leaf, LOCALITY, &place);
	if (!c)
		return refuse(leaf->report);
	leaf->expected = c->next;
	return use(c);
}

static uint32_t use_category(struct load_leaf *leaf, const char *name)
{
	struct load_counter *c =
		counter_obtain(leaf, CATEGORY, &(struct xds_load_place){name, "", ""});
	return c ? use(c) : refuse(leaf->report);
}

static bool same_loads(const struct lb_loads *a, const struct lb_loads *b)
{
	return a && a->breaker == b->breaker && a->n_drops == b->n_drops &&
	       memcmp(a->drops, b->drops, b->n_drops * sizeof(b->drops[0])) == 0;
}

struct lb_loads *load_leaf_drops(
	struct load_leaf *leaf, const struct lb_drop_category *categories, uint32_t n)
{
	struct lb_loads *loads = lb_loads_new(n);
	if (!loads) {
		(void)refuse(leaf->report);
		return NULL;
	}
	loads->breaker = use_category(leaf, ""); // LR-07
	for (uint32_t i = 0; i < n; i++)
		loads->drops[i] = use_category(leaf, categories[i].name);
	if (same_loads(leaf->drops, loads)) {
		lb_loads_put(loads);
		return leaf->drops;
	}
	lb_loads_put(leaf->drops);
	leaf->drops = loads;
	return loads;
}

void load_leaf_end(struct load_leaf *leaf)
{
	leave(leaf);
}

void load_report_info(const struct load_report *r, struct load_report_info *ret)
{
	*ret = r->counted;
	ret->n_leaving = r->n_leaving;
	load_servers_info(&r->servers, &ret->stream);
}
