// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml makes of the frontends. One that is new listens at once. One that
// changes serves as it did until its target is complete and its certificates are there, and then
// everything of it changes in one snapshot. One that is gone listens no more; its clients are sent
// away, and its requests are served to their ends as before.
#include "ctrl/access_log/access_log.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/chains.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_frontend.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/conf/config_vips.h"
#include "ctrl/deps/config.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/listeners.h"
#include "ctrl/trace_start.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/live_frontend.h"
#include "lb/pick/credential.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (50 * NS_PER_MS)

static const struct config_frontend *row_of(const struct frontend *f)
{
	return &f->all->conf.config->frontends[f->index];
}

static void look_later(struct frontends *all, uint64_t ns)
{
	twheel_arm(all->conf.wheel, &all->look, twheel_now(all->conf.wheel) + ns);
}

void frontends_look_soon(struct frontends *all)
{
	look_later(all, 0);
}

void frontend_change_free(struct frontends *all, struct frontend_change *c)
{
	if (!c)
		return;
	frontend_source_free(c->source);
	lb_live_frontend_put(c->live);
	assembler_give_tls(all->conf.assembler, c->credential);
	free(c->listener_name);
	free(c);
}

static void tell_changed(const struct frontend *f)
{
	const struct frontends_conf *conf = &f->all->conf;
	const struct config_frontend *c = row_of(f);
	const struct access_log_frontend is = {c->name, {c->address_ip, c->port}};
	access_log_rename(conf->access_log, f->index, &is);
	traces_rename(conf->traces, f->index, c->name);
	if (!config_serves(conf->config, f->index))
		drains_forget(conf->drains, f->index);
}

// Preparing

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
		// Those that change differ from each other, as one file has them.
		if (all->list[i].stays && !is_elsewhere(&c->frontends[i], f))
			return lb_err_set(err, "port: %s:%u is still that of \"%s\"", f->address,
				f->port, c->frontends[i].name);
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
	const struct config_frontend *was = row_of(f);
	int rc = frontend_name_listener(to, all->conf.bootstrap, &c->listener_name, err);
	if (rc == -ENOMEM)
		return lb_err_set(err, "out of memory");
	if (rc)
		return rc;
	c->has_source = !is_new && is_other_target(was, to);
	c->sends_away = !is_new && (is_elsewhere(was, to) || is_other_tls(was->tls, to->tls));
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
	for (uint32_t i = 0; i < all->n; i++)
		all->list[i].stays =
			config_serves(c, i) && !c->frontends[i].by_listeners && !plan->goes[i];
	for (uint32_t i = 0; i < all->n_changes; i++)
		all->list[all->changes[i]->row].stays = false;
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
		all->left[i] = make_live(all, row_of(f), true);
		if (!all->left[i])
			return lb_err_set(err, "out of memory");
		all->left[i]->owner = f->owner;
	}
	return 0;
}

static int check_changes(struct frontends *all, const struct config *new, struct lb_err *err)
{
	assembler_await_tls(all->conf.assembler);
	for (uint32_t i = 0; i < all->n_changes; i++) {
		const struct frontend_change *c = all->changes[i];
		const struct config_frontend *f = &new->frontends[c->entry];
		const char *tls =
			f->tls ? assembler_tls_error(all->conf.assembler, c->credential) : "";
		bool moves = is_elsewhere(row_of(&all->list[c->row]), f) ||
		             !config_serves(all->conf.config, c->row);
		int rc = *tls ? lb_err_set(err, "tls: %s", tls) : 0;
		if (!rc && moves)
			rc = check_address(all, new, f, err);
		if (rc)
			return lb_err_within(err, "frontends[%u]", c->entry);
	}
	for (uint32_t i = 0; i < all->n; i++) {
		const struct config_frontend *f = row_of(&all->list[i]);
		if (all->list[i].stays && !is_ours(all->conf.config, new, f))
			return lb_err_set(err, "vips: %s is still the address of \"%s\"",
				f->address, f->name);
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
	if (rc)
		frontends_abandon(all);
	return rc ? -EINVAL : 0;
}

static void forget_prepared(struct frontends *all)
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
	forget_prepared(all);
}

// Applying

static void set_listener_name(struct frontend *f, char **name)
{
	char **at = &f->all->conf.listener_names[f->index];
	if (*at && *name && strcmp(*at, *name) == 0)
		return; // who borrows it has it still
	free(*at);
	*at = *name;
	*name = NULL;
}

// It is what `next` says from the next snapshot on.
static void commit(struct frontend *f, struct config_frontend *to)
{
	struct frontends *all = f->all;
	struct assembler *a = all->conf.assembler;
	struct frontend_change *c = f->next;
	struct frontend_source *old = f->source;
	uint32_t i = f->index;
	f->next = NULL;
	config_rows_put(all->conf.config, i, to);
	set_listener_name(f, &c->listener_name);
	assembler_set_live(a, i, c->live, c->source, c->sends_away);
	if (row_of(f)->target) {
		assembler_set_tls(a, i, c->credential);
		c->credential = LB_PLAIN_TEXT;
	}
	if (c->source) {
		f->source = c->source;
		c->source = NULL;
		assembler_update(a, i, f->source->config);
		xds_config_put(f->source->config);
		f->source->config = NULL;
		frontend_source_free(old);
	}
	if (f->chains)
		chains_check_again(f->chains); // for proxy_protocol
	frontend_change_free(all, c);
	tell_changed(f);
	log_info("frontend changed", "frontend=%s", log_quote(row_of(f)->name));
}

