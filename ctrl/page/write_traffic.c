// SPDX-License-Identifier: Apache-2.0
// Frontends, clusters, endpoints.
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"

#include <inttypes.h>
#include <string.h>

static void write_state(
	struct html_table *t, enum html_tone tone, const char *state, const char *error)
{
	html_cell_begin(t);
	html_badge(t->out, tone, state);
	if (error[0]) {
		fputs(" <span class=\"why\">", t->out);
		html_text(t->out, error);
		fputs("</span>", t->out);
	}
	html_cell_end(t);
}

static void write_frontend(struct look *l, struct html_table *t, const struct look_load *r)
{
	const struct config_frontend *f = &l->from->config->frontends[r->number];
	enum html_tone tone = r->error[0]                        ? HTML_BAD
	                      : strcmp(r->state, "serving") == 0 ? HTML_GOOD
	                                                         : HTML_WARN;
	html_row_begin(t, tone);
	html_cell_text(t, r->name);
	html_cell_begin(t);
	html_text(t->out, f->address ? f->address : "");
	if (f->port)
		fprintf(t->out, " port %u", f->port);
	html_cell_end(t);
	write_state(t, tone, r->state, r->error);
	html_cell_rate(t, r->requests_s);
	html_cell_rate(t, r->failed_s);
	html_cell_count(t, r->active);
	html_cell_count(t, r->n_clients);
	html_row_end(t);
}

void look_write_frontends(struct look *l)
{
	static const struct html_column columns[] = {{"Frontend", false}, {"Address", false},
		{"State", false}, {"Requests/s", true}, {"Failed/s", true}, {"In flight", true},
		{"Left to drain", true}};
	const struct worst *rows = &l->loads[LOAD_FRONTEND];
	struct html_table t;
	if (l->cluster)
		return;
	look_section_begin(l, "frontends", "Frontends");
	LOOK_TABLE(&t, l, "Frontends, the worst first", columns);
	for (uint32_t i = 0; i < rows->n; i++)
		write_frontend(l, &t, worst_at(rows, i));
	html_table_end(&t);
	look_section_end(l, worst_left_out(rows), "shuntctl show info");
}

static enum html_tone tone_of(int badness)
{
	return badness == 0 ? HTML_GOOD : badness == 3 ? HTML_BAD : HTML_WARN;
}

static void write_cluster(struct look *l, struct html_table *t, const struct look_load *r)
{
	enum html_tone tone = tone_of(r->badness);
	html_row_begin(t, tone);
	html_cell_begin(t);
	fputs("<a href=\"/?cluster=", t->out);
	html_query_value(t->out, r->name);
	fputs("\">", t->out);
	html_text(t->out, r->name);
	fputs("</a>", t->out);
	html_cell_end(t);
	write_state(t, tone, r->state, r->error);
	html_cell_begin(t);
	fprintf(t->out, "%" PRIu32 "/%" PRIu32, r->n_ready, r->n_endpoints);
	if (r->n_failing)
		fprintf(t->out, ", %" PRIu32 " failing", r->n_failing);
	html_cell_end(t);
	html_cell_rate(t, r->requests_s);
	html_cell_rate(t, r->failed_s);
	html_cell_count(t, r->active);
	html_cell_count(t, r->queued);
	html_cell_count(t, r->n_failed);
	html_cell_count(t, r->n_bad);
	html_row_end(t);
}

void look_write_clusters(struct look *l)
{
	static const struct html_column columns[] = {{"Cluster", false}, {"State", false},
		{"Ready", true}, {"Requests/s", true}, {"Failed/s", true}, {"In flight", true},
		{"Queued", true}, {"Failed in all", true}, {"Bad answers in all", true}};
	const struct worst *rows = &l->loads[LOAD_CLUSTER];
	struct html_table t;
	look_section_begin(l, "clusters", l->cluster ? "Cluster" : "Clusters");
	if (!rows->n) {
		look_note(l, l->cluster ? "It is not there any more." : "There are none.");
	} else {
		fprintf(l->out, "<p>%" PRIu64 " in all, %" PRIu64 " with something wrong.</p>",
			rows->n_seen, l->n_bad[LOAD_CLUSTER]);
		LOOK_TABLE(&t, l, "Clusters, the worst first", columns);
		for (uint32_t i = 0; i < rows->n; i++)
			write_cluster(l, &t, worst_at(rows, i));
		html_table_end(&t);
	}
	look_section_end(l, worst_left_out(rows), "shuntctl show clusters");
}

static void write_endpoint_state(struct html_table *t, const struct look_endpoint *r)
{
	bool is_ready = strcmp(r->state, lb_state_name(LB_READY)) == 0;
	html_cell_begin(t);
	html_badge(t->out,
		r->badness ? tone_of(r->badness)
		: is_ready ? HTML_GOOD
			   : HTML_PLAIN,
		r->state);
	if (r->is_ejected) {
		fputs(" ejected", t->out);
		if (r->ejected_ns) {
			fputs(", ", t->out);
			html_duration(t->out, (double)r->ejected_ns / (double)NS_PER_SECOND);
			fputs(" left", t->out);
		}
	}
	if (r->is_unhealthy)
		fputs(" unhealthy", t->out);
	if (r->is_failing && is_ready && !r->is_ejected && !r->is_unhealthy)
		fputs(" failing", t->out);
	html_cell_end(t);
}

static void write_endpoint(struct html_table *t, const struct look_endpoint *r)
{
	html_row_begin(t, tone_of(r->badness));
	html_cell_text(t, r->cluster);
	html_cell_text(t, r->address);
	write_endpoint_state(t, r);
	html_cell_text(t, r->override);
	html_cell_count(t, r->active);
	html_cell_count(t, r->requests);
	html_cell_count(t, r->failed);
	html_cell_count(t, r->connections);
	html_cell_begin(t);
	html_text(t->out, r->check[0] ? r->check : r->error);
	html_cell_end(t);
	html_row_end(t);
}

void look_write_endpoints(struct look *l)
{
	static const struct html_column columns[] = {{"Cluster", false}, {"Endpoint", false},
		{"State", false}, {"Operators say", false}, {"In flight", true}, {"Requests", true},
		{"Failed", true}, {"Connections", true}, {"Last error", false}};
	struct html_table t;
	look_section_begin(l, "endpoints",
		l->cluster ? "Its endpoints" : "Endpoints that fail or are taken out");
	if (!l->endpoints.n) {
		look_note(l, "There are none.");
	} else {
		LOOK_TABLE(&t, l, "Endpoints, the worst first", columns);
		for (uint32_t i = 0; i < l->endpoints.n; i++)
			write_endpoint(&t, worst_at(&l->endpoints, i));
		html_table_end(&t);
	}
	look_section_end(l, worst_left_out(&l->endpoints), "shuntctl show endpoints");
}
