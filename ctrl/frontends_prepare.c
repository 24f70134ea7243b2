// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml would make of the frontends is made beside what serves, and refused
// as a whole if any of it can't be. frontends_change.c says what becomes of it.
#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/conf/config_vips.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/listeners.h"
#include "lb/live_frontend.h"
#include "lb/pick/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_other_text(const char *a, const char *b)
{
	return !a != !b || (a && strcmp(a, b) != 0);
}

static bool is_other_tls(const struct config_frontend_tls *a, const struct config_frontend_tls *b)
{
	if (!a || !b)
		return a != b;
	bool is_other = is_other_text(a->certificate, b->certificate) ||
	                is_other_text(a->ca, b->ca) ||
	                a->require_client_certificate != b->require_client_certificate ||
	                a->n_sni != b->n_sni;
	for (unsigned i = 0; !is_other && i < a->n_sni; i++)
		is_other = is_other_text(a->sni[i], b->sni[i]);
	return is_other;
}

// Another target, or another reading of it, is complete some time later.
static bool is_other_target(const struct config_frontend *a, const struct config_frontend *b)
{
	return b->target &&
	       (is_other_text(a->target, b->target) || is_other_text(a->authority, b->authority) ||
		       a->grpc_headers != b->grpc_headers);
}

static bool is_elsewhere(const struct config_frontend *a, const struct config_frontend *b)
{
	return a->port != b->port || !ip_eq(&a->address_ip, &b->address_ip);
}

// The newer file's vips are in force when its frontends are.
static bool is_ours(
	const struct config *running, const struct config *new, const struct config_frontend *f)
{
	return config_port_of(running, &f->address_ip) < running->n_ports ||
	       config_vip_of(new, &f->address_ip);
}

// Those that change in one snapshot differ from each other, as one file has them. Who waits has its
// address until then. NULL = it leaves it at once.
static const struct config_frontend *what_stays(const struct frontend *f)
{
	return f->stays || f->waits ? frontend_row(f) : NULL;
}

// Who waits since another reload has an address to go to, too. NULL = none.
static const struct config_frontend *what_comes(const struct frontend *f)
{
	return f->stays ? frontend_row(f)->next : NULL;
}

static bool is_at(const struct config_frontend *f, const struct config_frontend *at)
{
	return f && !is_elsewhere(f, at);
}

#define ARE_THERE "its target or certificates are there"

static const char *how_long(const struct frontend *f)
{
	return f->waits || f->next ? ", until " ARE_THERE : "";
}

// Ports are those of the start, whatever else the file says.
static int check_address(const struct frontends *all, const struct config *new,
	const struct config_frontend *f, struct lb_err *err)
{
	const struct config *c = all->conf.config;
	const struct ip_port at = {f->address_ip, f->port};
	if (!is_ours(c, new, f))
		return lb_err_set(
			err, "address: %s is of a port that needs a restart itself", f->address);
	const char *listener = all->listeners ? listeners_at(all->listeners, &at) : NULL;
	if (listener)
		return lb_err_set(err, "port: %s:%u is the address of listener \"%s\"", f->address,
			f->port, listener);
	for (uint32_t i = 0; i < c->n_frontends; i++) {
		const struct frontend *other = &all->list[i];
		if (is_at(what_stays(other), f))
			return lb_err_set(err, "port: %s:%u is still that of \"%s\"%s", f->address,
				f->port, c->frontends[i].name, how_long(other));
		if (is_at(what_comes(other), f))
			return lb_err_set(err,
				"port: %s:%u is the next address of \"%s\", once " ARE_THERE,
				f->address, f->port, c->frontends[i].name);
	}
	return 0;
}

// Of another frontend than before.
static struct lb_live_frontend *make_live(
	struct frontends *all, const struct config_frontend *c, bool is_left)
{
	const struct lb_frontend_conf conf = config_frontend_terms(c);
	uint64_t number = ++all->n_live;
	return lb_live_frontend_new(&conf, number, number, is_left);
}

// 0, or negative with reterr.
static int fill(struct frontends *all, struct frontend_change *c, const struct config_frontend *to,
	bool is_new, struct lb_err *err)
{
	const struct frontend *f = &all->list[c->row];
	const struct config_frontend *was = frontend_row(f);
	int rc = frontend_name_listener(to, all->conf.bootstrap, &c->listener_name, err);
	if (rc == -ENOMEM)
		return lb_err_set(err, "out of memory");
	if (rc)
		return rc;
	c->has_source = !is_new && is_other_target(was, to);
	c->has_tls = is_new || is_other_tls(was->tls, to->tls);
	c->sends_away = !is_new && (is_elsewhere(was, to) || c->has_tls);
	// Nobody is served until its chains are there.
	c->credential =
		to->target ? assembler_take_tls(all->conf.assembler, to->tls) : LB_NO_CREDENTIAL;
	if (to->tls && c->credential == LB_NO_CREDENTIAL)
		return lb_err_set(err, "tls: there is no room for one more");
	c->live = make_live(all, to, false);
	if (c->live && !is_new)
		c->live->owner = f->owner;
	return c->live ? 0 : lb_err_set(err, "out of memory");
}

