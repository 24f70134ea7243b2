// SPDX-License-Identifier: Apache-2.0
// `set endpoint`, `unset endpoint` and `show overrides`: what operators say of endpoints.
#include "ctrl/assemble/assemble.h"
#include "ctrl/assemble/overrides.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "ctrl/takeover/takeover.h"
#include "lb/base/ip.h"

#include <stdio.h>
#include <string.h>

// An endpoint as commands name it: CLUSTER/ADDRESS.
struct target {
	char cluster[OVERRIDE_MAX_CLUSTER];
	struct ip_port address;
};

static int read_target(const char *word, struct target *ret, struct lb_err *reterr)
{
	const char *slash = strrchr(word, '/');
	if (!slash || !ip_port_parse(str_from(slash + 1), &ret->address))
		return lb_err_set(
			reterr, "'%s' is no CLUSTER/ADDRESS as in blue/10.82.1.1:8080", word);
	size_t len = (size_t)(slash - word);
	if (len == 0 || len >= sizeof(ret->cluster))
		return lb_err_set(
			reterr, "a cluster's name has 1 to %zu bytes", sizeof(ret->cluster) - 1);
	memcpy(ret->cluster, word, len);
	ret->cluster[len] = 0;
	return 0;
}

static int read_change(const struct show_args *args, struct override *what, struct lb_err *reterr)
{
	static const struct {
		const char *word;
		enum lb_leaf_health health;
	} words[] = {
		{"drain", LB_LEAF_DRAINING}, {"down", LB_LEAF_UNHEALTHY}, {"up", LB_LEAF_HEALTHY}};
	const char *word = args->n > 1 ? args->words[1] : "";
	uint64_t weight;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && args->n == 2; i++) {
		if (strcmp(word, words[i].word) != 0)
			continue;
		what->has_health = true;
		what->health = words[i].health;
		return 0;
	}
	if (args->n != 3 || strcmp(word, "weight") != 0)
		return lb_err_set(
			reterr, "CLUSTER/ADDRESS and drain, down, up or 'weight N' must follow");
	if (!str_number(str_from(args->words[2]), OVERRIDE_MAX_WEIGHT, &weight) || weight == 0)
		return lb_err_set(reterr, "'%s' is not a weight from 1 to %d", args->words[2],
			OVERRIDE_MAX_WEIGHT);
	what->weight = (uint32_t)weight;
	return 0;
}

// Which clusters and which overridden endpoints there are, by name and by CLUSTER/ADDRESS.
struct census {
	const struct show *show;
	json_t *clusters, *endpoints; // objects, as sets; owned
	json_t *ignoring; // likewise: clusters whose policy looks at no weights
};

static void put_key(const char *cluster, const struct ip_port *address, char *key, size_t size)
{
	char text[IP_PORT_TEXT_MAX];
	snprintf(key, size, "%s/%s", cluster, ip_port_print(address, text));
}

static void see_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	const struct census *c = ctx;
	char key[OVERRIDE_MAX_CLUSTER + 1 + IP_PORT_TEXT_MAX];
	json_object_set_new(c->clusters, e->leaf, json_true());
	if (e->ignores_weight)
		json_object_set_new(c->ignoring, e->leaf, json_true());
	for (uint32_t i = 0; i < e->n_addresses && (e->override.has_health || e->override.weight);
		i++) {
		put_key(e->leaf, &e->addresses[i], key, sizeof(key));
		json_object_set_new(c->endpoints, key, json_true());
	}
}

static void see_cluster(void *ctx, const struct assembler_cluster_info *info)
{
	const struct census *c = ctx;
	json_object_set_new(c->clusters, info->name, json_true());
	assembler_each_endpoint(c->show->conf.assembler, info->name, see_endpoint, ctx);
}

static struct census census_take(const struct show *s)
{
	struct census c = {s, json_object(), json_object(), json_object()};
	assembler_each_cluster(s->conf.assembler, see_cluster, &c);
	return c;
}

