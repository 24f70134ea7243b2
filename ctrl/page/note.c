// SPDX-License-Identifier: Apache-2.0
// What is worst of workers, frontends, clusters, endpoints and resources.
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/xds/federation.h"
#include "lb/base/twheel.h"

#include <stdlib.h>
#include <string.h>

enum { FINE, ODD, PARTLY, FAILING }; // badness

// So that rows do not change places for a little more or less: by powers of two.
static int magnitude(double per_s)
{
	int n = 0;
	for (; per_s >= 0.5; per_s /= 2)
		n++;
	return n;
}

static bool is_worse_load(const void *x, const void *y)
{
	const struct look_load *a = x, *b = y;
	if (a->badness != b->badness)
		return a->badness > b->badness;
	int fails_a = magnitude(a->failed_s), fails_b = magnitude(b->failed_s);
	if (fails_a != fails_b)
		return fails_a > fails_b;
	int asks_a = magnitude(a->requests_s), asks_b = magnitude(b->requests_s);
	if (asks_a != asks_b)
		return asks_a > asks_b;
	return strcmp(a->name, b->name) < 0;
}

static bool is_worker_before(const void *x, const void *y)
{
	return ((const struct look_load *)x)->number < ((const struct look_load *)y)->number;
}

static void drop_load(void *row)
{
	struct look_load *r = row;
	free(r->name);
	free(r->error);
}

static bool is_worse_endpoint(const void *x, const void *y)
{
	const struct look_endpoint *a = x, *b = y;
	if (a->badness != b->badness)
		return a->badness > b->badness;
	int of_clusters = strcmp(a->cluster, b->cluster);
	return of_clusters ? of_clusters < 0 : strcmp(a->address, b->address) < 0;
}

static void drop_endpoint(void *row)
{
	struct look_endpoint *r = row;
	free(r->cluster);
	free(r->error);
	free(r->check);
}

static bool is_worse_resource(const void *x, const void *y)
{
	const struct look_resource *a = x, *b = y;
	if (a->badness != b->badness)
		return a->badness > b->badness;
	int of_types = strcmp(a->type, b->type);
	return of_types ? of_types < 0 : strcmp(a->name, b->name) < 0;
}

static void drop_resource(void *row)
{
	struct look_resource *r = row;
	free(r->name);
	free(r->error);
}

bool look_note_init(struct look *l)
{
	static const uint32_t max[] = {[LOAD_WORKER] = LOOK_MAX_WORKERS,
		[LOAD_FRONTEND] = LOOK_MAX_FRONTENDS,
		[LOAD_CLUSTER] = LOOK_MAX_CLUSTERS};
	bool is_whole = true;
	for (int i = 0; i < LOAD_N_KINDS; i++)
		is_whole &= worst_init(&l->loads[i], sizeof(struct look_load), max[i],
			i == LOAD_WORKER ? is_worker_before : is_worse_load, drop_load);
	is_whole &= worst_init(&l->endpoints, sizeof(struct look_endpoint),
		l->cluster ? LOOK_MAX_ENDPOINTS_OF_ONE : LOOK_MAX_ENDPOINTS, is_worse_endpoint,
		drop_endpoint);
	is_whole &= worst_init(&l->resources, sizeof(struct look_resource), LOOK_MAX_RESOURCES,
		is_worse_resource, drop_resource);
	return is_whole;
}

void look_note_fini(struct look *l)
{
	for (int i = 0; i < LOAD_N_KINDS; i++)
		worst_fini(&l->loads[i]);
	worst_fini(&l->endpoints);
	worst_fini(&l->resources);
}

static int load_badness(const struct look_load *r, enum load_kind kind)
{
	if (kind == LOAD_FRONTEND)
		return r->error[0] ? FAILING : strcmp(r->state, "serving") != 0 ? ODD : FINE;
	if (kind == LOAD_WORKER)
		return FINE;
	if (strcmp(r->state, lb_state_name(LB_TRANSIENT_FAILURE)) == 0)
		return FAILING;
	return r->failed_s > 0 ? PARTLY : r->n_failing || r->error[0] ? ODD : FINE;
}

// The rates of the one that was added to the counts last.
static void set_rates(struct look *l, struct look_load *r, enum load_kind kind)
{
	const struct counts *counts = &l->past->counts[kind];
	r->requests_s = r->failed_s = -1;
	if (l->before)
		counts_since(&l->before->counts[kind], &counts->rows[counts->n - 1], &r->requests_s,
			&r->failed_s);
	if (kind != LOAD_FRONTEND)
		return;
	l->n_active += r->active;
	if (r->requests_s >= 0) {
		l->requests_s = r->requests_s + (l->requests_s < 0 ? 0 : l->requests_s);
		l->failed_s = r->failed_s + (l->failed_s < 0 ? 0 : l->failed_s);
	}
}

