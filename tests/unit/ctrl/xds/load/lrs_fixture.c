// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/xds/load/lrs_fixture.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/check.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest Request;
typedef Envoy__Config__Endpoint__V3__ClusterStats ClusterStats;
typedef Envoy__Config__Endpoint__V3__UpstreamLocalityStats LocalityStats;
typedef Envoy__Config__Endpoint__V3__UnnamedEndpointLoadMetricStats UnnamedStats;

// The transport

struct fake_transport {
	struct xds_transport base; // first member
	struct lrs_fixture *f;
};
struct xds_stream {
	struct lrs_fixture *f;
};

static struct xds_stream *stream_new(struct xds_transport *base, const char *method,
	const struct xds_stream_events *events, void *ctx)
{
	struct lrs_fixture *f = ((struct fake_transport *)base)->f;
	CHECK(!f->stream);
	CHECK(strcmp(method, // LR-01
		      "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats") == 0);
	f->stream = calloc(1, sizeof(*f->stream));
	if (!f->stream)
		return NULL;
	f->stream->f = f;
	f->events = events;
	f->stream_ctx = ctx;
	f->sending = f->reading = f->ended = false;
	f->n_streams++;
	return f->stream;
}

static int stream_send(struct xds_stream *s, const uint8_t *bytes, size_t len)
{
	struct lrs_fixture *f = s->f;
	CHECK(f->stream == s && !f->sending && !f->ended && f->n_sent < LRS_MAX_SENT);
	Request *r = envoy__service__load_stats__v3__load_stats_request__unpack(NULL, len, bytes);
	if (!r)
		return -ENOMEM;
	f->sending = true;
	f->sent[f->n_sent++] = r;
	return 0;
}

static void stream_read(struct xds_stream *s)
{
	CHECK(s->f->stream == s && !s->f->reading);
	s->f->reading = true;
}

static void stream_end(struct xds_stream *s)
{
	CHECK(s->f->stream == s && !s->f->sending && !s->f->ended);
	s->f->ended = true;
}

static void stream_free(struct xds_stream *s)
{
	CHECK(s->f->stream == s);
	s->f->stream = NULL;
	s->f->sending = false;
	free(s);
}

static void transport_free(struct xds_transport *base)
{
	struct fake_transport *t = (struct fake_transport *)base;
	CHECK(!t->f->stream);
	t->f->n_transports--;
	free(t);
}

static const struct xds_transport_ops ops = {
	.stream_new = stream_new,
	.stream_send = stream_send,
	.stream_read = stream_read,
	.stream_end = stream_end,
	.stream_free = stream_free,
	.free = transport_free,
};

static int fake_connect(void *ctx, const struct xds_server_conf *conf, struct xds_transport **ret,
	struct lb_err *err)
{
	struct lrs_fixture *f = ctx;
	if (f->refuse)
		return lb_err_set(err, "no credentials");
	struct fake_transport *t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->base.ops = &ops;
	t->f = f;
	f->n_transports++;
	*ret = &t->base;
	return 0;
}

struct xds_transport_factory lrs_factory(struct lrs_fixture *f)
{
	return (struct xds_transport_factory){fake_connect, f};
}

// Counting

static void harvest(void *ctx)
{
	struct lrs_fixture *f = ctx;
	f->n_harvests++;
	for (unsigned i = 0; i < LRS_MAX_SOURCES; i++) {
		struct source *s = &f->sources[i];
		if (!s->cluster)
			continue;
		if (xds_load_add_requests(s->cluster, &s->place, &s->requests) == 0)
			s->requests.issued = s->requests.ok = s->requests.error = 0;
		if (s->category && s->n_dropped &&
			xds_load_add_drops(s->cluster, s->category, s->n_dropped) == 0)
			s->n_dropped = 0;
		if (s->metric && s->n_metric &&
			xds_load_add_metric(
				s->cluster, &s->place, s->metric, s->n_metric, s->total) == 0) {
			s->n_metric = 0;
			s->total = 0;
		}
	}
}

