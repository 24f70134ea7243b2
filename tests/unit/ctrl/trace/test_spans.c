// SPDX-License-Identifier: Apache-2.0
// Records as spans; that they are OTLP is for another reader to say (tests/integ/test_tracing.py).
#include "ctrl/trace/spans.h"
#include "lb/base/ip.h"
#include "lb/base/time.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/wire.h"
#include "tests/support/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest Request;
typedef Opentelemetry__Proto__Trace__V1__Span Span;
#define REQUEST                                                                                    \
	(&opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor)
#define IS_TEXT OPENTELEMETRY__PROTO__COMMON__V1__ANY_VALUE__VALUE_STRING_VALUE
#define BEGAN_NS (1700000000 * NS_PER_SECOND)

static struct lb_trace_record record;
static Request *request;

static int setup(void **state)
{
	struct lb_access_record *a = &record.access;
	memset(&record, 0, sizeof(record));
	record.ids = (struct lb_trace_ids){.high = 1, .low = 2, .span = 3, .parent = 4};
	record.path_max = 256;
	lb_access_begin(a);
	a->brief = (struct lb_access_brief){.began_ns = 5 * NS_PER_SECOND,
		.ended_ns = 5 * NS_PER_SECOND + 30 * NS_PER_MS,
		.status = 200,
		.grpc_status = LB_ACCESS_NO_GRPC};
	a->protocol = 20;
	a->client = (struct ip_port){ip_from_v4(0x0a000001), 4000};
	return 0;
}

static int teardown(void **state)
{
	proto_free(request);
	request = NULL;
	return 0;
}

static void put_head(const char *method, const char *path, const char *authority)
{
	lb_access_put(&record.access, LB_ACCESS_METHOD, str_from(method));
	lb_access_put(&record.access, LB_ACCESS_PATH, str_from(path));
	lb_access_put(&record.access, LB_ACCESS_AUTHORITY, str_from(authority));
}

static size_t spans(void)
{
	static const struct span_service service = {"edge", "1.2", "here"};
	const struct span_source source = {&record, "web", 7, BEGAN_NS};
	uint8_t *bytes;
	size_t len;
	assert_int_equal(spans_pack(&service, &source, 1, &bytes, &len), 0);
	proto_free(request);
	request = proto_unpack(REQUEST, bytes, len, NULL);
	free(bytes);
	assert_non_null(request);
	size_t n = request->resource_spans[0]->scope_spans[0]->n_spans;
	assert_int_equal(n, spans_count(&record));
	return n;
}

static const Span *span(size_t i)
{
	return request->resource_spans[0]->scope_spans[0]->spans[i];
}

// "" = it has none.
static const char *attribute(const Span *s, const char *key)
{
	static char number[24];
	for (size_t i = 0; i < s->n_attributes; i++) {
		if (strcmp(s->attributes[i]->key, key) != 0)
			continue;
		if (s->attributes[i]->value->value_case == IS_TEXT)
			return s->attributes[i]->value->string_value;
		snprintf(number, sizeof(number), "%" PRId64, s->attributes[i]->value->int_value);
		return number;
	}
	return "";
}

static void expect(size_t i, const char *const (*pairs)[2], size_t n)
{
	for (size_t j = 0; j < n; j++)
		if (strcmp(attribute(span(i), pairs[j][0]), pairs[j][1]) != 0)
			fail_msg("%s is %s, not %s", pairs[j][0], attribute(span(i), pairs[j][0]),
				pairs[j][1]);
}
#define EXPECT(i, ...)                                                                             \
	do {                                                                                       \
		static const char *const pairs[][2] = {__VA_ARGS__};                               \
		expect(i, pairs, sizeof(pairs) / sizeof(pairs[0]));                                \
	} while (0)

static uint64_t id_of(ProtobufCBinaryData id)
{
	uint64_t n = 0;
	for (size_t i = 0; i < id.len; i++)
		n = n << 8 | id.data[i];
	return n;
}

