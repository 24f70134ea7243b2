// SPDX-License-Identifier: Apache-2.0
// Requests that a proxy and the server behind it might read differently: smuggling.rows, which
// tests/integ compares with other proxies' verdicts as well.
#include "tests/support/check.h"
#include "tests/unit/h1/h1_owner.h"
#include "tests/unit/h1/smuggling_rows.h"

#include <stdio.h>
#include <string.h>

#define MIN_ROWS 200
// Longer ones are cut at some bytes only.
#define MAX_CUT_EVERYWHERE 600

static const char *rows_path;
static struct owner us;

static int set_up(void **state)
{
	return owner_init(&us, 256);
}

static int tear_down(void **state)
{
	owner_fini(&us);
	return 0;
}

// In the form of the rows' verdicts.
static void judge(char *ret, size_t size)
{
	uint16_t status;
	bool failed = h1_conn_failed(us.conn, &status);
	bool busy = h1_conn_busy(us.conn) || h1_conn_in_head(us.conn);
	size_t whole = us.n_requests - h1_conn_busy(us.conn);
	if (failed && whole)
		snprintf(ret, size, "%zu+%u", whole, status);
	else if (failed)
		snprintf(ret, size, "%u", status);
	else
		snprintf(ret, size, "%zu%s", whole, busy ? "+" : "");
}

// H1-02 to H1-16, H1-22: each row names its own.
static void each_row_gets_its_verdict(void **state)
{
	struct smuggling_rows *rows = smuggling_rows_open(rows_path);
	const struct smuggling_row *r;
	size_t n = 0, wrong = 0;
	for (; (r = smuggling_rows_next(rows)); n++) {
		char verdict[16];
		owner_connect(&us);
		owner_feed(&us, r->bytes, r->len, 0);
		judge(verdict, sizeof(verdict));
		if (strcmp(verdict, r->verdict) == 0)
			continue;
		print_error("%s %s: %s instead of %s\n", r->rule, r->name, verdict, r->verdict);
		wrong++;
	}
	smuggling_rows_close(rows);
	assert_int_equal(wrong, 0);
	assert_true(n >= MIN_ROWS);
}

static void same_in_two_pieces(const struct smuggling_row *r, size_t cut, const char *whole)
{
	owner_connect(&us);
	if (owner_feed(&us, r->bytes, cut, 0) == cut)
		owner_feed(&us, r->bytes + cut, r->len - cut, 0);
	if (strcmp(owner_log(&us), whole))
		fail_msg("%s %s, cut at %zu:\n%s\ninstead of\n%s", r->rule, r->name, cut, us.log,
			whole);
}

// H1-23
static void each_row_cut_at_every_byte_is_the_same(void **state)
{
	static char whole[sizeof(us.log)];
	struct smuggling_rows *rows = smuggling_rows_open(rows_path);
	const struct smuggling_row *r;
	while ((r = smuggling_rows_next(rows))) {
		owner_connect(&us);
		owner_feed(&us, r->bytes, r->len, 0);
		strcpy(whole, owner_log(&us));
		size_t step = r->len > MAX_CUT_EVERYWHERE ? r->len / 50 : 1;
		for (size_t cut = 1; cut < r->len; cut += step)
			same_in_two_pieces(r, cut, whole);
		owner_connect(&us);
		owner_feed(&us, r->bytes, r->len, 1);
		assert_string_equal(owner_log(&us), whole);
	}
	smuggling_rows_close(rows);
}

// H1-22
static void whatever_is_refused_closes_with_one_answer(void **state)
{
	struct smuggling_rows *rows = smuggling_rows_open(rows_path);
	const struct smuggling_row *r;
	while ((r = smuggling_rows_next(rows))) {
		uint16_t status;
		owner_connect(&us);
		us.leaves = true;
		owner_feed(&us, r->bytes, r->len, 0);
		us.leaves = false;
		if (!h1_conn_failed(us.conn, &status))
			continue;
		char line[32];
		snprintf(line, sizeof(line), "HTTP/1.1 %u ", status);
		assert_true(h1_conn_refuse(us.conn, status, NULL, 0));
		assert_true(h1_conn_closes(us.conn));
		const char *out = owner_output(&us);
		assert_int_equal(strncmp(out, line, strlen(line)), 0);
		assert_non_null(strstr(out, "\r\nconnection: close\r\n"));
		assert_int_equal(owner_feed(&us, "GET", 3, 0), 3);
		assert_false(h1_conn_refuse(us.conn, status, NULL, 0));
		assert_int_equal(us.out.len, 0);
	}
	smuggling_rows_close(rows);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(each_row_gets_its_verdict),
		cmocka_unit_test(each_row_cut_at_every_byte_is_the_same),
		cmocka_unit_test(whatever_is_refused_closes_with_one_answer),
	};
	if (argc != 2)
		return 2;
	rows_path = argv[1];
	return cmocka_run_group_tests_name("dataplane/h1 smuggling", suite, set_up, tear_down);
}
