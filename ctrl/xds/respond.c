// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/respond.h"

#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/raw.h"
#include "ctrl/xds/subs.h"
#include "ctrl/xds/variants/constraints.h"
#include "ctrl/xds/verdict.h"
#include "ctrl/xds/wildcard.h"
#include "ctrl/xds/wire.h"
#include "lb/base/time.h"
#include "proto/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// PC-10 names every failing resource; but what is longer than 4 MiB many servers don't receive, and
// end the stream. What has come to the first length ends with the number of the others.
#define NACK_LEN ((long)64 << 10)

// One entry of the response.
struct item {
	struct xds_res *res; // NULL = invalid
	char *name; // canonical; NULL = not known
	char *why; // it is invalid
	struct xds_refused *refused; // then, and what is known of it; counted
	bool beats; // a heartbeat that keeps something up
	bool listed; // in the change
};

// One response being applied. First all of it is listed as one change of what the server has, then
// that takes effect, and then it is seen who is concerned: in which order the response lists things
// makes no difference (TP2-T08).
struct round {
	struct xds_cache *cache;
	uint32_t type;
	const struct xds_response *response;
	struct xds_variants *variants;
	struct item *items; // [response->n_entries]
	bool *errors_listed; // [response->n_errors]
	FILE *complaints; // becomes the text of the NACK
	size_t n_unnamed; // failing resources that the text has no room for
	char *twice; // is listed more than once (PC-07), the first of such names; NULL = nothing is
	bool nack;
	bool out_of_memory; // memory ran out: the server has to say it again
	bool nameless; // an entry is there of which not even the name could be read
};

static void complain(struct round *r, size_t index, const char *name, const char *why)
{
	if (ftell(r->complaints) >= NACK_LEN) {
		r->n_unnamed++;
		return;
	}
	fprintf(r->complaints, "%s", r->nack ? "; " : "");
	if (name)
		fprintf(r->complaints, "%s \"%.*s\": %s", r->cache->conf->types[r->type]->label,
			XDS_SHOWN_NAME_LEN, name, why);
	else
		fprintf(r->complaints, "resource %zu: %s", index, why);
	r->nack = true;
}

static void hold(struct round *r, struct xds_entry *e, uint64_t expires_ns)
{
	r->out_of_memory |= xds_entry_hold(e, expires_ns) != 0;
}

// Who comes to see the variant later has no more of its time than is left.
static void note_expiry(const struct round *r, size_t index)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	const struct item *it = &r->items[index];
	const struct xds_variant *v =
		it->why ? NULL : xds_variants_find(r->variants, it->name, in->constraints);
	struct xds_res *res = v ? v->content : NULL;
	uint64_t at_s = (twheel_now(r->cache->conf->wheel) + in->ttl_ns) / NS_PER_SECOND + 1;
	if (res)
		res->expires_s = !in->has_ttl ? 0 : at_s < UINT32_MAX ? (uint32_t)at_s : UINT32_MAX;
}

// Reading

// The name under which it is known here (FE-03), the caller's; NULL = out of memory. What is no
// name of this type (FE-02) stays as it is, and err says why.
static char *canonical(struct round *r, const char *name, struct lb_err *err)
{
	struct xds_name parsed;
	if (!xds_name_is_xdstp(name) || r->cache->conf->types[r->type]->is_opaque)
		return strdup(name);
	int rc = xds_name_parse(name, r->cache->conf->types[r->type]->url, &parsed, err);
	if (rc)
		return rc == -ENOMEM ? NULL : strdup(name);
	char *text = parsed.text;
	parsed.text = NULL;
	xds_name_fini(&parsed);
	return text;
}

struct beat {
	const struct xds_response_entry *in;
	bool found, keeps;
};

static void check_beat(void *ctx, struct xds_sub *sub)
{
	struct beat *b = ctx;
	const struct xds_entry *e = sub->owner;
	b->found = true;
	b->keeps |= e->value && e->version && strcmp(e->version, b->in->version) == 0;
}

// RS-03. Of what nobody wants any more it keeps up nothing, but is no error (WA-12).
static bool beats(struct round *r, const char *name, const struct xds_response_entry *in)
{
	struct beat b = {.in = in};
	xds_variants_each_sub(r->variants, name, in->constraints, check_beat, &b);
	return b.found ? b.keeps : in->has_ttl;
}

// What counts of a type URL (WF-04).
static const char *after_slash(const char *url)
{
	const char *slash = strrchr(url, '/');
	return slash ? slash + 1 : url;
}

