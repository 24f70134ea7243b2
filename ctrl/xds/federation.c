// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/federation.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/fallback.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/server.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/err.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct authority {
	const char *name; // NULL = old-style names; "" is an authority, too
	struct xds_server **servers; // distinct, in order of preference
	uint32_t n_servers;
	struct xds_fallback *fallback; // NULL = there is one server
	bool has_server; // counted as a user of the first one
};

struct xds_federation {
	struct xds_client_conf conf;
	struct xds_server *servers; // distinct (FE-07), in the bootstrap's order
	uint32_t n_servers;
	struct authority *authorities; // the first is that of old-style names
	uint32_t n_authorities;
	struct xds_settled_list settled;
	unsigned depth; // of begin()
	bool unsettled; // clients have told something since
	struct twheel_timer sweep; // closes servers without users
};

// Servers

static void begin_server(struct xds_server *s)
{
	if (s->client && !s->begun) {
		s->begun = true;
		xds_client_begin(s->client);
	}
}

static void on_client_settled(struct xds_settled *hook)
{
	struct xds_server *s = CONTAINER_OF(hook, struct xds_server, settled);
	struct xds_federation *f = s->federation;
	s->settling = true;
	xds_federation_begin(f);
	f->unsettled = true;
	xds_federation_end(f);
	s->settling = false;
}

struct xds_client *xds_server_get(struct xds_server *s)
{
	struct xds_federation *f = s->federation;
	if (!s->client) {
		struct xds_client_conf conf = f->conf;
		conf.server = s->conf;
		s->client = xds_client_new(&conf);
		if (!s->client)
			return NULL;
		s->settled.fn = on_client_settled;
		xds_client_add_settled(s->client, &s->settled);
		if (f->depth)
			begin_server(s);
	}
	s->n_users++;
	return s->client;
}

void xds_server_put(struct xds_server *s)
{
	struct xds_federation *f = s->federation;
	if (--s->n_users == 0)
		twheel_arm(f->conf.wheel, &f->sweep, twheel_now(f->conf.wheel));
}

static void close_server(struct xds_server *s)
{
	if (!s->client)
		return;
	xds_client_remove_settled(s->client, &s->settled);
	xds_client_free(s->client);
	s->client = NULL;
	s->begun = false;
}

static void on_sweep(struct twheel_timer *t)
{
	struct xds_federation *f = CONTAINER_OF(t, struct xds_federation, sweep);
	for (uint32_t i = 0; i < f->n_servers; i++)
		if (f->servers[i].n_users == 0)
			close_server(&f->servers[i]);
}

// Turns

void xds_federation_begin(struct xds_federation *f)
{
	if (f->depth++)
		return;
	for (uint32_t i = 0; i < f->n_servers; i++)
		begin_server(&f->servers[i]);
}

// A client is in the middle of its events, and what this was called by is one of them. Its hook
// comes when all have been told.
static bool is_inside_event(const struct xds_federation *f)
{
	for (uint32_t i = 0; i < f->n_servers; i++) {
		const struct xds_server *s = &f->servers[i];
		if (s->client && !s->settling && xds_client_depth(s->client) > s->begun)
			return true;
	}
	return false;
}

// Watchers and hooks may start watches that need other servers, and clients tell more while they
// send what is due. True = one of them did.
static bool end_clients(struct xds_federation *f, bool is_inside)
{
	for (uint32_t i = 0; i < f->n_servers; i++) {
		struct xds_server *s = &f->servers[i];
		if (!s->begun)
			continue;
		s->begun = false;
		xds_client_end(s->client);
	}
	bool more = f->unsettled && !is_inside;
	for (uint32_t i = 0; i < f->n_servers; i++)
		more = more || f->servers[i].begun;
	return more;
}

void xds_federation_end(struct xds_federation *f)
{
	CHECK(f->depth > 0);
	while (f->depth == 1) {
		bool is_inside = is_inside_event(f);
		while (f->unsettled && !is_inside) {
			f->unsettled = false;
			for (uint32_t i = 0; i < f->n_authorities; i++)
				if (f->authorities[i].fallback)
					xds_fallback_settle(f->authorities[i].fallback);
			xds_settled_run(&f->settled);
		}
		if (!end_clients(f, is_inside))
			break;
		for (uint32_t i = 0; i < f->n_servers; i++)
			begin_server(&f->servers[i]);
	}
	f->depth--;
}

void xds_federation_add_settled(struct xds_federation *f, struct xds_settled *s)
{
	xds_settled_add(&f->settled, s);
}

void xds_federation_remove_settled(struct xds_federation *f, struct xds_settled *s)
{
	xds_settled_remove(&f->settled, s);
}

// Watches

