// SPDX-License-Identifier: Apache-2.0
// Metrics of what balancing decides and meets, by cluster, under gRPC's names (gRFC A78, A91, A94).
#include "ctrl/metrics/scrape_inside.h"

static const char *const methods[LB_OUTLIER_N] = {
	[LB_OUTLIER_SUCCESS_RATE] = "success_rate",
	[LB_OUTLIER_FAILURE_PERCENTAGE] = "failure_percentage",
};

// From 0 on where they may come: who asks for an increase does not see what a series begins with.
static void tell_ejections(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	for (int m = 0; m < LB_OUTLIER_N; m++)
		if (c->counts.outliers[m].was_enabled)
			scrape_tell(s, id, (double)c->counts.outliers[m].enforced,
				LABELS(c->name, methods[m]));
}

static void tell_spared(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	for (int m = 0; m < LB_OUTLIER_N; m++) {
		const struct lb_outlier_counts *n = &c->counts.outliers[m];
		if (n->spared_by_chance)
			scrape_tell(s, id, (double)n->spared_by_chance,
				LABELS(c->name, methods[m], "enforcement_percentage"));
		if (n->spared_by_limit)
			scrape_tell(s, id, (double)n->spared_by_limit,
				LABELS(c->name, methods[m], "max_ejection_overflow"));
	}
}

static void tell_wrr(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	const struct lb_wrr_counts *n = &c->counts.wrr;
	uint64_t value = id == METRIC_ID_WRR_FALLBACK  ? n->rr_fallback
	                 : id == METRIC_ID_WRR_NOT_YET ? n->not_yet_usable
	                                               : n->stale;
	if (n->updates)
		scrape_tell(s, id, (double)value, LABELS(c->name));
}

static void tell_connects(struct scrape *s, enum metric_id id, uint32_t i)
{
	const struct scrape_cluster *c = &s->clusters[i];
	const struct lb_connect_counts *n = &c->counts.connects;
	uint64_t value = id == METRIC_ID_CONNECTED        ? n->succeeded
	                 : id == METRIC_ID_CONNECT_FAILED ? n->failed
	                                                  : n->disconnections;
	scrape_tell(s, id, (double)value, LABELS(c->name));
}

#define OF_CLUSTERS(id, tell)                                                                      \
	{                                                                                          \
		METRIC_ID_##id, scrape_over_clusters, tell                                         \
	}

const struct scrape_family scrape_balancing[] = {
	OF_CLUSTERS(EJECTIONS, tell_ejections),
	OF_CLUSTERS(EJECTIONS_SPARED, tell_spared),
	OF_CLUSTERS(WRR_FALLBACK, tell_wrr),
	OF_CLUSTERS(WRR_NOT_YET, tell_wrr),
	OF_CLUSTERS(WRR_STALE, tell_wrr),
	OF_CLUSTERS(DISCONNECTIONS, tell_connects),
	OF_CLUSTERS(CONNECTED, tell_connects),
	OF_CLUSTERS(CONNECT_FAILED, tell_connects),
};
const uint32_t scrape_n_balancing = sizeof(scrape_balancing) / sizeof(scrape_balancing[0]);
