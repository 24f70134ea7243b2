// SPDX-License-Identifier: Apache-2.0
#include "ctrl/frontends.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

struct frontend {
	struct frontends *all;
	uint32_t index;
	struct depmgr *depmgr; // owned
};

struct frontends {
	struct frontends_conf conf;
	uint32_t n;
	struct frontend list[];
};

int frontends_name_listeners(const struct config *config, const struct xds_bootstrap *bootstrap,
	char ***ret, struct lb_err *err)
{
	char **names = calloc(config->n_frontends, sizeof(*names));
	if (!names)
		return lb_err_set(err, "out of memory");
	for (uint32_t i = 0; i < config->n_frontends; i++) {
		int rc = xds_bootstrap_listener_name(
			bootstrap, config->frontends[i].target, &names[i], err);
		if (!rc)
			continue;
		frontends_free_names(config, names);
		return rc == -ENOMEM ? rc // it has no text
		                     : lb_err_within(err, "frontends[%u].target", i);
	}
	*ret = names;
	return 0;
}

void frontends_free_names(const struct config *config, char **names)
{
	for (uint32_t i = 0; names && i < config->n_frontends; i++)
		free(names[i]);
	free(names);
}

static void on_config(void *ctx, struct xds_config *config)
{
	struct frontend *f = ctx;
	assembler_update(f->all->conf.assembler, f->index, config);
}

static void on_config_error(void *ctx, const char *text)
{
	struct frontend *f = ctx;
	log_warn("frontend without configuration", "frontend=%s error=%s",
		log_quote(f->all->conf.config->frontends[f->index].name), log_quote(text));
	assembler_fail(f->all->conf.assembler, f->index, text);
}

static bool on_in_use(void *ctx, const char *cluster)
{
	const struct frontend *f = ctx;
	return assembler_in_use(f->all->conf.assembler, f->index, cluster);
}

// False = out of memory.
static bool start(struct frontend *f)
{
	const struct frontends_conf *conf = &f->all->conf;
	struct depmgr_conf deps = {
		.client = conf->xds,
		.dns = conf->dns,
		.wheel = conf->wheel,
		.listener_name = conf->listener_names[f->index],
		.authority = conf->config->frontends[f->index].authority,
		.node_id = conf->node_id,
		.on_update = on_config,
		.on_error = on_config_error,
		.in_use = on_in_use,
		.ctx = f,
	};
	f->depmgr = depmgr_new(&deps);
	return f->depmgr;
}

struct frontends *frontends_new(const struct frontends_conf *conf)
{
	uint32_t n = conf->config->n_frontends;
	struct frontends *all = calloc(1, sizeof(*all) + n * sizeof(all->list[0]));
	if (!all)
		return NULL;
	all->conf = *conf;
	for (; all->n < n; all->n++) {
		all->list[all->n] = (struct frontend){.all = all, .index = all->n};
		if (!start(&all->list[all->n])) {
			frontends_free(all);
			return NULL;
		}
	}
	return all;
}

void frontends_free(struct frontends *all)
{
	for (uint32_t i = 0; all && i < all->n; i++)
		depmgr_free(all->list[i].depmgr);
	free(all);
}

void frontends_reresolve(struct frontends *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		depmgr_reresolve(all->list[i].depmgr);
}

const char *frontends_waiting(const struct frontends *all, uint32_t index)
{
	return depmgr_waiting(all->list[index].depmgr);
}

const char *frontends_refused(const struct frontends *all, uint32_t index)
{
	return depmgr_refused(all->list[index].depmgr);
}
