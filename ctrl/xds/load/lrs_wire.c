// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/load/lrs_wire.h"

#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/load/load.h"
#include "envoy/service/load_stats/v3/lrs.pb-c.h"
#include "lb/base/time.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_INTERVAL_NS NS_PER_SECOND // LR-03
#define MAX_INTERVAL_S (24 * 3600) // what is longer was not meant; counts would pile up

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Service__LoadStats__V3__LoadStatsRequest Request;
typedef Envoy__Service__LoadStats__V3__LoadStatsResponse Response;
typedef Envoy__Config__Endpoint__V3__ClusterStats ClusterStats;
typedef Envoy__Config__Endpoint__V3__ClusterStats__DroppedRequests DroppedRequests;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats LocalityStats;
typedef Envoy__Config__Endpoint__V3__EndpointLoadMetricStats MetricStats;
typedef Envoy__Config__Endpoint__V3__UnnamedEndpointLoadMetricStats UnnamedStats;

// protobuf-c's structs have no const; what is packed is only read.
static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

int xds_lrs_encode_hello(const struct xds_node *n, uint8_t **ret, size_t *ret_len)
{
	static char SEND_ALL[] = "envoy.lrs.supports_send_all_clusters"; // BT-08
	Envoy__Config__Core__V3__Node node = n->msg;
	Request m;
	envoy__service__load_stats__v3__load_stats_request__init(&m);
	char **features = calloc(node.n_client_features + 1, sizeof(*features));
	if (!features)
		return -ENOMEM;
	for (size_t i = 0; i < node.n_client_features; i++)
		features[i] = node.client_features[i];
	features[node.n_client_features++] = SEND_ALL;
	node.client_features = features;
	m.node = &node;
	int rc = proto_pack(&m.base, ret, ret_len);
	free(features);
	return rc;
}

// Reports. Each fill function takes its memory from the arena: 0 or -ENOMEM.

// A85: these three have fields of their own. True = it was one of them.
static bool fill_unnamed(LocalityStats *m, const char *name, UnnamedStats *stats)
{
	if (strcmp(name, "cpu_utilization") == 0)
		m->cpu_utilization = stats;
	else if (strcmp(name, "mem_utilization") == 0)
		m->mem_utilization = stats;
	else if (strcmp(name, "application_utilization") == 0)
		m->application_utilization = stats;
	else
		return false;
	return true;
}

static int fill_metrics(struct lb_arena *a, LocalityStats *m, const struct xds_load_locality *l)
{
	m->load_metric_stats = lb_arena_alloc(a, XDS_LOAD_MAX_METRICS, sizeof(MetricStats *));
	if (!m->load_metric_stats)
		return -ENOMEM;
	for (const struct xds_load_metric *i = l->metrics; i; i = i->next) {
		if (i->n.sending == 0)
			continue;
		UnnamedStats *unnamed = lb_arena_alloc(a, 1, sizeof(*unnamed));
		MetricStats *named = lb_arena_alloc(a, 1, sizeof(*named));
		if (!unnamed || !named)
			return -ENOMEM;
		envoy__config__endpoint__v3__unnamed_endpoint_load_metric_stats__init(unnamed);
		unnamed->num_requests_finished_with_metric = i->n.sending;
		unnamed->total_metric_value = i->sending_total;
		if (fill_unnamed(m, i->name, unnamed))
			continue;
		envoy__config__endpoint__v3__endpoint_load_metric_stats__init(named);
		named->metric_name = text(i->name);
		named->num_requests_finished_with_metric = i->n.sending;
		named->total_metric_value = i->sending_total;
		m->load_metric_stats[m->n_load_metric_stats++] = named;
	}
	return 0;
}

static int fill_locality(struct lb_arena *a, LocalityStats *m, const struct xds_load_locality *l)
{
	Envoy__Config__Core__V3__Locality *place = lb_arena_alloc(a, 1, sizeof(*place));
	if (!place)
		return -ENOMEM;
	envoy__config__core__v3__locality__init(place);
	place->region = text(l->place.region);
	place->zone = text(l->place.zone);
	place->sub_zone = text(l->place.sub_zone);
	envoy__config__endpoint__v3__upstream_locality_stats__init(m);
	m->locality = place;
	m->total_issued_requests = l->issued.sending;
	m->total_successful_requests = l->ok.sending;
	m->total_error_requests = l->error.sending;
	m->total_requests_in_progress = l->in_progress;
	return l->metrics ? fill_metrics(a, m, l) : 0;
}

static int fill_localities(struct lb_arena *a, ClusterStats *m, const struct xds_load_cluster *c)
{
	size_t n = 0;
	for (const struct xds_load_locality *l = c->localities; l; l = l->next)
		n++;
	LocalityStats *stats = lb_arena_alloc(a, n, sizeof(*stats));
	m->upstream_locality_stats = lb_arena_alloc(a, n, sizeof(LocalityStats *));
	if (!stats || !m->upstream_locality_stats)
		return -ENOMEM;
	for (const struct xds_load_locality *l = c->localities; l; l = l->next) {
		LocalityStats *s = &stats[m->n_upstream_locality_stats];
		if (fill_locality(a, s, l))
			return -ENOMEM;
		m->upstream_locality_stats[m->n_upstream_locality_stats++] = s;
	}
	return 0;
}

