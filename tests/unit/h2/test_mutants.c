// SPDX-License-Identifier: Apache-2.0
// The fuzz target's body on valid traffic with bytes changed, dropped and repeated, in builds
// without a fuzzer. Argument: a seed.
#include "tests/unit/h2/h2_peer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t dice;

static uint64_t roll(uint64_t n)
{
	dice = dice * 6364136223846793005u + 1442695040888963407u;
	return (dice >> 33) % n;
}

static void some_frame(struct raw *raw, bool server)
{
	static const char *const trailers[] = {"t", "u", NULL};
	uint32_t id = 1 + 2 * (uint32_t)roll(12);
	uint8_t payload[300] = {(uint8_t)roll(20)};
	switch (roll(12)) {
	case 0:
	case 1:
	case 2:
		raw_headers(raw, id, roll(2), server ? get_request : ok_response);
		break;
	case 3:
		raw_headers(raw, id, true, trailers);
		break;
	case 4:
	case 5:
		raw_frame(raw, H2_DATA, (uint8_t)(roll(2) * H2_FLAG_PADDED + roll(2)), id, payload,
			20 + roll(280));
		break;
	case 6:
		raw_u32_frame(raw, H2_RST_STREAM, id, (uint32_t)roll(14));
		break;
	case 7:
		raw_u32_frame(raw, H2_WINDOW_UPDATE, roll(2) ? id : 0, (uint32_t)roll(100000));
		break;
	case 8:
		raw_frame(raw, H2_SETTINGS, (uint8_t)roll(2), 0, NULL, 0);
		break;
	case 9: {
		uint8_t setting[6] = {0, (uint8_t)roll(9), 0, 0, (uint8_t)roll(256)};
		raw_frame(raw, H2_SETTINGS, 0, 0, setting, 6);
		break;
	}
	case 10:
		raw_frame(raw, H2_PING, (uint8_t)roll(2), 0, payload, 8);
		break;
	default:
		raw_frame(raw, (uint8_t)roll(12), (uint8_t)roll(256), id, payload, roll(30));
		break;
	}
}

static size_t build(uint8_t *input, struct raw *raw)
{
	size_t n = 0;
	raw->len = 0;
	input[n++] = (uint8_t)roll(2);
	input[n++] = (uint8_t)roll(256);
	for (uint64_t i = 1 + roll(40); i > 0; i--)
		some_frame(raw, !(input[0] & 1));
	for (uint64_t i = roll(4); i > 0; i--)
		raw->data[roll(raw->len)] = (uint8_t)roll(256);
	for (size_t at = 0, len; at < raw->len; at += len) {
		len = 1 + roll(255);
		if (len > raw->len - at)
			len = raw->len - at;
		input[n++] = (uint8_t)len;
		memcpy(input + n, raw->data + at, len);
		n += len;
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct raw raw;
	static uint8_t input[65536];
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	printf("seed %llu\n", (unsigned long long)seed);
	dice = seed;
	for (int i = 0; i < 20000; i++)
		LLVMFuzzerTestOneInput(input, build(input, &raw));
	return 0;
}
