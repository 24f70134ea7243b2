// SPDX-License-Identifier: Apache-2.0
// show endpoints: each endpoint of each cluster, and what balancing does with it.
#include "ctrl/assemble/assemble.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/stats/listing.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT_ONCE 16 // endpoints in a step

// Where the listing is. A cluster that changes meanwhile may have an endpoint told twice, or not.
struct walk {
	struct listing_source source;
	const struct show *show;
	struct listing *to; // of this step
	char *cluster; // owned
	uint32_t at; // of its endpoints, the next one
	bool only; // no other cluster follows
};

static json_t *addresses_json(const struct assembler_endpoint_info *e)
{
	char *text = malloc(e->n_addresses * (size_t)IP_PORT_TEXT_MAX);
	size_t len = 0;
	for (uint32_t i = 0; text && i < e->n_addresses; i++) {
		ip_port_print(&e->addresses[i], text + len);
		len += strlen(text + len);
		text[len++] = ',';
	}
	json_t *list = text ? json_stringn(text, len - 1) : NULL;
	free(text);
	return list;
}

static json_t *locality_json(struct str name)
{
	char text[512], *parts = malloc(name.len + 1);
	if (!parts)
		return NULL;
	const struct res_locality l = res_locality_of(name, parts);
	snprintf(text, sizeof(text), "%s/%s/%s", l.region, l.zone, l.sub_zone);
	free(parts);
	return render_string(strcmp(text, "//") == 0 ? "" : text);
}

// What weighted_round_robin makes of its reports (gRFC A58).
static void set_reported(json_t *row, const struct lb_leaf_record *r)
{
	static const char *const standing[] = {
		[LB_ORCA_NONE] = "none",
		[LB_ORCA_BLACKOUT] = "blackout",
		[LB_ORCA_EXPIRED] = "expired",
		[LB_ORCA_WEIGHT] = "counts",
	};
	show_set_text(row, "report", r->is_weighed ? standing[r->standing] : "");
	json_object_set_new(row, "report_weight",
		r->standing == LB_ORCA_WEIGHT ? json_real(r->weight) : json_null());
}

// "" = it is not checked.
static const char *check_text(const struct lb_health_record *r)
{
	if (!r->is_checked)
		return "";
	if (r->health == LB_MEMBER_UNCHECKED)
		return "pending";
	return *r->why ? r->why : "passed";
}

static void add_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	struct walk *w = ctx;
	json_t *row = json_object();
	show_set_text(row, "cluster", w->cluster);
	if (strcmp(w->cluster, e->leaf) != 0)
		show_set_text(row, "leaf", e->leaf);
	json_object_set_new(row, "endpoint", addresses_json(e));
	if (e->proxy)
		show_set_address(row, "proxy", e->proxy);
	show_set_text(row, "state", lb_state_name(e->state));
	json_object_set_new(row, "failing", json_boolean(e->is_failing));
	json_object_set_new(row, "ejected", json_boolean(e->is_ejected));
	show_set_u64(row, "ejections", e->record.ejection.multiplier);
	show_set_u64(row, "ejected_ms", e->record.ejection.left_ns / NS_PER_MS);
	show_set_text(row, "health", e->health);
	show_set_text(row, "health_check", check_text(&e->record.health));
	show_set_u64(row, "priority", e->priority);
	json_object_set_new(row, "locality", locality_json(e->locality));
	show_set_u64(row, "locality_weight", e->locality_weight);
	show_set_u64(row, "weight", e->weight);
	show_set_override(row, &e->override);
	set_reported(row, &e->record);
	show_set_u64(row, "connections", e->connections);
	show_set_u64(row, "active", e->totals.active);
	show_set_u64(row, "requests", e->totals.issued);
	show_set_u64(row, "ok", e->totals.ok);
	show_set_u64(row, "failed", e->totals.failed);
	show_set_text(row, "error", e->last_error);
	show_set_tls_result(row, e->last_error);
	listing_add(w->to, row);
	w->at++;
}

// False = there is no other one.
static bool go_on(struct walk *w)
{
	const char *next =
		w->only ? NULL : assembler_cluster_after(w->show->conf.assembler, w->cluster);
	char *name = next ? strdup(next) : NULL;
	if (!name) {
		if (next)
			listing_add(w->to, NULL);
		return false;
	}
	free(w->cluster);
	w->cluster = name;
	w->at = 0;
	return true;
}

static bool step(struct listing_source *source, struct listing *to)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	w->to = to;
	uint32_t n = assembler_some_endpoints(
		w->show->conf.assembler, w->cluster, w->at, AT_ONCE, add_endpoint, w);
	return n == AT_ONCE || go_on(w);
}

static void walk_free(struct listing_source *source)
{
	struct walk *w = CONTAINER_OF(source, struct walk, source);
	free(w->cluster);
	free(w);
}

// `[CLUSTER] [json]`.
struct listing_source *show_endpoints(const struct show *s, struct show_args *args)
{
	const char *only;
	if (!show_cluster_word(s, args, &only))
		return NULL;
	struct walk *w = calloc(1, sizeof(*w));
	char *first = strdup(only ? only : "");
	if (!w || !first) {
		free(w);
		free(first);
		return NULL;
	}
	*w = (struct walk){.source = {step, walk_free}, .show = s, .cluster = first, .only = only};
	return &w->source;
}
