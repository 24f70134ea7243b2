// SPDX-License-Identifier: Apache-2.0
// Metrics of frontends, clusters and endpoints: what requests meet.
#include "ctrl/assemble/drains.h"
#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape_inside.h"

// Frontends. Their times are gathered anew for each metric: a scrape is no picture of one instant.

static const char *frontend_name(const struct scrape *s, uint32_t i)
{
	return s->conf.config->frontends[i].name;
}

static uint64_t sum_over_workers(const struct scrape *s,
	uint64_t (*of)(const struct lb_worker_counters *, uint32_t), uint32_t i)
{
	uint64_t sum = 0;
	for (uint32_t w = 0; w < workers_count(s->conf.workers); w++)
		sum += of(&workers_link(s->conf.workers, w)->counters, i);
	return sum;
}

static uint64_t connections_of(const struct lb_worker_counters *k, uint32_t i)
{
	return counter_read(&k->frontend_connections[i]);
}

static uint64_t requests_of(const struct lb_worker_counters *k, uint32_t i)
{
	return counter_read(&k->frontend_requests[i]);
}

static void tell_frontend_up(struct scrape *s, enum metric_id id, uint32_t i)
{
	uint32_t port = config_port_of(s->conf.config, &s->conf.config->frontends[i].address_ip);
	bool has_link = port == s->conf.config->n_ports || !s->conf.ports ||
	                s->conf.ports[port].link == SHOW_LINK_UP;
	bool serves = assembler_frontend_error(s->conf.assembler, i)[0] == '\0';
	scrape_tell(s, id, has_link && serves, LABELS(frontend_name(s, i)));
}

static void tell_frontend_drains(struct scrape *s, enum metric_id id, uint32_t i)
{
	struct drain_info info;
	drains_look(s->conf.drains, i, &info);
	scrape_tell(s, id, info.phase != DRAIN_NONE, LABELS(frontend_name(s, i)));
}

static void tell_connections(struct scrape *s, enum metric_id id, uint32_t i)
{
	uint64_t n = sum_over_workers(s, connections_of, i);
	scrape_tell(s, id, (double)n, LABELS(frontend_name(s, i)));
}

static void tell_requests(struct scrape *s, enum metric_id id, uint32_t i)
{
	uint64_t n = sum_over_workers(s, requests_of, i);
	scrape_tell(s, id, (double)n, LABELS(frontend_name(s, i)));
}

static void tell_in_flight(struct scrape *s, enum metric_id id, uint32_t i)
{
	workers_frontend_times(s->conf.workers, i, &s->frontend);
	uint64_t begun = sum_over_workers(s, requests_of, i), ended = 0;
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		ended += s->frontend.ended[cause];
	// One may have begun and ended between the two readings.
	scrape_tell(
		s, id, begun > ended ? (double)(begun - ended) : 0, LABELS(frontend_name(s, i)));
}

static void tell_ended(struct scrape *s, enum metric_id id, uint32_t i)
{
	workers_frontend_times(s->conf.workers, i, &s->frontend);
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		scrape_tell(s, id, (double)s->frontend.ended[cause],
			LABELS(frontend_name(s, i), lb_cause_info((enum lb_cause)cause)->name));
}

static void tell_answers(struct scrape *s, enum metric_id id, uint32_t i)
{
	workers_frontend_times(s->conf.workers, i, &s->frontend);
	scrape_tell_answers(s, id, s->frontend.answers, frontend_name(s, i), true);
}

static void tell_bodies(struct scrape *s, enum metric_id id, uint32_t i)
{
	workers_frontend_times(s->conf.workers, i, &s->frontend);
	const struct lb_bodies *n = &s->frontend.bodies;
	scrape_tell(s, id, (double)(id == METRIC_ID_BODIES_IN ? n->in : n->out),
		LABELS(frontend_name(s, i)));
}

// Spare places that are between count for nothing.
static bool is_among_first(const struct scrape *s, uint32_t i)
{
	uint32_t n_before = 0;
	for (uint32_t k = 0; k < i && n_before < SCRAPE_MAX_FRONTEND_TIMES; k++)
		n_before += config_serves(s->conf.config, k);
	return n_before < SCRAPE_MAX_FRONTEND_TIMES;
}

