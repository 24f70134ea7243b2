// SPDX-License-Identifier: Apache-2.0
// Access logs of an HttpConnectionManager: which are read, as what, and what is said of the others.
#include "ctrl/access_log/format.h"
#include "ctrl/res/listener.h"
#include "ctrl/xds/type.h"
#include "lb/base/time.h"
#include "lb/pick/access_set.h"
#include "lb/pick/cause.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/res/decode.h"
#include "tests/unit/ctrl/res/json.h"
#include "tests/unit/ctrl/res/rows.h"

#include <stdio.h>
#include <string.h>

#define LOGGERS "envoy.extensions.access_loggers."
#define FILE_TYPE LOGGERS "file.v3.FileAccessLog"
#define STDOUT_TYPE LOGGERS "stream.v3.StdoutAccessLog"
#define STDERR_TYPE LOGGERS "stream.v3.StderrAccessLog"
#define LOGS(list) ROUTED(RDS ",'accessLog':[" list "]")
#define LOG(type, fields) "{'name':'a','typedConfig':" ANY(type, fields) "}"
#define FILE_LOG(fields) LOG(FILE_TYPE, ",'path':'/logs/a'" fields)
#define FILTERED(filter)                                                                           \
	"{'name':'a','filter':{" filter "},'typedConfig':" ANY(FILE_TYPE, ",'path':'/logs/a'") "}"
#define GRPC_TYPE LOGGERS "grpc.v3.HttpGrpcAccessLogConfig"
#define SERVICE(fields) "'grpcService':{" fields "}"
#define KEPT_REQUEST                                                                               \
	"kept are :method, :path, :authority, user-agent, x-request-id, traceparent, "             \
	"x-forwarded-for"
#define TO_ALS SERVICE("'envoyGrpc':{'clusterName':'als'}")
#define COMMON(fields) ",'commonConfig':{'transportApiVersion':'V3'" fields "}"
#define NAMED ",'logName':'edge',"
#define GRPC_LOG(more, common) LOGS(LOG(GRPC_TYPE, COMMON(NAMED TO_ALS common) more))
#define IGNORED(why) "access_log \"a\" is ignored: " why
#define IGNORED_COMMON(why) IGNORED("common_config: " why)
#define COMPARE(op, value) "'comparison':{'op':'" op "','value':{'defaultValue':" value "}}"
#define STATUS(op, value) "'statusCodeFilter':{" COMPARE(op, value) "}"

