// SPDX-License-Identifier: Apache-2.0
// show failures: the last requests that workers answered or cut themselves, the newest first.
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/str.h"
#include "lb/base/twheel.h"
#include "lb/pick/failures.h"
#include "lb/pick/link.h"

#include <stdlib.h>
#include <string.h>

#define FALLBACK 100 // rows, where the command says no number

// Goes back through one worker's.
struct reader {
	const struct lb_failures *of;
	uint64_t next; // number + 1 of what is read next
	bool has; // now holds one that is not told yet
	struct lb_failure now;
};

static void step(struct reader *r)
{
	r->has = r->next > 0 && lb_failures_read(r->of, --r->next, &r->now);
}

static json_t *row_of(const struct show *s, uint32_t worker, const struct lb_failure *f)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	uint64_t age_ns =
		now_ns > f->at_ns ? now_ns - f->at_ns : 0; // its clock may be a tick ahead
	char address[IP_PORT_TEXT_MAX] = "";
	if (f->has_backend)
		ip_port_print(&f->backend, address);
	json_t *row = json_object();
	json_object_set_new(row, "age_s", json_real(show_seconds(age_ns)));
	show_set_u64(row, "worker", worker);
	show_set_text(row, "frontend", s->conf.config->frontends[f->frontend].name);
	show_set_text(row, "cause", lb_cause_info((enum lb_cause)f->cause)->name);
	show_set_text(row, "cluster", f->cluster);
	show_set_text(row, "endpoint", address);
	show_set_text(row, "text", f->text);
	return row;
}

static json_t *newest(const struct show *s, uint64_t n_rows)
{
	uint32_t n = workers_count(s->conf.workers);
	struct reader *readers = calloc(n, sizeof(*readers));
	json_t *rows = readers ? json_array() : NULL;
	for (uint32_t i = 0; readers && i < n; i++) {
		readers[i].of = workers_link(s->conf.workers, i)->failures;
		readers[i].next = lb_failures_count(readers[i].of);
		step(&readers[i]);
	}
	while (rows && json_array_size(rows) < n_rows) {
		struct reader *last = NULL;
		for (uint32_t i = 0; i < n; i++)
			if (readers[i].has && (!last || readers[i].now.at_ns > last->now.at_ns))
				last = &readers[i];
		if (!last)
			break;
		json_array_append_new(rows, row_of(s, (uint32_t)(last - readers), &last->now));
		step(last);
	}
	free(readers);
	return rows;
}

// `[N] [json]`.
json_t *show_failures(const struct show *s, struct show_args *args)
{
	uint64_t n_rows = FALLBACK;
	if (args->n && strcmp(args->words[args->n - 1], "json") == 0) {
		args->json = true;
		args->n--;
	}
	if (args->n > 1 ||
		(args->n && !str_number(str_from(args->words[0]), UINT32_MAX, &n_rows))) {
		lb_err_set(
			&args->err, "unexpected argument '%s', try help", args->words[args->n - 1]);
		return NULL;
	}
	return newest(s, n_rows);
}
