// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/respond.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/raw.h"
#include "ctrl/xds/respond_inside.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/verdict.h"
#include "ctrl/xds/wildcard.h"
#include "lb/base/grow.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// PC-10 names every failing resource; but what is longer than 4 MiB many servers don't receive, and
// end the stream. What has come to the first length ends with the number of the others.
#define NACK_LEN ((long)64 << 10)

static void complain(struct xds_round *r, size_t index, const char *name, const char *why)
{
	if (ftell(r->complaints) >= NACK_LEN) {
		r->n_unnamed++;
		return;
	}
	fprintf(r->complaints, "%s", r->nack ? "; " : "");
	if (name)
		fprintf(r->complaints, "%s \"%.*s\": %s", xds_round_type(r)->label,
			XDS_SHOWN_NAME_LEN, name, why);
	else
		fprintf(r->complaints, "resource %zu: %s", index, why);
	r->nack = true;
}

// Reading

// In the round's arena.
static const char *keep_text(struct xds_round *r, const char *text)
{
	const char *kept = lb_arena_strdup(&r->arena, text);
	r->out_of_memory |= !kept;
	return kept;
}

static struct xds_item *add_item(struct xds_round *r)
{
	bool has_room = grow(&r->items, r->n_items, &r->room, sizeof(r->items[0]));
	r->out_of_memory |= !has_room;
	return has_room ? &r->items[r->n_items++] : NULL;
}

static void item_fini(struct xds_item *it)
{
	xds_constraints_put(it->constraints);
	xds_res_put(it->res);
	xds_refused_put(it->refused);
}

struct heartbeat {
	const char *version;
	bool found, keeps;
};

static void check_heartbeat(void *ctx, struct xds_sub *sub)
{
	struct heartbeat *b = ctx;
	const struct xds_entry *e = sub->owner;
	b->found = true;
	b->keeps |= e->value && e->version && strcmp(e->version, b->version) == 0;
}

// RS-03. Of what nobody wants any more it keeps up nothing, but is no error (WA-12).
static bool heartbeat_keeps(struct xds_round *r, const char *name)
{
	struct heartbeat b = {.version = r->open.version};
	xds_variants_each_sub(r->variants, name, r->open.constraints, check_heartbeat, &b);
	return b.found ? b.keeps : r->open.has_ttl;
}

// State of the world says again and again what has not changed. The value that is there stands for
// it, undecoded; NULL = there is none of these bytes. Counted.
static struct xds_res *find_same(struct xds_round *r)
{
	const struct xds_open_part *in = &r->open;
	const uint8_t *bytes = (const uint8_t *)in->bytes.p;
	struct proto_field own = {.len = 0};
	if (xds_round_type(r)->is_opaque)
		return NULL;
	if (!in->name && (!xds_raw_name(bytes, in->bytes.len, &own) || own.len == 0))
		return NULL;
	const char *name = in->name;
	if (!name)
		name = xds_round_text(r, (struct str){(const char *)own.bytes, own.len});
	const struct xds_variant *v =
		name ? xds_variants_find(r->variants, name, in->constraints) : NULL;
	struct xds_res *res = v ? v->content : NULL;
	if (!res || res->len != in->bytes.len || memcmp(res->bytes, bytes, res->len) != 0 ||
		res->server != r->cache->server || res->do_not_cache != in->do_not_cache)
		return NULL;
	return xds_res_get(res);
}

// Listing

// rc is that of a call of xds_variants_…(). False = it is not listed.
static bool listed(struct xds_round *r, const char *name, int rc, const struct lb_err *err)
{
	if (rc == -EEXIST) { // PC-07, DL-12, TP2-T11
		complain(r, r->part.index, name, "is listed more than once");
		if (!r->twice)
			r->twice = keep_text(r, name);
	} else if (rc == -ENOMEM) {
		r->out_of_memory = true;
	} else if (rc) {
		complain(r, r->part.index, name, err->text);
	}
	return rc == 0;
}