// State of the world says again and again what has not changed. The value that is there stands for
// it, undecoded; false = there is none of these bytes.
static bool reuse(struct round *r, const struct xds_response_entry *in, struct item *it)
{
	const struct xds_type *type = r->cache->conf->types[r->type];
	struct proto_field own = {.len = 0};
	if (type->is_opaque)
		return false;
	if (!in->name && (!xds_raw_name(in->bytes, in->len, &own) || own.len == 0))
		return false;
	char *name = in->name ? strdup(in->name) : strndup((const char *)own.bytes, own.len);
	const struct xds_variant *v =
		name ? xds_variants_find(r->variants, name, in->constraints) : NULL;
	struct xds_res *res = v ? v->content : NULL;
	if (!res || res->len != in->len || memcmp(res->bytes, in->bytes, in->len) != 0 ||
		res->server != r->cache->server || res->do_not_cache != in->do_not_cache) {
		free(name);
		return false;
	}
	it->name = name;
	it->res = xds_res_get(res);
	return true;
}

// Neither a resource nor a reason = out of memory.
static void read_item(struct round *r, size_t index)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	const struct xds_type *type = r->cache->conf->types[r->type];
	struct item *it = &r->items[index];
	struct xds_decoded d = {.err = in->err};
	bool readable = !*in->err.text && !in->heartbeat;
	if (readable && strcmp(after_slash(in->type_url), after_slash(type->url)) != 0) // PC-11
		lb_err_set(&d.err, "is a \"%.128s\"", in->type_url);
	else if (readable && reuse(r, in, it))
		return;
	else if (readable)
		type->decode(in->bytes, in->len, &d);
	if (d.res)
		xds_res_set_server(d.res, r->cache->server);
	const char *name = in->name ? in->name : d.name; // RS-01: the wrapper's comes first
	bool is_star = name && xds_name_is_wildcard(name);
	if (is_star) {
		lb_err_set(&d.err, "is named \"*\", which stands for all resources");
	} else if (name && *name) {
		it->name = canonical(r, name, &d.err);
		r->out_of_memory |= !it->name;
	} else if (!*d.err.text && (d.res || in->heartbeat)) { // else there was no memory
		lb_err_set(&d.err, "has no name");
	}
	r->nameless |= !it->name && !is_star;
	if (in->heartbeat && !*d.err.text) {
		it->beats = beats(r, it->name, in);
		if (!it->beats)
			lb_err_set(&d.err, "Resource: holds no resource");
	}
	if (*d.err.text) {
		it->why = strdup(d.err.text);
		if (in->type_url)
			it->refused = xds_refused_new(in->type_url, in->bytes, in->len);
	} else if (d.res) {
		it->res = xds_res_get(d.res);
		it->res->do_not_cache = in->do_not_cache;
	}
	r->out_of_memory |= !it->why && !it->res && !it->beats;
	xds_res_put(d.res);
	free(d.name);
}

// Listing

// rc is that of a call of xds_variants_…(). False = it is not listed.
static bool listed(
	struct round *r, size_t index, const char *name, int rc, const struct lb_err *err)
{
	if (rc == -EEXIST) { // PC-07, DL-12, TP2-T11
		complain(r, index, name, "is listed more than once");
		if (!r->twice)
			r->twice = strdup(name);
		r->out_of_memory |= !r->twice;
	} else if (rc == -ENOMEM) {
		r->out_of_memory = true;
	} else if (rc) {
		complain(r, index, name, err->text);
	}
	return rc == 0;
}

// What is bad, or only an error, is not deleted by not being listed as there (SW-13).
static bool keep(
	struct round *r, size_t index, const char *name, struct xds_constraints *constraints)
{
	struct lb_err err = {""};
	r->out_of_memory |= xds_variants_keep_all(r->variants, name) != 0;
	int rc = xds_variants_keep(r->variants, name, constraints, &err);
	return listed(r, index, name, rc, &err);
}

static void list_item(struct round *r, size_t index)
{
	const struct xds_response_entry *in = &r->response->entries[index];
	struct item *it = &r->items[index];
	struct lb_err err = {""};
	if (it->why)
		complain(r, index, it->name, it->why);
	if (!it->name)
		return;
	if (in->has_bad_constraints) { // it may be any of the name's
		it->listed = true;
		r->out_of_memory |= xds_variants_keep_all(r->variants, it->name) != 0;
		return;
	}
	if (!it->res) {
		it->listed = keep(r, index, it->name, in->constraints);
		return;
	}
	int rc = xds_variants_set(
		r->variants, it->name, in->constraints, in->version, xds_res_get(it->res), &err);
	it->listed = listed(r, index, it->name, rc, &err);
}

