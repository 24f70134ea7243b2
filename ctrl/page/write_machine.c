// SPDX-License-Identifier: Apache-2.0
// Workers, their pools, and certificates.
#include "ctrl/assemble/workers.h"
#include "ctrl/certs/certs.h"
#include "ctrl/certs/material.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"

#include <inttypes.h>
#include <string.h>

#define TELL_PERCENT 50 // of a pool
#define FULL_PERCENT 90
#define SOON_S (7 * 86400) // a certificate ends, as ctrl/doctor/dates.c has it

static bool hangs(const struct look *l, const struct lb_worker_counters *k)
{
	uint64_t beat_ns = counter_read(&k->beat_ns);
	return beat_ns && workers_stalls(beat_ns, twheel_now(l->from->wheel));
}

static void write_worker(struct look *l, struct html_table *t, const struct look_load *r)
{
	const struct lb_link *link = workers_link(l->from->workers, r->number);
	bool is_stuck = hangs(l, &link->counters);
	double percent = 100 * r->busy_share;
	enum html_tone tone = is_stuck ? HTML_BAD : percent > FULL_PERCENT ? HTML_WARN : HTML_GOOD;
	html_row_begin(t, tone);
	html_cell_text(t, r->name);
	html_cell_count(t, (uint64_t)link->core);
	html_cell_begin(t);
	html_badge(t->out, tone, is_stuck ? "hangs" : percent > FULL_PERCENT ? "busy" : "runs");
	html_cell_end(t);
	html_cell_begin(t);
	fprintf(t->out,
		"<meter min=\"0\" max=\"100\" high=\"%d\" value=\"%.0f\" aria-hidden=\"true\">"
		"</meter> %.0f %%",
		FULL_PERCENT, percent, percent);
	html_cell_end(t);
	html_cell_rate(t, r->requests_s);
	html_cell_count(t, r->connections);
	html_cell_begin(t);
	fprintf(t->out, "%.1f ms", (double)counter_read(&link->counters.longest_turn_ns) / 1e6);
	html_cell_end(t);
	html_cell_count(t, counter_read(&link->counters.long_turns));
	html_row_end(t);
}

void look_write_workers(struct look *l)
{
	static const struct html_column columns[] = {{"Worker", false}, {"Core", true},
		{"State", false}, {"Busy", true}, {"Requests/s", true}, {"Clients", true},
		{"Longest turn", true}, {"Turns above 1 ms", true}};
	const struct worst *rows = &l->loads[LOAD_WORKER];
	struct html_table t;
	if (l->cluster)
		return;
	look_section_begin(l, "workers", "Workers");
	LOOK_TABLE(&t, l, "Workers", columns);
	for (uint32_t i = 0; i < rows->n; i++)
		write_worker(l, &t, worst_at(rows, i));
	html_table_end(&t);
	look_section_end(l, worst_left_out(rows), "shuntctl show workers");
}

struct pool_row {
	uint32_t worker;
	const struct pool_view *view;
	uint32_t used, peak, percent;
};

static bool is_fuller(const void *x, const void *y)
{
	const struct pool_row *a = x, *b = y;
	if (a->percent / 10 != b->percent / 10)
		return a->percent / 10 > b->percent / 10;
	if (a->worker != b->worker)
		return a->worker < b->worker;
	return strcmp(a->view->name, b->view->name) < 0;
}

static void note_pools(struct look *l, struct worst *rows)
{
	for (uint32_t w = 0; w < workers_count(l->from->workers); w++) {
		const struct pool_list *list = &workers_link(l->from->workers, w)->pools;
		for (uint32_t i = 0; i < list->n; i++) {
			const struct pool_view *v = &list->views[i];
			struct pool_row r = {w, v, gauge_read(v->n_used), gauge_read(v->n_peak), 0};
			uint32_t most = r.used > r.peak ? r.used : r.peak;
			r.percent = v->n_total ? (uint32_t)(100ull * most / v->n_total) : 0;
			if (r.percent >= TELL_PERCENT && worst_wants(rows, &r))
				worst_add(rows, &r);
		}
	}
}

