// SPDX-License-Identifier: Apache-2.0
#include "ctrl/listeners.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/base/show_listener.h"
#include "ctrl/base/strmap.h"
#include "ctrl/chains.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_vips.h"
#include "ctrl/frontends.h"
#include "ctrl/res/listener.h"
#include "ctrl/xds/bootstrap/name.h"
#include "ctrl/xds/federation.h"
#include "lb/base/container_of.h"
#include "lb/base/list.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/chain_set.h"
#include "lb/vips.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (200 * NS_PER_MS)

// A Listener that has come by the wildcard.
struct listener {
	struct list_link link;
	struct strmap_link by_name;
	struct listeners *all;
	char *name; // owned
	struct chains *chains; // owned
	bool is_outside; // none of its addresses is in vips
};

// An address of one, at the same place of the snapshot's table.
struct place {
	struct ip_port at;
	struct listener *of; // NULL = it is free
	bool is_wanted; // by the newest version of the Listener
	bool is_fresh; // taken by the check that is under way
	struct lb_chain_set *chains; // counted; NULL = it does not serve yet
};

struct listeners {
	struct frontends_conf conf;
	struct chain_places *chain_places;
	uint32_t frontend;
	struct xds_watcher star;
	struct list_link list; // struct listener
	struct strmap by_name; // the same
	struct twheel_timer look;
	bool is_complete; // all names have come once
	bool is_up; // what came first serves, or is known not to
	bool has_room; // an address was given up
	bool is_otherwise; // what shunt.yaml says of addresses
	bool is_unpublished; // for want of memory
	uint64_t n_tables;
	struct lb_err error; // why there is no list; "" = there is one
	uint32_t n;
	struct place places[];
};

static struct listener *at(struct list_link *l)
{
	return CONTAINER_OF(l, struct listener, link);
}

#define EACH(l, all) for (struct list_link *l = (all)->list.next; l != &(all)->list; l = l->next)

static void look_soon(struct listeners *all, uint64_t ns)
{
	twheel_arm(all->conf.wheel, &all->look, twheel_now(all->conf.wheel) + ns);
}

// The table

static void publish_table(struct listeners *all)
{
	struct lb_vip list[LB_MAX_VIPS];
	for (uint32_t i = 0; i < all->n; i++)
		list[i] = (struct lb_vip){all->places[i].at, all->places[i].chains};
	struct lb_vips *table = lb_vips_new(list, all->n, ++all->n_tables);
	all->is_unpublished = !table;
	if (table)
		assembler_set_vips(all->conf.assembler, table);
	lb_vips_put(table);
}

static void give_up(struct listeners *all, struct place *p)
{
	lb_chain_set_put(p->chains);
	*p = (struct place){.of = NULL};
	all->has_room = true;
}

static bool has_address(const struct config_frontend *f, const struct ip_port *a)
{
	return f && !f->by_listeners && f->port == a->port && ip_eq(&f->address_ip, &a->ip);
}

// Which of shunt.yaml's frontends has the address now, or when what a reload wants of it is there.
// NULL = none.
static const struct config_frontend *frontend_at(const struct config *c, const struct ip_port *a)
{
	for (uint32_t i = 0; i < c->n_frontends; i++) {
		const struct config_frontend *f = &c->frontends[i];
		if (config_serves(c, i) && (has_address(f, a) || has_address(f->next, a)))
			return f;
	}
	return NULL;
}

static struct place *place_at(struct listeners *all, const struct ip_port *a)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->places[i].of && ip_port_eq(&all->places[i].at, a))
			return &all->places[i];
	return NULL;
}

static struct place *free_place(struct listeners *all)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (!all->places[i].of)
			return &all->places[i];
	return NULL;
}

static bool is_in_vips(const struct listeners *all, const struct ip_port *a)
{
	return a->port && config_vip_of(all->conf.config, &a->ip);
}

// A36-73: the newest version of a Listener may be long in coming, and the prefix is gone by then.
static void give_up_outside(struct listeners *all)
{
	bool is_news = false;
	for (uint32_t i = 0; i < all->n; i++) {
		struct place *p = &all->places[i];
		if (!p->of || is_in_vips(all, &p->at))
			continue;
		is_news = is_news || p->chains;
		give_up(all, p);
	}
	if (is_news)
		publish_table(all);
}

// One Listener

// A36-67: the first who has an address keeps it. 0, or -EINVAL with reterr.
static int reserve(struct listener *l, const struct ip_port *a, struct lb_err *reterr)
{
	struct listeners *all = l->all;
	char text[IP_PORT_TEXT_MAX];
	const struct config_frontend *frontend = frontend_at(all->conf.config, a);
	struct place *p = place_at(all, a);
	ip_port_print(a, text);
	if (frontend)
		return lb_err_set(reterr, "%s is the %saddress of frontend \"%s\"", text,
			has_address(frontend, a) ? "" : "next ", frontend->name);
	if (p && p->of != l)
		return lb_err_set(
			reterr, "%s is the address of listener \"%s\" already", text, p->of->name);
	if (!p) {
		p = free_place(all);
		if (!p)
			return lb_err_set(
				reterr, "%s: listeners have %u addresses already", text, all->n);
		*p = (struct place){.at = *a, .of = l, .is_fresh = true};
	}
	p->is_wanted = true;
	return 0;
}

