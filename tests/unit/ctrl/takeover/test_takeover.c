// SPDX-License-Identifier: Apache-2.0
// Processes that follow one another, in one process: each is a takeover with a fake of all that is
// done to it. Workers obey at once, unless they are slow. The joining end, which waits, is played
// by hand where it would wait for the other.
#include "ctrl/takeover/guests.h"
#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOON_NS (2 * NS_PER_MS)
#define MAX_NODES 6
#define NOBODY 65534

// One process.
struct node {
	struct takeover *takeover;
	enum lb_company company;
	bool is_open, is_leaving, may_go, is_slow, could_serve, is_busy, shares, is_joined;
	bool cannot_share, has_resources;
	int ports[2]; // that it passes on; 0 = none. Files stand for them
	uint32_t n_ports;
	uint32_t n_lore; // what it knows
	char given_up[128];
	ino_t inode; // of its socket
};

static struct {
	struct event_base *base;
	char dir[32], path[64];
	uint64_t now_ns;
	struct node nodes[MAX_NODES];
	struct node *names; // whose the names and ports are
	bool is_early; // newer ones know of no listeners that are passed on
} w;

static const char *busy(void *ctx)
{
	return ((struct node *)ctx)->is_busy ? "not now" : NULL;
}

static void set_company(void *ctx, enum lb_company company)
{
	((struct node *)ctx)->company = company;
}

static bool has_company(void *ctx, enum lb_company company)
{
	const struct node *n = ctx;
	return !n->is_slow && n->company == company;
}

static int share(void *ctx, bool opens, struct lb_err *err)
{
	struct node *n = ctx;
	n->shares = true;
	n->is_joined = opens;
	return n->cannot_share ? lb_err_set(err, "no room") : 0;
}

static uint32_t listeners(void *ctx, int ret[TAKEOVER_MAX_LISTENERS])
{
	const struct node *n = ctx;
	memcpy(ret, n->ports, sizeof(n->ports));
	return n->n_ports;
}

static void inherit_listener(void *ctx, int fd)
{
	struct node *n = ctx;
	assert_false(n->is_open);
	n->ports[n->n_ports++] = dup(fd);
}

// A file with one number.
static int bequeath(void *ctx)
{
	const struct node *n = ctx;
	int fd = n->n_lore ? memfd_create("test", MFD_CLOEXEC) : -1;
	if (fd >= 0)
		assert_int_equal(write(fd, &n->n_lore, sizeof(n->n_lore)), sizeof(n->n_lore));
	return fd;
}

static void inherit(void *ctx, int fd)
{
	struct node *n = ctx;
	assert_false(n->is_open); // it knows before it serves
	assert_int_equal(pread(fd, &n->n_lore, sizeof(n->n_lore), 0), sizeof(n->n_lore));
}

static int open_node(void *ctx, struct lb_err *err)
{
	((struct node *)ctx)->is_open = true;
	return 0;
}

static int take(void *ctx, struct lb_err *err)
{
	assert_true(!w.names || !w.names->takeover || w.names->shares);
	w.names = ctx;
	w.names->shares = false;
	return 0;
}

static void leave(void *ctx)
{
	((struct node *)ctx)->is_leaving = true;
	((struct node *)ctx)->is_open = false;
}

static void give_up(void *ctx, const char *why)
{
	struct node *n = ctx;
	snprintf(n->given_up, sizeof(n->given_up), "%s", why);
}

static void free_to_go(void *ctx)
{
	((struct node *)ctx)->may_go = true;
}

static int resources(void *ctx)
{
	const struct node *n = ctx;
	return n->has_resources ? memfd_create("test", MFD_CLOEXEC) : -1;
}

static const struct takeover_ops ops = {busy, set_company, has_company, share, listeners,
	inherit_listener, bequeath, inherit, open_node, take, leave, give_up, free_to_go,
	.resources = resources};

