// SPDX-License-Identifier: Apache-2.0
#include "ctrl/frontends.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/chain_places.h"
#include "ctrl/chains.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/listeners.h"
#include "ctrl/res/listener.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

// A36-64
static int check_wildcard(
	const struct config *config, const struct xds_bootstrap *bootstrap, struct lb_err *err)
{
	bool is_wildcard = config_by_listeners(config) < config->n_frontends;
	if (!is_wildcard || bootstrap->n_servers < 2)
		return 0;
	return lb_err_set(err, "listeners: wildcard has one xDS server, and the bootstrap has %u",
		bootstrap->n_servers);
}

int frontend_name_listener(const struct config_frontend *f, const struct xds_bootstrap *bootstrap,
	char **ret, struct lb_err *err)
{
	const struct ip_port place = {f->address_ip, f->port};
	if (f->by_listeners || f->row == CONFIG_ROW_SPARE)
		return 0; // A36-64
	if (!f->target)
		return xds_bootstrap_server_listener_name(bootstrap, f->listener, &place, ret, err);
	int rc = xds_bootstrap_listener_name(bootstrap, f->target, ret, err);
	return rc && rc != -ENOMEM ? lb_err_within(err, "target") : rc;
}

int frontends_name_listeners(const struct config *config, const struct xds_bootstrap *bootstrap,
	char ***ret, struct lb_err *err)
{
	if (check_wildcard(config, bootstrap, err))
		return -EINVAL;
	char **names = calloc(config->n_frontends, sizeof(*names));
	if (!names)
		return lb_err_set(err, "out of memory");
	for (uint32_t i = 0; i < config->n_frontends; i++) {
		int rc = frontend_name_listener(&config->frontends[i], bootstrap, &names[i], err);
		if (!rc)
			continue;
		frontends_free_names(config, names);
		return rc == -ENOMEM ? rc // it has no text
		                     : lb_err_within(err, "frontends[%u]", i);
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

static int check_tls(const struct config_frontend_tls *t, const struct xds_bootstrap *bootstrap,
	struct lb_err *err)
{
	if (xds_bootstrap_check_provider(bootstrap, t->certificate, XDS_CERT_OWN, err))
		return lb_err_within(err, "tls.certificate");
	if (t->ca && xds_bootstrap_check_provider(bootstrap, t->ca, XDS_CERT_CA, err))
		return lb_err_within(err, "tls.ca");
	return 0;
}

int frontends_check_providers(
	const struct config *config, const struct xds_bootstrap *bootstrap, struct lb_err *err)
{
	for (uint32_t i = 0; i < config->n_frontends; i++) {
		const struct config_frontend_tls *t = config->frontends[i].tls;
		if (t && check_tls(t, bootstrap, err))
			return lb_err_within(err, "frontends[%u]", i);
	}
	return 0;
}

// One with a target

static void on_config(void *ctx, struct xds_config *config)
{
	struct frontend_source *s = ctx;
	struct frontend *f = s->of;
	if (s == f->source) {
		assembler_update(f->all->conf.assembler, f->index, config);
		return;
	}
	assembler_update_next(f->all->conf.assembler, f->index, config);
	frontends_look_soon(f->all);
}

static void on_config_error(void *ctx, const char *text)
{
	struct frontend_source *s = ctx;
	struct frontend *f = s->of;
	log_warn("frontend without configuration", "frontend=%s serves=%s error=%s",
		log_quote(f->all->conf.config->frontends[f->index].name),
		s == f->source ? "nothing" : "as-before", log_quote(text));
	if (s == f->source)
		assembler_fail(f->all->conf.assembler, f->index, text);
	else
		assembler_fail_next(f->all->conf.assembler, f->index, text);
}

static bool on_in_use(void *ctx, const char *cluster)
{
	const struct frontend_source *s = ctx;
	const struct frontend *f = s->of;
	return s == f->source && assembler_in_use(f->all->conf.assembler, f->index, cluster);
}

struct frontend_source *frontend_source_new(
	struct frontend *f, const struct config_frontend *c, const char *listener_name)
{
	const struct frontends_conf *conf = &f->all->conf;
	struct frontend_source *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->of = f;
	struct depmgr_conf deps = {
		.client = conf->xds,
		.dns = conf->dns,
		.wheel = conf->wheel,
		.listener_name = listener_name,
		.authority = c->authority,
		.node_id = conf->node_id,
		.on_update = on_config,
		.on_error = on_config_error,
		.in_use = on_in_use,
		.ctx = s,
	};
	s->depmgr = depmgr_new(&deps);
	if (s->depmgr)
		return s;
	free(s);
	return NULL;
}

void frontend_source_free(struct frontend_source *s)
{
	if (!s)
		return;
	depmgr_free(s->depmgr);
	free(s);
}

// One with a socket Listener

// A36-31. The text is for operators; "" = it is the frontend's.
static void check(void *ctx, const struct res_listener *l, struct lb_err *ret)
{
	const struct frontend *of = ctx;
	const struct config_frontend *f = &of->all->conf.config->frontends[of->index];
	ret->text[0] = 0;
	if (!l->socket)
		lb_err_set(ret, "listener \"%s\" is not a socket listener", l->base.name);
	else if (!res_socket_has(l->socket, &(struct ip_port){f->address_ip, f->port}))
		lb_err_set(ret, "listener \"%s\" has another address: %s, port %u", l->base.name,
			l->socket->host, l->socket->address.port);
	else if (l->socket->filters.proxy_protocol && !f->proxy_protocol) // PP-09
		lb_err_set(ret,
			"listener \"%s\" wants PROXY headers: proxy_protocol of the frontend has "
			"to say whom from",
			l->base.name);
}

static void publish(void *ctx, struct lb_chain_set *set, const char *error)
{
	const struct frontend *f = ctx;
	assembler_set_chains(f->all->conf.assembler, f->index, set, error);
}

static struct chains *start_chains(struct frontend *f)
{
	const struct chains_conf conf = {
		.env = &f->all->conf,
		.places = f->all->places,
		.frontend = f->index,
		.listener = f->all->conf.listener_names[f->index],
		.check = check,
		.publish = publish,
		.ctx = f,
	};
	return chains_new(&conf);
}

// All of them

bool frontend_start(struct frontend *f)
{
	const struct frontends_conf *conf = &f->all->conf;
	const struct config_frontend *c = &conf->config->frontends[f->index];
	if (c->row == CONFIG_ROW_SPARE)
		return true;
	if (c->by_listeners) {
		f->all->listeners = listeners_new(conf, f->all->places, f->index);
		return f->all->listeners;
	}
	if (!c->target) {
		f->chains = start_chains(f);
		return f->chains;
	}
	f->source = frontend_source_new(f, c, conf->listener_names[f->index]);
	return f->source;
}

struct frontends *frontends_new(const struct frontends_conf *conf)
{
	uint32_t n = conf->config->n_frontends;
	struct frontends *all = calloc(1, sizeof(*all) + n * sizeof(all->list[0]));
	if (!all)
		return NULL;
	all->conf = *conf;
	all->look.fire = frontends_look;
	all->places = chain_places_new(conf->config);
	if (!all->places) {
		frontends_free(all);
		return NULL;
	}
	for (; all->n < n; all->n++) {
		all->list[all->n] = (struct frontend){.all = all, .index = all->n};
		if (!frontend_start(&all->list[all->n])) {
			all->n++;
			frontends_free(all);
			return NULL;
		}
	}
	return all;
}

void frontends_free(struct frontends *all)
{
	if (!all)
		return;
	twheel_cancel(all->conf.wheel, &all->look);
	frontends_abandon(all);
	for (uint32_t i = 0; i < all->n; i++) {
		frontend_change_free(all, all->list[i].next);
		frontend_source_free(all->list[i].source);
		chains_free(all->list[i].chains);
	}
	listeners_free(all->listeners);
	chain_places_free(all->places);
	free(all);
}

void frontends_reresolve(struct frontends *all)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct frontend *f = &all->list[i];
		if (f->source)
			depmgr_reresolve(f->source->depmgr);
		if (f->next && f->next->source)
			depmgr_reresolve(f->next->source->depmgr);
		if (f->chains)
			chains_reresolve(f->chains);
	}
	if (all->listeners)
		listeners_reresolve(all->listeners);
}

