// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/gather.h"

#include "ctrl/base/text.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/variants/version.h"
#include "ctrl/xds/wire.h"
#include "lb/base/container_of.h"
#include "lb/base/grow.h"

#include <stdlib.h>
#include <string.h>

// What an item borrows from.
struct held {
	char *name; // NULL = it is the resource's own
	struct xds_res *res;
	const char *version;
	struct xds_constraints *constraints;
};

// ResourceLocators.
struct locators {
	struct str *list; // their bytes are owned
	size_t n;
	uint32_t room;
};

struct xds_gathered_part {
	const char *server; // the bootstrap's
	char *type_url; // a copy: a proxy's types change; NULL = the file's sections stay
	struct xds_state_item *items;
	struct held *held; // as many
	size_t n;
	uint32_t room;
	struct locators wildcards, absent;
};

struct gathering {
	struct xds_gathered *into;
	const struct xds_cache *cache;
	size_t n_absent, absent_len; // of the server, so far
};

static struct xds_gathered_part *add_part(struct xds_gathered *g, const char *server)
{
	g->failed = g->failed || !grow(&g->parts, g->n_parts, &g->room, sizeof(*g->parts));
	if (g->failed)
		return NULL;
	struct xds_gathered_part *p = &g->parts[g->n_parts++];
	*p = (struct xds_gathered_part){.server = server};
	return p;
}

// Resources

static bool has_room(struct xds_gathered_part *p)
{
	uint32_t room = p->room; // of both
	return grow(&p->items, p->n, &room, sizeof(*p->items)) &&
	       grow(&p->held, p->n, &p->room, sizeof(*p->held));
}

static void add(struct xds_gathered *g, const char *name, struct xds_res *res, const char *version,
	struct xds_constraints *constraints)
{
	struct xds_gathered_part *p = &g->parts[g->n_parts - 1];
	if (res->expires_s || res->do_not_cache)
		return;
	bool is_own = strcmp(name, res->name) == 0;
	char *copy = is_own ? NULL : strdup(name);
	g->failed = g->failed || (!is_own && !copy) || !has_room(p);
	if (g->failed) {
		free(copy);
		return;
	}
	struct str encoded = {NULL, 0};
	if (constraints)
		encoded.p = (const char *)xds_constraints_bytes(constraints, &encoded.len);
	p->held[p->n] = (struct held){
		.name = copy,
		.res = xds_res_get(res),
		.version = version ? xds_version_get(version) : NULL,
		.constraints = xds_constraints_get(constraints),
	};
	p->items[p->n++] = (struct xds_state_item){
		.name = str_from(is_own ? res->name : copy),
		.version = str_from(text_or_empty(version)),
		.constraints = encoded,
		.bytes = {(const char *)res->bytes, res->len},
	};
}

static void add_variant(void *ctx, const char *name, const struct xds_variant *v)
{
	struct gathering *g = ctx;
	add(g->into, name, v->content, v->version, v->constraints);
}

// Returns its length.
static size_t add_locator(struct xds_gathered *g, struct locators *to, const struct xds_entry *e)
{
	uint8_t *bytes;
	size_t len;
	g->failed = g->failed || !grow(&to->list, to->n, &to->room, sizeof(*to->list));
	if (g->failed)
		return 0;
	g->failed = xds_wire_locator(e->sub->params, e->sub->name, &bytes, &len) != 0;
	if (g->failed)
		return 0;
	to->list[to->n++] = (struct str){(const char *)bytes, len};
	return len;
}

// Its server said so, or nothing in all the time that it had. What had a TTL may be back when it is
// asked for again. A proxy's clients know by themselves.
static bool is_absent(const struct xds_entry *e)
{
	bool is_known = e->error_code == XDS_NOT_FOUND || e->status == XDS_STATUS_TIMEOUT;
	return is_known && !e->has_expired && !e->value && !TAILQ_EMPTY(&e->watchers) &&
	       !e->cache->conf->types[e->type]->is_opaque;
}

// What is above the bounds goes: nobody but the names' own users waits for it.
static void add_absent(struct gathering *g, struct locators *to, const struct xds_entry *e)
{
	if (g->n_absent == XDS_STATE_MAX_ABSENT)
		return;
	size_t len = add_locator(g->into, to, e);
	if (len == 0)
		return;
	if (len > XDS_STATE_MAX_ABSENT_LEN - g->absent_len) {
		free((void *)(uintptr_t)to->list[--to->n].p);
		return;
	}
	g->absent_len += len;
	g->n_absent++;
}

