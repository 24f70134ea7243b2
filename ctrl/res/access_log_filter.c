// SPDX-License-Identifier: Apache-2.0
#include "ctrl/res/access_log_filter.h"

#include "ctrl/res/common.h"
#include "lb/pick/cause.h"

#include <errno.h>
#include <string.h>

// Short names; protobuf-c's own are typedefs.
#define M(x) Envoy__Config__Accesslog__V3__##x
typedef M(AccessLogFilter) Filter;
typedef M(ComparisonFilter) Comparison;
typedef M(RuntimeFilter) Runtime;
#define SPECIFIER(x) ENVOY__CONFIG__ACCESSLOG__V3__ACCESS_LOG_FILTER__FILTER_SPECIFIER_##x
#define OP(x) ENVOY__CONFIG__ACCESSLOG__V3__COMPARISON_FILTER__OP__##x
#define N_GRPC 17

_Static_assert((int)LB_ACCESS_EQ == (int)OP(EQ), "as Envoy");
_Static_assert((int)LB_ACCESS_GE == (int)OP(GE), "as Envoy");
_Static_assert((int)LB_ACCESS_LE == (int)OP(LE), "as Envoy");
_Static_assert((int)LB_ACCESS_NE == (int)OP(NE), "as Envoy");

struct tests {
	struct lb_access_test list[LB_ACCESS_TESTS];
	uint16_t n;
	struct lb_err *err;
};

static int add(struct tests *t, struct lb_access_test test)
{
	if (t->n == LB_ACCESS_TESTS)
		return lb_err_set(t->err, "there are more than %d conditions", LB_ACCESS_TESTS);
	t->list[t->n++] = test;
	return 0;
}

static int add_comparison(
	struct tests *t, enum lb_access_kind kind, const Comparison *m, const char *field)
{
	if (!m)
		return lb_err_set(t->err, "%s: no comparison", field);
	int op = (int)m->op;
	if (op < 0 || op > (int)LB_ACCESS_NE)
		return lb_err_set(t->err, "%s: unknown op %d", field, op);
	return add(t, (struct lb_access_test){.kind = (uint8_t)kind,
			      .op = (uint8_t)op,
			      .value = m->value ? m->value->default_value : 0});
}

// The runtime key is never looked up: only the default counts.
static int add_chance(struct tests *t, const Runtime *m)
{
	const Envoy__Type__V3__FractionalPercent *p = m->percent_sampled;
	uint32_t denominator = 100, numerator = p ? p->numerator : 0;
	if (p && res_denominator(p, &denominator, t->err))
		return lb_err_within(t->err, "runtime_filter: percent_sampled");
	if (numerator > denominator)
		numerator = denominator;
	// A number of its own for each place, so that draws there say nothing of each other.
	uint32_t salt = m->use_independent_randomness ? (t->n + 1) * UINT32_C(0x9e3779b9) : 0;
	return add(t, (struct lb_access_test){.kind = LB_ACCESS_CHANCE,
			      .salt = salt,
			      .value = LB_ACCESS_SAMPLE_ALL * numerator / denominator});
}

// Flags that Shunt never sets are those of no request.
static int add_flags(struct tests *t, const M(ResponseFlagFilter) * m)
{
	uint64_t bits = m->n_flags ? 0 : ((UINT64_C(1) << LB_N_CAUSES) - 2) | LB_ACCESS_DELAYED;
	_Static_assert(LB_CAUSE_OK == 0, "the only one without a flag");
	for (size_t i = 0; i < m->n_flags; i++) {
		for (int cause = 0; cause < LB_N_CAUSES; cause++) {
			const char *flag = lb_cause_info((enum lb_cause)cause)->flag;
			bits |= (uint64_t)(strcmp(m->flags[i], flag) == 0) << cause;
		}
		if (strcmp(m->flags[i], LB_ACCESS_DELAYED_FLAG) == 0)
			bits |= LB_ACCESS_DELAYED;
	}
	return add(t, (struct lb_access_test){.kind = LB_ACCESS_CAUSES, .value = bits});
}