// Whose news operators hear: of a frontend that is to have another target, that one's. Once it is
// taken, or taken back, they hear of what serves again.
static const struct frontend_source *newest_source(const struct frontend *f)
{
	return f->next && f->next->source ? f->next->source : f->source;
}

const char *frontends_waiting(void *frontends, uint32_t index)
{
	const struct frontends *all = frontends;
	const struct frontend *f = &all->list[index];
	const struct frontend_source *s = newest_source(f);
	if (frontend_next_awaits_tls(f))
		return "certificates";
	if (s)
		return depmgr_waiting(s->depmgr);
	if (f->chains)
		return chains_waiting(f->chains);
	bool is_theirs = all->listeners && all->conf.config->frontends[index].by_listeners;
	return is_theirs ? listeners_waiting(all->listeners) : "";
}

const char *frontends_refused(void *frontends, uint32_t index)
{
	const struct frontends *all = frontends;
	const struct frontend *f = &all->list[index];
	const struct frontend_source *s = newest_source(f);
	if (*frontend_next_tls_error(f))
		return frontend_next_tls_error(f);
	if (s)
		return depmgr_refused(s->depmgr);
	if (f->chains)
		return chains_refused(f->chains);
	bool is_theirs = all->listeners && all->conf.config->frontends[index].by_listeners;
	return is_theirs ? listeners_refused(all->listeners) : "";
}

void frontends_each_listener(
	void *frontends, void (*fn)(void *ctx, const struct show_listener *), void *ctx)
{
	const struct frontends *all = frontends;
	if (all->listeners)
		listeners_each(all->listeners, fn, ctx);
}
