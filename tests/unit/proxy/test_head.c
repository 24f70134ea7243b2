// SPDX-License-Identifier: Apache-2.0
#include "dataplane/proxy/head.h"
#include "dataplane/proxy/request.h"
#include "dataplane/proxy/state.h"
#include "lb/base/time.h"
#include "lb/route/timeouts.h"
#include "tests/support/check.h"

#include <stdlib.h>

#define MAX_FIELDS 16
#define MS NS_PER_MS

static struct proxy proxy;
static struct proxy_request request;
static uint64_t left_ns; // of its time

static int setup(void **state)
{
	proxy = (struct proxy){.scratch.max_fields = MAX_FIELDS};
	proxy.scratch.fields =
		calloc(MAX_FIELDS + PROXY_ADDED_FIELDS, sizeof(*proxy.scratch.fields));
	request = (struct proxy_request){
		.proxy = &proxy, .is_grpc = true, .timeout_field = PROXY_NO_FIELD};
	left_ns = LB_NO_TIMEOUT;
	return proxy.scratch.fields ? 0 : -1;
}

static int teardown(void **state)
{
	free(proxy.scratch.fields);
	return 0;
}

static void set_deadline(uint64_t ns, bool capped)
{
	request.capped = capped;
	left_ns = ns;
}

struct pair {
	const char *name, *value;
};

// What the backend sees of a request with these fields.
static void expect(const struct pair *in, size_t n_in, const struct pair *out, size_t n_out)
{
	struct field fields[MAX_FIELDS];
	for (size_t i = 0; i < n_in; i++)
		fields[i] = (struct field){
			.name = str_from(in[i].name), .value = str_from(in[i].value)};
	struct h2_message m = {.kind = H2_REQUEST, .fields = fields, .n_fields = n_in}, got;
	if (request.is_grpc)
		proxy_head_read(&request, &m);
	for (int again = 0; again < 2; again++) {
		assert_true(proxy_head_to_backend(&request, &m, NULL, left_ns, &got));
		assert_int_equal(got.n_fields, n_out);
		for (size_t i = 0; i < n_out; i++) {
			assert_true(str_eq(got.fields[i].name, str_from(out[i].name)));
			assert_true(str_eq(got.fields[i].value, str_from(out[i].value)));
		}
		// A stored request lies in the proxy's own array.
		for (size_t i = 0; i < n_in; i++)
			proxy.scratch.fields[i] = fields[i];
		m.fields = proxy.scratch.fields;
	}
}
#define EXPECT(in, out) expect(in, sizeof(in) / sizeof(in[0]), out, sizeof(out) / sizeof(out[0]))

// HX-05
static void a_grpc_request_gets_te_trailers_and_keeps_its_own(void **state)
{
	static const struct pair bare[] = {{"a", "1"}}, with[] = {{"a", "1"}, {"te", "trailers"}},
				 first[] = {{"te", "trailers"}, {"a", "1"}};
	EXPECT(bare, with);
	request.has_te = false;
	EXPECT(with, with);
	request.has_te = false;
	EXPECT(first, first);
	request.has_te = request.is_grpc = false;
	EXPECT(bare, bare);
}

// A31-T09
static void a_capped_deadline_is_told_in_place_or_at_the_end(void **state)
{
	static const struct pair in[] = {{"te", "trailers"}, {"grpc-timeout", "20S"}, {"a", "1"}},
				 out[] = {{"te", "trailers"}, {"grpc-timeout", "10000000u"},
					 {"a", "1"}},
				 none[] = {{"te", "trailers"}, {"a", "1"}},
				 added[] = {{"te", "trailers"}, {"a", "1"},
					 {"grpc-timeout", "10000000u"}};
	set_deadline(10000 * MS, true);
	EXPECT(in, out);
	teardown(NULL);
	setup(NULL);
	set_deadline(10000 * MS, true);
	EXPECT(none, added);
	left_ns = 50 * MS;
	static const struct pair later[] = {
		{"te", "trailers"}, {"a", "1"}, {"grpc-timeout", "50000000n"}};
	EXPECT(none, later);
}

// Sent in the turn in which it came: the client's own text is as true.
static void an_own_deadline_passes_untouched_until_time_has_passed(void **state)
{
	static const struct pair in[] = {{"te", "trailers"}, {"grpc-timeout", "1S"}},
				 later[] = {{"te", "trailers"}, {"grpc-timeout", "900000u"}};
	set_deadline(1000 * MS, false);
	EXPECT(in, in);
	left_ns = 900 * MS;
	request.replay.head_len = 1; // it was stored meanwhile
	EXPECT(in, later);
}

