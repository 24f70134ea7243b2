// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/client.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/inside.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/verdict.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ABSENT_NS (15 * NS_PER_SECOND) // FM-04
#define ABSENT_TRANSIENT_NS (30 * NS_PER_SECOND) // FM-08

static void owner_begin(void *ctx)
{
	xds_client_begin(ctx);
}

static void owner_end(void *ctx)
{
	xds_client_end(ctx);
}

void xds_client_begin(struct xds_client *c)
{
	c->depth++;
}

void xds_client_end(struct xds_client *c)
{
	CHECK(c->depth > 0);
	if (c->depth == 1) {
		do { // a flush may fail at once and so tell more
			if (c->unsettled) {
				c->unsettled = false;
				xds_settled_run(&c->settled);
			}
			xds_ads_flush(c->ads);
		} while (c->unsettled);
	}
	c->depth--;
}

unsigned xds_client_depth(const struct xds_client *c)
{
	return c->depth;
}

void xds_client_add_settled(struct xds_client *c, struct xds_settled *s)
{
	xds_settled_add(&c->settled, s);
}

void xds_client_remove_settled(struct xds_client *c, struct xds_settled *s)
{
	xds_settled_remove(&c->settled, s);
}

static const char *text_of(const char *s)
{
	return s ? s : "";
}

// Entries

static void absent_fired(struct twheel_timer *t)
{
	struct xds_entry *e = CONTAINER_OF(t, struct xds_entry, absent);
	struct xds_client *c = e->client;
	bool transient = c->server->timer_is_transient_error;
	if (xds_entry_is_wildcard(e)) {
		xds_client_begin(c);
		xds_wildcard_answered(e);
		xds_client_tell(c, ++c->n_events);
		xds_client_end(c);
		return;
	}
	xds_client_begin(c);
	xds_entry_set_error(e,
		"%s \"%s\": no answer from xDS server %s within %d s (node id \"%s\")",
		c->conf.types[e->type]->label, e->sub->name, c->server->uri, transient ? 30 : 15,
		c->conf.bootstrap->node_id);
	if (transient)
		xds_entry_fail(e, XDS_STATUS_TIMEOUT, XDS_UNAVAILABLE, false);
	else
		xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	xds_client_log(c, "%s", text_of(xds_entry_trouble(e)->error));
	xds_client_tell(c, ++c->n_events);
	xds_client_end(c);
}

// RS-04. Not even a value whose server is silent or gone outlives its TTL.
void xds_entry_expire(struct xds_entry *e)
{
	struct xds_client *c = e->client;
	xds_client_begin(c);
	xds_entry_set_error(e, "%s \"%s\" from xDS server %s has expired (node id \"%s\")",
		c->conf.types[e->type]->label, e->sub->name, c->server->uri,
		c->conf.bootstrap->node_id);
	xds_entry_drop_value(e);
	xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	xds_client_log(c, "%s", text_of(xds_entry_trouble(e)->error));
	xds_client_tell(c, ++c->n_events);
	xds_client_end(c);
}

// Watches

static uint32_t type_index(const struct xds_client *c, const struct xds_type *type)
{
	uint32_t t = 0;
	while (t < c->conf.n_types && c->conf.types[t] != type)
		t++;
	CHECK(t < c->conf.n_types);
	return t;
}

// Fixed for life: one set for all old-style names, one for each authority (TP2-L01). Names of
// federation are canonical.
static int find_params(
	const struct xds_client *c, uint32_t type, const char *name, struct xds_params **ret)
{
	const struct xds_bootstrap *b = c->conf.bootstrap;
	struct xds_name parsed;
	if (!xds_name_is_xdstp(name)) {
		*ret = b->params;
		return 0;
	}
	int rc = xds_name_parse(name, c->conf.types[type]->url, &parsed, NULL);
	if (rc == -ENOMEM)
		return rc;
	*ret = NULL;
	for (uint32_t i = 0; !rc && i < b->n_authorities; i++)
		if (strcmp(b->authorities[i].name, parsed.authority) == 0)
			*ret = b->authorities[i].params;
	if (!rc)
		xds_name_fini(&parsed);
	return 0;
}

