// SPDX-License-Identifier: Apache-2.0
#include "ctrl/stats/haproxy.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/base/printout.h"
#include "ctrl/base/stats_proto.h"
#include "ctrl/stats/haproxy_ids.h"
#include "ctrl/stats/haproxy_info.h"
#include "ctrl/stats/haproxy_server.h"
#include "ctrl/stats/haproxy_stat.h"
#include "ctrl/stats/render.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/takeover/takeover.h"
#include "lb/base/twheel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 16

struct haproxy {
	const struct show *show;
	struct slice slice;
	struct haproxy_ids *ids; // owned
};

// A command's words behind its name.
struct call {
	const struct haproxy *haproxy;
	char **words;
	unsigned n;
	struct stats_follow *follow; // of an answer that is to come
	struct lb_err err;
};

// Either a reader, or one of the two ways to change something.
struct command {
	const char *name;
	const char *usage;
	// The answer, from malloc; NULL = see call->err and call->follow.
	char *(*read)(struct call *);
	char *(*change)(struct call *); // likewise
	int (*act)(struct assembler *, char *const *words, unsigned n, struct lb_err *reterr);
};

static char *show_info_command(struct call *c)
{
	enum haproxy_form form = HAPROXY_PLAIN;
	for (unsigned i = 0; i < c->n; i++) {
		if (strcmp(c->words[i], "typed") == 0)
			form = HAPROXY_TYPED;
		else if (strcmp(c->words[i], "json") == 0)
			form = HAPROXY_JSON;
		else {
			lb_err_set(&c->err, "unexpected argument '%s'", c->words[i]);
			return NULL;
		}
	}
	return haproxy_info(c->haproxy->show, c->haproxy->ids, form);
}

static char *show_stat_command(struct call *c)
{
	struct haproxy_ask ask;
	if (haproxy_stat_ask(c->words, c->n, &ask, &c->err) == 0)
		c->follow = haproxy_stat_new(
			c->haproxy->show, c->haproxy->ids, &c->haproxy->slice, &ask);
	return NULL;
}

// What is set is what is so already.
static char *set_timeout(struct call *c)
{
	return strdup("");
}

// HAProxy's clears maxima; with `all` counters, too.
static char *clear_counters(struct call *c)
{
	const struct show *show = c->haproxy->show;
	if (c->n == 0) {
		workers_clear_maxima(show->conf.workers, twheel_now(show->conf.wheel));
		return strdup("");
	}
	if (c->n == 1 && strcmp(c->words[0], "all") == 0)
		lb_err_set(&c->err, "Counters are never cleared: all readers share them, and "
				    "monitoring takes one that goes back for a restart. 'clear "
				    "counters' begins maxima anew.");
	else
		lb_err_set(&c->err, "unexpected argument '%s'", c->words[0]);
	return NULL;
}

static char *help(struct call *);

