// SPDX-License-Identifier: Apache-2.0
// show tree: how clusters balance.
#include "ctrl/assemble/assemble.h"
#include "ctrl/base/printout.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/container_of.h"
#include "lb/policy/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool show_cluster_word(const struct show *s, struct show_args *args, const char **ret_cluster)
{
	struct assembler_cluster_info info;
	*ret_cluster = NULL;
	for (unsigned i = 0; i < args->n; i++) {
		if (strcmp(args->words[i], "json") == 0 && i + 1 == args->n) {
			args->json = true;
		} else if (i == 0) {
			*ret_cluster = args->words[i];
		} else {
			lb_err_set(
				&args->err, "unexpected argument '%s', try help", args->words[i]);
			return false;
		}
	}
	if (!*ret_cluster ||
		assembler_find_without_endpoints(s->conf.assembler, *ret_cluster, &info))
		return true;
	lb_err_set(&args->err, "no cluster '%s', try show clusters", *ret_cluster);
	return false;
}

static void each_cluster(const struct show *s, const char *only,
	void (*fn)(void *ctx, const struct assembler_cluster_info *), void *ctx)
{
	struct assembler_cluster_info info;
	if (!only)
		assembler_each_cluster(s->conf.assembler, fn, ctx);
	else if (assembler_find_cluster(s->conf.assembler, only, &info))
		fn(ctx, &info);
}

// show tree: each layer is {"name", "state", fields…, "children": […]}.

#define MAX_DEPTH 64

struct tree_writer {
	struct lb_dump dump; // first
	const struct show *show;
	json_t *trees;
	json_t *open[MAX_DEPTH]; // borrowed; from the root to the innermost
	unsigned depth;
};

static void on_enter(struct lb_dump *d, const char *name, const char *state)
{
	struct tree_writer *w = CONTAINER_OF(d, struct tree_writer, dump);
	json_t *layer = json_object(), *into = w->trees;
	show_set_text(layer, "name", name);
	if (*state)
		show_set_text(layer, "state", state);
	if (w->depth && w->depth <= MAX_DEPTH) {
		json_t *parent = w->open[w->depth - 1];
		if (!json_object_get(parent, "children"))
			json_object_set_new(parent, "children", json_array());
		into = json_object_get(parent, "children");
	}
	json_array_append_new(into, layer);
	if (w->depth < MAX_DEPTH)
		w->open[w->depth] = layer;
	w->depth++;
}

static void on_text(struct lb_dump *d, const char *key, const char *value)
{
	struct tree_writer *w = CONTAINER_OF(d, struct tree_writer, dump);
	if (w->depth && w->depth <= MAX_DEPTH)
		show_set_text(w->open[w->depth - 1], key, value);
}

static void on_number(struct lb_dump *d, const char *key, uint64_t value)
{
	struct tree_writer *w = CONTAINER_OF(d, struct tree_writer, dump);
	if (w->depth && w->depth <= MAX_DEPTH)
		show_set_u64(w->open[w->depth - 1], key, value);
}

static void on_leave(struct lb_dump *d)
{
	CONTAINER_OF(d, struct tree_writer, dump)->depth--;
}

static void add_tree(void *ctx, const struct assembler_cluster_info *info)
{
	struct tree_writer *w = ctx;
	assembler_dump_tree(w->show->conf.assembler, info->name, &w->dump);
}

json_t *show_tree(const struct show *s, struct show_args *args)
{
	struct tree_writer w = {{on_enter, on_text, on_number, on_leave}, s, NULL, {NULL}, 0};
	const char *only;
	if (!show_cluster_word(s, args, &only))
		return NULL;
	w.trees = json_array();
	each_cluster(s, only, add_tree, &w);
	return w.trees;
}

static void print_layer(FILE *out, json_t *layer, unsigned depth)
{
	const char *key, *state = json_string_value(json_object_get(layer, "state"));
	json_t *value;
	size_t i;
	fprintf(out, "%*s", (int)(2 * depth), "");
	render_print(out, json_string_value(json_object_get(layer, "name")));
	if (state)
		fprintf(out, " %s", state);
	json_object_foreach(layer, key, value)
	{
		if (json_is_array(value) || strcmp(key, "name") == 0 || strcmp(key, "state") == 0)
			continue;
		fprintf(out, "  %s=", key);
		if (json_is_integer(value))
			fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		else
			render_print(out, json_string_value(value));
	}
	fputc('\n', out);
	json_array_foreach(json_object_get(layer, "children"), i, value)
		print_layer(out, value, depth + 1);
}

char *show_tree_text(json_t *trees)
{
	size_t i;
	json_t *tree;
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	json_array_foreach(trees, i, tree) print_layer(out, tree, 0);
	return printout_end(&p);
}
