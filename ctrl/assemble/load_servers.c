// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/load_servers.h"

#include "ctrl/assemble/load_report.h"
#include "ctrl/xds/bootstrap/bootstrap.h"

#include <stdlib.h>

int load_servers_init(struct load_servers *all)
{
	return xds_node_init(&all->node, all->conf->bootstrap, all->conf->user_agent_version);
}

void load_servers_fini(struct load_servers *all)
{
	for (struct load_server *s = all->first, *next; s; s = next) {
		next = s->next;
		xds_lrs_free(s->lrs);
		free(s);
	}
	xds_node_fini(&all->node);
}

bool load_servers_finish(struct load_servers *all)
{
	bool is_over = true;
	for (struct load_server *s = all->first; s; s = s->next)
		is_over &= xds_lrs_finish(s->lrs);
	return is_over;
}

static void on_harvest(void *ctx)
{
	const struct load_server *s = ctx;
	s->all->harvest(s->all->ctx, s);
}

static void on_lrs_log(void *ctx, const char *line)
{
	const struct load_report_conf *conf = ((const struct load_server *)ctx)->all->conf;
	if (conf->log)
		conf->log(conf->log_ctx, line);
}

// NULL = out of memory.
static struct load_server *server_new(
	struct load_servers *all, const struct xds_server_conf *server)
{
	struct load_server *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	*s = (struct load_server){.all = all, .conf = server};
	s->lrs = xds_lrs_new(&(struct xds_lrs_conf){
		.server = server,
		.transport = all->conf->transport,
		.node = &all->node,
		.wheel = all->conf->wheel,
		.rand = all->conf->rand,
		.harvest = on_harvest,
		.log = on_lrs_log,
		.ctx = s,
	});
	if (s->lrs)
		return s;
	free(s);
	return NULL;
}

struct load_server *load_servers_obtain(
	struct load_servers *all, const struct xds_server_conf *server)
{
	struct load_server **at = &all->first;
	while (*at && (*at)->conf != server)
		at = &(*at)->next;
	if (!*at)
		*at = server_new(all, server);
	return *at;
}

void load_servers_info(const struct load_servers *all, struct xds_lrs_info *sum)
{
	struct xds_lrs_info one;
	*sum = (struct xds_lrs_info){
		.uri = all->conf->bootstrap->servers[0].uri, .state = XDS_SERVER_IDLE, .error = ""};
	for (const struct load_server *s = all->first; s; s = s->next) {
		xds_lrs_info(s->lrs, &one);
		bool is_shown = s == all->first || (one.n_clusters && !sum->n_clusters);
		sum->uri = is_shown ? one.uri : sum->uri;
		sum->state = is_shown ? one.state : sum->state;
		sum->error = is_shown ? one.error : sum->error;
		sum->interval_ns = is_shown ? one.interval_ns : sum->interval_ns;
		sum->n_clusters += one.n_clusters;
		sum->n_streams += one.n_streams;
		sum->n_responses += one.n_responses;
		sum->n_undecodable += one.n_undecodable;
		sum->n_reports += one.n_reports;
		sum->n_given_up += one.n_given_up;
	}
}
