// SPDX-License-Identifier: Apache-2.0
#include "lb/base/base64.h"
#include "lb/base/rand.h"
#include "lb/route/session.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static const struct lb_session lane = {.enabled = true, .cookie = {"lane", 4}};

static char buf[512];

static struct lb_session_cookie read_fields(const char *const *values, size_t n)
{
	struct field fields[4];
	for (size_t i = 0; i < n; i++)
		fields[i] = (struct field){.name = STR("cookie"), .value = str_from(values[i])};
	struct lb_req req = {.fields = fields, .n_fields = n};
	return lb_session_read(&lane, &req, buf, sizeof(buf));
}

static struct lb_session_cookie read_one(const char *value)
{
	return read_fields(&value, 1);
}

// The cookie with this plain text.
static struct lb_session_cookie read_plain(struct str plain)
{
	char value[300] = "lane=";
	size_t n = base64_encode(plain.p, plain.len, value + 5);
	value[5 + n] = '\0';
	return read_one(value);
}

static void expect(struct lb_session_cookie c, const char *addresses, const char *cluster)
{
	assert_true(str_eq(c.addresses, str_from(addresses)));
	assert_true(str_eq(c.cluster, str_from(cluster)));
}

// SA-03
static void path_test_is_that_of_rfc_6265(void **state)
{
	static const struct {
		const char *path, *request;
		bool covers;
	} rows[] = {{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false},
		{"/a", "/", false}, {"/a", "/A", false}, {"/a/", "/a", false}, {"/a/", "/a/", true},
		{"/a/", "/a/b", true}, {"", "/x", true}, {"/", "/x", true}, {"", "*", true},
		{"/", "*", true}, {"/a", "/a?x=/b", true}, {"/a", "/ab?/a", false},
		{"/a", "/a#/b", true}, {"/a/b", "/a?/b", false}, {"/a/b", "/a/b?", true},
		{"/a", "", false}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lb_session s = lane;
		s.path = str_from(rows[i].path);
		assert_int_equal(lb_session_covers(&s, str_from(rows[i].request)), rows[i].covers);
		s.enabled = false; // SA-19
		assert_false(lb_session_covers(&s, str_from(rows[i].request)));
	}
}

// SA-06
static void cookie_is_base64_of_addresses_and_cluster(void **state)
{
	expect(read_one("lane=MTAuMC4wLjc6ODA4MDtibHVl"), "10.0.0.7:8080", "blue");
	expect(read_plain(STR("10.0.0.7:80,[fd00::7]:80;blue;x")), "10.0.0.7:80,[fd00::7]:80",
		"blue;x");
	expect(read_plain(STR("10.0.0.7:80")), "10.0.0.7:80", ""); // of before A60
	expect(read_plain(STR(";blue")), "", "blue");
}

// SA-05: MTsx is "1;1", Mjsy "2;2".
static void first_cookie_of_the_name_counts_in_all_fields(void **state)
{
	expect(read_one("a=b; lane=MTsx; lane=Mjsy"), "1", "1");
	expect(read_one("lane=MTsx;lane=Mjsy"), "1", "1");
	expect(read_one("  lane=MTsx  "), "1", "1");
	expect(read_one("lane=\"MTsx\""), "1", "1");
	expect(read_one("Lane=MTsx; lane=Mjsy"), "2", "2"); // names have case
	expect(read_one("xlane=MTsx; lane2=MTsx; lane=Mjsy"), "2", "2");
	expect(read_one("lane; =lane; lane=Mjsy"), "2", "2");
	static const char *const split[] = {"a=b", "c=d; e=f", "lane=Mjsy", "lane=MTsx"};
	expect(read_fields(split, 4), "2", "2");
	static const char *const bad_first[] = {"lane=!", "lane=MTsx"};
	expect(read_fields(bad_first, 2), "", "");
}

