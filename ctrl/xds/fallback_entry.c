// SPDX-License-Identifier: Apache-2.0
// One name of an authority with several servers: the last word of the server in use, and what the
// watchers know of it.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/fallback_inside.h"
#include "ctrl/xds/server.h"
#include "lb/base/container_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void xds_fallback_set_text(char **at, const char *text)
{
	if (*at && text && strcmp(*at, text) == 0)
		return;
	char *copy = text && *text ? strdup(text) : NULL;
	if (text && *text && !copy)
		return;
	free(*at);
	*at = copy;
}

// What a server says is read from its client when the turn's messages have been taken in.
static void on_inner_event(struct xds_watcher *w, const struct xds_event *event)
{
	xds_fallback_mark(CONTAINER_OF(w, struct xds_fallback_inner, watcher)->entry);
}

int xds_fallback_entry_watch(struct xds_fallback_entry *e, uint32_t server)
{
	const struct xds_fallback *fb = e->fallback;
	struct xds_fallback_inner *in = &e->inner[server];
	if (in->watcher.entry)
		return 0;
	return xds_client_watch(
		xds_fallback_client(fb, server), fb->conf.types[e->type], e->name, &in->watcher);
}

void xds_fallback_entry_cancel(struct xds_fallback_entry *e, uint32_t server)
{
	xds_client_cancel(xds_fallback_client(e->fallback, server), &e->inner[server].watcher);
}

void xds_fallback_entry_leave(struct xds_fallback_entry *e)
{
	struct xds_entry_info info;
	xds_watcher_info(&e->inner[e->source].watcher, &info);
	struct twheel *wheel = e->fallback->conf.wheel;
	e->ttl_ns = info.res ? info.expires_ns : twheel_now(wheel); // over, and not merged yet
	if (e->value && e->ttl_ns)
		twheel_arm(wheel, &e->ttl, e->ttl_ns);
	e->left = e->source;
	e->left_stale = xds_fallback_entry_is_stale(e);
	e->source = XDS_FALLBACK_NO_SOURCE;
}

bool xds_fallback_entry_is_stale(const struct xds_fallback_entry *e)
{
	if (!e->value)
		return e->is_presumed;
	return e->source == XDS_FALLBACK_NO_SOURCE
	               ? e->left_stale
	               : xds_watcher_is_stale(&e->inner[e->source].watcher);
}

// The word of the active server

// Takes the reference.
static void set_value(struct xds_fallback_entry *e, struct xds_res *value)
{
	xds_res_put(e->value);
	e->value = value;
	for (uint32_t i = 0; i < e->fallback->conf.n_servers; i++)
		e->inner[i].watcher.held = value;
}

static void take_value(
	struct xds_fallback_entry *e, uint32_t source, const struct xds_entry_info *in)
{
	struct xds_fallback *fb = e->fallback;
	if (!e->value || !xds_res_eq(e->value, in->res)) { // SW-16
		set_value(e, xds_res_get(in->res));
		e->fresh = true;
	}
	xds_fallback_set_text(&e->version, in->version);
	e->updated_ns = in->updated_ns;
	twheel_cancel(fb->conf.wheel, &e->ttl);
	if (e->source == source)
		return;
	e->source = source;
	// What the servers before this one gave is out of date: it counts when they give it again.
	for (uint32_t i = 0; i < source; i++)
		if (e->inner[i].watcher.entry)
			xds_client_forget(xds_fallback_client(fb, i), &e->inner[i].watcher);
}

static void end_value(struct xds_fallback_entry *e)
{
	twheel_cancel(e->fallback->conf.wheel, &e->ttl);
	set_value(e, NULL);
	xds_fallback_set_text(&e->version, NULL);
	e->updated_ns = 0;
	e->lost = true;
}

static void take_error(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	e->status = in->status;
	if (*in->error && (!e->error || strcmp(e->error, in->error) != 0))
		e->error_serial = ++e->fallback->n_serials;
	xds_fallback_set_text(&e->error, in->error);
	xds_fallback_set_text(&e->error_version, in->error_version);
	struct xds_refused *before = e->refused;
	e->refused = xds_refused_get(in->refused);
	xds_refused_put(before);
	e->error_code = in->error_code;
	e->error_is_data = in->error_is_data;
	e->error_ns = in->error_ns;
	e->is_presumed = in->is_stale && !in->res;
}