static void on_log(void *ctx, const char *line)
{
	struct lrs_fixture *f = ctx;
	f->n_logged++;
	snprintf(f->logged, sizeof(f->logged), "%s", line);
}

void lrs_init(struct lrs_fixture *f)
{
	static const char JSON[] =
		"{\"xds_servers\":[{\"server_uri\":\"lrs:1\",\"channel_creds\":"
		"[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"me\",\"cluster\":\"here\"}}";
	struct lb_err err;
	*f = (struct lrs_fixture){.now_ns = 1000 * S};
	assert_int_equal(xds_bootstrap_parse(JSON, strlen(JSON), "test", &f->bootstrap, &err), 0);
	assert_int_equal(xds_node_init(&f->node, f->bootstrap, "1.2.3"), 0);
	f->wheel = twheel_new(f->now_ns);
	assert_non_null(f->wheel);
	rand_init(&f->rand, 1);
	f->lrs = xds_lrs_new(&(struct xds_lrs_conf){
		.server = &f->bootstrap->servers[0],
		.transport = lrs_factory(f),
		.node = &f->node,
		.wheel = f->wheel,
		.rand = &f->rand,
		.harvest = harvest,
		.log = on_log,
		.ctx = f,
	});
	assert_non_null(f->lrs);
}

void lrs_fini(struct lrs_fixture *f)
{
	xds_lrs_free(f->lrs);
	assert_null(f->stream);
	assert_int_equal(f->n_transports, 0);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX); // no timer is left
	f->n_read = f->n_sent;
	lrs_forget(f);
	twheel_free(f->wheel);
	xds_node_fini(&f->node);
	xds_bootstrap_free(f->bootstrap);
}

void lrs_forget(struct lrs_fixture *f)
{
	for (unsigned i = 0; i < f->n_read; i++)
		envoy__service__load_stats__v3__load_stats_request__free_unpacked(f->sent[i], NULL);
	memmove(f->sent, f->sent + f->n_read, (f->n_sent - f->n_read) * sizeof(f->sent[0]));
	f->n_sent -= f->n_read;
	f->n_read = 0;
}

void lrs_pass_time(struct lrs_fixture *f, uint64_t ns)
{
	f->now_ns += ns;
	twheel_advance(f->wheel, f->now_ns);
}

void lrs_settle(struct lrs_fixture *f)
{
	if (!f->stream || !f->sending)
		return;
	f->sending = false;
	f->events->on_sent(f->stream_ctx);
}

// What was sent, as text

struct words {
	char *at;
	size_t left;
};

static void put(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct words *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(w->at, w->left, fmt, args);
	va_end(args);
	CHECK(n >= 0 && (size_t)n < w->left);
	w->at += n;
	w->left -= (size_t)n;
}

static void put_unnamed(struct words *w, const char *name, const UnnamedStats *m)
{
	if (m)
		put(w, " %s=%u:%g", name, (unsigned)m->num_requests_finished_with_metric,
			m->total_metric_value);
}

static void put_locality(struct words *w, const LocalityStats *l)
{
	CHECK(l->n_upstream_endpoint_stats == 0);
	put(w, " %s/%s/%s %u %u %u %u", l->locality->region, l->locality->zone,
		l->locality->sub_zone, (unsigned)l->total_issued_requests,
		(unsigned)l->total_successful_requests, (unsigned)l->total_error_requests,
		(unsigned)l->total_requests_in_progress);
	put_unnamed(w, "cpu", l->cpu_utilization);
	put_unnamed(w, "mem", l->mem_utilization);
	put_unnamed(w, "app", l->application_utilization);
	for (size_t i = 0; i < l->n_load_metric_stats; i++)
		put(w, " %s=%u:%g", l->load_metric_stats[i]->metric_name,
			(unsigned)l->load_metric_stats[i]->num_requests_finished_with_metric,
			l->load_metric_stats[i]->total_metric_value);
}

