// SPDX-License-Identifier: Apache-2.0
#include "lb/base/rand.h"
#include "lb/index/hash.h"
#include "lb/regex/regex.h"
#include "lb/route/hash_policy.h"
#include "tests/support/check.h"

#include <string.h>

#define ALICE UINT64_C(0x73a3ea485f2e6049)

static struct field field(const char *name, const char *value)
{
	return (struct field){.name = str_from(name), .value = str_from(value)};
}

static struct lb_hash_policy header(const char *name)
{
	return (struct lb_hash_policy){.kind = LB_HASH_HEADER, .header = str_from(name)};
}

static const struct field fields[] = {
	{.name = {"user", 4}, .value = {"alice", 5}},
	{.name = {"x-list", 6}, .value = {"a", 1}},
	{.name = {"tenant", 6}, .value = {"tenant-7", 8}},
	{.name = {"x-list", 6}, .value = {"b", 1}},
	{.name = {"key-bin", 7}, .value = {"YWxpY2U", 7}},
	{.name = {"cookie", 6}, .value = {"a=1", 3}},
	{.name = {"cookie", 6}, .value = {"b=2", 3}},
	{.name = {"content-type", 12}, .value = {"application/grpc+proto", 22}},
	{.name = {"te", 2}, .value = {"trailers", 8}},
	{.name = {"user-agent", 10}, .value = {"curl", 4}},
	{.name = {"grpc-timeout", 12}, .value = {"1S", 2}},
	{.name = {"connection", 10}, .value = {"close", 5}},
	{.name = {"x-empty", 7}, .value = {NULL, 0}},
};

static struct lb_req request(bool is_grpc)
{
	return (struct lb_req){.authority = STR("calls.test"),
		.path = STR("/a"),
		.method = STR("POST"),
		.scheme = STR("http"),
		.is_grpc = is_grpc,
		.fields = fields,
		.n_fields = sizeof(fields) / sizeof(fields[0]),
		.connection = 0x123456789};
}

// Returns 77 for none.
static uint64_t run_shown(
	const struct lb_req *req, bool hides_transport, const struct lb_hash_policy *p, uint32_t n)
{
	char buf[256];
	uint64_t hash = 77;
	bool any = lb_hash_policies_run(p, n, req, hides_transport, buf, sizeof(buf), &hash);
	assert_int_equal(any, hash != 77);
	return hash;
}

static uint64_t run_on(const struct lb_req *req, const struct lb_hash_policy *p, uint32_t n)
{
	return run_shown(req, req->is_grpc, p, n);
}

static uint64_t run(const struct lb_hash_policy *p, uint32_t n)
{
	struct lb_req req = request(true);
	return run_on(&req, p, n);
}

static uint64_t run_one(struct lb_hash_policy p)
{
	return run(&p, 1);
}

// HP-01
static void header_value_is_hashed_as_grpc_and_envoy_do(void **state)
{
	assert_int_equal(run_one(header("user")), ALICE);
	assert_int_equal(run_one(header("x-list")), UINT64_C(0xf0e4978678bbcc60)); // "a,b"
	assert_int_equal(run_one(header("x-empty")), lb_xxh64("", 0)); // present all the same
}

// A28-H09
static void split_cookies_are_one_value(void **state)
{
	assert_int_equal(run_one(header("cookie")), lb_xxh64("a=1; b=2", 8));
}

// HP-02, A28-H11
static void absent_and_binary_headers_give_no_hash(void **state)
{
	assert_int_equal(run_one(header("nobody")), 77);
	assert_int_equal(run_one(header("key-bin")), 77);
	assert_int_equal(run_one(header("content-type")), lb_xxh64("application/grpc+proto", 22));
	assert_int_equal(run(NULL, 0), 77);
}

// A28-H12, D2
static void grpc_requests_show_their_metadata_alone_unless_told(void **state)
{
	static const struct {
		const char *name, *plain; // NULL = absent there, too
	} rows[] = {{"te", NULL}, {"connection", NULL}, {"key-bin", NULL}, {"user-agent", "curl"},
		{"grpc-timeout", "1S"}, {":path", "/a"}, {":method", "POST"}, {":scheme", "http"},
		{":authority", "calls.test"}, {"host", "calls.test"}};
	struct lb_req plain = request(false), grpc = request(true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_hash_policy p = header(rows[i].name);
		const char *text = rows[i].plain;
		assert_int_equal(run(&p, 1), 77);
		uint64_t want = text ? lb_xxh64(text, strlen(text)) : 77;
		assert_int_equal(run_on(&plain, &p, 1), want);
		assert_int_equal(run_shown(&grpc, false, &p, 1), want);
	}
}

// HP-03: every hit, in the joined value.
static void regex_rewrite_comes_before_the_hash(void **state)
{
	struct lb_err err;
	struct lb_hash_policy p = header("tenant");
	p.pattern = STR("([a-z]+)-([0-9])");
	p.substitution = STR("\\2:\\1");
	p.rewrite = lb_regex_rewrite_new(p.pattern, p.substitution, &err);
	assert_non_null(p.rewrite);
	assert_int_equal(run_one(p), lb_xxh64("7:tenant", 8));
	lb_regex_rewrite_free(p.rewrite);
	struct lb_hash_policy list = header("x-list");
	list.rewrite = lb_regex_rewrite_new(STR("[ab]"), STR("xy"), &err);
	assert_int_equal(run_one(list), lb_xxh64("xy,xy", 5));
	lb_regex_rewrite_free(list.rewrite);
}

