// SPDX-License-Identifier: Apache-2.0
// What one sees first: whether it serves, how much, and what is wrong.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/printout.h"
#include "ctrl/conf/config.h"
#include "ctrl/metrics/scrape.h"
#include "ctrl/page/look_inside.h"
#include "ctrl/stats/show.h"
#include "lb/base/twheel.h"
#include "lb/pick/link.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *plural(unsigned n)
{
	return n == 1 ? "" : "s";
}

// "2 errors and 1 warning"; "" = none.
static const char *count_findings(const struct look *l, char *text, size_t size)
{
	unsigned e = l->report.n_errors, w = l->report.n_warnings;
	text[0] = 0;
	if (e && w)
		snprintf(text, size, "%u error%s and %u warning%s", e, plural(e), w, plural(w));
	else if (e)
		snprintf(text, size, "%u error%s", e, plural(e));
	else if (w)
		snprintf(text, size, "%u warning%s", w, plural(w));
	return text;
}

static enum html_tone state_of(const struct look *l, char *text, size_t size)
{
	char findings[64];
	const char *state = show_state(l->show);
	count_findings(l, findings, sizeof(findings));
	if (strcmp(state, "ready") == 0 && l->from->is_ready(l->from->ctx))
		state = "serving";
	else if (strcmp(state, "ready") == 0)
		state = "not ready";
	snprintf(text, size, "%s%s%s", state, findings[0] ? ", with " : "", findings);
	if (l->report.n_errors || strcmp(state, "not ready") == 0)
		return HTML_BAD;
	bool is_fine = strcmp(state, "serving") == 0 && !l->report.n_warnings;
	return is_fine ? HTML_GOOD : HTML_WARN;
}

static uint64_t count_clients(const struct look *l)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < workers_count(l->from->workers); w++)
		n += counter_read(&workers_link(l->from->workers, w)->counters.client_connections);
	return n;
}

static void fact_begin(struct look *l, const char *name)
{
	fprintf(l->out, "<div><dt>%s</dt><dd>", name);
}

static void fact_end(struct look *l)
{
	fputs("</dd></div>", l->out);
}

static void write_rate(struct look *l, const char *name, double per_s)
{
	fact_begin(l, name);
	if (per_s < 0)
		fputs("\u2013", l->out);
	else
		fprintf(l->out, per_s > 0 && per_s < 9.95 ? "%.1f" : "%.0f", per_s);
	fact_end(l);
}

static void write_count(struct look *l, const char *name, uint64_t n)
{
	fact_begin(l, name);
	fprintf(l->out, "%" PRIu64, n);
	fact_end(l);
}

static void write_facts(struct look *l)
{
	double up_s = (double)l->from->wall_ns() / (double)NS_PER_SECOND - l->from->started_s;
	uint64_t published_ns = assembler_published_ns(l->from->assembler);
	fputs("<dl class=\"facts\">", l->out);
	write_rate(l, "Requests/s", l->requests_s);
	write_rate(l, "Failed/s", l->failed_s);
	write_count(l, "In flight", l->n_active);
	write_count(l, "Client connections", count_clients(l));
	fact_begin(l, "Up");
	html_duration(l->out, up_s);
	fact_end(l);
	fact_begin(l, "Configuration");
	fprintf(l->out, "#%" PRIu64, assembler_n_snapshots(l->from->assembler));
	if (published_ns) {
		fputs(", ", l->out);
		html_duration(l->out, look_age_s(l, published_ns));
		fputs(" old", l->out);
	}
	fact_end(l);
	fact_begin(l, "Version");
	html_text(l->out, SHUNT_VERSION);
	fact_end(l);
	fputs("</dl>", l->out);
}

static void make_title(struct look *l, const char *state, const char *host)
{
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out) {
		l->failed = true;
		return;
	}
	html_text(out, state);
	fputs(" \u00b7 ", out);
	html_text(out, host);
	fputs(" \u00b7 Shunt", out);
	l->title = printout_end(&p);
	l->failed = l->failed || !l->title;
}

void look_write_top(struct look *l)
{
	char state[96], host[256] = "";
	enum html_tone tone = state_of(l, state, sizeof(state));
	gethostname(host, sizeof(host) - 1);
	make_title(l, state, host);
	fprintf(l->out, "<main id=\"main\" data-title=\"%s\">", l->title ? l->title : "");
	fputs("<header><h1>Shunt on <bdi>", l->out);
	html_text(l->out, host);
	fputs("</bdi></h1><p class=\"state\" role=\"status\">", l->out);
	html_badge(l->out, tone, state);
	fputs("</p></header>", l->out);
	write_facts(l);
	if (l->cluster)
		fputs("<p><a href=\"/\">\u2190 all clusters</a></p>", l->out);
}

static void write_finding(struct look *l, const json_t *finding)
{
	const char *severity = json_string_value(json_object_get(finding, "severity"));
	const char *what = json_string_value(json_object_get(finding, "what"));
	const char *fix = json_string_value(json_object_get(finding, "fix"));
	if (!severity || !what || !fix)
		return;
	bool is_error = strcmp(severity, doctor_severity_name(DOCTOR_ERROR)) == 0;
	bool is_note = strcmp(severity, doctor_severity_name(DOCTOR_NOTE)) == 0;
	fputs("<li>", l->out);
	html_badge(l->out, is_error ? HTML_BAD : is_note ? HTML_PLAIN : HTML_WARN, severity);
	fputs(" <bdi>", l->out);
	html_text(l->out, what);
	fputs("</bdi>", l->out);
	if (fix[0]) {
		fputs("<br><span class=\"fix\">Look at: ", l->out);
		html_text(l->out, fix);
		fputs("</span>", l->out);
	}
	fputs("</li>", l->out);
}

// The worst first, as `shuntctl doctor` has them of a daemon that runs.
void look_write_findings(struct look *l)
{
	json_t *report = doctor_report_json(&l->report), *finding;
	size_t i;
	l->failed = l->failed || !report;
	const json_t *findings = json_object_get(report, "findings");
	look_section_begin(l, "wrong", "What is wrong");
	if (!json_array_size(findings))
		look_note(l, l->from->xds ? "Nothing that Shunt can see." : "Not examined.");
	else
		fputs("<ul class=\"findings\">", l->out);
	json_array_foreach(findings, i, finding) write_finding(l, finding);
	if (json_array_size(findings))
		fputs("</ul>", l->out);
	look_section_end(l, l->report.n_left_out, "shuntctl doctor");
	json_decref(report);
}

// The time of the look, for who keeps a copy.
void look_write_end(struct look *l)
{
	time_t s = (time_t)(l->from->wall_ns() / NS_PER_SECOND);
	struct tm tm;
	char text[32] = "";
	if (gmtime_r(&s, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fprintf(l->out,
		"<footer><p>As of <time datetime=\"%s\">%s</time>. Rates are since the look "
		"before. <code>shuntctl</code> on the host tells more.</p></footer></main>",
		text, text);
}
