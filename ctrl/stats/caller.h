// SPDX-License-Identifier: Apache-2.0
// Who is at the other end of a connection of the stats socket, as the kernel tells it (unix(7)),
// and which commands that lets through (OPS-70).
// Thread: ctrl.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Each may do what those before it may.
enum stats_level {
	STATS_USER, // looks
	STATS_OPERATOR, // changes what goes where, for now
	STATS_ADMIN, // changes what the daemon is
};

struct stats_caller {
	enum stats_level level;
	uid_t uid; // when it connected, as all of this
	pid_t pid;
};

// Whom shunt.yaml gives a level: ids of groups, or -1 for nobody.
struct stats_groups {
	int64_t operators, admins;
};

const char *stats_level_name(enum stats_level); // a constant text
// The level of a process with this user and these groups, for a daemon that runs as `own`.
enum stats_level stats_level_of(
	const struct stats_groups *, uid_t own, uid_t uid, const gid_t *gids, size_t n_gids);
// fd: a connected Unix socket. Of whom the kernel does not tell, or without memory for what it
// tells, the level is STATS_USER.
struct stats_caller stats_caller_of(int fd, const struct stats_groups *);

#define STATS_WHO_MAX 128
// "user=… uid=… pid=…", for a line of the log. The name is that of /etc/passwd alone, since a
// directory might keep the control thread waiting; "" = it is not there. Returns text.
const char *stats_caller_print(const struct stats_caller *, char text[STATS_WHO_MAX]);
// Tells the log, and so the events, who did what, once it is done (OPS-71). What it led to has
// lines of its own.
void stats_caller_tell(const struct stats_caller *, const char *command);
