// SPDX-License-Identifier: Apache-2.0
// What lines of the access log look like: operators of text formats, and JSON.
#include "ctrl/access_log/format.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <jansson.h>

#include <errno.h>
#include <string.h>

#define BEGAN_WALL_NS UINT64_C(1700000000123456789) // 2023-11-14T22:13:20.123456789Z
#define ENVOYS_DEFAULT                                                                             \
	"[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" "         \
	"%RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% "               \
	"%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" "                        \
	"\"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" "                     \
	"\"%UPSTREAM_HOST%\"\n"

static struct ip_port at(const char *ip, uint16_t port)
{
	struct ip_port to = {.port = port};
	assert_true(ip_parse(ip, &to.ip));
	return to;
}

// A call that a backend answered.
static void fill_good(struct lb_access_record *a)
{
	lb_access_begin(a);
	a->brief = (struct lb_access_brief){.began_ns = NS_PER_SECOND,
		.ended_ns = NS_PER_SECOND + 12345678,
		.status = 200,
		.grpc_status = 5};
	a->received_ns = NS_PER_SECOND + 2 * NS_PER_MS;
	a->answered_ns = NS_PER_SECOND + 10 * NS_PER_MS;
	a->body_in = 17;
	a->body_out = 4294967296;
	a->client = at("2001:db8::7", 50123);
	a->backend = at("10.0.0.3", 8080);
	a->n_attempts = 2;
	a->protocol = 20;
	lb_access_put(a, LB_ACCESS_METHOD, STR("POST"));
	lb_access_put(a, LB_ACCESS_PATH, STR("/a.B/C?d=\"e\""));
	lb_access_put(a, LB_ACCESS_AUTHORITY, STR("web:8080"));
	lb_access_put(a, LB_ACCESS_USER_AGENT, STR("grpc-c/1"));
	lb_access_put(a, LB_ACCESS_REQUEST_ID, STR("id-1"));
	lb_access_put(a, LB_ACCESS_TRACEPARENT, STR("00-ab-cd-01"));
	lb_access_put(a, LB_ACCESS_CLUSTER, STR("blue"));
	lb_access_put(a, LB_ACCESS_ROUTE, STR("to blue"));
}

// One that found no route, and that brought nothing.
static void fill_bad(struct lb_access_record *a)
{
	lb_access_begin(a);
	a->brief = (struct lb_access_brief){.began_ns = NS_PER_SECOND,
		.ended_ns = NS_PER_SECOND,
		.status = 404,
		.grpc_status = LB_ACCESS_NO_GRPC,
		.cause = LB_CAUSE_NO_ROUTE};
	a->client = at("10.0.0.9", 4000);
	a->protocol = 11;
	lb_access_put(a, LB_ACCESS_METHOD, STR("GET"));
	lb_access_put(a, LB_ACCESS_PATH, STR("/x\n\x7f"));
}

static void write_line(const struct access_format *f, const struct lb_access_record *a, char *to)
{
	struct access_view v = {.record = a,
		.frontend = "front",
		.local = at("10.0.0.1", 80),
		.worker = 3,
		.began_wall_ns = BEGAN_WALL_NS};
	struct access_line line = {.p = to, .size = ACCESS_LINE_MAX};
	access_format_write(f, &v, &line);
	assert_true(line.len <= ACCESS_LINE_MAX);
	assert_int_equal(to[line.len - 1], '\n');
	to[line.len - 1] = 0;
}

