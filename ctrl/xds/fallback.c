// SPDX-License-Identifier: Apache-2.0
#include "ctrl/xds/fallback.h"

#include "ctrl/xds/bootstrap.h"
#include "ctrl/xds/chain.h"
#include "ctrl/xds/server.h"
#include "ctrl/xds/strmap.h"
#include "ctrl/xds/watchers.h"
#include "lb/base/check.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_SOURCE UINT32_MAX
#define RETRY_NS 1000000000ull // when there was no memory

// A watch of one name at one server.
struct inner {
	struct xds_watcher watcher; // first member
	struct xds_fallback_entry *entry;
};

// One name that somebody watches. The value may stand beside an error (A88).
struct xds_fallback_entry {
	struct strmap_link link; // by name, in its type's map
	struct xds_chain all;
	struct xds_chain dirty; // a server has said something, or the active one is another
	struct xds_fallback *fallback;
	uint32_t type;
	char *name;
	struct xds_watchers watchers;

	enum xds_status status;
	struct xds_res *value; // counted; NULL = none
	uint32_t source; // the server that gave the value; NO_SOURCE = it was left since
	struct twheel_timer ttl; // of a value whose server was left (RS-04)
	uint64_t ttl_ns; // while it is armed: when
	uint32_t left; // that server
	char *version; // of the value; NULL = none
	uint64_t updated_ns;
	char *error; // what the last server to speak of it has against it; NULL = nothing
	enum xds_code error_code;
	bool error_is_data;
	char *error_version; // rejected; NULL = none
	uint64_t error_ns;
	uint64_t error_serial;

	bool fresh, lost; // the value is new, or was taken away, and the watchers do not know yet
	uint64_t told; // serial of the trouble that the watchers know of; 0 = of none
	unsigned telling; // its watchers are being told, within each other
	bool dead; // dropped meanwhile
	struct inner inner[]; // by server; those up to the active one watch
};

struct xds_fallback {
	struct xds_fallback_conf conf;
	uint32_t active;
	struct xds_chain all; // in order of subscription
	struct xds_chain dirty;
	struct xds_chain later; // dirty, but there was no memory
	struct twheel_timer retry; // of what there was no memory for
	struct strmap *by_name; // [conf.n_types]
	char *failure; // what the watchers know of the servers; NULL = nothing is wrong
	uint64_t failure_serial;
	uint64_t n_serials; // numbers troubles
	uint64_t n_rounds; // numbers events
};

#define ENTRY_OF(chain, member)                                                                    \
	((struct xds_fallback_entry *)((uintptr_t)(chain)-offsetof(                                \
		struct xds_fallback_entry, member)))

static const char *text_of(const char *s)
{
	return s ? s : "";
}

// Owned texts that are no worse for keeping their old value when there is no memory.
static void set_text(char **at, const char *text)
{
	if (*at && text && strcmp(*at, text) == 0)
		return;
	char *copy = text && *text ? strdup(text) : NULL;
	if (text && *text && !copy)
		return;
	free(*at);
	*at = copy;
}

static struct xds_client *client_of(const struct xds_fallback *fb, uint32_t server)
{
	return fb->conf.servers[server]->client;
}

static bool is_failing(const struct xds_fallback *fb)
{
	return xds_client_failure(client_of(fb, fb->active));
}

static void mark_dirty(struct xds_fallback_entry *e)
{
	if (xds_chain_empty(&e->dirty))
		xds_chain_add(&e->fallback->dirty, &e->dirty);
}

static void mark_all_dirty(struct xds_fallback *fb)
{
	for (struct xds_chain *c = fb->all.next; c != &fb->all; c = c->next)
		mark_dirty(ENTRY_OF(c, all));
}

// What a server says is read from its client when the turn's messages have been taken in.
static void on_inner_event(struct xds_watcher *w, const struct xds_event *event)
{
	mark_dirty(((struct inner *)w)->entry);
}

