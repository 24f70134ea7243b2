// SPDX-License-Identifier: Apache-2.0
// Relays between two processes, both of which are this one: rings, what they hold, and another
// process that writes anything at all into them.
#include "dataplane/relay.h"
#include "tests/support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FRAME 60
static const struct relay_shape small = {4, 128};
static _Alignas(64) uint8_t memory[128 + 4 * 128];

static struct relay_cursor w, r;

static int begin(void **state)
{
	assert_int_equal(relay_ring_size(&small), sizeof(memory));
	memset(memory, 0, sizeof(memory));
	relay_cursor_init(&w, memory, &small);
	relay_cursor_init(&r, memory, &small);
	return 0;
}

static bool put(uint8_t mark)
{
	uint8_t frame[FRAME];
	memset(frame, mark, sizeof(frame));
	return relay_cursor_put(&w, RELAY_RECEIVED, frame, sizeof(frame));
}

// The mark of a frame; 0 = none, -1 = malformed.
static int get(void)
{
	uint8_t frame[256];
	enum relay_way way = 0;
	int len = relay_cursor_take(&r, &way, frame, sizeof(frame));
	if (len <= 0)
		return len == 0 ? 0 : -1;
	assert_int_equal(len, FRAME);
	assert_int_equal(way, RELAY_RECEIVED);
	assert_int_equal(frame[0], frame[FRAME - 1]);
	return frame[0];
}

static void frames_come_in_order_and_no_more_than_fit(void **state)
{
	for (int round = 0; round < 10; round++) {
		for (uint8_t i = 1; i <= 4; i++)
			assert_true(put(i));
		assert_false(put(5));
		for (int i = 1; i <= 4; i++)
			assert_int_equal(get(), i);
		assert_int_equal(get(), 0);
	}
	uint8_t longer[128 - RELAY_SLOT_HEAD + 1] = {0};
	assert_false(relay_cursor_put(&w, RELAY_RECEIVED, longer, sizeof(longer)));
	assert_true(relay_cursor_put(&w, RELAY_RECEIVED, longer, sizeof(longer) - 1));
}

static void fl_108_shapes_that_cannot_be_have_no_size(void **state)
{
	static const struct relay_shape bad[] = {{0, 128}, {1, 128}, {3, 128}, {8192, 128},
		{UINT32_MAX, 128}, {4, 0}, {4, 64}, {4, 100}, {4, 32768}, {4, UINT32_MAX}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(relay_ring_size(&bad[i]), 0);
}

// Both numbers are the first of their cache lines.
#define WRITTEN 0
#define READ 64
#define SLOTS 128

static void store(size_t at, uint32_t n)
{
	memcpy(memory + at, &n, sizeof(n));
}

static void fl_108_numbers_of_the_other_end_that_cannot_be_end_the_ring(void **state)
{
	static const uint32_t bad[] = {5, 100, 0x7fffffff, 0x80000000};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		begin(state);
		store(WRITTEN, bad[i]);
		assert_int_equal(get(), 0);
		assert_true(r.broken);
		store(WRITTEN, 1); // for good
		assert_int_equal(get(), 0);
		begin(state);
		store(READ, bad[i]);
		assert_false(put(1));
		assert_true(w.broken);
		assert_int_equal(relay_cursor_room(&w), 0);
	}
}

static void fl_108_slots_that_are_malformed_are_passed(void **state)
{
	static const uint32_t lens[] = {0, 13, 121, 128, UINT32_MAX};
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		begin(state);
		assert_true(put(1) && put(2));
		store(SLOTS, lens[i]);
		assert_int_equal(get(), -1);
		assert_int_equal(get(), 2);
	}
	begin(state);
	assert_true(put(1) && put(2) && put(3));
	store(SLOTS + 4, 0);
	store(SLOTS + 128 + 4, 4);
	assert_int_equal(get(), -1);
	assert_int_equal(get(), -1);
	uint8_t little[FRAME - 1];
	enum relay_way way;
	assert_int_equal(relay_cursor_take(&r, &way, little, sizeof(little)), -EPROTO);
}