static const struct row {
	const char *format, *good, *bad; // what a line is
} rows[] = {
	{"", "", ""},
	{"text", "text", "text"},
	{"50%%", "50%", "50%"},
	{"%%%PROTOCOL%%%", "%HTTP/2%", "%HTTP/1.1%"},
	{"a\n", "a", "a"},
	{"%PROTOCOL%", "HTTP/2", "HTTP/1.1"},
	{"%REQ(:METHOD)%", "POST", "GET"},
	{"%REQ(:method)%", "POST", "GET"},
	{"%REQ(:METHOD):2%", "PO", "GE"},
	{"%REQ(:METHOD):99%", "POST", "GET"},
	{"%REQ(:PATH)%", "/a.B/C?d=\"e\"", "/x\\x0a\\x7f"},
	{"%REQ(:PATH):3%", "/a.", "/x\\"},
	{"%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", "/a.B/C?d=\"e\"", "/x\\x0a\\x7f"},
	{"%REQ(X-ENVOY-ORIGINAL-PATH)%", "-", "-"},
	{"%REQ(:AUTHORITY)%", "web:8080", "-"},
	{"%REQ(:AUTHORITY?:METHOD)%", "web:8080", "GET"},
	{"%REQ(USER-AGENT)%", "grpc-c/1", "-"},
	{"%REQ(User-Agent?X-Request-Id)%", "grpc-c/1", "-"},
	{"%REQ(X-REQUEST-ID)%", "id-1", "-"},
	{"%REQ(TRACEPARENT)%", "00-ab-cd-01", "-"},
	{"%REQ(X-FORWARDED-FOR)%", "-", "-"},
	{"%REQ(X-FORWARDED-FOR?X-REQUEST-ID):2%", "id", "-"},
	{"%RESP(:STATUS)%", "200", "404"},
	{"%RESP(GRPC-STATUS)%", "5", "-"},
	{"%RESP(GRPC-STATUS?:STATUS)%", "5", "404"},
	{"%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%", "-", "-"},
	{"%TRAILER(GRPC-STATUS)%", "5", "-"},
	{"%RESPONSE_CODE%", "200", "404"},
	{"%RESPONSE_CODE_DETAILS%", "via_upstream", "route_not_found"},
	{"%RESPONSE_FLAGS%", "-", "NR"},
	{"%DURATION%", "12", "0"},
	{"%REQUEST_DURATION%", "2", "-"},
	{"%RESPONSE_DURATION%", "10", "-"},
	{"%RESPONSE_TX_DURATION%", "2", "-"},
	{"%BYTES_RECEIVED%", "17", "0"},
	{"%BYTES_SENT%", "4294967296", "0"},
	{"%UPSTREAM_HOST%", "10.0.0.3:8080", "-"},
	{"%UPSTREAM_REMOTE_ADDRESS%", "10.0.0.3:8080", "-"},
	{"%UPSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "10.0.0.3", "-"},
	{"%UPSTREAM_REMOTE_PORT%", "8080", "-"},
	{"%UPSTREAM_CLUSTER%", "blue", "-"},
	{"%UPSTREAM_CLUSTER:2%", "bl", "-"},
	{"%UPSTREAM_REQUEST_ATTEMPT_COUNT%", "2", "0"},
	{"%DOWNSTREAM_REMOTE_ADDRESS%", "[2001:db8::7]:50123", "10.0.0.9:4000"},
	{"%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "2001:db8::7", "10.0.0.9"},
	{"%DOWNSTREAM_REMOTE_PORT%", "50123", "4000"},
	{"%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%", "[2001:db8::7]:50123", "10.0.0.9:4000"},
	{"%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%", "2001:db8::7", "10.0.0.9"},
	{"%DOWNSTREAM_LOCAL_ADDRESS%", "10.0.0.1:80", "10.0.0.1:80"},
	{"%DOWNSTREAM_LOCAL_ADDRESS_WITHOUT_PORT%", "10.0.0.1", "10.0.0.1"},
	{"%DOWNSTREAM_LOCAL_PORT%", "80", "80"},
	{"%GRPC_STATUS%", "NotFound", "-"},
	{"%GRPC_STATUS(CAMEL_STRING)%", "NotFound", "-"},
	{"%GRPC_STATUS(SNAKE_STRING)%", "NOT_FOUND", "-"},
	{"%GRPC_STATUS(NUMBER)%", "5", "-"},
	{"%GRPC_STATUS_NUMBER%", "5", "-"},
	{"%SHUNT_CAUSE%", "ok", "no_route"},
	{"%SHUNT_FRONTEND%", "front", "front"},
	{"%SHUNT_WORKER%", "3", "3"},
	{"%START_TIME%", "2023-11-14T22:13:20.123Z", "2023-11-14T22:13:20.123Z"},
	{"%START_TIME(%Y/%m/%d %H:%M:%S)%", "2023/11/14 22:13:20", "2023/11/14 22:13:20"},
	{"%START_TIME(%s)%", "1700000000", "1700000000"},
	{"%START_TIME(%s.%3f)%", "1700000000.123", "1700000000.123"},
	{"%START_TIME(%f)%", "123456789", "123456789"},
	{"%START_TIME(%6f %9f %1f)%", "123456 123456789 1", "123456 123456789 1"},
	{"%START_TIME(%a %b %e %j %%)%", "Tue Nov 14 318 %", "Tue Nov 14 318 %"},
	{"%START_TIME(%Y):2%", "20", "20"},
	{"%ROUTE_NAME%", "to blue", "-"},
	{"%VIRTUAL_CLUSTER_NAME%", "-", "-"},
	{"%STREAM_ID%", "id-1", "-"},
	{"%UPSTREAM_CLUSTER_RAW%", "blue", "-"},
	{"%UPSTREAM_PROTOCOL%", "HTTP/2", "-"},
	{"%RESPONSE_FLAGS_LONG%", "-", "NoRouteFound"},
	{"%PATH%", "/a.B/C?d=\"e\"", "/x\\x0a\\x7f"},
	{"%PATH(WQ)%", "/a.B/C?d=\"e\"", "/x\\x0a\\x7f"},
	{"%PATH(NQ)%", "/a.B/C", "/x\\x0a\\x7f"},
	{"%PATH(NQ:ORIG_OR_PATH):2%", "/a", "/x"},
	{"%DOWNSTREAM_DIRECT_REMOTE_PORT%", "50123", "4000"},
	{"%DOWNSTREAM_DIRECT_LOCAL_ADDRESS%", "10.0.0.1:80", "10.0.0.1:80"},
	{"%DOWNSTREAM_DIRECT_LOCAL_ADDRESS_WITHOUT_PORT%", "10.0.0.1", "10.0.0.1"},
	{"%DOWNSTREAM_DIRECT_LOCAL_PORT%", "80", "80"},
	{"%DURATION% ms, %PROTOCOL%", "12 ms, HTTP/2", "0 ms, HTTP/1.1"},
	{ENVOYS_DEFAULT,
		"[2023-11-14T22:13:20.123Z] \"POST /a.B/C?d=\"e\" HTTP/2\" 200 - 17 4294967296 12 "
		"- \"-\" \"grpc-c/1\" \"id-1\" \"web:8080\" \"10.0.0.3:8080\"",
		"[2023-11-14T22:13:20.123Z] \"GET /x\\x0a\\x7f HTTP/1.1\" 404 NR 0 0 0 "
		"- \"-\" \"-\" \"-\" \"-\" \"-\""},
};

// OPS-35, OPS-37
static void operators_are_written_as_envoy_writes_them(void **state)
{
	char text[ACCESS_LINE_MAX + 1];
	struct lb_access_record good, bad;
	fill_good(&good);
	fill_bad(&bad);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct access_format *f;
		struct lb_err err = {.text = ""};
		if (access_format_new(rows[i].format, &f, &err))
			fail_msg("%s: %s", rows[i].format, err.text);
		write_line(f, &good, text);
		assert_string_equal(text, rows[i].good);
		write_line(f, &bad, text);
		assert_string_equal(text, rows[i].bad);
		access_format_free(f);
	}
}

// OPS-301: in Envoy's order.
static void a_delay_by_a_fault_has_a_flag_beside_that_of_the_cause(void **state)
{
	static const struct {
		enum lb_cause cause;
		const char *flags, *long_flags;
	} delayed[] = {
		{LB_CAUSE_OK, "DI", "DelayInjected"},
		{LB_CAUSE_FAULT, "DI,FI", "DelayInjected,FaultInjected"},
		{LB_CAUSE_NO_HEALTHY, "UH,DI", "NoHealthyUpstream,DelayInjected"},
		{LB_CAUSE_UPSTREAM_LOST, "UC,DI", "UpstreamConnectionTermination,DelayInjected"},
		{LB_CAUSE_CLIENT_LOST, "DI,DC", "DelayInjected,DownstreamConnectionTermination"},
	};
	struct access_format *f;
	struct lb_err err = {.text = ""};
	struct lb_access_record a;
	char text[ACCESS_LINE_MAX + 1], due[128];
	assert_int_equal(access_format_new("%RESPONSE_FLAGS% %RESPONSE_FLAGS_LONG%", &f, &err), 0);
	fill_good(&a);
	a.brief.delayed = true;
	for (size_t i = 0; i < sizeof(delayed) / sizeof(delayed[0]); i++) {
		a.brief.cause = (uint8_t)delayed[i].cause;
		write_line(f, &a, text);
		snprintf(due, sizeof(due), "%s %s", delayed[i].flags, delayed[i].long_flags);
		assert_string_equal(text, due);
	}
	access_format_free(f);
}

static const struct {
	const char *format, *says;
} refused[] = {
	{"%TRACE_ID%", "%TRACE_ID% is not a known operator"},
	{"%PATH(ORIG)%", "%PATH%: 'ORIG' is not one of"},
	{"%PATH(NQ:ORIG)%", "%PATH%: 'NQ:ORIG' is not one of"},
	{"%UPSTREAM_TLS_VERSION%", "%UPSTREAM_TLS_VERSION% is not a known operator"},
	{"%duration%", "'%duration%' does not begin an operator"},
	{"100% of them", "'% of them' does not begin an operator"},
	{"%", "does not begin an operator"},
	{"%DURATION", "'%DURATION' does not begin an operator"},
	{"%REQ(:PATH%", "does not begin an operator"},
	{"%REQ(:PATH):%", "is not a number"},
	{"%REQ(:PATH):0%", "is not a number from 1 to"},
	{"%REQ(:PATH):x%", "is not a number"},
	{"%REQ(:PATH):-4%", "is not a number"},
	{"%REQ%", "%REQ%: needs a header"},
	{"%REQ()%", "%REQ%: needs a header"},
	{"%REQ(COOKIE)%", "%REQ%: 'COOKIE' is not kept; kept are :method, :path"},
	{"%REQ(:PATH?COOKIE)%", "'COOKIE' is not kept"},
	{"%RESP(SERVER)%", "%RESP%: 'SERVER' is not kept; kept are :status, grpc-status"},
	{"%TRAILER(X)%", "%TRAILER%: 'X' is not kept"},
	{"%DURATION(X)%", "%DURATION% takes nothing in parentheses"},
	{"%GRPC_STATUS(UPPER)%", "%GRPC_STATUS%: 'UPPER' is not one of"},
	{"%START_TIME(%Q)%", "%START_TIME%: '%Q' is not a time specifier"},
	{"%START_TIME(%3g)%", "%START_TIME%: '%3g' is not a time specifier"},
};

// OPS-35
static void what_is_not_known_is_an_error_that_names_it(void **state)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct access_format *f;
		struct lb_err err = {.text = ""};
		assert_int_equal(access_format_new(refused[i].format, &f, &err), -EINVAL);
		if (!strstr(err.text, refused[i].says))
			fail_msg("%s: \"%s\"", refused[i].format, err.text);
	}
}

