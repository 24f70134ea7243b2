// SPDX-License-Identifier: Apache-2.0
// What a reload of shunt.yaml makes of the frontends. One that is new listens at once. One that
// changes serves as it did, at its address and with what its target is told, until what it is to be
// is made and its certificates are there; then everything of it changes in one snapshot. One that
// is gone listens no more; its clients are sent away, and its requests are served to their ends as
// before.
#include "ctrl/access_log/access_log.h"
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/drains.h"
#include "ctrl/chains.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_frontend.h"
#include "ctrl/conf/config_rows.h"
#include "ctrl/frontends_inside.h"
#include "ctrl/listeners.h"
#include "ctrl/trace_start.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/live_frontend.h"
#include "lb/pick/credential.h"

#include <stdlib.h>
#include <string.h>

#define LOOK_NS (50 * NS_PER_MS)
#define LEAST_LEAVE_NS NS_PER_SECOND // beyond a turn of a worker

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
	if (c->source)
		assembler_drop_next(all->conf.assembler, c->row);
	frontend_source_free(c->source);
	lb_live_frontend_put(c->live);
	assembler_give_tls(all->conf.assembler, c->credential);
	free(c->listener_name);
	free(c);
}

static void tell_changed(const struct frontend *f)
{
	const struct frontends_conf *conf = &f->all->conf;
	const struct config_frontend *c = frontend_row(f);
	const struct access_log_frontend is = {c->name, {c->address_ip, c->port}};
	access_log_rename(conf->access_log, f->index, &is);
	traces_rename(conf->traces, f->index, c->name);
	if (!config_serves(conf->config, f->index))
		drains_forget(conf->drains, f->index);
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

// From the next snapshot on. Returns the one before.
static struct frontend_source *take_source(struct frontend *f, struct frontend_change *c)
{
	struct frontend_source *before = f->source;
	assembler_take_next(f->all->conf.assembler, f->index);
	f->source = c->source;
	c->source = NULL;
	return before;
}

// It is what `next` says, all in one turn, so that no snapshot has a part of it.
static void commit(struct frontend *f)
{
	struct frontends *all = f->all;
	struct assembler *a = all->conf.assembler;
	struct frontend_change *c = f->next;
	uint32_t i = f->index;
	struct config_frontend *row = &all->conf.config->frontends[i], *to = row->next;
	// Until then the row has a next one.
	struct frontend_source *before = c->source ? take_source(f, c) : NULL;
	f->next = NULL;
	row->next = NULL;
	config_rows_put(all->conf.config, i, to);
	set_listener_name(f, &c->listener_name);
	assembler_set_live(a, i, c->live, c->sends_away);
	if (frontend_row(f)->target) {
		assembler_set_tls(a, i, c->credential);
		c->credential = LB_PLAIN_TEXT;
	}
	if (f->chains)
		chains_look_again(f->chains); // for proxy_protocol, which a Listener may want
	if (all->listeners)
		listeners_have_room(all->listeners);
	frontend_change_free(all, c);
	frontend_source_free(before); // as it ends, the new one may be told of something
	tell_changed(f);
	log_info("frontend changed", "frontend=%s", log_quote(frontend_row(f)->name));
}

const char *frontend_next_tls_error(const struct frontend *f)
{
	bool has_tls = f->next && f->next->has_tls && frontend_row(f)->next->tls;
	return has_tls ? assembler_tls_error(f->all->conf.assembler, f->next->credential) : "";
}

bool frontend_next_awaits_tls(const struct frontend *f)
{
	return f->next && f->next->has_tls &&
	       assembler_tls_is_new(f->all->conf.assembler, f->next->credential);
}

static bool is_ready(const struct frontend *f)
{
	bool is_made =
		!f->next->has_source || assembler_next_is_made(f->all->conf.assembler, f->index);
	return is_made && !frontend_next_awaits_tls(f) && !*frontend_next_tls_error(f);
}

// Without memory it is tried again.
static void begin_source(struct frontend *f)
{
	struct assembler *a = f->all->conf.assembler;
	struct frontend_change *c = f->next;
	if (!assembler_begin_next(a, f->index))
		return;
	c->source = frontend_source_new(f, frontend_row(f)->next, c->listener_name);
	if (!c->source)
		assembler_drop_next(a, f->index);
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
		begin_source(f);
	if (c->has_source && !c->source)
		log_error("frontend does not change yet", "frontend=%s error=\"out of memory\"",
			log_quote(row->name));
}

// Without memory it is tried again.
static void start(struct frontend *f)
{
	struct assembler *a = f->all->conf.assembler;
	assembler_fail(a, f->index, "no configuration has been received yet");
	if (!frontend_start(f))
		assembler_fail(a, f->index, "out of memory");
}

static void begin(struct frontend *f, struct frontend_change *c, struct config_frontend *to)
{
	struct frontends *all = f->all;
	struct assembler *a = all->conf.assembler;
	uint32_t i = f->index;
	struct config_frontend *row = &all->conf.config->frontends[i];
	config_rows_put(all->conf.config, i, to);
	set_listener_name(f, &c->listener_name);
	f->owner = c->live->owner;
	row->is_new = true;
	row->since_ns = twheel_now(all->conf.wheel);
	assembler_set_live(a, i, c->live, false);
	assembler_set_tls(a, i, c->credential);
	c->credential = LB_PLAIN_TEXT;
	frontend_change_free(all, c);
	tell_changed(f);
	start(f);
	log_info("frontend added", "frontend=%s", log_quote(frontend_row(f)->name));
}

static void leave(struct frontend *f)
{
	struct frontends *all = f->all;
	struct config_frontend *row = &all->conf.config->frontends[f->index];
	row->row = CONFIG_ROW_LEAVES;
	row->is_new = false;
	frontend_change_free(all, f->next);
	f->next = NULL;
	config_frontend_free(row->next);
	row->next = NULL;
	assembler_set_live(all->conf.assembler, f->index, all->left[f->index], false);
	lb_live_frontend_put(all->left[f->index]);
	if (f->chains)
		chains_leave(f->chains);
	f->left_by = assembler_snapshot_version(all->conf.assembler) + 1;
	f->gone_ns = twheel_now(all->conf.wheel) + LEAST_LEAVE_NS;
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
	frontends_forget_prepared(all);
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
	log_info("frontend has no clients left", "frontend=%s", log_quote(frontend_row(f)->name));
}

// Workers take nobody: of one that an operator drains that is so before they hear of its end.
static bool is_left_by_all(const struct frontend *f)
{
	const struct frontends_conf *conf = &f->all->conf;
	return assembler_snapshot_version(conf->assembler) >= f->left_by &&
	       twheel_now(conf->wheel) >= f->gone_ns &&
	       assembler_frontend_uses(conf->assembler, f->index) == 0 &&
	       (!f->chains || chains_is_gone(f->chains));
}

void frontends_look(struct twheel_timer *t)
{
	struct frontends *all = CONTAINER_OF(t, struct frontends, look);
	bool is_any = false;
	for (uint32_t i = 0; i < all->n; i++) {
		struct frontend *f = &all->list[i];
		struct config_frontend *row = &all->conf.config->frontends[i];
		if (row->is_new && !f->source && !f->chains)
			(void)frontend_start(f); // "out of memory" stays until there is news
		if (f->next && f->next->has_source && !f->next->source)
			begin_source(f);
		if (f->next && is_ready(f))
			commit(f);
		else if (row->row == CONFIG_ROW_LEAVES && is_left_by_all(f))
			finish(f);
		if (row->is_new && !*assembler_frontend_error(all->conf.assembler, i))
			row->is_new = false;
		is_any = is_any || f->next || row->is_new || row->row == CONFIG_ROW_LEAVES;
	}
	if (is_any)
		look_later(all, LOOK_NS);
}
