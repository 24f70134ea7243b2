// SPDX-License-Identifier: Apache-2.0
// Which level a process has on the stats socket.
#include "ctrl/stats/caller.h"
#include "tests/support/check.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define OWN 990
#define OPERATORS 50
#define ADMINS 60

// OPS-70
static void a_level_comes_from_user_or_groups(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gids[3];
		size_t n;
		enum stats_level level;
	} rows[] = {
		{0, {0}, 0, STATS_ADMIN},
		{OWN, {7}, 1, STATS_ADMIN},
		{1000, {7, 8}, 2, STATS_USER},
		{1000, {OPERATORS}, 1, STATS_OPERATOR},
		{1000, {7, 8, OPERATORS}, 3, STATS_OPERATOR},
		{1000, {OPERATORS, ADMINS}, 2, STATS_ADMIN},
		{OPERATORS, {7}, 1, STATS_USER},
	};
	static const struct stats_groups groups = {OPERATORS, ADMINS}, nobody = {-1, -1};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (stats_level_of(&groups, OWN, rows[i].uid, rows[i].gids, rows[i].n) !=
			rows[i].level)
			fail_msg("row %zu", i);
	const gid_t all[] = {0, (gid_t)-1, OPERATORS, ADMINS};
	assert_int_equal(stats_level_of(&nobody, OWN, 1000, all, 4), STATS_USER);
}

static void a_peer_is_who_the_kernel_says(void **state)
{
	int fds[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	const struct stats_groups groups = {-1, -1};
	struct stats_caller c = stats_caller_of(fds[0], &groups);
	assert_int_equal(c.uid, getuid());
	assert_int_equal(c.pid, getpid());
	assert_int_equal(c.level, STATS_ADMIN);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(stats_caller_of(-1, &groups).level, STATS_USER); // the kernel tells none
}

static void who_it_is_reads_as_values_of_a_log_line(void **state)
{
	char text[STATS_WHO_MAX];
	const struct stats_caller root = {.uid = 0, .pid = 5},
				  stranger = {.uid = 3999999999, .pid = 6};
	assert_string_equal(stats_caller_print(&root, text), "user=\"root\" uid=0 pid=5");
	assert_string_equal(stats_caller_print(&stranger, text), "user=\"\" uid=3999999999 pid=6");
}

RUN_SUITE("ctrl/caller", cmocka_unit_test(a_level_comes_from_user_or_groups),
	cmocka_unit_test(a_peer_is_who_the_kernel_says),
	cmocka_unit_test(who_it_is_reads_as_values_of_a_log_line))