static bool is_ready(const struct frontend *f)
{
	const struct frontend_change *c = f->next;
	return (!c->has_source || (c->source && c->source->config)) &&
	       !assembler_tls_is_new(f->all->conf.assembler, c->credential);
}

// What it was to be before is nothing any more.
static void change(struct frontend *f, struct frontend_change *c, struct config_frontend *to)
{
	struct frontends *all = f->all;
	struct config_frontend *row = &all->conf.config->frontends[f->index];
	frontend_change_free(all, f->next);
	config_frontend_free(row->next);
	row->next = to;
	f->next = c;
	if (c->has_source)
		c->source = frontend_source_new(f, to, c->listener_name);
	if (c->has_source && !c->source)
		log_error("frontend does not change", "frontend=%s error=\"out of memory\"",
			log_quote(row->name));
}

static void begin(struct frontend *f, struct frontend_change *c, struct config_frontend *to)
{
	struct frontends *all = f->all;
	struct assembler *a = all->conf.assembler;
	uint32_t i = f->index;
	config_rows_put(all->conf.config, i, to);
	set_listener_name(f, &c->listener_name);
	f->owner = c->live->owner;
	all->conf.config->frontends[i].is_new = true;
	assembler_fail(a, i, "no configuration has been received yet");
	assembler_set_live(a, i, c->live, false, false);
	assembler_set_tls(a, i, c->credential);
	c->credential = LB_PLAIN_TEXT;
	frontend_change_free(all, c);
	tell_changed(f);
	if (!frontend_start(f))
		assembler_fail(a, i, "out of memory");
	log_info("frontend added", "frontend=%s", log_quote(row_of(f)->name));
}

static void leave(struct frontend *f)
{
	struct frontends *all = f->all;
	struct config_frontend *row = &all->conf.config->frontends[f->index];
	row->row = CONFIG_ROW_LEAVES;
	row->is_new = false;
	config_frontend_free(row->next);
	row->next = NULL;
	frontend_change_free(all, f->next);
	f->next = NULL;
	assembler_set_live(all->conf.assembler, f->index, all->left[f->index], false, false);
	lb_live_frontend_put(all->left[f->index]);
	if (f->chains)
		chains_leave(f->chains);
	tell_changed(f);
	log_info("frontend removed", "frontend=%s", log_quote(row->name));
}

void frontends_apply(struct frontends *all, struct config *new, const struct config_rows_plan *plan)
{
	for (uint32_t i = 0; i < all->n; i++)
		if (all->left[i])
			leave(&all->list[i]);
	for (uint32_t i = 0; i < all->n_changes; i++) {
		struct frontend_change *c = all->changes[i];
		struct frontend *f = &all->list[c->row];
		struct config_frontend *to = config_frontend_take(new, c->entry);
		if (!to) {
			log_error("frontend does not change", "error=\"out of memory\"");
			frontend_change_free(all, c);
		} else if (plan->entries[c->entry].change == CONFIG_CHANGE_NEW) {
			begin(f, c, to);
		} else {
			change(f, c, to);
		}
	}
	forget_prepared(all);
	if (all->listeners)
		listeners_have_room(all->listeners);
	frontends_look(&all->look);
}

void frontends_follow_vips(struct frontends *all)
{
	if (all->listeners)
		listeners_look_again(all->listeners);
}

// Later

// The last client is gone.
static void finish(struct frontend *f)
{
	struct frontends *all = f->all;
	struct assembler *a = all->conf.assembler;
	frontend_source_free(f->source);
	f->source = NULL;
	if (f->chains)
		assembler_set_chains(a, f->index, NULL, "the frontend is gone");
	chains_free(f->chains);
	f->chains = NULL;
	assembler_fail(a, f->index, "the frontend is gone");
	assembler_set_tls(a, f->index, LB_NO_CREDENTIAL);
	all->conf.config->frontends[f->index].row = CONFIG_ROW_SPARE;
	log_info("frontend has no clients left", "frontend=%s", log_quote(row_of(f)->name));
}

static bool is_left_by_all(const struct frontend *f)
{
	return assembler_frontend_uses(f->all->conf.assembler, f->index) == 0 &&
	       (!f->chains || chains_is_gone(f->chains));
}

void frontends_look(struct twheel_timer *t)
{
	struct frontends *all = CONTAINER_OF(t, struct frontends, look);
	bool is_any = false;
	for (uint32_t i = 0; i < all->n; i++) {
		struct frontend *f = &all->list[i];
		struct config_frontend *row = &all->conf.config->frontends[i];
		if (f->next && is_ready(f)) {
			struct config_frontend *to = row->next;
			row->next = NULL;
			commit(f, to);
		} else if (row->row == CONFIG_ROW_LEAVES && is_left_by_all(f)) {
			finish(f);
		}
		if (row->is_new && !*assembler_frontend_error(all->conf.assembler, i))
			row->is_new = false;
		is_any = is_any || f->next || row->is_new || row->row == CONFIG_ROW_LEAVES;
	}
	if (is_any)
		look_later(all, LOOK_NS);
}
