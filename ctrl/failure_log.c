// SPDX-License-Identifier: Apache-2.0
#include "ctrl/failure_log.h"

#include "ctrl/assemble/workers.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/failures.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define QUIET_NS (10 * NS_PER_SECOND)
#define N_TOLD 64

struct told {
	uint64_t until_ns; // nothing more of it before; 0 = free
	uint8_t cause;
	char cluster[sizeof(((struct lb_failure *)0)->cluster)];
};

struct failure_log {
	const struct workers *workers;
	struct told told[N_TOLD];
	uint64_t seen[]; // by worker: how many were looked at
};

struct failure_log *failure_log_new(const struct workers *workers)
{
	struct failure_log *l = calloc(1, sizeof(*l) + workers_count(workers) * sizeof(l->seen[0]));
	if (l)
		l->workers = workers;
	return l;
}

void failure_log_free(struct failure_log *l)
{
	free(l);
}

// False = it was told a while ago, or too many others were.
static bool is_due(struct failure_log *l, const struct lb_failure *f, uint64_t now_ns)
{
	struct told *free_one = NULL;
	for (struct told *t = l->told; t < l->told + N_TOLD; t++) {
		if (t->until_ns <= now_ns)
			free_one = t;
		else if (t->cause == f->cause && strcmp(t->cluster, f->cluster) == 0)
			return false;
	}
	if (!free_one)
		return false;
	free_one->until_ns = now_ns + QUIET_NS;
	free_one->cause = f->cause;
	memcpy(free_one->cluster, f->cluster, sizeof(f->cluster));
	return true;
}

static uint32_t look_at(struct failure_log *l, uint32_t worker, uint64_t now_ns)
{
	const struct lb_failures *of = workers_link(l->workers, worker)->failures;
	uint64_t end = lb_failures_count(of), n = l->seen[worker];
	uint32_t n_lines = 0;
	if (end - n > LB_FAILURES)
		n = end - LB_FAILURES;
	for (; n < end; n++) {
		struct lb_failure f;
		if (!lb_failures_read(of, n, &f) || !is_due(l, &f, now_ns))
			continue;
		log_info("requests fail", "cause=%s cluster=%s worker=%u id=%s text=%s",
			lb_cause_info((enum lb_cause)f.cause)->name, log_quote(f.cluster), worker,
			log_quote(f.id), log_quote(f.text));
		n_lines++;
	}
	l->seen[worker] = end;
	return n_lines;
}

uint32_t failure_log_look(struct failure_log *l, uint64_t now_ns)
{
	uint32_t n_lines = 0;
	for (uint32_t w = 0; w < workers_count(l->workers); w++)
		n_lines += look_at(l, w, now_ns);
	return n_lines;
}
