// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/caller.h"

#include "lb/base/log.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_NAME 32 // as useradd(8) has it
#define MAX_PASSWD_LINE 4096

const char *stats_level_name(enum stats_level level)
{
	static const char *const names[] = {
		[STATS_USER] = "user",
		[STATS_OPERATOR] = "operator",
		[STATS_ADMIN] = "admin",
	};
	return names[level];
}

static bool is_in(int64_t group, const gid_t *gids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (group == (int64_t)gids[i])
			return true;
	return false;
}

enum stats_level stats_level_of(
	const struct stats_groups *g, uid_t own, uid_t uid, const gid_t *gids, size_t n_gids)
{
	if (uid == 0 || uid == own || is_in(g->admins, gids, n_gids))
		return STATS_ADMIN;
	return is_in(g->operators, gids, n_gids) ? STATS_OPERATOR : STATS_USER;
}

// The supplementary groups behind the one that is there already. NULL = out of memory, or the
// kernel does not tell.
static gid_t *groups_of(int fd, gid_t first, size_t *ret_n)
{
	socklen_t len = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &len) != 0 && errno != ERANGE)
		return NULL;
	gid_t *list = malloc(sizeof(*list) + len);
	if (!list)
		return NULL;
	list[0] = first;
	if (len && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, list + 1, &len) != 0)
		len = 0;
	*ret_n = 1 + len / sizeof(*list);
	return list;
}

struct stats_caller stats_caller_of(int fd, const struct stats_groups *g)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return (struct stats_caller){.level = STATS_USER, .uid = (uid_t)-1};
	size_t n = 0;
	gid_t *gids = groups_of(fd, peer.gid, &n);
	struct stats_caller c = {
		.level = stats_level_of(g, geteuid(), peer.uid, gids, n),
		.uid = peer.uid,
		.pid = peer.pid,
	};
	free(gids);
	return c;
}

static void find_name(uid_t uid, char ret[MAX_NAME + 1])
{
	char line[MAX_PASSWD_LINE];
	struct passwd entry, *found;
	FILE *in = fopen("/etc/passwd", "re");
	ret[0] = 0;
	while (in && fgetpwent_r(in, &entry, line, sizeof(line), &found) == 0) {
		if (found->pw_uid != uid)
			continue;
		snprintf(ret, MAX_NAME + 1, "%s", found->pw_name);
		break;
	}
	if (in)
		fclose(in);
}

const char *stats_caller_print(const struct stats_caller *c, char text[STATS_WHO_MAX])
{
	char name[MAX_NAME + 1];
	find_name(c->uid, name);
	snprintf(text, STATS_WHO_MAX, "user=%s uid=%u pid=%d", log_quote(name), c->uid, c->pid);
	return text;
}

void stats_caller_tell(const struct stats_caller *c, const char *command)
{
	char who[STATS_WHO_MAX];
	// Who first: a long command is cut where events are kept.
	log_info("operator's action", "%s command=%s", stats_caller_print(c, who),
		log_quote(command));
}
