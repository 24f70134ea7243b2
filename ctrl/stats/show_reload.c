// SPDX-License-Identifier: Apache-2.0
// `reload`: what SIGHUP does, with an answer.
#include "ctrl/conf/reload.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdio.h>

json_t *show_reload(const struct show *s, struct show_args *args)
{
	struct reload_report report;
	char who[STATS_WHO_MAX], by[STATS_WHO_MAX + 16];
	snprintf(by, sizeof(by), "by=shuntctl %s", stats_caller_print(args->caller, who));
	reload(s->conf.reloader, by, &report);
	if (report.err.text[0]) {
		args->err = report.err;
		return NULL;
	}
	bool applied = report.changed.text[0];
	json_t *o = json_object();
	if (!args->json && !applied && !report.needs_restart.text[0])
		show_set_text(o, "applied", "nothing to change");
	else
		json_object_set_new(o, "applied", json_boolean(applied));
	show_set_text(o, "changed", report.changed.text);
	show_set_text(o, "needs_restart", report.needs_restart.text);
	show_set_text(o, "pending", report.pending.text);
	show_set_u64(o, "and_more",
		report.changed.n_more + report.needs_restart.n_more + report.pending.n_more);
	return o;
}
