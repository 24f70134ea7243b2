// SPDX-License-Identifier: Apache-2.0
#include "ctrl/trust.h"

#include "ctrl/certs/certs.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "lb/base/time.h"

#include <stdlib.h>

struct trust {
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

struct certs *trust_certs(const struct trust *t)
{
	return t->certs;
}

struct credentials *trust_credentials(const struct trust *t)
{
	return t->credentials;
}
