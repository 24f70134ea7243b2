// SPDX-License-Identifier: Apache-2.0
// `reload`: what SIGHUP does, with an answer.
#include "ctrl/conf/reload.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

json_t *show_reload(const struct show *s, struct show_args *args)
{
	struct reload_report report;
	reload(s->conf.config, s->conf.config_path, &report);
	if (report.err.text[0]) {
		args->err = report.err;
		return NULL;
	}
	json_t *o = json_object();
	if (!args->json && !report.applied && !report.needs_restart[0])
		show_set_text(o, "applied", "nothing to change");
	else
		json_object_set_new(o, "applied", json_boolean(report.applied));
	show_set_text(o, "needs_restart", report.needs_restart);
	show_set_u64(o, "and_more", report.n_more);
	return o;
}