static void want_nothing(struct listener *l)
{
	for (uint32_t i = 0; i < l->all->n; i++)
		if (l->all->places[i].of == l)
			l->all->places[i].is_wanted = false;
}

// All of those in vips, or none that it did not have: whoever is refused leaves no place behind
// for others to be told of.
static void reserve_all(struct listener *l, const struct res_socket *s, struct lb_err *reterr)
{
	int rc = 0;
	want_nothing(l);
	for (uint32_t i = 0; i < s->n_addresses && !rc; i++)
		if (is_in_vips(l->all, &s->addresses[i]))
			rc = reserve(l, &s->addresses[i], reterr);
	for (uint32_t i = 0; i < l->all->n; i++) {
		struct place *p = &l->all->places[i];
		if (p->is_fresh && rc)
			*p = (struct place){.of = NULL};
		p->is_fresh = false;
	}
}

// A36-65, A36-66
static void check(void *ctx, const struct res_listener *r, struct lb_err *ret)
{
	struct listener *l = ctx;
	const struct res_socket *s = r->socket;
	uint32_t n_inside = 0;
	for (uint32_t i = 0; s && i < s->n_addresses; i++)
		n_inside += is_in_vips(l->all, &s->addresses[i]);
	l->is_outside = !n_inside;
	if (!s)
		lb_err_set(ret, "it is not a socket listener");
	else if (!n_inside)
		lb_err_set(ret, "its address is in no prefix of vips: %s, port %u", s->host,
			s->address.port);
	else if (s->filters.proxy_protocol) // PP-09
		lb_err_set(ret, "it wants PROXY headers: only a frontend with proxy_protocol says "
				"whom from");
	else
		reserve_all(l, s, ret);
}

static void publish(void *ctx, struct lb_chain_set *set, const char *error)
{
	struct listener *l = ctx;
	struct listeners *all = l->all;
	bool is_news = false;
	for (uint32_t i = 0; i < all->n; i++) {
		struct place *p = &all->places[i];
		if (p->of != l)
			continue;
		is_news = is_news || p->chains || !*error;
		if (*error || !p->is_wanted) {
			give_up(all, p);
			continue;
		}
		lb_chain_set_put(p->chains);
		p->chains = lb_chain_set_get(set);
	}
	if (is_news)
		publish_table(all);
	if (all->has_room)
		look_soon(all, 0);
}

static void listener_free(struct listener *l)
{
	chains_free(l->chains);
	list_remove(&l->link);
	strmap_remove(&l->all->by_name, &l->by_name);
	for (uint32_t i = 0; i < l->all->n; i++)
		if (l->all->places[i].of == l)
			give_up(l->all, &l->all->places[i]);
	free(l->name);
	free(l);
}

static struct listener *listener_new(struct listeners *all, const char *name)
{
	struct listener *l = calloc(1, sizeof(*l));
	char *copy = strdup(name);
	if (!l || !copy || strmap_add(&all->by_name, &l->by_name, copy)) {
		free(copy);
		free(l);
		return NULL;
	}
	l->all = all;
	l->name = copy;
	list_append(&all->list, &l->link);
	return l;
}

static int on_name(struct xds_watcher *w, const char *name)
{
	struct listeners *all = CONTAINER_OF(w, struct listeners, star);
	if (xds_name_is_xdstp(name)) // of federation, which "*" does not stand for
		return 0;
	struct strmap_link *known = strmap_find(&all->by_name, name);
	if (known) // it was deleted, and has clients yet (A36-75)
		return chains_watch(CONTAINER_OF(known, struct listener, by_name)->chains);
	struct listener *l = listener_new(all, name);
	if (!l)
		return -ENOMEM;
	const struct chains_conf conf = {
		.env = &all->conf,
		.places = all->chain_places,
		.frontend = all->frontend,
		.listener = l->name,
		.by_wildcard = true,
		.check = check,
		.publish = publish,
		.ctx = l,
	};
	l->chains = chains_new(&conf);
	if (l->chains)
		return 0;
	listener_free(l);
	return -ENOMEM;
}

// All of them

static void on_event(struct xds_watcher *w, const struct xds_event *e)
{
	struct listeners *all = CONTAINER_OF(w, struct listeners, star);
	if (e->kind == XDS_EVENT_RESOURCE) {
		all->is_complete = true;
		all->error.text[0] = 0;
	} else if (e->kind == XDS_EVENT_ERROR && !all->is_complete) {
		lb_err_set(&all->error, "%s", e->text);
	}
}

