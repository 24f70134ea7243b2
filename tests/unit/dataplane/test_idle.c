// SPDX-License-Identifier: Apache-2.0
// The sleep of an idle worker, on pipes in place of devices. Real time: bounds are wide.
#include "dataplane/handover.h"
#include "dataplane/idle.h"
#include "dataplane/port.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/slot.h"
#include "tests/support/check.h"

#include <time.h>
#include <unistd.h>

#define MS NS_PER_MS

struct port_queue {
	int fd;
	uint32_t n_unsent;
};

int port_queue_wait_fd(const struct port_queue *q)
{
	return q->fd;
}

uint32_t port_queue_unsent(const struct port_queue *q)
{
	return q->n_unsent;
}

struct bed {
	int pipe[2];
	struct port_queue queue;
	struct port_queue *queues[1];
	struct twheel *wheel;
	struct handover *handover;
	struct idle idle;
};

static uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 * MS + (uint64_t)ts.tv_nsec;
}

static int setup(void **state)
{
	static struct bed bed;
	if (pipe(bed.pipe) < 0)
		return -1;
	bed.queue = (struct port_queue){.fd = bed.pipe[0]};
	bed.queues[0] = &bed.queue;
	bed.wheel = twheel_new(clock_ns());
	lb_slot_reader_start();
	bed.handover = handover_new(2, true);
	if (!bed.handover)
		return -1;
	idle_init(&bed.idle, bed.queues, 1, handover_end(bed.handover, 0), -1);
	*state = &bed;
	return 0;
}

static void ignore(void *frame)
{
	(void)frame; // the test's own
}

static int teardown(void **state)
{
	struct bed *b = *state;
	lb_slot_reader_stop();
	twheel_free(b->wheel);
	handover_free(b->handover, ignore);
	close(b->pipe[0]);
	if (b->pipe[1] >= 0)
		close(b->pipe[1]);
	return 0;
}

// Empty turns until the first sleep is over; returns how long that one took.
static uint64_t first_sleep(struct bed *b)
{
	for (;;) {
		uint64_t before = clock_ns();
		idle_step(&b->idle, false, false, before, b->wheel);
		if (b->idle.asleep_ns)
			return clock_ns() - before;
	}
}

static void busy_turn_never_sleeps(void **state)
{
	struct bed *b = *state;
	for (int i = 0; i < 1000; i++)
		idle_step(&b->idle, true, false, clock_ns(), b->wheel);
	assert_int_equal(b->idle.asleep_ns, 0);
}

static void empty_turns_spin_before_the_first_sleep(void **state)
{
	struct bed *b = *state;
	idle_step(&b->idle, false, false, 1000 * MS, b->wheel);
	idle_step(&b->idle, false, false, 1000 * MS + b->idle.spin_ns - 1, b->wheel);
	assert_int_equal(b->idle.asleep_ns, 0);
}

static void sleep_ends_for_commands_and_snapshots(void **state)
{
	struct bed *b = *state;
	uint64_t shortest = UINT64_MAX; // another program may have the core when it is over
	for (int i = 0; i < 20; i++) {
		b->idle.asleep_ns = 0;
		uint64_t ns = first_sleep(b);
		assert_true(ns >= 3 * MS);
		shortest = ns < shortest ? ns : shortest;
	}
	assert_true(shortest < 100 * MS);
}

static void frame_ends_the_sleep(void **state)
{
	struct bed *b = *state;
	assert_int_equal(write(b->pipe[1], "x", 1), 1);
	unsigned n_at_once = 0; // most of them: another program may have the core meanwhile
	for (int i = 0; i < 100; i++) {
		uint64_t now = clock_ns();
		b->idle.since_ns = now - 1000 * MS;
		idle_step(&b->idle, false, false, now, b->wheel);
		n_at_once += clock_ns() - now < 3 * MS;
	}
	assert_true(n_at_once > 50);
}