// What is bad, or only an error, is not deleted by not being listed as there (SW-13).
static bool keep(struct xds_round *r, const char *name, struct xds_constraints *constraints)
{
	struct lb_err err = {""};
	r->out_of_memory |= xds_variants_keep_all(r->variants, name) != 0;
	int rc = xds_variants_keep(r->variants, name, constraints, &err);
	return listed(r, name, rc, &err);
}

static bool list_item(struct xds_round *r, const struct xds_item *it)
{
	struct lb_err err = {""};
	if (it->kind == XDS_PART_REMOVAL) {
		int rc = xds_variants_remove(r->variants, it->name, it->constraints, &err);
		return listed(r, it->name, rc, &err);
	}
	if (r->open.has_bad_constraints) { // it may be any of the name's
		r->out_of_memory |= xds_variants_keep_all(r->variants, it->name) != 0;
		return true;
	}
	if (!it->res)
		return keep(r, it->name, it->constraints);
	int rc = xds_variants_set(
		r->variants, it->name, it->constraints, it->version, xds_res_get(it->res), &err);
	return listed(r, it->name, rc, &err);
}

// Takes the item to the others, if it is listed, or listed twice.
static void take_item(struct xds_round *r, struct xds_item *item)
{
	const struct xds_open_part *in = &r->open;
	bool is_plain = in->version == r->response->version;
	item->kind = r->part.kind;
	item->constraints = xds_constraints_get(in->constraints);
	item->has_ttl = in->has_ttl;
	item->ttl_ns = in->ttl_ns;
	item->code = in->code;
	item->version = is_plain ? in->version : keep_text(r, in->version);
	item->text = in->text ? keep_text(r, in->text) : NULL;
	bool is_listed = !r->out_of_memory && list_item(r, item);
	// Nor are those without end that the change does not bound.
	bool is_kept = is_listed && !in->has_bad_constraints;
	if (!is_kept && (is_listed || r->twice))
		is_kept = r->n_unbounded++ < XDS_VARIANTS_MAX;
	struct xds_item *place = is_kept ? add_item(r) : NULL;
	if (place)
		*place = *item;
	else
		item_fini(item);
}

// What the part at hand is about, the caller's; NULL = nobody knows, or there is no memory.
static char *name_of_part(struct xds_round *r, struct xds_decoded *d)
{
	const struct xds_open_part *in = &r->open;
	const char *own = d->name ? d->name : d->res ? d->res->name : NULL;
	const char *name = in->name ? in->name : own; // RS-01: the wrapper's comes first
	if (name && xds_name_is_wildcard(name)) {
		lb_err_set(&d->err, "is named \"*\", which stands for all resources");
		return NULL;
	}
	if (name && *name) {
		char *text = xds_round_canonical(r, name, &d->err);
		r->out_of_memory |= !text;
		return text;
	}
	if (!*d->err.text && (d->res || in->is_heartbeat)) // else there was no memory
		lb_err_set(&d->err, "has no name");
	r->nameless = true;
	return NULL;
}

// Of somebody's resource.
static void take_wanted(struct xds_round *r, const char *name, const struct xds_decoded *d)
{
	const struct xds_open_part *in = &r->open;
	if (r->is_kept && xds_variants_find(r->variants, name, in->constraints))
		return;
	struct xds_item item = {.name = keep_text(r, name)};
	if (*d->err.text) {
		item.why = keep_text(r, d->err.text);
		if (in->type_url)
			item.refused = xds_refused_new(
				in->type_url, (const uint8_t *)in->bytes.p, in->bytes.len);
	} else if (d->res) {
		item.res = xds_res_get(d->res);
		item.res->do_not_cache = in->do_not_cache;
	}
	take_item(r, &item);
}

