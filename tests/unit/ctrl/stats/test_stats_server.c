// SPDX-License-Identifier: Apache-2.0
// The socket's manners: lines, answers, limits, stale and live socket files.
#include "ctrl/base/socket_counts.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/stats_server.h"
#include "tests/support/check.h"

#include <event2/buffer.h>
#include <event2/event.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

struct fixture {
	char dir[32], path[64];
	struct event_base *base;
	struct stats_server *server;
};

// Says a word each time it is asked.
struct chatter {
	struct stats_follow follow;
	int n, last; // ends after so many words; 0 = never
};

static int n_chatters, n_long, n_words; // n_words: of an answer that comes late
static bool long_words;

static bool chatter_more(struct stats_follow *f, struct evbuffer *out)
{
	if (long_words) {
		n_long++;
		evbuffer_add_printf(out, "%0*d\n", 1 << 17, 0);
		return true;
	}
	struct chatter *c = (struct chatter *)f;
	if (f->is_soon && --n_words > 0)
		return true;
	evbuffer_add_printf(out, "word %d\n", c->n++);
	return !f->is_soon && c->n != c->last;
}

static void chatter_free(struct stats_follow *f)
{
	n_chatters--;
	free(f);
}

static struct stats_caller last_caller;

static char *answer(void *ctx, const struct stats_caller *caller, const char *command,
	struct stats_follow **ret_follow)
{
	char *text = NULL;
	last_caller = *caller;
	if (strncmp(command, "follow", 6) == 0) {
		struct chatter *c = calloc(1, sizeof(*c));
		c->last = atoi(command + 6);
		c->follow = (struct stats_follow){chatter_more, chatter_free};
		*ret_follow = &c->follow;
		n_chatters++;
	}
	if (strcmp(command, "later") == 0) {
		struct chatter *c = calloc(1, sizeof(*c));
		c->follow = (struct stats_follow){chatter_more, chatter_free, true};
		*ret_follow = &c->follow;
		n_chatters++;
		n_words = 20;
		return strdup("");
	}
	return asprintf(&text, "you said %s\n", command) < 0 ? NULL : text;
}

static enum stats_framing framing; // of the servers to come
static struct socket_counts counts;

static struct stats_server *serve(const struct fixture *f, const char *path, struct lb_err *reterr)
{
	const struct stats_server_conf conf = {
		.base = f->base,
		.framing = framing,
		.path = path,
		.mode = 0640,
		.groups = {-1, -1},
		.answer = answer,
		.counts = &counts,
	};
	return stats_server_new(&conf, reterr);
}

static int set_up(void **state)
{
	counts = (struct socket_counts){0};
	signal(SIGPIPE, SIG_IGN); // as the daemon does: who follows may go
	struct fixture *f = calloc(1, sizeof(*f));
	strcpy(f->dir, "/tmp/shunt-stats-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/sub/s.sock", f->dir);
	f->base = event_base_new();
	struct lb_err err = {0};
	f->server = serve(f, f->path, &err);
	assert_string_equal(err.text, "");
	*state = f;
	return 0;
}

static int set_up_haproxys(void **state)
{
	framing = STATS_HAPROXY;
	int ret = set_up(state);
	framing = STATS_LINES;
	return ret;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;
	char sub[64];
	stats_server_free(f->server);
	assert_int_not_equal(access(f->path, F_OK), 0);
	event_base_free(f->base);
	snprintf(sub, sizeof(sub), "%s/sub", f->dir);
	rmdir(sub);
	rmdir(f->dir);
	free(f);
	return 0;
}

