// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/stats/haproxy.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct stats_sockets {
	struct stats_server *own;
	struct haproxy *haproxy; // NULL = off, as its server
	struct stats_server *haproxys;
};

#define MAX_PATH 128 // more than a socket's

static const char *name_of(const char *path, uint32_t generation, char ret[MAX_PATH])
{
	if (generation)
		snprintf(ret, MAX_PATH, "%s.%" PRIu32, path, generation);
	else
		snprintf(ret, MAX_PATH, "%s", path);
	return ret;
}

static int open_haproxys(struct stats_sockets *s, struct show *show,
	const struct stats_server_conf *own, const char *path, const struct slice *slice,
	struct lb_err *reterr)
{
	s->haproxy = haproxy_new(show, slice);
	if (!s->haproxy)
		return lb_err_set(reterr, "out of memory");
	struct stats_server_conf conf = *own;
	conf.framing = STATS_HAPROXY;
	conf.path = path;
	conf.answer = haproxy_answer;
	conf.ctx = s->haproxy;
	s->haproxys = stats_server_new(&conf, reterr);
	return s->haproxys ? 0 : lb_err_within(reterr, "stats.haproxy_socket");
}

static int open_all(struct stats_sockets *s, const struct config_stats *c, struct show *show,
	struct loop *loop, const struct slice *slice, uint32_t generation, struct lb_err *reterr)
{
	char name[MAX_PATH];
	const struct stats_server_conf conf = {
		.base = loop_base(loop),
		.path = name_of(c->socket, generation, name),
		.mode = c->mode_bits,
		.groups = {c->operators_gid, c->admins_gid},
		.answer = show_answer,
		.ctx = show,
		.counts = show_sockets(show),
	};
	s->own = stats_server_new(&conf, reterr);
	if (!s->own)
		return lb_err_within(reterr, "stats.socket");
	if (!c->haproxy_socket)
		return 0;
	return open_haproxys(
		s, show, &conf, name_of(c->haproxy_socket, generation, name), slice, reterr);
}

struct stats_sockets *stats_start(const struct config_stats *c, struct show *show,
	struct loop *loop, const struct slice *slice, uint32_t generation, struct lb_err *reterr)
{
	struct stats_sockets *s = calloc(1, sizeof(*s));
	if (!s) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	if (open_all(s, c, show, loop, slice, generation, reterr) == 0)
		return s;
	stats_stop(s);
	return NULL;
}

int stats_take_names(struct stats_sockets *s, const struct config_stats *c, struct lb_err *reterr)
{
	if (stats_server_rename(s->own, c->socket, reterr) != 0)
		return lb_err_within(reterr, "stats.socket");
	if (s->haproxys && stats_server_rename(s->haproxys, c->haproxy_socket, reterr) != 0)
		return lb_err_within(reterr, "stats.haproxy_socket");
	return 0;
}

int stats_share_names(struct stats_sockets *s, const struct config_stats *c, uint32_t generation,
	struct lb_err *reterr)
{
	char name[MAX_PATH];
	if (stats_server_share(s->own, name_of(c->socket, generation, name), reterr) != 0)
		return lb_err_within(reterr, "stats.socket");
	if (s->haproxys && stats_server_share(s->haproxys,
				   name_of(c->haproxy_socket, generation, name), reterr) != 0)
		return lb_err_within(reterr, "stats.haproxy_socket");
	return 0;
}

void stats_leave_names(struct stats_sockets *s, const struct config_stats *c)
{
	stats_server_leave(s->own, c->socket);
	if (s->haproxys)
		stats_server_leave(s->haproxys, c->haproxy_socket);
}

void stats_stop(struct stats_sockets *s)
{
	if (!s)
		return;
	stats_server_free(s->haproxys);
	haproxy_free(s->haproxy);
	stats_server_free(s->own);
	free(s);
}
