// SPDX-License-Identifier: Apache-2.0
// H1-24: what llhttp refuses we refuse, and what both take is the same to both: for each row of
// smuggling.rows, and for rows that were altered at random. test_h1_llhttp ROWS [N]: so many.
#include "lb/base/rand.h"
#include "tests/support/check.h"
#include "tests/support/llhttp_twin.h"
#include "tests/unit/h1/smuggling_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_WHOLE 60 // requests of the rows that both take
#define MAX_ROWS 512
#define MAX_ALTERED 4096

static const char *rows_path;
static uint64_t n_altered = 100000;

struct input {
	char name[80];
	uint8_t *bytes;
	size_t len;
};

static struct input inputs[MAX_ROWS];
static size_t n_inputs;

static int set_up(void **state)
{
	struct smuggling_rows *rows = smuggling_rows_open(rows_path);
	const struct smuggling_row *r;
	while ((r = smuggling_rows_next(rows))) {
		struct input *in = &inputs[n_inputs++];
		assert_true(n_inputs <= MAX_ROWS);
		memcpy(in->name, r->name, sizeof(in->name));
		in->len = r->len;
		in->bytes = malloc(r->len);
		assert_non_null(in->bytes);
		memcpy(in->bytes, r->bytes, r->len);
	}
	smuggling_rows_close(rows);
	return 0;
}

static int tear_down(void **state)
{
	for (size_t i = 0; i < n_inputs; i++)
		free(inputs[i].bytes);
	return 0;
}

static void h1_24_no_row_is_more_to_us_than_to_llhttp(void **state)
{
	struct llhttp_twin_count count = {0};
	size_t wrong = 0;
	for (size_t i = 0; i < n_inputs; i++) {
		const struct input *in = &inputs[i];
		const char *complaint = llhttp_twin_complaint(in->bytes, in->len, &count);
		if (!complaint)
			continue;
		print_error("%s: %s\n", in->name, complaint);
		wrong++;
	}
	assert_int_equal(wrong, 0);
	assert_true(count.n_whole >= MIN_WHOLE);
}

// A byte that means something, put in, put in place of another one, or taken out; or a piece of
// another row.
static size_t alter(struct rand *r, uint8_t *p, size_t len)
{
	static const uint8_t bytes[] = "\r\n\t\0 :;,=0159afF\"/*\x7f\x80xX";
	const struct input *other = &inputs[rand_below(r, n_inputs)];
	size_t at = rand_below(r, len + 1), from, n;
	uint8_t byte = bytes[rand_below(r, sizeof(bytes) - 1)];
	switch (rand_below(r, 4)) {
	case 0:
		if (at < len)
			p[at] = byte;
		return len;
	case 1:
		if (at == len)
			return len;
		memmove(p + at, p + at + 1, len - at - 1);
		return len - 1;
	case 2:
		if (len == MAX_ALTERED)
			return len;
		memmove(p + at + 1, p + at, len - at);
		p[at] = byte;
		return len + 1;
	default:
		from = rand_below(r, other->len);
		n = rand_below(r, other->len - from) + 1;
		n = n < MAX_ALTERED - len ? n : MAX_ALTERED - len;
		memmove(p + at + n, p + at, len - at);
		memcpy(p + at, other->bytes + from, n);
		return len + n;
	}
}

static void h1_24_no_altered_row_is_more_to_us_than_to_llhttp(void **state)
{
	struct llhttp_twin_count count = {0};
	struct rand r;
	uint8_t p[MAX_ALTERED];
	rand_init(&r, 24);
	for (uint64_t i = 0; i < n_altered; i++) {
		const struct input *in = &inputs[rand_below(&r, n_inputs)];
		size_t len = in->len < MAX_ALTERED ? in->len : MAX_ALTERED;
		memcpy(p, in->bytes, len);
		for (uint64_t n = 1 + rand_below(&r, 3); n; n--)
			len = alter(&r, p, len);
		const char *complaint = llhttp_twin_complaint(p, len, &count);
		if (!complaint)
			continue;
		fwrite(p, 1, len, stderr);
		fail_msg("number %llu, of %s: %s", (unsigned long long)i, in->name, complaint);
	}
	assert_true(count.n_whole > n_altered / 20);
	print_message("%zu requests whole of %zu; left by llhttp: %zu\n", count.n_whole,
		count.n_heads, count.n_left);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(h1_24_no_row_is_more_to_us_than_to_llhttp),
		cmocka_unit_test(h1_24_no_altered_row_is_more_to_us_than_to_llhttp),
	};
	if (argc < 2 || argc > 3)
		return 2;
	rows_path = argv[1];
	if (argc == 3)
		n_altered = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests_name("dataplane/h1 llhttp", suite, set_up, tear_down);
}