static int dial(const struct fixture *f)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	memcpy(addr.sun_path, f->path, strlen(f->path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

// Turns the server's loop until the peer closes; returns all that came.
static size_t read_all(const struct fixture *f, int fd, char *out, size_t room)
{
	size_t got = 0;
	for (int turn = 0; turn < 1000; turn++) {
		event_base_loop(f->base, EVLOOP_NONBLOCK);
		ssize_t n = read(fd, out + got, room - got - 1);
		if (n == 0)
			break;
		if (n > 0)
			got += (size_t)n;
		else
			assert_int_equal(errno, EAGAIN);
	}
	out[got] = 0;
	return got;
}

static void each_line_gets_an_answer_that_ends_with_an_empty_line(void **state)
{
	const struct fixture *f = *state;
	char out[256];
	int fd = dial(f);
	assert_int_equal(write(fd, "one\ntwo\r\n", 9), 9);
	shutdown(fd, SHUT_WR);
	read_all(f, fd, out, sizeof(out));
	assert_string_equal(out, "you said one\n\nyou said two\n\n");
	close(fd);
}

// Turns the loop for this long.
static void turn_for(const struct fixture *f, long ms)
{
	struct timeval all = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	event_base_loopexit(f->base, &all);
	event_base_dispatch(f->base);
}

// OPS-76
static void what_comes_to_its_end_is_whole_and_commands_go_on(void **state)
{
	const struct fixture *f = *state;
	char out[256] = "";
	int fd = dial(f), gone = dial(f);
	assert_int_equal(write(fd, "follow 2\nthen\n", 14), 14);
	assert_int_equal(write(gone, "follow 100\n", 11), 11);
	shutdown(fd, SHUT_WR);
	turn_for(f, 300);
	assert_int_equal(n_chatters, 2);
	close(gone); // frees what it waited for
	turn_for(f, 500);
	assert_int_equal(n_chatters, 0);
	assert_int_not_equal(read_all(f, fd, out, sizeof(out)), 0);
	assert_string_equal(out, "you said follow 2\nword 0\nword 1\n\nyou said then\n\n");
	close(fd);
}

// OPS-55
static void who_follows_is_told_until_it_goes(void **state)
{
	const struct fixture *f = *state;
	char out[256] = "";
	int fd = dial(f), gone = dial(f);
	assert_int_equal(write(fd, "follow\nnever\n", 13), 13);
	assert_int_equal(write(gone, "follow\n", 7), 7);
	shutdown(fd, SHUT_WR); // it reads on
	turn_for(f, 700);
	close(gone);
	turn_for(f, 700);
	assert_int_equal(n_chatters, 1);
	assert_true(read(fd, out, sizeof(out) - 1) > 0);
	static const char begin[] = "you said follow\nword 0\nword 1\n";
	assert_int_equal(strncmp(out, begin, strlen(begin)), 0);
	assert_null(strstr(out, "never"));
	close(fd);
	turn_for(f, 700);
	assert_int_equal(n_chatters, 0);
}

// OPS-55: it takes no more memory than that.
static void who_follows_and_reads_nothing_is_told_no_more(void **state)
{
	const struct fixture *f = *state;
	int fd = dial(f);
	assert_int_equal(write(fd, "follow\n", 7), 7);
	turn_for(f, 300);
	long_words = true;
	turn_for(f, 3000);
	long_words = false;
	assert_in_range(n_long, 2, 6); // of fifteen: what the socket took, and the bound
	close(fd);
	turn_for(f, 500);
	assert_int_equal(n_chatters, 0);
}

static void an_answer_that_comes_late_ends_as_others_and_then_the_next_command_is_taken(
	void **state)
{
	const struct fixture *f = *state;
	char out[256] = "";
	int fd = dial(f);
	assert_int_equal(write(fd, "one\nlater\nlater\ntwo\n", 20), 20);
	shutdown(fd, SHUT_WR);
	turn_for(f, 40);
	assert_true(read(fd, out, sizeof(out) - 1) > 0);
	assert_string_equal(out, "you said one\n\n");
	assert_int_equal(n_chatters, 1);
	turn_for(f, 400); // not the pace of who follows
	memset(out, 0, sizeof(out));
	read_all(f, fd, out, sizeof(out));
	assert_string_equal(out, "word 0\n\nword 0\n\nyou said two\n\n");
	assert_int_equal(n_chatters, 0);
	close(fd);
}

static void who_goes_before_its_answer_is_forgotten(void **state)
{
	const struct fixture *f = *state;
	int fd = dial(f);
	assert_int_equal(write(fd, "later\n", 6), 6);
	turn_for(f, 20);
	assert_int_equal(n_chatters, 1);
	close(fd);
	turn_for(f, 40);
	assert_int_equal(n_chatters, 0);
}

// TH-61
static void a_command_without_end_is_refused(void **state)
{
	const struct fixture *f = *state;
	char out[256], junk[STATS_MAX_COMMAND + 2];
	memset(junk, 'x', sizeof(junk));
	int fd = dial(f);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	read_all(f, fd, out, sizeof(out));
	assert_non_null(strstr(out, STATS_ERROR "command longer than"));
	close(fd);
}

// OPS-298: in whatever pieces it comes.
static void the_longest_command_is_answered(void **state)
{
	const struct fixture *f = *state;
	static const char *const ends[] = {"\n", "\r\n"};
	static char out[2 * STATS_MAX_COMMAND], line[STATS_MAX_COMMAND + 1];
	memset(line, 'x', sizeof(line) - 1);
	for (size_t i = 0; i < 2 * 4; i++) {
		const char *end = ends[i % 2];
		size_t len = sizeof(line) - 1, cut = i / 2;
		int fd = dial(f);
		assert_int_equal(write(fd, line, len - 1), len - 1);
		if (cut == 1)
			turn_for(f, 10);
		assert_int_equal(write(fd, "x", 1), 1);
		if (cut == 2)
			turn_for(f, 10);
		for (; *end; end++) {
			assert_int_equal(write(fd, end, 1), 1);
			if (cut == 3)
				turn_for(f, 10);
		}
		shutdown(fd, SHUT_WR);
		memset(out, 0, sizeof(out));
		read_all(f, fd, out, sizeof(out));
		assert_int_equal(strncmp(out, "you said x", 10), 0);
		assert_int_equal(strlen(out), strlen("you said \n\n") + len);
		close(fd);
	}
}

// OPS-298: it would do more than it says, if the rest of it is what narrows it.
static void a_command_whose_client_is_done_before_its_end_is_refused(void **state)
{
	const struct fixture *f = *state;
	char out[256];
	int fd = dial(f);
	assert_int_equal(write(fd, "one\nkill conn", 13), 13);
	shutdown(fd, SHUT_WR);
	read_all(f, fd, out, sizeof(out));
	assert_string_equal(
		out, "you said one\n\n" STATS_ERROR "the command's line has no end\n\n");
	close(fd);
}

// TH-61: it is not carried out as far as there is room for it. The command before it takes some of
// what is read at once.
static void a_whole_command_that_is_too_long_is_refused(void **state)
{
	const struct fixture *f = *state;
	char out[256], line[STATS_MAX_COMMAND + 8];
	memset(line, 'x', sizeof(line));
	memcpy(line, "one\n", 4);
	line[sizeof(line) - 1] = '\n';
	int fd = dial(f);
	assert_int_equal(write(fd, line, sizeof(line)), sizeof(line));
	read_all(f, fd, out, sizeof(out));
	assert_non_null(strstr(out, "you said one"));
	assert_non_null(strstr(out, STATS_ERROR "command longer than"));
	close(fd);
}

static void nothing_after_a_command_too_long_is_answered(void **state)
{
	const struct fixture *f = *state;
	enum { N_COMMANDS = 1200, ROOM = 1 << 20 };
	char command[401], junk[2 * STATS_MAX_COMMAND];
	memset(command, 'y', 400);
	command[400] = '\n';
	memset(junk, 'x', sizeof(junk));
	int fd = dial(f);
	// The answers fill the socket, so that the refusal has to wait while more input comes.
	for (int i = 0; i < N_COMMANDS; i++) {
		assert_int_equal(write(fd, command, sizeof(command)), sizeof(command));
		event_base_loop(f->base, EVLOOP_NONBLOCK);
	}
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	assert_int_equal(write(fd, "one\ntwo\n", 8), 8);
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	char *out = malloc(ROOM);
	size_t len = 0;
	for (;;) {
		event_base_loop(f->base, EVLOOP_NONBLOCK);
		ssize_t n = read(fd, out + len, ROOM - len - 1);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break; // end, or reset for what was not read
		len += n > 0 ? (size_t)n : 0;
	}
	out[len] = 0;
	assert_true(len > N_COMMANDS * sizeof(command));
	assert_non_null(strstr(out, "command longer than"));
	assert_null(strstr(out, "you said one"));
	free(out);
	close(fd);
}

// Reading the listening socket again and again would take the whole control thread.
static void running_out_of_descriptors_costs_no_time(void **state)
{
	const struct fixture *f = *state;
	struct rlimit old, none;
	char out[64];
	int fd = dial(f);
	assert_int_equal(write(fd, "hi\n", 3), 3);
	shutdown(fd, SHUT_WR);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	assert_int_equal(event_base_get_num_events(f->base, EVENT_BASE_COUNT_ACTIVE), 0);
	struct timeval start, end;
	event_base_loop(f->base, EVLOOP_NONBLOCK);
	evutil_gettimeofday(&start, NULL);
	event_base_loop(f->base, EVLOOP_ONCE); // sleeps until the next try
	evutil_gettimeofday(&end, NULL);
	evutil_timersub(&end, &start, &end);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_true(end.tv_sec > 0 || end.tv_usec > 20000);
	for (int turn = 0; turn < 3; turn++)
		event_base_loop(f->base, EVLOOP_ONCE);
	read_all(f, fd, out, sizeof(out));
	assert_string_equal(out, "you said hi\n\n");
	close(fd);
}

// TH-61, OPS-235: the one that has said nothing for longest, and it is told why.
static void who_comes_when_all_places_are_taken_gets_that_of_the_idlest(void **state)
{
	const struct fixture *f = *state;
	int fds[40];
	char out[256];
	for (int i = 0; i < 40; i++) {
		fds[i] = dial(f);
		event_base_loop(f->base, EVLOOP_NONBLOCK);
		if (i == 20) { // the first one says something
			assert_int_equal(write(fds[0], "hi\n", 3), 3);
			turn_for(f, 10);
			assert_int_equal(read(fds[0], out, sizeof(out)), 13);
		}
	}
	assert_int_equal(counts.n_open, 28); // of one kind: four are kept for the other one
	assert_int_equal(counts.n_cut, 12);
	for (int i = 0; i < 40; i++) {
		bool is_cut = i >= 1 && i <= 12;
		memset(out, 0, sizeof(out));
		assert_int_equal(read(fds[i], out, sizeof(out)) > 0, is_cut);
		assert_string_equal(out, is_cut ? STATS_ERROR STATS_CUT "\n" : "");
		assert_int_equal(read(fds[i], out, sizeof(out)), is_cut ? 0 : -1);
		close(fds[i]);
	}
	turn_for(f, 10);
	assert_int_equal(counts.n_open, 0);
}

// OPS-235
static void those_who_follow_lock_nobody_out(void **state)
{
	const struct fixture *f = *state;
	int fds[40];
	char out[64];
	for (int i = 0; i < 40; i++) {
		fds[i] = dial(f);
		assert_int_equal(write(fds[i], "follow\n", 7), 7);
		event_base_loop(f->base, EVLOOP_NONBLOCK);
		event_base_loop(f->base, EVLOOP_NONBLOCK);
	}
	int fd = dial(f);
	assert_int_equal(write(fd, "hi\n", 3), 3);
	shutdown(fd, SHUT_WR);
	read_all(f, fd, out, sizeof(out));
	assert_string_equal(out, "you said hi\n\n");
	assert_int_equal(n_chatters, 27);
	close(fd);
	for (int i = 0; i < 40; i++)
		close(fds[i]);
	turn_for(f, 300);
	assert_int_equal(n_chatters, 0);
}

// TH-61
static void the_socket_has_the_mode_asked_for(void **state)
{
	const struct fixture *f = *state;
	struct stat st;
	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void a_socket_in_use_is_an_error_and_a_stale_one_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct lb_err err = {0};
	assert_null(serve(f, f->path, &err));
	assert_non_null(strstr(err.text, "another process serves this socket"));
	stats_server_free(f->server);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0); // bound and gone: what a killed daemon leaves
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	memcpy(addr.sun_path, f->path, strlen(f->path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	f->server = serve(f, f->path, &err);
	assert_non_null(f->server);
}

// FL-12: as where a process that hung with the names in its hands ends late.
static void a_name_that_another_process_has_taken_stays(void **state)
{
	struct fixture *f = *state;
	struct lb_err err = {0};
	char other_path[sizeof(f->path) + 2];
	snprintf(other_path, sizeof(other_path), "%s.1", f->path);
	struct stats_server *other = serve(f, other_path, &err);
	assert_non_null(other);
	assert_int_equal(stats_server_rename(other, f->path, &err), 0);
	stats_server_free(f->server);
	f->server = other;
	close(dial(f));
}

// OPS-70
static void a_command_comes_with_who_sent_it(void **state)
{
	const struct fixture *f = *state;
	char out[64];
	int fd = dial(f);
	assert_int_equal(write(fd, "one\n", 4), 4);
	shutdown(fd, SHUT_WR);
	read_all(f, fd, out, sizeof(out));
	assert_int_equal(last_caller.uid, getuid());
	assert_int_equal(last_caller.pid, getpid());
	assert_int_equal(last_caller.level, STATS_ADMIN); // the daemon's own user
	close(fd);
}

static void a_file_that_is_no_socket_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct lb_err err = {0};
	char path[96];
	snprintf(path, sizeof(path), "%s/sub/precious", f->dir);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
	assert_null(serve(f, path, &err));
	assert_non_null(strstr(err.text, "exists and is not a socket"));
	assert_int_equal(access(path, F_OK), 0);
	unlink(path);
}

// What comes of these lines until the server closes, which it must do by itself.
static void assert_talk(const struct fixture *f, const char *lines, const char *answers)
{
	char out[512];
	size_t len = 0;
	int fd = dial(f);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	ssize_t n = -1;
	for (int i = 0; i < 500 && n != 0; i++) {
		turn_for(f, 10);
		n = read(fd, out + len, sizeof(out) - len - 1);
		len += n > 0 ? (size_t)n : 0;
	}
	out[len] = 0;
	assert_int_equal(n, 0);
	if (strcmp(out, answers) != 0)
		fail_msg("%s answered '%s', not '%s'", lines, out, answers);
	close(fd);
}

// OPS-110
static void of_haproxys_a_line_is_answered_and_then_it_closes(void **state)
{
	static const char *const rows[][2] = {
		{"one\n", "you said one\n\n"},
		{"one;two ;three\r\n", "you said one\n\nyou said two \n\nyou said three\n\n"},
		{"one\\;two\n", "you said one\\;two\n\n"},
		{"one\\\\;two\n", "you said one\\\\\n\nyou said two\n\n"},
		{"one;later;two\n", "you said one\n\nword 0\n\nyou said two\n\n"},
		{"later\n", "word 0\n\n"},
		{"one;quit;two\n", "you said one\n\n"},
		{"quit\n", ""},
		{"\n", "you said \n\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_talk(*state, rows[i][0], rows[i][1]);
}

// OPS-110
static void of_haproxys_who_wants_a_prompt_may_go_on(void **state)
{
	static const char *const rows[][2] = {
		{"prompt\none\ntwo;three\nquit\n",
			"\n> you said one\n\n> you said two\n\n> you said three\n\n> "},
		{"prompt;one\nlater\n quit \nnever\n", "\n> you said one\n\n> word 0\n\n> "},
		{"prompt\none\nprompt;two\nnever\n", "\n> you said one\n\n> \nyou said two\n\n"},
		{"prompts\nnever\n", "you said prompts\n\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_talk(*state, rows[i][0], rows[i][1]);
}

// OPS-110
static void of_haproxys_a_line_without_end_is_refused(void **state)
{
	const struct fixture *f = *state;
	char out[256], junk[STATS_MAX_COMMAND + 2];
	memset(junk, ';', sizeof(junk));
	int fd = dial(f);
	assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	read_all(f, fd, out, sizeof(out));
	assert_non_null(strstr(out, "command longer than"));
	close(fd);
}

// OPS-117: none of them waits for the others to have it all.
static void those_that_wait_have_turns(void **state)
{
	const struct fixture *f = *state;
	int fds[3];
	char out[64];
	for (int i = 0; i < 3; i++)
		assert_int_equal(write(fds[i] = dial(f), "later\n", 6), 6);
	turn_for(f, 600);
	for (int i = 0; i < 3; i++) {
		shutdown(fds[i], SHUT_WR);
		assert_true(read_all(f, fds[i], out, sizeof(out)) > 0);
		close(fds[i]);
	}
	assert_int_equal(n_chatters, 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define HAPROXYS(test) cmocka_unit_test_setup_teardown(test, set_up_haproxys, tear_down)

RUN_SUITE("ctrl/stats_server", CASE(each_line_gets_an_answer_that_ends_with_an_empty_line),
	CASE(a_command_without_end_is_refused), CASE(the_longest_command_is_answered),
	CASE(a_command_whose_client_is_done_before_its_end_is_refused),
	CASE(a_whole_command_that_is_too_long_is_refused),
	CASE(nothing_after_a_command_too_long_is_answered),
	CASE(what_comes_to_its_end_is_whole_and_commands_go_on),
	CASE(who_follows_is_told_until_it_goes),
	CASE(who_follows_and_reads_nothing_is_told_no_more),
	CASE(an_answer_that_comes_late_ends_as_others_and_then_the_next_command_is_taken),
	CASE(who_goes_before_its_answer_is_forgotten),
	CASE(running_out_of_descriptors_costs_no_time),
	CASE(who_comes_when_all_places_are_taken_gets_that_of_the_idlest),
	CASE(those_who_follow_lock_nobody_out), CASE(the_socket_has_the_mode_asked_for),
	CASE(a_command_comes_with_who_sent_it), CASE(a_file_that_is_no_socket_is_left_alone),
	CASE(a_socket_in_use_is_an_error_and_a_stale_one_is_replaced),
	CASE(a_name_that_another_process_has_taken_stays),
	HAPROXYS(of_haproxys_a_line_is_answered_and_then_it_closes),
	HAPROXYS(of_haproxys_who_wants_a_prompt_may_go_on),
	HAPROXYS(of_haproxys_a_line_without_end_is_refused), CASE(those_that_wait_have_turns))
