// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/show_json.h"

#include "ctrl/stats/render.h"

void show_set_u64(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

void show_set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, render_string(value));
}

json_t *show_causes(const uint64_t ended[LB_N_CAUSES])
{
	json_t *o = json_object();
	for (int i = 0; o && i < LB_N_CAUSES; i++)
		show_set_u64(o, lb_cause_info((enum lb_cause)i)->name, ended[i]);
	return o;
}