static int add_statuses(struct tests *t, const M(GrpcStatusFilter) * m)
{
	uint64_t bits = 0, all = (UINT64_C(1) << N_GRPC) - 1;
	for (size_t i = 0; i < m->n_statuses; i++) {
		int status = (int)m->statuses[i];
		if (status < 0 || status >= N_GRPC)
			return lb_err_set(t->err, "grpc_status_filter: unknown status %d", status);
		bits |= UINT64_C(1) << status;
	}
	return add(t, (struct lb_access_test){
			      .kind = LB_ACCESS_GRPC, .value = m->exclude ? all & ~bits : bits});
}

static int add_filter(struct tests *, const Filter *, unsigned depth);

static int add_list(
	struct tests *t, enum lb_access_kind kind, Filter *const *list, size_t n, unsigned depth)
{
	uint16_t at = t->n;
	if (depth == LB_ACCESS_DEPTH)
		return lb_err_set(t->err, "there are more than %d filters within each other",
			LB_ACCESS_DEPTH);
	if (!n)
		return lb_err_set(t->err, "%s: no filters",
			kind == LB_ACCESS_ALL ? "and_filter" : "or_filter");
	int rc = add(t, (struct lb_access_test){.kind = (uint8_t)kind});
	for (size_t i = 0; !rc && i < n; i++)
		rc = add_filter(t, list[i], depth + 1);
	if (!rc)
		t->list[at].n = (uint16_t)(t->n - at - 1);
	return rc;
}

static int add_filter(struct tests *t, const Filter *m, unsigned depth)
{
	switch (m->filter_specifier_case) {
	case SPECIFIER(STATUS_CODE_FILTER):
		return add_comparison(t, LB_ACCESS_STATUS, m->status_code_filter->comparison,
			"status_code_filter");
	case SPECIFIER(DURATION_FILTER):
		return add_comparison(
			t, LB_ACCESS_DURATION, m->duration_filter->comparison, "duration_filter");
	case SPECIFIER(NOT_HEALTH_CHECK_FILTER):
		// Nothing tells such requests from others here: none is one.
		return add(t, (struct lb_access_test){.kind = LB_ACCESS_ALL});
	case SPECIFIER(RUNTIME_FILTER):
		return add_chance(t, m->runtime_filter);
	case SPECIFIER(AND_FILTER):
		return add_list(
			t, LB_ACCESS_ALL, m->and_filter->filters, m->and_filter->n_filters, depth);
	case SPECIFIER(OR_FILTER):
		return add_list(
			t, LB_ACCESS_ANY, m->or_filter->filters, m->or_filter->n_filters, depth);
	case SPECIFIER(RESPONSE_FLAG_FILTER):
		return add_flags(t, m->response_flag_filter);
	case SPECIFIER(GRPC_STATUS_FILTER):
		return add_statuses(t, m->grpc_status_filter);
	case SPECIFIER(HEADER_FILTER):
		return lb_err_set(t->err, "header_filter: is not supported, since headers are not "
					  "kept until a request's end");
	case SPECIFIER(TRACEABLE_FILTER):
		return lb_err_set(t->err, "traceable_filter: is not supported");
	case SPECIFIER(EXTENSION_FILTER):
		return lb_err_set(t->err, "extension_filter: is not supported");
	default:
		return lb_err_set(t->err, "its filter is of no kind that is supported");
	}
}

int res_access_filter_read(
	struct res_reader *rd, const Filter *m, const struct lb_access_test **ret)
{
	struct tests t = {.err = rd->err};
	int rc = add_filter(&t, m, 0);
	if (rc)
		return lb_err_within(rd->err, "filter");
	struct lb_access_test *list = lb_arena_alloc(rd->arena, t.n, sizeof(*list));
	if (!list)
		return -ENOMEM;
	memcpy(list, t.list, t.n * sizeof(*list));
	*ret = list;
	return 0;
}