static int n_taking(void) // what is new
{
	int n = 0;
	for (int i = 0; i < MAX_NODES; i++)
		n += w.nodes[i].takeover && w.nodes[i].company != LB_BEHIND;
	return n;
}

static void pass(uint64_t ns)
{
	for (uint64_t end = w.now_ns + ns; w.now_ns < end; w.now_ns += SOON_NS) {
		event_base_loop(w.base, EVLOOP_NONBLOCK);
		for (int i = 0; i < MAX_NODES; i++)
			if (w.nodes[i].takeover)
				takeover_tick(
					w.nodes[i].takeover, w.now_ns, w.nodes[i].could_serve);
		assert_in_range(n_taking(), 0, 1);
	}
}

static ino_t inode_of(const char *path)
{
	struct stat st;
	assert_int_equal(lstat(path, &st), 0);
	return st.st_ino;
}

static struct node *node_new(int i, const struct takeover_seat *seat)
{
	struct lb_err err = {""};
	struct node *n = &w.nodes[i];
	struct takeover_conf conf = {.path = w.path,
		.version = "1.0",
		.seat = *seat,
		.base = w.base,
		.ops = &ops,
		.ctx = n,
		.now_ns = w.now_ns};
	*n = (struct node){.company = takeover_first_company(seat), .is_open = seat->fd < 0};
	w.names = seat->fd < 0 ? n : w.names;
	n->takeover = takeover_new(&conf, &err);
	assert_non_null(n->takeover);
	char aside[80];
	snprintf(aside, sizeof(aside), "%s.%u", w.path, seat->generation);
	n->inode = inode_of(seat->fd < 0 ? w.path : aside);
	return n;
}

static void end(struct node *n)
{
	takeover_free(n->takeover);
	n->takeover = NULL;
}

static struct node *first(void)
{
	return node_new(0, &(struct takeover_seat){.fd = -1, .generation = 1});
}

static int dial(void)
{
	struct lb_err err = {""};
	int fd = takeover_peer_connect(w.path, 1, &err);
	assert_true(fd >= 0);
	return fd;
}

static void say(int fd, enum takeover_kind kind)
{
	struct takeover_message m = {.kind = kind};
	strcpy(m.text, kind == TAKEOVER_HELLO ? "2.0" : "");
	m.passes_listeners = kind == TAKEOVER_HELLO && !w.is_early;
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	pass(10 * NS_PER_MS);
}

static struct takeover_message hear(int fd)
{
	struct takeover_message m;
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	return m;
}

// As takeover_join() does it.
static struct node *join(int i)
{
	int fd = dial();
	say(fd, TAKEOVER_HELLO);
	struct takeover_message m = hear(fd);
	assert_int_equal(m.kind, TAKEOVER_WELCOME);
	assert_string_equal(m.text, "1.0");
	struct takeover_seat seat = {fd, m.generation, m.n_behind, "1.0", m.passes_listeners};
	return node_new(i, &seat);
}

// The older one has seen it before it says its first word. It hears why nevertheless (FL-170).
static void expect_refusal(const char *why)
{
	int fd = dial();
	pass(10 * NS_PER_MS);
	say(fd, TAKEOVER_HELLO);
	struct takeover_message m = hear(fd);
	assert_int_equal(m.kind, TAKEOVER_REFUSED);
	assert_string_equal(m.text, why);
	close(fd);
}

static struct takeover_info info_of(const struct node *n)
{
	struct takeover_info i;
	takeover_info(n->takeover, &i);
	return i;
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
	for (int i = 0; i < MAX_NODES; i++)
		if (w.nodes[i].takeover)
			end(&w.nodes[i]);
	event_base_free(w.base);
	return rmdir(w.dir); // nothing is left in it
}

static void expect_serves(const struct node *n, enum lb_company company)
{
	assert_int_equal(n->company, company);
	assert_ptr_equal(n, w.names);
	assert_true(n->is_open);
	assert_false(n->is_leaving);
	assert_string_equal(info_of(n).role, "front");
}

