// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/command.h"

#include "lb/base/words.h"
#include "tools/shuntctl/ask.h"
#include "tools/shuntctl/doctor.h"
#include "tools/shuntctl/paint.h"
#include "tools/shuntctl/ping.h"
#include "tools/shuntctl/refusal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

volatile int command_interrupted;

// Of any command; or the command that is answered when something is so.
static bool is_follow(const struct command *c, const char *word)
{
	return strcmp(word, "-w") == 0 || strcmp(word, "-f") == 0 ||
	       (!c->words[0] && strcmp(word, "wait") == 0);
}

bool command_add(struct command *c, const char *word)
{
	if (!c->is_raw && (strcmp(word, "--json") == 0 || strcmp(word, "-j") == 0)) {
		c->json = true;
		return true;
	}
	bool follows = !c->is_raw && is_follow(c, word);
	bool is_first = !c->words[0];
	if (!words_append(c->words, sizeof(c->words), word))
		return false;
	c->follows |= follows;
	c->is_raw |= is_first && strcmp(word, "complete") == 0;
	return true;
}

static int print_answer(struct command *c, struct ask *a)
{
	struct paint paint = {.after_row = false};
	bool paints = !c->json && paint_wanted(stdout);
	bool by_doctor = doctor_is_asked(c->words), by_ping = ping_is_asked(c->words);
	int status = 0;
	const char *line;
	if (c->follows)
		setlinebuf(stdout);
	while (!command_interrupted && !ferror(stdout) && (line = ask_line(a))) {
		if (a->refused && c->json)
			refusal_print_json(stdout, line);
		else if (a->refused || !paints)
			fputs(line, a->refused ? stderr : stdout);
		else
			paint_line(&paint, stdout, line);
		if (by_doctor)
			status = doctor_status(line, status);
		if (by_ping)
			status = ping_status(line, status);
	}
	if (fflush(stdout) != 0 || ferror(stdout))
		return 2; // std_out.h says why
	if (!a->ended)
		return -1;
	return a->refused ? 1 : status;
}

static void say_unanswered(const struct command *c, int error)
{
	fprintf(stderr, "shuntctl: %s: %s\n", c->socket, ask_error(error));
	if (doctor_is_asked(c->words) && error != EUSERS)
		doctor_hint();
}

int command_run(struct command *c)
{
	struct ask a;
	char line[STATS_MAX_COMMAND + 1];
	bool human = !c->json && (c->human || isatty(STDOUT_FILENO));
	snprintf(line, sizeof(line), "%s%s%s", human ? STATS_HUMAN " " : "", c->words,
		c->json ? " json" : "");
	int status = ask_open(&a, c->socket, line, c->follows);
	c->pid = a.pid;
	if (status == 0)
		status = print_answer(c, &a);
	ask_close(&a);
	if (status < 0 && !command_interrupted)
		say_unanswered(c, errno);
	return status < 0 ? 2 : status;
}