static struct authority *find_authority(const struct xds_federation *f, const char *name)
{
	if (!name)
		return &f->authorities[0];
	for (uint32_t i = 1; i < f->n_authorities; i++)
		if (strcmp(f->authorities[i].name, name) == 0)
			return &f->authorities[i];
	return NULL;
}

static uint32_t type_index(const struct xds_federation *f, const struct xds_type *type)
{
	uint32_t t = 0;
	while (t < f->conf.n_types && f->conf.types[t] != type)
		t++;
	CHECK(t < f->conf.n_types);
	return t;
}

// FM-11: whatever is wrong with a name, requests fail as unavailable.
static void refuse(struct xds_federation *f, const struct xds_type *type, const char *name,
	const char *why, struct xds_watcher *w)
{
	char *text;
	if (asprintf(&text, "%s \"%s\": %s (node id \"%s\")", type->label, name, why,
		    f->conf.bootstrap->node_id) < 0)
		text = NULL;
	struct xds_event event = {
		.kind = XDS_EVENT_ERROR, .code = XDS_UNAVAILABLE, .text = text ? text : why};
	f->unsettled = true;
	w->on_event(w, &event);
	free(text);
}

static int watch(struct xds_federation *f, const struct authority *a, const struct xds_type *type,
	const char *name, struct xds_watcher *w)
{
	f->unsettled = true;
	if (a->fallback)
		return xds_fallback_watch(a->fallback, type_index(f, type), name, w);
	return xds_client_watch(a->servers[0]->client, type, name, w);
}

int xds_federation_watch(struct xds_federation *f, const struct xds_type *type, const char *name,
	struct xds_watcher *w)
{
	CHECK(!w->entry && !w->fallback);
	struct xds_name parsed;
	struct lb_err err = {""};
	xds_federation_begin(f);
	int rc = xds_name_parse(name, type->url, &parsed, &err);
	if (!rc) {
		const struct authority *a = find_authority(f, parsed.authority);
		rc = a ? watch(f, a, type, parsed.text, w)
		       : lb_err_set(&err, "authority \"%s\" is not in the bootstrap",
				 parsed.authority); // FE-04
		xds_name_fini(&parsed);
	}
	if (rc == -EINVAL) {
		refuse(f, type, name, err.text, w);
		rc = 0;
	}
	xds_federation_end(f);
	return rc;
}

int xds_federation_watch_all(struct xds_federation *f, const struct xds_type *type,
	const char *name, struct xds_watcher *w)
{
	const struct authority *a = &f->authorities[0];
	int rc = 0;
	CHECK(!w->entry && !w->fallback && (w->by_wildcard || w->on_name));
	xds_federation_begin(f);
	f->unsettled = true;
	if (a->fallback)
		refuse(f, type, name, "a wildcard has one xDS server, not several", w);
	else
		rc = xds_client_watch_locator(
			a->servers[0]->client, type, name, f->conf.bootstrap->params, w);
	xds_federation_end(f);
	return rc;
}

void xds_federation_cancel(struct xds_federation *f, struct xds_watcher *w)
{
	xds_federation_begin(f);
	if (w->fallback)
		xds_fallback_cancel(w);
	else
		xds_client_cancel(xds_watcher_client(w), w);
	xds_federation_end(f);
}

// Birth and end

static struct xds_server *find_server(struct xds_federation *f, const struct xds_server_conf *conf)
{
	for (uint32_t i = 0; i < f->n_servers; i++)
		if (xds_server_conf_eq(f->servers[i].conf, conf))
			return &f->servers[i];
	return NULL;
}

static void add_servers(struct xds_federation *f, const struct xds_server_conf *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!find_server(f, &list[i]))
			f->servers[f->n_servers++] =
				(struct xds_server){.conf = &list[i], .federation = f};
}

static void on_fallback_due(void *ctx)
{
	struct xds_federation *f = ctx;
	xds_federation_begin(f);
	f->unsettled = true;
	xds_federation_end(f);
}

// A server that is listed twice is the same one.
static int add_authority(
	struct xds_federation *f, const char *name, const struct xds_server_conf *list, uint32_t n)
{
	struct authority *a = &f->authorities[f->n_authorities++];
	a->name = name;
	a->servers = calloc(n, sizeof(struct xds_server *));
	if (!a->servers)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		struct xds_server *s = find_server(f, &list[i]);
		bool listed = false;
		for (uint32_t k = 0; k < a->n_servers; k++)
			listed = listed || a->servers[k] == s;
		if (!listed)
			a->servers[a->n_servers++] = s;
	}
	a->has_server = xds_server_get(a->servers[0]);
	if (!a->has_server)
		return -ENOMEM;
	if (a->n_servers == 1)
		return 0;
	a->fallback = xds_fallback_new(&(struct xds_fallback_conf){
		.authority = name,
		.servers = a->servers,
		.n_servers = a->n_servers,
		.types = f->conf.types,
		.n_types = f->conf.n_types,
		.node_id = f->conf.bootstrap->node_id,
		.drops_deleted = f->conf.drops_deleted,
		.wheel = f->conf.wheel,
		.on_due = on_fallback_due,
		.ctx = f,
		.log = f->conf.log,
		.log_ctx = f->conf.log_ctx,
	});
	return a->fallback ? 0 : -ENOMEM;
}

