// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/secure_rig.h"

#include "lb/pick/credential.h"
#include "lb/pick/security.h"
#include "tests/support/check.h"

#include <string.h>

struct rig_certs rig_certs;

int rig_setup(void **state)
{
	struct rig_certs *c = &rig_certs;
	c->ca = pki_make((struct pki_conf){.name = "CA"});
	c->other_ca = pki_make((struct pki_conf){.name = "other CA"});
	c->server = pki_make(
		(struct pki_conf){.name = "front", .issuer = &c->ca, .sans = "DNS:front.test"});
	c->backend = pki_make(
		(struct pki_conf){.name = "backend", .issuer = &c->ca, .sans = "DNS:backend.test"});
	c->client = pki_make(
		(struct pki_conf){.name = "client", .issuer = &c->ca, .sans = "URI:spiffe://a/b"});
	return 0;
}

int rig_teardown(void **state)
{
	pki_end();
	return 0;
}

static struct tlshs_context *context(
	enum tlshs_role role, const struct side *s, const struct pki_cert *cert)
{
	struct lb_err err;
	struct str alpn[] = {str_from(s->alpn ? s->alpn : "h2"), STR("http/1.1")};
	const struct pki_cert *own = s->cert ? s->cert : cert,
			      *trust = s->ca ? s->ca : &rig_certs.ca;
	struct tlshs_context_conf conf = {.role = role,
		.alpn = alpn,
		.n_alpn = s->no_alpn ? 0 : 1 + (role == TLSHS_SERVER),
		.require_peer_certificate = s->require_peer,
		.min_version = s->version,
		.max_version = s->version};
	if (!s->no_cert) {
		conf.certificate_pem = own->pem;
		conf.key_pem = own->key_pem;
	}
	if (!s->no_ca && (role == TLSHS_CLIENT || s->require_peer))
		conf.ca_pem = trust->pem;
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	if (!c)
		fail_msg("%s", err.text);
	return c;
}

struct lb_credential *rig_credential(
	enum tlshs_role role, const struct side *s, const struct pki_cert *cert)
{
	struct lb_credential *c = lb_credential_new(context(role, s, cert), tlshs_context_put);
	assert_non_null(c);
	return c;
}

void rig_init(struct rig *r, const struct rig_conf *conf)
{
	*r = (struct rig){0};
	struct world_conf world = world_conf_default(conf->seed ? conf->seed : 7);
	world.n_clients = conf->n_clients ? conf->n_clients : 2;
	world.n_backends = 2;
	world.loss = conf->loss;
	world.n_handshake_slots = conf->n_slots ? conf->n_slots : 64;
	if (conf->n_chunks)
		world.n_chunks = conf->n_chunks;
	r->w = world_new(&world);
	struct control *c = &r->w->control;
	for (unsigned i = 0; i < 2; i++) {
		struct tls_conf tls = {.max_conns = 64, .now_ns = &r->w->wire.now_ns};
		struct host *h = &r->w->wire.hosts[i ? HOST_BACKENDS : HOST_CLIENTS];
		r->records[i] = tls_context_new(&tls, &h->chunks);
		assert_non_null(r->records[i]);
	}
	r->client = context(TLSHS_CLIENT, &conf->client, &rig_certs.client);
	r->backend = context(TLSHS_SERVER, &conf->backend, &rig_certs.backend);
	r->client_end = (struct tls_end_conf){r->client, r->records[0],
		conf->name ? conf->name : "front.test", conf->piece, conf->hangs_up};
	r->backend_end =
		(struct tls_end_conf){r->backend, r->records[1], NULL, conf->piece, conf->hangs_up};
	r->credentials[FRONT] = rig_credential(TLSHS_SERVER, &conf->server, &rig_certs.server);
	r->credentials[BACK] = rig_credential(TLSHS_CLIENT, &conf->upstream, &rig_certs.client);
	memcpy(c->credentials, r->credentials, sizeof(r->credentials));
	c->frontend_credential = conf->front ? FRONT : LB_PLAIN_TEXT;
	const struct lb_security_conf back = {BACK, str_from(conf->sni ? conf->sni : ""), NULL,
		{.version = (uint8_t)conf->header}};
	c->security = r->security = conf->back ? lb_security_new_as(&back) : NULL;
	control_set_credentials(c);
	for (unsigned i = 0; i < world.n_clients; i++)
		r->w->clients[i].tls = conf->front ? &r->client_end : NULL;
	for (unsigned i = 0; i < 2; i++) {
		r->w->backends[i].tls = conf->back ? &r->backend_end : NULL;
		r->w->backends[i].wants_header = conf->header;
	}
}

void rig_begin(struct rig *r, const struct rig_conf *conf)
{
	rig_init(r, conf);
	use_backends(r->w, 0x3);
	open_client(r->w);
	world_run(r->w, 50 * MS);
}

void rig_fini(struct rig *r)
{
	r->w->control.security = NULL;
	memset(r->w->control.credentials, 0, sizeof(r->w->control.credentials));
	world_free(r->w);
	lb_security_put(r->security);
	for (unsigned i = 0; i < 2; i++)
		tls_context_free(r->records[i]);
	lb_credential_put(r->credentials[FRONT]);
	lb_credential_put(r->credentials[BACK]);
	tlshs_context_put(r->client);
	tlshs_context_put(r->backend);
}
