// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/wire.h"
#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HEAD 'S', 'H', 'T', 'O', 0, 1, 0

static void each_kind_comes_out_as_it_went_in(void **state)
{
	for (int kind = TAKEOVER_HELLO; kind < TAKEOVER_UNKNOWN; kind++) {
		struct takeover_message in = {
			(enum takeover_kind)kind, 0x12345678, 3, 1, "1.2 (x)"};
		struct takeover_message out;
		uint8_t bytes[TAKEOVER_MAX_MESSAGE];
		in.takes_resources = 1;
		in.n_sources = 3;
		memset(in.text + 7, 'y', sizeof(in.text) - 8);
		size_t len = takeover_wire_write(&in, bytes);
		assert_int_equal(takeover_wire_read(bytes, len, &out), 0);
		assert_int_equal(out.kind, kind);
		assert_int_equal(out.generation, in.generation);
		assert_int_equal(out.n_behind, in.n_behind);
		assert_int_equal(out.passes_listeners, 1);
		assert_int_equal(out.takes_resources, 1);
		assert_int_equal(out.n_sources, 3);
		assert_string_equal(out.text, in.text);
	}
}

// FL-112
static void cables_come_out_as_they_went_in(void **state)
{
	struct takeover_message in = {.kind = TAKEOVER_CABLES, .cables.n = LB_MAX_CABLES}, out;
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	for (uint8_t i = 0; i < LB_MAX_CABLES; i++) {
		struct lb_cable *c = &in.cables.list[i];
		*c = (struct lb_cable){"enp129s0f1np01x", {2, 0, 0, 0, 0, i}, i % 2};
		c->name[i] = '\0';
		c->name[0] = 'e';
		memset(c->name + i + 1, 0, sizeof(c->name) - i - 1);
		c->n_members = i % 2 ? LB_CABLE_MEMBERS : 0;
		for (uint8_t k = 0; k < c->n_members; k++)
			snprintf(c->members[k], sizeof(c->members[k]), "enp129s%uf%unp01x", i, k);
	}
	strcpy(in.cables.list[7].name, "enp129s0f1np01x");
	in.generation = in.n_behind = in.n_workers = in.takes_resources = in.n_sources = 1;
	memset(in.text, 'v', sizeof(in.text) - 1);
	size_t len = takeover_wire_write(&in, bytes);
	assert_int_equal(takeover_wire_read(bytes, len, &out), 0);
	assert_memory_equal(&out.cables, &in.cables, sizeof(in.cables));
	in.text[0] = '\0';
	for (uint8_t i = 0; i < LB_MAX_CABLES; i++)
		in.cables.list[i].n_members = 0;
	memcpy(bytes + takeover_wire_write(&in, bytes), bytes + 48, 4 + 7 + 1); // one more
	assert_int_equal(takeover_wire_read(bytes, takeover_wire_write(&in, bytes) + 12, &out), 0);
	assert_int_equal(out.cables.n, LB_MAX_CABLES);
}

// FL-112: flags more, names that are longer, members of what had no room here.
static void cables_of_a_later_version_are_read_as_far_as_they_are_known(void **state)
{
	static const uint8_t bytes[] = {HEAD, 11, 0, 6, 0, 8, 2, 0, 0, 0, 0, 1, 0xff, 'e', 0, 6, 0,
		24, 2, 0, 0, 0, 0, 2, 2, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l',
		'm', 'n', 'o', 'p', 'q', 0, 7, 0, 2, 0, 'm', 0, 7, 0, 2, 8, 'n', 0, 7, 0, 2, 2,
		'n'};
	struct takeover_message m;
	assert_int_equal(takeover_wire_read(bytes, sizeof(bytes), &m), 0);
	assert_int_equal(m.cables.n, 2);
	assert_true(m.cables.list[0].is_bond);
	assert_false(m.cables.list[1].is_bond);
	assert_string_equal(m.cables.list[1].name, "abcdefghijklmno");
	assert_int_equal(m.cables.list[0].n_members, 1);
	assert_string_equal(m.cables.list[0].members[0], "m");
	assert_int_equal(m.cables.list[1].n_members, 0);
}

// FL-112: the kernel takes other characters in names of interfaces.
static void a_cable_whose_name_cannot_be_printed_ends_no_talk(void **state)
{
	struct takeover_message out,
		in = {.kind = TAKEOVER_WELCOME,
			.cables = {1, {{"\xc3\xa9th0", {2}, true, 2, {"\xc3\xa9th0", "eth\x7f"}}}}};
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	size_t len = takeover_wire_write(&in, bytes);
	assert_int_equal(takeover_wire_read(bytes, len, &out), 0);
	assert_string_equal(out.cables.list[0].name, "??th0");
	assert_string_equal(out.cables.list[0].members[1], "eth?");
}

