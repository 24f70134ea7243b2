// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_rows.h"

#include "ctrl/base/strmap.h"
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_diff.h"
#include "ctrl/conf/config_frontend.h"
#include "ctrl/conf/config_frontends.h"
#include "lb/base/container_of.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// As many more as there are, within these; those that clients are leaving count until then.
#define LEAST_SPARE 16
#define MOST_SPARE 256

// Places

static bool has_headers(const struct config *c)
{
	for (unsigned i = 0; i < c->n_frontends; i++)
		if (c->frontends[i].proxy_protocol)
			return true;
	return false;
}

static unsigned n_spare(const struct config *c)
{
	unsigned n = c->n_frontends < LEAST_SPARE ? LEAST_SPARE : c->n_frontends;
	unsigned room = (LB_MAX_FRONTENDS - c->n_frontends) / 2; // the rest is for chains
	n = n < MOST_SPARE ? n : MOST_SPARE;
	return n < room ? n : room;
}

// The one with by_listeners stays the last.
int config_rows_reserve(struct config *c, struct lb_err *reterr)
{
	unsigned n = n_spare(c), at = config_by_listeners(c), n_behind = c->n_frontends - at;
	c->takes_headers = has_headers(c);
	struct config_frontend *list = realloc(c->frontends, (c->n_frontends + n) * sizeof(*list));
	if (!list)
		return lb_err_set(reterr, "out of memory");
	c->frontends = list;
	memmove(&list[at + n], &list[at], n_behind * sizeof(*list));
	c->n_frontends += n;
	for (unsigned i = at; i < at + n; i++)
		list[i] = (struct config_frontend){.row = CONFIG_ROW_SPARE};
	for (unsigned i = at; i < at + n; i++) {
		list[i].name = strdup("");
		list[i].address = strdup("");
		if (!list[i].name || !list[i].address)
			return lb_err_set(reterr, "out of memory");
	}
	config_reserve_places(c);
	return 0;
}

// One frontend

struct config_frontend *config_frontend_take(struct config *c, uint32_t index)
{
	struct config_frontend *f = malloc(sizeof(*f));
	if (!f)
		return NULL;
	*f = c->frontends[index];
	c->frontends[index] = (struct config_frontend){.name = NULL};
	return f;
}

// Without memory it is never freed: somebody may have it still.
static void keep_name(struct config *c, char *name)
{
	char **list = realloc(c->past_names, (c->n_past_names + 1) * sizeof(*list));
	if (!list)
		return;
	c->past_names = list;
	list[c->n_past_names++] = name;
}

void config_rows_put(struct config *c, uint32_t row, struct config_frontend *f)
{
	struct config_frontend *to = &c->frontends[row];
	bool is_same = strcmp(to->name, f->name) == 0, is_new = is_same && to->is_new;
	uint64_t since_ns = to->since_ns;
	if (is_same) { // who borrows the name has it still
		free(f->name);
		f->name = to->name;
	} else {
		keep_name(c, to->name);
	}
	to->name = NULL;
	config_frontend_free(to->next);
	config_frontend_fini(to);
	*to = *f;
	to->row = CONFIG_ROW_SERVES;
	to->next = NULL;
	to->is_new = is_new;
	to->since_ns = since_ns;
	free(f);
}

// Comparison

struct planning {
	struct config_rows_plan *plan;
	const struct config *running, *new;
	void (*fn)(void *ctx, const char *field, bool needs_restart);
	void *ctx;
	struct strmap map; // of running ones, by name
	struct row_link {
		struct strmap_link link;
	} * links; // [n_rows] owned
	uint32_t spare; // the first place that may be
	bool is_fixed; // the frontend that is being compared
	bool differs;
};

static const struct config_frontend *said_of(const struct config *c, uint32_t row)
{
	const struct config_frontend *f = &c->frontends[row];
	return f->next ? f->next : f;
}

static void note(void *ctx, const char *field)
{
	struct planning *p = ctx;
	p->differs = true;
	p->fn(p->ctx, field, p->is_fixed);
}

static bool is_other_text(const char *a, const char *b)
{
	return !a != !b || (a && strcmp(a, b) != 0);
}

static bool lacks_headers(const struct config *running, const struct config_frontend *f)
{
	return f->proxy_protocol && !running->takes_headers;
}

// A Listener that has another name or address would leave its clients without chains until it is
// there; chains that serve keep the routes that they have.
static bool is_fixed(const struct config *running, const struct config_frontend *was,
	const struct config_frontend *f)
{
	if (!was->target != !f->target || lacks_headers(running, f))
		return true;
	return !f->target && (f->port != was->port || !ip_eq(&f->address_ip, &was->address_ip) ||
				     is_other_text(f->listener, was->listener) ||
				     f->grpc_headers != was->grpc_headers);
}

