// SPDX-License-Identifier: Apache-2.0
#include "ctrl/trust.h"

#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/time.h"

#include <stdio.h>
#include <stdlib.h>

struct trust {
	struct xds_bootstrap *bootstrap; // borrowed
	struct certs *certs;
	struct credentials *credentials; // NULL = not made yet
};

static void on_certs_ready(void *arg)
{
	certs_dispatch(((struct trust *)arg)->certs);
}

static void on_credentials_ready(void *arg)
{
	credentials_dispatch(((struct trust *)arg)->credentials);
}

static void on_certs_changed(void *ctx, const char *source)
{
	const struct trust *t = ctx;
	if (t->credentials)
		credentials_renew(t->credentials, source);
}

struct trust *trust_new(const struct trust_conf *conf)
{
	struct trust *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->bootstrap = conf->bootstrap;
	const struct config_tls none = {0}, *tls = conf->config->tls ? conf->config->tls : &none;
	struct certs_conf certs = {
		.bootstrap = conf->bootstrap,
		.crl_directory = tls->crl_directory,
		.crl_refresh_ns = conf->config->crl_refresh_s * NS_PER_SECOND,
		.ticket_secret = tls->ticket_secret,
		.wheel = loop_wheel(conf->loop),
		.wall_ns = loop_wall_ns,
		.changed = on_certs_changed,
		.ctx = t,
	};
	t->certs = certs_new(&certs);
	struct credentials_conf credentials = {
		.certs = t->certs,
		.wheel = loop_wheel(conf->loop),
		.system_roots = CREDENTIAL_SYSTEM_ROOTS,
		.changed = conf->changed,
		.ctx = conf->ctx,
	};
	t->credentials = t->certs ? credentials_new(&credentials) : NULL;
	if (t->credentials && !loop_watch_fd(conf->loop, certs_fd(t->certs), on_certs_ready, t) &&
		!loop_watch_fd(conf->loop, credentials_fd(t->credentials), on_credentials_ready, t))
		return t;
	trust_free(t);
	return NULL;
}

void trust_free(struct trust *t)
{
	if (!t)
		return;
	credentials_free(t->credentials);
	certs_free(t->certs);
	free(t);
}

static bool has(const struct xds_bootstrap *b, const struct xds_cert_provider_conf *p)
{
	return xds_bootstrap_find_provider(b, p->name);
}

static void note_provider(const struct xds_cert_provider_conf *p,
	void (*note)(void *, const char *, bool), void *ctx, bool needs_restart)
{
	char field[128];
	snprintf(field, sizeof(field), "certificate_providers[\"%.64s\"]", p->name);
	note(ctx, field, needs_restart);
}

// Those that are not the same in both, by their names.
static void note_others(const struct xds_bootstrap *old, const struct xds_bootstrap *now,
	void (*note)(void *, const char *, bool), void *ctx)
{
	for (uint32_t i = 0; i < old->n_cert_providers; i++) {
		const struct xds_cert_provider_conf *p = &old->cert_providers[i];
		const struct xds_cert_provider_conf *q = xds_bootstrap_find_provider(now, p->name);
		if (!q || !xds_cert_files_eq(&p->files, &q->files))
			note_provider(p, note, ctx, true);
	}
}

// Whether all that are new can be had: 0, or negative with reterr.
static int check_new(
	const struct xds_bootstrap *old, const struct xds_bootstrap *now, struct lb_err *err)
{
	uint32_t n_new = 0, n_room = old->max_cert_providers - old->n_cert_providers;
	for (uint32_t i = 0; i < now->n_cert_providers; i++)
		n_new += !has(old, &now->cert_providers[i]);
	if (n_new > n_room)
		return lb_err_set(err,
			"bootstrap: certificate_providers: %u are new, and there is room for %u "
			"until a restart",
			n_new, n_room);
	int rc = 0;
	for (uint32_t i = 0; !rc && i < now->n_cert_providers; i++)
		if (!has(old, &now->cert_providers[i]))
			rc = certs_check_provider(&now->cert_providers[i], err);
	return rc;
}

int trust_learn(struct trust *t, struct xds_bootstrap *now,
	void (*note)(void *, const char *, bool), void *note_ctx, struct lb_err *err)
{
	struct xds_bootstrap *b = t->bootstrap;
	int rc = check_new(b, now, err);
	if (rc)
		return rc;
	note_others(b, now, note, note_ctx);
	for (uint32_t i = 0; i < now->n_cert_providers;) {
		const struct xds_cert_provider_conf *p = &now->cert_providers[i];
		if (has(b, p)) {
			i++;
			continue;
		}
		note_provider(p, note, note_ctx, false);
		certs_add(t->certs, xds_bootstrap_adopt_provider(b, now, i));
	}
	return 0;
}

struct certs *trust_certs(const struct trust *t)
{
	return t->certs;
}

struct credentials *trust_credentials(const struct trust *t)
{
	return t->credentials;
}