// OPS-42: none of it is a reason to refuse a listener.
static void what_is_not_supported_is_left_out_with_a_warning(void **state)
{
	static const struct res_row rows[] = {
		{"a file", LOGS(FILE_LOG(""))},
		{"no logs", ROUTED(RDS ",'accessLog':[]")},
		{"two", LOGS(FILE_LOG("") "," LOG(STDOUT_TYPE, ""))},
		{"unknown type", LOGS(LOG(ROUTER_TYPE, "")), NULL,
			IGNORED("\"" URL ROUTER_TYPE "\" is not supported")},
		{"unknown type in a TypedStruct",
			LOGS("{'name':'a','typedConfig':" STRUCT_ANY(
				TYPED_STRUCT, LOGGERS "wasm.v3.WasmAccessLog", "") "}"),
			NULL, IGNORED("\"" URL LOGGERS "wasm.v3.WasmAccessLog\" is not supported")},
		{"known type in a TypedStruct",
			LOGS("{'name':'a','typedConfig':" STRUCT_ANY(
				TYPED_STRUCT, FILE_TYPE, "'path':'/logs/a'") "}")},
		{"no type", LOGS("{'name':'a'}"), NULL, IGNORED("no typed_config")},
		{"no path", LOGS(LOG(FILE_TYPE, "")), NULL, IGNORED("no path")},
		{"format from a file",
			LOGS(FILE_LOG(",'logFormat':{'textFormatSource':{'filename':'/etc/"
				      "shadow'}}")),
			NULL,
			IGNORED("text_format_source: neither inline_string nor inline_bytes")},
		{"format from the environment",
			LOGS(FILE_LOG(",'logFormat':{'textFormatSource':{'environmentVariable':"
				      "'HOME'}}")),
			NULL,
			IGNORED("text_format_source: neither inline_string nor inline_bytes")},
		{"format without one", LOGS(LOG(STDOUT_TYPE, ",'logFormat':{}")), NULL,
			IGNORED("log_format: there is none in it")},
		{"formatters",
			LOGS(FILE_LOG(",'logFormat':{'textFormat':'x','formatters':[{'name':'f'}]"
				      "}")),
			NULL, IGNORED("formatters: are not supported")},
		{"omit_empty_values",
			LOGS(FILE_LOG(",'logFormat':{'textFormat':'x','omitEmptyValues':true}")),
			NULL, "access_log: omit_empty_values is ignored"},
		{"header_filter", LOGS(FILTERED("'headerFilter':{'header':{'name':'x'}}")), NULL,
			IGNORED("filter: header_filter: is not supported, since headers are not "
				"kept until a request's end")},
		{"traceable_filter", LOGS(FILTERED("'traceableFilter':{}")), NULL,
			IGNORED("filter: traceable_filter: is not supported")},
		{"extension_filter", LOGS(FILTERED("'extensionFilter':{'name':'e'}")), NULL,
			IGNORED("filter: extension_filter: is not supported")},
		{"no kind of filter", LOGS(FILTERED("")), NULL,
			IGNORED("filter: its filter is of no kind that is supported")},
		{"no comparison", LOGS(FILTERED("'statusCodeFilter':{}")), NULL,
			IGNORED("filter: status_code_filter: no comparison")},
		{"unknown op", LOGS(FILTERED("'durationFilter':{'comparison':{'op':7}}")), NULL,
			IGNORED("filter: duration_filter: unknown op 7")},
		{"and of none", LOGS(FILTERED("'andFilter':{}")), NULL,
			IGNORED("filter: and_filter: no filters")},
		{"or of none", LOGS(FILTERED("'orFilter':{}")), NULL,
			IGNORED("filter: or_filter: no filters")},
		{"unknown status", LOGS(FILTERED("'grpcStatusFilter':{'statuses':[17]}")), NULL,
			IGNORED("filter: grpc_status_filter: unknown status 17")},
		{"unknown denominator",
			LOGS(FILTERED("'runtimeFilter':{'percentSampled':{'denominator':9}}")),
			NULL,
			IGNORED("filter: runtime_filter: percent_sampled: unknown denominator 9")},
		{"one within another",
			LOGS(FILTERED("'andFilter':{'filters':[{'traceableFilter':{}}]}")), NULL,
			IGNORED("filter: traceable_filter: is not supported")},
	};
	RUN_ROWS(&res_type_listener, rows);
}