int xds_client_watch_locator(struct xds_client *c, const struct xds_type *type, const char *name,
	struct xds_params *params, struct xds_watcher *w)
{
	CHECK(!w->entry);
	uint32_t t = type_index(c, type);
	xds_client_begin(c);
	struct xds_entry *e = xds_subs_find(&c->subs[t], name, params);
	if (!e) {
		e = xds_subs_add(&c->subs[t], c, t, name, params);
		if (e)
			e->absent.fire = absent_fired;
	}
	if (e) {
		if (!w->by_wildcard && e->n_asking++ == 0)
			xds_subs_want(&c->subs[t], e, c->conf.protocol->asks_again);
		w->entry = e;
		xds_watchers_add(&e->watchers, w, xds_client_round(c->n_events));
		xds_client_tell_new(e, w);
	}
	xds_client_end(c);
	return e ? 0 : -ENOMEM;
}

int xds_client_watch(
	struct xds_client *c, const struct xds_type *type, const char *name, struct xds_watcher *w)
{
	struct xds_params *params;
	int rc = find_params(c, type_index(c, type), name, &params);
	return rc ? rc : xds_client_watch_locator(c, type, name, params, w);
}

void xds_client_cancel(struct xds_client *c, struct xds_watcher *w)
{
	struct xds_entry *e = w->entry;
	if (!e)
		return;
	xds_client_begin(c);
	xds_watchers_remove(&e->watchers, w);
	w->entry = NULL;
	if (!e->watchers.first)
		xds_entry_end_deletion(e, "is not needed any more");
	if (w->by_wildcard)
		xds_subs_left(&c->subs[e->type], e);
	else if (--e->n_asking == 0)
		xds_subs_unwant(&c->subs[e->type], e);
	xds_client_end(c);
}

void xds_client_forget(struct xds_client *c, struct xds_watcher *w)
{
	struct xds_entry *e = w->entry;
	struct xds_subs *subs = &c->subs[e->type];
	xds_client_begin(c);
	xds_entry_drop_value(e);
	xds_entry_clear_trouble(e);
	e->error_code = XDS_OK;
	e->error_is_data = e->ambient = e->ignores_deletion = false;
	e->status = XDS_STATUS_REQUESTED;
	e->answered = false;
	twheel_cancel(c->conf.wheel, &e->absent); // the newer value is held
	// A server that was told of the version would not send it again.
	bool told = xds_ads_forget_version(c->ads, e->type);
	if (e->asked && (told || c->conf.protocol->asks_again)) {
		xds_chain_remove(&e->pending);
		xds_chain_add(&subs->pending, &e->pending);
	}
	xds_client_end(c);
}

bool xds_client_reset_type(struct xds_client *c, const struct xds_type *type)
{
	uint32_t t = type_index(c, type);
	if (!xds_chain_empty(&c->subs[t].all))
		return false;
	xds_ads_reset_type(c->ads, t);
	return true;
}

struct xds_client *xds_watcher_client(const struct xds_watcher *w)
{
	return w->entry ? w->entry->client : NULL;
}

// The stream calls back

static bool is_held(const struct xds_entry *e)
{
	for (const struct xds_watcher *w = e->watchers.first; w; w = w->next)
		if (!w->held)
			return false;
	return e->watchers.first;
}

static void owner_on_sent(void *ctx, uint32_t type)
{
	struct xds_client *c = ctx;
	uint64_t wait = c->server->timer_is_transient_error ? ABSENT_TRANSIENT_NS : ABSENT_NS;
	struct xds_chain *in_flight = &c->subs[type].in_flight;
	xds_wildcard_sent(c, type);
	while (!xds_chain_empty(in_flight)) {
		struct xds_entry *e = CONTAINER_OF(in_flight->next, struct xds_entry, in_flight);
		xds_chain_remove(&e->in_flight);
		// What is cached needs no answer (FM-05, DL-13), and "*" is nothing that may be
		// absent.
		if (is_held(e) || e->value || e->answered || xds_entry_is_wildcard(e) ||
			e->status == XDS_STATUS_DOES_NOT_EXIST || twheel_armed(&e->absent))
			continue;
		twheel_arm(c->conf.wheel, &e->absent, twheel_now(c->conf.wheel) + wait);
	}
}