// The socket's name, at which somebody listens.
static void expect_leads_to(const struct node *n)
{
	close(dial());
	assert_int_equal(inode_of(w.path), n->inode);
	pass(2 * SOON_NS); // or many would wait there
}

static void fl_02_until_it_could_serve_nothing_changes_but_resets(void **state)
{
	struct node *old = first(), *new = join(1);
	expect_serves(old, LB_FRONT);
	pass(200 * NS_PER_SECOND);
	expect_serves(old, LB_FRONT);
	assert_int_equal(new->company, LB_BEHIND);
	assert_string_equal(info_of(new).role, "waiting");
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
	assert_int_equal(old->company, LB_BEHIND);
	assert_true(old->is_leaving);
	assert_string_equal(info_of(old).role, "behind");
	assert_int_equal(info_of(new).generation, 2);
	assert_int_equal(info_of(new).n_behind, 1);
	assert_string_equal(info_of(old).newer_version, "2.0");
	end(old);
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_ALONE);
	assert_int_equal(info_of(new).n_behind, 0);
}

static void fl_10_three_may_be_behind_and_a_fourth_has_to_wait(void **state)
{
	struct node *nodes[4] = {first()};
	for (int i = 1; i < 4; i++) {
		nodes[i] = join(i);
		nodes[i]->could_serve = true;
		pass(20 * NS_PER_MS);
		expect_serves(nodes[i], LB_FRONT);
		assert_int_equal(info_of(nodes[i]).n_behind, i);
	}
	expect_refusal("too many processes are behind this one already");
	assert_int_equal(info_of(nodes[3]).n_refused, 1);
	end(nodes[0]);
	pass(20 * NS_PER_MS);
	assert_int_equal(info_of(nodes[3]).n_behind, 2);
	struct node *fifth = join(4);
	fifth->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(fifth, LB_FRONT);
	assert_int_equal(info_of(fifth).generation, 5);
}

static void fl_11_one_that_has_left_stays_for_those_behind_it(void **state)
{
	struct node *oldest = first(), *old = join(1);
	old->could_serve = true;
	pass(20 * NS_PER_MS);
	assert_false(takeover_must_stay(old->takeover)); // it may end as any
	struct node *new = join(2);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	assert_true(takeover_must_stay(old->takeover));
	assert_false(old->may_go);
	end(oldest);
	pass(20 * NS_PER_MS);
	assert_true(old->may_go);
	assert_false(takeover_must_stay(old->takeover));
}

// FL-11: nobody else answers for its addresses, and its connections live by that.
static void one_whose_newer_one_dies_answers_for_its_addresses(void **state)
{
	struct node *old = first(), *new = join(1);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	assert_int_equal(old->company, LB_BEHIND);
	end(new);
	pass(20 * NS_PER_MS);
	assert_int_equal(old->company, LB_LAST);
	assert_true(old->is_leaving);
}

// FL-08
static void wherever_the_newer_one_ends_the_older_one_serves_on(void **state)
{
	static const enum takeover_kind said[] = {TAKEOVER_HELLO, TAKEOVER_TAKE, TAKEOVER_OPENED};
	struct node *old = first();
	for (unsigned n = 0; n <= 3; n++) {
		int fd = dial();
		pass(10 * NS_PER_MS);
		for (unsigned i = 0; i < n; i++) {
			say(fd, said[i]);
			(void)hear(fd);
		}
		assert_int_equal(old->company, n == 0 ? LB_ALONE : n < 3 ? LB_FRONT : LB_BEHIND);
		assert_int_equal(old->shares, n >= 2);
		close(fd);
		pass(10 * NS_PER_MS);
		expect_serves(old, LB_ALONE);
		assert_int_equal(info_of(old).n_failed, n); // who says nothing is nobody
	}
	struct node *new = join(1);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
}