static json_t *parse(const struct access_format *f, const struct lb_access_record *a)
{
	char text[ACCESS_LINE_MAX + 1];
	json_error_t err;
	write_line(f, a, text);
	json_t *line = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
	if (!line)
		fail_msg("%s: %s", err.text, text);
	return line;
}

static const char *text_of(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));
	return text ? text : "none";
}

// OPS-35
static void json_has_all_of_it(void **state)
{
	struct access_format *f;
	struct lb_err err;
	struct lb_access_record a;
	fill_good(&a);
	assert_int_equal(access_format_new(NULL, &f, &err), 0);
	json_t *line = parse(f, &a);
	assert_string_equal(text_of(line, "time"), "2023-11-14T22:13:20.123Z");
	assert_string_equal(text_of(line, "client"), "[2001:db8::7]:50123");
	assert_string_equal(text_of(line, "path"), "/a.B/C?d=\"e\"");
	assert_string_equal(text_of(line, "cluster"), "blue");
	assert_string_equal(text_of(line, "route"), "to blue");
	assert_string_equal(text_of(line, "endpoint"), "10.0.0.3:8080");
	assert_string_equal(text_of(line, "x_forwarded_for"), "none");
	assert_string_equal(text_of(line, "cause"), "ok");
	assert_int_equal(json_integer_value(json_object_get(line, "grpc_status")), 5);
	assert_int_equal(json_integer_value(json_object_get(line, "bytes_sent")), 4294967296);
	assert_true(json_real_value(json_object_get(line, "duration_ms")) == 12.345);
	assert_null(json_object_get(line, "cut"));
	json_decref(line);
	access_format_free(f);
}

