// SPDX-License-Identifier: Apache-2.0
#include "lb/base/time.h"
#include "tests/support/check.h"
#include "tests/support/faultlink/frame.h"
#include "tests/support/faultlink/line.h"

#include <string.h>

#define MS NS_PER_MS
#define ETH 14

static struct line *line;

static struct line *line_with(const char *text)
{
	struct faults f = {0};
	const char *word;
	assert_int_equal(faults_parse(&f, text, &word), 0);
	line = line_new(&f, 1, 0);
	return line;
}

static int teardown(void **state)
{
	line_free(line);
	return 0;
}

// An IPv4 frame of this length that carries a number.
static bool put(unsigned number, size_t len, uint64_t now_ns)
{
	uint8_t frame[FRAME_MAX] = {0};
	frame[12] = 8;
	frame[ETH] = 0x45;
	frame[ETH + 2] = (uint8_t)((len - ETH) >> 8);
	frame[ETH + 3] = (uint8_t)(len - ETH);
	frame[ETH + 9] = 17;
	memcpy(frame + ETH + 20, &number, sizeof(number));
	return line_put(line, frame, len, now_ns);
}

// The number of the frame that is out by now; UINT32_MAX = none.
static unsigned take(uint64_t now_ns)
{
	uint8_t frame[FRAME_MAX];
	unsigned number = UINT32_MAX;
	if (line_take(line, now_ns, frame))
		memcpy(&number, frame + ETH + 20, sizeof(number));
	return number;
}

// Frame `number` comes out exactly then, and is the next one.
static void assert_next(unsigned number, uint64_t at_ns)
{
	assert_int_equal(line_next_ns(line), at_ns);
	if (at_ns)
		assert_int_equal(take(at_ns - 1), UINT32_MAX);
	assert_int_equal(take(at_ns), number);
}

static void without_faults_a_frame_is_out_at_once(void **state)
{
	line_with("");
	assert_int_equal(line_next_ns(line), UINT64_MAX);
	assert_true(put(1, 100, 5));
	assert_true(put(2, 1514, 5));
	assert_next(1, 5);
	assert_next(2, 5);
	assert_int_equal(line_next_ns(line), UINT64_MAX);
	assert_int_equal(line_counter(line, LINE_sent), 2);
}

static void delay_is_the_same_for_all(void **state)
{
	line_with("delay=20ms");
	put(1, 100, 0);
	put(2, 100, 3 * MS);
	assert_next(1, 20 * MS);
	assert_next(2, 23 * MS);
}

static void jitter_keeps_the_order(void **state)
{
	line_with("delay=1ms jitter=10ms");
	uint64_t last = 0;
	for (unsigned i = 0; i < 1000; i++)
		put(i, 100, i * MS / 10);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t at = line_next_ns(line);
		assert_true(at >= last && at >= i * MS / 10 + MS && at < i * MS / 10 + 12 * MS);
		assert_int_equal(take(at), i);
		last = at;
	}
}

static void reordered_frames_are_overtaken_by_others(void **state)
{
	unsigned n_behind = 0, highest = 0;
	line_with("reorder=5%:4ms");
	for (unsigned i = 0; i < 2000; i++)
		put(i, 100, i * MS / 10);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned number = take(UINT64_MAX - 1);
		n_behind += number < highest;
		highest = number > highest ? number : highest;
	}
	assert_int_equal(highest, 1999);
	uint64_t n = line_counter(line, LINE_reordered);
	assert_true(n > 70 && n < 130);
	assert_true(
		n_behind > n * 9 / 10 && n_behind <= n); // held back for less than 0.1 ms: in order
}

static void the_bottleneck_takes_time_by_length(void **state)
{
	line_with("rate=8mbit queue=10 delay=5ms"); // a microsecond a byte
	put(1, 1000, 0);
	put(2, 500, 0);
	put(3, 100, 10 * MS);
	assert_next(1, 6 * MS);
	assert_next(2, 6 * MS + MS / 2);
	assert_next(3, 15 * MS + MS / 10);
}