// The older one's end is played by hand.
static struct node *follow_by_hand(int *ret_fd)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	*ret_fd = fds[0];
	struct takeover_seat seat = {fds[1], 2, 1, "1.0", true};
	return node_new(1, &seat);
}

// FL-08: it hangs with the place in its hands.
static void one_that_does_not_begin_in_time_is_told_that_it_is_too_late(void **state)
{
	struct node *old = first(), *new = join(1);
	new->could_serve = new->is_slow = true;
	pass(20 * NS_PER_MS);
	assert_true(old->is_open && new->is_open);
	assert_ptr_equal(w.names, old);
	// It hangs: neither workers nor loop do anything.
	struct takeover *hung = new->takeover;
	new->takeover = NULL;
	pass(4 * NS_PER_SECOND);
	expect_serves(old, LB_ALONE);
	new->takeover = hung;
	new->is_slow = false; // they would obey
	takeover_tick(hung, w.now_ns, true);
	expect_leads_to(old);
	event_base_loop(w.base, EVLOOP_NONBLOCK);
	assert_string_not_equal(new->given_up, "");
	assert_int_equal(new->company, LB_BEHIND);
	end(new);
	expect_leads_to(old);
}

// FL-08: it hung before it heard that the place is its own, which it is not any more.
static void one_that_wakes_too_late_takes_nothing(void **state)
{
	int fd;
	struct node *new = follow_by_hand(&fd), *old = &w.nodes[0];
	w.names = old;
	new->could_serve = true;
	pass(10 * NS_PER_MS);
	assert_int_equal(hear(fd).kind, TAKEOVER_TAKE);
	struct takeover_message given = {.kind = TAKEOVER_GIVEN},
				no = {.kind = TAKEOVER_REFUSED, .text = "late"};
	assert_int_equal(takeover_peer_say(fd, &given), 0);
	assert_int_equal(takeover_peer_say(fd, &no), 0);
	pass(10 * NS_PER_MS);
	assert_ptr_equal(w.names, old);
	assert_false(new->is_open);
	assert_string_equal(new->given_up, "late");
	close(fd);
}

// FL-12: whatever the moment, somebody answers, and whoever does is alive.
static void fl_12_the_socket_leads_to_one_that_serves_at_every_moment(void **state)
{
	static const enum takeover_kind said[] = {TAKEOVER_HELLO, TAKEOVER_TAKE, TAKEOVER_OPENED};
	struct node *old = first();
	int fd = dial();
	pass(10 * NS_PER_MS);
	for (unsigned i = 0; i < 3; i++) {
		say(fd, said[i]);
		(void)hear(fd);
		expect_leads_to(old);
	}
	close(fd);
	pass(10 * NS_PER_MS);
	expect_leads_to(old);
	struct node *new = join(1);
	expect_leads_to(old);
	new->could_serve = new->is_slow = true;
	pass(20 * NS_PER_MS);
	expect_leads_to(old);
	new->is_slow = false;
	pass(20 * NS_PER_MS);
	expect_leads_to(new);
	end(old);
	expect_leads_to(new);
}

