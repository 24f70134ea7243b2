// SPDX-License-Identifier: Apache-2.0
// What a response does to the cache (xds-client.md §1, 2, 10). Each entry is judged by itself: the
// good ones are used although others are refused (A46).
#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/inside.h"
#include "ctrl/xds/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CODE_NOT_FOUND 5
#define CODE_PERMISSION_DENIED 7

// One response being applied.
struct round {
	struct xds_client *client;
	uint32_t type;
	const struct xds_response *response;
	uint64_t number;
	FILE *complaints; // becomes the text of the NACK
	bool nack;
	bool starved; // memory ran out: the server has to say it again
	bool nameless; // an entry is there of which not even the name could be read
	struct strmap names; // of this response, for PC-07
};

struct seen_name {
	struct strmap_link link;
	char name[];
};

static struct xds_entry *find_entry(struct round *r, const char *name)
{
	return xds_subs_find(&r->client->subs[r->type], name);
}

static void complain(struct round *r, size_t index, const char *name, const char *why)
{
	fprintf(r->complaints, "%s", r->nack ? "; " : "");
	if (name)
		fprintf(r->complaints, "%s \"%s\": %s", r->client->conf.types[r->type]->label, name,
			why);
	else
		fprintf(r->complaints, "resource %zu: %s", index, why);
	r->nack = true;
}

// FM-06: whatever the response says of it, it has been answered.
static void mark_seen(struct round *r, struct xds_entry *e)
{
	e->seen = r->number;
	e->answered = true;
	xds_chain_remove(&e->in_flight);
	twheel_cancel(r->client->conf.wheel, &e->absent);
}

void xds_entry_drop_value(struct xds_entry *e)
{
	xds_res_put(e->value);
	e->value = NULL;
	xds_clear_text(&e->version);
	e->updated_ns = 0;
	twheel_cancel(e->client->conf.wheel, &e->ttl);
}

void xds_entry_fail(struct xds_entry *e, enum xds_status status, enum xds_code code, bool is_data)
{
	e->status = status;
	e->error_code = code;
	e->error_ns = twheel_now(e->client->conf.wheel);
	if (e->value && is_data && e->client->server->fail_on_data_errors)
		xds_entry_drop_value(e);
	e->ambient = e->value;
	xds_client_add_news(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
}

// RS-04: each time it is sent it holds anew, and for good if no TTL comes with it.
static void hold(struct round *r, struct xds_entry *e, const struct xds_response_entry *in)
{
	struct twheel *wheel = r->client->conf.wheel;
	if (in->has_ttl)
		twheel_arm(wheel, &e->ttl, twheel_now(wheel) + in->ttl_ns);
	else
		twheel_cancel(wheel, &e->ttl);
}

static void accept(struct round *r, struct xds_entry *e, struct xds_res *res,
	const struct xds_response_entry *in)
{
	// SW-16: same content, no event; but an error that was told is over (SW-17).
	bool same = e->value && xds_res_eq(e->value, res);
	if (!same) {
		xds_res_put(e->value);
		e->value = xds_res_get(res);
		xds_client_add_news(e, XDS_NEWS_RESOURCE);
	} else if (e->ambient) {
		xds_client_add_news(e, XDS_NEWS_CLEAR);
	}
	e->ambient = false;
	e->status = XDS_STATUS_ACKED;
	e->updated_ns = twheel_now(r->client->conf.wheel);
	xds_set_text(&e->version, "%s", in->version);
	xds_clear_text(&e->error);
	xds_clear_text(&e->error_version);
	e->error_code = XDS_OK;
	e->error_ns = 0;
	hold(r, e, in);
}

static void refuse(struct round *r, struct xds_entry *e, const char *version, const char *why)
{
	const struct xds_client *c = r->client;
	xds_set_text(&e->error, "%s \"%s\" from xDS server %s is invalid: %s (node id \"%s\")",
		c->conf.types[r->type]->label, e->name, c->server->uri, why,
		c->conf.bootstrap->node_id);
	xds_set_text(&e->error_version, "%s", version);
	xds_entry_fail(e, XDS_STATUS_NACKED, XDS_INVALID_ARGUMENT, true);
}

static bool was_named(const struct round *r, const char *name)
{
	return strmap_find(&r->names, name);
}

static void note_name(struct round *r, const char *name)
{
	struct seen_name *s = malloc(sizeof(*s) + strlen(name) + 1);
	if (s)
		strcpy(s->name, name);
	if (!s || strmap_add(&r->names, &s->link, s->name)) {
		free(s);
		r->starved = true;
	}
}

static void forget_names(struct strmap *m)
{
	for (uint32_t i = 0; i < m->n_buckets; i++) {
		for (struct strmap_link *l = m->buckets[i], *next; l; l = next) {
			next = l->next;
			free((char *)l - offsetof(struct seen_name, link));
		}
	}
	strmap_fini(m);
}

// Neither a resource nor an error = no memory.
static void decode_entry(
	struct round *r, const struct xds_response_entry *in, struct xds_decoded *ret)
{
	const struct xds_type *type = r->client->conf.types[r->type];
	if (*in->err.text)
		ret->err = in->err;
	else if (in->heartbeat)
		lb_err_set(&ret->err, "Resource: holds no resource");
	else if (strcmp(in->type_url, type->url) != 0) // PC-11
		lb_err_set(&ret->err, "is a \"%.128s\"", in->type_url);
	else
		type->decode(in->bytes, in->len, ret);
}

// RS-03. False = there is nothing for it to keep up.
static bool apply_heartbeat(struct round *r, const struct xds_response_entry *in)
{
	struct xds_entry *e = in->name ? find_entry(r, in->name) : NULL;
	if (!e) // of what nobody wants any more (WA-12)
		return in->name && in->has_ttl;
	if (!e->value || !e->version || strcmp(e->version, in->version) != 0)
		return false;
	mark_seen(r, e);
	hold(r, e, in);
	return true;
}

// The resource of an entry, if it has one; the name may be unknown.
static void apply_decoded(struct round *r, size_t index, const char *name, struct xds_decoded *d)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	if (!name) {
		r->nameless = true;
		complain(r, index, NULL, d->res ? "has no name" : d->err.text);
		return;
	}
	if (was_named(r, name)) { // PC-07
		complain(r, index, name, "is there more than once");
		return;
	}
	note_name(r, name);
	if (!d->res)
		complain(r, index, name, d->err.text);
	struct xds_entry *e = find_entry(r, name);
	if (!e) // nobody asked (PC-08)
		return;
	mark_seen(r, e);
	if (d->res)
		accept(r, e, d->res, in);
	else
		refuse(r, e, in->version, d->err.text);
}

