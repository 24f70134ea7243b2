// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/bootstrap/cert_files.h"

#include "ctrl/xds/bootstrap/fields.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int xds_cert_files_read(
	const json_t *config, const char *at, struct xds_cert_files *ret, struct lb_err *err)
{
	*ret = (struct xds_cert_files){.refresh_ns = XDS_CERT_DEFAULT_REFRESH_NS};
	if (config && !json_is_object(config))
		return lb_err_set(err, "%s: must be an object", at);
	int rc = xds_field_path(config, at, "ca_certificate_file", &ret->ca, err);
	if (!rc)
		rc = xds_field_path(config, at, "certificate_file", &ret->cert, err);
	if (!rc)
		rc = xds_field_path(config, at, "private_key_file", &ret->key, err);
	if (!rc)
		rc = xds_field_path(config, at, "spiffe_trust_bundle_map_file", &ret->spiffe, err);
	if (!rc)
		rc = xds_field_duration(config, at, "refresh_interval", &ret->refresh_ns, err);
	if (!rc && ret->refresh_ns < XDS_CERT_MIN_REFRESH_NS)
		ret->refresh_ns = XDS_CERT_MIN_REFRESH_NS;
	if (!rc && !ret->cert != !ret->key)
		rc = lb_err_set(err,
			"%s: certificate_file and private_key_file must be set both or not at all",
			at);
	return rc;
}

void xds_cert_files_fini(struct xds_cert_files *f)
{
	free(f->ca);
	free(f->cert);
	free(f->key);
	free(f->spiffe);
}

static bool text_eq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool xds_cert_files_eq(const struct xds_cert_files *a, const struct xds_cert_files *b)
{
	return text_eq(a->ca, b->ca) && text_eq(a->cert, b->cert) && text_eq(a->key, b->key) &&
	       text_eq(a->spiffe, b->spiffe) && a->refresh_ns == b->refresh_ns;
}

int xds_cert_provider_read(
	const json_t *o, const char *name, struct xds_cert_provider_conf *ret, struct lb_err *err)
{
	char at[128];
	snprintf(at, sizeof(at), "certificate_providers[\"%.64s\"]", name);
	*ret = (struct xds_cert_provider_conf){.name = strdup(name)};
	if (!ret->name)
		return -ENOMEM;
	if (!json_is_object(o))
		return lb_err_set(err, "%s: must be an object", at);
	const char *plugin = json_string_value(json_object_get(o, "plugin_name"));
	if (!plugin)
		return xds_field_err(err, at, "plugin_name", "must be a string");
	if (strcmp(plugin, "file_watcher") != 0)
		return lb_err_set(err,
			"%s.plugin_name: \"%.64s\" is not supported (file_watcher is)", at, plugin);
	strncat(at, ".config", sizeof(at) - strlen(at) - 1);
	int rc = xds_cert_files_read(json_object_get(o, "config"), at, &ret->files, err);
	const struct xds_cert_files *f = &ret->files;
	if (!rc && !f->cert && !f->ca && !f->spiffe)
		rc = lb_err_set(err,
			"%s: at least one of certificate_file, ca_certificate_file and "
			"spiffe_trust_bundle_map_file must be set",
			at);
	return rc;
}

void xds_cert_provider_fini(struct xds_cert_provider_conf *p)
{
	free(p->name);
	xds_cert_files_fini(&p->files);
}
