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

static char far_lines[sizeof(room)];

static void on_far_line(const SSL *ssl, const char *line)
{
	strcat(strcat(far_lines, line), "\n");
}

static unsigned count_lines(const char *lines)
{
	unsigned n = 0;
	for (; (lines = strchr(lines, '\n')); lines++)
		n++;
	return n;
}

// Each of our lines, of which there are n, is one of the peer's, an unmodified library's.
static void expect_the_peers(char *lines, unsigned n)
{
	assert_int_equal(count_lines(lines), n);
	for (char *rest = lines, *line; (line = strsep(&rest, "\n")) && *line;)
		assert_non_null(strstr(far_lines, line));
}

// OPS-199: of both versions and roles what RFC 9850 has for them, once.
static void a_handshake_tells_its_secrets(void **state)
{
	static const struct {
		uint16_t version;
		unsigned n_lines;
	} rows[] = {{TLS_1_3, 5}, {TLS_1_2, 1}};
	for (size_t i = 0; i < 4; i++) {
		const struct pki_cert cert = pki_make((struct pki_conf){"server"});
		bool is_client = i / 2;
		const struct tlshs_context_conf conf = {
			.role = is_client ? TLSHS_CLIENT : TLSHS_SERVER,
			.certificate_pem = is_client ? STR("") : cert.pem,
			.key_pem = is_client ? STR("") : cert.key_pem,
			.min_version = rows[i % 2].version,
			.max_version = rows[i % 2].version};
		struct tlshs_context *c = context_good(&conf);
		struct meeting m;
		meeting_init(&m, c, (struct str){0},
			&(struct far_conf){.role = is_client ? TLSHS_SERVER : TLSHS_CLIENT,
				.cert = is_client ? &cert : NULL});
		SSL_CTX_set_keylog_callback(SSL_get_SSL_CTX(m.far), on_far_line);
		far_lines[0] = 0;
		tlshs_handshake_log_keys(m.h, &keys);
		assert_true(tlshs_keylog_begin(&keys));
		assert_int_equal(meeting_run(&m), TLSHS_ok);
		take(sizeof(room) - 1);
		expect_the_peers((char *)room, rows[i % 2].n_lines);
		tlshs_keylog_end(&keys);
		meeting_fini(&m);
		tlshs_context_put(c);
		pki_end();
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("tlshs/keylog", CASE(lines_are_kept_only_while_somebody_asks),
	CASE(what_finds_no_room_is_counted), CASE(a_handshake_tells_its_secrets))