static void apply_entry(struct round *r, size_t index)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	struct xds_decoded d = {0};
	if (in->heartbeat && !*in->err.text && apply_heartbeat(r, in))
		return;
	decode_entry(r, in, &d);
	const char *name = in->name ? in->name : d.name; // RS-01: the wrapper's comes first
	if (!d.res && !*d.err.text)
		r->starved = true;
	else
		apply_decoded(r, index, name && *name ? name : NULL, &d);
	xds_res_put(d.res);
	free(d.name);
}

// The server says, or shows, that there is no such resource (any more).
static void apply_absence(struct round *r, struct xds_entry *e)
{
	struct xds_client *c = r->client;
	if (e->error_code == XDS_NOT_FOUND) // told already (DE-09)
		return;
	xds_set_text(&e->error, "%s \"%s\" %s xDS server %s (node id \"%s\")",
		c->conf.types[r->type]->label, e->name,
		e->value ? "was deleted by" : "does not exist on", c->server->uri,
		c->conf.bootstrap->node_id);
	xds_clear_text(&e->error_version);
	xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
	xds_client_log(c, "%s", e->error ? e->error : "");
}

// DL-06, DL-07, DL-12.
static void apply_removal(struct round *r, const char *name)
{
	if (was_named(r, name)) {
		complain(r, 0, name, "is both there and removed");
		return;
	}
	struct xds_entry *e = find_entry(r, name);
	if (!e)
		return;
	mark_seen(r, e);
	apply_absence(r, e);
}

// DE-07, DE-08.
static void apply_error(struct round *r, size_t index)
{
	const struct xds_response_error *in = &r->response->errors[index];
	if (!in->name) {
		complain(r, index, NULL, "resource_errors entry without name or error");
		return;
	}
	if (was_named(r, in->name)) {
		complain(r, index, in->name, "is both there and in error");
		return;
	}
	struct xds_entry *e = find_entry(r, in->name);
	if (!e)
		return;
	const struct xds_client *c = r->client;
	mark_seen(r, e);
	xds_set_text(&e->error,
		"%s \"%s\": xDS server %s answered with code %d: %s (node id \"%s\")",
		c->conf.types[r->type]->label, e->name, c->server->uri, in->code, in->text,
		c->conf.bootstrap->node_id);
	xds_set_text(&e->error_version, "%s", r->response->version);
	bool not_found = in->code == CODE_NOT_FOUND;
	xds_entry_fail(e, XDS_STATUS_RECEIVED_ERROR, not_found ? XDS_NOT_FOUND : XDS_UNAVAILABLE,
		not_found || in->code == CODE_PERMISSION_DENIED);
}

// SW-11 to SW-13. What a response that could not be read whole leaves out may be the very entry
// that had no readable name, so that nothing is concluded from it.
static void delete_missing(struct round *r)
{
	const struct xds_client *c = r->client;
	if (!r->response->full || !c->conf.types[r->type]->full_state || r->nameless)
		return;
	const struct xds_chain *all = &c->subs[r->type].all;
	for (struct xds_chain *at = all->next; at != all; at = at->next) {
		struct xds_entry *e = XDS_ENTRY_OF(at, all);
		if (e->seen != r->number && e->value && e->watchers)
			apply_absence(r, e);
	}
}

int xds_client_respond(
	struct xds_client *c, uint32_t type, const struct xds_response *response, char **ret_nack)
{
	char *text = NULL;
	size_t len;
	struct round r = {
		.client = c,
		.type = type,
		.response = response,
		.number = ++c->n_events,
		.complaints = open_memstream(&text, &len),
	};
	if (!r.complaints)
		return -ENOMEM;
	for (size_t i = 0; i < response->n_entries; i++)
		apply_entry(&r, i);
	for (size_t i = 0; i < response->n_removed && !r.starved; i++)
		apply_removal(&r, response->removed[i]);
	for (size_t i = 0; i < response->n_errors && !r.starved; i++)
		apply_error(&r, i);
	if (!r.starved)
		delete_missing(&r);
	forget_names(&r.names);
	if (fclose(r.complaints) != 0 && r.nack)
		r.starved = true;
	if (r.starved || !r.nack) {
		free(text);
		text = NULL;
	}
	if (text)
		xds_client_log(c, "NACK of %s version \"%s\" from xDS server %s: %s",
			c->conf.types[type]->label, response->version, c->server->uri, text);
	xds_client_tell(c, r.number);
	*ret_nack = text;
	return r.starved ? -ENOMEM : 0;
}