// SA-09
static void what_does_not_decode_is_no_cookie(void **state)
{
	static const char *const bad[] = {"", "lane=", "lane", "lane=MTsx=", "lane=M!sx",
		"lane=MTs", "lane=\"MTsx", "lane=MTsx\"", "lane= ", ";;;", "=", "lane=MT sx"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect(read_one(bad[i]), "", "");
	struct lb_req none = {.n_fields = 0};
	expect(lb_session_read(&lane, &none, buf, sizeof(buf)), "", "");
	struct field other = {.name = STR("cookies"), .value = STR("lane=MTsx")};
	struct lb_req req = {.fields = &other, .n_fields = 1};
	expect(lb_session_read(&lane, &req, buf, sizeof(buf)), "", "");
	other.name = STR("cookie");
	expect(lb_session_read(&lane, &req, buf, 2), "", ""); // no room
	expect(lb_session_read(&lane, &req, buf, 3), "1", "1");
}

// SA-07
static void cluster_is_known_in_all_three_spellings(void **state)
{
	static const char *const same[] = {"blue", "cluster:blue", "\"blue\""};
	static const char *const others[] = {
		"", "Blue", "blue2", "cluster:", "cluster:green", "\"\"", "\"", "\"blue", "blue "};
	for (size_t i = 0; i < 3; i++) {
		struct lb_session_cookie c = {.cluster = str_from(same[i])};
		assert_true(lb_session_is_cluster(&c, STR("blue")));
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct lb_session_cookie c = {.cluster = str_from(others[i])};
		assert_false(lb_session_is_cluster(&c, STR("blue")));
	}
	struct lb_session_cookie odd = {.cluster = STR("cluster:x")}; // may be all of the name
	assert_true(lb_session_is_cluster(&odd, STR("cluster:x")));
}

// SA-06, A60-O11
static void addresses_come_in_order_without_junk(void **state)
{
	struct ip_port got[LB_SESSION_MAX_ADDRESSES];
	char text[IP_PORT_TEXT_MAX];
	size_t n = lb_session_addresses(
		STR("10.0.0.7:8080,junk,[fd00::7]:1,,10.0.0.8:65535,10.0.0.9:65536"), got);
	assert_int_equal(n, 3);
	assert_string_equal(ip_port_print(&got[0], text), "10.0.0.7:8080");
	assert_string_equal(ip_port_print(&got[1], text), "[fd00::7]:1");
	assert_string_equal(ip_port_print(&got[2], text), "10.0.0.8:65535");
	static const char *const bad[] = {"", ",", "10.0.0.7", "10.0.0.7:", ":80", "10.0.0.7:80x",
		"10.0.0.7:-1", "fd00::7:80", "[10.0.0.7]:80", "[fd00::7]", "[]:80", "[:80", "]:80",
		"10.0.0.7:000080", "example.com:80", "10.0.0.7:80 ",
		"[0000000000000000000000000000000000000000000000000000000000000000::1]:80"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(lb_session_addresses(str_from(bad[i]), got), 0);
	assert_int_equal(lb_session_addresses((struct str){"10.0.0.7\0:80", 12}, got), 0);
	char many[1000] = "";
	for (int i = 0; i < 30; i++)
		sprintf(many + strlen(many), "%s10.0.0.%d:80", i ? "," : "", i);
	assert_int_equal(lb_session_addresses(str_from(many), got), LB_SESSION_MAX_ADDRESSES);
}

static const char *written(struct lb_session s, const char *addresses, const char *cluster)
{
	static char out[400];
	struct lb_session_cookie c = {str_from(addresses), str_from(cluster)};
	size_t n = lb_session_write(&s, &c, out, sizeof(out) - 1);
	out[n] = '\0';
	return out;
}

// SA-17
static void set_cookie_names_what_is_configured(void **state)
{
	struct lb_session s = lane;
	assert_string_equal(
		written(s, "10.0.0.7:8080", "blue"), "lane=MTAuMC4wLjc6ODA4MDtibHVl; HttpOnly");
	s.path = STR("/a");
	s.ttl_s = 60;
	assert_string_equal(written(s, "1", "1"), "lane=MTsx; HttpOnly; Path=/a; Max-Age=60");
	s.path = (struct str){0};
	assert_string_equal(written(s, "1", "1"), "lane=MTsx; HttpOnly; Max-Age=60");
}

static void set_cookie_fits_or_is_not_written(void **state)
{
	struct lb_session s = lane;
	s.path = STR("/path");
	s.ttl_s = 9;
	const char *full = written(s, "10.0.0.7:8080", "blue");
	size_t len = strlen(full);
	for (size_t room = 0; room <= len + 3; room++) {
		char out[100];
		struct lb_session_cookie c = {STR("10.0.0.7:8080"), STR("blue")};
		memset(out, '#', sizeof(out));
		size_t n = lb_session_write(&s, &c, out, room);
		assert_int_equal(n, room < len ? 0 : len);
		if (n)
			assert_memory_equal(out, full, n);
		for (size_t i = room; i < sizeof(out); i++)
			assert_int_equal(out[i], '#');
	}
}

// SA-06: any text survives the round trip, whatever its length.
static void what_is_written_is_read_back(void **state)
{
	struct rand rand;
	rand_init(&rand, 3);
	for (int i = 0; i < 5000; i++) {
		char addresses[40], cluster[40], out[200];
		size_t n = rand_below(&rand, 40), m = rand_below(&rand, 40);
		for (size_t j = 0; j < 40; j++) {
			addresses[j] = (char)('0' + rand_below(&rand, 10));
			cluster[j] = (char)(1 + rand_below(&rand, 255));
		}
		struct lb_session_cookie c = {{addresses, n}, {cluster, m}};
		size_t len = lb_session_write(&lane, &c, out, sizeof(out));
		assert_true(len > 0);
		struct field f = {.name = STR("cookie"), .value = {out, len}};
		struct lb_req req = {.fields = &f, .n_fields = 1};
		struct lb_session_cookie back = lb_session_read(&lane, &req, buf, sizeof(buf));
		assert_true(str_eq(back.addresses, c.addresses));
		assert_true(str_eq(back.cluster, c.cluster));
	}
}

RUN_SUITE("lb/session", cmocka_unit_test(path_test_is_that_of_rfc_6265),
	cmocka_unit_test(cookie_is_base64_of_addresses_and_cluster),
	cmocka_unit_test(first_cookie_of_the_name_counts_in_all_fields),
	cmocka_unit_test(what_does_not_decode_is_no_cookie),
	cmocka_unit_test(cluster_is_known_in_all_three_spellings),
	cmocka_unit_test(addresses_come_in_order_without_junk),
	cmocka_unit_test(set_cookie_names_what_is_configured),
	cmocka_unit_test(set_cookie_fits_or_is_not_written),
	cmocka_unit_test(what_is_written_is_read_back))