static uint32_t next_spare(struct planning *p)
{
	while (p->spare < p->running->n_frontends &&
		p->running->frontends[p->spare].row != CONFIG_ROW_SPARE)
		p->spare++;
	return p->spare;
}

static bool has_no_room(struct planning *p, const struct config_frontend *f)
{
	const struct config *c = p->running;
	uint32_t listeners = config_by_listeners(c);
	bool is_name_taken =
		listeners < c->n_frontends && strcmp(c->frontends[listeners].name, f->name) == 0;
	return is_name_taken || lacks_headers(c, f) || (!f->target && !c->n_chain_places) ||
	       next_spare(p) == c->n_frontends;
}

static struct config_rows_entry compare_new(
	struct planning *p, const struct config_frontend *f, const char *path)
{
	p->is_fixed = has_no_room(p, f);
	note(p, path);
	if (p->is_fixed)
		return (struct config_rows_entry){.change = CONFIG_CHANGE_FIXED, .row = UINT32_MAX};
	return (struct config_rows_entry){.change = CONFIG_CHANGE_NEW, .row = p->spare++};
}

static struct config_rows_entry compare_one(struct planning *p, uint32_t i)
{
	const struct config_frontend *f = &p->new->frontends[i];
	char path[32];
	if (f->by_listeners)
		return (struct config_rows_entry){.change = CONFIG_CHANGE_NONE};
	snprintf(path, sizeof(path), "frontends[%u]", i);
	struct strmap_link *l = strmap_find(&p->map, f->name);
	if (!l)
		return compare_new(p, f, path);
	uint32_t row = (uint32_t)(CONTAINER_OF(l, struct row_link, link) - p->links);
	const struct config_frontend *was = said_of(p->running, row);
	p->plan->goes[row] = false;
	p->is_fixed = is_fixed(p->running, was, f);
	p->differs = false;
	config_diff_frontend(was, f, path, note, p);
	enum config_change change = !p->differs   ? CONFIG_CHANGE_NONE
	                            : p->is_fixed ? CONFIG_CHANGE_FIXED
	                                          : CONFIG_CHANGE_FIELDS;
	return (struct config_rows_entry){.change = change, .row = row};
}

static int list_running(struct planning *p)
{
	const struct config *c = p->running;
	for (uint32_t i = 0; i < c->n_frontends; i++) {
		if (!config_serves(c, i) || c->frontends[i].by_listeners)
			continue;
		if (strmap_add(&p->map, &p->links[i].link, c->frontends[i].name))
			return -ENOMEM;
		p->plan->goes[i] = true;
	}
	return 0;
}

static void tell_gone(struct planning *p)
{
	char field[160];
	p->is_fixed = false;
	for (uint32_t i = 0; i < p->plan->n_rows; i++) {
		if (!p->plan->goes[i])
			continue;
		p->plan->is_any = true;
		snprintf(field, sizeof(field), "frontends[%s]", p->running->frontends[i].name);
		note(p, field);
	}
}

static int compare_all(struct planning *p)
{
	struct config_rows_plan *plan = p->plan;
	if (!plan->entries || !plan->goes || !p->links || list_running(p))
		return -ENOMEM;
	for (uint32_t i = 0; i < plan->n; i++) {
		plan->entries[i] = compare_one(p, i);
		enum config_change change = plan->entries[i].change;
		plan->is_any |= change == CONFIG_CHANGE_FIELDS || change == CONFIG_CHANGE_NEW;
	}
	tell_gone(p);
	return 0;
}

int config_rows_plan(struct config_rows_plan *plan, const struct config *running,
	const struct config *new, void (*fn)(void *ctx, const char *field, bool needs_restart),
	void *ctx)
{
	*plan = (struct config_rows_plan){.n = new->n_frontends, .n_rows = running->n_frontends};
	plan->entries = calloc((size_t)plan->n + 1, sizeof(*plan->entries));
	plan->goes = calloc((size_t)plan->n_rows + 1, sizeof(*plan->goes));
	struct planning p = {.plan = plan, .running = running, .new = new, .fn = fn, .ctx = ctx};
	p.links = calloc((size_t)plan->n_rows + 1, sizeof(*p.links));
	int rc = compare_all(&p);
	strmap_fini(&p.map);
	free(p.links);
	return rc;
}

void config_rows_plan_fini(struct config_rows_plan *p)
{
	free(p->entries);
	free(p->goes);
}
