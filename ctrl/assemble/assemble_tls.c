// SPDX-License-Identifier: Apache-2.0
// The TLS contexts of frontends and of filter chains.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/tls_want.h"
#include "ctrl/certs/credentials.h"
#include "ctrl/conf/config.h"

#include <stdlib.h>

void assembler_set_tls(struct assembler *a, uint32_t frontend, uint32_t id)
{
	assembler_give_tls(a, a->credentials[frontend]);
	a->credentials[frontend] = id;
	draft_set_frontend_credential(&a->draft, frontend, id);
}

// NULL = plain text. Never that where TLS is asked for. False = out of memory or of ids.
static bool secure(struct assembler *a, uint32_t i, const struct credential_want *want)
{
	struct credentials *all = a->conf.credentials;
	uint32_t id = LB_PLAIN_TEXT;
	if (want)
		id = all ? credentials_take(all, want) : LB_NO_CREDENTIAL;
	assembler_set_tls(a, i, id);
	return id != LB_NO_CREDENTIAL || !all;
}

uint32_t assembler_take_tls(struct assembler *a, const struct config_frontend_tls *tls)
{
	if (!tls)
		return LB_PLAIN_TEXT;
	const struct credential_want want = tls_want_of_frontend(tls);
	return a->conf.credentials ? credentials_take(a->conf.credentials, &want)
	                           : LB_NO_CREDENTIAL;
}

void assembler_give_tls(struct assembler *a, uint32_t id)
{
	if (a->conf.credentials)
		credentials_give(a->conf.credentials, id);
}

void assembler_await_tls(struct assembler *a)
{
	if (a->conf.credentials)
		credentials_await(a->conf.credentials);
}

bool assembler_tls_is_new(const struct assembler *a, uint32_t id)
{
	return a->conf.credentials && credentials_is_new(a->conf.credentials, id);
}

const char *assembler_tls_error(const struct assembler *a, uint32_t id)
{
	const struct credentials *all = a->conf.credentials;
	return all && !credentials_at(all, id) ? credentials_error(all, id) : "";
}

void assembler_unsecure(struct assembler *a, uint32_t chain)
{
	assembler_set_tls(a, chain, LB_NO_CREDENTIAL);
}

bool assembler_take_credentials(struct assembler *a)
{
	bool ok = true;
	for (uint32_t i = 0; i < a->conf.config->n_frontends; i++) {
		const struct config_frontend *f = &a->conf.config->frontends[i];
		const struct config_frontend_tls *tls = f->tls;
		if (!f->target) // until its chains are there nobody is to be served
			a->credentials[i] = LB_NO_CREDENTIAL;
		if (!tls)
			continue;
		const struct credential_want want = tls_want_of_frontend(tls);
		ok = secure(a, i, &want) && ok;
	}
	return ok;
}

void assembler_draft_credentials(struct assembler *a)
{
	for (uint32_t id = 1; a->conf.credentials && id < LB_MAX_CREDENTIALS; id++)
		draft_set_credential(&a->draft, id, credentials_at(a->conf.credentials, id));
	for (uint32_t i = 0; i < config_n_places(a->conf.config); i++)
		draft_set_frontend_credential(&a->draft, i, a->credentials[i]);
}

void assembler_give_credentials(struct assembler *a)
{
	for (uint32_t i = 0; a->credentials && i < config_n_places(a->conf.config); i++)
		assembler_give_tls(a, a->credentials[i]);
	free(a->credentials);
}

void assembler_credential(struct assembler *a, uint32_t id, struct lb_credential *credential)
{
	draft_set_credential(&a->draft, id, credential);
}

bool assembler_secure(struct assembler *a, uint32_t chain, const struct res_tls *tls)
{
	if (!tls)
		return secure(a, chain, NULL);
	const struct credential_want want = tls_want_of_listener(tls);
	return secure(a, chain, &want);
}

bool assembler_is_securing(const struct assembler *a, uint32_t chain)
{
	return a->conf.credentials &&
	       credentials_is_new(a->conf.credentials, a->credentials[chain]);
}

const char *assembler_frontend_tls_error(const struct assembler *a, uint32_t frontend)
{
	const struct config *config = a->conf.config;
	uint32_t id = a->credentials[frontend];
	bool is_chains = frontend < config->n_frontends && !config->frontends[frontend].target;
	return id == LB_PLAIN_TEXT || is_chains || !a->conf.credentials
	               ? ""
	               : credentials_error(a->conf.credentials, id);
}

// A context that is being made, or waits to be published, is waited for; where there is none the
// worker says so.
bool assembler_awaits_context(const struct assembler *a, uint32_t id)
{
	const struct credentials *all = a->conf.credentials;
	if (id == LB_PLAIN_TEXT || !all || draft_has_published(&a->draft, id))
		return false;
	return credentials_is_new(all, id) || credentials_at(all, id);
}
