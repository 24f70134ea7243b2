// SPDX-License-Identifier: Apache-2.0
// Devices that one process has alone, as they go from one to another: who has them at each step,
// and what becomes of them when one of both ends. One process is a takeover with fakes of all that
// is done to it, the other one is played by hand.
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	struct event_base *base;
	char dir[32], path[64];
	uint64_t now_ns;
	struct takeover *takeover;
	enum lb_company company;
	bool could_serve, steps;
	// Devices.
	bool is_lent, must_stay, is_passed_on, is_closed, has_older, cannot_open;
	uint32_t n_workers; // of the newer one
	int n_taken, n_taken_back, n_follows, n_free_to_go;
	struct lb_cables cables, followed;
	bool follows; // it was told to, and not to choose by itself since
	char given_up[128];
} w;

static const char *not_busy(void *ctx)
{
	return NULL;
}

static void set_company(void *ctx, enum lb_company company)
{
	w.company = company;
}

static bool has_company(void *ctx, enum lb_company company)
{
	return w.company == company && !w.steps;
}

static int share(void *ctx, bool opens, struct lb_err *err)
{
	return 0;
}

static uint32_t no_listeners(void *ctx, int ret[TAKEOVER_MAX_LISTENERS])
{
	return 0;
}

static int no_lore(void *ctx)
{
	assert_true(!w.is_lent || w.is_closed); // the newer one is told of the place next
	return -1;
}

static void inherit(void *ctx, int fd)
{
}

static int open_or_take(void *ctx, struct lb_err *err)
{
	return 0;
}

static void nothing(void *ctx)
{
}

static void give_up(void *ctx, const char *why)
{
	snprintf(w.given_up, sizeof(w.given_up), "%s", why);
}

static void free_to_go(void *ctx)
{
	w.n_free_to_go++;
}

static void follow_relays(void *ctx)
{
	w.n_follows++;
}

static const struct takeover_ops ops = {not_busy, set_company, has_company, share, no_listeners,
	inherit, no_lore, inherit, open_or_take, open_or_take, nothing, give_up, free_to_go,
	follow_relays};

static int lend(void *ctx, uint32_t n_workers, int *ret_fd, struct lb_err *err)
{
	w.n_workers = n_workers;
	if (!n_workers)
		return lb_err_set(err, "cannot have them");
	w.is_lent = true;
	*ret_fd = memfd_create("test", MFD_CLOEXEC);
	return 0;
}

static bool are_lent(const void *ctx)
{
	return w.is_lent;
}

static int may_leave(const void *ctx, struct lb_err *err)
{
	assert_true(w.is_lent);
	return w.must_stay ? lb_err_set(err, "a card is gone") : 0;
}

static void pass_on(void *ctx)
{
	w.is_passed_on = true;
}

static bool are_passed_on(void *ctx, uint64_t now_ns)
{
	assert_true(w.is_passed_on);
	return w.is_closed;
}

static int take(void *ctx, struct lb_err *err)
{
	w.n_taken++;
	return w.cannot_open ? lb_err_set(err, "another process drives it") : 0;
}

static void drop(void *ctx, bool newer, uint64_t now_ns)
{
	w.n_taken_back += newer && w.is_passed_on;
	w.is_lent &= !newer;
	w.is_passed_on &= !newer;
	w.has_older &= newer;
}

static bool have_older(const void *ctx)
{
	return w.has_older;
}

static void cables(const void *ctx, struct lb_cables *ret)
{
	*ret = w.cables;
}

static void follow_cables(void *ctx, const struct lb_cables *to)
{
	w.follows = to != NULL;
	if (to)
		w.followed = *to;
}

static const struct takeover_device_ops devices = {lend, are_lent, may_leave, pass_on,
	are_passed_on, take, drop, have_older, cables, follow_cables, nothing};

static void pass(uint64_t ns)
{
	for (uint64_t end = w.now_ns + ns; w.now_ns < end; w.now_ns += 2 * NS_PER_MS) {
		event_base_loop(w.base, EVLOOP_NONBLOCK);
		takeover_tick(w.takeover, w.now_ns, w.could_serve);
	}
}

static void begin(struct takeover_seat seat)
{
	struct lb_err err = {""};
	struct takeover_conf conf = {.path = w.path,
		.version = "1.0",
		.seat = seat,
		.base = w.base,
		.ops = &ops,
		.devices = {&devices, NULL},
		.now_ns = w.now_ns};
	w.company = takeover_first_company(&seat);
	w.takeover = takeover_new(&conf, &err);
	assert_non_null(w.takeover);
}