static const struct command commands[] = {
	{"help", "", .read = help},
	{"show info", "[typed|json]", .read = show_info_command},
	{"show stat", "[domain proxy] [{<iid>|<proxy>} <type> <sid>] [typed|json] [up|no-maint]",
		.read = show_stat_command},
	{"disable server", "<backend>/<server>", .act = haproxy_server_disable},
	{"enable server", "<backend>/<server>", .act = haproxy_server_enable},
	{"set server", "<backend>/<server> {state {ready|drain|maint} | weight <weight>[%]}",
		.act = haproxy_server_set},
	{"set weight", "<backend>/<server> <weight>[%]", .act = haproxy_server_set_weight},
	{"set timeout cli", "<seconds> (nothing is changed: it is 60)", .read = set_timeout},
	{"clear counters", "(maxima alone: what is counted is never cleared)",
		.change = clear_counters},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_commands(FILE *out)
{
	for (size_t i = 0; i < N_COMMANDS; i++)
		fprintf(out, "  %s %s\n", commands[i].name, commands[i].usage);
	fputs("  prompt\n  quit\n", out);
}

static char *print_help(const char *line)
{
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	if (line) {
		fputs("Unknown command: '", out);
		render_print(out, line);
		fputs("'. ", out);
	}
	fputs("Of HAProxy's commands these are known:\n", out);
	print_commands(out);
	fputs("All others are shuntctl's, at the stats socket.\n", out);
	return printout_end(&p);
}

static char *help(struct call *c)
{
	return print_help(NULL);
}

// In place: blanks part words, and what stands behind a backslash is itself. Returns how many.
static unsigned split(char *text, char *words[MAX_WORDS])
{
	unsigned n = 0;
	for (char *from = text; n < MAX_WORDS;) {
		from += strspn(from, " \t");
		if (!*from)
			break;
		char *to = from;
		words[n++] = from;
		while (*from && *from != ' ' && *from != '\t') {
			from += *from == '\\' && from[1];
			*to++ = *from++;
		}
		bool is_last = !*from;
		*to = 0;
		if (is_last)
			break;
		from++;
	}
	return n;
}

// How many words its name has, if the line starts with them; else 0.
static unsigned names(const char *name, char *const *words, unsigned n)
{
	unsigned at = 0;
	while (at < n) {
		size_t len = strcspn(name, " ");
		if (strncmp(words[at], name, len) != 0 || words[at][len])
			return 0;
		at++;
		if (!name[len])
			return at;
		name += len + 1;
	}
	return 0;
}

static char *sentence(const struct call *c)
{
	struct printout p;
	FILE *out = printout_begin(&p);
	if (!out)
		return NULL;
	render_print(out, c->err.text);
	fputc('\n', out);
	return printout_end(&p);
}

// What it answers; NULL = see call->err.
static char *act(struct call *c, const struct command *command, const struct stats_caller *caller,
	const char *line)
{
	if (caller->level < STATS_OPERATOR) {
		lb_err_set(&c->err, "Permission denied: '%s' needs the level %s, and yours is %s.",
			command->name, stats_level_name(STATS_OPERATOR),
			stats_level_name(caller->level));
		return NULL;
	}
	const struct show_conf *conf = &c->haproxy->show->conf;
	if (command->act && takeover_check_change(conf->takeover, &c->err))
		return NULL;
	char *text = command->change ? command->change(c)
	             : command->act(conf->assembler, c->words, c->n, &c->err) == 0 ? strdup("")
	                                                                           : NULL;
	if (text)
		stats_caller_tell(caller, line);
	return text;
}

static char *run(struct call *c, const struct command *command, const struct stats_caller *caller,
	const char *line)
{
	char *text = command->read ? command->read(c) : act(c, command, caller, line);
	if (text)
		return text;
	if (c->err.text[0])
		return sentence(c);
	return c->follow ? strdup("") : NULL;
}

char *haproxy_answer(void *ctx, const struct stats_caller *caller, const char *line,
	struct stats_follow **ret_follow)
{
	char copy[STATS_MAX_COMMAND + 1], *words[MAX_WORDS];
	if (strlen(line) >= sizeof(copy))
		return strdup("The command is too long.\n");
	snprintf(copy, sizeof(copy), "%s", line);
	unsigned n = split(copy, words);
	for (size_t i = 0; i < N_COMMANDS; i++) {
		unsigned taken = names(commands[i].name, words, n);
		if (!taken)
			continue;
		struct call c = {.haproxy = ctx, .words = words + taken, .n = n - taken};
		char *text = run(&c, &commands[i], caller, line);
		*ret_follow = c.follow;
		return text;
	}
	return print_help(n ? line : NULL);
}

struct haproxy *haproxy_new(const struct show *show, const struct slice *slice)
{
	struct haproxy *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	*h = (struct haproxy){show, *slice, haproxy_ids_new()};
	if (h->ids)
		return h;
	free(h);
	return NULL;
}

void haproxy_free(struct haproxy *h)
{
	if (!h)
		return;
	haproxy_ids_free(h->ids);
	free(h);
}