// RS-04: the server was left while the value held.
static void on_ttl(struct twheel_timer *t)
{
	struct xds_fallback_entry *e = CONTAINER_OF(t, struct xds_fallback_entry, ttl);
	const struct xds_fallback_conf *conf = &e->fallback->conf;
	uint64_t now = twheel_now(conf->wheel);
	char *text;
	if (asprintf(&text, "%s \"%s\" from xDS server %s has expired (node id \"%s\")",
		    conf->types[e->type]->label, e->name, conf->servers[e->left]->conf->uri,
		    xds_fallback_text(conf->node_id)) < 0) {
		twheel_arm(conf->wheel, &e->ttl, now + XDS_FALLBACK_RETRY_NS);
		return;
	}
	take_error(e, &(struct xds_entry_info){
			      .status = XDS_STATUS_DOES_NOT_EXIST,
			      .error = text,
			      .error_code = XDS_NOT_FOUND,
			      .error_is_data = true,
			      .error_version = "",
			      .error_ns = now,
		      });
	free(text);
	end_value(e);
	xds_fallback_mark(e);
	conf->on_due(conf->ctx);
}

// RS-04: a server that fails says nothing more than that the time of its value is over.
static void end_with_source(struct xds_fallback_entry *e)
{
	struct xds_entry_info in;
	if (!e->value || e->source >= e->fallback->active)
		return; // XDS_FALLBACK_NO_SOURCE, too
	xds_watcher_info(&e->inner[e->source].watcher, &in);
	if (in.res)
		return;
	take_error(e, &in);
	end_value(e);
	e->source = XDS_FALLBACK_NO_SOURCE;
}

// The server has an error and no value. Its own it has dropped itself; that of a server before it
// goes by the same rules (DE-03, DE-04).
static void drop_value(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	const struct xds_fallback *fb = e->fallback;
	const struct xds_server_conf *server = fb->conf.servers[fb->active]->conf;
	bool fails = in->error_is_data && server->fail_on_data_errors;
	if (in->error_code == XDS_NOT_FOUND && fb->conf.drops_deleted) // DL-06, DE-06
		fails = !server->ignore_resource_deletion;
	if (!e->value || (e->source != fb->active && !fails))
		return;
	end_value(e);
}

// What an earlier run kept of a server is better than nothing, and no more. A server behind others
// was asked last, and is heard first if it may yet speak.
static void take_stale(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	if (!e->value && xds_watcher_waits(&e->inner[fb->active].watcher)) {
		if (!list_linked(&e->dirty))
			list_append(&fb->later, &e->dirty);
		return;
	}
	for (uint32_t i = fb->active + 1; i-- > 0;) {
		struct xds_entry_info in = {.res = NULL};
		if (e->inner[i].watcher.entry)
			xds_watcher_info(&e->inner[i].watcher, &in);
		if (!in.res || !in.is_kept)
			continue;
		if (!e->value || (xds_fallback_entry_is_stale(e) && e->source != i))
			take_value(e, i, &in);
		return;
	}
}

// The active server has not spoken yet. That it did not have the resource (OPS-280) counts only if
// nothing was kept of another one.
static void take_kept(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	static const struct xds_entry_info nothing = {
		.status = XDS_STATUS_REQUESTED, .error = "", .error_version = ""};
	take_stale(e);
	if (!e->value && *in->error)
		take_error(e, in);
	else if (e->value && e->is_presumed)
		take_error(e, &nothing);
}

void xds_fallback_entry_merge(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	struct xds_entry_info in;
	end_with_source(e);
	if (xds_fallback_entry_watch(e, fb->active)) {
		list_append(&fb->later, &e->dirty);
		xds_fallback_retry_later(fb);
		return;
	}
	xds_watcher_info(&e->inner[fb->active].watcher, &in);
	if (in.is_stale || (!in.res && !*in.error)) {
		take_kept(e, &in);
		return;
	}
	if (in.res && !in.is_kept) // what was kept never takes the place of what a server said
		take_value(e, fb->active, &in);
	else if (!in.res)
		drop_value(e, &in);
	take_error(e, &in);
}

// Birth and end

static void entry_free(struct xds_fallback_entry *e)
{
	xds_res_put(e->value);
	free(e->name);
	free(e->version);
	free(e->error);
	free(e->error_version);
	xds_refused_put(e->refused);
	free(e);
}

struct xds_fallback_entry *xds_fallback_entry_new(
	struct xds_fallback *fb, uint32_t type, const char *name)
{
	uint32_t n = fb->conf.n_servers;
	struct xds_fallback_entry *e = calloc(1, sizeof(*e) + n * sizeof(e->inner[0]));
	if (!e)
		return NULL;
	e->fallback = fb;
	e->type = type;
	e->status = XDS_STATUS_REQUESTED;
	e->source = XDS_FALLBACK_NO_SOURCE;
	e->ttl.fire = on_ttl;
	TAILQ_INIT(&e->watchers);
	e->name = strdup(name);
	if (!e->name || strmap_add(&fb->by_name[type], &e->link, e->name)) {
		entry_free(e);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		e->inner[i].watcher.on_event = on_inner_event;
		e->inner[i].entry = e;
	}
	list_append(&fb->all, &e->all);
	return e;
}