// OPS-217
static void what_a_service_is_not_told_is_named(void **state)
{
	static const struct res_row rows[] = {
		{"a service", GRPC_LOG("", "")},
		{"no common_config", LOGS(LOG(GRPC_TYPE, "")), NULL, IGNORED_COMMON("is missing")},
		{"no log_name", LOGS(LOG(GRPC_TYPE, COMMON("," TO_ALS))), NULL,
			IGNORED_COMMON("log_name: it has not between 1 and 255 bytes")},
		{"no version", LOGS(LOG(GRPC_TYPE, ",'commonConfig':{'logName':'a'," TO_ALS "}")),
			NULL, IGNORED_COMMON("transport_api_version: is not V3")},
		{"no service", LOGS(LOG(GRPC_TYPE, COMMON(",'logName':'a'"))), NULL,
			IGNORED_COMMON("grpc_service: it is not envoy_grpc with a "
				       "cluster_name")},
		{"Google's client",
			LOGS(LOG(GRPC_TYPE,
				COMMON(NAMED SERVICE("'googleGrpc':{'targetUri':'a:1'}")))),
			NULL,
			IGNORED_COMMON("grpc_service: it is not envoy_grpc with a "
				       "cluster_name")},
		{"no cluster", LOGS(LOG(GRPC_TYPE, COMMON(NAMED SERVICE("'envoyGrpc':{}")))), NULL,
			IGNORED_COMMON("grpc_service: it is not envoy_grpc with a "
				       "cluster_name")},
		{"no interval", GRPC_LOG("", ",'bufferFlushInterval':'0s'"), NULL,
			IGNORED_COMMON("buffer_flush_interval: is 0")},
		{"a bad interval", GRPC_LOG("", ",'bufferFlushInterval':'-1s'"), NULL,
			IGNORED_COMMON("buffer_flush_interval: seconds must be in [0, "
				       "315576000000]")},
		{"a header that is not kept",
			GRPC_LOG(",'additionalRequestHeadersToLog':['cookie','traceparent']", ""),
			NULL,
			"access_log: additional_request_headers_to_log: 'cookie' is not "
			"kept; " KEPT_REQUEST},
		{"a header of the answer that is not kept",
			GRPC_LOG(",'additionalResponseHeadersToLog':['etag']", ""), NULL,
			"access_log: additional_response_headers_to_log: 'etag' is not kept; "
			"kept are :status, grpc-status"},
		{"a trailer that is not kept",
			GRPC_LOG(",'additionalResponseTrailersToLog':['etag']", ""), NULL,
			"access_log: additional_response_trailers_to_log: 'etag' is not kept; "
			"kept are grpc-status"},
		{"filter state", GRPC_LOG("", ",'filterStateObjectsToLog':['x']"), NULL,
			"access_log: filter_state_objects_to_log is ignored"},
		{"custom tags", GRPC_LOG("", ",'customTags':[{'tag':'x'}]"), NULL,
			"access_log: custom_tags are ignored"},
		{"retries", GRPC_LOG("", ",'grpcStreamRetryPolicy':{'numRetries':1}"), NULL,
			"access_log: grpc_stream_retry_policy is ignored"},
		{"a timeout",
			LOGS(LOG(GRPC_TYPE, COMMON(NAMED SERVICE("'timeout':'1s','envoyGrpc':{"
								 "'clusterName':'als'}")))),
			NULL, "access_log: grpc_service: timeout is ignored"},
	};
	RUN_ROWS(&res_type_listener, rows);
}

static struct xds_res *logs_of(const char *json, struct res_access_logs *ret)
{
	struct xds_res *res = res_decode(&res_type_listener, json);
	*ret = res_listener_from(res)->access_logs;
	return res;
}

// OPS-40
static void places_and_formats_are_those_of_the_resource(void **state)
{
	static const struct {
		const char *json;
		enum access_place_kind kind;
		enum access_form form;
		const char *format;
	} rows[] = {
		{LOGS(FILE_LOG("")), ACCESS_FILE, ACCESS_TEXT, ACCESS_ENVOYS_FORMAT},
		{LOGS(FILE_LOG(",'format':''")), ACCESS_FILE, ACCESS_TEXT, ACCESS_ENVOYS_FORMAT},
		{LOGS(FILE_LOG(",'format':'%PROTOCOL%'")), ACCESS_FILE, ACCESS_TEXT, "%PROTOCOL%"},
		{LOGS(FILE_LOG(",'jsonFormat':{'p':'%PROTOCOL%'}")), ACCESS_FILE,
			ACCESS_JSON_STRINGS, "{\"p\":\"%PROTOCOL%\"}"},
		{LOGS(FILE_LOG(",'typedJsonFormat':{'p':'%PROTOCOL%'}")), ACCESS_FILE,
			ACCESS_JSON_TYPED, "{\"p\":\"%PROTOCOL%\"}"},
		{LOGS(FILE_LOG(",'logFormat':{'jsonFormat':{'p':'%PROTOCOL%'}}")), ACCESS_FILE,
			ACCESS_JSON_TYPED, "{\"p\":\"%PROTOCOL%\"}"},
		{LOGS(FILE_LOG(",'logFormat':{'textFormat':'x'}")), ACCESS_FILE, ACCESS_TEXT, "x"},
		{LOGS(LOG(STDOUT_TYPE, ",'logFormat':{'textFormatSource':{'inlineString':'y'}}")),
			ACCESS_STDOUT, ACCESS_TEXT, "y"},
		{LOGS(LOG(STDERR_TYPE, ",'logFormat':{'textFormatSource':{'inlineBytes':'eg=='}}")),
			ACCESS_STDERR, ACCESS_TEXT, "z"},
		{LOGS(LOG(STDOUT_TYPE, "")), ACCESS_STDOUT, ACCESS_TEXT, ACCESS_ENVOYS_FORMAT},
		{LOGS(LOG(STDERR_TYPE, "")), ACCESS_STDERR, ACCESS_TEXT, ACCESS_ENVOYS_FORMAT},
		{LOGS(LOG(FILE_TYPE, ",'path':'/dev/stdout'")), ACCESS_STDOUT, ACCESS_TEXT,
			ACCESS_ENVOYS_FORMAT},
		{LOGS(LOG(FILE_TYPE, ",'path':'/dev/stderr'")), ACCESS_STDERR, ACCESS_TEXT,
			ACCESS_ENVOYS_FORMAT},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct res_access_logs logs;
		struct xds_res *res = logs_of(rows[i].json, &logs);
		assert_int_equal(logs.n, 1);
		assert_string_equal(logs.list[0].name, "a");
		assert_int_equal(logs.list[0].place.kind, rows[i].kind);
		if (rows[i].kind == ACCESS_FILE)
			assert_string_equal(logs.list[0].place.path, "/logs/a");
		assert_int_equal(logs.list[0].form, rows[i].form);
		assert_string_equal(logs.list[0].format, rows[i].format);
		assert_null(logs.list[0].test);
		xds_res_put(res);
	}
}

