// SPDX-License-Identifier: Apache-2.0
// Secrets for captures: while somebody asks, whole, in bounds, and nowhere else (OPS-199, OPS-200).
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"
#include "tlshs/keylog.h"

#include <stdio.h>
#include <string.h>

static struct tlshs_keylog keys;
static uint8_t room[8192];

static int set_up(void **state)
{
	tlshs_keylog_init(&keys);
	return 0;
}

static int tear_down(void **state)
{
	tlshs_keylog_fini(&keys);
	return 0;
}

static const char *take(size_t most)
{
	size_t n = tlshs_keylog_take(&keys, room, most);
	room[n] = 0;
	return (const char *)room;
}

// OPS-199
static void lines_are_kept_only_while_somebody_asks(void **state)
{
	tlshs_keylog_add(&keys, "before");
	assert_false(tlshs_keylog_has_more(&keys));
	assert_true(tlshs_keylog_begin(&keys));
	tlshs_keylog_add(&keys, "one");
	tlshs_keylog_add(&keys, "two");
	assert_true(tlshs_keylog_has_more(&keys));
	assert_string_equal(take(7), "one\n"); // whole lines alone
	assert_true(tlshs_keylog_has_more(&keys));
	assert_string_equal(take(100), "two\n");
	assert_false(tlshs_keylog_has_more(&keys));
	tlshs_keylog_add(&keys, "three");
	tlshs_keylog_end(&keys);
	assert_false(tlshs_keylog_has_more(&keys));
	tlshs_keylog_add(&keys, "behind");
	assert_string_equal(take(100), "");
	assert_true(tlshs_keylog_begin(&keys));
	assert_string_equal(take(100), "");
}

// OPS-199
static void what_finds_no_room_is_counted(void **state)
{
	char line[TLSHS_KEYLOG_LINE_MAX + 1];
	uint64_t n_lines, n_lost;
	memset(line, 'x', sizeof(line));
	line[TLSHS_KEYLOG_LINE_MAX - 1] = 0;
	assert_true(tlshs_keylog_begin(&keys));
	for (size_t i = 0; i < TLSHS_KEYLOG_ROOM / TLSHS_KEYLOG_LINE_MAX + 3; i++)
		tlshs_keylog_add(&keys, line);
	tlshs_keylog_count(&keys, &n_lines, &n_lost);
	assert_int_equal(n_lines, TLSHS_KEYLOG_ROOM / TLSHS_KEYLOG_LINE_MAX);
	assert_int_equal(n_lost, 3);
	line[TLSHS_KEYLOG_LINE_MAX - 1] = 'x';
	line[TLSHS_KEYLOG_LINE_MAX] = 0;
	tlshs_keylog_end(&keys);
	assert_true(tlshs_keylog_begin(&keys));
	tlshs_keylog_add(&keys, line); // too long for any
	tlshs_keylog_count(&keys, &n_lines, &n_lost);
	assert_int_equal(n_lines, 0);
	assert_int_equal(n_lost, 1);
}

// OPS-199: of both versions what RFC 9850 has for them.
static void a_handshake_tells_its_secrets(void **state)
{
	static const struct {
		uint16_t version;
		const char *labels[3];
	} rows[] = {{TLS_1_3, {"CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "CLIENT_TRAFFIC_SECRET_0 ",
				      "SERVER_TRAFFIC_SECRET_0 "}},
		{TLS_1_2, {"CLIENT_RANDOM ", "CLIENT_RANDOM ", "CLIENT_RANDOM "}}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tlshs_context_conf conf = {.role = TLSHS_CLIENT,
			.min_version = rows[i].version,
			.max_version = rows[i].version};
		const struct pki_cert cert = pki_make((struct pki_conf){"server"});
		struct tlshs_context *c = context_good(&conf);
		struct meeting m;
		meeting_init(&m, c, (struct str){0},
			&(struct far_conf){.role = TLSHS_SERVER, .cert = &cert});
		tlshs_handshake_log_keys(m.h, &keys);
		assert_true(tlshs_keylog_begin(&keys));
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		const char *lines = take(sizeof(room) - 1);
		for (size_t k = 0; k < 3; k++)
			assert_non_null(strstr(lines, rows[i].labels[k]));
		tlshs_keylog_end(&keys);
		meeting_fini(&m);
		tlshs_context_put(c);
		pki_end();
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("tlshs/keylog", CASE(lines_are_kept_only_while_somebody_asks),
	CASE(what_finds_no_room_is_counted), CASE(a_handshake_tells_its_secrets))
