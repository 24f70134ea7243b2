// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tls/impl.h"
#include "tests/unit/tls/rig.h"

#include <string.h>

static const uint8_t key_update[] = {24, 0, 0, 1, 0};
static const uint8_t key_update_asking[] = {24, 0, 0, 1, 1};

// Handshake text that fails, in one record or in records of a byte each.
static void expect_message_fails(unsigned suite, enum tls_role role, const void *text, size_t len,
	uint8_t alert, enum tls_counter counter)
{
	for (size_t each = 1; each <= len; each += len - 1) {
		struct rig g;
		rig_init(&g, &rig_suites[suite], role, 1);
		for (size_t at = 0; at < len && !tls_conn_failed(g.conn, NULL, NULL); at += each)
			rig_send(&g, TLS_HANDSHAKE, (const uint8_t *)text + at, each);
		rig_expect_failure(&g, alert, counter);
		assert_int_equal(g.n_calls, 0);
		rig_fini(&g);
		if (len == 1)
			break;
	}
}

// TLS-12, TLS-18
static void a_key_update_changes_keys_wherever_it_is_cut(void **state)
{
	for (unsigned s = 0; s < 4; s++) {
		for (size_t cut = 0; cut < sizeof(key_update); cut++) {
			struct rig g;
			rig_init(&g, &rig_suites[s], cut & 1 ? TLS_CLIENT : TLS_SERVER, cut);
			rig_send(&g, TLS_DATA, "old", 3);
			if (cut)
				rig_send(&g, TLS_HANDSHAKE, key_update, cut);
			rig_send(&g, TLS_HANDSHAKE, key_update + cut, sizeof(key_update) - cut);
			rig_update_peer(&g);
			rig_send(&g, TLS_DATA, "new", 3);
			rig_expect_sound(&g);
			assert_int_equal(g.n_plain, 6);
			assert_int_equal(rig_counter(&g, TLS_C_key_updates_in), 1);
			assert_false(tls_conn_wants_seal(g.conn));
			rig_fini(&g);
		}
	}
}

// TLS-12: the old key is dead.
static void the_old_key_opens_nothing_after_a_key_update(void **state)
{
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
	rig_send(&g, TLS_HANDSHAKE, key_update, sizeof(key_update));
	rig_send(&g, TLS_DATA, "old", 3);
	assert_int_equal(g.n_plain, 0);
	rig_expect_failure(&g, TLS_BAD_RECORD_MAC, TLS_C_bad_tags);
	rig_fini(&g);
}

static void wrong_key_updates_fail(void **state)
{
	static const uint8_t value[] = {24, 0, 0, 1, 2}, longer[] = {24, 0, 0, 2, 0, 0};
	static const uint8_t empty[] = {24, 0, 0, 0}, huge[] = {24, 1, 0, 1, 0};
	expect_message_fails(0, TLS_SERVER, value, 5, TLS_ILLEGAL_PARAMETER, TLS_C_bad_values);
	expect_message_fails(0, TLS_CLIENT, longer, 6, TLS_DECODE_ERROR, TLS_C_bad_lengths);
	expect_message_fails(0, TLS_SERVER, empty, 4, TLS_DECODE_ERROR, TLS_C_bad_lengths);
	expect_message_fails(0, TLS_SERVER, huge, 5, TLS_DECODE_ERROR, TLS_C_bad_lengths);
	// TLS-12: something behind it in the same record
	struct rig g;
	uint8_t two[10];
	memcpy(two, key_update, 5);
	memcpy(two + 5, key_update, 5);
	for (size_t len = 6; len <= 10; len += 4) {
		rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
		rig_send(&g, TLS_HANDSHAKE, two, len);
		rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_unexpected_messages);
		rig_fini(&g);
	}
}

static void seal_nothing(struct rig *g)
{
	struct buf plain = {0};
	assert_false(tls_conn_seal(g->conn, &plain, &g->out, 0));
}

// TLS-13
static void an_asking_key_update_is_answered_once(void **state)
{
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
	for (unsigned i = 0; i < 3; i++) {
		rig_send(&g, TLS_HANDSHAKE, key_update_asking, 5);
		rig_update_peer(&g);
	}
	assert_true(tls_conn_wants_seal(g.conn));
	seal_nothing(&g);
	assert_false(tls_conn_wants_seal(g.conn));
	assert_int_equal(g.out.len, TLS_HEADER + 5 + 1 + AEAD_TAG);
	assert_int_equal(rig_counter(&g, TLS_C_key_updates_out), 1);
	assert_int_equal(g.conn->write.seq, 0);
	rig_expect_sound(&g);
	rig_fini(&g);
}