static int init(struct xds_federation *f, const struct xds_bootstrap *b)
{
	uint32_t n = b->n_servers;
	for (uint32_t i = 0; i < b->n_authorities; i++)
		n += b->authorities[i].n_servers;
	f->servers = calloc(n, sizeof(*f->servers));
	f->authorities = calloc(1 + b->n_authorities, sizeof(*f->authorities));
	if (!f->servers || !f->authorities)
		return -ENOMEM;
	add_servers(f, b->servers, b->n_servers);
	for (uint32_t i = 0; i < b->n_authorities; i++)
		add_servers(f, b->authorities[i].servers, b->authorities[i].n_servers);
	int rc = add_authority(f, NULL, b->servers, b->n_servers);
	for (uint32_t i = 0; i < b->n_authorities && !rc; i++) {
		const struct xds_authority_conf *a = &b->authorities[i];
		bool own = a->n_servers; // else the top-level ones (BT-09)
		rc = add_authority(f, a->name, own ? a->servers : b->servers,
			own ? a->n_servers : b->n_servers);
	}
	return rc;
}

struct xds_federation *xds_federation_new(const struct xds_client_conf *conf)
{
	struct xds_federation *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->conf = *conf;
	f->sweep.fire = on_sweep;
	if (init(f, conf->bootstrap)) {
		xds_federation_free(f);
		return NULL;
	}
	return f;
}

void xds_federation_free(struct xds_federation *f)
{
	if (!f)
		return;
	xds_federation_begin(f); // for good: nothing is told or sent any more
	for (uint32_t i = 0; i < f->n_authorities; i++) {
		struct authority *a = &f->authorities[i];
		xds_fallback_free(a->fallback);
		a->fallback = NULL;
		if (a->has_server)
			xds_server_put(a->servers[0]);
		free(a->servers);
	}
	twheel_cancel(f->conf.wheel, &f->sweep);
	for (uint32_t i = 0; i < f->n_servers; i++)
		close_server(&f->servers[i]);
	free(f->authorities);
	free(f->servers);
	free(f);
}

// For operators

// What clients say of names that they serve alone; the rest is the fallbacks'.
struct each {
	const struct xds_federation *f;
	const struct authority *authority;
	void (*fn)(void *ctx, const struct xds_entry_info *);
	void *ctx;
};

static void each_of_client(void *ctx, const struct xds_entry_info *info)
{
	const struct each *e = ctx;
	struct xds_name name = {NULL, NULL};
	if (xds_name_is_wildcard(info->name)) // no resource
		return;
	if (xds_name_is_xdstp(info->name) &&
		xds_name_parse(info->name, info->type->url, &name, NULL))
		return;
	if (find_authority(e->f, name.authority) == e->authority)
		e->fn(e->ctx, info);
	xds_name_fini(&name);
}

void xds_federation_each(const struct xds_federation *f,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (uint32_t i = 0; i < f->n_authorities; i++) {
		const struct authority *a = &f->authorities[i];
		struct each each = {f, a, fn, ctx};
		if (a->fallback)
			xds_fallback_each(a->fallback, fn, ctx);
		else
			xds_client_each(a->servers[0]->client, each_of_client, &each);
	}
}

static void describe_server(const struct xds_server *s, struct xds_server_info *ret)
{
	const struct xds_protocol *protocol = s->federation->conf.protocol;
	*ret = (struct xds_server_info){
		.uri = s->conf->uri,
		.protocol = (protocol ? protocol : &xds_protocol_sotw)->name,
		.state = XDS_SERVER_IDLE,
		.error = "",
	};
	if (s->client)
		xds_client_server(s->client, ret);
}

void xds_federation_each_server(const struct xds_federation *f,
	void (*fn)(void *ctx, const struct xds_server_info *), void *ctx)
{
	for (uint32_t i = 0; i < f->n_servers; i++) {
		struct xds_server_info info;
		describe_server(&f->servers[i], &info);
		fn(ctx, &info);
	}
}

void xds_federation_each_client(
	struct xds_federation *f, void (*fn)(void *ctx, struct xds_client *), void *ctx)
{
	for (uint32_t i = 0; i < f->n_servers; i++)
		if (f->servers[i].client)
			fn(ctx, f->servers[i].client);
}

void xds_federation_server(const struct xds_federation *f, struct xds_server_info *ret)
{
	const struct authority *a = &f->authorities[0];
	describe_server(a->fallback ? xds_fallback_active(a->fallback) : a->servers[0], ret);
}