static void a_full_queue_drops_its_tail(void **state)
{
	line_with("rate=8mbit queue=3");
	for (unsigned i = 0; i < 6; i++)
		put(i, 1000, 0);
	assert_int_equal(line_counter(line, LINE_queue_full), 2); // one is being sent, three wait
	put(6, 1000, MS); // the first has left
	put(7, 1000, MS);
	assert_int_equal(line_counter(line, LINE_queue_full), 3);
	for (unsigned i = 0; i < 4; i++)
		assert_next(i, (i + 1) * MS);
	assert_next(6, 5 * MS);
	assert_int_equal(take(UINT64_MAX - 1), UINT32_MAX);
}

static void in_the_dark_nothing_passes(void **state)
{
	line_with("blackout=10ms:5ms delay=1ms");
	put(1, 100, 10 * MS - 1);
	put(2, 100, 10 * MS);
	put(3, 100, 15 * MS - 1);
	put(4, 100, 15 * MS);
	uint8_t arp[60] = {[12] = 8, [13] = 6};
	assert_true(line_put(line, arp, sizeof(arp), 12 * MS));
	assert_next(1, 11 * MS - 1); // on its way already
	assert_next(4, 16 * MS);
	assert_int_equal(line_counter(line, LINE_dark), 3);
}

static void a_pause_holds_all_until_its_end(void **state)
{
	line_with("pause=100ms:40ms");
	put(1, 100, 20 * MS); // the first comes after the first 100 ms
	put(2, 100, 99 * MS);
	put(3, 100, 100 * MS);
	put(4, 100, 139 * MS);
	put(5, 100, 140 * MS);
	put(6, 100, 210 * MS);
	assert_next(1, 20 * MS);
	assert_next(2, 99 * MS);
	assert_next(3, 140 * MS);
	assert_next(4, 140 * MS);
	assert_next(5, 140 * MS);
	assert_next(6, 240 * MS);
}

static void what_exceeds_the_mtu_is_dropped_and_told(void **state)
{
	line_with("mtu=1300");
	assert_true(put(1, ETH + 1300, 0));
	assert_false(put(2, ETH + 1301, 0));
	assert_next(1, 0);
	assert_int_equal(take(MS), UINT32_MAX);
	assert_int_equal(line_counter(line, LINE_too_big), 1);
}

static void a_black_hole_tells_nothing(void **state)
{
	line_with("mtu=1300 silent=1");
	assert_true(put(2, ETH + 1301, 0));
	assert_int_equal(take(MS), UINT32_MAX);
	assert_int_equal(line_counter(line, LINE_too_big), 1);
}

static void chance_spares_what_looks_for_neighbors(void **state)
{
	uint8_t arp[60] = {[12] = 8, [13] = 6}, out[FRAME_MAX];
	line_with("loss=100% delay=1ms");
	put(1, 100, 0);
	assert_true(line_put(line, arp, sizeof(arp), 0));
	assert_int_equal(line_take(line, MS, out), sizeof(arp));
	assert_memory_equal(out, arp, sizeof(arp));
	assert_int_equal(line_counter(line, LINE_lost), 1);
	assert_int_equal(line_counter(line, LINE_others), 1);
}

static void a_duplicate_is_the_frame_itself_twice(void **state)
{
	line_with("duplicate=100% corrupt=100%");
	uint8_t first[FRAME_MAX], second[FRAME_MAX];
	put(1, 100, 0);
	assert_int_equal(line_take(line, 0, first), 100);
	assert_int_equal(line_take(line, 0, second), 100);
	assert_memory_not_equal(first, second, 100); // one of them was corrupted
	assert_int_equal(line_counter(line, LINE_numbered), 1);
	assert_int_equal(line_counter(line, LINE_duplicated), 1);
	assert_int_equal(line_counter(line, LINE_corrupted), 1);
}

#define CASE(f) cmocka_unit_test_teardown(f, teardown)

RUN_SUITE("faultlink/line", CASE(without_faults_a_frame_is_out_at_once),
	CASE(delay_is_the_same_for_all), CASE(jitter_keeps_the_order),
	CASE(reordered_frames_are_overtaken_by_others), CASE(the_bottleneck_takes_time_by_length),
	CASE(a_full_queue_drops_its_tail), CASE(in_the_dark_nothing_passes),
	CASE(a_pause_holds_all_until_its_end), CASE(what_exceeds_the_mtu_is_dropped_and_told),
	CASE(a_black_hole_tells_nothing), CASE(chance_spares_what_looks_for_neighbors),
	CASE(a_duplicate_is_the_frame_itself_twice))