// TLS-13: whether we were about to ask for new keys before it came, or wished it afterwards.
static void the_answer_asks_for_nothing_though_we_were_about_to(void **state)
{
	for (unsigned when = 0; when < 2; when++) {
		struct rig g, peer;
		uint8_t wire[200];
		rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
		rig_init(&peer, &rig_suites[0], TLS_CLIENT, 2);
		peer.conn->read = g.conn->write;
		if (when == 0)
			tls_conn_update_keys(g.conn, true);
		rig_send(&g, TLS_HANDSHAKE, key_update_asking, 5);
		if (when == 1)
			tls_conn_update_keys(g.conn, true);
		seal_nothing(&g);
		assert_false(tls_conn_wants_seal(g.conn));
		buf_copy_out(&g.out, 0, wire, g.out.len);
		assert_int_equal(tls_conn_feed(peer.conn, wire, g.out.len), g.out.len);
		assert_int_equal(rig_counter(&peer, TLS_C_key_updates_in), 1);
		assert_false(tls_conn_wants_seal(peer.conn)); // nothing is asked of it
		rig_expect_sound(&peer);
		rig_fini(&g);
		rig_fini(&peer);
	}
}

// TLS-13: RFC 8446 4.6.3 wants the answer before the next data; it does not ask in turn.
static void the_answer_goes_out_before_data_and_asks_for_nothing(void **state)
{
	struct rig g, peer;
	struct buf plain = {0};
	uint8_t wire[400];
	rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
	rig_init(&peer, &rig_suites[0], TLS_CLIENT, 2);
	peer.conn->read = g.conn->write;
	rig_send(&g, TLS_HANDSHAKE, key_update_asking, 5);
	assert_true(buf_append(&plain, &g.chunks, "data", 4));
	assert_false(tls_conn_seal(g.conn, &plain, &g.out, 1000));
	buf_copy_out(&g.out, 0, wire, g.out.len);
	assert_int_equal((wire[3] << 8 | wire[4]), 5 + 1 + AEAD_TAG);
	assert_int_equal(tls_conn_feed(peer.conn, wire, g.out.len), g.out.len);
	assert_int_equal(peer.n_plain, 4);
	assert_int_equal(rig_counter(&peer, TLS_C_key_updates_in), 1);
	assert_false(tls_conn_wants_seal(peer.conn));
	rig_expect_sound(&peer);
	rig_fini(&g);
	rig_fini(&peer);
}

// TLS-15
static void key_updates_have_a_budget(void **state)
{
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
	for (unsigned i = 0; i < 32; i++) {
		rig_send(&g, TLS_HANDSHAKE, key_update, 5);
		rig_update_peer(&g);
	}
	rig_expect_sound(&g);
	g.now_ns += NS_PER_SECOND;
	rig_send(&g, TLS_HANDSHAKE, key_update, 5);
	rig_update_peer(&g);
	rig_expect_sound(&g);
	rig_send(&g, TLS_HANDSHAKE, key_update, 5);
	rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_message_floods);
	rig_fini(&g);
}

// TLS-16, TLS-18
static void tickets_are_handed_on_or_skipped(void **state)
{
	static uint8_t ticket[3 + 1 + 20000];
	memcpy(ticket, (uint8_t[]){4, 0, 0, 100}, 4);
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_CLIENT, 1);
	rig_send(&g, TLS_HANDSHAKE, ticket, 104);
	assert_int_equal(g.n_tickets, 1);
	assert_int_equal(g.ticket_len, 100);
	for (size_t cut = 1; cut < 104; cut += 34) { // the last lacks a byte
		rig_send(&g, TLS_HANDSHAKE, ticket, cut);
		rig_send(&g, TLS_HANDSHAKE, ticket + cut, 104 - cut);
	}
	// A header that comes in pieces, and then the body at once, is one that was cut, too.
	assert_int_equal(g.n_tickets, 2);
	ticket[2] = 20000 >> 8;
	ticket[3] = 20000 & 0xff;
	rig_send(&g, TLS_HANDSHAKE, ticket, 10004);
	rig_send(&g, TLS_HANDSHAKE, ticket, 10000);
	memcpy(ticket + 104, key_update, 5);
	ticket[2] = 0;
	ticket[3] = 100;
	rig_send(&g, TLS_HANDSHAKE, ticket, 109); // with a KeyUpdate behind it
	rig_update_peer(&g);
	rig_send(&g, TLS_DATA, "data", 4);
	rig_expect_sound(&g);
	assert_int_equal(g.n_tickets, 3);
	assert_int_equal(rig_counter(&g, TLS_C_tickets_in), 7);
	assert_int_equal(g.n_plain, 4);
	rig_fini(&g);
	static const uint8_t huge[] = {4, 3, 0, 0, 1};
	expect_message_fails(0, TLS_CLIENT, huge, 5, TLS_DECODE_ERROR, TLS_C_bad_lengths);
}

