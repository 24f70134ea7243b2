// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats_start.h"

#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/stats/haproxy.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats/stats_server.h"

#include <errno.h>
#include <stdlib.h>

struct stats_sockets {
	struct stats_server *own;
	struct haproxy *haproxy; // NULL = off, as its server
	struct stats_server *haproxys;
};

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
	struct loop *loop, const struct slice *slice, struct lb_err *reterr)
{
	const struct stats_server_conf conf = {
		.base = loop_base(loop),
		.path = c->socket,
		.mode = c->mode_bits,
		.groups = {c->operators_gid, c->admins_gid},
		.answer = show_answer,
		.ctx = show,
	};
	s->own = stats_server_new(&conf, reterr);
	if (!s->own)
		return lb_err_within(reterr, "stats.socket");
	return c->haproxy_socket ? open_haproxys(s, show, &conf, c->haproxy_socket, slice, reterr)
	                         : 0;
}

struct stats_sockets *stats_start(const struct config_stats *c, struct show *show,
	struct loop *loop, const struct slice *slice, struct lb_err *reterr)
{
	struct stats_sockets *s = calloc(1, sizeof(*s));
	if (!s) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	if (open_all(s, c, show, loop, slice, reterr) == 0)
		return s;
	stats_stop(s);
	return NULL;
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
