// SPDX-License-Identifier: Apache-2.0
#include "ctrl/chains.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/chain_places.h"
#include "ctrl/conf/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/frontends.h"
#include "ctrl/res/listener.h"
#include "ctrl/xds/federation.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/chain_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (5 * NS_PER_MS) // whether the chains of the next Listener have what they need
#define RETRY_NS NS_PER_SECOND // without a place, a TLS context or memory
#define NOT_YET "no listener has been received yet"
#define NO_PLACE "no place for more filter chains until clients of replaced ones have left"
#define GRACE_NS (2 * NS_PER_SECOND) // beyond the time that clients have to leave

// A chain of the Listener that serves or of the next one, or one whose clients leave.
struct chain {
	struct chain *next;
	struct chains *all;
	struct res_listener *http; // counted
	uint32_t place;
	struct depmgr *depmgr; // owned
	bool failed; // there are no routes for it
	bool is_secure; // its TLS context has an id
	bool wanted; // by the next Listener, or the one that serves
	bool serves; // or did
	uint64_t free_ns; // when its clients have left; 0 = they stay, or there were none
};

struct chains {
	struct chains_conf conf;
	struct frontends_conf env;
	struct xds_watcher watcher;
	bool is_watching; // what a wildcard's server says counts from now on
	bool is_deleted; // by the server: of one by wildcard; or nobody wants it
	struct chain *list;
	struct res_listener *next; // counted; what does not serve yet; NULL = none
	bool has_all; // of its chains
	struct twheel_timer look;
	struct lb_err error; // why it does not serve; "" = it does
	struct lb_err refused; // why `next` does not
};

static const char *frontend_name(const struct chains *c)
{
	return c->env.config->frontends[c->conf.frontend].name;
}

static uint64_t now_ns(const struct chains *c)
{
	return twheel_now(c->env.wheel);
}

// One chain

static void on_config(void *ctx, struct xds_config *config)
{
	struct chain *k = ctx;
	k->failed = false;
	assembler_update(k->all->env.assembler, k->place, config);
}

// A36: its requests fail.
static void on_config_error(void *ctx, const char *text)
{
	struct chain *k = ctx;
	log_warn("filter chain without configuration", "frontend=%s listener=%s error=%s",
		log_quote(frontend_name(k->all)), log_quote(k->all->conf.listener),
		log_quote(text));
	k->failed = true;
	assembler_fail(k->all->env.assembler, k->place, text);
}

static bool on_in_use(void *ctx, const char *cluster)
{
	const struct chain *k = ctx;
	return assembler_in_use(k->all->env.assembler, k->place, cluster);
}

static void chain_free(struct chain *k)
{
	depmgr_free(k->depmgr);
	chain_places_give(k->all->conf.places, k->place);
	xds_res_put(&k->http->base);
	free(k);
}

// -ENOSPC or -ENOMEM.
static int chain_add(struct chains *c, const struct res_chain *from)
{
	struct res_listener *http = from->http;
	struct chain *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct chain){.next = c->list, .all = c, .http = http, .wanted = true};
	k->place = chain_places_take(c->conf.places);
	if (k->place == NO_CHAIN_PLACE) {
		free(k);
		return -ENOSPC;
	}
	xds_res_get(&http->base);
	assembler_set_owner(c->env.assembler, k->place, c->conf.frontend);
	struct depmgr_conf deps = {
		.client = c->env.xds,
		.dns = c->env.dns,
		.wheel = c->env.wheel,
		.listener_name = http->base.name,
		.listener = http,
		.node_id = c->env.node_id,
		.on_update = on_config,
		.on_error = on_config_error,
		.in_use = on_in_use,
		.ctx = k,
	};
	k->depmgr = depmgr_new(&deps);
	if (!k->depmgr) {
		chain_free(k);
		return -ENOMEM;
	}
	k->is_secure = assembler_secure(c->env.assembler, k->place, from->tls); // A36-35
	c->list = k;
	return 0;
}

static bool chain_is_ready(const struct chain *k)
{
	const struct assembler *a = k->all->env.assembler;
	if (!k->is_secure || assembler_is_securing(a, k->place))
		return false;
	return k->failed || !*assembler_frontend_error(a, k->place) ||
	       *assembler_frontend_refusal(a, k->place);
}

// All of them

static void look_later(struct chains *c, uint64_t ns)
{
	twheel_arm(c->env.wheel, &c->look, now_ns(c) + ns);
}

// A36-33. One whose clients leave takes new ones as well (A36-75). NULL = there is none.
static struct chain *find(const struct chains *c, const struct res_listener *http)
{
	struct chain *k = c->list;
	while (k && !xds_res_eq(&k->http->base, &http->base))
		k = k->next;
	return k;
}

static uint32_t n_chains(const struct res_socket *s)
{
	return s->n_chains + s->has_default;
}

static bool is_leaving(const struct chain *k)
{
	return k->free_ns && !k->wanted;
}

static void want_none(struct chains *c)
{
	for (struct chain *k = c->list; k; k = k->next)
		k->wanted = false;
}

