// SPDX-License-Identifier: Apache-2.0
// show pools: how full everything is that a worker took at its start.
#include "ctrl/assemble/workers.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

static json_t *row_of(uint32_t worker, const struct pool_view *v)
{
	uint32_t used = gauge_read(v->n_used);
	json_t *row = json_object();
	if (!row)
		return NULL;
	show_set_u64(row, "worker", worker);
	show_set_text(row, "pool", v->name);
	show_set_u64(row, "bytes", v->size);
	show_set_u64(row, "total", v->n_total);
	show_set_u64(row, "free", v->n_total - used);
	show_set_u64(row, "used", used);
	show_set_u64(row, "peak", gauge_read(v->n_peak));
	return row;
}

json_t *show_pools(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	for (uint32_t w = 0; rows && w < workers_count(s->conf.workers); w++) {
		const struct pool_list *l = &workers_link(s->conf.workers, w)->pools;
		for (uint32_t i = 0; i < l->n; i++)
			json_array_append_new(rows, row_of(w, &l->views[i]));
	}
	return rows;
}
