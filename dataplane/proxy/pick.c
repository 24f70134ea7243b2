// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/pick.h"

#include "dataplane/proxy/backend.h"
#include "dataplane/proxy/place.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/cluster.h"
#include "lb/pick/drop.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/link.h"
#include "lb/pick/loads.h"
#include "lb/pick/picker.h"
#include "lb/snapshot.h"

#include <stdio.h>

// Load reports have refusals, too (A27-I10, LR-07).
static void count_refusal(struct proxy *p, uint32_t load)
{
	if (load)
		counter_add(&p->link->loads[load].issued, 1);
}

// ERR-01
static struct proxy_pick drop(
	struct proxy_request *r, const struct lb_leaf_layer *layer, uint32_t category)
{
	struct proxy *p = r->proxy;
	if (layer->loads && category < layer->loads->n_drops)
		count_refusal(p, layer->loads->drops[category]);
	snprintf(p->scratch.refusal, sizeof(p->scratch.refusal),
		"cluster %s: EDS-configured drop: %s", layer->name,
		lb_drops_name(layer->drops, category));
	return (struct proxy_pick){
		.kind = PROXY_PICK_REFUSE, .cause = LB_CAUSE_DROPPED, .text = p->scratch.refusal};
}

struct proxy_pick proxy_pick_overflow(
	struct proxy_request *r, const struct lb_leaf_layer *layer, enum lb_cause cause)
{
	struct proxy *p = r->proxy;
	if (layer->loads)
		count_refusal(p, layer->loads->breaker);
	const char *what = cause == LB_CAUSE_OVERFLOW
	                           ? "requests are in flight, the maximum"
	                           : "requests may be in flight, and this client has its share";
	snprintf(p->scratch.refusal, sizeof(p->scratch.refusal),
		"cluster %s: circuit breaker drop: %u %s", layer->name, layer->max_requests, what);
	return (struct proxy_pick){
		.kind = PROXY_PICK_REFUSE, .cause = cause, .text = p->scratch.refusal};
}

static struct proxy_pick to(const struct lb_cell *cell)
{
	return (struct proxy_pick){.kind = PROXY_PICK_ENDPOINT, .cell = cell};
}

static const struct proxy_pick later = {.kind = PROXY_PICK_QUEUE};

// True = the session decides (A75-O05 to A75-O08). What is READY elsewhere and not connected here
// is waited for (MC-05): others would be another backend.
static bool pick_session(
	struct proxy_request *r, const struct lb_leaf_layer *layer, struct proxy_pick *ret)
{
	struct proxy *p = r->proxy;
	struct lb_affinity_host host;
	*ret = later;
	switch (proxy_session_pick(r, layer->sessions, &host)) {
	case LB_AFFINITY_CHILD:
		return false; // A75-O09
	case LB_AFFINITY_QUEUE:
		return true;
	case LB_AFFINITY_CONNECT:
		proxy_notice_connect_request(p, host.member);
		return true;
	case LB_AFFINITY_USE:
		break;
	}
	if (!proxy_backend_is_ready(p, host.state)) {
		proxy_backend_want(p, host.state->endpoint);
		return true;
	}
	r->accounting.member = host.member + 1; // A75-O21
	*ret = to(host.state);
	return true;
}

static struct lb_pick ask(
	struct proxy_request *r, const struct lb_picker *picker, const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	struct h2_message stored;
	if (!head)
		proxy_replay_head(p, &r->replay, &stored);
	struct lb_req req = proxy_request_view(r, head ? head : &stored);
	struct lb_pick_ctx ctx = {.req = &req,
		.rand = &p->rand,
		.positions = p->positions,
		.active = p->shared->active,
		.ready = p->ready,
		.hash = &r->plan.hash,
		.recipe = r->plan.recipe,
		.scratch = p->scratch.pick,
		.scratch_size = p->scratch.size};
	return lb_pick(picker, &ctx);
}

// How often a policy is asked again for another endpoint than the one that did not serve it. Those
// that hash stay with theirs. Whoever is to be waited for, or fails, is no better than that one.
#define MORE_PICKS 4

static bool is_where_it_was(const struct proxy_request *r, const struct lb_pick *chosen)
{
	return r->resend.elsewhere && chosen->kind == LB_PICK_ENDPOINT &&
	       chosen->cell->endpoint_id == r->endpoint_id;
}

static void note(struct proxy *p, const struct lb_pick *said)
{
	if (said->connect_request)
		proxy_notice_connect_request(p, said->connect_request - 1);
	if (said->want)
		proxy_backend_want(p, said->want);
}

// Apart, or each first look would save its registers.
static __attribute__((noinline)) void look_elsewhere(struct proxy_request *r,
	const struct lb_picker *picker, const struct h2_message *head, struct lb_pick *chosen)
{
	for (int i = 0; i < MORE_PICKS && is_where_it_was(r, chosen); i++) {
		struct lb_pick other = ask(r, picker, head);
		note(r->proxy, &other);
		if (other.kind == LB_PICK_ENDPOINT)
			*chosen = other;
	}
}

static struct proxy_pick pick_policy(struct proxy_request *r, const struct lb_cluster *cluster,
	const struct lb_leaf_layer *layer, const struct h2_message *head)
{
	const struct lb_picker *picker = layer ? layer->picker : cluster->picker;
	struct lb_pick chosen = ask(r, picker, head);
	note(r->proxy, &chosen);
	if (r->resend.elsewhere)
		look_elsewhere(r, picker, head, &chosen);
	switch (chosen.kind) {
	case LB_PICK_FAIL:
		return (struct proxy_pick){
			.kind = PROXY_PICK_FAIL, .cause = LB_CAUSE_NO_HEALTHY, .text = chosen.text};
	case LB_PICK_QUEUE:
		return later;
	case LB_PICK_ENDPOINT:
		break;
	}
	if (layer) {
		r->accounting.member = chosen.cell->member + 1;
		r->accounting.counts_active = chosen.cell->counts_active;
		r->accounting.wants_report = chosen.cell->wants_report;
	}
	return to(chosen.cell);
}

struct proxy_pick proxy_pick(struct proxy_request *r, const struct lb_cluster *cluster,
	const struct lb_leaf_layer *layer, const struct h2_message *head)
{
	struct proxy *p = r->proxy;
	r->accounting = (struct proxy_accounting){0};
	if (!layer)
		return pick_policy(r, cluster, NULL, head);
	r->accounting.leaf = layer->id + 1;
	r->accounting.wants_metrics = layer->metrics;
	uint32_t category = lb_drops_draw(layer->drops, &r->drawn, layer->id, &p->rand);
	if (category != LB_DROP_NONE)
		return drop(r, layer, category);
	if (lb_quota_cache_is_full(&r->proxy->quota_cache, layer->breaker, layer->max_requests) &&
		!proxy_place_may_take_over(r, layer))
		return proxy_pick_overflow(r, layer, LB_CAUSE_OVERFLOW);
	struct proxy_pick bound;
	if (r->session.n_addresses && layer->sessions && pick_session(r, layer, &bound))
		return bound;
	return pick_policy(r, cluster, layer, head);
}

const char *proxy_pick_error(struct proxy_request *r)
{
	const struct lb_cluster *cluster = lb_snapshot_cluster(r->proxy->snapshot, r->cluster_id);
	if (!cluster)
		return NULL;
	struct lb_pick now = ask(r, cluster->picker, NULL);
	return now.kind == LB_PICK_FAIL ? now.text : NULL;
}
