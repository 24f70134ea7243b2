// SPDX-License-Identifier: Apache-2.0
// `show addresses`: what Shunt answers for on its links (OPS-196), as the workers' network layers
// know it. All know the same, but who claims an address of ours only one may have heard.
#include "ctrl/conf/config.h"
#include "ctrl/stats/inflight_ask.h"
#include "ctrl/stats/inflight_rows.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"

#include <stdio.h>
#include <string.h>

static void set_frontends(const struct show *s, json_t *row, const struct ip_addr *ip)
{
	const struct config *c = s->conf.config;
	char text[256] = "";
	for (uint32_t i = 0; i < c->n_frontends; i++) {
		size_t len = strlen(text);
		if (config_serves(c, i) && !c->frontends[i].by_listeners &&
			ip_eq(&c->frontends[i].address_ip, ip))
			snprintf(text + len, sizeof(text) - len, "%s%s", len ? ", " : "",
				c->frontends[i].name);
	}
	show_set_text(row, "frontends", text);
}

static void set_conflict(const struct show *s, json_t *row, const struct lb_inflight_address *a)
{
	char mac[INFLIGHT_MAC_MAX];
	show_set_text(row, "conflict", a->rival_ns ? inflight_rows_mac(a->rival, mac) : "");
	json_object_set_new(row, "conflict_age_s",
		a->rival_ns ? json_real(show_age_s(s, a->rival_ns)) : json_null());
}

json_t *inflight_rows_address(const struct show *s, const struct lb_inflight_row *from)
{
	static const char *const kinds[] = {
		[LB_ADDRESS_port] = "port",
		[LB_ADDRESS_link_local] = "link_local",
		[LB_ADDRESS_vips] = "vips",
		[LB_ADDRESS_vip] = "listener",
	};
	const struct lb_inflight_address *a = &from->address;
	const struct ip_addr *ip = &from->peer.ip;
	char text[IP_PORT_TEXT_MAX];
	json_t *row = json_object();
	json_object_set_new(
		row, "port", a->port == LB_ADDRESS_ALL_PORTS ? json_null() : json_integer(a->port));
	show_set_text(row, "address", ip_print(ip, text));
	show_set_u64(row, "bits", a->bits - (ip_is_v4(ip) ? IP_V4_BITS : 0u));
	show_set_text(row, "kind", kinds[a->kind]);
	json_object_set_new(row, "answers", json_boolean(a->answers));
	set_frontends(s, row, ip);
	set_conflict(s, row, a);
	return row;
}

// The newest claim counts.
static void merge(json_t *known, json_t *row)
{
	json_t *was = json_object_get(known, "conflict_age_s");
	json_t *is = json_object_get(row, "conflict_age_s");
	if (!json_is_real(is) || (json_is_real(was) && json_real_value(was) < json_real_value(is)))
		return;
	json_object_set(known, "conflict", json_object_get(row, "conflict"));
	json_object_set(known, "conflict_age_s", is);
}

json_t *inflight_rows_addresses(const struct show *s, const struct inflight_sum *sum)
{
	json_t *rows = json_array(), *known = json_object();
	for (uint32_t i = 0; rows && known && i < sum->n_rows; i++) {
		const struct lb_inflight_row *from = sum->rows[i].row;
		char key[IP_PORT_TEXT_MAX + 32], text[IP_PORT_TEXT_MAX];
		json_t *row = inflight_rows_address(s, from);
		snprintf(key, sizeof(key), "%u %u %s/%u", from->address.port, from->address.kind,
			ip_print(&from->peer.ip, text), from->address.bits);
		json_t *same = json_object_get(known, key);
		if (same)
			merge(same, row);
		else if (json_object_set(known, key, row) == 0)
			json_array_append(rows, row);
		json_decref(row);
	}
	json_decref(known);
	return rows;
}