// TLS-17
static void other_messages_and_those_of_the_wrong_side_fail(void **state)
{
	for (unsigned type = 0; type < 256; type++) {
		for (enum tls_role role = TLS_SERVER; role <= TLS_CLIENT; role++) {
			uint8_t text[] = {(uint8_t)type, 0, 0, 1, 0};
			if (type == 24 || (type == 4 && role == TLS_CLIENT))
				continue;
			expect_message_fails(0, role, text, 5, TLS_UNEXPECTED_MESSAGE,
				TLS_C_unexpected_messages);
		}
	}
}

// TLS-19
static void renegotiation_is_refused_under_1_2_by_either_side(void **state)
{
	for (unsigned type = 0; type < 256; type++) {
		uint8_t text[] = {(uint8_t)type, 0, 0, 0};
		bool asks[] = {[TLS_SERVER] = type == 1, [TLS_CLIENT] = type == 0};
		for (enum tls_role role = TLS_SERVER; role <= TLS_CLIENT; role++)
			expect_message_fails(4, role, text, 4,
				asks[role] ? TLS_NO_RENEGOTIATION : TLS_UNEXPECTED_MESSAGE,
				asks[role] ? TLS_C_renegotiations : TLS_C_unexpected_messages);
	}
}

// TLS-18
static void nothing_comes_between_the_parts_of_a_message(void **state)
{
	static const uint8_t alert[] = {1, 90}, ticket[] = {4, 0, 0, 9, 1};
	for (unsigned i = 0; i < 4; i++) {
		struct rig g;
		rig_init(&g, &rig_suites[0], TLS_CLIENT, 1);
		rig_send(&g, TLS_HANDSHAKE, i & 1 ? ticket : key_update, i & 1 ? 5 : 2);
		if (i & 2)
			rig_send(&g, TLS_DATA, "data", 4);
		else
			rig_send(&g, TLS_ALERT, alert, 2);
		assert_int_equal(g.n_plain, 0);
		rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_unexpected_records);
		rig_fini(&g);
	}
}

// TLS-20
static void what_comes_behind_close_notify_is_dropped(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (uint8_t level = 1; level <= 2; level++) {
			struct rig g;
			struct buf plain = {0};
			const uint8_t close[] = {level, 0};
			rig_init(&g, &rig_suites[s], TLS_SERVER, 1);
			rig_send(&g, TLS_DATA, "data", 4);
			assert_false(tls_conn_ended(g.conn));
			rig_send(&g, TLS_ALERT, close, 2);
			assert_int_equal(g.n_eofs, 1);
			assert_true(tls_conn_ended(g.conn));
			rig_send(&g, TLS_DATA, "late", 4);
			assert_int_equal(tls_conn_feed(g.conn, (const uint8_t *)"rubbish", 7), 7);
			assert_int_equal(g.n_plain, 4);
			rig_expect_sound(&g);
			assert_false(tls_conn_wants_seal(g.conn));
			assert_true(buf_append(&plain, &g.chunks, "more", 4)); // we go on
			assert_false(tls_conn_seal(g.conn, &plain, &g.out, 1000));
			assert_true(g.out.len > 4);
			assert_int_equal(
				rig_counter(&g, TLS_C_truncations), 1); // at the first look
			rig_fini(&g);
		}
	}
}

// TLS-24
static void a_stream_without_close_notify_is_truncated(void **state)
{
	struct rig g;
	rig_init(&g, &rig_suites[0], TLS_SERVER, 1);
	rig_send(&g, TLS_DATA, "data", 4);
	for (unsigned i = 0; i < 3; i++) { // once, however often it is asked
		assert_false(tls_conn_ended(g.conn));
		assert_int_equal(rig_counter(&g, TLS_C_truncations), 1);
	}
	rig_fini(&g);
}