static void tell_frontend_time(struct scrape *s, enum metric_id id, uint32_t i)
{
	if (!is_among_first(s, i))
		return;
	workers_frontend_times(s->conf.workers, i, &s->frontend);
	const struct histogram *h =
		id == METRIC_ID_REQUEST_TIME ? &s->frontend.request : &s->frontend.added;
	scrape_tell_histogram(s, id, h, frontend_name(s, i));
}

// Clusters.

static double cluster_number(const struct scrape_cluster *c, enum metric_id id)
{
	switch (id) {
	case METRIC_ID_CLUSTER_UP:
		return c->is_up;
	case METRIC_ID_CLUSTER_ENDPOINTS:
		return c->n_endpoints;
	case METRIC_ID_CLUSTER_READY:
		return c->n_ready;
	case METRIC_ID_CLUSTER_FAILING:
		return c->n_failing;
	case METRIC_ID_CLUSTER_EJECTED:
		return c->n_ejected;
	case METRIC_ID_CLUSTER_UNHEALTHY:
		return c->n_unhealthy;
	case METRIC_ID_CHECKS:
		return (double)c->counts.checks.attempts;
	case METRIC_ID_CHECKS_PASSED:
		return (double)c->counts.checks.passed;
	case METRIC_ID_CHECKS_FAILED:
		return (double)c->counts.checks.failed;
	case METRIC_ID_CHECKS_UNANSWERED:
		return (double)c->counts.checks.network_failures;
	case METRIC_ID_CLUSTER_CONNECTIONS:
		return (double)c->connections;
	case METRIC_ID_CLUSTER_REQUESTS:
		return (double)c->totals.started;
	case METRIC_ID_CLUSTER_IN_FLIGHT:
		return (double)c->totals.active;
	case METRIC_ID_CLUSTER_QUEUED:
		return (double)c->totals.queued;
	case METRIC_ID_CLUSTER_BODIES_IN:
		return (double)c->bodies.in;
	case METRIC_ID_CLUSTER_BODIES_OUT:
		return (double)c->bodies.out;
	case METRIC_ID_BREAKER_IN_FLIGHT:
		return c->in_flight;
	default: // METRIC_ID_BREAKER_LIMIT
		return c->max_requests;
	}
}

static void tell_cluster(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	scrape_tell(s, id, cluster_number(c, id), LABELS(c->name));
}

static void tell_cluster_ended(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	for (int cause = 0; cause < LB_N_CAUSES; cause++)
		if (c->totals.ended[cause] || cause == LB_CAUSE_OK)
			scrape_tell(s, id, (double)c->totals.ended[cause],
				LABELS(c->name, lb_cause_info((enum lb_cause)cause)->name));
}

static void tell_cluster_answers(struct scrape *s, enum metric_id id, uint32_t i)
{
	scrape_tell_answers(s, id, s->clusters[i].answers, s->clusters[i].name, false);
}

static void tell_cluster_time(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	if (!c->times)
		return;
	const struct histogram *h = id == METRIC_ID_CLUSTER_REQUEST_TIME   ? &c->times->request
	                            : id == METRIC_ID_CLUSTER_ATTEMPT_TIME ? &c->times->attempt
	                                                                   : &c->times->added;
	scrape_tell_histogram(s, id, h, c->name);
}

// Endpoints.

static double endpoint_number(const struct scrape_endpoint *e, enum metric_id id)
{
	switch (id) {
	case METRIC_ID_ENDPOINT_UP:
		return e->is_up;
	case METRIC_ID_ENDPOINT_EJECTED:
		return e->is_ejected;
	case METRIC_ID_ENDPOINT_UNHEALTHY:
		return e->is_unhealthy;
	case METRIC_ID_ENDPOINT_CONNECTIONS:
		return (double)e->connections;
	case METRIC_ID_ENDPOINT_REQUESTS:
		return (double)e->issued;
	default: // METRIC_ID_ENDPOINT_FAILURES
		return (double)e->failed;
	}
}