static void census_drop(struct census *c)
{
	json_decref(c->clusters);
	json_decref(c->endpoints);
	json_decref(c->ignoring);
}

static const char *state_of(const struct census *c, const struct target *target)
{
	char key[OVERRIDE_MAX_CLUSTER + 1 + IP_PORT_TEXT_MAX];
	put_key(target->cluster, &target->address, key, sizeof(key));
	return json_object_get(c->endpoints, key)              ? "applied"
	       : json_object_get(c->clusters, target->cluster) ? "waits for the endpoint"
	                                                       : "waits for the cluster";
}

static const char *note_of(const struct census *c, const char *cluster, const struct override *what)
{
	return what->weight && json_object_get(c->ignoring, cluster)
	               ? "its policy weighs no endpoints, try show tree"
	               : "";
}

static json_t *row_of(
	const struct census *c, const struct target *target, const struct override *what)
{
	char text[OVERRIDE_TEXT_MAX];
	json_t *row = json_object();
	show_set_text(row, "cluster", target->cluster);
	show_set_address(row, "endpoint", &target->address);
	show_set_text(row, "override", override_print(what, text));
	show_set_text(row, "state", state_of(c, target));
	show_set_text(row, "note", note_of(c, target->cluster, what));
	return row;
}

// `CLUSTER/ADDRESS drain | down | up | weight N`: what is not said stays as it was.
json_t *show_set_endpoint(const struct show *s, struct show_args *args)
{
	struct target target;
	if (args->n == 0) {
		lb_err_set(&args->err, "CLUSTER/ADDRESS must follow");
		return NULL;
	}
	if (read_target(args->words[0], &target, &args->err))
		return NULL;
	struct override what = overrides_find(
		assembler_overrides(s->conf.assembler), target.cluster, &target.address, 1);
	if (read_change(args, &what, &args->err) ||
		takeover_check_change(s->conf.takeover, &args->err) ||
		assembler_override(
			s->conf.assembler, target.cluster, &target.address, what, &args->err))
		return NULL;
	struct census c = census_take(s);
	json_t *row = row_of(&c, &target, &what);
	census_drop(&c);
	return row;
}

// `CLUSTER/ADDRESS`.
json_t *show_unset_endpoint(const struct show *s, struct show_args *args)
{
	struct target target;
	if (args->n != 1) {
		lb_err_set(&args->err, "CLUSTER/ADDRESS must follow, and nothing else");
		return NULL;
	}
	if (read_target(args->words[0], &target, &args->err))
		return NULL;
	const struct override before = overrides_find(
		assembler_overrides(s->conf.assembler), target.cluster, &target.address, 1);
	if (!before.has_health && !before.weight) {
		lb_err_set(&args->err, "'%s' has no override, try show overrides", args->words[0]);
		return NULL;
	}
	const struct override none = {.has_health = false};
	if (takeover_check_change(s->conf.takeover, &args->err) ||
		assembler_override(
			s->conf.assembler, target.cluster, &target.address, none, &args->err))
		return NULL;
	char text[OVERRIDE_TEXT_MAX];
	return json_pack("{ss}", "unset", override_print(&before, text));
}

struct listing {
	struct census census;
	json_t *rows;
};

static void add_row(
	void *ctx, const char *cluster, const struct ip_port *address, const struct override *what)
{
	struct listing *l = ctx;
	struct target target = {.address = *address};
	snprintf(target.cluster, sizeof(target.cluster), "%s", cluster);
	json_array_append_new(l->rows, row_of(&l->census, &target, what));
}

json_t *show_overrides(const struct show *s, struct show_args *args)
{
	struct listing l = {census_take(s), json_array()};
	overrides_each(assembler_overrides(s->conf.assembler), add_row, &l);
	census_drop(&l.census);
	return l.rows;
}