// A36-34: their clients go with what they have.
static void retire_unwanted(struct chains *c)
{
	uint64_t time_ns = c->env.config->listener_drain_s * NS_PER_SECOND + GRACE_NS;
	for (struct chain *k = c->list; k; k = k->next) {
		if (k->wanted || k->free_ns)
			continue;
		k->free_ns = now_ns(c) + (k->serves ? time_ns : 0);
		if (k->serves)
			assembler_send_away(c->env.assembler, k->place);
	}
	look_later(c, LOOK_NS);
}

static void free_left(struct chains *c)
{
	for (struct chain **at = &c->list; *at;) {
		struct chain *k = *at;
		if (!is_leaving(k) || now_ns(c) < k->free_ns) {
			at = &k->next;
			continue;
		}
		*at = k->next;
		assembler_fail(c->env.assembler, k->place, "the filter chain is gone");
		assembler_unsecure(c->env.assembler, k->place);
		chain_free(k);
	}
}

// A36-32
static void stop_serving(struct chains *c, const char *text)
{
	struct lb_chain_set *set = lb_chain_set_of_none();
	if (!*c->error.text || strcmp(c->error.text, text) != 0)
		log_write(c->conf.by_wildcard ? LOG_LEVEL_INFO : LOG_LEVEL_WARN,
			c->conf.by_wildcard ? "listener does not serve" : "frontend does not serve",
			"frontend=%s listener=%s error=%s", log_quote(frontend_name(c)),
			log_quote(c->conf.listener), log_quote(text));
	lb_err_set(&c->error, "%s", text);
	c->conf.publish(c->conf.ctx, set, c->error.text);
	lb_chain_set_put(set);
	want_none(c);
	retire_unwanted(c);
}

static uint32_t place_of(const struct chains *c, const struct res_chain *chain)
{
	struct chain *k = find(c, chain->http);
	if (!k)
		return LB_NO_PLACE;
	k->serves = true;
	k->free_ns = 0;
	return k->place;
}

static void serve_next(struct chains *c)
{
	const struct res_socket *s = c->next->socket;
	uint32_t *places = calloc((size_t)s->n_chains + 1, sizeof(*places));
	for (uint32_t i = 0; places && i <= s->n_chains; i++)
		places[i] = i < n_chains(s) ? place_of(c, &s->chains[i]) : LB_NO_PLACE;
	struct lb_chain_set *set = NULL;
	if (places)
		set = lb_chain_set_new(s->match, s->n_chains, places, &s->filters.passed);
	free(places);
	if (!set) {
		look_later(c, RETRY_NS);
		return;
	}
	c->error.text[0] = 0;
	c->conf.publish(c->conf.ctx, set, "");
	lb_chain_set_put(set);
	retire_unwanted(c);
	log_info("filter chains", "frontend=%s listener=%s chains=%u", log_quote(frontend_name(c)),
		log_quote(c->conf.listener), n_chains(s));
	xds_res_put(&c->next->base);
	c->next = NULL;
}

// Those that never served and are of no use give their places back at once, whether the next
// Listener was replaced or found too few: others wait for them.
static void forget_useless(struct chains *c)
{
	for (struct chain *k = c->list; k; k = k->next)
		if (!k->serves && !k->wanted)
			k->free_ns = now_ns(c);
	free_left(c);
}

// Marks those of the next Listener, and begins those that are new. 0, or -ENOSPC or -ENOMEM, and
// none is marked.
static int want(struct chains *c)
{
	const struct res_socket *s = c->next->socket;
	uint32_t n_missing = 0;
	want_none(c);
	for (uint32_t i = 0; i < n_chains(s); i++) {
		struct chain *k = find(c, s->chains[i].http);
		if (k)
			k->wanted = true;
		if (k && !k->is_secure)
			k->is_secure =
				assembler_secure(c->env.assembler, k->place, s->chains[i].tls);
		n_missing += !k;
	}
	int rc = n_missing > chain_places_n_free(c->conf.places) ? -ENOSPC : 0;
	for (uint32_t i = 0; i < n_chains(s) && n_missing && !rc; i++)
		if (!find(c, s->chains[i].http))
			rc = chain_add(c, &s->chains[i]);
	if (rc)
		want_none(c);
	return rc;
}

static void try_next(struct chains *c)
{
	int rc = c->has_all ? 0 : want(c);
	bool ready = true;
	forget_useless(c);
	c->refused.text[0] = 0;
	c->has_all = !rc;
	for (const struct chain *k = rc ? NULL : c->list; k; k = k->next) {
		ready = ready && (!k->wanted || chain_is_ready(k));
		c->has_all = c->has_all && (!k->wanted || k->is_secure);
	}
	if (!c->has_all)
		lb_err_set(&c->refused, "%s",
			rc == -ENOSPC ? NO_PLACE
			: rc          ? "out of memory"
				      : "no TLS context is left for all of its filter chains");
	if (ready && c->has_all)
		serve_next(c);
	else
		look_later(c, c->has_all ? LOOK_NS : RETRY_NS);
}

