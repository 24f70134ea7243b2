// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/explain_find.h"

#include "ctrl/deps/config.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/pick/picker.h"
#include "lb/route/domains.h"
#include "lb/route/filter.h"
#include "lb/route/hash_policy.h"
#include "lb/route/rbac.h"

#include <stdio.h>
#include <stdlib.h>

// Lookups until one goes past every route that takes only a fraction of the requests, and what they
// may cost: the loop has other work.
#define MAX_DRAWS 1000
#define MAX_LOOKED_AT 100000

static void hear(void *ctx, const struct lb_route_step *step)
{
	struct explain_found *f = ctx;
	f->steps[f->n_steps < EXPLAIN_MAX_STEPS ? f->n_steps : EXPLAIN_MAX_STEPS - 1] = *step;
	f->n_steps++;
}

static struct explain_found look_up_once(const struct explain_query *q)
{
	const struct xds_config *config = q->of.config;
	struct explain_found f = {0};
	struct lb_route_ctx ctx = {q->rand, q->scratch, hear, &f};
	f.result = lb_route_find(q->of.table, &q->req, &ctx);
	if (f.result.kind == LB_ROUTE_NO_VHOST)
		return f;
	f.vhost_index = config->vhost < 0 ? f.result.vhost_index : (uint32_t)config->vhost;
	f.vhost = &config->routes->vhosts[f.vhost_index];
	return f;
}

// No draw of a fraction can hide what comes behind it.
static bool is_whole_story(const struct explain_found *f)
{
	if (f->result.kind == LB_ROUTE_NO_VHOST || f->result.kind == LB_ROUTE_NONE)
		return true;
	return f->vhost->routes[f->result.route_index].ppm == LB_PPM_ALWAYS;
}

bool explain_look_up(const struct explain_query *q, struct explain_found *ret)
{
	struct explain_found *f = malloc(sizeof(*f));
	if (!f)
		return false;
	uint64_t looked_at = 0;
	for (int i = 0; i < MAX_DRAWS && looked_at < MAX_LOOKED_AT; i++) {
		*f = look_up_once(q);
		looked_at += f->n_steps;
		if (i && f->n_steps <= ret->n_steps)
			continue;
		*ret = *f;
		if (is_whole_story(f))
			break;
	}
	free(f);
	return true;
}

// By the rule that the table follows: each domain as a virtual host of its own.
const char *explain_domain(const struct explain_query *q, const struct explain_found *f)
{
	const struct res_vhost *v = f->vhost;
	struct lb_vhost_conf *confs = calloc((size_t)v->n_domains + 1, sizeof(*confs));
	struct str *domains = calloc((size_t)v->n_domains + 1, sizeof(*domains));
	struct str authority = lb_req_host(&q->req);
	int found = -1;
	if (q->of.config->routes->ignore_port)
		authority = lb_authority_without_port(authority);
	for (uint32_t i = 0; confs && domains && i < v->n_domains; i++) {
		domains[i] = str_from(v->domains[i]);
		confs[i] = (struct lb_vhost_conf){.domains = &domains[i], .n_domains = 1};
	}
	if (confs && domains)
		found = lb_vhost_choose(confs, v->n_domains, authority);
	free(confs);
	free(domains);
	return found < 0 ? "" : v->domains[found];
}

uint32_t explain_outcomes(
	const struct explain_found *f, struct explain_outcome ret[EXPLAIN_MAX_STEPS + 1])
{
	double left = 1;
	uint32_t n = 0;
	for (uint32_t i = 0; i < f->n_steps && i < EXPLAIN_MAX_STEPS; i++) {
		const struct lb_route_step *s = &f->steps[i];
		const struct res_route *r = &f->vhost->routes[s->route_index];
		if (s->verdict != LB_VERDICT_MATCH && s->verdict != LB_VERDICT_FRACTION)
			continue;
		double share = left * r->ppm / LB_PPM_ALWAYS;
		ret[n++] = (struct explain_outcome){share, r};
		left -= share;
	}
	bool none = f->result.kind == LB_ROUTE_NONE || f->result.kind == LB_ROUTE_NO_VHOST;
	if (none || left > 1e-12)
		ret[n++] = (struct explain_outcome){left, NULL};
	return n;
}

