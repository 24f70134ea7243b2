// SPDX-License-Identifier: Apache-2.0
// The xDS servers, what they have sent, and what is wrong with it.
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"

#include <inttypes.h>
#include <string.h>

struct writer {
	struct look *look;
	struct html_table table;
};

static void write_server(void *ctx, const struct xds_server_info *i)
{
	struct writer *w = ctx;
	struct html_table *t = &w->table;
	enum html_tone tone = i->state == XDS_SERVER_CONNECTED ? HTML_GOOD
	                      : i->state == XDS_SERVER_IDLE    ? HTML_PLAIN
	                      : i->error[0]                    ? HTML_BAD
	                                                       : HTML_WARN;
	html_row_begin(t, tone);
	html_cell_text(t, i->uri);
	html_cell_begin(t);
	html_badge(t->out, tone, xds_server_state_name(i->state));
	html_cell_end(t);
	html_cell_ago(t, look_age_s(w->look, i->since_ns));
	html_cell_count(t, i->n_acks);
	html_cell_count(t, i->n_nacks);
	html_cell_count(t, i->n_stale);
	html_cell_text(t, i->error);
	html_row_end(t);
}

// "cluster: 3 acked, 1 nacked_but_cached"
static void write_counts(struct look *l, uint32_t type)
{
	uint64_t n[XDS_N_CACHE_STATES] = {0};
	bool any = false;
	for (const struct xds_note_authority *a = l->xds->authorities; a; a = a->next)
		for (int s = 0; s < XDS_N_CACHE_STATES; s++)
			n[s] += a->n[type][s];
	for (int s = 0; s < XDS_N_CACHE_STATES; s++) {
		if (!n[s])
			continue;
		if (!any)
			fprintf(l->out, "<div><dt>%s</dt><dd>", res_types[type]->label);
		fprintf(l->out, "%s%" PRIu64 " %s", any ? ", " : "", n[s],
			xds_cache_state_name((enum xds_cache_state)s));
		any = true;
	}
	if (any)
		fputs("</dd></div>", l->out);
}

void look_write_servers(struct look *l)
{
	static const struct html_column columns[] = {{"xDS server", false}, {"State", false},
		{"Since", false}, {"ACKs", true}, {"NACKs", true}, {"Stale", true},
		{"Error", false}};
	struct writer w = {.look = l};
	if (l->cluster)
		return;
	look_section_begin(l, "xds", "xDS");
	LOOK_TABLE(&w.table, l, "xDS servers", columns);
	if (l->from->xds)
		xds_federation_each_server(l->from->xds, write_server, &w);
	html_table_end(&w.table);
	fputs("<dl class=\"facts\">", l->out);
	for (uint32_t type = 0; type < RES_N_TYPES; type++)
		write_counts(l, type);
	fputs("</dl>", l->out);
	look_section_end(l, 0, "");
}

static void write_resource(struct look *l, struct html_table *t, const struct look_resource *r)
{
	enum html_tone tone = r->badness == 3 ? HTML_BAD : HTML_WARN;
	html_row_begin(t, tone);
	html_cell_text(t, r->type);
	html_cell_text(t, r->name);
	html_cell_begin(t);
	html_badge(t->out, tone, r->state);
	html_cell_end(t);
	html_cell_text(t, r->serves ? "the value before" : "nothing");
	html_cell_ago(t, look_age_s(l, r->at_ns));
	html_cell_text(t, r->error);
	html_row_end(t);
}

void look_write_resources(struct look *l)
{
	static const struct html_column columns[] = {{"Type", false}, {"Resource", false},
		{"State", false}, {"What serves", false}, {"Since", false}, {"Error", false}};
	struct html_table t;
	if (l->cluster)
		return;
	look_section_begin(l, "resources", "Resources that are refused, missing or stale");
	if (!l->resources.n) {
		look_note(l, "There are none.");
	} else {
		LOOK_TABLE(&t, l, "Resources, the worst first", columns);
		for (uint32_t i = 0; i < l->resources.n; i++)
			write_resource(l, &t, worst_at(&l->resources, i));
		html_table_end(&t);
	}
	look_section_end(l, worst_left_out(&l->resources), "shuntctl show xds");
}