// Watches at the server, if not already. 0 or -ENOMEM: then it is tried again when there is news.
static int watch_at(struct xds_fallback_entry *e, uint32_t server)
{
	const struct xds_fallback *fb = e->fallback;
	struct inner *in = &e->inner[server];
	if (in->watcher.entry)
		return 0;
	return xds_client_watch(
		client_of(fb, server), fb->conf.types[e->type], e->name, &in->watcher);
}

static void cancel_at(struct xds_fallback_entry *e, uint32_t server)
{
	xds_client_cancel(client_of(e->fallback, server), &e->inner[server].watcher);
}

static void retry_later(struct xds_fallback *fb)
{
	struct twheel *wheel = fb->conf.wheel;
	twheel_arm(wheel, &fb->retry, twheel_now(wheel) + RETRY_NS);
}

static void on_retry(struct twheel_timer *t)
{
	struct xds_fallback *fb =
		(struct xds_fallback *)((char *)t - offsetof(struct xds_fallback, retry));
	fb->conf.on_due(fb->conf.ctx);
}

// Which server is active

static void log_active(const struct xds_fallback *fb, const char *verb)
{
	if (!fb->conf.log)
		return;
	char *line;
	const char *name = fb->conf.authority;
	if (asprintf(&line, "%s%s%s %s xDS server %s", name ? "authority \"" : "old-style names",
		    text_of(name), name ? "\"" : "", verb,
		    fb->conf.servers[fb->active]->conf->uri) < 0)
		return;
	fb->conf.log(fb->conf.log_ctx, line);
	free(line);
}

// The value outlives the watch at its server, but not its TTL (RS-04).
static void leave_source(struct xds_fallback_entry *e)
{
	struct xds_entry_info info;
	xds_watcher_info(&e->inner[e->source].watcher, &info);
	struct twheel *wheel = e->fallback->conf.wheel;
	e->ttl_ns = info.res ? info.expires_ns : twheel_now(wheel); // over, and not merged yet
	if (e->value && e->ttl_ns)
		twheel_arm(wheel, &e->ttl, e->ttl_ns);
	e->left = e->source;
	e->source = NO_SOURCE;
}

// FB-06: a server of higher preference that answers is the active one again, and those behind it
// are left. Nothing of what they gave is dropped (FB-07).
static void climb(struct xds_fallback *fb)
{
	uint32_t to = 0;
	for (; to < fb->active; to++) {
		struct xds_server_info info;
		xds_client_server(client_of(fb, to), &info);
		if (info.state == XDS_SERVER_CONNECTED)
			break;
	}
	if (to == fb->active)
		return;
	for (struct xds_chain *c = fb->all.next; c != &fb->all; c = c->next) {
		struct xds_fallback_entry *e = ENTRY_OF(c, all);
		if (e->source != NO_SOURCE && e->source > to)
			leave_source(e);
		for (uint32_t i = to + 1; i <= fb->active; i++)
			cancel_at(e, i);
	}
	for (uint32_t i = to + 1; i <= fb->active; i++)
		xds_server_put(fb->conf.servers[i]);
	fb->active = to;
	log_active(fb, "return to");
	mark_all_dirty(fb);
}

// Somebody waits for a resource of which no server has said anything (FB-01).
static bool is_wanting(const struct xds_fallback *fb)
{
	for (const struct xds_chain *c = fb->all.next; c != &fb->all; c = c->next) {
		const struct xds_fallback_entry *e = ENTRY_OF(c, all);
		if (!e->value && !e->error)
			return true;
	}
	return false;
}

// FB-02: the next server is asked for everything.
static void fall(struct xds_fallback *fb)
{
	while (fb->active + 1 < fb->conf.n_servers && is_failing(fb) && is_wanting(fb)) {
		if (!xds_server_get(fb->conf.servers[fb->active + 1])) {
			retry_later(fb);
			return;
		}
		fb->active++;
		log_active(fb, "fall back to");
		for (struct xds_chain *c = fb->all.next; c != &fb->all; c = c->next)
			if (watch_at(ENTRY_OF(c, all), fb->active))
				mark_dirty(ENTRY_OF(c, all));
	}
}