static void ops_165_a_request_is_a_servers_span(void **state)
{
	put_head("GET", "/a/b?q=1", "example.org:8080");
	lb_access_put(&record.access, LB_ACCESS_CLUSTER, STR("blue"));
	assert_int_equal(spans(), 1);
	const Span *s = span(0);
	assert_string_equal(s->name, "GET");
	assert_int_equal(
		s->kind, OPENTELEMETRY__PROTO__TRACE__V1__SPAN__SPAN_KIND__SPAN_KIND_SERVER);
	assert_int_equal(s->trace_id.len, 16);
	assert_int_equal(id_of(s->span_id), 3);
	assert_int_equal(id_of(s->parent_span_id), 4);
	assert_int_equal(s->start_time_unix_nano, BEGAN_NS);
	assert_int_equal(s->end_time_unix_nano, BEGAN_NS + 30 * NS_PER_MS);
	assert_null(s->status);
	EXPECT(0, {"http.request.method", "GET"}, {"url.path", "/a/b"}, {"url.query", "q=1"},
		{"url.scheme", "http"}, {"server.address", "example.org"}, {"server.port", "8080"},
		{"network.peer.address", "10.0.0.1"}, {"network.peer.port", "4000"},
		{"network.protocol.version", "2"}, {"http.response.status_code", "200"},
		{"shunt.cluster", "blue"}, {"shunt.cause", "ok"}, {"shunt.frontend", "web"},
		{"shunt.worker", "7"}, {"error.type", ""}, {"rpc.system", ""},
		{"shunt.endpoint", ""});
}

static void ops_165_a_trace_that_begins_here_has_no_parent(void **state)
{
	put_head("BREW", "/pot", "[::1]:80");
	record.ids.parent = 0;
	spans();
	assert_int_equal(span(0)->parent_span_id.len, 0);
	assert_string_equal(span(0)->name, "HTTP");
	EXPECT(0, {"http.request.method", "_OTHER"}, {"http.request.method_original", "BREW"},
		{"server.address", "::1"}, {"server.port", "80"});
}

static void ops_165_errors_are_those_of_the_conventions(void **state)
{
	static const struct {
		uint16_t status;
		uint8_t grpc, cause;
		const char *type; // "" = no error
	} rows[] = {
		{200, LB_ACCESS_NO_GRPC, LB_CAUSE_OK, ""},
		{404, LB_ACCESS_NO_GRPC, LB_CAUSE_OK, ""},
		{500, LB_ACCESS_NO_GRPC, LB_CAUSE_OK, "500"},
		{503, LB_ACCESS_NO_GRPC, LB_CAUSE_NO_HEALTHY, "no_healthy"},
		{404, LB_ACCESS_NO_GRPC, LB_CAUSE_NO_ROUTE, ""},
		{0, LB_ACCESS_NO_GRPC, LB_CAUSE_CLIENT_RESET, "client_reset"},
		{200, 0, LB_CAUSE_OK, ""},
		{200, 5, LB_CAUSE_OK, ""},
		{200, 13, LB_CAUSE_OK, "13"},
		{200, 14, LB_CAUSE_NO_HEALTHY, "no_healthy"},
	};
	put_head("POST", "/pkg.Service/Method", "x");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_access_brief *b = &record.access.brief;
		b->status = rows[i].status;
		b->grpc_status = rows[i].grpc;
		b->cause = rows[i].cause;
		record.is_grpc = rows[i].grpc != LB_ACCESS_NO_GRPC;
		spans();
		assert_string_equal(attribute(span(0), "error.type"), rows[i].type);
		assert_int_equal(span(0)->status != NULL, *rows[i].type != 0);
	}
	assert_string_equal(span(0)->name, "pkg.Service/Method");
	EXPECT(0, {"rpc.system", "grpc"}, {"rpc.service", "pkg.Service"}, {"rpc.method", "Method"},
		{"rpc.grpc.status_code", "14"});
}

