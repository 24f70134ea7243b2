// SPDX-License-Identifier: Apache-2.0
// Where the configuration comes from: the bootstrap, its servers, and files with certificates.
#include "ctrl/base/whole_file.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/pem.h"
#include "ctrl/conf/config.h"
#include "ctrl/doctor/dates.h"
#include "ctrl/doctor/look.h"
#include "ctrl/xds/bootstrap/bootstrap.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define MAX_TARGETS 16 // servers beyond are not looked at
void check_bootstrap(const struct doctor_host *h)
{
	if (h->bootstrap)
		return;
	doctor_find(h->report, DOCTOR_ERROR, "%s; the start fails", h->bootstrap_error);
	doctor_fix(h->report, "bootstrap.json beside shunt.yaml, or GRPC_XDS_BOOTSTRAP=PATH; "
			      "docs/xds.md#bootstrap for what is in it");
}

// "host:443", "[::1]:443" or "host", where gRPC takes the port of its service.
static bool read_authority(const char *text, struct doctor_target *ret)
{
	const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
	const char *colon = strrchr(end ? end : text, ':');
	if (!end && colon && strchr(text, ':') != colon)
		colon = NULL; // an IPv6 address
	size_t len = colon ? (size_t)(colon - text) : strlen(text);
	snprintf(ret->port, sizeof(ret->port), "%s", colon ? colon + 1 : "https");
	if (end) {
		len = (size_t)(end - text) - 1;
		text++;
	}
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)len, text);
	return ret->host[0];
}

// A target as gRPC names it. False = of a scheme that nobody but gRPC resolves.
static bool read_target(const char *uri, struct doctor_target *ret)
{
	static const char *const schemes[] = {"dns:", "ipv4:", "ipv6:", "passthrough:"};
	*ret = (struct doctor_target){.is_unix = strncmp(uri, "unix:", 5) == 0};
	if (ret->is_unix) {
		uri += strncmp(uri, "unix://", 7) == 0 ? 7 : 5;
		snprintf(ret->host, sizeof(ret->host), "%s", uri);
		return true;
	}
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		if (strncmp(uri, schemes[i], strlen(schemes[i])) == 0) {
			uri += strlen(schemes[i]);
			break;
		}
	if (strncmp(uri, "//", 2) == 0) { // of an authority, and the path
		uri = strchr(uri + 2, '/');
		return uri && read_authority(uri + 1, ret);
	}
	return !strstr(uri, "://") && read_authority(uri + (uri[0] == '/'), ret);
}

struct round {
	struct doctor_target targets[MAX_TARGETS];
	const char *uris[MAX_TARGETS];
	unsigned n;
};

static void add_servers(struct round *r, const struct xds_server_conf *servers, uint32_t n)
{
	for (uint32_t i = 0; i < n && r->n < MAX_TARGETS; i++) {
		unsigned k = 0;
		while (k < r->n && strcmp(r->uris[k], servers[i].uri) != 0)
			k++;
		if (k == r->n && read_target(servers[i].uri, &r->targets[k])) {
			r->uris[k] = servers[i].uri;
			r->n++;
		}
	}
}

// A server that stands behind another one in its list may be away: that is what the list is for.
static bool is_reached(const struct round *r, const struct xds_server_conf *servers, uint32_t n)
{
	bool known = false;
	for (uint32_t i = 0; i < n; i++)
		for (unsigned k = 0; k < r->n; k++)
			if (strcmp(r->uris[k], servers[i].uri) == 0) {
				known = true;
				if (!r->targets[k].err.text[0])
					return true;
			}
	return !known;
}

static bool are_all_reached(const struct round *r, const struct xds_bootstrap *b)
{
	bool all = is_reached(r, b->servers, b->n_servers);
	for (uint32_t i = 0; i < b->n_authorities; i++)
		all = all && (!b->authorities[i].servers || is_reached(r, b->authorities[i].servers,
								    b->authorities[i].n_servers));
	return all;
}

void check_xds_server(const struct doctor_host *h)
{
	struct round r = {.n = 0};
	const struct xds_bootstrap *b = h->bootstrap;
	if (!b)
		return;
	add_servers(&r, b->servers, b->n_servers);
	for (uint32_t i = 0; i < b->n_authorities; i++)
		add_servers(&r, b->authorities[i].servers, b->authorities[i].n_servers);
	h->ops->reach(h->ctx, r.targets, r.n);
	bool served = are_all_reached(&r, b);
	for (unsigned k = 0; k < r.n; k++) {
		if (!r.targets[k].err.text[0])
			continue;
		doctor_find(h->report, served ? DOCTOR_WARNING : DOCTOR_ERROR,
			"bootstrap: xDS server %s: %s; %s", r.uris[k], r.targets[k].err.text,
			served ? "another one of the list has to do"
			       : "there is no configuration from it");
		doctor_fix(h->report, "server_uri in the bootstrap; or start it, or open the way "
				      "to it (firewall, route, name)");
	}
}

// A running daemon tells of its providers itself: what it read before may still serve (TLS-109).
static int judge_files(const struct doctor_host *h, struct lb_err *reterr)
{
	const struct config_tls *t = h->config->tls;
	if (h->is_served)
		return certs_check_servers(h->bootstrap, reterr);
	return certs_check(
		h->bootstrap, t ? t->crl_directory : NULL, t ? t->ticket_secret : NULL, reterr);
}

void check_certificates(const struct doctor_host *h)
{
	struct lb_err err = {.text = ""};
	if (!h->bootstrap || judge_files(h, &err) == 0)
		return;
	doctor_find(h->report, DOCTOR_ERROR, "%s; what needs it is refused", err.text);
	doctor_fix(h->report, "the file, or its path: docs/certificates.md says what it has to be");
}

static void judge_dates(const struct doctor_host *h, const char *path, const struct cert_list *list)
{
	for (uint32_t i = 0; i < list->n; i++) {
		if (list->list[i].not_before_s <= h->now_s)
			continue;
		doctor_find(h->report, DOCTOR_ERROR, "%s: %s is not valid yet; peers refuse it",
			path, list->list[i].subject);
		doctor_fix(h->report, "the clock (date -u), or the certificate");
	}
	doctor_judge_end(h->report, path, list, h->now_s);
}

// Of many CAs some may be old, and others count. What cannot be read check_certificates() tells.
static void look_at_dates(const struct doctor_host *h, const char *path, bool are_cas)
{
	struct whole_file file;
	struct cert_list list;
	struct lb_err err;
	if (!path || whole_file_read(path, false, &file, &err))
		return;
	if (cert_list_read((struct str){file.p, file.len}, &list, &err) == 0 &&
		(list.n == 1 || !are_cas))
		judge_dates(h, path, &list);
	cert_list_fini(&list);
	whole_file_fini(&file);
}

void check_certificate_dates(const struct doctor_host *h)
{
	const struct xds_bootstrap *b = h->bootstrap;
	for (uint32_t i = 0; b && i < b->n_servers; i++)
		look_at_dates(h, b->servers[i].files.cert, false);
	for (uint32_t i = 0; b && i < b->n_cert_providers; i++) {
		look_at_dates(h, b->cert_providers[i].files.cert, false);
		look_at_dates(h, b->cert_providers[i].files.ca, true);
	}
}