static void tell_endpoint(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_endpoint *e = &s->endpoints[i];
	scrape_tell(s, id, endpoint_number(e, id),
		LABELS(s->clusters[e->cluster].name, e->leaf, e->address));
}

#define OF_FRONTENDS(id, tell)                                                                     \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_frontends, tell                                        \
	}
#define OF_CLUSTERS(id, tell)                                                                      \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_clusters, tell                                         \
	}
#define OF_ENDPOINTS(id, tell)                                                                     \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_endpoints, tell                                        \
	}

const struct scrape_family scrape_requests[] = {
	OF_FRONTENDS(FRONTEND_UP, tell_frontend_up),
	OF_FRONTENDS(FRONTEND_DRAINS, tell_frontend_drains),
	OF_FRONTENDS(CONNECTIONS, tell_connections),
	OF_FRONTENDS(REQUESTS, tell_requests),
	OF_FRONTENDS(IN_FLIGHT, tell_in_flight),
	OF_FRONTENDS(ENDED, tell_ended),
	OF_FRONTENDS(ANSWERS, tell_answers),
	OF_FRONTENDS(BODIES_IN, tell_bodies),
	OF_FRONTENDS(BODIES_OUT, tell_bodies),
	OF_FRONTENDS(REQUEST_TIME, tell_frontend_time),
	OF_FRONTENDS(ADDED_TIME, tell_frontend_time),
	OF_CLUSTERS(CLUSTER_UP, tell_cluster),
	OF_CLUSTERS(CLUSTER_ENDPOINTS, tell_cluster),
	OF_CLUSTERS(CLUSTER_READY, tell_cluster),
	OF_CLUSTERS(CLUSTER_FAILING, tell_cluster),
	OF_CLUSTERS(CLUSTER_EJECTED, tell_cluster),
	OF_CLUSTERS(CLUSTER_UNHEALTHY, tell_cluster),
	OF_CLUSTERS(CHECKS, tell_cluster),
	OF_CLUSTERS(CHECKS_PASSED, tell_cluster),
	OF_CLUSTERS(CHECKS_FAILED, tell_cluster),
	OF_CLUSTERS(CHECKS_UNANSWERED, tell_cluster),
	OF_CLUSTERS(CLUSTER_CONNECTIONS, tell_cluster),
	OF_CLUSTERS(CLUSTER_REQUESTS, tell_cluster),
	OF_CLUSTERS(CLUSTER_IN_FLIGHT, tell_cluster),
	OF_CLUSTERS(CLUSTER_QUEUED, tell_cluster),
	OF_CLUSTERS(CLUSTER_ENDED, tell_cluster_ended),
	OF_CLUSTERS(CLUSTER_ANSWERS, tell_cluster_answers),
	OF_CLUSTERS(CLUSTER_BODIES_IN, tell_cluster),
	OF_CLUSTERS(CLUSTER_BODIES_OUT, tell_cluster),
	OF_CLUSTERS(BREAKER_IN_FLIGHT, tell_cluster),
	OF_CLUSTERS(BREAKER_LIMIT, tell_cluster),
	OF_CLUSTERS(CLUSTER_REQUEST_TIME, tell_cluster_time),
	OF_CLUSTERS(CLUSTER_ATTEMPT_TIME, tell_cluster_time),
	OF_CLUSTERS(CLUSTER_ADDED_TIME, tell_cluster_time),
	OF_ENDPOINTS(ENDPOINT_UP, tell_endpoint),
	OF_ENDPOINTS(ENDPOINT_EJECTED, tell_endpoint),
	OF_ENDPOINTS(ENDPOINT_UNHEALTHY, tell_endpoint),
	OF_ENDPOINTS(ENDPOINT_CONNECTIONS, tell_endpoint),
	OF_ENDPOINTS(ENDPOINT_REQUESTS, tell_endpoint),
	OF_ENDPOINTS(ENDPOINT_FAILURES, tell_endpoint),
};
const uint32_t scrape_n_requests = sizeof(scrape_requests) / sizeof(scrape_requests[0]);