// Whatever it writes: no frame is longer than its slot, and nothing beyond the ring is touched.
static void fl_108_no_bytes_of_the_other_end_lead_out_of_the_ring(void **state)
{
	srand(7);
	for (int i = 0; i < 20000; i++) {
		uint8_t frame[128];
		enum relay_way way;
		if (i % 64 == 0)
			begin(state);
		memory[(size_t)rand() % sizeof(memory)] = (uint8_t)rand();
		if (rand() % 4 == 0)
			memory[rand() % 2 ? WRITTEN : READ] = (uint8_t)(rand() % 6);
		(void)put(1);
		int len = relay_cursor_take(&r, &way, frame, sizeof(frame) - RELAY_SLOT_HEAD);
		assert_true(len == -EPROTO || (len >= 0 && len <= 120));
	}
}

// Two processes.

static const struct relay_port ports[] = {
	{"0000:03:00.0", {2, 0, 0, 0, 0, 1}, 1500}, {"", {0}, 0}, {"0000:04:00.0", {2}, 9000}};

static struct relays *older, *newer;
static int fd;

static void map_again(struct relay_memory *ret)
{
	struct lb_err err = {""};
	assert_int_equal(relay_memory_map(ret, fd, &err), 0);
}

// The newer one has the first port as its second, and not the last.
static void *lent; // where the older one has it

static void connect(uint32_t n_older, uint32_t n_newer)
{
	struct relay_memory a, b;
	struct lb_err err = {""};
	int of_older[NET_MAX_PORTS] = {0, -1, 2, -1, -1, -1, -1, -1};
	int of_newer[NET_MAX_PORTS] = {-1, 0, -1, -1, -1, -1, -1, -1};
	assert_int_equal(relay_memory_make(&a, ports, 3, n_older, n_newer, &err), 0);
	fd = dup(a.fd);
	map_again(&b);
	assert_int_equal(b.n_ports, 3);
	assert_string_equal(b.ports[2].name, "0000:04:00.0");
	assert_int_equal(b.ports[2].mtu, 9000);
	older = relays_new(n_older);
	newer = relays_new(n_newer);
	lent = a.map;
	assert_int_equal(relays_set(older, RELAY_TO_NEWER, &a, of_older), 0);
	assert_int_equal(relays_set(newer, RELAY_TO_OLDER, &b, of_newer), 0);
	for (uint32_t i = 0; i < n_older; i++)
		relay_end_follow(relays_end(older, i));
	for (uint32_t i = 0; i < n_newer; i++)
		relay_end_follow(relays_end(newer, i));
}

static void disconnect(void)
{
	relays_free(older);
	relays_free(newer);
	close(fd);
}

static bool give(struct relay_end *e, enum relay_side side, uint32_t port, enum relay_way way)
{
	uint8_t frame[FRAME] = {7};
	return relay_end_give(e, side, port, way, false, frame, sizeof(frame));
}

static uint32_t take(struct relay_end *e, enum relay_side side, uint32_t port, bool to_send)
{
	uint8_t frame[2048];
	enum relay_way way;
	return relay_end_take(e, side, port, to_send, frame, sizeof(frame), &way);
}

static uint64_t count(const struct relay_end *e, const char *name)
{
	struct counter_set set = relay_end_counters(e);
	for (uint32_t i = 0; i < set.n; i++)
		if (strcmp(set.names[i], name) == 0)
			return counter_read(&set.values[i]);
	fail_msg("no counter %s", name);
	return 0;
}

