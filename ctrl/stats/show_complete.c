// SPDX-License-Identifier: Apache-2.0
// complete: what the last word of a command may be. It knows the commands by their usage: words in
// small letters stand for themselves, others for names that the daemon knows.
#include "ctrl/assemble/assemble.h"
#include "ctrl/base/printout.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/failure_walk.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_inside.h"
#include "lb/base/ip.h"
#include "lb/pick/cause.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1000 // names that are told
#define TOKEN_MAX 64

struct completer {
	const struct show *show;
	const char *prefix; // of the last word
	bool of_failures; // none of which is `ok`, as a request in a log may be
	json_t *words; // texts
};

static void add(struct completer *c, const char *before, const char *name, const char *behind)
{
	char *word = NULL;
	if (json_array_size(c->words) >= MOST ||
		asprintf(&word, "%s%s%s", before, name, behind) < 0)
		return;
	bool is_known = false;
	size_t i;
	const json_t *known;
	json_array_foreach(c->words, i, known) is_known |=
		strcmp(json_string_value(known), word) == 0;
	if (!is_known && strncmp(word, c->prefix, strlen(c->prefix)) == 0)
		json_array_append_new(c->words, render_string(word));
	free(word);
}

// Names, each behind what of the word is there already: "" or "cluster=".

static void add_clusters(struct completer *c, const char *before, const char *behind)
{
	size_t len = strlen(before);
	const struct assembler *a = c->show->conf.assembler;
	const char *prefix = strncmp(c->prefix, before, len) == 0 ? c->prefix + len : "";
	struct assembler_cluster_info info;
	if (*prefix && assembler_find_without_endpoints(a, prefix, &info))
		add(c, before, info.name, behind);
	for (const char *name = prefix; (name = assembler_cluster_after(a, name)) &&
					strncmp(name, prefix, strlen(prefix)) == 0 &&
					json_array_size(c->words) < MOST;)
		json_array_append_new(c->words, json_sprintf("%s%s%s", before, name, behind));
}

struct endpoint_walk {
	struct completer *completer;
	const char *before, *cluster;
};

static void add_endpoint(void *ctx, const struct assembler_endpoint_info *e)
{
	const struct endpoint_walk *walk = ctx;
	struct completer *c = walk->completer;
	char word[STATS_MAX_COMMAND], address[IP_PORT_TEXT_MAX];
	snprintf(word, sizeof(word), "%s%s/%s", walk->before, walk->cluster,
		ip_port_print(&e->addresses[0], address));
	if (strncmp(word, c->prefix, strlen(c->prefix)) == 0)
		json_array_append_new(c->words, render_string(word));
}

// Those of the cluster whose name and slash are there; its name may have others. A walk over one of
// many more ends early.
static void add_endpoints(struct completer *c, const char *before)
{
	size_t len = strlen(before);
	const char *word = strncmp(c->prefix, before, len) == 0 ? c->prefix + len : "";
	const char *slash = strrchr(word, '/');
	char *cluster = slash ? strndup(word, (size_t)(slash - word)) : NULL;
	struct endpoint_walk walk = {c, before, cluster};
	if (cluster)
		assembler_some_endpoints(
			c->show->conf.assembler, cluster, 0, MOST, add_endpoint, &walk);
	free(cluster);
}

static void add_frontends(struct completer *c, const char *before)
{
	const struct config *config = c->show->conf.config;
	for (uint32_t i = 0; i < config->n_frontends; i++)
		if (config_serves(config, i))
			add(c, before, config->frontends[i].name, "");
}

static void add_causes(struct completer *c, const char *before)
{
	if (c->of_failures)
		add(c, before, FAILURE_ANSWERED, "");
	for (int i = c->of_failures ? LB_CAUSE_OK + 1 : 0; i < LB_N_CAUSES; i++)
		add(c, before, lb_cause_info((enum lb_cause)i)->name, "");
}