const struct lb_filter *explain_filter(const struct explain_query *q, const struct explain_found *f,
	const struct res_route *r, const struct res_weighted_cluster *drawn, uint32_t i)
{
	const struct lb_route_result result = {
		.policy = r->policy,
		.vhost_overrides = &f->vhost->overrides,
		.cluster_overrides = &drawn->overrides,
	};
	const struct lb_filter *found = lb_filter_effective(q->of.filters, i, &result);
	return found == &q->of.filters->filters[i] ? &q->of.config->listener->filters[i] : found;
}

static void print_decision(FILE *f, const struct lb_rbac_decision *d)
{
	if (!d->exists)
		fputs("allows", f);
	else
		fputs(d->denies ? "denies" : d->is_log ? "logs" : "allows", f);
	if (d->policy.p)
		fprintf(f, ": policy %.*s", (int)d->policy.len, d->policy.p);
	else if (d->exists)
		fputs(": no policy", f);
}

char *explain_rbac(const struct explain_query *q, const struct lb_filter *filter)
{
	struct lb_err ignored;
	char *text = NULL;
	size_t len = 0;
	struct lb_rbac *rbac = lb_rbac_new(filter->rbac.conf, &ignored);
	char *joined = malloc(q->text_size); // a cookie may lie in the query's
	FILE *f = rbac && joined ? open_memstream(&text, &len) : NULL;
	if (f) {
		const struct lb_rbac_verdict v =
			lb_rbac_check(rbac, &q->req, &q->peer, joined, q->text_size);
		print_decision(f, &v.rules);
		if (v.shadow.exists) {
			fputs("; shadow ", f);
			print_decision(f, &v.shadow);
		}
		fclose(f);
	}
	free(joined);
	lb_rbac_free(rbac);
	return text;
}

// The session that covers requests that draw this entry: the first one, as on workers.
static const struct lb_session *covering(const struct explain_query *q,
	const struct explain_found *f, const struct res_route *r,
	const struct res_weighted_cluster *drawn)
{
	for (uint32_t i = 0; i < q->of.filters->n; i++) {
		const struct lb_filter *filter = explain_filter(q, f, r, drawn, i);
		if (filter && filter->kind == LB_FILTER_SESSION &&
			lb_session_covers(&filter->session, q->req.path))
			return &filter->session;
	}
	return NULL;
}

static bool names(const struct lb_session_cookie *cookie, const struct res_weighted_cluster *c)
{
	return cookie->cluster.len && c->weight && lb_session_is_cluster(cookie, str_from(c->name));
}

// Entries in a row mostly have the same session: its cookie is read once, not for each.
void explain_session(const struct explain_query *q, const struct explain_found *f,
	const struct res_route *r, const struct res_weighted_cluster *drawn,
	struct explain_session *s)
{
	const struct lb_session *filter = covering(q, f, r, drawn);
	if (filter != s->filter) {
		*s = (struct explain_session){.filter = filter};
		if (filter)
			s->cookie = lb_session_read(filter, &q->req, q->text, q->text_size);
		for (uint32_t i = 0; filter && i < r->n_clusters && !s->first; i++)
			if (names(&s->cookie, &r->clusters[i]))
				s->first = &r->clusters[i];
	}
	s->to = names(&s->cookie, drawn) ? drawn : s->first;
}

void explain_shares(const struct explain_query *q, const struct explain_found *f,
	const struct res_route *r, double *ret)
{
	struct explain_session s = {0};
	double sum = 0;
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		sum += r->clusters[i].weight;
		ret[i] = 0;
	}
	for (uint32_t i = 0; i < r->n_clusters; i++) {
		const struct res_weighted_cluster *drawn = &r->clusters[i];
		if (drawn->weight == 0)
			continue;
		explain_session(q, f, r, drawn, &s);
		ret[s.to ? s.to - r->clusters : i] += drawn->weight / sum;
	}
}

struct lb_pick_hash explain_hash(
	const struct explain_query *q, const struct explain_found *f, const struct res_route *r)
{
	// The table's policy has the rewrites compiled.
	const struct lb_route_policy *p = lb_route_policy_of(
		q->of.table, f->result.vhost_index, (uint32_t)(r - f->vhost->routes));
	struct lb_pick_hash hash = {0};
	hash.known = lb_hash_policies_run(p->hash, p->n_hash, &q->req,
		lb_route_hides_transport(q->of.table, &q->req), q->text, q->text_size, &hash.value);
	return hash;
}
