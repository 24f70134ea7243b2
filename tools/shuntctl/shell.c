// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/shell.h"

#include "lb/base/words.h"
#include "tools/shuntctl/candidates.h"
#include "tools/shuntctl/command.h"
#include "tools/shuntctl/top.h"

#include <histedit.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HISTORY_LINES 1000

struct shell {
	const struct command *like; // socket and options of each command
	EditLine *edit; // owned
	History *history; // owned
	char path[512]; // of the history; "" = none is kept
	pid_t pid; // of the daemon that answered last; 0 = none has
	bool is_gone; // nobody answered last
	bool drops_line; // Ctrl-C
};

static void on_interrupt(int number)
{
	command_interrupted = 1;
}

// Keys.

static unsigned char on_cancel(EditLine *edit, int ch)
{
	struct shell *s;
	el_get(edit, EL_CLIENTDATA, &s);
	s->drops_line = true;
	puts("^C"); // the prompt that follows is drawn as if nothing stood on its line
	return CC_NEWLINE;
}

static void print_choices(const struct candidates *c)
{
	int width = 0;
	for (unsigned i = 0; i < c->n; i++) {
		int len = (int)strlen(c->list[i]);
		width = len > width ? len : width;
	}
	int n_columns = 80 / (width + 2) > 0 ? 80 / (width + 2) : 1;
	for (unsigned i = 0; i < c->n; i++)
		printf("%s%-*s", i % (unsigned)n_columns ? "" : "\n", width + 2, c->list[i]);
	putchar('\n');
	fflush(stdout);
}

static unsigned char on_tab(EditLine *edit, int ch)
{
	struct shell *s;
	struct candidates c;
	el_get(edit, EL_CLIENTDATA, &s);
	const LineInfo *line = el_line(edit);
	if (!candidates_ask(
		    &c, s->like->socket, line->buffer, (size_t)(line->cursor - line->buffer)))
		return CC_ERROR;
	unsigned char what = CC_ERROR;
	if (c.rest[0]) {
		el_insertstr(edit, c.rest);
		what = CC_REFRESH;
	} else if (c.n > 1) {
		print_choices(&c);
		what = CC_REDISPLAY;
	}
	candidates_fini(&c);
	return what;
}

static char *prompt(EditLine *edit)
{
	static char text[] = "shunt> ";
	return text;
}

// The history: $XDG_STATE_HOME/shunt/history, by default below ~/.local/state.

static void make_folders(const char *path)
{
	char part[512];
	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = part; (slash = strchr(slash + 1, '/')); *slash = '/') {
		*slash = 0;
		mkdir(part, 0700); // an error shows where the file is written
	}
}

static void find_history(struct shell *s)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (state && state[0] == '/')
		snprintf(s->path, sizeof(s->path), "%s/shunt/history", state);
	else if (home && home[0] == '/')
		snprintf(s->path, sizeof(s->path), "%s/.local/state/shunt/history", home);
}

static void keep_history(const struct shell *s)
{
	HistEvent event;
	mode_t old = umask(0077);
	if (s->path[0])
		history(s->history, &event, H_SAVE, s->path);
	umask(old);
}

static bool begin(struct shell *s)
{
	HistEvent event;
	s->history = history_init();
	s->edit = el_init("shuntctl", stdin, stdout, stderr);
	if (!s->history || !s->edit)
		return false;
	find_history(s);
	make_folders(s->path);
	history(s->history, &event, H_SETSIZE, HISTORY_LINES);
	history(s->history, &event, H_SETUNIQUE, 1);
	if (s->path[0])
		history(s->history, &event, H_LOAD, s->path);
	el_set(s->edit, EL_CLIENTDATA, s);
	el_set(s->edit, EL_PROMPT, prompt);
	el_set(s->edit, EL_EDITOR, "emacs");
	el_set(s->edit, EL_HIST, history, s->history);
	el_set(s->edit, EL_ADDFN, "shunt-complete", "Completes the word", on_tab);
	el_set(s->edit, EL_BIND, "^I", "shunt-complete", NULL);
	el_set(s->edit, EL_ADDFN, "shunt-cancel", "Drops the line", on_cancel);
	el_set(s->edit, EL_BIND, "^C", "shunt-cancel", NULL);
	el_set(s->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	// While a line is edited Ctrl-C is a key; while an answer comes it is a signal.
	el_set(s->edit, EL_SETTY, "-d", "-isig", NULL);
	const struct sigaction action = {.sa_handler = on_interrupt}; // reads are interrupted
	sigaction(SIGINT, &action, NULL);
	return true;
}

static void end(struct shell *s)
{
	if (s->edit)
		el_end(s->edit);
	if (s->history)
		history_end(s->history);
}

// Commands.

static void tell_daemon(struct shell *s, pid_t pid)
{
	if (!pid) {
		if (!s->is_gone)
			fputs("The daemon is gone; each further command tries again.\n", stderr);
	} else if (s->pid && pid != s->pid) {
		fprintf(stderr, "Another daemon answers now, process %d.\n", (int)pid);
	} else if (s->is_gone && s->pid) {
		fputs("The daemon answers again.\n", stderr);
	}
	s->is_gone = !pid;
	s->pid = pid ? pid : s->pid;
}

static void ask(struct shell *s, const struct words *words)
{
	struct command c = *s->like;
	for (unsigned i = 0; i < words->n; i++)
		if (!command_add(&c, words->list[i])) {
			fprintf(stderr, "The command is longer than %d bytes.\n", COMMAND_MOST);
			return;
		}
	if (!c.words[0])
		return;
	command_interrupted = 0;
	command_run(&c);
	if (command_interrupted)
		putchar('\n');
	tell_daemon(s, c.pid);
}

// False = that was the last.
static bool take_line(struct shell *s, const char *line)
{
	char copy[STATS_MAX_COMMAND + 1];
	struct words words;
	HistEvent event;
	if (strlen(line) >= sizeof(copy)) {
		fprintf(stderr, "The command is longer than %d bytes.\n", STATS_MAX_COMMAND);
		return true;
	}
	strcpy(copy, line);
	const char *wrong = words_split(copy, &words);
	if (wrong)
		fprintf(stderr, "%s\n", wrong);
	if (wrong || words.n == 0)
		return true;
	if (strcmp(words.list[0], "quit") == 0 || strcmp(words.list[0], "exit") == 0)
		return false;
	history(s->history, &event, H_ENTER, line);
	keep_history(s);
	if (words.n == 1 && strcmp(words.list[0], "top") == 0)
		top_run(s->like->socket);
	else
		ask(s, &words);
	return true;
}

int shell_run(const struct command *like)
{
	struct shell s = {.like = like};
	char line[STATS_MAX_COMMAND + 2];
	if (!begin(&s)) {
		end(&s);
		fputs("shuntctl: no memory, or no terminal\n", stderr);
		return 2;
	}
	puts("`help` lists the commands, Tab completes them, `quit` or Ctrl-D ends.");
	for (bool goes_on = true; goes_on;) {
		int n = 0;
		const char *text = el_gets(s.edit, &n);
		bool drops = s.drops_line;
		s.drops_line = false;
		if (!text || n <= 0) {
			putchar('\n');
			break;
		}
		snprintf(line, sizeof(line), "%s", text);
		line[strcspn(line, "\n")] = 0;
		goes_on = drops || take_line(&s, line);
	}
	end(&s);
	return 0;
}