// FL-204: names of providers and files are anybody's.
static void a_text_that_cannot_be_printed_or_is_too_long_ends_no_talk(void **state)
{
	struct takeover_message out, in = {.kind = TAKEOVER_SOURCE, .text = "caf\xc3\xa9\n"};
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	char fit[TAKEOVER_TEXT], name[3 * TAKEOVER_TEXT] = "";
	assert_int_equal(takeover_wire_read(bytes, takeover_wire_write(&in, bytes), &out), 0);
	assert_string_equal(out.text, "caf???");
	takeover_wire_fit(in.text, fit);
	assert_string_equal(fit, out.text);
	memset(name, 'x', sizeof(name) - 1);
	takeover_wire_fit(name, fit);
	assert_int_equal(strlen(fit), TAKEOVER_TEXT - 1);
}

// FL-71
static void an_earlier_version_says_nothing_of_listeners(void **state)
{
	static const uint8_t hello[] = {HEAD, 1, 0, 3, 0, 3, '1', '.', '0'};
	struct takeover_message m;
	assert_int_equal(takeover_wire_read(hello, sizeof(hello), &m), 0);
	assert_int_equal(m.passes_listeners, 0);
}

// FL-09: a later version may say more.
static void fields_that_are_not_known_are_skipped(void **state)
{
	static const uint8_t bytes[] = {
		HEAD, 2, 0, 99, 0, 3, 'a', 'b', 'c', 0, 1, 0, 4, 0, 0, 0, 7, 1, 0, 0, 0};
	struct takeover_message m;
	assert_int_equal(takeover_wire_read(bytes, sizeof(bytes), &m), 0);
	assert_int_equal(m.kind, TAKEOVER_WELCOME);
	assert_int_equal(m.generation, 7);
}

// FL-09
static void kinds_that_are_not_known_are_told_as_such(void **state)
{
	static const uint8_t rows[][8] = {
		{HEAD, TAKEOVER_UNKNOWN}, {'S', 'H', 'T', 'O', 0, 1, 255, 255}};
	for (size_t i = 0; i < 2; i++) {
		struct takeover_message m;
		assert_int_equal(takeover_wire_read(rows[i], sizeof(rows[i]), &m), 0);
		assert_int_equal(m.kind, TAKEOVER_UNKNOWN);
	}
}

// FL-09
static void what_is_malformed_is_refused(void **state)
{
	static const struct {
		const char *what;
		size_t len;
		uint8_t bytes[40];
	} rows[] = {
		{"nothing", 0, {0}},
		{"a part of the head", 7, {HEAD}},
		{"another magic", 8, {'S', 'H', 'T', 'P', 0, 1, 0, 1}},
		{"another format", 8, {'S', 'H', 'T', 'O', 0, 2, 0, 1}},
		{"kind 0", 8, {HEAD, 0}},
		{"a part of a field's head", 11, {HEAD, 1, 0, 1, 0}},
		{"a field longer than the message", 13, {HEAD, 1, 0, 99, 0, 2, 'a'}},
		{"a number of three bytes", 15, {HEAD, 1, 0, 1, 0, 3, 1, 2, 3}},
		{"a text with a newline", 14, {HEAD, 1, 0, 3, 0, 2, 'a', '\n'}},
		{"a cable without a name", 19, {HEAD, 11, 0, 6, 0, 7, 2, 0, 0, 0, 0, 1, 1}},
		{"a cable's name with a zero", 20, {HEAD, 11, 0, 6, 0, 8, 2, 0, 0, 0, 0, 1, 1, 0}},
		{"a member without a name", 13, {HEAD, 11, 0, 7, 0, 1, 0}},
		{"a member's name with a newline", 14, {HEAD, 11, 0, 7, 0, 2, 0, '\n'}},
		{"a text with a zero", 14, {HEAD, 1, 0, 3, 0, 2, 'a', 0}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct takeover_message m;
		if (takeover_wire_read(rows[i].bytes, rows[i].len, &m) != -EPROTO)
			fail_msg("%s is taken", rows[i].what);
	}
}

static void a_text_that_has_no_room_is_refused(void **state)
{
	uint8_t bytes[12 + TAKEOVER_TEXT] = {HEAD, 1, 0, 3, 0, TAKEOVER_TEXT};
	struct takeover_message m;
	memset(bytes + 12, 'a', TAKEOVER_TEXT);
	assert_int_equal(takeover_wire_read(bytes, sizeof(bytes), &m), -EPROTO);
}

RUN_SUITE("takeover/wire", cmocka_unit_test(each_kind_comes_out_as_it_went_in),
	cmocka_unit_test(cables_come_out_as_they_went_in),
	cmocka_unit_test(cables_of_a_later_version_are_read_as_far_as_they_are_known),
	cmocka_unit_test(a_cable_whose_name_cannot_be_printed_ends_no_talk),
	cmocka_unit_test(a_text_that_cannot_be_printed_or_is_too_long_ends_no_talk),
	cmocka_unit_test(an_earlier_version_says_nothing_of_listeners),
	cmocka_unit_test(fields_that_are_not_known_are_skipped),
	cmocka_unit_test(kinds_that_are_not_known_are_told_as_such),
	cmocka_unit_test(what_is_malformed_is_refused),
	cmocka_unit_test(a_text_that_has_no_room_is_refused))
