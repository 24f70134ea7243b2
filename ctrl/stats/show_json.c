// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/show_json.h"

#include "ctrl/stats/render.h"
#include "tlshs/result.h"

void show_set_u64(json_t *o, const char *key, uint64_t value)
{
	json_object_set_new(o, key, json_integer((json_int_t)value));
}

void show_set_text(json_t *o, const char *key, const char *value)
{
	json_object_set_new(o, key, render_string(value));
}

void show_set_tls_result(json_t *o, const char *error)
{
	const char *word = error ? tlshs_result_in(error) : NULL;
	show_set_text(o, "tls_result", word ? word : "");
}

void show_set_address(json_t *o, const char *key, const struct ip_port *address)
{
	char text[IP_PORT_TEXT_MAX] = "";
	if (address)
		ip_port_print(address, text);
	show_set_text(o, key, text);
}

json_t *show_causes(const uint64_t ended[LB_N_CAUSES])
{
	json_t *o = json_object();
	for (int i = 0; o && i < LB_N_CAUSES; i++)
		show_set_u64(o, lb_cause_info((enum lb_cause)i)->name, ended[i]);
	return o;
}

void show_set_override(json_t *o, const struct override *w)
{
	char text[OVERRIDE_TEXT_MAX];
	show_set_text(o, "override", override_print(w, text));
}