static int setup(void **state)
{
	memset(&w, 0, sizeof(w));
	w.now_ns = NS_PER_SECOND;
	w.base = event_base_new();
	strcpy(w.dir, "/tmp/takeover-test-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.path, sizeof(w.path), "%s/sock", w.dir);
	return 0;
}

static int teardown(void **state)
{
	takeover_free(w.takeover);
	event_base_free(w.base);
	return rmdir(w.dir);
}

static void say(int fd, struct takeover_message m)
{
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	pass(10 * NS_PER_MS);
}

static bool hears(int fd, enum takeover_kind kind)
{
	struct takeover_message m;
	return takeover_peer_hear(fd, 1, &m) == 0 && m.kind == kind;
}

// The newer one, by hand, up to where it is welcome.
static int come(void)
{
	struct lb_err err = {""};
	struct takeover_message m;
	int given, fd = takeover_peer_connect(w.path, 1, &err);
	assert_true(fd >= 0);
	say(fd, (struct takeover_message){.kind = TAKEOVER_HELLO, .n_workers = 3});
	assert_int_equal(w.n_workers, 3);
	assert_int_equal(takeover_peer_hear_with(fd, 1, &m, &given), 0);
	assert_int_equal(m.kind, TAKEOVER_WELCOME);
	assert_true(given >= 0);
	close(given);
	return fd;
}

static void fl_101_a_card_is_closed_before_the_newer_process_has_the_place(void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	assert_true(w.is_lent && w.n_follows == 1);
	pass(100 * NS_PER_SECOND); // until it could serve
	assert_false(w.is_passed_on);
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	assert_true(w.is_passed_on);
	assert_true(takeover_is_in_front(w.takeover));
	struct takeover_message m;
	assert_int_equal(takeover_peer_hear(fd, 1, &m), -EAGAIN);
	w.is_closed = true;
	pass(10 * NS_PER_MS);
	assert_true(hears(fd, TAKEOVER_GIVEN));
	pass(28 * NS_PER_SECOND); // opening takes its time
	say(fd, (struct takeover_message){.kind = TAKEOVER_OPENED});
	assert_true(hears(fd, TAKEOVER_FREE));
	say(fd, (struct takeover_message){.kind = TAKEOVER_SERVING});
	assert_int_equal(w.company, LB_BEHIND);
	assert_int_equal(w.n_taken_back, 0);
	close(fd);
}

static void fl_105_the_card_comes_back_wherever_the_newer_process_ends(void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	for (int step = 0; step < 4; step++) {
		int fd = come();
		w.is_closed = step >= 2;
		if (step >= 1)
			say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
		if (step >= 3)
			say(fd, (struct takeover_message){.kind = TAKEOVER_OPENED});
		w.n_taken_back = 0;
		close(fd);
		pass(10 * NS_PER_MS);
		assert_int_equal(w.n_taken_back, step >= 1);
		assert_false(w.is_lent);
		assert_int_equal(w.company, LB_ALONE);
		assert_string_equal(w.given_up, "");
	}
}

static void fl_105_it_comes_back_from_one_that_takes_too_long(void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	w.is_closed = true;
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	assert_true(hears(fd, TAKEOVER_GIVEN));
	pass(29 * NS_PER_SECOND);
	assert_int_equal(w.n_taken_back, 0);
	pass(2 * NS_PER_SECOND);
	assert_int_equal(w.n_taken_back, 1);
	assert_true(hears(fd, TAKEOVER_REFUSED));
	close(fd);
}

static void expect_refusal(int fd, const char *why)
{
	struct takeover_message m;
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_REFUSED);
	assert_string_equal(m.text, why);
	assert_true(takeover_is_in_front(w.takeover));
	assert_false(w.is_lent || w.is_passed_on);
	close(fd);
	pass(10 * NS_PER_MS);
	assert_int_equal(w.company, LB_ALONE);
}

// The newer one may take minutes until it asks, and closing may take seconds.
static void fl_115_a_device_that_has_to_stay_since_it_was_lent_is_not_closed_and_the_newer_refused(
	void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	w.must_stay = true;
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	assert_int_equal(w.n_taken_back, 0); // nothing was closed
	expect_refusal(fd, "a card is gone");
	w.must_stay = false;
	fd = come();
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	assert_true(w.is_passed_on);
	w.must_stay = true;
	pass(10 * NS_PER_MS);
	assert_int_equal(w.n_taken_back, 1);
	expect_refusal(fd, "a card is gone");
}