// OPS-217
static void a_service_has_a_cluster_a_name_batches_and_headers(void **state)
{
	struct res_access_logs logs;
	struct xds_res *res = logs_of(GRPC_LOG("", ""), &logs);
	assert_int_equal(logs.n, 1);
	struct access_place p = logs.list[0].place;
	assert_int_equal(p.kind, ACCESS_COLLECTOR);
	assert_string_equal(p.path, "als");
	assert_string_equal(p.log_name, "edge");
	assert_int_equal(p.batch_bytes, 16384);
	assert_int_equal(p.batch_ns, NS_PER_SECOND);
	assert_int_equal(logs.list[0].form, ACCESS_ENTRY);
	assert_string_equal(logs.list[0].format, "");
	xds_res_put(res);
	res = logs_of(GRPC_LOG(",'additionalRequestHeadersToLog':['TraceParent','cookie',':path',"
			       "'traceparent'],'additionalResponseHeadersToLog':[':status'],"
			       "'additionalResponseTrailersToLog':['grpc-status']",
			      ",'bufferSizeBytes':0,'bufferFlushInterval':'0.5s'"),
		&logs);
	assert_int_equal(logs.list[0].place.batch_bytes, 0);
	assert_int_equal(logs.list[0].place.batch_ns, NS_PER_SECOND / 2);
	assert_string_equal(logs.list[0].format,
		"request traceparent\nrequest :path\nresponse :status\ntrailers grpc-status\n");
	xds_res_put(res);
	res = logs_of(GRPC_LOG("", ",'bufferSizeBytes':4000000000"), &logs);
	assert_int_equal(logs.list[0].place.batch_bytes, 1 << 19); // half of what may wait
	xds_res_put(res);
}

// OPS-42
static void those_before_and_behind_one_that_is_left_out_are_there(void **state)
{
	struct res_access_logs logs;
	struct xds_res *res = logs_of(LOGS(FILE_LOG(",'format':'1'") "," LOG(
					      ROUTER_TYPE, "") "," FILE_LOG(",'format':'3'")),
		&logs);
	assert_int_equal(logs.n, 2);
	assert_string_equal(logs.list[0].format, "1");
	assert_string_equal(logs.list[1].format, "3");
	xds_res_put(res);
}

#define FLAG(x) (1u << LB_CAUSE_##x)
#define PERCENT(n, of) "'percentSampled':{'numerator':" n ",'denominator':'" of "'}"