// OPS-33, OPS-37
static void json_stays_json_whatever_bytes_come(void **state)
{
	struct access_format *f;
	struct lb_err err;
	struct lb_access_record a;
	char bytes[1024];
	assert_int_equal(access_format_new(NULL, &f, &err), 0);
	for (int first = 0; first < 256; first++) {
		lb_access_begin(&a);
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)(i % 3 ? first + (int)i * 7 : first);
		for (int t = 0; t < LB_ACCESS_N_TEXTS; t++)
			lb_access_put(&a, t, (struct str){bytes, sizeof(bytes)});
		json_t *line = parse(f, &a);
		assert_int_equal(json_array_size(json_object_get(line, "cut")), LB_ACCESS_N_TEXTS);
		json_decref(line);
	}
	access_format_free(f);
}

// OPS-33
static void a_text_that_was_cut_says_so(void **state)
{
	struct access_format *f;
	struct lb_err err;
	struct lb_access_record a;
	char path[1000], text[ACCESS_LINE_MAX + 1];
	memset(path, 'x', sizeof(path));
	lb_access_begin(&a);
	lb_access_put(&a, LB_ACCESS_PATH, (struct str){path, sizeof(path)});
	assert_int_equal(access_format_new("%REQ(:PATH)%", &f, &err), 0);
	write_line(f, &a, text);
	assert_int_equal(strlen(text), 384 + 3);
	assert_string_equal(text + 384, "...");
	access_format_free(f);
}