static void look(struct twheel_timer *t)
{
	struct chains *c = CONTAINER_OF(t, struct chains, look);
	free_left(c);
	if (c->next)
		try_next(c);
	else if (c->list)
		look_later(c, RETRY_NS); // for those that leave
}

static void forget_next(struct chains *c)
{
	if (c->next)
		xds_res_put(&c->next->base);
	c->next = NULL;
	c->has_all = false;
	c->refused.text[0] = 0;
}

static void take(struct chains *c, struct xds_res *res)
{
	struct res_listener *l = res_listener_from(res);
	struct lb_err err = {""};
	forget_next(c);
	c->conf.check(c->conf.ctx, l, &err);
	if (*err.text) {
		stop_serving(c, err.text);
		return;
	}
	xds_res_get(&l->base);
	c->next = l;
	look_later(c, 0); // chains begin watches of their own, which must not be inside this one
}

// The newest one that the server has sent, if there is one; NULL = none.
static struct xds_res *newest(const struct chains *c)
{
	struct xds_entry_info info;
	xds_watcher_info(&c->watcher, &info);
	return info.res;
}

// A36-68: nobody has named the Listener, so that nothing is kept of one that the list has no more.
static void on_deleted(struct chains *c, const char *text)
{
	c->is_deleted = true;
	forget_next(c);
	stop_serving(c, text);
	xds_federation_cancel(c->env.xds, &c->watcher);
}

void chains_leave(struct chains *c)
{
	on_deleted(c, "the frontend is gone");
}

static void on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct chains *c = CONTAINER_OF(w, struct chains, watcher);
	if (c->conf.by_wildcard && e->kind != XDS_EVENT_RESOURCE && e->code == XDS_NOT_FOUND) {
		// What the watch begins with is what somebody else heard before the name came.
		if (c->is_watching)
			on_deleted(c, e->text);
		return;
	}
	if (e->kind == XDS_EVENT_AMBIENT)
		return;
	if (e->no_server && (c->next || !*c->error.text)) // says nothing of the Listener (FM-09)
		return;
	if (e->kind == XDS_EVENT_RESOURCE) {
		take(c, e->res);
		return;
	}
	forget_next(c);
	stop_serving(c, e->text);
}

int chains_watch(struct chains *c)
{
	const struct chains_conf *conf = &c->conf;
	c->watcher.by_wildcard = conf->by_wildcard;
	c->is_watching = false;
	int rc = (conf->by_wildcard ? xds_federation_watch_all : xds_federation_watch)(
		c->env.xds, &res_type_listener, conf->listener, &c->watcher);
	c->is_watching = !rc;
	c->is_deleted = rc;
	return rc;
}

struct chains *chains_new(const struct chains_conf *conf)
{
	struct chains *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->conf = *conf;
	c->env = *conf->env;
	c->look.fire = look;
	c->watcher.on_event = on_event;
	if (conf->by_wildcard) // it is about to come
		lb_err_set(&c->error, NOT_YET);
	stop_serving(c, NOT_YET);
	if (chains_watch(c) == 0)
		return c;
	chains_free(c);
	return NULL;
}

void chains_free(struct chains *c)
{
	if (!c)
		return;
	xds_federation_cancel(c->env.xds, &c->watcher);
	twheel_cancel(c->env.wheel, &c->look);
	forget_next(c);
	for (struct chain *k = c->list, *next; k; k = next) {
		next = k->next;
		chain_free(k);
	}
	free(c);
}

void chains_check_again(struct chains *c)
{
	if (*c->error.text && !c->next && !c->is_deleted && newest(c))
		take(c, newest(c));
}

void chains_look_again(struct chains *c)
{
	if (!c->is_deleted && newest(c))
		take(c, newest(c));
}

void chains_reresolve(struct chains *c)
{
	for (struct chain *k = c->list; k; k = k->next)
		depmgr_reresolve(k->depmgr);
}

const char *chains_waiting(struct chains *c)
{
	for (struct chain *k = c->next ? c->list : NULL; k; k = k->next)
		if (k->wanted && *depmgr_waiting(k->depmgr))
			return depmgr_waiting(k->depmgr);
	return *c->error.text && !c->next ? "a listener" : "";
}

const char *chains_refused(struct chains *c)
{
	if (*c->refused.text)
		return c->refused.text;
	for (struct chain *k = c->list; k; k = k->next) {
		const char *tls = assembler_frontend_tls_error(c->env.assembler, k->place);
		if (!is_leaving(k) && *depmgr_refused(k->depmgr))
			return depmgr_refused(k->depmgr);
		if (!is_leaving(k) && *tls)
			return tls;
	}
	return "";
}

const char *chains_error(const struct chains *c)
{
	return c->error.text;
}

uint32_t chains_count(const struct chains *c)
{
	uint32_t n = 0;
	for (const struct chain *k = c->list; k; k = k->next)
		n += k->serves;
	return n;
}

bool chains_is_unsettled(const struct chains *c)
{
	return c->next;
}

bool chains_wants_room(const struct chains *c)
{
	return c->next && *c->refused.text;
}

bool chains_is_gone(const struct chains *c)
{
	return c->is_deleted && !c->next && !c->list;
}