static void list_removal(struct round *r, size_t index)
{
	const struct xds_response_removal *in = &r->response->removed[index];
	struct lb_err err = {""};
	if (!in->name) {
		complain(r, index, NULL, "malformed removed_resource_names entry");
		return;
	}
	char *name = canonical(r, in->name, NULL);
	int rc = name ? xds_variants_remove(r->variants, name, in->constraints, &err) : -ENOMEM;
	listed(r, index, name, rc, &err);
	free(name);
}

static void list_error(struct round *r, size_t index)
{
	const struct xds_response_error *in = &r->response->errors[index];
	if (!in->name) { // DE-08
		complain(r, index, NULL, "resource_errors entry without name or error");
		return;
	}
	char *name = canonical(r, in->name, NULL);
	if (name)
		r->errors_listed[index] = keep(r, index, name, in->constraints);
	else
		r->out_of_memory = true;
	free(name);
}

// What follows from what is listed. It comes after all of that, since only what the response itself
// lists twice is listed twice.
static void list_consequences(struct round *r)
{
	const struct xds_response *in = r->response;
	for (size_t i = 0; i < in->n_entries && !r->out_of_memory; i++)
		if (r->items[i].res)
			r->out_of_memory |= xds_wildcard_adopt(r->cache, r->type, r->items[i].name,
						    in->entries[i].constraints) != 0;
	for (size_t i = 0; i < in->n_removed && !r->out_of_memory; i++) {
		bool is_whole = in->removed[i].name && !in->removed[i].constraints;
		char *name = is_whole ? canonical(r, in->removed[i].name, NULL) : NULL;
		r->out_of_memory |= is_whole && !name;
		r->out_of_memory |= name && xds_variants_remove_aged(r->variants, name) != 0;
		free(name);
	}
	r->out_of_memory = r->out_of_memory || xds_wildcard_sweep(r->cache, r->type) != 0;
}

// Taking effect

struct about {
	struct round *round;
	size_t index;
};

// TP2-T13: whoever the constraints match is concerned; but a variant is the value only of those
// that see it (TP2-L04).
static void settle_item(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	struct round *r = a->round;
	const struct xds_response_entry *in = &r->response->entries[a->index];
	const struct item *it = &r->items[a->index];
	struct xds_entry *e = sub->owner;
	xds_entry_answered(e);
	if (it->why) {
		xds_entry_refuse(e, in->version, it->why, it->refused);
		return;
	}
	if (!sub->variant || !xds_constraints_eq(sub->variant->constraints, in->constraints))
		return;
	if (it->res)
		xds_entry_accept(e, sub->variant);
	// RS-04: each time it is sent it holds anew, and for good if no TTL comes with it.
	hold(r, e, in->has_ttl ? twheel_now(r->cache->conf->wheel) + in->ttl_ns : 0);
}

// DL-07, TP2-T09: also of what never came.
static void settle_removal(void *ctx, struct xds_sub *sub)
{
	if (!sub->variant)
		xds_entry_end(sub->owner);
}

// DE-07
static void settle_error(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	const struct xds_response *in = a->round->response;
	xds_entry_report(sub->owner, in->version, &in->errors[a->index]);
}

// Everybody whose parameters match.
static void settle(struct round *r, size_t index, const char *given,
	const struct xds_constraints *constraints, void (*fn)(void *ctx, struct xds_sub *))
{
	struct about a = {r, index};
	char *name = given ? canonical(r, given, NULL) : NULL;
	if (name)
		xds_variants_each_sub(r->variants, name, constraints, fn, &a);
	free(name);
}

// Who sees another variant than before, or none, without its being said of what it sees now.
static void settle_others(struct round *r)
{
	struct xds_variants_event event;
	while (xds_variants_drain(r->variants, &event)) {
		struct xds_entry *e = event.sub->owner;
		if (event.newly_ambiguous) // TP2-L04
			xds_cache_log(r->cache,
				"%s \"%s\": several variants from xDS server %s match its "
				"parameters",
				r->cache->conf->types[r->type]->label, event.sub->name,
				r->cache->server->uri);
		if (!event.after) {
			xds_entry_end(e); // SW-11, TP2-T09
		} else if (event.after->content != e->value) {
			xds_entry_answered(e);
			xds_entry_accept(e, event.after);
			const struct xds_res *res = event.after->content;
			hold(r, e, res->expires_s * NS_PER_SECOND);
		}
	}
}

