// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_stats.h"

#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define PATH_MOST (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define GENERATION_MOST (sizeof(".4294967295") - 1)

// A group's number, or a name in /etc/group: no directory is asked, which might keep a reload
// waiting.
static int read_group(const char *text, const char *field, int64_t *ret, struct lb_err *reterr)
{
	*ret = -1;
	if (!text)
		return 0;
	if (strspn(text, "0123456789") == strlen(text)) {
		errno = 0;
		unsigned long long n = strtoull(text, NULL, 10);
		if (errno || n >= (gid_t)-1)
			return lb_err_set(reterr, "%s: %s is not a valid group id", field, text);
		*ret = (int64_t)n;
		return 0;
	}
	FILE *in = fopen("/etc/group", "re");
	const struct group *g;
	while (in && (g = fgetgrent(in)))
		if (strcmp(g->gr_name, text) == 0)
			*ret = g->gr_gid;
	if (in)
		fclose(in);
	return *ret >= 0 ? 0 : lb_err_set(reterr, "%s: /etc/group has no '%s'", field, text);
}

// A process that is not in front has its generation behind the name.
static int check_path(
	const struct config *c, const char *field, const char *path, struct lb_err *reterr)
{
	if (!c->takeover_socket || !path || strlen(path) <= PATH_MOST - GENERATION_MOST)
		return 0;
	return lb_err_set(reterr, "%s: longer than %zu bytes, which takeover_socket leaves it",
		field, PATH_MOST - GENERATION_MOST);
}

int config_check_stats(struct config *c, struct lb_err *reterr)
{
	if (!c->stats)
		c->stats = calloc(1, sizeof(*c->stats));
	if (!c->stats)
		return lb_err_set(reterr, "out of memory");
	if (!c->stats->socket)
		c->stats->socket = strdup(STATS_DEFAULT_SOCKET);
	if (!c->stats->mode)
		c->stats->mode = strdup("0660");
	if (!c->stats->socket || !c->stats->mode)
		return lb_err_set(reterr, "out of memory");
	if (check_path(c, "stats.socket", c->stats->socket, reterr) ||
		check_path(c, "stats.haproxy_socket", c->stats->haproxy_socket, reterr))
		return -EINVAL;
	char *end;
	unsigned long bits = strtoul(c->stats->mode, &end, 8);
	if (*end || bits > 0777)
		return lb_err_set(reterr, "stats.mode: '%s' is not an octal mode like \"0660\"",
			c->stats->mode);
	c->stats->mode_bits = (unsigned)bits;
	int ret = read_group(
		c->stats->operators, "stats.operators", &c->stats->operators_gid, reterr);
	return ret ? ret
	           : read_group(c->stats->admins, "stats.admins", &c->stats->admins_gid, reterr);
}