// FB-03: the watchers hear of servers only when there is none left to wait for. What they have
// heard stands until a server has answered.
static void note_failure(struct xds_fallback *fb)
{
	const char *why = xds_client_failure(client_of(fb, fb->active));
	struct xds_server_info info;
	xds_client_server(client_of(fb, fb->active), &info);
	if (!why && (!fb->failure || info.state != XDS_SERVER_CONNECTED))
		return;
	if (why && fb->failure && strcmp(why, fb->failure) == 0)
		return;
	set_text(&fb->failure, why);
	fb->failure_serial = fb->failure ? ++fb->n_serials : 0;
	mark_all_dirty(fb);
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

static void take_value(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	struct xds_fallback *fb = e->fallback;
	if (!e->value || !xds_res_eq(e->value, in->res)) { // SW-16
		set_value(e, xds_res_get(in->res));
		e->fresh = true;
	}
	set_text(&e->version, in->version);
	e->updated_ns = in->updated_ns;
	twheel_cancel(fb->conf.wheel, &e->ttl);
	if (e->source == fb->active)
		return;
	e->source = fb->active;
	// What the servers before this one gave is out of date: it counts when they give it again.
	for (uint32_t i = 0; i < fb->active; i++)
		if (e->inner[i].watcher.entry)
			xds_client_forget(client_of(fb, i), &e->inner[i].watcher);
}

static void end_value(struct xds_fallback_entry *e)
{
	twheel_cancel(e->fallback->conf.wheel, &e->ttl);
	set_value(e, NULL);
	set_text(&e->version, NULL);
	e->updated_ns = 0;
	e->lost = true;
}

static void take_error(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	e->status = in->status;
	if (*in->error && (!e->error || strcmp(e->error, in->error) != 0))
		e->error_serial = ++e->fallback->n_serials;
	set_text(&e->error, in->error);
	set_text(&e->error_version, in->error_version);
	e->error_code = in->error_code;
	e->error_is_data = in->error_is_data;
	e->error_ns = in->error_ns;
}

// RS-04: the server was left while the value held.
static void on_ttl(struct twheel_timer *t)
{
	struct xds_fallback_entry *e =
		(struct xds_fallback_entry *)((char *)t - offsetof(struct xds_fallback_entry, ttl));
	const struct xds_fallback_conf *conf = &e->fallback->conf;
	uint64_t now = twheel_now(conf->wheel);
	char *text;
	if (asprintf(&text, "%s \"%s\" from xDS server %s has expired (node id \"%s\")",
		    conf->types[e->type]->label, e->name, conf->servers[e->left]->conf->uri,
		    text_of(conf->node_id)) < 0) {
		twheel_arm(conf->wheel, &e->ttl, now + RETRY_NS);
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
	mark_dirty(e);
	conf->on_due(conf->ctx);
}

// RS-04: a server that fails says nothing more than that the time of its value is over.
static void end_with_source(struct xds_fallback_entry *e)
{
	struct xds_entry_info in;
	if (!e->value || e->source >= e->fallback->active)
		return; // NO_SOURCE, too
	xds_watcher_info(&e->inner[e->source].watcher, &in);
	if (in.res)
		return;
	take_error(e, &in);
	end_value(e);
	e->source = NO_SOURCE;
}

// The server has an error and no value. Its own it has dropped itself; that of a server before it
// goes by the same rules (DE-03, DE-04).
static void drop_value(struct xds_fallback_entry *e, const struct xds_entry_info *in)
{
	const struct xds_fallback *fb = e->fallback;
	bool fails = in->error_is_data && fb->conf.servers[fb->active]->conf->fail_on_data_errors;
	if (!e->value || (e->source != fb->active && !fails))
		return;
	end_value(e);
}

static void merge(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	struct xds_entry_info in;
	end_with_source(e);
	if (watch_at(e, fb->active)) {
		xds_chain_add(&fb->later, &e->dirty);
		retry_later(fb);
		return;
	}
	xds_watcher_info(&e->inner[fb->active].watcher, &in);
	if (!in.res && !*in.error)
		return; // it has not spoken yet
	if (in.res)
		take_value(e, &in);
	else
		drop_value(e, &in);
	take_error(e, &in);
}

// Events

// 0 = none. A name without a value can wait while there is a server to wait for.
static uint64_t trouble_of(const struct xds_fallback_entry *e)
{
	const struct xds_fallback *fb = e->fallback;
	if (e->error)
		return e->error_serial;
	return e->value || is_failing(fb) ? fb->failure_serial : 0;
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
		.text = text_of(e->error ? e->error : e->fallback->failure),
	};
}

static void entry_free(struct xds_fallback_entry *e)
{
	xds_res_put(e->value);
	free(e->name);
	free(e->version);
	free(e->error);
	free(e->error_version);
	free(e);
}

static void told_entry(struct xds_fallback_entry *e)
{
	if (--e->telling == 0 && e->dead)
		entry_free(e);
}

// True = there was something to tell.
static bool tell(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	uint64_t trouble = trouble_of(e), knew = e->told;
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

// What a new watcher is to know at once (WA-02, WA-03, FM-10).
static void tell_new(struct xds_fallback_entry *e, struct xds_watcher *w)
{
	uint64_t trouble = trouble_of(e);
	e->telling++;
	if (e->value) {
		struct xds_event event = value_event(e);
		w->on_event(w, &event);
	}
	if (trouble && w->fallback == e) {
		struct xds_event event = trouble_event(e);
		w->on_event(w, &event);
	}
	told_entry(e);
}

bool xds_fallback_settle(struct xds_fallback *fb)
{
	bool told = false;
	climb(fb);
	fall(fb);
	note_failure(fb);
	while (!xds_chain_empty(&fb->later)) {
		struct xds_chain *c = fb->later.next;
		xds_chain_remove(c);
		xds_chain_add(&fb->dirty, c);
	}
	while (!xds_chain_empty(&fb->dirty)) {
		struct xds_fallback_entry *e = ENTRY_OF(fb->dirty.next, dirty);
		xds_chain_remove(&e->dirty);
		merge(e);
		told |= tell(e);
	}
	return told;
}

// Watches

// NULL = no memory.
static struct xds_fallback_entry *entry_new(
	struct xds_fallback *fb, uint32_t type, const char *name)
{
	uint32_t n = fb->conf.n_servers;
	struct xds_fallback_entry *e = calloc(1, sizeof(*e) + n * sizeof(e->inner[0]));
	if (!e)
		return NULL;
	e->fallback = fb;
	e->type = type;
	e->status = XDS_STATUS_REQUESTED;
	e->source = NO_SOURCE;
	e->ttl.fire = on_ttl;
	e->name = strdup(name);
	if (!e->name || strmap_add(&fb->by_name[type], &e->link, e->name)) {
		entry_free(e);
		return NULL;
	}
	for (uint32_t i = 0; i < n; i++) {
		e->inner[i].watcher.on_event = on_inner_event;
		e->inner[i].entry = e;
	}
	xds_chain_init(&e->dirty);
	xds_chain_add(&fb->all, &e->all);
	return e;
}

static void entry_drop(struct xds_fallback_entry *e)
{
	struct xds_fallback *fb = e->fallback;
	for (uint32_t i = 0; i <= fb->active; i++)
		cancel_at(e, i);
	twheel_cancel(fb->conf.wheel, &e->ttl);
	xds_chain_remove(&e->all);
	xds_chain_remove(&e->dirty);
	strmap_remove(&fb->by_name[e->type], &e->link);
	if (e->telling)
		e->dead = true;
	else
		entry_free(e);
}

// FB-05: a name that nobody knows yet may need the next server at once. What the others are to hear
// of that comes when all is settled: this may be inside an event whose text is the failure.
static struct xds_fallback_entry *start(struct xds_fallback *fb, uint32_t type, const char *name)
{
	struct xds_fallback_entry *e = entry_new(fb, type, name);
	for (uint32_t i = 0; e && i <= fb->active; i++) {
		if (watch_at(e, i)) {
			entry_drop(e);
			return NULL;
		}
	}
	if (!e)
		return NULL;
	merge(e); // a client may still have it (WA-13)
	e->fresh = false;
	fall(fb);
	e->told = trouble_of(e);
	return e;
}

int xds_fallback_watch(
	struct xds_fallback *fb, uint32_t type, const char *name, struct xds_watcher *w)
{
	struct strmap_link *l = strmap_find(&fb->by_name[type], name);
	struct xds_fallback_entry *e =
		l ? (struct xds_fallback_entry *)((char *)l -
						  offsetof(struct xds_fallback_entry, link))
		  : start(fb, type, name);
	if (!e)
		return -ENOMEM;
	w->fallback = e;
	xds_watchers_add(&e->watchers, w, fb->n_rounds);
	tell_new(e, w);
	return 0;
}

void xds_fallback_cancel(struct xds_watcher *w)
{
	struct xds_fallback_entry *e = w->fallback;
	xds_watchers_remove(&e->watchers, w);
	w->fallback = NULL;
	if (!e->watchers.first)
		entry_drop(e);
}

struct xds_fallback *xds_fallback_new(const struct xds_fallback_conf *conf)
{
	DCHECK(conf->n_servers > 1);
	struct xds_fallback *fb = calloc(1, sizeof(*fb));
	if (!fb)
		return NULL;
	fb->conf = *conf;
	xds_chain_init(&fb->all);
	xds_chain_init(&fb->dirty);
	xds_chain_init(&fb->later);
	fb->retry.fire = on_retry;
	fb->by_name = calloc(conf->n_types, sizeof(*fb->by_name));
	if (fb->by_name)
		return fb;
	free(fb);
	return NULL;
}

void xds_fallback_free(struct xds_fallback *fb)
{
	if (!fb)
		return;
	for (struct xds_chain *c = fb->all.next, *next; c != &fb->all; c = next) {
		next = c->next;
		struct xds_fallback_entry *e = ENTRY_OF(c, all);
		for (struct xds_watcher *w = e->watchers.first; w; w = w->next)
			w->fallback = NULL;
		entry_drop(e);
	}
	for (uint32_t i = 1; i <= fb->active; i++)
		xds_server_put(fb->conf.servers[i]);
	for (uint32_t t = 0; t < fb->conf.n_types; t++)
		strmap_fini(&fb->by_name[t]);
	twheel_cancel(fb->conf.wheel, &fb->retry);
	free(fb->by_name);
	free(fb->failure);
	free(fb);
}

const struct xds_server *xds_fallback_active(const struct xds_fallback *fb)
{
	return fb->conf.servers[fb->active];
}

static uint64_t expiry_of(const struct xds_fallback_entry *e)
{
	struct xds_entry_info in = {.expires_ns = 0};
	if (twheel_armed(&e->ttl))
		return e->ttl_ns;
	if (e->value && e->source != NO_SOURCE)
		xds_watcher_info(&e->inner[e->source].watcher, &in);
	return in.expires_ns;
}

void xds_fallback_each(const struct xds_fallback *fb,
	void (*fn)(void *ctx, const struct xds_entry_info *), void *ctx)
{
	for (const struct xds_chain *c = fb->all.next; c != &fb->all; c = c->next) {
		const struct xds_fallback_entry *e = ENTRY_OF(c, all);
		fn(ctx, &(struct xds_entry_info){
				.type = fb->conf.types[e->type],
				.name = e->name,
				.status = e->status,
				.res = e->value,
				.version = text_of(e->version),
				.updated_ns = e->updated_ns,
				.expires_ns = expiry_of(e),
				.error = text_of(e->error),
				.error_code = e->error_code,
				.error_is_data = e->error_is_data,
				.error_version = text_of(e->error_version),
				.error_ns = e->error_ns,
			});
	}
}