// OPS-41
static void filters_are_conditions_in_their_order(void **state)
{
	static const struct {
		const char *json;
		struct lb_access_test tests[6];
		uint32_t n;
	} rows[] = {
		{LOGS(FILTERED(STATUS("GE", "500"))),
			{{LB_ACCESS_STATUS, LB_ACCESS_GE, .value = 500}}, 1},
		{LOGS(FILTERED("'durationFilter':{" COMPARE("LE", "9") "}")),
			{{LB_ACCESS_DURATION, LB_ACCESS_LE, .value = 9}}, 1},
		{LOGS(FILTERED("'notHealthCheckFilter':{}")), {{LB_ACCESS_ALL}}, 1},
		{LOGS(FILTERED("'runtimeFilter':{'runtimeKey':'k'}")), {{LB_ACCESS_CHANCE}}, 1},
		{LOGS(FILTERED("'runtimeFilter':{" PERCENT("25", "HUNDRED") "}")),
			{{LB_ACCESS_CHANCE, .value = LB_ACCESS_SAMPLE_ALL / 4}}, 1},
		{LOGS(FILTERED("'runtimeFilter':{" PERCENT("7000000", "MILLION") "}")),
			{{LB_ACCESS_CHANCE, .value = LB_ACCESS_SAMPLE_ALL}}, 1},
		{LOGS(FILTERED("'grpcStatusFilter':{'statuses':['OK','UNAVAILABLE']}")),
			{{LB_ACCESS_GRPC, .value = 1 | 1 << 14}}, 1},
		{LOGS(FILTERED("'grpcStatusFilter':{'statuses':['OK'],'exclude':true}")),
			{{LB_ACCESS_GRPC, .value = 0x1fffe}}, 1},
		{LOGS(FILTERED("'responseFlagFilter':{'flags':['UT','NR','LH']}")),
			{{LB_ACCESS_CAUSES, .value = FLAG(TIMEOUT) | FLAG(NO_ROUTE)}}, 1},
		{LOGS(FILTERED("'responseFlagFilter':{}")),
			{{LB_ACCESS_CAUSES,
				.value = ((1u << LB_N_CAUSES) - 2) | LB_ACCESS_DELAYED}},
			1},
		{LOGS(FILTERED("'responseFlagFilter':{'flags':['DI','FI']}")),
			{{LB_ACCESS_CAUSES, .value = FLAG(FAULT) | LB_ACCESS_DELAYED}}, 1},
		{LOGS(FILTERED("'andFilter':{'filters':[{'orFilter':{'filters':[{" STATUS(
			 "EQ", "1") "},{" STATUS("NE", "2") "}]}},{" STATUS("LE", "3") "}]}")),
			{{LB_ACCESS_ALL, .n = 4}, {LB_ACCESS_ANY, .n = 2},
				{LB_ACCESS_STATUS, LB_ACCESS_EQ, .value = 1},
				{LB_ACCESS_STATUS, LB_ACCESS_NE, .value = 2},
				{LB_ACCESS_STATUS, LB_ACCESS_LE, .value = 3}},
			5},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct res_access_logs logs;
		struct xds_res *res = logs_of(rows[i].json, &logs);
		assert_int_equal(logs.n, 1);
		for (uint32_t k = 0; k < rows[i].n; k++) {
			const struct lb_access_test *got = &logs.list[0].test[k];
			const struct lb_access_test *due = &rows[i].tests[k];
			if (got->kind != due->kind || got->op != due->op || got->n != due->n ||
				got->salt != due->salt || got->value != due->value)
				fail_msg("row %zu, condition %u", i, k);
		}
		xds_res_put(res);
	}
}

// OPS-41
static void independent_chances_have_numbers_of_their_own(void **state)
{
#define OWN "{'runtimeFilter':{'useIndependentRandomness':true}}"
	struct res_access_logs logs;
	struct xds_res *res =
		logs_of(LOGS(FILTERED("'orFilter':{'filters':[" OWN "," OWN "]}")), &logs);
	assert_int_equal(logs.n, 1);
	const struct lb_access_test *t = logs.list[0].test;
	assert_true(t[1].salt && t[2].salt && t[1].salt != t[2].salt);
	xds_res_put(res);
}