static void a_port_has_another_number_at_the_other_process(void **state)
{
	connect(1, 1);
	struct relay_end *o = relays_end(older, 0), *n = relays_end(newer, 0);
	assert_true(relay_end_has(o, RELAY_TO_NEWER, 0) && relay_end_has(n, RELAY_TO_OLDER, 1));
	assert_false(relay_end_has(o, RELAY_TO_NEWER, 1) || relay_end_has(n, RELAY_TO_OLDER, 0));
	assert_false(relay_end_has(o, RELAY_TO_OLDER, 0) || relay_end_has(o, RELAY_NONE, 0));
	assert_false(relay_end_has(NULL, RELAY_TO_NEWER, 0));
	assert_true(give(o, RELAY_TO_NEWER, 0, RELAY_RECEIVED));
	assert_int_equal(take(n, RELAY_TO_OLDER, 1, false), FRAME);
	assert_true(give(n, RELAY_TO_OLDER, 1, RELAY_TO_SEND));
	assert_int_equal(take(o, RELAY_TO_NEWER, 0, true), FRAME);
	assert_int_equal(take(o, RELAY_TO_NEWER, 2, true), 0);
	disconnect();
}

static void fl_104_all_workers_frames_are_taken_whatever_their_numbers(void **state)
{
	static const uint32_t numbers[][2] = {{1, 3}, {3, 1}, {2, 5}, {5, 2}, {4, 4}};
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint32_t n_older = numbers[i][0], n_newer = numbers[i][1], n = 0;
		connect(n_older, n_newer);
		for (uint32_t k = 0; k < n_older; k++)
			assert_true(give(relays_end(older, k), RELAY_TO_NEWER, 0, RELAY_RECEIVED));
		for (uint32_t k = 0; k < n_newer; k++)
			while (take(relays_end(newer, k), RELAY_TO_OLDER, 1, false))
				n++;
		assert_int_equal(n, n_older);
		disconnect();
	}
}

static void fl_103_what_was_received_is_not_sent_when_the_device_has_changed_hands(void **state)
{
	connect(1, 1);
	struct relay_end *o = relays_end(older, 0), *n = relays_end(newer, 0);
	assert_true(give(o, RELAY_TO_NEWER, 0, RELAY_RECEIVED)); // by the older one's device
	assert_true(give(o, RELAY_TO_NEWER, 0, RELAY_TO_SEND)); // by now the newer one's
	assert_int_equal(take(n, RELAY_TO_OLDER, 1, true), FRAME);
	assert_int_equal(count(n, "stale"), 1);
	assert_int_equal(count(n, "taken"), 1);
	disconnect();
}

static void fl_125_that_the_newer_process_has_the_device_shows_by_what_it_received(void **state)
{
	connect(1, 2);
	struct relay_end *o = relays_end(older, 0), *n = relays_end(newer, 1);
	assert_false(relay_end_has_received(o, RELAY_TO_NEWER, 0));
	assert_true(give(n, RELAY_TO_OLDER, 1, RELAY_TO_SEND));
	assert_true(give(n, RELAY_TO_OLDER, 1, RELAY_RECEIVED));
	assert_false(relay_end_has_received(o, RELAY_TO_NEWER, 0)); // one to send is before it
	assert_int_equal(take(o, RELAY_TO_NEWER, 0, true), FRAME);
	assert_true(relay_end_has_received(o, RELAY_TO_NEWER, 0));
	assert_true(relay_end_has_received(o, RELAY_TO_NEWER, 0)); // it stays
	assert_int_equal(take(o, RELAY_TO_NEWER, 0, false), FRAME);
	assert_false(relay_end_has_received(o, RELAY_TO_NEWER, 0));
	assert_int_equal(count(o, "stale"), 0);
	disconnect();
}

static void fl_104_what_finds_no_room_is_counted_and_copies_leave_half(void **state)
{
	connect(1, 1);
	struct relay_end *o = relays_end(older, 0), *n = relays_end(newer, 0);
	uint8_t frame[FRAME] = {0};
	uint32_t copies = 0, all;
	while (relay_end_give(o, RELAY_TO_NEWER, 0, RELAY_RECEIVED, true, frame, FRAME))
		copies++;
	for (all = copies; give(o, RELAY_TO_NEWER, 0, RELAY_RECEIVED);)
		all++;
	assert_true(copies > 0 && all == 2 * copies);
	assert_int_equal(count(o, "full"), 2);
	assert_int_equal(count(o, "copies_given"), copies);
	while (take(n, RELAY_TO_OLDER, 1, false))
		all--;
	assert_int_equal(all, 0);
	disconnect();
}

