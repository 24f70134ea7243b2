// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/top.h"

#include "lb/base/time.h"
#include "tools/shuntctl/ask.h"
#include "tools/shuntctl/rates.h"
#include "tools/shuntctl/screen.h"

#include <curses.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define REFRESH_MS 1000

// An answer, and when it came.
struct sample {
	json_t *load, *info; // owned; NULL = there is none
	uint64_t at_ns;
};

struct top {
	const char *socket;
	struct sample now, before;
	enum screen_sort sort;
	char trouble[128];
};

static volatile sig_atomic_t ended;

static void on_end(int number)
{
	ended = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static void sample_fini(struct sample *s)
{
	json_decref(s->load);
	json_decref(s->info);
	*s = (struct sample){0};
}

// The data of a command's answer; NULL with errno.
static json_t *ask(const char *socket, const char *command)
{
	char *text = ask_all(socket, command);
	if (!text)
		return NULL;
	json_t *whole = json_loads(text, 0, NULL);
	json_t *data = json_incref(json_object_get(whole, "data"));
	json_decref(whole);
	free(text);
	if (!data)
		errno = EPROTO;
	return data;
}

static void look(struct top *t)
{
	struct sample s = {.info = ask(t->socket, "show info json")};
	s.load = s.info ? ask(t->socket, "show load json") : NULL;
	s.at_ns = now_ns();
	if (!s.load) {
		snprintf(t->trouble, sizeof(t->trouble), "%s", ask_error(errno));
		sample_fini(&s);
		return;
	}
	t->trouble[0] = 0;
	sample_fini(&t->before);
	t->before = t->now;
	t->now = s;
}

// The signal that tells of another size may have come where nobody asked for keys.
static void take_size(void)
{
	struct winsize s;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &s) == 0 && s.ws_row && s.ws_col &&
		is_term_resized(s.ws_row, s.ws_col))
		resizeterm(s.ws_row, s.ws_col);
}

static void draw(struct top *t)
{
	take_size();
	struct rates rates;
	double seconds = (double)(t->now.at_ns - t->before.at_ns) / (double)NS_PER_SECOND;
	if (!rates_init(&rates, t->before.load, t->now.load, seconds))
		return;
	const char *version = json_string_value(json_object_get(t->now.info, "version"));
	const char *state = json_string_value(json_object_get(t->now.info, "state"));
	const struct screen screen = {
		.version = version ? version : "",
		.state = state ? state : "",
		.uptime_s = json_number_value(json_object_get(t->now.info, "uptime_s")),
		.rates = &rates,
		.sort = t->sort,
		.trouble = t->trouble,
	};
	screen_draw(&screen);
	rates_fini(&rates);
}

// Until the next answer is due. False = that was all.
static bool wait_for_keys(struct top *t, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = now_ns();
		if (ended)
			return false;
		if (now >= until_ns)
			return true;
		timeout((int)((until_ns - now) / NS_PER_MS) + 1);
		int key = getch();
		if (key == 'q')
			return false;
		if (screen_sort_of(key) < SCREEN_N_SORTS)
			t->sort = screen_sort_of(key);
		if (key != ERR) // KEY_RESIZE, too
			draw(t);
	}
}

int top_run(const char *socket)
{
	struct top t = {.socket = socket};
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		fputs("shuntctl: top draws on a terminal, and there is none\n", stderr);
		return 2;
	}
	struct sigaction action = {.sa_handler = on_end}, old_int, old_term;
	ended = 0;
	SCREEN *screen = newterm(NULL, stdout, stdin);
	if (!screen) {
		fputs("shuntctl: top does not know this terminal (TERM)\n", stderr);
		return 2;
	}
	sigaction(SIGINT, &action, &old_int);
	sigaction(SIGTERM, &action, &old_term);
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	uint64_t next_ns = now_ns();
	do {
		look(&t);
		draw(&t);
		next_ns += REFRESH_MS * NS_PER_MS;
		if (next_ns < now_ns()) // it took longer
			next_ns = now_ns() + REFRESH_MS * NS_PER_MS;
	} while (wait_for_keys(&t, next_ns));
	endwin();
	delscreen(screen);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	sample_fini(&t.now);
	sample_fini(&t.before);
	return 0;
}
