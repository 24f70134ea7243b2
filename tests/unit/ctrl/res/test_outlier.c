// SPDX-License-Identifier: Apache-2.0
// outlier_detection: what is accepted and refused, with the defaults of gRFC A50 (A50-E02,
// A50-E03).
#include "ctrl/res/cluster.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "lb/leaf/outlier.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/cluster_json.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/rows.h"

#define OUTLIER(fields) EDS_AND("'outlierDetection':{" fields "}")
#define S NS_PER_SECOND

static void fields_are_checked(void **state)
{
#define AT "=outlier_detection: "
#define SECONDS ": seconds must be in [0, 315576000000]"
#define NANOS ": nanos must be in [0, 999999999]"
#define PERCENT ": must be in [0, 100]"
	static const struct res_row rows[] = {
		{"nothing", OUTLIER(""), NULL},
		{"negative interval", OUTLIER("'interval':'-1s'"), AT "interval" SECONDS},
		{"interval negative by a little", OUTLIER("'interval':'-0.000000001s'"),
			AT "interval" NANOS},
		{"negative base_ejection_time", OUTLIER("'baseEjectionTime':'-1s'"),
			AT "base_ejection_time" SECONDS},
		{"negative max_ejection_time", OUTLIER("'maxEjectionTime':'-1s'"),
			AT "max_ejection_time" SECONDS},
		{"interval too short", OUTLIER("'interval':'0s'"), NULL,
			"outlier_detection: interval: is too short, 0.1s is used"},
		{"shortest interval", OUTLIER("'interval':'0.1s'"), NULL},
		{"max_ejection_percent", OUTLIER("'maxEjectionPercent':101"),
			AT "max_ejection_percent" PERCENT},
		{"max_ejection_percent of all", OUTLIER("'maxEjectionPercent':100"), NULL},
		{"enforcing_success_rate", OUTLIER("'enforcingSuccessRate':101"),
			AT "enforcing_success_rate" PERCENT},
		{"enforcing_failure_percentage", OUTLIER("'enforcingFailurePercentage':101"),
			AT "enforcing_failure_percentage" PERCENT},
		{"failure_percentage_threshold", OUTLIER("'failurePercentageThreshold':101"),
			AT "failure_percentage_threshold" PERCENT},
		{"far above", OUTLIER("'maxEjectionPercent':4294967295"),
			AT "max_ejection_percent" PERCENT},
		{"ignored fields are not checked",
			OUTLIER("'enforcingConsecutive5xx':0,"
				"'enforcingLocalOriginSuccessRate':101"),
			NULL},
		// ENV-04
		{"consecutive_5xx", OUTLIER("'consecutive5xx':3"), NULL,
			"outlier_detection: consecutive_5xx is ignored"},
		{"enforcing_consecutive_5xx", OUTLIER("'enforcingConsecutive5xx':50"), NULL,
			"outlier_detection: consecutive_5xx is ignored"},
		{"consecutive_5xx, off", OUTLIER("'consecutive5xx':3,'enforcingConsecutive5xx':0"),
			NULL},
		{"gateway failures", OUTLIER("'enforcingConsecutiveGatewayFailure':1"), NULL,
			"outlier_detection: consecutive_gateway_failure is ignored"},
		{"gateway failures, off by default", OUTLIER("'consecutiveGatewayFailure':3"),
			NULL},
		{"local errors apart", OUTLIER("'splitExternalLocalOriginErrors':true"), NULL,
			"outlier_detection: split_external_local_origin_errors is ignored"},
		{"jitter", OUTLIER("'maxEjectionTimeJitter':'0.5s'"), NULL,
			"outlier_detection: max_ejection_time_jitter is ignored"},
		{"no jitter", OUTLIER("'maxEjectionTimeJitter':'0s'"), NULL},
	};
	RUN_ROWS(&res_type_cluster, rows);
}

static void check_algorithm(const struct lb_outlier_algorithm *a, bool enabled,
	uint32_t enforcement, uint32_t hosts, uint64_t volume)
{
	assert_int_equal(a->enabled, enabled);
	assert_int_equal(a->enforcement_percent, enforcement);
	assert_int_equal(a->minimum_hosts, hosts);
	assert_int_equal(a->request_volume, volume);
}

static const struct lb_outlier_conf *conf_of(const struct xds_res *r)
{
	return ((const struct res_cluster *)r)->outlier;
}