// The resource of the part at hand is decoded, or could not be. Neither a resource nor a reason =
// out of memory.
static void take_resource(struct xds_round *r, struct xds_decoded *d)
{
	char *name = name_of_part(r, d);
	bool keeps = false;
	if (r->open.is_heartbeat && !*d->err.text && name) {
		keeps = heartbeat_keeps(r, name);
		if (!keeps)
			lb_err_set(&d->err, "Resource: holds no resource");
	}
	bool is_bad = *d->err.text;
	if (is_bad)
		complain(r, r->part.index, name, d->err.text);
	r->n_invalid += is_bad;
	r->n_valid += !is_bad && d->res;
	r->out_of_memory |= !is_bad && !d->res && !keeps;
	bool is_ours = !r->out_of_memory && name && xds_round_wants(r, name);
	if (is_ours)
		take_wanted(r, name, d);
	r->n_unwanted += name && !is_ours && !is_bad;
	free(name);
}

static void close_part(struct xds_round *r, struct xds_decoded *d)
{
	if (d->res && d->res->n_refs == 1 && !d->res->server)
		xds_res_set_server(d->res, r->cache->server);
	take_resource(r, d);
	xds_res_put(d->res);
	free(d->name);
	xds_part_close(&r->open);
}

// True = it takes more than one step.
static bool begin_decoding(struct xds_round *r, struct xds_decoded *d)
{
	const struct xds_type *type = xds_round_type(r);
	const struct xds_open_part *in = &r->open;
	if (in->is_heartbeat || *d->err.text)
		return false;
	if (!xds_round_is_own_type(r, str_from(in->type_url))) { // PC-11
		lb_err_set(&d->err, "is a \"%.128s\"", in->type_url);
		return false;
	}
	d->res = find_same(r);
	if (d->res)
		return false;
	if (type->begin)
		r->decoding = type->begin((const uint8_t *)in->bytes.p, in->bytes.len);
	else
		type->decode((const uint8_t *)in->bytes.p, in->bytes.len, d);
	return r->decoding;
}

static void open_resource(struct xds_round *r)
{
	struct xds_decoded d = {.err = r->open.err, .bootstrap = r->cache->conf->bootstrap};
	if (!begin_decoding(r, &d))
		close_part(r, &d);
}

static void go_on_decoding(struct xds_round *r)
{
	struct xds_decoded d = {.err = {""}, .bootstrap = r->cache->conf->bootstrap};
	const struct xds_type *type = xds_round_type(r);
	if (type->step(r->decoding))
		return;
	type->end(r->decoding, &d);
	r->decoding = NULL;
	close_part(r, &d);
}

static void open_other(struct xds_round *r)
{
	bool is_removal = r->part.kind == XDS_PART_REMOVAL;
	char *name = r->open.name ? xds_round_canonical(r, r->open.name, NULL) : NULL;
	if (!r->open.name) // DE-08
		complain(r, r->part.index, NULL,
			is_removal ? "malformed removed_resource_names entry"
				   : "resource_errors entry without name or error");
	r->out_of_memory |= r->open.name && !name;
	if (name && xds_round_wants(r, name))
		take_item(r, &(struct xds_item){.name = keep_text(r, name)});
	free(name);
	xds_part_close(&r->open);
}

static void take_part(struct xds_round *r)
{
	bool is_resource = r->part.kind == XDS_PART_RESOURCE, is_heartbeat = false;
	r->n_resources += is_resource;
	if (xds_round_may_pass_over(r, &r->part, &is_heartbeat)) {
		r->n_heartbeats += is_heartbeat;
		r->n_unwanted += is_resource;
		return;
	}
	if (xds_part_open(r->response, &r->part, &r->open)) {
		r->out_of_memory = true;
		xds_part_close(&r->open);
		return;
	}
	r->n_heartbeats += r->open.is_heartbeat;
	if (is_resource)
		open_resource(r);
	else
		open_other(r);
}

// The end

// What follows from what is listed. It comes after all of that, since only what the response itself
// lists twice is listed twice.
// A name that is refused the server has nevertheless, but not one that is refused on disk.
static void list_consequences(struct xds_round *r)
{
	for (size_t i = 0; i < r->n_items && !r->out_of_memory; i++) {
		const struct xds_item *it = &r->items[i];
		int rc = 0;
		if (it->res || (it->why && !r->is_kept))
			rc = xds_wildcard_adopt(r->cache, r->type, it->name, it->constraints);
		else if (it->kind == XDS_PART_REMOVAL && !it->constraints)
			rc = xds_variants_remove_aged(r->variants, it->name);
		r->out_of_memory |= rc != 0;
	}
	r->out_of_memory = r->out_of_memory || xds_wildcard_sweep(r->cache, r->type) != 0;
}