static void send_alert(struct rig *g, uint8_t level, uint8_t alert)
{
	rig_send(g, TLS_ALERT, (uint8_t[]){level, alert}, 2);
}

// TLS-21
static void alerts_are_fatal_as_the_version_says(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		bool is_13 = rig_suites[s].version == TLS_1_3;
		for (unsigned alert = 1; alert < 256; alert++) {
			for (uint8_t level = 0; level <= 3; level++) {
				struct rig g;
				uint8_t is;
				bool by_peer;
				rig_init(&g, &rig_suites[s], TLS_CLIENT, 1);
				send_alert(&g, level, (uint8_t)alert);
				bool fatal = is_13 ? alert != TLS_USER_CANCELED : level == 2;
				bool wrong = !is_13 && level != 1 && level != 2;
				assert_int_equal(
					tls_conn_failed(g.conn, &is, &by_peer), fatal || wrong);
				if (wrong) {
					rig_expect_failure(
						&g, TLS_ILLEGAL_PARAMETER, TLS_C_bad_values);
				} else if (fatal) {
					assert_true(by_peer);
					assert_int_equal(is, alert);
					assert_int_equal(rig_counter(&g, TLS_C_alerts_in), 1);
					assert_true(tls_conn_is_shut(g.conn));
					seal_nothing(&g);
					assert_int_equal(g.out.len, 0);
				}
				rig_fini(&g);
				if (s > 1 && alert > 4)
					break; // enough of it
			}
		}
	}
}

// TLS-22
static void warnings_have_a_budget(void **state)
{
	for (unsigned s = 0; s < rig_n_suites; s++) {
		struct rig g;
		rig_init(&g, &rig_suites[s], TLS_SERVER, 1);
		for (unsigned i = 0; i < 8; i++)
			send_alert(&g, 1, TLS_USER_CANCELED);
		g.now_ns += NS_PER_SECOND;
		send_alert(&g, 1, TLS_USER_CANCELED);
		rig_expect_sound(&g);
		send_alert(&g, 1, TLS_USER_CANCELED);
		rig_expect_failure(&g, TLS_UNEXPECTED_MESSAGE, TLS_C_warning_floods);
		rig_fini(&g);
	}
}

// TLS-23
static void an_alert_is_two_bytes(void **state)
{
	static const uint8_t text[4] = {1, 0, 1, 0};
	for (unsigned s = 0; s < rig_n_suites; s++) {
		for (size_t len = 1; len <= 4; len++) {
			struct rig g;
			if (len == 2)
				continue;
			rig_init(&g, &rig_suites[s], TLS_SERVER, 1);
			rig_send(&g, TLS_ALERT, text, len);
			rig_expect_failure(&g, TLS_DECODE_ERROR, TLS_C_bad_lengths);
			assert_int_equal(g.n_eofs, 0);
			rig_fini(&g);
		}
	}
}

RUN_SUITE("tls/messages", cmocka_unit_test(a_key_update_changes_keys_wherever_it_is_cut),
	cmocka_unit_test(the_old_key_opens_nothing_after_a_key_update),
	cmocka_unit_test(wrong_key_updates_fail),
	cmocka_unit_test(an_asking_key_update_is_answered_once),
	cmocka_unit_test(the_answer_asks_for_nothing_though_we_were_about_to),
	cmocka_unit_test(the_answer_goes_out_before_data_and_asks_for_nothing),
	cmocka_unit_test(key_updates_have_a_budget),
	cmocka_unit_test(tickets_are_handed_on_or_skipped),
	cmocka_unit_test(other_messages_and_those_of_the_wrong_side_fail),
	cmocka_unit_test(renegotiation_is_refused_under_1_2_by_either_side),
	cmocka_unit_test(nothing_comes_between_the_parts_of_a_message),
	cmocka_unit_test(what_comes_behind_close_notify_is_dropped),
	cmocka_unit_test(a_stream_without_close_notify_is_truncated),
	cmocka_unit_test(alerts_are_fatal_as_the_version_says),
	cmocka_unit_test(warnings_have_a_budget), cmocka_unit_test(an_alert_is_two_bytes))
