// SPDX-License-Identifier: Apache-2.0
#include "ctrl/reach.h"

#include "ctrl/conf/config.h"
#include "ctrl/listen_port.h"
#include "ctrl/loop.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/metrics_start.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats_start.h"
#include "ctrl/status_start.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

// The socket of a port: -1 with err.
static int listener_at(
	struct reach *r, const char *address, bool beside, const char *field, struct lb_err *err)
{
	int fd = listen_ports_take(&r->inherited, address);
	if (fd >= 0)
		return fd;
	// Our address may be a part of what the older process has, or the whole.
	listen_ports_let(&r->inherited, true);
	fd = listen_port_open(address, beside || r->inherited.n > 0, err);
	if (fd < 0)
		lb_err_within(err, "%s", field);
	return fd;
}

// Of the listener, which it takes.
static int start_status(struct reach *r, const struct config_csds *csds, int fd,
	struct status_port **ret, struct lb_err *err)
{
	const struct status_start_conf conf = {
		.config = csds,
		.bootstrap = r->conf.bootstrap,
		.xds = r->conf.xds,
		.credentials = r->conf.credentials,
		.loop = r->conf.loop,
		.counts = show_status_port(r->conf.show),
	};
	return status_start(fd, &conf, ret, err);
}

static int open_status(struct reach *r, bool beside, struct lb_err *err)
{
	const struct config_csds *csds = r->conf.config->csds;
	if (r->status || !csds)
		return 0;
	int fd = listener_at(r, csds->listen, beside, "csds.listen", err);
	return fd < 0 ? -EINVAL : start_status(r, csds, fd, &r->status, err);
}

static int open_metrics(struct reach *r, bool beside, struct lb_err *err)
{
	const struct reach_conf *c = &r->conf;
	if (r->metrics || !c->config->metrics)
		return 0;
	int fd = listener_at(r, c->config->metrics->listen, beside, "metrics.listen", err);
	return fd < 0 ? -EINVAL
	              : metrics_start(c->config, fd, c->loop, c->show, c->slice, &r->metrics, err);
}

int reach_open_ports(struct reach *r, bool beside, struct lb_err *err)
{
	int rc = open_status(r, beside, err);
	return rc ? rc : open_metrics(r, beside, err);
}

// From here on nobody else needs to listen there.
static void begin(struct reach *r)
{
	if (r->status) {
		listen_port_let(status_listener(r->status), false);
		status_begin(r->status);
	}
	if (r->metrics) {
		listen_port_let(metrics_listener(r->metrics), false);
		metrics_begin(r->metrics);
	}
	listen_ports_close(&r->inherited);
}

int reach_start(
	struct reach *r, const struct reach_conf *conf, bool is_in_front, struct lb_err *err)
{
	*r = (struct reach){.conf = *conf};
	r->stats = stats_start(conf->config->stats, conf->show, conf->loop, &conf->slice,
		is_in_front ? 0 : conf->generation, err);
	r->ready.path = conf->config->ready_file;
	r->is_in_front = is_in_front;
	r->follows = !is_in_front;
	if (!r->stats)
		return -EINVAL;
	reach_look(r);
	if (!is_in_front)
		return 0;
	int rc = reach_open_ports(r, false, err);
	if (rc == 0)
		begin(r);
	return rc;
}

int reach_share(struct reach *r, bool opens, struct lb_err *err)
{
	int fds[LISTEN_PORTS_MAX];
	uint32_t n = opens ? reach_listeners(r, fds) : 0;
	for (uint32_t i = 0; i < n; i++)
		listen_port_let(fds[i], true);
	return stats_share_names(r->stats, r->conf.config->stats, r->conf.generation, err);
}

uint32_t reach_listeners(const struct reach *r, int ret[LISTEN_PORTS_MAX])
{
	uint32_t n = 0;
	if (r->status)
		ret[n++] = status_listener(r->status);
	if (r->metrics)
		ret[n++] = metrics_listener(r->metrics);
	return n;
}

void reach_inherit(struct reach *r, int listener)
{
	listen_ports_add(&r->inherited, listener);
}

int reach_take_names(struct reach *r, struct lb_err *err)
{
	begin(r);
	r->is_in_front = true;
	return stats_take_names(r->stats, r->conf.config->stats, err);
}

void reach_look(struct reach *r)
{
	struct show *show = r->conf.show;
	if (!r->ready.path || !r->is_in_front ||
		(r->follows && strcmp(show_state(show), "starting") == 0))
		return;
	const struct scrape_conf *c = show_scrape_conf(show);
	ready_file_set(&r->ready, c->is_ready(c->ctx), twheel_now(loop_wheel(r->conf.loop)));
	show_set_ready_file(show, r->ready.path, r->ready.error);
}

void reach_set_serving(struct reach *r, bool serving)
{
	reach_look(r);
	r->serving = serving;
	status_set_serving(r->status, serving);
}

// For the same address the socket that there is: who waits there is not hung up on. own: -1 = none.
static int next_listener(const struct reach *r, const char *address, int own, struct lb_err *err)
{
	int fd;
	if (own >= 0 && strcmp(r->conf.config->csds->listen, address) == 0) {
		fd = fcntl(own, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			lb_err_set(err, "%s: %s", address, strerror(errno));
	} else { // its address may be a part of what we have, or the whole
		if (own >= 0)
			listen_port_let(own, true);
		fd = listen_port_open(address, own >= 0, err);
	}
	if (fd < 0)
		lb_err_within(err, "csds.listen");
	return fd;
}

int reach_prepare_status(struct reach *r, const struct config *new, struct lb_err *err)
{
	if (status_check_providers(new, r->conf.bootstrap, err))
		return -EINVAL;
	if (!r->is_in_front || !new->csds)
		return 0;
	int own = r->status ? status_listener(r->status) : -1;
	int fd = next_listener(r, new->csds->listen, own, err);
	if (fd >= 0 && start_status(r, new->csds, fd, &r->next_status, err) == 0 &&
		status_await(r->next_status, err) == 0)
		return 0;
	status_stop(r->next_status);
	r->next_status = NULL;
	if (own >= 0)
		listen_port_let(own, false);
	return -EINVAL;
}

void reach_change_status(struct reach *r)
{
	struct status_port *before = r->status;
	if (!r->is_in_front)
		return;
	if (before)
		status_leave(before);
	r->status = r->next_status;
	r->next_status = NULL;
	if (r->status) {
		listen_port_let(status_listener(r->status), false);
		status_set_serving(r->status, r->serving);
		status_begin(r->status);
	}
	status_stop(before);
}

void reach_step_back(struct reach *r)
{
	r->is_in_front = false;
	if (r->status)
		status_leave(r->status);
	if (r->metrics)
		metrics_leave(r->metrics);
	r->left_status = r->status;
	r->left_metrics = r->metrics;
	r->status = NULL;
	r->metrics = NULL;
	stats_leave_names(r->stats, r->conf.config->stats);
}

void reach_send_away(struct reach *r)
{
	status_stop(r->left_status);
	r->left_status = NULL;
}

void reach_stop(struct reach *r)
{
	if (r->is_in_front)
		ready_file_end(&r->ready);
	metrics_stop(r->metrics);
	metrics_stop(r->left_metrics);
	status_stop(r->status);
	status_stop(r->left_status);
	listen_ports_close(&r->inherited);
	stats_stop(r->stats);
	*r = (struct reach){0};
}