static void on_load(void *ctx, const struct load *load)
{
	struct look *l = ctx;
	struct look_load row = {
		// Borrowed, until it is known whether the row is kept.
		.name = (char *)(uintptr_t)load->name,
		.error = (char *)(uintptr_t)load->error,
		.state = load->state,
		.number = load->number,
		.n_endpoints = load->n_endpoints,
		.n_ready = load->n_ready,
		.n_failing = load->n_failing,
		.active = load->active,
		.queued = load->queued,
		.connections = load->connections,
		.n_clients = load->n_clients,
		.n_failed = load->failed,
		.n_bad = load->bad,
		.busy_share = load->busy_share,
	};
	l->is_known = l->is_known || load->kind == LOAD_CLUSTER;
	const struct counts_row counts = {.name = row.name,
		.at_ns = twheel_now(l->from->wheel),
		.requests = load->requests,
		.ok = load->ended[LB_CAUSE_OK],
		.failed = load->failed,
		.bad = load->bad};
	if (counts_add(&l->past->counts[load->kind], &counts)) {
		l->failed = true;
		return;
	}
	set_rates(l, &row, load->kind);
	row.badness = load_badness(&row, load->kind);
	l->n_bad[load->kind] += row.badness > FINE;
	if (!worst_wants(&l->loads[load->kind], &row))
		return;
	row.name = look_copy(l, load->name);
	row.error = look_copy(l, load->error);
	if (row.name && row.error)
		worst_add(&l->loads[load->kind], &row);
	else
		drop_load(&row);
}

static int endpoint_badness(const struct assembler_endpoint_info *e, bool has_override)
{
	if (e->state == LB_TRANSIENT_FAILURE || e->record.health.health == LB_MEMBER_UNHEALTHY)
		return FAILING;
	if (e->is_ejected)
		return PARTLY;
	return e->is_failing || has_override ? ODD : FINE;
}

static const char *check_of(const struct lb_health_record *r)
{
	return r->is_checked && r->health == LB_MEMBER_UNHEALTHY ? r->why : "";
}

static void on_endpoint(void *ctx, const char *cluster, const struct assembler_endpoint_info *e)
{
	struct look *l = ctx;
	struct look_endpoint row = {
		.cluster = (char *)(uintptr_t)cluster,
		.state = lb_state_name(e->state),
		.is_ejected = e->is_ejected,
		.is_unhealthy = e->record.health.health == LB_MEMBER_UNHEALTHY,
		.is_failing = e->is_failing,
		.ejected_ns = e->record.ejection.left_ns,
		.active = e->totals.active,
		.requests = e->totals.issued,
		.failed = e->totals.failed,
		.connections = e->connections,
	};
	override_print(&e->override, row.override);
	row.badness = endpoint_badness(e, row.override[0]);
	if (row.badness == FINE && !l->cluster)
		return;
	ip_port_print(&e->addresses[0], row.address);
	if (!worst_wants(&l->endpoints, &row))
		return;
	row.cluster = look_copy(l, cluster);
	row.error = look_copy(l, e->last_error);
	row.check = look_copy(l, check_of(&e->record.health));
	if (row.cluster && row.error && row.check)
		worst_add(&l->endpoints, &row);
	else
		drop_endpoint(&row);
}

const struct load_reader look_load_reader = {.load = on_load, .endpoint = on_endpoint};

static int resource_badness(const struct xds_entry_info *e)
{
	if (e->status == XDS_STATUS_ACKED)
		return e->is_stale ? ODD : FINE;
	if (e->status == XDS_STATUS_REQUESTED)
		return ODD;
	return e->res ? PARTLY : FAILING;
}

static void on_resource(void *ctx, const struct xds_entry_info *e)
{
	struct look *l = ctx;
	struct look_resource row = {
		.badness = resource_badness(e),
		.name = (char *)(uintptr_t)e->name,
		.type = e->type->label,
		.state = e->is_stale && e->status == XDS_STATUS_REQUESTED
	                         ? "STALE"
	                         : xds_status_name(e->status),
		.serves = e->res,
		.at_ns = e->error_ns ? e->error_ns : e->updated_ns,
	};
	if (row.badness == FINE || !worst_wants(&l->resources, &row))
		return;
	row.name = look_copy(l, e->name);
	row.error = look_copy(l, e->error);
	if (row.name && row.error)
		worst_add(&l->resources, &row);
	else
		drop_resource(&row);
}

void look_note_resources(struct look *l)
{
	if (l->from->xds)
		xds_federation_each(l->from->xds, on_resource, l);
}
