// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/tls_want.h"

#include "ctrl/conf/config.h"
#include "ctrl/res/tls.h"

struct credential_want tls_want_of_cluster(const struct res_tls *t)
{
	return (struct credential_want){
		.role = TLSHS_CLIENT,
		.identity = t->identity,
		.ca = t->ca,
		.system_roots = t->system_roots,
		.sans = t->sans,
		.n_sans = t->n_sans,
		.sni_is_san = t->auto_sni_san_validation,
		.max_sessions = t->max_sessions,
	};
}

struct credential_want tls_want_of_listener(const struct res_tls *t)
{
	return (struct credential_want){
		.role = TLSHS_SERVER,
		.identity = t->identity,
		.ca = t->ca,
		.require_peer_certificate = t->require_client_certificate,
	};
}

struct credential_want tls_want_of_frontend(const struct config_frontend_tls *t)
{
	return (struct credential_want){
		.role = TLSHS_SERVER,
		.identity = t->certificate,
		.ca = t->ca,
		.require_peer_certificate = t->require_client_certificate,
		.server_names = (const char *const *)t->sni,
		.n_server_names = t->n_sni,
	};
}