static void ops_166_attempts_are_clients_spans_within_the_servers(void **state)
{
	const struct ip_port backends[] = {
		{ip_from_v4(0x0a000102), 90}, {ip_from_v4(0x0a000103), 91}};
	put_head("POST", "/pkg.Service/Method", "x");
	record.is_grpc = record.upstream_spans = true;
	record.access.brief.grpc_status = 0;
	record.access.n_attempts = 9;
	record.access.backend = backends[1];
	record.n_attempts = 2;
	record.first = 7;
	record.attempts[0] = (struct lb_failure_attempt){.backend = backends[0],
		.after_us = 1000,
		.took_us = 2000,
		.cause = LB_CAUSE_UPSTREAM_LOST,
		.grpc_status = 14,
		.has_backend = true};
	record.attempts[1] = (struct lb_failure_attempt){
		.backend = backends[1], .after_us = 4000, .took_us = 26000, .has_backend = true};
	assert_int_equal(spans(), 3);
	for (size_t i = 1; i < 3; i++) {
		assert_int_equal(id_of(span(i)->parent_span_id), 3);
		assert_int_equal(id_of(span(i)->span_id),
			lb_trace_attempt_span(&record.ids, 6 + (uint32_t)i));
	}
	assert_int_equal(span(1)->start_time_unix_nano, BEGAN_NS + NS_PER_MS);
	assert_int_equal(span(1)->end_time_unix_nano, BEGAN_NS + 3 * NS_PER_MS);
	EXPECT(1, {"server.address", "10.0.1.2"}, {"server.port", "90"},
		{"error.type", "upstream_lost"}, {"http.response.status_code", ""},
		{"rpc.grpc.status_code", ""}, {"http.request.resend_count", "7"});
	EXPECT(2, {"server.address", "10.0.1.3"}, {"error.type", ""},
		{"http.response.status_code", "200"}, {"rpc.grpc.status_code", "0"});
	EXPECT(0, {"shunt.endpoint", "10.0.1.3:91"}, {"shunt.attempts", "9"});
	record.upstream_spans = false;
	assert_int_equal(spans(), 1);
}

static void ops_165_bytes_that_are_no_text_are_replaced_and_long_paths_cut(void **state)
{
	put_head("GET", "/\xff\xc3", "x");
	record.path_max = 3;
	spans();
	EXPECT(0, {"url.path", "/\xef\xbf\xbd\xef\xbf\xbd"});
	record.path_max = 1;
	spans();
	EXPECT(0, {"url.path", "/"});
}

static void ops_220_tags_are_attributes_of_each_span_that_has_none_of_that_key(void **state)
{
	put_head("GET", "/", "x");
	record.access.n_attempts = 1;
	record.n_attempts = 1;
	record.upstream_spans = true;
	record.attempts[0] = (struct lb_failure_attempt){.has_backend = true};
	lb_trace_tags_add(&record.tags, STR("tenant"), STR("blue"));
	lb_trace_tags_add(&record.tags, STR("url.scheme"), STR("gopher"));
	lb_trace_tags_add(&record.tags, STR("tenant"), STR("green"));
	lb_trace_tags_add(&record.tags, STR("nothing"), STR(""));
	lb_trace_tags_add(&record.tags, STR("odd"), STR("\xff"));
	assert_int_equal(spans(), 2);
	EXPECT(0, {"tenant", "blue"}, {"url.scheme", "http"}, {"odd", "\xef\xbf\xbd"});
	EXPECT(1, {"tenant", "blue"}, {"url.scheme", "gopher"}, {"odd", "\xef\xbf\xbd"});
	for (size_t i = 0; i < span(0)->n_attributes; i++) {
		const char *key = span(0)->attributes[i]->key;
		assert_string_not_equal(key, "nothing");
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(span(0)->attributes[j]->key, key);
	}
}

static void ids_of_attempts_differ(void **state)
{
	const struct lb_trace_ids ids = {.high = 1, .low = 2, .span = 3};
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_not_equal(lb_trace_attempt_span(&ids, i), ids.span);
		for (uint32_t j = 0; j < i; j++)
			assert_int_not_equal(
				lb_trace_attempt_span(&ids, i), lb_trace_attempt_span(&ids, j));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("ctrl/trace/spans", CASE(ops_165_a_request_is_a_servers_span),
	CASE(ops_165_a_trace_that_begins_here_has_no_parent),
	CASE(ops_165_errors_are_those_of_the_conventions),
	CASE(ops_166_attempts_are_clients_spans_within_the_servers),
	CASE(ops_165_bytes_that_are_no_text_are_replaced_and_long_paths_cut),
	CASE(ops_220_tags_are_attributes_of_each_span_that_has_none_of_that_key),
	CASE(ids_of_attempts_differ))