// SW-11. Heartbeats come by themselves and stand for nothing but themselves. And what a response
// that could not be read whole leaves out may be the very entry that had no readable name, so that
// nothing is concluded from it.
static bool lists_all(const struct xds_round *r)
{
	bool has_more = r->n_resources == 0 || r->n_heartbeats < r->n_resources;
	return r->cache->conf->protocol->lists_all && xds_round_type(r)->full_state && has_more &&
	       !r->nameless && !r->is_kept;
}

static void take_effect(struct xds_round *r)
{
	if (!r->twice && !r->out_of_memory)
		list_consequences(r);
	r->changing = false;
	if (r->out_of_memory || r->twice) {
		xds_variants_abort(r->variants);
		if (!r->out_of_memory && !r->is_kept)
			xds_round_refuse_all(r);
		return;
	}
	r->lists_all = lists_all(r);
	if (r->lists_all)
		xds_variants_set_full(r->variants);
	xds_variants_commit(r->variants);
	if (r->is_kept)
		xds_round_settle_kept(r);
	else
		xds_round_settle(r);
}

static char *take_text(struct xds_round *r)
{
	if (r->n_unnamed)
		fprintf(r->complaints, "; and %zu more", r->n_unnamed);
	if (r->twice)
		fprintf(r->complaints, "; nothing of this response is used");
	bool failed = fclose(r->complaints) != 0;
	r->complaints = NULL;
	r->out_of_memory |= failed && r->nack;
	char *text = r->nack && !r->out_of_memory ? r->text : NULL;
	if (text)
		r->text = NULL;
	return text;
}

int xds_round_step(struct xds_round *r, struct slice *slice, char **ret_nack)
{
	while (!r->out_of_memory) {
		if (r->decoding)
			go_on_decoding(r);
		else if (xds_response_next(r->response, &r->part))
			take_part(r);
		else
			break;
		if (slice_over(slice))
			return -EAGAIN;
	}
	take_effect(r);
	*ret_nack = take_text(r);
	if (*ret_nack)
		xds_cache_log(r->cache, "%s of %s version \"%s\" from xDS server %s: %s",
			r->is_kept ? "no use on disk" : "NACK", xds_round_type(r)->label,
			r->response->version, r->cache->server->uri, *ret_nack);
	return r->out_of_memory ? -ENOMEM : 0;
}

struct xds_round *xds_round_new(struct xds_cache *c, uint32_t type, struct xds_response *response)
{
	struct xds_round *r = calloc(1, sizeof(*r));
	if (!r)
		return NULL;
	r->cache = c;
	r->type = type;
	r->response = response;
	r->variants = c->subs[type].variants;
	r->takes_all = xds_variants_knows(r->variants, "*");
	r->complaints = open_memstream(&r->text, &r->text_len);
	if (!r->complaints) {
		free(r);
		return NULL;
	}
	xds_variants_begin(r->variants, XDS_CHANGE_LISTED);
	r->changing = true;
	return r;
}

struct xds_round *xds_round_new_kept(
	struct xds_cache *c, uint32_t type, struct xds_response *response)
{
	struct xds_round *r = xds_round_new(c, type, response);
	if (r)
		r->is_kept = true;
	return r;
}

void xds_round_free(struct xds_round *r)
{
	if (!r)
		return;
	if (r->decoding) {
		xds_round_type(r)->end(r->decoding, NULL);
		xds_part_close(&r->open);
	}
	if (r->changing)
		xds_variants_abort(r->variants);
	for (size_t i = 0; i < r->n_items; i++)
		item_fini(&r->items[i]);
	if (r->complaints)
		(void)fclose(r->complaints);
	free(r->items);
	free(r->text);
	free(r->name);
	lb_arena_fini(&r->arena);
	free(r);
}
