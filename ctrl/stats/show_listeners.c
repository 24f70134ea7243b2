// SPDX-License-Identifier: Apache-2.0
// `show listeners`: what came by `listeners: wildcard`.
#include "ctrl/assemble/drains.h"
#include "ctrl/base/printout.h"
#include "ctrl/base/show_listener.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdio.h>
#include <stdlib.h>

// One text, which tables have room for.
static void set_addresses(json_t *row, const struct show_listener *i)
{
	struct printout p;
	FILE *out = printout_begin(&p);
	for (uint32_t a = 0; out && a < i->n_addresses; a++) {
		char address[IP_PORT_TEXT_MAX];
		fprintf(out, "%s%s", a ? " " : "", ip_port_print(&i->addresses[a], address));
	}
	char *text = out ? printout_end(&p) : NULL;
	if (text)
		show_set_text(row, "addresses", text);
	free(text);
}

struct listing {
	json_t *rows;
	enum drain_phase phase; // of them all
};

static void add_row(void *ctx, const struct show_listener *i)
{
	const struct listing *l = ctx;
	json_t *row = json_object();
	show_set_text(row, "name", i->name);
	show_set_text(row, "state", l->phase ? drain_phase_name(l->phase) : i->state);
	set_addresses(row, i);
	show_set_u64(row, "chains", i->n_chains);
	show_set_text(row, "waiting", i->waiting);
	show_set_text(row, "refused", i->refused);
	show_set_text(row, "error", i->error);
	json_array_append_new(l->rows, row);
}

json_t *show_listeners(const struct show *s, struct show_args *args)
{
	struct listing l = {.rows = json_array()};
	uint32_t frontend = config_by_listeners(s->conf.config);
	struct drain_info drain = {.phase = DRAIN_NONE};
	if (frontend < s->conf.config->n_frontends)
		drains_look(s->conf.drains, frontend, &drain);
	l.phase = drain.phase;
	if (l.rows && s->conf.each_listener)
		s->conf.each_listener(s->conf.ctx, add_row, &l);
	return l.rows;
}
