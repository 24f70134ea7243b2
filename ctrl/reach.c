// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reach.h"

#include "ctrl/conf/config.h"
#include "ctrl/listen_port.h"
#include "ctrl/loop.h"
#include "ctrl/metrics_start.h"
#include "ctrl/stats_start.h"
#include "ctrl/status/status_server.h"
#include "ctrl/status_start.h"
#include "lb/base/log.h"

#include <errno.h>

// Those that are not open yet.
int reach_open_ports(struct reach *r, struct lb_err *err)
{
	const struct reach_conf *c = &r->conf;
	int rc = r->status
	                 ? 0
	                 : status_start(c->config, c->bootstrap, c->xds, c->loop, &r->status, err);
	return rc || r->metrics
	               ? rc
	               : metrics_start(c->config, c->loop, c->show, c->slice, &r->metrics, err);
}

static void close_ports(struct reach *r)
{
	metrics_stop(r->metrics);
	if (r->status)
		loop_unwatch_fd(r->conf.loop, status_server_fd(r->status));
	status_server_free(r->status);
	r->metrics = NULL;
	r->status = NULL;
}

// Ports that a newer process may share with us could be had beside a stranger, too.
static int expect_free(const struct config *c, struct lb_err *err)
{
	if (!c->takeover_socket)
		return 0;
	if (c->csds && listen_port_check(c->csds->listen, err))
		return lb_err_within(err, "csds.listen");
	return c->metrics && listen_port_check(c->metrics->listen, err)
	               ? lb_err_within(err, "metrics.listen")
	               : 0;
}

int reach_start(
	struct reach *r, const struct reach_conf *conf, bool is_in_front, struct lb_err *err)
{
	*r = (struct reach){.conf = *conf};
	r->stats = stats_start(conf->config->stats, conf->show, conf->loop, &conf->slice,
		is_in_front ? 0 : conf->generation, err);
	if (!r->stats)
		return -EINVAL;
	if (!is_in_front)
		return 0;
	return expect_free(conf->config, err) ? -EINVAL : reach_open_ports(r, err);
}

void reach_share(struct reach *r)
{
	struct lb_err err = {""};
	if (stats_share_names(r->stats, r->conf.config->stats, r->conf.generation, &err) != 0)
		log_warn("stats socket", "error=%s", log_quote(err.text));
}

int reach_take_names(struct reach *r, struct lb_err *err)
{
	return stats_take_names(r->stats, r->conf.config->stats, err);
}

void reach_step_back(struct reach *r)
{
	close_ports(r);
	stats_leave_names(r->stats, r->conf.config->stats);
}

void reach_stop(struct reach *r)
{
	metrics_stop(r->metrics);
	status_server_free(r->status);
	stats_stop(r->stats);
	*r = (struct reach){0};
}