static void list_all(struct round *r)
{
	const struct xds_response *in = r->response;
	for (size_t i = 0; i < in->n_entries && !r->out_of_memory; i++)
		read_item(r, i);
	// SW-11. What a response that could not be read whole leaves out may be the very entry that
	// had no readable name, so that nothing is concluded from it.
	bool full = in->full && r->cache->conf->types[r->type]->full_state && !r->nameless;
	xds_variants_begin(r->variants, full ? XDS_CHANGE_FULL : XDS_CHANGE_LISTED);
	for (size_t i = 0; i < in->n_entries && !r->out_of_memory; i++)
		list_item(r, i);
	for (size_t i = 0; i < in->n_removed && !r->out_of_memory; i++)
		list_removal(r, i);
	for (size_t i = 0; i < in->n_errors && !r->out_of_memory; i++)
		list_error(r, i);
	if (!r->twice)
		list_consequences(r);
}

static void settle_all(struct round *r)
{
	const struct xds_response *in = r->response;
	struct xds_server_updates *counts = &r->cache->subs[r->type].updates;
	for (size_t i = 0; i < in->n_entries; i++) {
		struct about a = {r, i};
		counts->n_valid += r->items[i].res != NULL;
		counts->n_invalid += r->items[i].why != NULL;
		if (!r->items[i].listed)
			continue;
		note_expiry(r, i);
		xds_variants_each_sub(
			r->variants, r->items[i].name, in->entries[i].constraints, settle_item, &a);
	}
	for (size_t i = 0; i < in->n_removed; i++)
		settle(r, i, in->removed[i].name, in->removed[i].constraints, settle_removal);
	for (size_t i = 0; i < in->n_errors; i++)
		if (r->errors_listed[i])
			settle(r, i, in->errors[i].name, in->errors[i].constraints, settle_error);
	settle_others(r);
	xds_wildcard_settle(r->cache, r->type);
}

static void settle_refused(void *ctx, struct xds_sub *sub)
{
	const struct about *a = ctx;
	const struct round *r = a->round;
	xds_entry_refuse_with_all(sub->owner, r->response->entries[a->index].version, r->twice);
}

// Which of the two is meant the response does not say, nor what else of it is.
static void refuse_all(struct round *r)
{
	const struct xds_response *in = r->response;
	r->cache->subs[r->type].updates.n_invalid += in->n_entries;
	for (size_t i = 0; i < in->n_entries; i++) {
		struct about a = {r, i};
		if (r->items[i].name)
			xds_variants_each_sub(r->variants, r->items[i].name,
				in->entries[i].constraints, settle_refused, &a);
	}
}

static void free_items(struct round *r)
{
	for (size_t i = 0; i < r->response->n_entries; i++) {
		xds_res_put(r->items[i].res);
		free(r->items[i].name);
		free(r->items[i].why);
		xds_refused_put(r->items[i].refused);
	}
	free(r->items);
	free(r->errors_listed);
}

int xds_respond_apply(
	struct xds_cache *c, uint32_t type, const struct xds_response *response, char **ret_nack)
{
	char *text = NULL;
	size_t len;
	struct round r = {
		.cache = c,
		.type = type,
		.response = response,
		.variants = c->subs[type].variants,
		.items = calloc(response->n_entries + 1, sizeof(*r.items)),
		.errors_listed = calloc(response->n_errors + 1, sizeof(*r.errors_listed)),
		.complaints = open_memstream(&text, &len),
	};
	r.out_of_memory = !r.items || !r.errors_listed || !r.complaints;
	if (!r.out_of_memory) {
		list_all(&r);
		if (r.out_of_memory || r.twice)
			xds_variants_abort(r.variants);
		else
			xds_variants_commit(r.variants);
		if (!r.out_of_memory && r.twice)
			refuse_all(&r);
		else if (!r.out_of_memory)
			settle_all(&r);
	}
	if (r.items)
		free_items(&r);
	else
		free(r.errors_listed);
	if (r.complaints && r.n_unnamed)
		fprintf(r.complaints, "; and %zu more", r.n_unnamed);
	if (r.complaints && r.twice)
		fprintf(r.complaints, "; nothing of this response is used");
	free(r.twice);
	if (r.complaints && fclose(r.complaints) != 0 && r.nack)
		r.out_of_memory = true;
	if (r.out_of_memory || !r.nack) {
		free(text);
		text = NULL;
	}
	if (text)
		xds_cache_log(c, "NACK of %s version \"%s\" from xDS server %s: %s",
			c->conf->types[type]->label, response->version, c->server->uri, text);
	*ret_nack = text;
	return r.out_of_memory ? -ENOMEM : 0;
}
