// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/inflight_ask.h"

#include "ctrl/assemble/workers.h"
#include "lb/pick/link.h"

#include <stdlib.h>

struct inflight_desk {
	struct workers *workers; // borrowed
	const struct inflight_ask *open; // whose turn it is; NULL = nobody's
};

enum phase {
	PHASE_BEGUN, // its memory is with the worker yet, for another question
	PHASE_ASKED,
	PHASE_TOLD,
	PHASE_SILENT,
};

struct inflight_ask {
	struct inflight_desk *desk;
	struct lb_inflight_query query;
	uint64_t deadline_ns; // of the workers; before its turn has come: of that
	bool ends; // it is about ending marked rows
	struct inflight_told *rows; // owned; NULL = not gathered
	uint32_t n_workers;
	enum phase phases[]; // by worker
};

struct inflight_desk *inflight_desk_new(struct workers *workers)
{
	struct inflight_desk *d = calloc(1, sizeof(*d));
	if (d)
		d->workers = workers;
	return d;
}

void inflight_desk_free(struct inflight_desk *d)
{
	free(d);
}

struct inflight_ask *inflight_ask_new(
	struct inflight_desk *d, const struct lb_inflight_query *query, uint64_t now_ns)
{
	uint32_t n = workers_count(d->workers);
	struct inflight_ask *a = calloc(1, sizeof(*a) + n * sizeof(a->phases[0]));
	if (!a)
		return NULL;
	a->desk = d;
	a->query = *query;
	a->deadline_ns = now_ns + INFLIGHT_QUEUE_NS;
	a->n_workers = n;
	return a;
}

void inflight_ask_free(struct inflight_ask *a)
{
	if (!a)
		return;
	if (a->desk->open == a)
		a->desk->open = NULL;
	free(a->rows);
	free(a);
}

static struct lb_inflight *of_worker(const struct inflight_ask *a, uint32_t worker)
{
	return workers_link(a->desk->workers, worker)->inflight;
}

static enum phase begin(struct inflight_ask *a, uint32_t worker)
{
	static const struct lb_command command = {.kind = LB_COMMAND_INFLIGHT};
	struct lb_inflight *f = of_worker(a, worker);
	if (a->ends)
		lb_inflight_end(f);
	else
		lb_inflight_ask(f, &a->query);
	if (workers_send(a->desk->workers, worker, &command))
		return PHASE_ASKED;
	lb_inflight_take_back(f);
	return PHASE_SILENT;
}

// True = nothing more is to come of this worker.
static bool step(struct inflight_ask *a, uint32_t worker, bool late)
{
	enum phase *phase = &a->phases[worker];
	if (*phase >= PHASE_TOLD)
		return true;
	bool is_free = lb_inflight_is_free(of_worker(a, worker));
	if (is_free && *phase == PHASE_ASKED)
		*phase = PHASE_TOLD;
	else if (late)
		*phase = PHASE_SILENT;
	else if (is_free)
		*phase = begin(a, worker);
	return *phase >= PHASE_TOLD;
}

enum inflight_progress inflight_ask_poll(struct inflight_ask *a, uint64_t now_ns)
{
	struct inflight_desk *d = a->desk;
	bool is_all = true;
	if (!d->open) {
		d->open = a;
		a->deadline_ns = now_ns + INFLIGHT_PATIENCE_NS;
	}
	bool late = now_ns >= a->deadline_ns;
	if (d->open != a)
		return late ? INFLIGHT_BUSY : INFLIGHT_PENDING;
	for (uint32_t i = 0; i < a->n_workers; i++)
		is_all &= step(a, i, late);
	return is_all ? INFLIGHT_ANSWERED : INFLIGHT_PENDING;
}

static int by_age(const void *a, const void *b)
{
	uint64_t x = ((const struct inflight_told *)a)->row->began_ns;
	uint64_t y = ((const struct inflight_told *)b)->row->began_ns;
	return (x > y) - (x < y);
}

bool inflight_ask_sum(struct inflight_ask *a, struct inflight_sum *ret)
{
	size_t most = (size_t)a->n_workers * a->query.limit;
	struct inflight_sum sum = {0};
	a->rows = calloc(most ? most : 1, sizeof(a->rows[0]));
	if (!a->rows)
		return false;
	for (uint32_t w = 0; w < a->n_workers; w++) {
		const struct lb_inflight *f = of_worker(a, w);
		if (a->phases[w] != PHASE_TOLD)
			continue;
		sum.n_all += f->n_all;
		sum.n_matching += f->n_matching;
		for (uint32_t i = 0; i < f->n_rows; i++)
			a->rows[sum.n_rows++] = (struct inflight_told){&f->rows[i], w};
	}
	qsort(a->rows, sum.n_rows, sizeof(a->rows[0]), by_age);
	if (sum.n_rows > a->query.limit)
		sum.n_rows = a->query.limit;
	sum.rows = a->rows;
	*ret = sum;
	return true;
}

json_t *inflight_ask_silent(const struct inflight_ask *a)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < a->n_workers; i++)
		if (a->phases[i] == PHASE_SILENT)
			json_array_append_new(list, json_integer(i));
	return list;
}

void inflight_ask_mark(struct inflight_ask *a, uint32_t row)
{
	const struct inflight_told *told = &a->rows[row];
	struct lb_inflight *f = of_worker(a, told->worker);
	f->rows[told->row - f->rows].is_marked = true;
}

static bool has_marked(const struct lb_inflight *f)
{
	for (uint32_t i = 0; i < f->n_rows; i++)
		if (f->rows[i].is_marked)
			return true;
	return false;
}

void inflight_ask_end(struct inflight_ask *a, uint64_t now_ns)
{
	a->ends = true;
	a->deadline_ns = now_ns + INFLIGHT_PATIENCE_NS;
	for (uint32_t i = 0; i < a->n_workers; i++)
		if (a->phases[i] == PHASE_TOLD && has_marked(of_worker(a, i)))
			a->phases[i] = PHASE_BEGUN;
}

uint32_t inflight_ask_n_ended(const struct inflight_ask *a)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < a->n_workers; i++)
		if (a->phases[i] == PHASE_TOLD && of_worker(a, i)->ends)
			n += of_worker(a, i)->n_ended;
	return n;
}