static int n_open(void)
{
	int n = 0;
	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void fl_17_what_the_older_one_knows_comes_with_the_place(void **state)
{
	struct node *old = first(), *new = join(1);
	old->n_lore = 42;
	int n = n_open();
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
	assert_int_equal(new->n_lore, 42);
	assert_int_equal(n_open(), n - 1); // the older one's listener
}

// Before the welcome, to one that knows of them.
static void fl_177_resources_come_first(void **state)
{
	for (uint32_t takes = 0; takes < 2; takes++) {
		struct node *old = first();
		old->has_resources = true;
		int fd = dial(), given, n = n_open();
		struct takeover_message m = {
			.kind = TAKEOVER_HELLO, .text = "2.0", .takes_resources = takes};
		assert_int_equal(takeover_peer_say(fd, &m), 0);
		pass(10 * NS_PER_MS);
		if (takes && takeover_peer_hear_with(fd, 1, &m, &given) == 0)
			close(given);
		assert_int_equal(m.kind, takes ? TAKEOVER_RESOURCES : TAKEOVER_HELLO);
		assert_int_equal(hear(fd).kind, TAKEOVER_WELCOME);
		assert_int_equal(n_open(), n + 1); // the talk's other end
		close(fd);
		end(old);
	}
}

static ino_t file_of(int fd)
{
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	return st.st_ino;
}

static void fl_70_listeners_are_passed_on_from_process_to_process(void **state)
{
	struct node *old = first();
	const ino_t files[] = {file_of(old->ports[0] = memfd_create("a", MFD_CLOEXEC)),
		file_of(old->ports[1] = memfd_create("b", MFD_CLOEXEC))};
	old->n_ports = 2;
	for (int i = 1; i < 4; i++) {
		struct node *new = join(i);
		new->could_serve = true;
		pass(20 * NS_PER_MS);
		expect_serves(new, LB_FRONT);
		assert_int_equal(new->n_ports, 2);
		for (int k = 0; k < 2; k++) {
			assert_int_equal(file_of(new->ports[k]), files[k]);
			close(old->ports[k]);
		}
		assert_true(old->shares && !old->is_joined);
		old = new;
	}
	close(old->ports[0]);
	close(old->ports[1]);
}

// FL-71: it is the older one that lets it have its own beside.
static void fl_71_a_newer_one_of_an_earlier_version_is_told_of_no_listener(void **state)
{
	struct node *old = first();
	old->n_ports = 1;
	old->ports[0] = memfd_create("a", MFD_CLOEXEC);
	w.is_early = true;
	int fd = dial();
	say(fd, TAKEOVER_HELLO);
	assert_int_equal(hear(fd).kind, TAKEOVER_WELCOME);
	assert_false(old->is_joined);
	say(fd, TAKEOVER_TAKE);
	assert_int_equal(hear(fd).kind, TAKEOVER_GIVEN);
	assert_true(old->is_joined);
	say(fd, TAKEOVER_OPENED);
	assert_int_equal(hear(fd).kind, TAKEOVER_FREE);
	say(fd, TAKEOVER_SERVING);
	assert_true(old->is_leaving);
	close(fd);
	close(old->ports[0]);
}

static void fl_09_a_newer_one_that_speaks_nonsense_is_out(void **state)
{
	static const enum takeover_kind wrong[] = {
		TAKEOVER_TAKE, TAKEOVER_SERVING, TAKEOVER_WELCOME, TAKEOVER_GIVEN};
	struct node *old = first();
	for (unsigned i = 0; i < 4; i++) {
		int fd = dial();
		say(fd, wrong[i]);
		assert_int_equal(hear(fd).kind, TAKEOVER_REFUSED);
		expect_serves(old, LB_ALONE);
		close(fd);
	}
	int fd = dial();
	assert_int_equal(write(fd, "hello", 5), 5);
	pass(10 * NS_PER_MS);
	expect_serves(old, LB_ALONE);
	assert_int_equal(info_of(old).n_failed, 0); // none of them said that it is a newer one
	close(fd);
}

// FL-09: a later version may say more.
static void what_the_older_one_says_and_is_not_known_changes_nothing(void **state)
{
	static const enum takeover_kind later = TAKEOVER_UNKNOWN + 7;
	int fd;
	struct node *new = follow_by_hand(&fd);
	say(fd, later);
	new->could_serve = true;
	pass(10 * NS_PER_MS);
	assert_int_equal(hear(fd).kind, TAKEOVER_TAKE);
	say(fd, later);
	say(fd, TAKEOVER_GIVEN);
	assert_int_equal(hear(fd).kind, TAKEOVER_OPENED);
	say(fd, later);
	say(fd, TAKEOVER_FREE);
	assert_int_equal(hear(fd).kind, TAKEOVER_SERVING);
	expect_serves(new, LB_FRONT);
	close(fd);
}

// FL-09
static void once_it_serves_a_refusal_alone_ends_it(void **state)
{
	static const enum takeover_kind wrong[] = {TAKEOVER_GIVEN, TAKEOVER_FREE, TAKEOVER_WELCOME,
		TAKEOVER_HELLO, TAKEOVER_UNKNOWN, TAKEOVER_CHAIN};
	int fd;
	struct node *new = follow_by_hand(&fd);
	new->could_serve = true;
	pass(10 * NS_PER_MS);
	say(fd, TAKEOVER_GIVEN);
	say(fd, TAKEOVER_FREE);
	for (unsigned i = 0; i < 6; i++) {
		say(fd, wrong[i]);
		expect_serves(new, LB_FRONT);
		assert_string_equal(new->given_up, "");
	}
	say(fd, TAKEOVER_REFUSED); // it came too late
	assert_int_equal(new->company, LB_BEHIND);
	close(fd);
	end(new);
}

static void fl_10_only_one_takes_over_at_a_time(void **state)
{
	struct node *old = first(), *new = join(1);
	expect_refusal("another process is taking over");
	expect_serves(old, LB_FRONT);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
}

static void fl_10_one_that_is_busy_is_not_taken_over(void **state)
{
	struct node *old = first();
	old->is_busy = true;
	expect_refusal("not now");
	assert_int_equal(info_of(old).n_refused, 1);
	expect_serves(old, LB_ALONE);
	old->is_busy = false;
	struct node *new = join(1);
	old->is_busy = new->could_serve = true; // since it came
	pass(20 * NS_PER_MS);
	assert_string_equal(new->given_up, "not now");
	expect_serves(old, LB_ALONE);
}

static void fl_171_who_says_nothing_changes_nothing(void **state)
{
	int fds[TAKEOVER_MAX_GUESTS];
	struct node *old = first();
	for (int i = 0; i < TAKEOVER_MAX_GUESTS - 1; i++)
		fds[i] = dial();
	pass(10 * NS_PER_MS);
	expect_serves(old, LB_ALONE);
	struct node *new = join(1); // nor does it keep another one out
	fds[TAKEOVER_MAX_GUESTS - 1] = dial();
	pass(10 * NS_PER_MS);
	int fd = dial();
	pass(10 * NS_PER_MS);
	assert_string_equal(hear(fd).text, "too many ask at a time");
	close(fd);
	pass(6 * NS_PER_SECOND);
	for (int i = 0; i < TAKEOVER_MAX_GUESTS; i++) {
		assert_string_equal(hear(fds[i]).text, "it said nothing");
		close(fds[i]);
	}
	assert_int_equal(info_of(old).n_refused, 1); // the one that had no place
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
}

static void fl_172_without_room_for_other_names_nobody_takes_them(void **state)
{
	struct node *old = first();
	char aside[80];
	snprintf(aside, sizeof(aside), "%s.1", w.path);
	for (int i = 0; i < 2; i++) {
		struct node *new = join(1);
		old->cannot_share = i == 0;
		if (i == 1) // not a socket, so it stays
			close(open(aside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		new->could_serve = true;
		pass(20 * NS_PER_MS);
		assert_non_null(strstr(new->given_up, i ? "sock.1: File exists" : "no room"));
		end(new);
		pass(20 * NS_PER_MS);
		expect_serves(old, LB_ALONE);
		expect_leads_to(old);
		assert_int_equal(info_of(old).n_failed, i + 1);
	}
	unlink(aside);
	struct node *new = join(1);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_FRONT);
	expect_leads_to(new);
}

static void one_whose_older_one_dies_takes_the_place_once_it_could_serve(void **state)
{
	struct node *old = first(), *new = join(1);
	end(old);
	pass(10 * NS_PER_MS);
	assert_int_equal(new->company, LB_BEHIND);
	new->could_serve = true;
	pass(20 * NS_PER_MS);
	expect_serves(new, LB_ALONE);
}

// FL-01: neither who wants to take over nor who wants to listen waits for it for ever.
static void one_that_hangs_is_not_waited_for(void **state)
{
	struct lb_err err = {""};
	int fds[16], n = 0, listener = takeover_peer_listen(w.path, &err);
	assert_true(listener >= 0);
	while (n < 16 && (fds[n] = takeover_peer_connect(w.path, 0, &err)) >= 0)
		n++;
	assert_in_range(n, 1, 15);
	assert_int_equal(takeover_peer_connect(w.path, 1, &err), -EINVAL);
	assert_int_equal(takeover_peer_listen(w.path, &err), -EINVAL);
	while (n > 0)
		close(fds[--n]);
	close(listener);
	unlink(w.path);
}

static void fl_01_without_one_that_serves_the_first_begins(void **state)
{
	struct takeover_seat seat;
	struct lb_err err = {""};
	assert_int_equal(takeover_join(w.path, "1.0", 1, &seat, &err), 0);
	assert_int_equal(seat.fd, -1);
	assert_int_equal(seat.generation, 1);
	int fd = takeover_peer_listen(w.path, &err); // and one that died leaves its socket
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(takeover_join(w.path, "1.0", 1, &seat, &err), 0);
	assert_int_equal(seat.fd, -1);
	expect_serves(first(), LB_ALONE);
}

// The socket's mode keeps another user out; where somebody has changed it, the process does.
static void fl_01_another_user_is_not_talked_to(void **state)
{
	if (geteuid() != 0)
		skip();
	struct lb_err err = {""};
	struct takeover_message m;
	struct node *old = first();
	assert_int_equal(chmod(w.dir, 0711), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	int rc = takeover_peer_connect(w.path, 1, &err);
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(rc, -EINVAL);
	assert_int_equal(chmod(w.path, 0666), 0);
	assert_int_equal(seteuid(NOBODY), 0);
	int fd = dial();
	assert_int_equal(seteuid(0), 0);
	pass(10 * NS_PER_MS);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_REFUSED);
	assert_string_equal(m.text, "another user's process");
	close(fd);
	assert_int_equal(info_of(old).n_refused, 1);
	expect_serves(old, LB_ALONE);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("takeover/takeover", T(fl_02_until_it_could_serve_nothing_changes_but_resets),
	T(fl_10_three_may_be_behind_and_a_fourth_has_to_wait),
	T(fl_11_one_that_has_left_stays_for_those_behind_it),
	T(one_whose_newer_one_dies_answers_for_its_addresses),
	T(wherever_the_newer_one_ends_the_older_one_serves_on),
	T(one_that_does_not_begin_in_time_is_told_that_it_is_too_late),
	T(one_that_wakes_too_late_takes_nothing),
	T(fl_12_the_socket_leads_to_one_that_serves_at_every_moment),
	T(fl_177_resources_come_first), T(fl_70_listeners_are_passed_on_from_process_to_process),
	T(fl_71_a_newer_one_of_an_earlier_version_is_told_of_no_listener),
	T(fl_17_what_the_older_one_knows_comes_with_the_place),
	T(fl_09_a_newer_one_that_speaks_nonsense_is_out), T(fl_10_only_one_takes_over_at_a_time),
	T(what_the_older_one_says_and_is_not_known_changes_nothing),
	T(once_it_serves_a_refusal_alone_ends_it), T(fl_10_one_that_is_busy_is_not_taken_over),
	T(fl_171_who_says_nothing_changes_nothing),
	T(fl_172_without_room_for_other_names_nobody_takes_them),
	T(one_whose_older_one_dies_takes_the_place_once_it_could_serve),
	T(one_that_hangs_is_not_waited_for), T(fl_01_without_one_that_serves_the_first_begins),
	T(fl_01_another_user_is_not_talked_to))