static void fl_106_one_whose_frames_went_through_the_newer_process_ends_with_it(void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	w.is_closed = true;
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	say(fd, (struct takeover_message){.kind = TAKEOVER_OPENED});
	say(fd, (struct takeover_message){.kind = TAKEOVER_SERVING});
	close(fd);
	pass(10 * NS_PER_MS);
	assert_string_not_equal(w.given_up, "");
	assert_int_equal(w.n_taken_back, 0);
}

static void fl_109_a_newer_process_of_a_version_without_relays_is_refused(void **state)
{
	struct lb_err err = {""};
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = takeover_peer_connect(w.path, 1, &err);
	say(fd, (struct takeover_message){.kind = TAKEOVER_HELLO});
	assert_true(hears(fd, TAKEOVER_REFUSED));
	assert_int_equal(w.company, LB_ALONE);
	close(fd);
}

// The older one, by hand.
static int follow(void)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	w.has_older = true;
	begin((struct takeover_seat){fds[1], 2, 1, "1.0", true, .relay_fd = 1});
	w.could_serve = true;
	pass(10 * NS_PER_MS);
	assert_true(hears(fds[0], TAKEOVER_TAKE));
	assert_int_equal(w.n_taken, 0);
	return fds[0];
}

static void fl_101_a_card_is_opened_with_the_place_and_what_goes_through_it_is_waited_for(
	void **state)
{
	int fd = follow();
	pass(34 * NS_PER_SECOND); // closing takes its time
	say(fd, (struct takeover_message){.kind = TAKEOVER_GIVEN});
	assert_int_equal(w.n_taken, 1);
	assert_true(hears(fd, TAKEOVER_OPENED));
	say(fd, (struct takeover_message){.kind = TAKEOVER_FREE});
	assert_true(hears(fd, TAKEOVER_SERVING));
	struct takeover_info info;
	takeover_info(w.takeover, &info);
	assert_true(info.gap_ns >= 34 * NS_PER_SECOND); // from when it asked
	assert_true(takeover_must_stay(w.takeover)); // whatever ends it
	close(fd);
	pass(10 * NS_PER_MS);
	assert_false(takeover_must_stay(w.takeover));
	assert_int_equal(w.n_free_to_go, 1);
	assert_int_equal(w.company, LB_ALONE);
}

static void fl_101_of_an_older_process_that_died_the_card_is_taken_at_once(void **state)
{
	int fd = follow();
	close(fd);
	pass(10 * NS_PER_MS);
	assert_int_equal(w.n_taken, 1);
	assert_int_equal(w.company, LB_ALONE);
}

// The kernel closes what it had one after the other, the talk first.
static void fl_101_a_card_that_is_not_free_yet_is_tried_again(void **state)
{
	int fd = follow();
	assert_false(takeover_must_stay(w.takeover)); // who waits may be ended
	w.cannot_open = true;
	close(fd);
	pass(10 * NS_PER_MS);
	assert_int_equal(w.company, LB_BEHIND);
	assert_string_equal(w.given_up, "");
	int n_tries = w.n_taken;
	w.cannot_open = false;
	assert_int_equal(n_tries, 1); // it takes time, and is not done each tick
	pass(60 * NS_PER_MS);
	assert_int_equal(w.n_taken, n_tries + 1);
	assert_int_equal(w.company, LB_ALONE);
}

static void fl_101_a_card_that_never_gets_free_is_given_up(void **state)
{
	int fd = follow();
	w.cannot_open = true;
	close(fd);
	for (int i = 0; i < 32 && !w.given_up[0]; i++)
		pass(NS_PER_SECOND);
	assert_string_equal(w.given_up, "another process drives it");
}

static void fl_105_one_that_cannot_open_the_card_says_so_and_ends(void **state)
{
	int fd = follow();
	w.cannot_open = true;
	say(fd, (struct takeover_message){.kind = TAKEOVER_GIVEN});
	assert_string_equal(w.given_up, "another process drives it");
	assert_int_equal(w.company, LB_BEHIND);
	close(fd);
}

static const struct lb_cables first = {1, {{"eth0", {2, 0, 0, 0, 0, 1}, true}}};
static const struct lb_cables second = {1, {{"eth1", {2, 0, 0, 0, 0, 1}, true}}};

static void expect_told(int fd, const struct lb_cables *wanted)
{
	struct takeover_message m;
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_CABLES);
	assert_memory_equal(&m.cables, wanted, sizeof(*wanted));
	assert_int_equal(takeover_peer_hear(fd, 1, &m), -EAGAIN); // once
}