// A31-T10
static void a_timeout_that_is_none_is_left_alone(void **state)
{
	static const struct pair bad[] = {{"te", "trailers"}, {"grpc-timeout", "soon"}},
				 twice[] = {{"te", "trailers"}, {"grpc-timeout", "1S"},
					 {"grpc-timeout", "2S"}};
	set_deadline(10 * MS, true);
	EXPECT(bad, bad);
	EXPECT(twice, twice);
}

// RT-09: the client's own attempts are not ours, whose first says nothing.
static void later_attempts_say_how_many_came_before(void **state)
{
	static const struct pair in[] = {{"grpc-previous-rpc-attempts", "7"}, {"te", "trailers"},
		{"grpc-timeout", "1S"}},
				 second[] = {{"te", "trailers"}, {"grpc-timeout", "1000000u"},
					 {"grpc-previous-rpc-attempts", "1"}},
				 third[] = {{"te", "trailers"}, {"grpc-timeout", "1000000u"},
					 {"grpc-previous-rpc-attempts", "2"}};
	set_deadline(1000 * MS, false);
	EXPECT(in, in);
	request.replay.head_len = 1;
	request.n_failed = 1;
	EXPECT(in, second);
	request.n_failed = 2;
	EXPECT(in, third);
}

static void the_clients_timeout_is_read(void **state)
{
	struct field f[] = {{.name = STR("grpc-timeout"), .value = STR("250m")},
		{.name = STR("grpc-timeout"), .value = STR("250m")}};
	struct h2_message m = {.kind = H2_REQUEST, .fields = f, .n_fields = 1};
	assert_true(proxy_head_read(&request, &m) == 250 * MS);
	m.n_fields = 2;
	assert_true(proxy_head_read(&request, &m) == LB_NO_TIMEOUT);
	m.n_fields = 0;
	assert_true(proxy_head_read(&request, &m) == LB_NO_TIMEOUT);
	f[0].value = STR("x");
	m.n_fields = 1;
	assert_true(proxy_head_read(&request, &m) == LB_NO_TIMEOUT);
}

static void too_many_fields_are_refused(void **state)
{
	struct field fields[MAX_FIELDS + 1];
	for (int i = 0; i <= MAX_FIELDS; i++)
		fields[i] = (struct field){.name = STR("x"), .value = STR("y")};
	struct h2_message m = {.kind = H2_REQUEST, .fields = fields, .n_fields = MAX_FIELDS}, out;
	request.n_failed = 1;
	set_deadline(MS, true);
	assert_true(proxy_head_to_backend(&request, &m, NULL, left_ns, &out));
	assert_int_equal(out.n_fields, MAX_FIELDS + 3);
	m.n_fields++;
	assert_false(proxy_head_to_backend(&request, &m, NULL, left_ns, &out));
}

// A28-P05, A28-P06: however it was matched.
static void the_path_goes_on_as_it_came(void **state)
{
	struct h2_message m = {.kind = H2_REQUEST, .path = STR("/Pkg.S/../M%2f?q=1#f")}, out;
	proxy_head_read(&request, &m);
	assert_true(proxy_head_to_backend(&request, &m, NULL, left_ns, &out));
	assert_true(str_eq(out.path, STR("/Pkg.S/../M%2f?q=1#f")));
}

// OPS-162: its own fields of traces are replaced by those of this attempt.
static void a_traced_request_says_so_in_the_forms_of_its_client(void **state)
{
	static const struct pair plain[] = {{"te", "trailers"}, {"a", "1"}},
				 told[] = {{"te", "trailers"}, {"a", "1"},
					 {"traceparent", "00-00000000000000010000000000000002-"
							 "0000000000000003-01"}},
				 in[] = {{"te", "trailers"}, {"tracestate", "x=1"}, {"b3", "0"},
					 {"a", "1"}, {"traceparent", "00-soon"}},
				 out[] = {{"te", "trailers"}, {"a", "1"},
					 {"traceparent", "00-00000000000000010000000000000002-"
							 "0000000000000003-01"},
					 {"b3", "00000000000000010000000000000002-"
						"0000000000000003-1"}};
	EXPECT(in, in);
	request.access.is_traced = true;
	request.trace = (struct proxy_trace){.ids = {.high = 1, .low = 2, .span = 3}};
	EXPECT(plain, told);
	request.trace.b3 = true;
	EXPECT(in, out);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("proxy/head", CASE(a_grpc_request_gets_te_trailers_and_keeps_its_own),
	CASE(a_capped_deadline_is_told_in_place_or_at_the_end),
	CASE(an_own_deadline_passes_untouched_until_time_has_passed),
	CASE(a_timeout_that_is_none_is_left_alone), CASE(later_attempts_say_how_many_came_before),
	CASE(the_clients_timeout_is_read), CASE(too_many_fields_are_refused),
	CASE(the_path_goes_on_as_it_came),
	CASE(a_traced_request_says_so_in_the_forms_of_its_client))
