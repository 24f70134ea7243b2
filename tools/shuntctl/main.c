// SPDX-License-Identifier: Apache-2.0
// shuntctl: sends a command to shuntd's stats socket and prints the answer; without one it asks for
// commands, and `top` draws what the daemon does. It knows no other command: what there is, the
// daemon says (`shuntctl help`).
#include "ctrl/base/std_out.h"
#include "tools/shuntctl/command.h"
#include "tools/shuntctl/shell.h"
#include "tools/shuntctl/top.h"

#include <argp.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_HUMAN 1000 // has no letter

struct args {
	struct command command;
	bool is_top;
};

static const struct argp_option options[] = {
	{"socket", 's', "PATH", 0,
		"The stats socket (default: $SHUNT_SOCKET, else " STATS_DEFAULT_SOCKET ")", 0},
	{"json", 'j', NULL, 0, "Answer in JSON", 0},
	{"human", KEY_HUMAN, NULL, 0,
		"Durations and bytes with units, as on a terminal without this", 0},
	{0},
};

// The first word ends our own options, since a command may have some, too.
static void take_words(struct args *a, char **words, int n, struct argp_state *state)
{
	a->is_top = n == 1 && strcmp(words[0], "top") == 0;
	for (int i = 0; i < n && !a->is_top; i++)
		if (!command_add(&a->command, words[i]))
			argp_error(state, "command longer than %d bytes", COMMAND_MOST);
}

static error_t take_arg(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;
	switch (key) {
	case 's':
		a->command.socket = arg;
		return 0;
	case 'j':
		a->command.json = true;
		return 0;
	case KEY_HUMAN:
		a->command.human = true;
		return 0;
	case ARGP_KEY_ARGS:
		take_words(a, state->argv + state->next, state->argc - state->next, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
	.options = options,
	.parser = take_arg,
	.args_doc = "COMMAND...\ntop\n",
	.doc = "Ask a running shuntd. `shuntctl help` lists the commands, `shuntctl top` shows "
	       "what it "
	       "does, and `shuntctl` alone, on a terminal, asks for commands.\v"
	       "Options stand before the command, but for --json. Words with blanks reach the "
	       "daemon as they are.\n\n"
	       "On a terminal states have colours, unless NO_COLOR is set.\n\n"
	       "Exit status: 0 answered, 1 the daemon refused the command, 2 it could not be "
	       "asked, or standard output could not be written. Of doctor: 0 all is well, 1 "
	       "warnings, 2 errors. Of ping: 1 no answer at all.",
};

const char *argp_program_version = "shuntctl " SHUNT_VERSION;

int main(int argc, char **argv)
{
	struct args args = {.command = {.socket = NULL}};
	std_out_watch("shuntctl", 2);
	setlocale(LC_ALL, "");
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &args);
	const char *named = getenv("SHUNT_SOCKET");
	if (!args.command.socket && named && named[0])
		args.command.socket = named;
	if (!args.command.socket)
		args.command.socket = STATS_DEFAULT_SOCKET;
	if (args.is_top)
		return top_run(args.command.socket);
	return args.command.words[0] ? command_run(&args.command) : shell_run(&args.command);
}