void xds_fallback_entry_drop(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	for (uint32_t i = 0; i <= fb->active; i++)
		xds_fallback_entry_cancel(e, i);
	twheel_cancel(fb->conf.wheel, &e->ttl);
	list_remove(&e->all);
	list_remove(&e->dirty);
	strmap_remove(&fb->by_name[e->type], &e->link);
	if (e->telling)
		e->dead = true;
	else
		entry_free(e);
}

// Events

// What an earlier run kept of one of its servers is not looked up yet.
static bool waits(const struct xds_fallback_entry *e)
{
	for (uint32_t i = 0; i <= e->fallback->active; i++)
		if (xds_watcher_waits(&e->inner[i].watcher))
			return true;
	return false;
}

uint64_t xds_fallback_entry_trouble(const struct xds_fallback_entry *e)
{
	const struct xds_fallback *fb = e->fallback;
	if (e->error)
		return e->error_serial;
	if (!e->value && waits(e))
		return 0;
	return e->value || xds_fallback_is_failing(fb) ? fb->failure_serial : 0;
}

static struct xds_event value_event(const struct xds_fallback_entry *e)
{
	return (struct xds_event){.kind = XDS_EVENT_RESOURCE, .res = e->value, .text = ""};
}

static struct xds_event trouble_event(const struct xds_fallback_entry *e)
{
	return (struct xds_event){
		.kind = e->value ? XDS_EVENT_AMBIENT : XDS_EVENT_ERROR,
		.code = e->error ? e->error_code : XDS_UNAVAILABLE,
		.text = xds_fallback_text(e->error ? e->error : e->fallback->failure),
		.no_server = !e->value && !e->error,
	};
}

static void told_entry(struct xds_fallback_entry *e)
{
	if (--e->telling == 0 && e->dead)
		entry_free(e);
}

bool xds_fallback_entry_tell(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	uint64_t trouble = xds_fallback_entry_trouble(e), knew = e->told;
	bool fresh = e->fresh, lost = e->lost;
	e->fresh = e->lost = false;
	e->told = trouble;
	if (!fresh && !lost && trouble == knew)
		return false;
	// Two rounds: watchers that come meanwhile learn all at once.
	uint64_t round = fb->n_rounds;
	fb->n_rounds += 2;
	e->telling++;
	if (fresh) {
		struct xds_event event = value_event(e);
		xds_watchers_tell(&e->watchers, &event, round + 1);
	}
	if (trouble) {
		struct xds_event event = trouble_event(e);
		xds_watchers_tell(&e->watchers, &event, round + 2);
	} else if (e->value && !fresh) {
		struct xds_event event = {.kind = XDS_EVENT_AMBIENT, .code = XDS_OK, .text = ""};
		xds_watchers_tell(&e->watchers, &event, round + 2);
	}
	told_entry(e);
	return true;
}

void xds_fallback_entry_tell_new(struct xds_fallback_entry *e, struct xds_watcher *w)
{
	uint64_t trouble = xds_fallback_entry_trouble(e);
	bool is_due = e->lost || trouble != e->told; // and then it hears with the others
	e->telling++;
	if (e->value) {
		struct xds_event event = value_event(e);
		w->on_event(w, &event);
	}
	if (trouble && !is_due && w->fallback == e) {
		struct xds_event event = trouble_event(e);
		w->on_event(w, &event);
	}
	told_entry(e);
}

void xds_fallback_entry_info(const struct xds_fallback_entry *e, struct xds_entry_info *ret)
{
	// The server may have said the same again, in another version (SW-16): that is no event.
	struct xds_entry_info in = {.res = NULL};
	if (e->value && e->source != XDS_FALLBACK_NO_SOURCE)
		xds_watcher_info(&e->inner[e->source].watcher, &in);
	*ret = (struct xds_entry_info){
		.type = e->fallback->conf.types[e->type],
		.name = e->name,
		.status = e->status,
		.res = e->value,
		.version = in.res ? in.version : xds_fallback_text(e->version),
		.updated_ns = in.res ? in.updated_ns : e->updated_ns,
		.expires_ns = twheel_armed(&e->ttl) ? e->ttl_ns : in.expires_ns,
		.error = xds_fallback_text(e->error),
		.error_code = e->error_code,
		.error_is_data = e->error_is_data,
		.error_version = xds_fallback_text(e->error_version),
		.refused = e->refused,
		.error_ns = e->error_ns,
		.is_stale = xds_fallback_entry_is_stale(e),
	};
}