static int by_region(const void *a, const void *b)
{
	return strcmp((*(LocalityStats *const *)a)->locality->region,
		(*(LocalityStats *const *)b)->locality->region);
}

static void put_cluster(struct words *w, ClusterStats *c)
{
	put(w, "%s/%s %gs", c->cluster_name, c->cluster_service_name,
		(double)c->load_report_interval->seconds + c->load_report_interval->nanos / 1e9);
	if (c->n_upstream_locality_stats)
		qsort(c->upstream_locality_stats, c->n_upstream_locality_stats,
			sizeof(LocalityStats *), by_region);
	for (size_t i = 0; i < c->n_upstream_locality_stats; i++)
		put_locality(w, c->upstream_locality_stats[i]);
	if (c->total_dropped_requests || c->n_dropped_requests)
		put(w, " drops %u", (unsigned)c->total_dropped_requests);
	for (size_t i = 0; i < c->n_dropped_requests; i++)
		put(w, " %s=%u", c->dropped_requests[i]->category,
			(unsigned)c->dropped_requests[i]->dropped_count);
}

const char *lrs_sent(struct lrs_fixture *f)
{
	if (f->n_read == f->n_sent)
		return "";
	Request *r = f->sent[f->n_read++];
	struct words w = {f->text, sizeof(f->text)};
	if (r->node)
		put(&w, "hello%s", r->n_cluster_stats ? " with reports" : "");
	else if (r->n_cluster_stats == 0)
		put(&w, "nothing");
	for (size_t i = 0; i < r->n_cluster_stats; i++) {
		put(&w, "%s", i ? "; " : "");
		put_cluster(&w, r->cluster_stats[i]);
	}
	return f->text;
}

void lrs_close(struct lrs_fixture *f, const char *why)
{
	assert_non_null(f->stream);
	f->events->on_closed(f->stream_ctx, why);
}

void lrs_say(struct lrs_fixture *f, const uint8_t *bytes, size_t len)
{
	assert_non_null(f->stream);
	assert_true(f->reading);
	f->reading = false;
	f->events->on_message(f->stream_ctx, bytes, len);
}

void lrs_settings(struct lrs_fixture *f, const char *clusters, uint64_t interval_ns)
{
	Envoy__Service__LoadStats__V3__LoadStatsResponse m;
	Google__Protobuf__Duration interval;
	char text[256], *rest = text, *names[16];
	uint8_t bytes[512];
	envoy__service__load_stats__v3__load_stats_response__init(&m);
	google__protobuf__duration__init(&interval);
	interval.seconds = (int64_t)(interval_ns / S);
	interval.nanos = (int32_t)(interval_ns % S);
	m.load_reporting_interval = &interval;
	m.report_endpoint_granularity = true; // without effect
	m.send_all_clusters = !clusters;
	m.clusters = names;
	snprintf(text, sizeof(text), "%s", clusters ? clusters : "");
	for (char *word; (word = strtok_r(rest, " ", &rest));)
		names[m.n_clusters++] = word;
	assert_in_range(
		envoy__service__load_stats__v3__load_stats_response__get_packed_size(&m), 0, 512);
	size_t len = envoy__service__load_stats__v3__load_stats_response__pack(&m, bytes);
	lrs_say(f, bytes, len);
}

struct xds_load_cluster *lrs_get(struct lrs_fixture *f, const char *cluster, const char *service)
{
	struct xds_load_cluster *c = xds_lrs_cluster_get(f->lrs, cluster, service);
	assert_non_null(c);
	return c;
}

struct source *lrs_source(struct lrs_fixture *f, struct xds_load_cluster *c)
{
	unsigned i = 0;
	while (i < LRS_MAX_SOURCES && f->sources[i].cluster)
		i++;
	assert_in_range(i, 0, LRS_MAX_SOURCES - 1);
	f->sources[i] = (struct source){.cluster = c, .place = {"r", "z", "s"}};
	return &f->sources[i];
}