static void write_pool(struct html_table *t, const struct pool_row *r)
{
	bool is_full = (uint64_t)r->used * 100 >= (uint64_t)r->view->n_total * FULL_PERCENT;
	html_row_begin(t, is_full ? HTML_BAD : HTML_PLAIN);
	html_cell_text(t, r->view->name);
	html_cell_count(t, r->worker);
	html_cell_begin(t);
	html_badge(t->out, is_full ? HTML_BAD : HTML_PLAIN, is_full ? "nearly full" : "has room");
	html_cell_end(t);
	html_cell_count(t, r->used);
	html_cell_count(t, r->peak);
	html_cell_count(t, r->view->n_total);
	html_row_end(t);
}

void look_write_pools(struct look *l)
{
	static const struct html_column columns[] = {{"Pool", false}, {"Worker", true},
		{"State", false}, {"In use", true}, {"Most ever", true}, {"In all", true}};
	struct worst rows;
	struct html_table t;
	if (l->cluster)
		return;
	if (!worst_init(&rows, sizeof(struct pool_row), LOOK_MAX_POOLS, is_fuller, NULL)) {
		l->failed = true;
		return;
	}
	note_pools(l, &rows);
	look_section_begin(l, "pools", "Pools that were half full or more");
	if (!rows.n) {
		look_note(l, "There are none.");
	} else {
		LOOK_TABLE(&t, l, "Pools, the fullest first", columns);
		for (uint32_t i = 0; i < rows.n; i++)
			write_pool(&t, worst_at(&rows, i));
		html_table_end(&t);
	}
	look_section_end(l, worst_left_out(&rows), "shuntctl show pools");
	worst_fini(&rows);
}

struct cert_row {
	const char *provider, *kind, *subject; // borrowed, until the next dispatch
	int64_t left_s;
};

struct cert_rows {
	struct worst rows;
	int64_t now_s;
};

static bool ends_sooner(const void *x, const void *y)
{
	const struct cert_row *a = x, *b = y;
	return a->left_s < b->left_s;
}

static void note_list(struct cert_rows *to, const struct certs_info *i, const char *kind,
	const struct cert_list *list)
{
	for (uint32_t k = 0; k < list->n; k++) {
		const struct cert_info *c = &list->list[k];
		const struct cert_row r = {
			i->source->name, kind, c->subject, c->not_after_s - to->now_s};
		if (worst_wants(&to->rows, &r))
			worst_add(&to->rows, &r);
	}
}

static void note_source(void *ctx, const struct certs_info *i)
{
	if (!i->material)
		return;
	note_list(ctx, i, "own", &i->material->chain);
	note_list(ctx, i, i->material->has_bundles ? "spiffe" : "ca", &i->material->cas);
}

static void write_certificate(struct html_table *t, const struct cert_row *r)
{
	enum html_tone tone = r->left_s <= 0       ? HTML_BAD
	                      : r->left_s < SOON_S ? HTML_WARN
	                                           : HTML_GOOD;
	html_row_begin(t, tone);
	html_cell_text(t, r->provider);
	html_cell_text(t, r->kind);
	html_cell_text(t, r->subject);
	html_cell_begin(t);
	html_badge(t->out, tone,
		r->left_s <= 0       ? "has expired"
		: r->left_s < SOON_S ? "expires soon"
				     : "is valid");
	html_cell_end(t);
	html_cell_begin(t);
	html_duration(t->out, (double)(r->left_s < 0 ? -r->left_s : r->left_s));
	fputs(r->left_s < 0 ? " ago" : "", t->out);
	html_cell_end(t);
	html_row_end(t);
}

void look_write_certificates(struct look *l)
{
	static const struct html_column columns[] = {{"Provider", false}, {"Kind", false},
		{"Subject", false}, {"State", false}, {"Time left", true}};
	struct cert_rows certs = {.now_s = (int64_t)(l->from->wall_ns() / NS_PER_SECOND)};
	struct html_table t;
	if (l->cluster || !l->from->certs)
		return;
	if (!worst_init(&certs.rows, sizeof(struct cert_row), LOOK_MAX_CERTIFICATES, ends_sooner,
		    NULL)) {
		l->failed = true;
		return;
	}
	certs_each(l->from->certs, note_source, &certs);
	if (certs.rows.n) {
		look_section_begin(l, "certificates", "Certificates");
		LOOK_TABLE(&t, l, "Certificates, those that expire first", columns);
		for (uint32_t i = 0; i < certs.rows.n; i++)
			write_certificate(&t, worst_at(&certs.rows, i));
		html_table_end(&t);
		look_section_end(l, worst_left_out(&certs.rows), "shuntctl show certs");
	}
	worst_fini(&certs.rows);
}
