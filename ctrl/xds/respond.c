// SPDX-License-Identifier: Apache-2.0
// What a response does to the cache (xds-client.md §1, 2, 10). Each entry is judged by itself: the
// good ones are used although others are refused (A46).
#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/inside.h"
#include "ctrl/xds/wire.h"

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

void xds_entry_fail(struct xds_entry *e, enum xds_status status, enum xds_code code, bool is_data)
{
	e->status = status;
	e->error_code = code;
	e->error_ns = twheel_now(e->client->conf.wheel);
	if (e->value && is_data && e->client->server->fail_on_data_errors) {
		xds_res_put(e->value);
		e->value = NULL;
		xds_clear_text(&e->version);
		e->updated_ns = 0;
	}
	e->ambient = e->value;
	xds_client_add_news(e, e->value ? XDS_NEWS_AMBIENT : XDS_NEWS_ERROR);
}

static void accept(struct round *r, struct xds_entry *e, struct xds_res *res, const char *version)
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
	xds_set_text(&e->version, "%s", version);
	xds_clear_text(&e->error);
	xds_clear_text(&e->error_version);
	e->error_code = XDS_OK;
	e->error_ns = 0;
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

// PC-07. False = the name was there before, or there is no memory to know.
static bool note_name(struct round *r, const char *name)
{
	if (strmap_find(&r->names, name))
		return false;
	struct seen_name *s = malloc(sizeof(*s) + strlen(name) + 1);
	if (!s)
		return false;
	strcpy(s->name, name);
	if (strmap_add(&r->names, &s->link, s->name)) {
		free(s);
		return false;
	}
	return true;
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

static void decode_entry(
	struct round *r, const struct xds_response_entry *in, struct xds_decoded *ret)
{
	const struct xds_type *type = r->client->conf.types[r->type];
	if (*in->err.text)
		ret->err = in->err;
	else if (strcmp(in->type_url, type->url) != 0) // PC-11
		lb_err_set(&ret->err, "is a \"%.128s\"", in->type_url);
	else
		type->decode(in->bytes, in->len, ret);
	if (!ret->res && !*ret->err.text)
		lb_err_set(&ret->err, "no memory");
}

static void apply_entry(struct round *r, size_t index)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	struct xds_decoded d = {0};
	decode_entry(r, in, &d);
	const char *name = in->name ? in->name : d.name; // RS-01: the wrapper's comes first
	if (name && !*name)
		name = NULL;
	if (!name) {
		r->nameless = true;
		if (d.res) {
			xds_res_put(d.res);
			d.res = NULL;
			lb_err_set(&d.err, "has no name");
		}
	} else if (!note_name(r, name)) {
		complain(r, index, name, "is there more than once");
		xds_res_put(d.res);
		free(d.name);
		return;
	}
	if (!d.res)
		complain(r, index, name, d.err.text);

	struct xds_entry *e = name ? find_entry(r, name) : NULL;
	if (e) { // others: nobody asked (PC-08)
		mark_seen(r, e);
		if (d.res)
			accept(r, e, d.res, in->version);
		else
			refuse(r, e, in->version, d.err.text);
	}
	xds_res_put(d.res);
	free(d.name);
}

// DE-07, DE-08.
static void apply_error(struct round *r, size_t index)
{
	const struct xds_response_error *in = &r->response->errors[index];
	if (!in->name) {
		complain(r, index, NULL, "resource_errors entry without name or error");
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
	struct xds_client *c = r->client;
	if (!r->response->full || !c->conf.types[r->type]->full_state || r->nameless)
		return;
	const struct xds_chain *all = &c->subs[r->type].all;
	for (struct xds_chain *at = all->next; at != all; at = at->next) {
		struct xds_entry *e = XDS_ENTRY_OF(at, all);
		if (e->seen == r->number || !e->value || !e->watchers)
			continue;
		if (e->status == XDS_STATUS_DOES_NOT_EXIST) // told already (DE-09)
			continue;
		xds_set_text(&e->error, "%s \"%s\" was deleted by xDS server %s (node id \"%s\")",
			c->conf.types[r->type]->label, e->name, c->server->uri,
			c->conf.bootstrap->node_id);
		xds_clear_text(&e->error_version);
		xds_entry_fail(e, XDS_STATUS_DOES_NOT_EXIST, XDS_NOT_FOUND, true);
		xds_client_log(c, "%s", e->error ? e->error : "");
	}
}

char *xds_client_respond(struct xds_client *c, uint32_t type, const struct xds_response *response)
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
		return strdup("no memory");
	for (size_t i = 0; i < response->n_entries; i++)
		apply_entry(&r, i);
	for (size_t i = 0; i < response->n_errors; i++)
		apply_error(&r, i);
	delete_missing(&r);
	forget_names(&r.names);
	if (fclose(r.complaints) != 0 || !r.nack) {
		free(text);
		text = r.nack ? strdup("no memory") : NULL;
	}
	if (text)
		xds_client_log(c, "NACK of %s version \"%s\" from xDS server %s: %s",
			c->conf.types[type]->label, response->version, c->server->uri, text);
	xds_client_tell(c, r.number);
	return text;
}
