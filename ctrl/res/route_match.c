// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/route_match.h"

#include "ctrl/res/matcher.h"

#include <errno.h>

// Short names; protobuf-c's own are typedefs.
typedef Envoy__Config__Route__V3__RouteMatch Match;
#define PATH_CASE(x) ENVOY__CONFIG__ROUTE__V3__ROUTE_MATCH__PATH_SPECIFIER_##x

static int read_path(struct res_reader *rd, const Match *m, struct res_route *r)
{
	struct str path = {0};
	int rc;
	switch (m->path_specifier_case) {
	case PATH_CASE(PREFIX):
		r->path_kind = LB_PATH_PREFIX;
		rc = res_copy(rd, m->prefix, &path);
		break;
	case PATH_CASE(PATH):
		r->path_kind = LB_PATH_EXACT;
		rc = res_copy(rd, m->path, &path);
		break;
	case PATH_CASE(SAFE_REGEX):
		r->path_kind = LB_PATH_REGEX;
		rc = res_regex_read(rd, m->safe_regex, "safe_regex", &path);
		break;
	// A28-P08: to leave them out would send requests where they do not belong.
	case PATH_CASE(CONNECT_MATCHER):
		return lb_err_set(rd->err, "connect_matcher: not supported");
	case PATH_CASE(PATH_SEPARATED_PREFIX):
		return lb_err_set(rd->err, "path_separated_prefix: not supported");
	case PATH_CASE(PATH_MATCH_POLICY):
		return lb_err_set(rd->err, "path_match_policy: not supported");
	default: // A28-P03
		return lb_err_set(rd->err, "no path specifier");
	}
	r->path = path.p;
	r->path_len = path.len;
	r->case_sensitive = !m->case_sensitive || m->case_sensitive->value; // A28-P04
	return rc;
}

static int read_headers(struct res_reader *rd, const Match *m, struct res_route *r)
{
	struct lb_header_match_conf *list = NULL;
	if (m->n_headers)
		list = lb_arena_alloc(rd->arena, m->n_headers, sizeof(*list));
	if (m->n_headers && !list)
		return -ENOMEM;
	for (size_t i = 0; i < m->n_headers; i++) {
		if (m->headers[i]->treat_missing_header_as_empty) // A28-H06
			res_warn(rd, "match.headers: treat_missing_header_as_empty is ignored");
		int rc = res_header_matcher_read(rd, m->headers[i], &list[i]);
		if (rc == -EINVAL)
			return lb_err_within(rd->err, "headers[%zu]", i);
		if (rc)
			return rc;
	}
	r->headers = list;
	r->n_headers = (uint32_t)m->n_headers;
	return 0;
}

// A28-O01, A28-O02, A28-O05: only default_value counts.
static int read_fraction(struct res_reader *rd, const Match *m, struct res_route *r)
{
	r->ppm = LB_PPM_ALWAYS;
	if (!m->runtime_fraction)
		return 0;
	const Envoy__Type__V3__FractionalPercent *p = m->runtime_fraction->default_value;
	uint32_t denominator;
	if (!p)
		return lb_err_set(rd->err, "runtime_fraction: no default_value");
	if (res_denominator(p, &denominator, rd->err))
		return lb_err_within(rd->err, "runtime_fraction.default_value");
	uint64_t ppm = (uint64_t)p->numerator * (LB_PPM_ALWAYS / denominator);
	r->ppm = ppm < LB_PPM_ALWAYS ? (uint32_t)ppm : LB_PPM_ALWAYS;
	return 0;
}

int res_match_read(struct res_reader *rd, const Match *m, struct res_route *r)
{
	int rc = read_path(rd, m, r);
	if (!rc)
		rc = read_headers(rd, m, r);
	if (!rc)
		rc = read_fraction(rd, m, r);
	if (rc)
		return rc == -EINVAL ? lb_err_within(rd->err, "match") : rc;
	r->grpc_only = m->grpc; // A28-O07
	if (m->tls_context) // A28-O08: what was meant for mTLS alone is open to everybody
		res_warn(rd, "match.tls_context is ignored");
	return 0;
}
