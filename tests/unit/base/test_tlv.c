// SPDX-License-Identifier: Apache-2.0
#include "lb/base/tlv.h"
#include "tests/support/check.h"

#include <stdlib.h>

static struct tlv_types types_of(const uint8_t *list, size_t n)
{
	struct tlv_types t = {0};
	for (size_t i = 0; i < n; i++)
		tlv_types_add(&t, list[i]);
	return t;
}

static void a_set_has_what_was_added(void **state)
{
	(void)state;
	static const uint8_t list[] = {0, 63, 64, 128, 255};
	struct tlv_types t = {0};
	assert_false(tlv_types_are_any(&t));
	for (size_t i = 0; i < sizeof(list); i++) {
		tlv_types_add(&t, list[i]);
		assert_true(tlv_types_are_any(&t));
		for (unsigned type = 0; type < 256; type++) {
			bool is_there = false;
			for (size_t k = 0; k <= i; k++)
				is_there |= list[k] == type;
			assert_int_equal(tlv_types_have(&t, (uint8_t)type), is_there);
		}
	}
	for (size_t i = 0; i < sizeof(list); i++)
		tlv_types_remove(&t, list[i]);
	assert_false(tlv_types_are_any(&t));
}

// Each in a block of its own, so that what is read beyond it is found. PP-22
static void entries_are_whole_or_they_are_none(void **state)
{
	(void)state;
	static const struct {
		struct str s;
		bool are_whole;
	} rows[] = {
		{{NULL, 0}, true},
		{STR("\4\0\0"), true},
		{STR("\4\0\1x"), true},
		{STR("\4\0\1x\4\0\0"), true},
		{STR("\4"), false},
		{STR("\4\0"), false},
		{STR("\4\0\1"), false},
		{STR("\4\0\2x"), false},
		{STR("\4\1\0x"), false},
		{STR("\4\xff\xff"), false},
		{STR("\4\0\0\4"), false},
		{STR("\4\0\1x\4\0\1"), false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *copy = rows[i].s.len ? malloc(rows[i].s.len) : NULL;
		if (copy)
			memcpy(copy, rows[i].s.p, rows[i].s.len);
		if (tlv_are_whole((struct str){copy, rows[i].s.len}) != rows[i].are_whole)
			fail_msg("row %zu", i);
		free(copy);
	}
}

#define ENTRIES "\xe0\0\1a\2\0\0\xe0\0\2bc\xff\0\1d"

static void types_are_those_that_stand_there(void **state)
{
	(void)state;
	static const uint8_t list[] = {2, 0xe0, 0xff};
	const struct tlv_types t = tlv_types_of(STR(ENTRIES)), wanted = types_of(list, 3);
	assert_true(tlv_types_eq(&t, &wanted));
	const struct tlv_types none = tlv_types_of((struct str){0}), less = types_of(list, 2);
	assert_false(tlv_types_are_any(&none));
	assert_false(tlv_types_eq(&t, &less));
}

// Of one type all, in their order; and where they lie, too.
static void copied_is_what_is_wanted_and_not_excepted(void **state)
{
	(void)state;
	static const struct {
		uint8_t wanted[3], but[3];
		size_t n_wanted, n_but;
		struct str copied;
	} rows[] = {
		{{2, 0xe0, 0xff}, {0}, 3, 0, STR(ENTRIES)},
		{{0xe0}, {0}, 1, 0, STR("\xe0\0\1a\xe0\0\2bc")},
		{{2, 0xff, 7}, {0}, 3, 0, STR("\2\0\0\xff\0\1d")},
		{{2, 0xe0, 0xff}, {0xe0, 7}, 3, 2, STR("\2\0\0\xff\0\1d")},
		{{0}, {0}, 0, 0, {NULL, 0}},
		{{2, 0xe0, 0xff}, {0xff, 0xe0, 2}, 3, 3, {NULL, 0}},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tlv_types wanted = types_of(rows[i].wanted, rows[i].n_wanted),
				       but = types_of(rows[i].but, rows[i].n_but);
		uint8_t to[sizeof(ENTRIES) - 1], place[sizeof(ENTRIES) - 1];
		size_t n = tlv_copy(to, STR(ENTRIES), &wanted, &but);
		assert_true(str_eq((struct str){(const char *)to, n}, rows[i].copied));
		memcpy(place, ENTRIES, sizeof(place));
		n = tlv_copy(
			place, (struct str){(const char *)place, sizeof(place)}, &wanted, &but);
		assert_true(str_eq((struct str){(const char *)place, n}, rows[i].copied));
	}
	const struct tlv_types none = {0};
	assert_int_equal(tlv_copy(NULL, (struct str){0}, &none, &none), 0);
}

RUN_SUITE("base/tlv", cmocka_unit_test(a_set_has_what_was_added),
	cmocka_unit_test(entries_are_whole_or_they_are_none),
	cmocka_unit_test(types_are_those_that_stand_there),
	cmocka_unit_test(copied_is_what_is_wanted_and_not_excepted))
