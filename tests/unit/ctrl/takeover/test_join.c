// SPDX-License-Identifier: Apache-2.0
// The joining end, which waits, in a process of its own or here; the other one is played by hand.
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 30000

static struct {
	char dir[32], path[64];
} w;
static const struct takeover_peer_events no_events;

static int setup(void **state)
{
	signal(SIGPIPE, SIG_IGN);
	strcpy(w.dir, "/tmp/takeover-join-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.path, sizeof(w.path), "%s/sock", w.dir);
	return 0;
}

static int teardown(void **state)
{
	return rmdir(w.dir); // nothing is left in it
}

// One that connects to a process while that is followed is heard by the newer one.
static void one_that_hears_nothing_asks_again(void **state)
{
	struct lb_err err = {""};
	uid_t uid;
	struct takeover_seat seat;
	int listener = takeover_peer_listen(w.path, &err);
	pid_t child = fork();
	if (child == 0) {
		int rc = takeover_join(w.path, "2.0", 1, &seat, &err);
		_exit(rc == 0 && seat.generation == 7 ? 0 : 1);
	}
	struct takeover_message m = {.kind = TAKEOVER_WELCOME, .generation = 7, .n_behind = 1};
	struct takeover_message hello = {.kind = TAKEOVER_UNKNOWN};
	for (int i = 0, fd; i < 2; i++) {
		while ((fd = takeover_peer_accept(listener, &uid)) < 0)
			usleep(1000);
		while (takeover_peer_hear(fd, 1, &hello) == -EAGAIN)
			usleep(1000);
		assert_int_equal(hello.kind, TAKEOVER_HELLO);
		if (i == 1)
			assert_int_equal(takeover_peer_say(fd, &m), 0);
		close(fd);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(listener);
	unlink(w.path);
}

static void fl_71_whether_an_older_one_passes_listeners_is_in_its_welcome(void **state)
{
	struct lb_err err = {""};
	uid_t uid;
	for (uint32_t passes = 0; passes < 2; passes++) {
		int listener = takeover_peer_listen(w.path, &err);
		pid_t child = fork();
		if (child == 0) {
			struct takeover_message m = {TAKEOVER_WELCOME, 2, 1, passes, "0.9"}, hello;
			int fd;
			while ((fd = takeover_peer_accept(listener, &uid)) < 0)
				usleep(1000);
			while (takeover_peer_hear(fd, 1, &hello) == -EAGAIN)
				usleep(1000);
			_exit(hello.passes_listeners == 1 && takeover_peer_say(fd, &m) == 0 ? 0
											    : 1);
		}
		struct takeover_seat seat;
		int status;
		assert_int_equal(takeover_join(w.path, "2.0", 1, &seat, &err), 0);
		assert_int_equal(seat.passes_listeners, passes);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		close(seat.fd);
		close(listener);
		unlink(w.path);
	}
}

// One of a version that knows of none goes on as before; what a refused one was given is closed.
static void fl_177_resources_come_before_the_welcome(void **state)
{
	enum { WITHOUT, WITH, REFUSED, N_WAYS };
	for (int way = 0; way < N_WAYS; way++) {
		struct lb_err err = {""};
		uid_t uid;
		int listener = takeover_peer_listen(w.path, &err), fds[2], status;
		assert_int_equal(pipe(fds), 0);
		pid_t child = fork();
		if (child == 0) {
			struct takeover_message m = {TAKEOVER_WELCOME, 2, 1, 1, "0.9"}, hello;
			int fd;
			while ((fd = takeover_peer_accept(listener, &uid)) < 0)
				usleep(1000);
			while (takeover_peer_hear(fd, 1, &hello) == -EAGAIN)
				usleep(1000);
			struct takeover_peer *p =
				takeover_peer_new(event_base_new(), fd, &no_events, NULL);
			if (way != WITHOUT)
				takeover_peer_give(p,
					&(struct takeover_message){.kind = TAKEOVER_RESOURCES},
					fds[0]);
			if (way == REFUSED)
				takeover_peer_refuse(p, "not now");
			else
				takeover_peer_tell(p, &m);
			_exit(hello.takes_resources == 1 ? 0 : 1);
		}
		close(fds[0]);
		struct takeover_seat seat;
		int rc = takeover_join(w.path, "2.0", 1, &seat, &err);
		assert_int_equal(rc < 0, way == REFUSED);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(seat.resources_fd > 0, way == WITH);
		assert_int_equal(write(fds[1], "x", 1), way == WITH ? 1 : -1);
		char got;
		if (way == WITH)
			assert_int_equal(read(seat.resources_fd, &got, 1), 1);
		if (way == WITH)
			close(seat.resources_fd);
		if (way != REFUSED)
			close(seat.fd);
		close(fds[1]);
		close(listener);
		unlink(w.path);
	}
}

static void wait_for(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
}

// One of an earlier version closes before it has read a word, whether that has come or not.
static void fl_170_it_tells_why_it_was_refused_and_does_not_ask_again(void **state)
{
	struct lb_err err = {""};
	for (int has_come = 0; has_come < 2; has_come++) {
		int listener = takeover_peer_listen(w.path, &err), status;
		pid_t child = fork();
		if (child == 0) {
			struct takeover_seat seat;
			int rc = takeover_join(w.path, "2.0", 1, &seat, &err);
			_exit(rc < 0 && strstr(err.text, "serves refuses: not now") ? 0 : 1);
		}
		uid_t uid;
		wait_for(listener);
		int fd = takeover_peer_accept(listener, &uid);
		assert_true(fd >= 0);
		if (has_come)
			wait_for(fd);
		takeover_peer_turn_away(fd, "not now");
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
		assert_int_equal(takeover_peer_accept(listener, &uid), -1); // nobody else came
		close(listener);
		unlink(w.path);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("takeover/join", T(one_that_hears_nothing_asks_again),
	T(fl_71_whether_an_older_one_passes_listeners_is_in_its_welcome),
	T(fl_177_resources_come_before_the_welcome),
	T(fl_170_it_tells_why_it_was_refused_and_does_not_ask_again))
