// SPDX-License-Identifier: Apache-2.0
// Any text as a bootstrap file: it is read, or the error says where it is wrong. What was read
// keeps what bootstrap.h promises.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/variants/params.h"
#include "lb/base/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_servers(const struct xds_server_conf *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct xds_server_conf *s = &list[i];
		CHECK(*s->uri && !s->files.cert == !s->files.key && s->files.refresh_ns > 0);
		CHECK(s->creds == XDS_CREDS_TLS || (!s->files.ca && !s->files.cert));
		for (uint32_t k = 0; k <= i; k++)
			CHECK(xds_server_conf_eq(s, &list[k]) == xds_server_conf_eq(&list[k], s));
		CHECK(xds_server_conf_eq(s, s));
	}
}

static void check_params(const struct xds_params *p)
{
	for (uint32_t i = 0; p && i < p->n; i++)
		CHECK(xds_params_find(p, p->list[i].key) == p->list[i].value);
}

static void check_authority(const struct xds_authority_conf *a)
{
	static const char SCHEME[] = "xdstp://";
	size_t len = strlen(a->name);
	const char *at = a->listener_template + strlen(SCHEME);
	CHECK(strncmp(a->listener_template, SCHEME, strlen(SCHEME)) == 0);
	CHECK(strncmp(at, a->name, len) == 0 && at[len] == '/');
	check_servers(a->servers, a->n_servers);
	check_params(a->params);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	if (xds_bootstrap_parse((const char *)data, size, "fuzz", &b, &err)) {
		CHECK(!b && strstr(err.text, "fuzz"));
		return 0;
	}
	CHECK(b->n_servers > 0 && b->node_id && b->listener_template);
	check_servers(b->servers, b->n_servers);
	check_params(b->params);
	for (uint32_t i = 0; i < b->n_authorities; i++)
		check_authority(&b->authorities[i]);
	for (uint32_t i = 0; i < b->n_cert_providers; i++) {
		const struct xds_cert_files *f = &b->cert_providers[i].files;
		CHECK(!f->cert == !f->key && f->refresh_ns > 0 && (f->cert || f->ca || f->spiffe));
		CHECK(xds_bootstrap_find_provider(b, b->cert_providers[i].name));
	}
	char *name;
	if (xds_bootstrap_listener_name(b, "xds:///a b", &name, &err) == 0)
		free(name);
	xds_bootstrap_free(b);
	return 0;
}