// LR-07.
static int fill_drops(struct lb_arena *a, ClusterStats *m, const struct xds_load_cluster *c)
{
	size_t n = 0;
	for (const struct xds_load_drop *d = c->drops; d; d = d->next)
		n++;
	DroppedRequests *drops = lb_arena_alloc(a, n, sizeof(*drops));
	m->dropped_requests = lb_arena_alloc(a, n, sizeof(DroppedRequests *));
	if (!drops || !m->dropped_requests)
		return -ENOMEM;
	for (const struct xds_load_drop *d = c->drops; d; d = d->next) {
		m->total_dropped_requests += d->n.sending;
		if (d->n.sending == 0 || !*d->category)
			continue;
		DroppedRequests *s = &drops[m->n_dropped_requests];
		envoy__config__endpoint__v3__cluster_stats__dropped_requests__init(s);
		s->category = text(d->category);
		s->dropped_count = d->n.sending;
		m->dropped_requests[m->n_dropped_requests++] = s;
	}
	return 0;
}

static int fill_cluster(struct lb_arena *a, ClusterStats *m, const struct xds_load_cluster *c)
{
	Google__Protobuf__Duration *interval = lb_arena_alloc(a, 1, sizeof(*interval));
	if (!interval)
		return -ENOMEM;
	uint64_t ns = c->taken_ns - c->since_ns; // LR-05
	google__protobuf__duration__init(interval);
	interval->seconds = (int64_t)(ns / NS_PER_SECOND);
	interval->nanos = (int32_t)(ns % NS_PER_SECOND);
	envoy__config__endpoint__v3__cluster_stats__init(m);
	m->cluster_name = text(c->name);
	m->cluster_service_name = text(c->service);
	m->load_report_interval = interval;
	return fill_localities(a, m, c) || fill_drops(a, m, c) ? -ENOMEM : 0;
}

int xds_lrs_encode_report(struct xds_load_cluster *first, uint8_t **ret, size_t *ret_len)
{
	struct lb_arena arena = {0};
	Request m;
	size_t n = 0, len = 0;
	int rc = 0;
	envoy__service__load_stats__v3__load_stats_request__init(&m);
	for (const struct xds_load_cluster *c = first; c; c = TAILQ_NEXT(c, order))
		n += c->sending;
	ClusterStats *stats = lb_arena_alloc(&arena, n, sizeof(*stats));
	m.cluster_stats = lb_arena_alloc(&arena, n, sizeof(ClusterStats *));
	if (!stats || !m.cluster_stats)
		rc = -ENOMEM;
	for (struct xds_load_cluster *c = first; c && !rc; c = TAILQ_NEXT(c, order)) {
		if (!c->sending)
			continue;
		ClusterStats *s = &stats[m.n_cluster_stats];
		rc = fill_cluster(&arena, s, c);
		if (rc)
			break;
		len += PROTO_HEAD_MAX + protobuf_c_message_get_packed_size(&s->base);
		if (len > XDS_LRS_MESSAGE_LEN && m.n_cluster_stats)
			break;
		m.cluster_stats[m.n_cluster_stats++] = s;
		c->leaving = true;
	}
	if (!rc)
		rc = proto_pack(&m.base, ret, ret_len);
	lb_arena_fini(&arena);
	return rc;
}

// Settings

static uint64_t interval_ns(const Google__Protobuf__Duration *d)
{
	if (!d || d->seconds < 0 || d->nanos < 0 || (uint64_t)d->nanos >= NS_PER_SECOND)
		return MIN_INTERVAL_NS;
	if (d->seconds >= MAX_INTERVAL_S)
		return MAX_INTERVAL_S * NS_PER_SECOND;
	uint64_t ns = (uint64_t)d->seconds * NS_PER_SECOND + (uint64_t)d->nanos;
	return ns > MIN_INTERVAL_NS ? ns : MIN_INTERVAL_NS;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int keep_names(struct xds_lrs_settings *w, const Response *m)
{
	w->clusters = lb_arena_alloc(&w->arena, m->n_clusters, sizeof(char *));
	if (!w->clusters)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_clusters; i++) {
		w->clusters[i] = lb_arena_strdup(&w->arena, m->clusters[i]);
		if (!w->clusters[i])
			return -ENOMEM;
	}
	qsort(w->clusters, m->n_clusters, sizeof(char *), by_text);
	w->n_clusters = m->n_clusters;
	return 0;
}

int xds_lrs_decode_settings(
	const uint8_t *bytes, size_t len, struct xds_lrs_settings *ret, struct lb_err *err)
{
	Response *m = proto_unpack(
		&envoy__service__load_stats__v3__load_stats_response__descriptor, bytes, len, err);
	if (!m)
		return -EINVAL;
	struct xds_lrs_settings w = {
		.all = m->send_all_clusters,
		.interval_ns = interval_ns(m->load_reporting_interval),
	};
	int rc = w.all ? 0 : keep_names(&w, m);
	proto_free(m);
	if (rc)
		xds_lrs_settings_fini(&w);
	else
		*ret = w;
	return rc;
}

void xds_lrs_settings_fini(struct xds_lrs_settings *w)
{
	lb_arena_fini(&w->arena);
	*w = (struct xds_lrs_settings){0};
}

bool xds_lrs_settings_eq(const struct xds_lrs_settings *a, const struct xds_lrs_settings *b)
{
	if (a->all != b->all || a->interval_ns != b->interval_ns || a->n_clusters != b->n_clusters)
		return false;
	for (size_t i = 0; i < a->n_clusters; i++)
		if (strcmp(a->clusters[i], b->clusters[i]) != 0)
			return false;
	return true;
}

bool xds_lrs_settings_want(const struct xds_lrs_settings *w, const char *cluster)
{
	return w->all || (w->n_clusters && bsearch(&cluster, w->clusters, w->n_clusters,
						   sizeof(char *), by_text));
}