static void unset_fields_have_the_defaults_of_a50(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster, CLUSTER(FROM_EDS));
	assert_null(conf_of(r)); // A50-E01
	xds_res_put(r);

	r = res_decode(&res_type_cluster, OUTLIER(""));
	const struct lb_outlier_conf *c = conf_of(r);
	assert_int_equal(c->interval_ns, 10 * S);
	assert_int_equal(c->base_ejection_ns, 30 * S);
	assert_int_equal(c->max_ejection_ns, 300 * S);
	assert_int_equal(c->max_ejection_percent, 10);
	check_algorithm(&c->success_rate, true, 100, 5, 100); // A50-E02
	check_algorithm(&c->failure_percentage, false, 0, 5, 50);
	assert_int_equal(c->stdev_factor, 1900);
	assert_int_equal(c->threshold_percent, 85);
	xds_res_put(r);
}

static void set_fields_are_kept(void **state)
{
	struct xds_res *r = res_decode(&res_type_cluster,
		OUTLIER("'interval':'1.5s','baseEjectionTime':'2s','maxEjectionTime':'1s',"
			"'maxEjectionPercent':0,'enforcingSuccessRate':1,"
			"'successRateMinimumHosts':2,'successRateRequestVolume':3,"
			"'successRateStdevFactor':4,'enforcingFailurePercentage':5,"
			"'failurePercentageMinimumHosts':6,'failurePercentageRequestVolume':7,"
			"'failurePercentageThreshold':8"));
	const struct lb_outlier_conf *c = conf_of(r);
	assert_int_equal(c->interval_ns, 3 * S / 2);
	assert_int_equal(c->base_ejection_ns, 2 * S);
	assert_int_equal(c->max_ejection_ns, S); // the sweep takes the larger of the two (A50-E14)
	assert_int_equal(c->max_ejection_percent, 0);
	check_algorithm(&c->success_rate, true, 1, 2, 3);
	assert_int_equal(c->stdev_factor, 4);
	check_algorithm(&c->failure_percentage, true, 5, 6, 7);
	assert_int_equal(c->threshold_percent, 8);
	xds_res_put(r);
}

static void presence_decides_what_runs(void **state)
{
	static const struct {
		const char *json;
		bool rate, failures;
	} rows[] = {
		{OUTLIER(""), true, false},
		{OUTLIER("'enforcingSuccessRate':0"), false, false},
		{OUTLIER("'enforcingSuccessRate':1"), true, false},
		{OUTLIER("'enforcingFailurePercentage':0"), true, false},
		{OUTLIER("'enforcingSuccessRate':0,'enforcingFailurePercentage':1"), false, true},
		// Parameters of an algorithm do not set it going.
		{OUTLIER("'failurePercentageThreshold':1,'enforcingSuccessRate':0"), false, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		assert_int_equal(conf_of(r)->success_rate.enabled, rows[i].rate);
		assert_int_equal(conf_of(r)->failure_percentage.enabled, rows[i].failures);
		assert_int_equal(lb_outlier_counts(conf_of(r)), rows[i].rate || rows[i].failures);
		xds_res_put(r);
	}
}

// A50-E03: max(300 s, base).
static void ejection_lasts_at_most_the_base_time_by_default(void **state)
{
	static const struct {
		const char *json;
		uint64_t base_ns, max_ns;
	} rows[] = {
		{OUTLIER("'baseEjectionTime':'299s'"), 299 * S, 300 * S},
		{OUTLIER("'baseEjectionTime':'301s'"), 301 * S, 301 * S},
		{OUTLIER("'baseEjectionTime':'301s','maxEjectionTime':'400s'"), 301 * S, 400 * S},
		{OUTLIER("'baseEjectionTime':'0s'"), 0, 300 * S},
		{OUTLIER("'baseEjectionTime':'315576000000s'"), UINT64_MAX, UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct xds_res *r = res_decode(&res_type_cluster, rows[i].json);
		assert_true(conf_of(r)->base_ejection_ns == rows[i].base_ns);
		assert_true(conf_of(r)->max_ejection_ns == rows[i].max_ns);
		xds_res_put(r);
	}
}

RUN_SUITE("res/outlier", cmocka_unit_test(fields_are_checked),
	cmocka_unit_test(unset_fields_have_the_defaults_of_a50),
	cmocka_unit_test(set_fields_are_kept), cmocka_unit_test(presence_decides_what_runs),
	cmocka_unit_test(ejection_lasts_at_most_the_base_time_by_default))