// A36-69: the first list is served as a whole, but for whom there is no room.
static bool is_settled(const struct listeners *all)
{
	EACH(l, all)
	if (chains_is_unsettled(at(l)->chains) && !chains_wants_room(at(l)->chains))
		return false;
	return all->is_complete;
}

static void set_up(struct listeners *all, const char *error)
{
	struct lb_chain_set *set = lb_chain_set_of_none();
	if (!set)
		return;
	assembler_set_chains(all->conf.assembler, all->frontend, set, error);
	all->is_up = !*error;
	lb_chain_set_put(set);
}

static void look(struct twheel_timer *t)
{
	struct listeners *all = CONTAINER_OF(t, struct listeners, look);
	for (struct list_link *l = all->list.next, *next; l != &all->list; l = next) {
		next = l->next;
		if (chains_is_gone(at(l)->chains))
			listener_free(at(l));
	}
	if (all->is_otherwise) {
		all->is_otherwise = false;
		give_up_outside(all);
		EACH(l, all)
		chains_look_again(at(l)->chains);
	}
	if (all->has_room) {
		all->has_room = false;
		EACH(l, all)
		if (!at(l)->is_outside)
			chains_check_again(at(l)->chains);
	}
	if (all->is_unpublished)
		publish_table(all);
	if (!all->is_up && is_settled(all))
		set_up(all, "");
	look_soon(all, LOOK_NS);
}

struct listeners *listeners_new(
	const struct frontends_conf *conf, struct chain_places *places, uint32_t frontend)
{
	uint32_t n = conf->config->n_vip_places;
	struct listeners *all = calloc(1, sizeof(*all) + n * sizeof(all->places[0]));
	if (!all)
		return NULL;
	all->conf = *conf;
	all->chain_places = places;
	all->frontend = frontend;
	all->n = n;
	all->look.fire = look;
	all->star.on_event = on_event;
	all->star.on_name = on_name;
	list_init(&all->list);
	set_up(all, "the list of listeners has not been received yet");
	look_soon(all, 0);
	if (xds_federation_watch_all(conf->xds, &res_type_listener, "*", &all->star) == 0)
		return all;
	listeners_free(all);
	return NULL;
}

void listeners_free(struct listeners *all)
{
	if (!all)
		return;
	twheel_cancel(all->conf.wheel, &all->look);
	while (!list_empty(&all->list))
		listener_free(at(all->list.next));
	strmap_fini(&all->by_name);
	xds_federation_cancel(all->conf.xds, &all->star);
	free(all);
}

void listeners_reresolve(struct listeners *all)
{
	EACH(l, all)
	chains_reresolve(at(l)->chains);
}

const char *listeners_at(const struct listeners *all, const struct ip_port *a)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->places[i].of && ip_port_eq(&all->places[i].at, a))
			return all->places[i].of->name;
	return NULL;
}

void listeners_have_room(struct listeners *all)
{
	all->has_room = true;
	look_soon(all, 0);
}

void listeners_look_again(struct listeners *all)
{
	all->is_otherwise = true;
	look_soon(all, 0);
}

const char *listeners_waiting(const struct listeners *all)
{
	if (all->is_up)
		return "";
	EACH(l, all)
	if (chains_is_unsettled(at(l)->chains) && *chains_waiting(at(l)->chains))
		return chains_waiting(at(l)->chains);
	return all->is_complete ? "" : "the list of listeners";
}

const char *listeners_refused(const struct listeners *all)
{
	EACH(l, all)
	if (*chains_refused(at(l)->chains))
		return chains_refused(at(l)->chains);
	return all->error.text;
}

static const char *state_of(const struct listener *l)
{
	if (chains_is_unsettled(l->chains) && *chains_error(l->chains))
		return "waiting";
	if (!*chains_error(l->chains))
		return "serving";
	if (chains_count(l->chains))
		return "leaving";
	return l->is_outside ? "outside" : "failing";
}

static void tell(
	const struct listener *l, void (*fn)(void *ctx, const struct show_listener *), void *ctx)
{
	struct ip_port addresses[LB_MAX_VIPS];
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->all->n; i++)
		if (l->all->places[i].of == l && l->all->places[i].chains)
			addresses[n++] = l->all->places[i].at;
	bool unsettled = chains_is_unsettled(l->chains);
	const struct show_listener info = {
		.name = l->name,
		.state = state_of(l),
		.addresses = addresses,
		.n_addresses = n,
		.n_chains = chains_count(l->chains),
		.waiting = unsettled ? chains_waiting(l->chains) : "",
		.refused = chains_refused(l->chains),
		.error = unsettled ? "" : chains_error(l->chains),
	};
	fn(ctx, &info);
}

void listeners_each(
	const struct listeners *all, void (*fn)(void *ctx, const struct show_listener *), void *ctx)
{
	EACH(l, all)
	tell(at(l), fn, ctx);
}
