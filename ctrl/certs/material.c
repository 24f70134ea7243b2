// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/material.h"

#include "ctrl/certs/strength.h"
#include "ctrl/xds/bootstrap/cert_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Names the field and its path in an error.
static int at_file(int rc, const char *field, const char *path, struct lb_err *err)
{
	return rc == -EINVAL ? lb_err_within(err, "%s %s", field, path) : rc;
}

static int load_cert(const char *path, struct cert_material *m, struct lb_err *err)
{
	int rc = whole_file_read(path, false, &m->cert, err);
	if (!rc)
		rc = cert_list_read(whole_file_bytes(&m->cert), &m->chain, err);
	if (!rc)
		rc = cert_chain_judge(whole_file_bytes(&m->cert), &m->chain, err);
	return at_file(rc, "certificate_file", path, err);
}

static int load_key(const char *path, struct cert_material *m, struct lb_err *err)
{
	int rc = whole_file_read(path, true, &m->key, err);
	if (!rc)
		rc = cert_key_check(whole_file_bytes(&m->key), err);
	if (!rc)
		rc = cert_key_match(whole_file_bytes(&m->key), whole_file_bytes(&m->cert), err);
	return at_file(rc, "private_key_file", path, err);
}

static int load_ca(const char *path, struct cert_material *m, struct lb_err *err)
{
	int rc = whole_file_read(path, false, &m->ca, err);
	if (!rc)
		rc = cert_list_read(whole_file_bytes(&m->ca), &m->cas, err);
	return at_file(rc, "ca_certificate_file", path, err);
}

static int load_spiffe(const char *path, struct cert_material *m, struct lb_err *err)
{
	m->has_bundles = true;
	int rc = whole_file_read(path, false, &m->spiffe, err);
	if (!rc)
		rc = cert_bundles_read(whole_file_bytes(&m->spiffe), &m->bundles, &m->cas, err);
	return at_file(rc, "spiffe_trust_bundle_map_file", path, err);
}

static int load_files(const struct xds_cert_files *f, struct cert_material *m, struct lb_err *err)
{
	int rc = 0;
	if (f->cert)
		rc = load_cert(f->cert, m, err);
	if (!rc && f->key)
		rc = load_key(f->key, m, err);
	if (!rc && f->spiffe)
		return load_spiffe(f->spiffe, m, err);
	return !rc && f->ca ? load_ca(f->ca, m, err) : rc;
}

static int load_ticket_secret(const char *path, struct cert_material *m, struct lb_err *err)
{
	int rc = whole_file_read(path, true, &m->ticket_secret, err);
	if (!rc && m->ticket_secret.len < CERT_TICKET_SECRET)
		rc = lb_err_set(err, "has %zu bytes; %d or more are needed", m->ticket_secret.len,
			CERT_TICKET_SECRET);
	return at_file(rc, "ticket_secret", path, err);
}

static int load(const struct cert_source *s, struct cert_material *m, struct lb_err *err)
{
	if (s->files)
		return load_files(s->files, m, err);
	return s->ticket_secret ? load_ticket_secret(s->ticket_secret, m, err)
	                        : cert_crls_load(s->crl_directory, &m->crls, err);
}

int cert_material_load(const struct cert_source *s, struct cert_material **ret, struct lb_err *err)
{
	struct cert_material *m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	m->n_refs = 1;
	int rc = load(s, m, err);
	if (!rc)
		*ret = m;
	else
		cert_material_put(m);
	return rc;
}

struct cert_material *cert_material_of_tickets(struct str secret)
{
	struct cert_material *m = calloc(1, sizeof(*m));
	char *bytes = calloc(secret.len + 1, 1);
	if (!m || !bytes) {
		free(m);
		free(bytes);
		return NULL;
	}
	memcpy(bytes, secret.p, secret.len);
	m->n_refs = 1;
	m->ticket_secret = (struct whole_file){bytes, secret.len};
	return m;
}

static bool file_eq(const struct whole_file *a, const struct whole_file *b)
{
	return str_eq(whole_file_bytes(a), whole_file_bytes(b));
}

static bool crls_eq(const struct cert_crls *a, const struct cert_crls *b)
{
	bool eq = a->n == b->n;
	for (uint32_t i = 0; eq && i < a->n; i++)
		eq = strcmp(a->list[i].name, b->list[i].name) == 0 &&
		     file_eq(&a->list[i].pem, &b->list[i].pem);
	return eq;
}

bool cert_material_eq(const struct cert_material *a, const struct cert_material *b)
{
	return file_eq(&a->cert, &b->cert) && file_eq(&a->key, &b->key) &&
	       file_eq(&a->ca, &b->ca) && file_eq(&a->spiffe, &b->spiffe) &&
	       file_eq(&a->ticket_secret, &b->ticket_secret) && crls_eq(&a->crls, &b->crls);
}

struct cert_material *cert_material_get(struct cert_material *m)
{
	m->n_refs++;
	return m;
}

void cert_material_put(struct cert_material *m)
{
	if (!m || --m->n_refs > 0)
		return;
	whole_file_fini(&m->cert);
	whole_file_fini(&m->key);
	whole_file_fini(&m->ca);
	whole_file_fini(&m->spiffe);
	whole_file_fini(&m->ticket_secret);
	cert_bundles_fini(&m->bundles);
	cert_crls_fini(&m->crls);
	cert_list_fini(&m->chain);
	cert_list_fini(&m->cas);
	free(m);
}