static void a_long_line_ends_with_its_newline(void **state)
{
	struct access_format *f;
	struct lb_err err;
	struct lb_access_record a;
	char format[4000] = "", text[ACCESS_LINE_MAX + 1], path[384];
	memset(path, 'x', sizeof(path));
	for (int i = 0; i < 200; i++)
		strcat(format, "%REQ(:PATH)%");
	lb_access_begin(&a);
	lb_access_put(&a, LB_ACCESS_PATH, (struct str){path, sizeof(path)});
	assert_int_equal(access_format_new(format, &f, &err), 0);
	write_line(f, &a, text);
	assert_int_equal(strlen(text), ACCESS_LINE_MAX - 1);
	access_format_free(f);
}

static const struct {
	const char *format; // with ' for "
	bool is_typed;
	const char *good, *bad; // likewise
} forms[] = {
	{"{}", true, "{}", "{}"},
	{"{'b':'%RESPONSE_CODE%','a':'%REQ(:METHOD)%'}", true, "{'a':'POST','b':200}",
		"{'a':'GET','b':404}"},
	{"{'b':'%RESPONSE_CODE%','a':'%REQ(:METHOD)%'}", false, "{'a':'POST','b':'200'}",
		"{'a':'GET','b':'404'}"},
	{"{'c':'%UPSTREAM_CLUSTER%'}", true, "{'c':'blue'}", "{'c':null}"},
	{"{'c':'%UPSTREAM_CLUSTER%'}", false, "{'c':'blue'}", "{'c':'-'}"},
	{"{'n':'%GRPC_STATUS_NUMBER%'}", true, "{'n':5}", "{'n':null}"},
	{"{'n':'%RESPONSE_CODE:2%'}", true, "{'n':'20'}", "{'n':'40'}"},
	{"{'m':'%RESPONSE_CODE% of %PROTOCOL%'}", true, "{'m':'200 of HTTP/2'}",
		"{'m':'404 of HTTP/1.1'}"},
	{"{'a':{'c':['x',1,true,null,'%PROTOCOL%']},'b':'50%%'}", true,
		"{'a':{'c':['x',1,true,null,'HTTP/2']},'b':'50%'}",
		"{'a':{'c':['x',1,true,null,'HTTP/1.1']},'b':'50%'}"},
	{"{'a\\tb':'\\u0001%PROTOCOL%'}", true, "{'a\\u0009b':'\\u0001HTTP/2'}",
		"{'a\\u0009b':'\\u0001HTTP/1.1'}"},
	{"{'p':'%REQ(:PATH)%'}", true, "{'p':'/a.B/C?d=\\u0022e\\u0022'}",
		"{'p':'/x\\u005cx0a\\u005cx7f'}"},
};