static bool is_mapped(void *at)
{
	return msync(at, 4096, MS_ASYNC) == 0;
}

static void the_memory_goes_when_each_worker_has_left_it(void **state)
{
	connect(2, 1);
	relays_drop(older, RELAY_TO_NEWER);
	assert_false(relays_has(older, RELAY_TO_NEWER));
	relay_end_follow(relays_end(older, 0));
	relays_tidy(older);
	assert_false(relay_end_has(relays_end(older, 0), RELAY_TO_NEWER, 0));
	// The other one may still write, as the sanitizers would tell.
	assert_true(give(relays_end(older, 1), RELAY_TO_NEWER, 0, RELAY_RECEIVED));
	assert_true(is_mapped(lent));
	relay_end_follow(relays_end(older, 1));
	relays_tidy(older);
	assert_false(is_mapped(lent));
	assert_int_equal(take(relays_end(newer, 0), RELAY_TO_OLDER, 1, false), FRAME);
	disconnect();
}

static void expect_refused(int file)
{
	struct relay_memory m;
	struct lb_err err = {""};
	assert_int_equal(relay_memory_map(&m, file, &err), -EINVAL);
	assert_true(err.text[0]);
	relay_memory_fini(&m);
}

// One that may shrink would take the memory away under the workers.
static void fl_108_memory_of_another_format_or_that_may_shrink_is_refused(void **state)
{
	struct relay_memory m;
	struct lb_err err = {""};
	assert_int_equal(relay_memory_make(&m, ports, 3, 1, 1, &err), 0);
	assert_true(ftruncate(m.fd, 4096) != 0);
	int other = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(other, (off_t)m.size), 0);
	assert_int_equal(pwrite(other, m.map, 4096, 0), 4096);
	expect_refused(other); // no seal
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	struct relay_memory same;
	assert_int_equal(relay_memory_map(&same, other, &err), 0);
	relay_memory_fini(&same);
	for (size_t at = 0; at < 32; at += 4) { // magic, format, shape, numbers
		static const uint32_t huge = 0xfffffff0;
		assert_int_equal(pwrite(other, &huge, 4, (off_t)at), 4);
		expect_refused(other);
		assert_int_equal(pwrite(other, m.map + at, 4, (off_t)at), 4);
	}
	uint8_t endless[RELAY_MAX_NAME];
	memset(endless, 'x', sizeof(endless));
	assert_int_equal(pwrite(other, endless, sizeof(endless), 32), sizeof(endless));
	expect_refused(other);
	close(other);
	other = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING); // shorter than it says
	assert_int_equal(pwrite(other, m.map, 4096, 0), 4096);
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	expect_refused(other);
	close(other);
	expect_refused(-1);
	relay_memory_fini(&m);
}

RUN_SUITE("dataplane/relay",
	cmocka_unit_test_setup(frames_come_in_order_and_no_more_than_fit, begin),
	cmocka_unit_test(fl_108_shapes_that_cannot_be_have_no_size),
	cmocka_unit_test(fl_108_numbers_of_the_other_end_that_cannot_be_end_the_ring),
	cmocka_unit_test(fl_108_slots_that_are_malformed_are_passed),
	cmocka_unit_test(fl_108_no_bytes_of_the_other_end_lead_out_of_the_ring),
	cmocka_unit_test(a_port_has_another_number_at_the_other_process),
	cmocka_unit_test(fl_104_all_workers_frames_are_taken_whatever_their_numbers),
	cmocka_unit_test(fl_103_what_was_received_is_not_sent_when_the_device_has_changed_hands),
	cmocka_unit_test(fl_104_what_finds_no_room_is_counted_and_copies_leave_half),
	cmocka_unit_test(fl_125_that_the_newer_process_has_the_device_shows_by_what_it_received),
	cmocka_unit_test(the_memory_goes_when_each_worker_has_left_it),
	cmocka_unit_test(fl_108_memory_of_another_format_or_that_may_shrink_is_refused))
