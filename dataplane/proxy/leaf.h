// SPDX-License-Identifier: Apache-2.0
// The leaf of a request's cluster in this turn, and the request's place in that leaf's budget of
// retries (CB-07).
// Thread: the owning worker.
#pragma once

#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/cluster.h"
#include "lb/pick/leaf_picker.h"
#include "lb/snapshot.h"

// NULL = it has none now.
static inline const struct lb_leaf_layer *proxy_leaf_of(const struct proxy_request *r)
{
	const struct lb_cluster *c = lb_snapshot_cluster(r->proxy->snapshot, r->cluster_id);
	return c ? lb_leaf_layer(c->picker) : NULL;
}

// The request will not be sent again.
static inline void proxy_leaf_end_retries(struct proxy_request *r)
{
	if (r->retrying_in)
		lb_breaker_leave_retry(r->retrying_in);
	r->retrying_in = NULL;
}

// It will be. False = the leaf's budget has no place for it.
static inline bool proxy_leaf_begin_retry(struct proxy_request *r)
{
	const struct lb_leaf_layer *layer = proxy_leaf_of(r);
	proxy_leaf_end_retries(r); // of the one before
	if (!layer || !layer->retry_budget.is_set)
		return true;
	uint32_t n_kept = lb_quota_cache_kept(&r->proxy->quota_cache, layer->breaker);
	if (!lb_breaker_enter_retry(layer->breaker, &layer->retry_budget, n_kept))
		return false;
	r->retrying_in = layer->breaker;
	return true;
}
