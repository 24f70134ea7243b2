// SPDX-License-Identifier: Apache-2.0
// What the answers to health checks mean (AHC-02).
#include "dataplane/h2/h2.h"
#include "dataplane/proxy/probe_answer.h"
#include "tests/support/check.h"

#include <string.h>

static const struct lb_status_range expected[] = {{200, 300}}, retriable[] = {{500, 504}};
static const struct lb_check http = {
	.kind = LB_CHECK_HTTP, .expected = {expected, 1}, .retriable = {retriable, 1}};
static const struct lb_check grpc = {.kind = LB_CHECK_GRPC};

struct row {
	const char *name;
	uint16_t status;
	const char *grpc_status; // in the trailers; NULL = there is none
	struct str body;
	enum lb_probe_result result;
	const char *why;
};

static void check_rows(const struct lb_check *check, const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct proxy_probe_answer a = {0};
		struct field f = {.name = STR("grpc-status"), .value = str_from(r->grpc_status)};
		const struct h2_message head = {.kind = H2_RESPONSE, .status = r->status};
		const struct h2_message trailers = {
			.kind = H2_TRAILERS, .fields = &f, .n_fields = r->grpc_status != NULL};
		proxy_probe_answer_head(&a, &head);
		for (size_t k = 0; k < r->body.len; k++) // in pieces
			(void)proxy_probe_answer_body(&a, (const uint8_t *)r->body.p + k, 1);
		proxy_probe_answer_head(&a, &trailers);
		struct proxy_verdict v = proxy_probe_judge(check, &a);
		if (v.result != r->result || strcmp(v.why, r->why) != 0)
			fail_msg("%s: %d \"%s\"", r->name, v.result, v.why);
	}
}
#define CHECK_ROWS(check, rows) check_rows(check, rows, sizeof(rows) / sizeof((rows)[0]))

static void http_is_judged_by_its_status(void **state)
{
	static const struct row rows[] = {
		{"expected", 204, NULL, {"", 0}, LB_PROBE_PASSED, ""},
		{"a grpc-status means nothing", 200, "14", {"x", 1}, LB_PROBE_PASSED, ""},
		{"retriable", 503, NULL, {"", 0}, LB_PROBE_RETRIABLE, "status 503"},
		{"neither", 504, NULL, {"", 0}, LB_PROBE_UNHEALTHY, "status 504"},
		{"redirected", 302, NULL, {"", 0}, LB_PROBE_UNHEALTHY, "status 302"},
	};
	CHECK_ROWS(&http, rows);
}

static void http_may_be_judged_by_its_body(void **state)
{
	static const struct str blocks[] = {{"up", 2}};
	struct lb_check with_body = http;
	with_body.receive = blocks;
	with_body.n_receive = 1;
	static const struct row rows[] = {
		{"found", 200, NULL, {"is up!", 6}, LB_PROBE_PASSED, ""},
		{"not found", 200, NULL, {"is down", 7}, LB_PROBE_UNHEALTHY, "unexpected body"},
		{"the status comes first", 503, NULL, {"up", 2}, LB_PROBE_RETRIABLE, "status 503"},
	};
	CHECK_ROWS(&with_body, rows);
}

static void grpc_is_judged_by_what_the_service_says(void **state)
{
#define UNHEALTHY LB_PROBE_UNHEALTHY
	static const struct row rows[] = {
		{"serving", 200, "0", {"\0\0\0\0\2\x08\1", 7}, LB_PROBE_PASSED, ""},
		{"serving, and a field that is not known", 200, "0",
			{"\0\0\0\0\7\x12\1x\x08\1\x18\5", 12}, LB_PROBE_PASSED, ""},
		{"not serving", 200, "0", {"\0\0\0\0\2\x08\2", 7}, UNHEALTHY, "NOT_SERVING"},
		{"unknown, by leaving it out", 200, "0", {"\0\0\0\0\0", 5}, UNHEALTHY, "UNKNOWN"},
		{"a service that it has not", 200, "0", {"\0\0\0\0\2\x08\3", 7}, UNHEALTHY,
			"SERVICE_UNKNOWN"},
		{"a value that is none", 200, "0", {"\0\0\0\0\2\x08\x63", 7}, UNHEALTHY, "UNKNOWN"},
		{"an error", 200, "12", {"", 0}, UNHEALTHY, "grpc-status 12"},
		{"a status that is none", 200, "x", {"", 0}, UNHEALTHY, "grpc-status 2"},
		{"a status that is long", 200, "00000000000", {"", 0}, UNHEALTHY, "grpc-status 2"},
		{"no status", 200, NULL, {"\0\0\0\0\2\x08\1", 7}, UNHEALTHY, "no grpc-status"},
		{"no gRPC", 404, NULL, {"", 0}, UNHEALTHY, "status 404"},
		{"no message", 200, "0", {"", 0}, UNHEALTHY, "malformed answer"},
		{"compressed", 200, "0", {"\1\0\0\0\2\x08\1", 7}, UNHEALTHY, "malformed answer"},
		{"cut", 200, "0", {"\0\0\0\0\3\x08\1", 7}, UNHEALTHY, "malformed answer"},
		{"a number without its end", 200, "0", {"\0\0\0\0\2\x08\x81", 7}, UNHEALTHY,
			"malformed answer"},
		{"a field without its end", 200, "0", {"\0\0\0\0\2\x12\5", 7}, UNHEALTHY,
			"malformed answer"},
		{"a kind that is none", 200, "0", {"\0\0\0\0\2\x0f\1", 7}, UNHEALTHY,
			"malformed answer"},
		{"two messages", 200, "0", {"\0\0\0\0\2\x08\1\0\0\0\0\0", 12}, UNHEALTHY,
			"malformed answer"},
	};
	CHECK_ROWS(&grpc, rows);
}

static void a_long_answer_is_kept_in_part(void **state)
{
	static const uint8_t bytes[2 * LB_CHECK_MAX_RECEIVE] = {'u', 'p'};
	struct proxy_probe_answer a = {.status = 200};
	assert_true(proxy_probe_answer_body(&a, bytes, 2));
	assert_false(proxy_probe_answer_body(&a, bytes, sizeof(bytes)));
	assert_false(proxy_probe_answer_body(&a, bytes, 1));
	assert_int_equal(proxy_probe_answer_bytes(&a).len, LB_CHECK_MAX_RECEIVE);
	assert_int_equal(proxy_probe_judge(&http, &a).result, LB_PROBE_PASSED);
	a.has_grpc_status = true;
	assert_string_equal(proxy_probe_judge(&grpc, &a).why, "malformed answer");
}

RUN_SUITE("proxy/probe_answer", cmocka_unit_test(http_is_judged_by_its_status),
	cmocka_unit_test(http_may_be_judged_by_its_body),
	cmocka_unit_test(grpc_is_judged_by_what_the_service_says),
	cmocka_unit_test(a_long_answer_is_kept_in_part))
