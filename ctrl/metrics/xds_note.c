// SPDX-License-Identifier: Apache-2.0
#include "ctrl/metrics/xds_note.h"

#include "ctrl/xds/bootstrap/name.h"
#include "lb/base/grow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *xds_cache_state_name(enum xds_cache_state state)
{
	static const char *const names[XDS_N_CACHE_STATES] = {"requested", "acked",
		"does_not_exist", "does_not_exist_but_cached", "nacked", "nacked_but_cached",
		"received_error", "received_error_but_cached", "timeout"};
	return names[state];
}

const char *xds_note_type_name(uint32_t type)
{
	const char *slash = strrchr(res_types[type]->url, '/');
	return slash ? slash + 1 : res_types[type]->url;
}

static enum xds_cache_state cache_state(const struct xds_entry_info *e)
{
	switch (e->status) {
	case XDS_STATUS_ACKED:
		return XDS_CACHE_ACKED;
	case XDS_STATUS_DOES_NOT_EXIST:
		return e->res ? XDS_CACHE_DOES_NOT_EXIST_BUT_CACHED : XDS_CACHE_DOES_NOT_EXIST;
	case XDS_STATUS_NACKED:
		return e->res ? XDS_CACHE_NACKED_BUT_CACHED : XDS_CACHE_NACKED;
	case XDS_STATUS_RECEIVED_ERROR:
		return e->res ? XDS_CACHE_RECEIVED_ERROR_BUT_CACHED : XDS_CACHE_RECEIVED_ERROR;
	case XDS_STATUS_TIMEOUT:
		return XDS_CACHE_TIMEOUT;
	case XDS_STATUS_REQUESTED:
		break;
	}
	return XDS_CACHE_REQUESTED;
}

// Takes the name. NULL = out of memory. There are not many, and names come authority by authority.
static struct xds_note_authority *find_authority(struct xds_note *n, char *name)
{
	struct xds_note_authority *a = n->authorities;
	while (a && (!a->name != !name || (name && strcmp(a->name, name) != 0)))
		a = a->next;
	if (a) {
		free(name);
		return a;
	}
	a = calloc(1, sizeof(*a));
	if (!a) {
		free(name);
		return NULL;
	}
	*a = (struct xds_note_authority){.next = n->authorities, .name = name};
	return n->authorities = a;
}

static void note_age(struct xds_note *n, uint32_t type, uint64_t updated_ns)
{
	if (updated_ns > n->newest_ns[type])
		n->newest_ns[type] = updated_ns;
	if (updated_ns && (!n->oldest_ns[type] || updated_ns < n->oldest_ns[type]))
		n->oldest_ns[type] = updated_ns;
}

static void note_resource(void *ctx, const struct xds_entry_info *e)
{
	struct xds_note *n = ctx;
	struct xds_name name = {NULL, NULL};
	if (xds_name_is_xdstp(e->name) && xds_name_parse(e->name, e->type->url, &name, NULL)) {
		n->failed = true;
		return;
	}
	struct xds_note_authority *a = find_authority(n, name.authority);
	free(name.text);
	n->failed = n->failed || !a;
	for (uint32_t t = 0; a && t < RES_N_TYPES; t++) {
		if (res_types[t] != e->type)
			continue;
		a->n[t][cache_state(e)]++;
		note_age(n, t, e->updated_ns);
	}
}

// Servers may have one URI and differ in the rest of their configuration: each is a series of its
// own. NULL = out of memory.
static char *uri_of(const struct xds_note *n, const char *uri)
{
	size_t len = strlen(uri);
	uint32_t nth = 1;
	char *ret;
	for (uint32_t i = 0; i < n->n_servers; i++) {
		const char *other = n->servers[i].uri;
		nth += strncmp(other, uri, len) == 0 && (!other[len] || other[len] == '#');
	}
	if (nth == 1)
		return strdup(uri);
	return asprintf(&ret, "%s#%" PRIu32, uri, nth) < 0 ? NULL : ret;
}

static void note_server(void *ctx, const struct xds_server_info *i)
{
	struct xds_note *n = ctx;
	char *uri = grow(&n->servers, n->n_servers, &n->room, sizeof(n->servers[0]))
	                    ? uri_of(n, i->uri)
	                    : NULL;
	n->failed = n->failed || !uri;
	if (uri)
		n->servers[n->n_servers++] = (struct xds_note_server){uri, *i};
}

struct xds_note *xds_note_new(const struct xds_federation *xds)
{
	struct xds_note *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	if (xds) {
		xds_federation_each_server(xds, note_server, n);
		xds_federation_each(xds, note_resource, n);
	}
	if (!n->failed)
		return n;
	xds_note_free(n);
	return NULL;
}

void xds_note_free(struct xds_note *n)
{
	if (!n)
		return;
	for (struct xds_note_authority *a = n->authorities, *next; a; a = next) {
		next = a->next;
		free(a->name);
		free(a);
	}
	for (uint32_t i = 0; i < n->n_servers; i++)
		free(n->servers[i].uri);
	free(n->servers);
	free(n);
}