static void mark_who_stays(struct frontends *all, const struct config_rows_plan *plan)
{
	const struct config *c = all->conf.config;
	struct assembler *a = all->conf.assembler;
	assembler_await_tls(a);
	for (uint32_t i = 0; i < all->n; i++) {
		all->list[i].stays =
			config_serves(c, i) && !c->frontends[i].by_listeners && !plan->goes[i];
		all->list[i].waits = false;
	}
	for (uint32_t i = 0; i < all->n_changes; i++) {
		const struct frontend_change *to = all->changes[i];
		struct frontend *f = &all->list[to->row];
		bool awaits_tls = to->has_tls && assembler_tls_is_new(a, to->credential);
		f->waits = f->stays && (to->has_source || awaits_tls);
		f->stays = false;
	}
}

static int make_changes(struct frontends *all, const struct config *new,
	const struct config_rows_plan *plan, struct lb_err *err)
{
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct config_rows_entry *e = &plan->entries[i];
		if (e->change != CONFIG_CHANGE_FIELDS && e->change != CONFIG_CHANGE_NEW)
			continue;
		struct frontend_change *c = calloc(1, sizeof(*c));
		if (!c)
			return lb_err_set(err, "out of memory");
		c->row = e->row;
		c->entry = i;
		all->changes[all->n_changes++] = c;
		bool is_new = e->change == CONFIG_CHANGE_NEW;
		if (fill(all, c, &new->frontends[i], is_new, err))
			return lb_err_within(err, "frontends[%u]", i);
	}
	for (uint32_t i = 0; i < plan->n_rows; i++) {
		struct frontend *f = &all->list[i];
		if (!plan->goes[i])
			continue;
		all->left[i] = make_live(all, frontend_row(f), true);
		if (!all->left[i])
			return lb_err_set(err, "out of memory");
		all->left[i]->owner = f->owner;
	}
	return 0;
}

static int check_changes(struct frontends *all, const struct config *new, struct lb_err *err)
{
	for (uint32_t i = 0; i < all->n_changes; i++) {
		const struct frontend_change *c = all->changes[i];
		const struct config_frontend *f = &new->frontends[c->entry];
		const char *tls = c->has_tls && f->tls
		                          ? assembler_tls_error(all->conf.assembler, c->credential)
		                          : "";
		bool moves = is_elsewhere(frontend_row(&all->list[c->row]), f) ||
		             !config_serves(all->conf.config, c->row);
		int rc = *tls ? lb_err_set(err, "tls: %s", tls) : 0;
		if (!rc && moves)
			rc = check_address(all, new, f, err);
		if (rc)
			return lb_err_within(err, "frontends[%u]", c->entry);
	}
	return 0;
}

// Of those who keep theirs.
static int check_vips(const struct frontends *all, const struct config *new, struct lb_err *err)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct frontend *f = &all->list[i];
		const struct config_frontend *stays = what_stays(f), *comes = what_comes(f);
		if (stays && !is_ours(all->conf.config, new, stays))
			return lb_err_set(err, "vips: %s is still the address of \"%s\"%s",
				stays->address, stays->name, how_long(f));
		if (comes && !is_ours(all->conf.config, new, comes))
			return lb_err_set(err,
				"vips: %s is the next address of \"%s\", once " ARE_THERE,
				comes->address, comes->name);
	}
	return 0;
}

// Who leaves the address, now or later; NULL = nobody does.
static const struct config_frontend *who_leaves(
	const struct frontends *all, const struct config_frontend *at)
{
	for (uint32_t i = 0; i < all->n; i++) {
		const struct config_frontend *row = frontend_row(&all->list[i]);
		if (config_serves(all->conf.config, i) && !row->by_listeners &&
			!all->list[i].stays && !is_elsewhere(row, at))
			return row;
	}
	return NULL;
}

// Nobody leaves an address to one that cannot come yet.
static int check_fixed(const struct frontends *all, const struct config *new,
	const struct config_rows_plan *plan, struct lb_err *err)
{
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct config_frontend *to = &new->frontends[i], *from = NULL;
		if (plan->entries[i].change == CONFIG_CHANGE_FIXED)
			from = who_leaves(all, to);
		if (from)
			return lb_err_set(err,
				"frontends[%u]: it cannot be yet, and \"%s\" would leave %s:%u to "
				"nobody",
				i, from->name, to->address, to->port);
	}
	return 0;
}

int frontends_prepare(struct frontends *all, const struct config *new,
	const struct config_rows_plan *plan, struct lb_err *err)
{
	all->changes = calloc((size_t)plan->n + 1, sizeof(struct frontend_change *));
	all->left = calloc((size_t)all->n + 1, sizeof(struct lb_live_frontend *));
	int rc = all->changes && all->left ? 0 : lb_err_set(err, "out of memory");
	rc = rc ? rc : frontends_check_providers(new, all->conf.bootstrap, err);
	rc = rc ? rc : make_changes(all, new, plan, err);
	if (!rc)
		mark_who_stays(all, plan);
	rc = rc ? rc : check_changes(all, new, err);
	rc = rc ? rc : check_vips(all, new, err);
	rc = rc ? rc : check_fixed(all, new, plan, err);
	if (rc)
		frontends_abandon(all);
	return rc ? -EINVAL : 0;
}

void frontends_forget_prepared(struct frontends *all)
{
	free(all->changes);
	free(all->left);
	all->changes = NULL;
	all->left = NULL;
	all->n_changes = 0;
}

void frontends_abandon(struct frontends *all)
{
	for (uint32_t i = 0; i < all->n_changes; i++)
		frontend_change_free(all, all->changes[i]);
	for (uint32_t i = 0; all->left && i < all->n; i++)
		lb_live_frontend_put(all->left[i]);
	frontends_forget_prepared(all);
}