// What may stand for a word in capitals that follows this one, or a key as `cluster=`.
static void add_values(struct completer *c, const char *key, const char *value, const char *before)
{
	if (strcmp(value, "CLUSTER/ADDRESS") == 0) {
		add_clusters(c, before, "/");
		add_endpoints(c, before);
	} else if (strncmp(value, "CLUSTER", 7) == 0 || strncmp(key, "cluster", 7) == 0)
		add_clusters(c, before, "");
	else if (strncmp(key, "frontend", 8) == 0 || strcmp(key, "--frontend") == 0)
		add_frontends(c, before);
	else if (strncmp(key, "cause", 5) == 0)
		add_causes(c, before);
}

// The next word of a usage, without brackets and dots. False = there is none.
static bool next_token(const char **usage, char token[TOKEN_MAX])
{
	static const char around[] = " []|.'";
	*usage += strspn(*usage, around);
	size_t len = strcspn(*usage, around);
	if (!len)
		return false;
	snprintf(token, TOKEN_MAX, "%.*s", (int)len, *usage);
	*usage += len;
	return true;
}

static bool stands_for_itself(const char *token)
{
	return token[0] == '-' || (token[0] >= 'a' && token[0] <= 'z');
}

static void add_token(struct completer *c, const char *before, const char *token)
{
	const char *value = strchr(token, '=');
	if (!value && stands_for_itself(token)) {
		add(c, "", token, "");
	} else if (!value) {
		add_values(c, before, token, "");
	} else {
		char key[TOKEN_MAX];
		snprintf(key, sizeof(key), "%.*s", (int)(value + 1 - token), token);
		if (strncmp(c->prefix, key, strlen(key)) == 0)
			add_values(c, key, value + 1, key);
		else
			add(c, "", key, "");
	}
}

// After a word that has something behind it in the usage: that. Else all words of the usage.
static void add_arguments(struct completer *c, const struct show_usage *u, const char *last)
{
	const char *at = u->usage;
	char before[TOKEN_MAX] = "", token[TOKEN_MAX];
	bool is_value = false;
	while (!is_value && next_token(&at, token)) {
		is_value = stands_for_itself(before) && !stands_for_itself(token) &&
		           !strchr(before, '=') && strcmp(before, last) == 0;
		if (is_value)
			add_token(c, before, token);
		snprintf(before, sizeof(before), "%s", token);
	}
	for (at = u->usage, before[0] = 0; !is_value && next_token(&at, token);) {
		if (!stands_for_itself(before) || strchr(before, '=') || stands_for_itself(token))
			add_token(c, before, token);
		snprintf(before, sizeof(before), "%s", token);
	}
	if (is_value || !u->has_rows)
		return;
	add(c, "", "limit=", "");
	add(c, "", "sort=", "");
}

// A command's next word, if it begins with the words that are there, or what may follow its name.
static void look_at(struct completer *c, const struct show_usage *u, const struct show_args *args)
{
	char name[TOKEN_MAX];
	char *save = NULL;
	unsigned n = 0, n_before = args->n - 1;
	snprintf(name, sizeof(name), "%s", u->name);
	for (char *w = strtok_r(name, " ", &save); w; w = strtok_r(NULL, " ", &save), n++) {
		if (n == n_before) {
			add(c, "", w, "");
			return;
		}
		if (strcmp(args->words[n], w) != 0)
			return;
	}
	c->of_failures = strstr(u->usage, "[cause!=") != NULL;
	add_arguments(c, u, n_before > n ? args->words[n_before - 1] : "");
}

// `WORD...`.
json_t *show_complete(const struct show *s, struct show_args *args)
{
	if (!args->n) {
		lb_err_set(
			&args->err, "the words of a command must follow, the last of them begun");
		return NULL;
	}
	struct completer c = {.show = s, .prefix = args->words[args->n - 1], .words = json_array()};
	struct show_usage u;
	for (size_t i = 0; c.words && show_usage_at(i, &u); i++)
		look_at(&c, &u, args);
	return c.words;
}

char *show_complete_text(json_t *words)
{
	size_t i;
	const json_t *word;
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	json_array_foreach(words, i, word)
	{
		render_print(out, json_string_value(word));
		fputc('\n', out);
	}
	return printout_end(&p);
}
