// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/failure_walk.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "lb/pick/link.h"

#include <stdlib.h>

#define RINGS 2 // of each worker

// Goes back through one ring.
struct reader {
	const struct lb_failures *of;
	uint64_t next; // number + 1 of what is read next
	bool has; // now holds one that is not told yet
	struct lb_failure now;
};

struct failure_walk {
	struct lb_failure told;
	uint32_t n;
	struct reader readers[]; // [RINGS * worker]
};

static void step(struct reader *r)
{
	r->has = r->next > 0 && lb_failures_read(r->of, --r->next, &r->now);
}

static void begin(struct reader *r, const struct lb_failures *of)
{
	r->of = of;
	r->next = lb_failures_count(of);
	step(r);
}

struct failure_walk *failure_walk_new(const struct workers *workers, enum failure_whose whose)
{
	uint32_t n = workers_count(workers);
	struct failure_walk *w = calloc(1, sizeof(*w) + RINGS * n * sizeof(w->readers[0]));
	if (!w)
		return NULL;
	w->n = RINGS * n;
	for (uint32_t i = 0; i < n; i++) {
		const struct lb_link *link = workers_link(workers, i);
		if (whose != FAILURE_BACKENDS)
			begin(&w->readers[RINGS * i], link->failures);
		if (whose != FAILURE_OURS)
			begin(&w->readers[RINGS * i + 1], link->failed_answers);
	}
	return w;
}

void failure_walk_free(struct failure_walk *w)
{
	free(w);
}

const struct lb_failure *failure_walk_next(struct failure_walk *w, uint32_t *ret_worker)
{
	struct reader *last = NULL;
	for (uint32_t i = 0; i < w->n; i++) {
		struct reader *r = &w->readers[i];
		if (r->has && (!last || r->now.at_ns > last->now.at_ns))
			last = r;
	}
	if (!last)
		return NULL;
	*ret_worker = (uint32_t)(last - w->readers) / RINGS;
	w->told = last->now;
	step(last);
	return &w->told;
}

const char *failure_frontend(const struct config *c, const struct lb_failure *f)
{
	const struct config_frontend *row = &c->frontends[f->frontend];
	return f->at_ns < row->since_ns ? "" : row->name;
}

const char *failure_cause(const struct lb_failure *f)
{
	return f->cause == LB_CAUSE_OK ? FAILURE_ANSWERED
	                               : lb_cause_info((enum lb_cause)f->cause)->name;
}