// Filters within each other `depth` times, or n next to each other, in an "or".
static void nested(char *to, size_t size, unsigned depth, unsigned n)
{
	size_t len = (size_t)snprintf(to, size, "%s", "{'orFilter':{'filters':[");
	for (unsigned i = 1; i < depth; i++)
		len += (size_t)snprintf(to + len, size - len, "{'orFilter':{'filters':[");
	for (unsigned i = 0; i < n; i++)
		len += (size_t)snprintf(
			to + len, size - len, "%s{'notHealthCheckFilter':{}}", i ? "," : "");
	for (unsigned i = 0; i < depth; i++)
		len += (size_t)snprintf(to + len, size - len, "]}}");
}

static uint32_t n_read(unsigned depth, unsigned n)
{
	static char filter[8192], json[16384];
	struct res_access_logs logs;
	nested(filter, sizeof(filter), depth, n);
	snprintf(json, sizeof(json),
		LOGS("{'name':'a','filter':%s,'typedConfig':" ANY(
			FILE_TYPE, ",'path':'/logs/a'") "}"),
		filter);
	struct xds_res *res = logs_of(json, &logs);
	uint32_t read = logs.n;
	xds_res_put(res);
	return read;
}

// OPS-41: workers go through them at each request's end.
static void conditions_are_bounded(void **state)
{
	assert_int_equal(n_read(LB_ACCESS_DEPTH, 1), 1);
	assert_int_equal(n_read(LB_ACCESS_DEPTH + 1, 1), 0);
	assert_int_equal(n_read(1, LB_ACCESS_TESTS - 1), 1);
	assert_int_equal(n_read(1, LB_ACCESS_TESTS), 0);
}

// OPS-42: each that can't be is told of.
static void a_listener_has_a_bounded_number(void **state)
{
	static char list[32768], json[65536];
	struct res_access_logs logs;
	size_t len = 0;
	for (unsigned i = 0; i <= ACCESS_WANTS_MAX; i++)
		len += (size_t)snprintf(
			list + len, sizeof(list) - len, "%s" FILE_LOG(""), i ? "," : "");
	snprintf(json, sizeof(json), LOGS("%s"), list);
	struct xds_res *res = logs_of(json, &logs);
	assert_int_equal(logs.n, ACCESS_WANTS_MAX);
	const struct res_warnings *w = &res_listener_from(res)->warnings;
	assert_int_equal(w->n, 1);
	assert_string_equal(w->list[0].text, "access_log: those behind the first 62 are ignored");
	xds_res_put(res);
}

// OPS-40: each chain has those of its own manager.
static void a_filter_chain_has_its_own(void **state)
{
	struct xds_res *res = res_decode(&res_type_listener,
		SOCKET_LISTENER(",'filterChains':[{" CHAIN_OF(RDS ",'accessLog':[" FILE_LOG(
			"") "],'httpFilters':[" ROUTER
			    "]") "}],'defaultFilterChain':{" CHAIN_FILTERS "}"));
	const struct res_socket *s = res_listener_from(res)->socket;
	assert_int_equal(s->chains[0].http->access_logs.n, 1);
	assert_int_equal(s->chains[1].http->access_logs.n, 0);
	xds_res_put(res);
}

RUN_SUITE("res/access_log", cmocka_unit_test(what_is_not_supported_is_left_out_with_a_warning),
	cmocka_unit_test(what_a_service_is_not_told_is_named),
	cmocka_unit_test(places_and_formats_are_those_of_the_resource),
	cmocka_unit_test(a_service_has_a_cluster_a_name_batches_and_headers),
	cmocka_unit_test(those_before_and_behind_one_that_is_left_out_are_there),
	cmocka_unit_test(filters_are_conditions_in_their_order),
	cmocka_unit_test(independent_chances_have_numbers_of_their_own),
	cmocka_unit_test(conditions_are_bounded), cmocka_unit_test(a_listener_has_a_bounded_number),
	cmocka_unit_test(a_filter_chain_has_its_own))