static int owner_on_response(
	void *ctx, uint32_t type, const struct xds_response *r, char **ret_nack)
{
	return xds_client_respond(ctx, type, r, ret_nack);
}

static void each_entry(struct xds_subs *subs, void (*fn)(struct xds_entry *))
{
	for (struct xds_chain *c = subs->all.next; c != &subs->all; c = c->next)
		fn(CONTAINER_OF(c, struct xds_entry, all));
}

static void add_trouble(struct xds_entry *e)
{
	e->ambient = e->value;
	xds_client_add_news(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
}

static void end_trouble(struct xds_entry *e)
{
	if (!e->ambient || xds_entry_trouble(e)->error)
		return;
	e->ambient = false;
	xds_client_add_news(e, XDS_NEWS_CLEAR);
}

static void owner_on_lost(void *ctx, const char *why, bool had_response)
{
	struct xds_client *c = ctx;
	char *old = c->failure;
	c->unsettled = true;
	if (had_response) { // FM-02
		xds_client_log(c, "xDS server %s ended the stream: %s", c->server->uri, why);
		return;
	}
	c->failure = NULL;
	c->n_failures += !old;
	xds_set_text(&c->failure, "xDS server %s is not reachable: %s (node id \"%s\")",
		c->server->uri, why, c->conf.bootstrap->node_id);
	bool news = c->failure && (!old || strcmp(old, c->failure) != 0);
	free(old);
	if (!news) // one error an outage, unless its reason changes (FM-01)
		return;
	xds_client_log(c, "%s", c->failure);
	for (uint32_t t = 0; t < c->conf.n_types; t++)
		each_entry(&c->subs[t], add_trouble);
	xds_client_tell(c, ++c->n_events);
}

static void owner_on_recovered(void *ctx)
{
	struct xds_client *c = ctx;
	c->unsettled = true;
	if (!c->failure)
		return;
	xds_clear_text(&c->failure);
	xds_client_log(c, "xDS server %s answers again", c->server->uri);
	for (uint32_t t = 0; t < c->conf.n_types; t++)
		each_entry(&c->subs[t], end_trouble);
	xds_client_tell(c, ++c->n_events);
}

static void owner_log(void *ctx, const char *line)
{
	xds_client_log(ctx, "%s", line);
}

static const struct xds_ads_owner owner = {
	.on_sent = owner_on_sent,
	.on_response = owner_on_response,
	.on_lost = owner_on_lost,
	.on_recovered = owner_on_recovered,
	.begin = owner_begin,
	.end = owner_end,
	.log = owner_log,
};

struct xds_client *xds_client_new(const struct xds_client_conf *conf)
{
	CHECK(conf->n_types <= XDS_MAX_TYPES);
	struct xds_client *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	if (!c->conf.protocol)
		c->conf.protocol = &xds_protocol_sotw;
	c->server = conf->server ? conf->server : &conf->bootstrap->servers[0];
	c->subs = calloc(conf->n_types, sizeof(*c->subs));
	if (!c->subs || xds_node_init(&c->node, conf->bootstrap, conf->user_agent_version)) {
		free(c->subs);
		free(c);
		return NULL;
	}
	bool ok = true;
	for (uint32_t t = 0; t < conf->n_types; t++)
		ok &= xds_subs_init(&c->subs[t], conf->types[t], c->conf.protocol) == 0;
	if (!ok) {
		xds_client_free(c);
		return NULL;
	}
	c->ads = xds_ads_new(&(struct xds_ads_conf){
		.server = c->server,
		.protocol = c->conf.protocol,
		.types = conf->types,
		.subs = c->subs,
		.n_types = conf->n_types,
		.transport = conf->transport,
		.node = &c->node,
		.wheel = conf->wheel,
		.rand = conf->rand,
		.owner = &owner,
		.ctx = c,
	});
	if (!c->ads) {
		xds_client_free(c);
		return NULL;
	}
	return c;
}

void xds_client_free(struct xds_client *c)
{
	if (!c)
		return;
	xds_ads_free(c->ads);
	for (uint32_t t = 0; t < c->conf.n_types; t++)
		xds_subs_fini(&c->subs[t]);
	free(c->subs);
	xds_node_fini(&c->node);
	free(c->failure);
	free(c);
}

// For operators

const char *xds_status_name(enum xds_status s)
{
	switch (s) {
	case XDS_STATUS_REQUESTED:
		return "REQUESTED";
	case XDS_STATUS_DOES_NOT_EXIST:
		return "DOES_NOT_EXIST";
	case XDS_STATUS_ACKED:
		return "ACKED";
	case XDS_STATUS_NACKED:
		return "NACKED";
	case XDS_STATUS_RECEIVED_ERROR:
		return "RECEIVED_ERROR";
	case XDS_STATUS_TIMEOUT:
		return "TIMEOUT";
	}
	return "UNKNOWN";
}

const char *xds_server_state_name(enum xds_server_state s)
{
	switch (s) {
	case XDS_SERVER_IDLE:
		return "IDLE";
	case XDS_SERVER_CONNECTING:
		return "CONNECTING";
	case XDS_SERVER_CONNECTED:
		return "CONNECTED";
	case XDS_SERVER_BACKOFF:
		return "BACKOFF";
	}
	return "UNKNOWN";
}

static struct xds_entry_info info_of(const struct xds_entry *e)
{
	const struct xds_trouble *t = xds_entry_trouble(e);
	return (struct xds_entry_info){
		.type = e->client->conf.types[e->type],
		.name = e->sub->name,
		.status = e->status,
		.res = e->value,
		.version = text_of(e->version),
		.updated_ns = e->updated_ns,
		.expires_ns = e->lease ? e->lease->expires_ns : 0,
		.error = text_of(t->error),
		.error_code = e->error_code,
		.error_is_data = e->error_is_data,
		.error_version = text_of(t->error_version),
		.refused = t->refused,
		.error_ns = t->error_ns,
	};
}

void xds_watcher_info(const struct xds_watcher *w, struct xds_entry_info *ret)
{
	*ret = info_of(w->entry);
}

void xds_watcher_word(const struct xds_watcher *w, struct xds_word *ret)
{
	const struct xds_entry *e = w->entry;
	const struct xds_trouble *t = xds_entry_trouble(e);
	*ret = (struct xds_word){
		.variant = e->sub->variant,
		.status = e->status,
		.code = t->said_code,
		.text = text_of(t->said),
		.constraints = t->said_of,
	};
}

void xds_client_each(
	const struct xds_client *c, void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		const struct xds_chain *all = &c->subs[t].all;
		for (const struct xds_chain *at = all->next; at != all; at = at->next) {
			const struct xds_entry *e = CONTAINER_OF(at, struct xds_entry, all);
			struct xds_entry_info info = info_of(e);
			if (e->watchers.first)
				fn(ctx, &info);
		}
	}
}

const char *xds_client_failure(const struct xds_client *c)
{
	return c->failure;
}

void xds_client_server(const struct xds_client *c, struct xds_server_info *ret)
{
	xds_ads_info(c->ads, ret);
	ret->connected = !c->failure && ret->state != XDS_SERVER_IDLE;
	ret->n_failures = c->n_failures;
	for (uint32_t t = 0; t < c->conf.n_types; t++) {
		struct xds_variants_counts counts;
		xds_variants_counts(c->subs[t].variants, &counts);
		ret->n_unwanted += counts.n_unwanted;
		ret->updates[t] = c->subs[t].updates;
	}
}