static void a_device_that_is_another_one_wakes_by_its_own_descriptor(void **state)
{
	struct bed *b = *state;
	b->queue.fd = -1; // gone
	first_sleep(b);
	assert_false(b->idle.all_wake);
	b->idle.asleep_ns = 0;
	b->queue.fd = b->pipe[0]; // back
	frame_ends_the_sleep(state);
	assert_true(b->idle.all_wake);
}

static void nothing(struct twheel_timer *timer)
{
	(void)timer;
}

static void timer_bounds_the_sleep(void **state)
{
	struct bed *b = *state;
	struct twheel_timer timer = {.fire = nothing};
	uint64_t start = twheel_now(b->wheel);
	twheel_arm(b->wheel, &timer, start + 5 * MS);
	b->idle.since_ns = start;
	for (int i = 0; i < 100; i++) // it is due by now: there is no sleep at all
		idle_step(&b->idle, false, false, start + 10 * MS, b->wheel);
	assert_int_equal(b->idle.asleep_ns, 0);
	twheel_cancel(b->wheel, &timer);
}

static void frames_that_a_device_did_not_take_shorten_the_sleep(void **state)
{
	struct bed *b = *state;
	b->queue.n_unsent = 1;
	uint64_t shortest = UINT64_MAX;
	for (int i = 0; i < 20; i++) {
		uint64_t now = clock_ns();
		b->idle.since_ns = now - 1000 * MS;
		idle_step(&b->idle, false, false, now, b->wheel);
		uint64_t ns = clock_ns() - now;
		shortest = ns < shortest ? ns : shortest;
	}
	assert_true(shortest < 3 * MS);
}

static void descriptor_in_error_does_not_keep_us_awake(void **state)
{
	struct bed *b = *state;
	close(b->pipe[1]); // the reading end hangs up
	b->pipe[1] = -1;
	uint64_t start = clock_ns();
	for (int i = 0; i < 20; i++) {
		uint64_t now = clock_ns();
		b->idle.since_ns = now - 1000 * MS;
		idle_step(&b->idle, false, false, now, b->wheel);
	}
	assert_true(clock_ns() - start >= 20 * MS / 5);
}

static void spinning_adapts_to_what_it_brought(void **state)
{
	struct bed *b = *state;
	uint64_t spin = b->idle.spin_ns;
	first_sleep(b);
	idle_step(&b->idle, true, false, b->idle.asleep_ns + 10 * MS, b->wheel);
	assert_true(b->idle.spin_ns < spin); // traffic came long after
	spin = b->idle.spin_ns;
	first_sleep(b);
	idle_step(&b->idle, true, false, b->idle.asleep_ns + 1000, b->wheel);
	assert_true(b->idle.spin_ns > spin); // it came right after
}

static void device_without_descriptor_is_looked_at_ever_less_often(void **state)
{
	struct bed *b = *state;
	b->queue.fd = -1;
	idle_init(&b->idle, b->queues, 1, handover_end(b->handover, 0), -1);
	uint64_t first = b->idle.sleep_ns;
	first_sleep(b);
	assert_true(b->idle.sleep_ns > first);
	for (int i = 0; i < 10; i++)
		idle_step(&b->idle, false, false, clock_ns(), b->wheel);
	uint64_t longest = b->idle.sleep_ns;
	idle_step(&b->idle, false, false, clock_ns(), b->wheel);
	assert_int_equal(b->idle.sleep_ns, longest); // up to a bound
	assert_true(longest < MS);
	idle_step(&b->idle, true, false, clock_ns(), b->wheel);
	assert_int_equal(b->idle.sleep_ns, first);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("dataplane/idle", CASE(busy_turn_never_sleeps),
	CASE(empty_turns_spin_before_the_first_sleep), CASE(sleep_ends_for_commands_and_snapshots),
	CASE(frame_ends_the_sleep), CASE(a_device_that_is_another_one_wakes_by_its_own_descriptor),
	CASE(timer_bounds_the_sleep), CASE(frames_that_a_device_did_not_take_shorten_the_sleep),
	CASE(descriptor_in_error_does_not_keep_us_awake), CASE(spinning_adapts_to_what_it_brought),
	CASE(device_without_descriptor_is_looked_at_ever_less_often))
