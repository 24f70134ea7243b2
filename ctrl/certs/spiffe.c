// SPDX-License-Identifier: Apache-2.0
#include "ctrl/certs/spiffe.h"

#include "lb/base/base64.h"

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DOMAIN_LEN 255 // SPIFFE-ID 2.3
#define PEM_LINE 64

// SPIFFE-ID 2.1.
static bool is_domain(const char *s)
{
	size_t len = strlen(s);
	return len > 0 && len <= MAX_DOMAIN_LEN &&
	       s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_")] == '\0';
}

static void print_pem(FILE *out, const char *base64)
{
	fputs("-----BEGIN CERTIFICATE-----\n", out);
	for (size_t len = strlen(base64), at = 0; at < len; at += PEM_LINE)
		fprintf(out, "%.*s\n", PEM_LINE, base64 + at);
	fputs("-----END CERTIFICATE-----\n", out);
}

// Of the key only what A87 names is looked at: kty, use and x5c.
static int read_key(const json_t *key, FILE *pem, struct cert_list *cas, struct lb_err *err)
{
	const char *kty = json_string_value(json_object_get(key, "kty"));
	const char *use = json_string_value(json_object_get(key, "use"));
	const json_t *x5c = json_object_get(key, "x5c");
	const char *base64 = json_string_value(json_array_get(x5c, 0));
	if (!kty || (strcmp(kty, "RSA") != 0 && strcmp(kty, "EC") != 0))
		return lb_err_set(err, "kty: is neither \"RSA\" nor \"EC\"");
	if (!use || strcmp(use, "x509-svid") != 0)
		return lb_err_set(err, "use: is not \"x509-svid\"");
	if (json_array_size(x5c) != 1 || !base64)
		return lb_err_set(err, "x5c: is not a list of one certificate");
	uint8_t *der = malloc(strlen(base64) + 1);
	size_t len;
	if (!der)
		return -ENOMEM;
	int rc = base64_decode(str_from(base64), der, &len) ? cert_list_add_der(cas, der, len, err)
	                                                    : lb_err_set(err, "is not base64");
	free(der);
	if (rc)
		return rc == -EINVAL ? lb_err_within(err, "x5c") : rc;
	print_pem(pem, base64);
	return 0;
}

static int read_keys(const json_t *keys, FILE *pem, struct cert_list *cas, struct lb_err *err)
{
	size_t i;
	const json_t *key;
	if (!json_is_array(keys))
		return lb_err_set(err, "keys: is not a list");
	json_array_foreach(keys, i, key)
	{
		int rc = read_key(key, pem, cas, err);
		if (rc)
			return rc == -EINVAL ? lb_err_within(err, "keys[%zu]", i) : rc;
	}
	return 0;
}

static int read_bundle(const char *domain, const json_t *o, struct cert_bundle *b,
	struct cert_list *cas, struct lb_err *err)
{
	size_t len;
	if (!is_domain(domain))
		return lb_err_set(err, "is not a name of a trust domain");
	b->trust_domain = strdup(domain);
	FILE *pem = open_memstream(&b->ca_pem, &len);
	if (!b->trust_domain || !pem) {
		if (pem)
			fclose(pem);
		return -ENOMEM;
	}
	int rc = read_keys(json_object_get(o, "keys"), pem, cas, err);
	return fclose(pem) == 0 ? rc : -ENOMEM;
}

static int read_map(json_t *o, struct cert_bundles *ret, struct cert_list *cas, struct lb_err *err)
{
	json_t *domains = json_object_get(o, "trust_domains");
	const char *domain;
	json_t *value;
	if (!json_is_object(domains))
		return lb_err_set(err, "trust_domains: is not an object");
	ret->list = calloc(json_object_size(domains) + 1, sizeof(*ret->list));
	if (!ret->list)
		return -ENOMEM;
	json_object_foreach(domains, domain, value)
	{
		int rc = read_bundle(domain, value, &ret->list[ret->n++], cas, err);
		if (rc)
			return rc == -EINVAL
			               ? lb_err_within(err, "trust_domains[\"%.64s\"]", domain)
			               : rc;
	}
	return 0;
}

int cert_bundles_read(
	struct str json, struct cert_bundles *ret, struct cert_list *cas, struct lb_err *err)
{
	json_error_t why;
	*ret = (struct cert_bundles){NULL, 0};
	if (json.len == 0)
		return lb_err_set(err, "is empty");
	json_t *o = json_loadb(json.p, json.len, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		return lb_err_set(err, "line %d column %d: %s", why.line, why.column, why.text);
	int rc = read_map(o, ret, cas, err);
	json_decref(o);
	return rc;
}

void cert_bundles_fini(struct cert_bundles *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		free(b->list[i].trust_domain);
		free(b->list[i].ca_pem);
	}
	free(b->list);
	*b = (struct cert_bundles){NULL, 0};
}
