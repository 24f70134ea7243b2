// SPDX-License-Identifier: Apache-2.0
// The fuzz target's body on valid traffic with bytes changed, dropped and repeated, in builds
// without a fuzzer; and whether such traffic means the same however it is cut, since frames that
// come whole take a way of their own. Argument: a seed.
#include "tests/unit/h2/h2_peer.h"

#include <stdlib.h>
#include <string.h>

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
	input[n++] = (uint8_t)(roll(128) | (roll(32) ? 0 : 128));
	if (input[1] & 128) // in the midst of a large header block
		raw_frame(raw, H2_CONTINUATION, H2_FLAG_END_HEADERS, 1, "xxx\x82", 1 + roll(4));
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

// Some streams are reset inside their messages: more of their frames are on the way.
static void reset_some(struct peer *p, struct h2_stream *s, const struct h2_message *m)
{
	if (h2_stream_id(s) % 8 == 7)
		h2_stream_reset(s, H2_CANCEL);
}

// A connection that gets `raw` in pieces of `cut` bytes. Returns the frames that it answers with.
static char *hear(struct peer *p, enum h2_role role, const struct raw *raw, size_t cut)
{
	static struct raw preface;
	const struct h2_message m = {.kind = H2_REQUEST,
		.method = STR("POST"),
		.scheme = STR("http"),
		.authority = STR("a"),
		.path = STR("/")};
	p->n_streams = 0;
	peer_clear_log(p);
	assert_non_null(peer_connect(p, role));
	for (int i = 0; i < 10 && role == H2_CLIENT; i++)
		peer_add_stream(p, h2_stream_open(p->conn, &m, NULL));
	preface.len = 0;
	raw_preface(&preface, role == H2_SERVER ? H2_CLIENT : H2_SERVER);
	peer_feed(p, &preface);
	for (size_t at = 0, len; at < raw->len; at += len) {
		len = raw->len - at < cut ? raw->len - at : cut;
		uint8_t *copy = malloc(len);
		memcpy(copy, raw->data + at, len);
		assert_int_equal(h2_conn_feed(p->conn, copy, len), len);
		free(copy);
	}
	char *frames = strdup(peer_frames(p));
	peer_disconnect(p, H2_CANCEL);
	return frames;
}

static void compare(const struct peer *a, const struct peer *b)
{
	struct counter_set ours = h2_context_counters(a->ctx), theirs = h2_context_counters(b->ctx);
	assert_string_equal(a->log, b->log);
	assert_int_equal(a->n_streams, b->n_streams);
	for (size_t i = 0; i < a->n_streams; i++) {
		const struct peer_stream *s = &a->streams[i], *t = &b->streams[i];
		assert_int_equal(s->received, t->received);
		if (s->received)
			assert_memory_equal(s->body, t->body, s->received);
	}
	for (uint32_t i = 0; i < ours.n; i++)
		if (counter_read(&ours.values[i]) != counter_read(&theirs.values[i]))
			fail_msg("counter %s", ours.names[i]);
}

// Windows are small enough to be exceeded once our SETTINGS are acknowledged.
static void traffic_means_the_same_however_it_is_cut(void **state)
{
	static struct peer whole, pieces;
	static struct raw raw;
	static uint8_t input[65536];
	struct pool chunks;
	struct h2_conf conf = peer_conf();
	conf.stream_window = 400;
	assert_int_equal(buf_pool_init(&chunks, 1024), 0);
	peer_init(&whole, &chunks, &conf);
	peer_init(&pieces, &chunks, &conf);
	whole.log_data = pieces.log_data = false;
	whole.on_message = pieces.on_message = reset_some;
	for (int i = 0; i < 5000; i++) {
		build(input, &raw);
		enum h2_role role = input[0] & 1 ? H2_CLIENT : H2_SERVER;
		char *ours = hear(&whole, role, &raw, SIZE_MAX);
		char *theirs = hear(&pieces, role, &raw, 1 + roll(8));
		assert_string_equal(ours, theirs);
		compare(&whole, &pieces);
		free(ours);
		free(theirs);
	}
	assert_true(peer_counter(&whole, "frames_in_data") > 1000);
	peer_fini(&whole);
	peer_fini(&pieces);
	assert_int_equal(chunks.n_used, 0);
	pool_fini(&chunks);
}

static void mutants_harm_nothing(void **state)
{
	static struct raw raw;
	static uint8_t input[65536];
	for (int i = 0; i < 20000; i++)
		LLVMFuzzerTestOneInput(input, build(input, &raw));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(mutants_harm_nothing),
		cmocka_unit_test(traffic_means_the_same_however_it_is_cut)};
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
	printf("seed %llu\n", (unsigned long long)seed);
	dice = seed;
	return cmocka_run_group_tests_name("h2/mutants", tests, NULL, NULL);
}
