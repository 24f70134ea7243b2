// SPDX-License-Identifier: Apache-2.0
// The listener resources that targets stand for: gRFC A47's templates.
#include "ctrl/base/printout.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "lb/base/ip.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char LISTENER_URL[] = "type.googleapis.com/envoy.config.listener.v3.Listener";

// Replaces each "%s" of the template by the endpoint part of the target (FE-06).
static char *expand(const char *template, const char *endpoint)
{
	bool encode = xds_name_is_xdstp(template);
	struct printout printed;
	FILE *f = printout_begin(&printed);
	if (!f)
		return NULL;
	for (const char *p = template; *p; p++) {
		if (p[0] != '%' || p[1] != 's') {
			fputc(*p, f);
			continue;
		}
		p++;
		for (const char *e = endpoint; *e; e++)
			if (!encode || xds_name_is_id_char(*e))
				fputc(*e, f);
			else
				fprintf(f, "%%%02X", (unsigned char)*e);
	}
	return printout_end(&printed);
}

// Takes the name over. what: it stands for, in errors.
static int make_canonical(char *name, const char *what, char **ret, struct lb_err *err)
{
	if (!name)
		return -ENOMEM;
	struct xds_name canonical;
	int rc = xds_name_parse(name, LISTENER_URL, &canonical, err);
	if (rc == -EINVAL)
		(void)lb_err_within(err, "%s: listener \"%s\"", what, name);
	free(name);
	if (rc)
		return rc;
	*ret = canonical.text;
	free(canonical.authority);
	return 0;
}

int xds_bootstrap_listener_name(
	const struct xds_bootstrap *b, const char *target, char **ret, struct lb_err *err)
{
	const char *template = b->listener_template;
	const char *endpoint = target;
	if (strncmp(target, "xds:", 4) == 0) {
		endpoint = target + 4;
		if (strncmp(endpoint, "//", 2) == 0) {
			const char *authority = endpoint + 2;
			size_t len = strcspn(authority, "/");
			endpoint = authority + len;
			template = len ? NULL : template;
			for (uint32_t i = 0; !template && i < b->n_authorities; i++)
				if (strlen(b->authorities[i].name) == len &&
					strncmp(b->authorities[i].name, authority, len) == 0)
					template = b->authorities[i].listener_template;
			if (!template)
				return lb_err_set(err,
					"target %s: authority %.*s is not in the bootstrap", target,
					(int)len, authority);
		}
		endpoint += *endpoint == '/';
	}
	if (!*endpoint)
		return lb_err_set(err, "target \"%s\": names no service", target);
	char what[256]; // of a longer target the beginning
	snprintf(what, sizeof(what), "target %s", target);
	return make_canonical(expand(template, endpoint), what, ret, err);
}

int xds_bootstrap_server_listener_name(const struct xds_bootstrap *b, const char *name,
	const struct ip_port *place, char **ret, struct lb_err *err)
{
	char text[IP_PORT_TEXT_MAX];
	if (!name && !b->server_listener_template)
		return lb_err_set(err, "neither target nor listener, and the bootstrap has no "
				       "server_listener_resource_name_template");
	ip_port_print(place, text);
	return make_canonical(
		name ? strdup(name) : expand(b->server_listener_template, text), text, ret, err);
}