// What the server has deleted may serve on (A88), but for a proxy's clients.
static void add_entry(struct gathering *g, const struct xds_entry *e)
{
	struct xds_gathered_part *p = &g->into->parts[g->into->n_parts - 1];
	if (xds_entry_is_wildcard(e))
		(void)add_locator(g->into, &p->wildcards, e);
	else if (is_absent(e))
		add_absent(g, &p->absent, e);
	else if (e->value && !e->sub->variant && !g->cache->conf->types[e->type]->is_opaque)
		add(g->into, e->sub->name, e->value, e->version, NULL);
}

static void add_type(struct gathering *g, uint32_t type)
{
	const struct xds_subs *subs = &g->cache->subs[type];
	if (list_empty(&subs->all))
		return;
	struct xds_gathered_part *p = add_part(g->into, g->cache->server->uri);
	if (!p)
		return;
	p->type_url = strdup(g->cache->conf->types[type]->url);
	g->into->failed = g->into->failed || !p->type_url;
	xds_variants_each(subs->variants, add_variant, g);
	for (const struct list_link *at = subs->all.next; at != &subs->all; at = at->next)
		add_entry(g, CONTAINER_OF(at, struct xds_entry, all));
}

// Servers

static bool is_open(const struct xds_entry *e)
{
	bool is_asked = !TAILQ_EMPTY(&e->watchers);
	return is_asked && (e->is_stale || (e->status == XDS_STATUS_REQUESTED && !e->value));
}

// A configuration that has come in half would be worse than the whole one before it.
static bool is_whole(struct xds_client *client, bool in_part)
{
	struct xds_server_info server;
	const struct xds_cache *c = xds_client_cache(client);
	xds_client_server(client, &server);
	for (uint32_t t = 0; server.n_responses && !in_part && t < c->conf->n_types; t++) {
		const struct list_link *all = &c->subs[t].all;
		for (const struct list_link *at = all->next; at != all; at = at->next)
			if (is_open(CONTAINER_OF(at, struct xds_entry, all)))
				return false;
	}
	return server.n_responses;
}

static void add_client(void *ctx, struct xds_client *client)
{
	struct xds_gathered *into = ctx;
	struct gathering g = {into, xds_client_cache(client), 0, 0};
	if (!is_whole(client, into->in_part)) {
		(void)add_part(into, g.cache->server->uri);
		return;
	}
	into->n_fresh++;
	for (uint32_t t = 0; t < g.cache->conf->n_types; t++)
		add_type(&g, t);
}

struct xds_gathered *xds_gather(
	xds_each_client_fn each, void *of, const char *node_id, uint64_t written_s, bool in_part)
{
	struct xds_gathered *g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->in_part = in_part;
	each(of, add_client, g);
	g->list = calloc(g->n_parts + 1, sizeof(*g->list));
	if (g->failed || !g->list) {
		xds_gathered_free(g);
		return NULL;
	}
	for (size_t i = 0; i < g->n_parts; i++) {
		const struct xds_gathered_part *p = &g->parts[i];
		g->list[i] = (struct xds_state_part){
			.server = p->server,
			.type_url = p->type_url,
			.items = p->items,
			.n_items = p->n,
			.wildcards = p->wildcards.list,
			.n_wildcards = p->wildcards.n,
			.absent = p->absent.list,
			.n_absent = p->absent.n,
		};
	}
	g->job.image = (struct xds_state_image){
		.node_id = node_id,
		.written_s = written_s,
		.parts = g->list,
		.n_parts = g->n_parts,
	};
	return g;
}

static void locators_fini(struct locators *l)
{
	for (size_t i = 0; i < l->n; i++)
		free((void *)(uintptr_t)l->list[i].p);
	free(l->list);
}

static void part_fini(struct xds_gathered_part *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->held[i].name);
		xds_res_put(p->held[i].res);
		xds_version_put(p->held[i].version);
		xds_constraints_put(p->held[i].constraints);
	}
	locators_fini(&p->wildcards);
	locators_fini(&p->absent);
	free(p->items);
	free(p->held);
	free(p->type_url);
}

void xds_gathered_free(struct xds_gathered *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_parts; i++)
		part_fini(&g->parts[i]);
	free(g->parts);
	free(g->list);
	free(g);
}