static char *quoted(const char *text, char *to)
{
	strcpy(to, text);
	for (char *p = to; (p = strchr(p, '\''));)
		*p = '"';
	return to;
}

// OPS-44
static void forms_of_json_stay_json(void **state)
{
	char format[512], expected[512], text[ACCESS_LINE_MAX + 1];
	struct lb_access_record good, bad;
	fill_good(&good);
	fill_bad(&bad);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct access_format *f;
		struct lb_err err = {.text = ""};
		quoted(forms[i].format, format);
		if (access_format_new_json(format, forms[i].is_typed, &f, &err))
			fail_msg("%s: %s", format, err.text);
		json_decref(parse(f, &good));
		write_line(f, &good, text);
		assert_string_equal(text, quoted(forms[i].good, expected));
		write_line(f, &bad, text);
		assert_string_equal(text, quoted(forms[i].bad, expected));
		access_format_free(f);
	}
}

// OPS-44
static void a_form_of_json_that_is_none_is_an_error(void **state)
{
	static const char *const wrong[][2] = {{"", "not a JSON object"},
		{"[]", "not a JSON object"}, {"{\"a\":", "not a JSON object"},
		{"{\"a\":{\"b\":\"%X%\"}}", "a: b: %X% is not a known operator"}};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct access_format *f;
		struct lb_err err = {.text = ""};
		assert_int_equal(access_format_new_json(wrong[i][0], true, &f, &err), -EINVAL);
		if (!strstr(err.text, wrong[i][1]))
			fail_msg("%s: \"%s\"", wrong[i][0], err.text);
	}
}

// OPS-44: what was cut would be none.
static void a_long_line_of_json_says_so_instead(void **state)
{
	struct access_format *f;
	struct lb_err err;
	struct lb_access_record a;
	char format[4000] = "{\"a\":\"", path[384];
	memset(path, '"', sizeof(path)); // six bytes each
	for (int i = 0; i < 4; i++)
		strcat(format, "%REQ(:PATH)%");
	strcat(format, "\"}");
	lb_access_begin(&a);
	lb_access_put(&a, LB_ACCESS_PATH, (struct str){path, sizeof(path)});
	assert_int_equal(access_format_new_json(format, true, &f, &err), 0);
	json_t *line = parse(f, &a);
	assert_string_equal(text_of(line, "error"), "the line is too long");
	json_decref(line);
	access_format_free(f);
}

RUN_SUITE("ctrl/access_log/format", cmocka_unit_test(operators_are_written_as_envoy_writes_them),
	cmocka_unit_test(a_delay_by_a_fault_has_a_flag_beside_that_of_the_cause),
	cmocka_unit_test(what_is_not_known_is_an_error_that_names_it),
	cmocka_unit_test(json_has_all_of_it), cmocka_unit_test(json_stays_json_whatever_bytes_come),
	cmocka_unit_test(a_text_that_was_cut_says_so),
	cmocka_unit_test(a_long_line_ends_with_its_newline),
	cmocka_unit_test(forms_of_json_stay_json),
	cmocka_unit_test(a_form_of_json_that_is_none_is_an_error),
	cmocka_unit_test(a_long_line_of_json_says_so_instead))