static void fl_112_the_one_in_front_tells_the_newer_one_its_cables(void **state)
{
	struct lb_err err = {""};
	struct takeover_message m;
	w.cables = first;
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	pass(10 * NS_PER_MS);
	int given, fd = takeover_peer_connect(w.path, 1, &err);
	say(fd, (struct takeover_message){.kind = TAKEOVER_HELLO, .n_workers = 3});
	assert_int_equal(takeover_peer_hear_with(fd, 1, &m, &given), 0);
	assert_int_equal(m.kind, TAKEOVER_WELCOME);
	assert_memory_equal(&m.cables, &first, sizeof(first));
	close(given);
	w.cables = second;
	pass(10 * NS_PER_MS);
	expect_told(fd, &second);
	assert_false(w.follows); // nobody, itself
	close(fd);
}

static void fl_112_the_older_one_follows_once_it_is_behind_and_no_more_when_it_is_alone(
	void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	w.is_closed = true;
	say(fd, (struct takeover_message){.kind = TAKEOVER_TAKE});
	say(fd, (struct takeover_message){.kind = TAKEOVER_OPENED});
	say(fd, (struct takeover_message){.kind = TAKEOVER_SERVING});
	assert_false(w.follows);
	say(fd, (struct takeover_message){.kind = TAKEOVER_CABLES, .cables = second});
	assert_true(w.follows);
	assert_memory_equal(&w.followed, &second, sizeof(second));
	w.is_lent = false; // it needs no device of the newer one
	close(fd);
	pass(10 * NS_PER_MS);
	assert_int_equal(w.company, LB_LAST);
	assert_false(w.follows);
}

static void fl_112_cables_that_are_told_out_of_turn_end_the_talk(void **state)
{
	begin((struct takeover_seat){.fd = -1, .generation = 1});
	int fd = come();
	say(fd, (struct takeover_message){.kind = TAKEOVER_CABLES, .cables = second});
	assert_true(hears(fd, TAKEOVER_REFUSED));
	assert_false(w.follows);
	close(fd);
}

// And tells it what it does itself from then on, whatever it was told before.
static void fl_112_the_newer_one_follows_until_it_is_in_front(void **state)
{
	w.cables = first;
	int fd = follow();
	say(fd, (struct takeover_message){.kind = TAKEOVER_CABLES, .cables = second});
	assert_true(w.follows);
	assert_memory_equal(&w.followed, &second, sizeof(second));
	say(fd, (struct takeover_message){.kind = TAKEOVER_GIVEN});
	assert_true(hears(fd, TAKEOVER_OPENED));
	w.steps = true; // its workers take a while
	say(fd, (struct takeover_message){.kind = TAKEOVER_FREE});
	assert_false(w.follows);
	say(fd, (struct takeover_message){.kind = TAKEOVER_CABLES, .cables = second});
	assert_false(w.follows); // it chooses already
	assert_string_equal(w.given_up, "");
	w.steps = false;
	pass(10 * NS_PER_MS);
	assert_true(hears(fd, TAKEOVER_SERVING));
	expect_told(fd, &first);
	w.cables = second;
	pass(10 * NS_PER_MS);
	expect_told(fd, &second);
	say(fd, (struct takeover_message){.kind = TAKEOVER_CABLES, .cables = first});
	assert_false(w.follows); // it is in front
	close(fd);
}

RUN_SUITE("takeover/devices",
	cmocka_unit_test_setup_teardown(
		fl_112_the_one_in_front_tells_the_newer_one_its_cables, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_112_the_older_one_follows_once_it_is_behind_and_no_more_when_it_is_alone, setup,
		teardown),
	cmocka_unit_test_setup_teardown(
		fl_112_cables_that_are_told_out_of_turn_end_the_talk, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_112_the_newer_one_follows_until_it_is_in_front, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_card_is_closed_before_the_newer_process_has_the_place, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_the_card_comes_back_wherever_the_newer_process_ends, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_it_comes_back_from_one_that_takes_too_long, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_115_a_device_that_has_to_stay_since_it_was_lent_is_not_closed_and_the_newer_refused,
		setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_106_one_whose_frames_went_through_the_newer_process_ends_with_it, setup,
		teardown),
	cmocka_unit_test_setup_teardown(
		fl_109_a_newer_process_of_a_version_without_relays_is_refused, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_card_is_opened_with_the_place_and_what_goes_through_it_is_waited_for,
		setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_of_an_older_process_that_died_the_card_is_taken_at_once, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_card_that_is_not_free_yet_is_tried_again, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_101_a_card_that_never_gets_free_is_given_up, setup, teardown),
	cmocka_unit_test_setup_teardown(
		fl_105_one_that_cannot_open_the_card_says_so_and_ends, setup, teardown))