// HP-04, RH-08
static void hashes_are_combined_by_rotation(void **state)
{
	const struct lb_hash_policy two[] = {header("user"), header("tenant")},
				    same[] = {header("user"), header("user")},
				    gap[] = {header("user"), header("nobody"), header("tenant")};
	assert_int_equal(run(two, 2), UINT64_C(0x5c8d99378a8c456d));
	assert_int_equal(run(same, 2), UINT64_C(0x94e43ed8e172a0db));
	assert_int_equal(run(gap, 3), run(two, 2));
}

// HP-05
static void terminal_stops_once_there_is_a_hash(void **state)
{
	struct lb_hash_policy p[] = {header("user"), header("nobody"), header("tenant")};
	p[1].terminal = true; // without a hash of its own
	assert_int_equal(run(p, 3), ALICE);
	p[0].header = STR("missing");
	assert_int_equal(run(p, 3), lb_xxh64("tenant-7", 8));
	p[2].header = STR("user");
	p[2].terminal = true;
	assert_int_equal(run(p, 3), ALICE);
}

// HP-08
static void connection_is_its_own_number(void **state)
{
	const struct lb_hash_policy p[] = {header("user"), {.kind = LB_HASH_CONNECTION}};
	assert_int_equal(run(p + 1, 1), 0x123456789);
	assert_int_equal(run(p, 2), (ALICE << 1 | ALICE >> 63) ^ 0x123456789);
}

static void values_beyond_the_buffer_are_cut(void **state)
{
	const struct field list[] = {field("k", "abcd"), field("k", "efgh"), field("k", "ijkl")};
	struct lb_req req = {.fields = list, .n_fields = 3};
	struct lb_hash_policy p = header("k");
	for (size_t size = 0; size < 20; size++) {
		char buf[20];
		memset(buf, '#', sizeof(buf));
		uint64_t hash;
		assert_true(lb_hash_policies_run(&p, 1, &req, false, buf, size, &hash));
		assert_int_equal(hash, lb_xxh64("abcd,efgh,ijkl", size < 14 ? size : 14));
		for (size_t i = size; i < sizeof(buf); i++)
			assert_int_equal(buf[i], '#');
	}
}

// A naive twin: one text from all fields, the rules in the words of the spec.
static uint64_t twin(const struct lb_hash_policy *p, uint32_t n, const struct lb_req *req)
{
	uint64_t hash = 77;
	bool any = false;
	for (uint32_t i = 0; i < n; i++) {
		char text[256] = "";
		bool found = false;
		for (size_t j = 0; j < req->n_fields; j++) {
			const struct field *f = &req->fields[j];
			if (!str_eq(f->name, p[i].header))
				continue;
			if (found)
				strcat(text, ",");
			strncat(text, f->value.p, f->value.len);
			found = true;
		}
		if (found) {
			uint64_t one = lb_xxh64(text, strlen(text));
			hash = any ? ((hash << 1) + (hash >> 63)) ^ one : one;
			any = true;
		}
		if (any && p[i].terminal)
			return hash;
	}
	return hash;
}

static void random_policies_agree_with_a_naive_twin(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const values[] = {"1", "22", "333", "1,22"};
	struct rand rand;
	rand_init(&rand, 8);
	for (int i = 0; i < 50000; i++) {
		struct field list[6];
		struct lb_hash_policy p[4];
		struct lb_req req = {.fields = list, .n_fields = rand_below(&rand, 7)};
		uint32_t n = (uint32_t)rand_below(&rand, 5);
		for (size_t j = 0; j < req.n_fields; j++)
			list[j] = field(names[rand_below(&rand, 3)], values[rand_below(&rand, 4)]);
		for (uint32_t j = 0; j < n; j++) {
			p[j] = header(names[rand_below(&rand, 3)]);
			p[j].terminal = rand_below(&rand, 3) == 0;
		}
		assert_int_equal(run_on(&req, p, n), twin(p, n, &req));
	}
}

RUN_SUITE("lb/hash_policy", cmocka_unit_test(header_value_is_hashed_as_grpc_and_envoy_do),
	cmocka_unit_test(split_cookies_are_one_value),
	cmocka_unit_test(absent_and_binary_headers_give_no_hash),
	cmocka_unit_test(grpc_requests_show_their_metadata_alone_unless_told),
	cmocka_unit_test(regex_rewrite_comes_before_the_hash),
	cmocka_unit_test(hashes_are_combined_by_rotation),
	cmocka_unit_test(terminal_stops_once_there_is_a_hash),
	cmocka_unit_test(connection_is_its_own_number),
	cmocka_unit_test(values_beyond_the_buffer_are_cut),
	cmocka_unit_test(random_policies_agree_with_a_naive_twin))
