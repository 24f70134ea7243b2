// SPDX-License-Identifier: Apache-2.0
#include "ctrl/capture/pcapng.h"
#include "tests/support/check.h"

#include <string.h>

static uint8_t block[1 << 16];

static uint32_t word(size_t at)
{
	uint32_t x;
	memcpy(&x, block + at, sizeof(x));
	return x;
}

// What each block has: type and length in front, the length at the end, all in words.
static void assert_frame(size_t len, uint32_t type)
{
	assert_int_equal(len % 4, 0);
	assert_int_equal(word(0), type);
	assert_int_equal(word(4), len);
	assert_int_equal(word(len - 4), len);
}

// The bytes of an option, whose length must be n; options begin at `at` and end in front of len.
static const uint8_t *find_option(size_t at, size_t len, uint16_t code, uint16_t n)
{
	const uint8_t *found = NULL;
	for (;;) {
		uint16_t head[2];
		assert_true(at + 4 <= len - 4);
		memcpy(head, block + at, sizeof(head));
		at += 4;
		if (head[0] == 0) {
			assert_int_equal(head[1], 0);
			assert_int_equal(at, len - 4);
			return found;
		}
		if (head[0] == code) {
			assert_int_equal(head[1], n);
			found = block + at;
		}
		at += (head[1] + 3u) & ~3u;
	}
}

static void a_section_says_who_wrote_it_and_what_for(void **state)
{
	size_t len = pcapng_section(block, "shuntd 1", "port=80");
	assert_frame(len, 0x0a0d0d0a);
	assert_int_equal(word(8), 0x1a2b3c4d);
	assert_int_equal(word(12), 1); // 1.0
	assert_int_equal(word(16) & word(20), UINT32_MAX);
	assert_memory_equal(find_option(24, len, 4, 8), "shuntd 1", 8);
	assert_memory_equal(find_option(24, len, 1, 7), "port=80", 7);
	len = pcapng_section(block, "shuntd 1", "");
	assert_null(find_option(24, len, 1, 0));
}

static void an_interface_is_ethernet_with_nanoseconds(void **state)
{
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
	size_t len =
		pcapng_interface(block, &(struct pcapng_interface){"port0", "net_tap0", mac, 128});
	assert_frame(len, 1);
	assert_int_equal(word(8), 1);
	assert_int_equal(word(12), 128);
	assert_memory_equal(find_option(16, len, 2, 5), "port0", 5);
	assert_memory_equal(find_option(16, len, 3, 8), "net_tap0", 8);
	assert_memory_equal(find_option(16, len, 6, 6), mac, 6);
	assert_int_equal(find_option(16, len, 9, 1)[0], 9);
}

static void a_packet_has_its_bytes_time_direction_queue_drops_and_comment(void **state)
{
	for (uint32_t n = 0; n < 9; n++) {
		const struct pcapng_packet p = {.interface = 1,
			.queue = 3,
			.direction = PCAPNG_OUT,
			.at_ns = UINT64_C(0x0102030405060708),
			.bytes = (const uint8_t *)"123456789",
			.kept = n,
			.len = 1500,
			.n_lost = n,
			.comment = n ? "dropped: net.x" : ""};
		size_t len = pcapng_packet(block, &p), options = 28 + ((n + 3) & ~3u);
		assert_frame(len, 6);
		assert_true(pcapng_is_packet(block));
		assert_true(len <= n + PCAPNG_PACKET_MORE);
		assert_int_equal(word(8), 1);
		assert_int_equal(word(12), 0x01020304);
		assert_int_equal(word(16), 0x05060708);
		assert_int_equal(word(20), n);
		assert_int_equal(word(24), 1500);
		assert_memory_equal(block + 28, "123456789", n);
		assert_int_equal(find_option(options, len, 2, 4)[0], 2);
		assert_int_equal(find_option(options, len, 6, 4)[0], 3);
		const uint8_t *lost = find_option(options, len, 4, 8);
		const uint8_t *comment = find_option(options, len, 1, 14);
		assert_true(n ? lost[0] == n : !lost);
		assert_true(n ? memcmp(comment, "dropped: net.x", 14) == 0 : !comment);
	}
}

static void statistics_count_frames_and_drops(void **state)
{
	const struct pcapng_statistics s = {.interface = 2,
		.start_ns = 5,
		.end_ns = UINT64_C(7) << 32,
		.n_received = 300,
		.n_dropped = 4};
	size_t len = pcapng_statistics(block, &s);
	assert_frame(len, 5);
	assert_false(pcapng_is_packet(block));
	assert_int_equal(word(8), 2);
	assert_int_equal(word(12), 7);
	assert_int_equal(word(16), 0);
	assert_int_equal(find_option(20, len, 2, 8)[4], 5); // the upper word first
	assert_int_equal(find_option(20, len, 3, 8)[0], 7);
	assert_int_equal(find_option(20, len, 4, 8)[0], 300 & 0xff);
	assert_int_equal(find_option(20, len, 5, 8)[0], 4);
}

// OPS-199
static void secrets_are_a_key_log_of_tls(void **state)
{
	static const char lines[] = "CLIENT_RANDOM 00 11\n";
	size_t n = strlen(lines), len = pcapng_secrets(block, (const uint8_t *)lines, n);
	assert_frame(len, 10);
	assert_int_equal(word(8), 0x544c534b);
	assert_int_equal(word(12), n);
	assert_memory_equal(block + 16, lines, n);
	assert_true(len <= n + PCAPNG_SECRETS_MORE);
	assert_null(find_option(16 + ((n + 3) & ~(size_t)3), len, 1, 0));
	assert_false(pcapng_is_packet(block));
}

static void a_long_text_is_cut(void **state)
{
	static const uint8_t mac[6];
	char text[2000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	size_t len = pcapng_section(block, text, text);
	assert_true(len <= PCAPNG_BLOCK_MAX);
	assert_non_null(find_option(24, len, 4, PCAPNG_TEXT_MAX));
	len = pcapng_interface(block, &(struct pcapng_interface){text, text, mac, 1});
	assert_true(len <= PCAPNG_BLOCK_MAX);
	const struct pcapng_packet p = {.comment = text, .n_lost = 1};
	assert_true(pcapng_packet(block, &p) <= PCAPNG_PACKET_MORE);
}

RUN_SUITE("ctrl/capture/pcapng", cmocka_unit_test(a_section_says_who_wrote_it_and_what_for),
	cmocka_unit_test(an_interface_is_ethernet_with_nanoseconds),
	cmocka_unit_test(a_packet_has_its_bytes_time_direction_queue_drops_and_comment),
	cmocka_unit_test(statistics_count_frames_and_drops),
	cmocka_unit_test(secrets_are_a_key_log_of_tls), cmocka_unit_test(a_long_text_is_cut))
