// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/screen.h"

#include <curses.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_LEN 512
#define NAME_WIDTH 22 // at least, on 80 columns
#define REST_WIDTH 58 // of the other columns of clusters

static const struct {
	char key;
	const char *name;
} sorts[SCREEN_N_SORTS] = {[SCREEN_BY_REQUESTS] = {'r', "requests"},
	[SCREEN_BY_ERRORS] = {'e', "errors"},
	[SCREEN_BY_ACTIVE] = {'a', "active"},
	[SCREEN_BY_P99] = {'l', "latency"},
	[SCREEN_BY_NAME] = {'n', "name"}};

enum screen_sort screen_sort_of(int key)
{
	enum screen_sort i = SCREEN_BY_REQUESTS;
	while (i < SCREEN_N_SORTS && sorts[i].key != key)
		i++;
	return i;
}

// Names come from servers: what is not ASCII, or steers a terminal, is shown as a question mark.
static void put(int y, int attributes, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void put(int y, int attributes, const char *fmt, ...)
{
	char line[LINE_MAX_LEN];
	va_list args;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	for (char *c = line; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	if (y < 0 || y >= LINES)
		return;
	attrset((attr_t)attributes);
	mvaddnstr(y, 0, line, COLS);
	attrset(A_NORMAL);
}

// "12.3", "4567", "12.3k", "4.5M".
static const char *print_count(double n, char text[16])
{
	if (n < 100)
		snprintf(text, 16, "%.1f", n);
	else if (n < 100e3)
		snprintf(text, 16, "%.0f", n);
	else if (n < 100e6)
		snprintf(text, 16, "%.0fk", n / 1e3);
	else
		snprintf(text, 16, "%.0fM", n / 1e6);
	return text;
}

// "850us", "1.25ms", "2.10s"; "-" = none.
static const char *print_time(double us, char text[16])
{
	if (us < 0)
		snprintf(text, 16, "-");
	else if (us < 1e3)
		snprintf(text, 16, "%.0fus", us);
	else if (us < 1e6)
		snprintf(text, 16, "%.*fms", us < 1e4 ? 2 : 1, us / 1e3);
	else
		snprintf(text, 16, "%.2fs", us / 1e6);
	return text;
}

static void draw_head(const struct screen *s)
{
	const struct rates_row *t = &s->rates->total;
	char a[16], b[16], c[16], d[16], causes[LINE_MAX_LEN] = "none";
	long up = (long)s->uptime_s;
	if (s->trouble[0])
		put(0, A_BOLD | A_REVERSE, "shuntd does not answer: %s", s->trouble);
	else
		put(0, A_BOLD, "shuntd %s  %s  up %ldd %02ld:%02ld:%02ld", s->version, s->state,
			up / 86400, up / 3600 % 24, up / 60 % 60, up % 60);
	put(1, A_NORMAL, "requests/s %-8s errors/s %-8s p50 %-8s p99 %-8s active %lld",
		print_count(t->requests_s, a), print_count(t->errors_s, b),
		print_time(t->p50_us, c), print_time(t->p99_us, d), t->active);
	size_t len = 0;
	for (size_t i = 0; i < s->rates->n_causes && len < sizeof(causes); i++)
		len += (size_t)snprintf(causes + len, sizeof(causes) - len, "%s%s %s",
			i ? "  " : "", s->rates->causes[i].name,
			print_count(s->rates->causes[i].per_s, a));
	put(2, s->rates->n_causes ? A_BOLD : A_NORMAL, "errors/s by cause: %s", causes);
}

static int compare_busy(const void *a, const void *b)
{
	const struct rates_row *x = a, *y = b;
	return (x->busy_percent < y->busy_percent) - (x->busy_percent > y->busy_percent);
}

// A quarter of the screen: the busiest. Returns the next free line.
static int draw_workers(const struct screen *s, int y)
{
	const struct rates *r = s->rates;
	size_t most = LINES / 4 > 1 ? (size_t)(LINES / 4 - 1) : 1;
	qsort(r->workers, r->n_workers, sizeof(r->workers[0]), compare_busy);
	put(y++, A_REVERSE, "%-8s %8s %11s %9s %8s %8s%*s", "WORKER", "BUSY", "REQUESTS/S",
		"ERRORS/S", "CLIENTS", "ACTIVE", COLS, "");
	for (size_t i = 0; i < r->n_workers && i < most; i++) {
		const struct rates_row *w = &r->workers[i];
		char a[16], b[16];
		put(y++, A_NORMAL, "%-8s %7.1f%% %11s %9s %8lld %8lld", w->name, w->busy_percent,
			print_count(w->requests_s, a), print_count(w->errors_s, b), w->connections,
			w->active);
	}
	if (r->n_workers > most)
		put(y++, A_NORMAL, "and %zu workers that are less busy", r->n_workers - most);
	return y;
}

static enum screen_sort sorted_by; // of compare_clusters(), which takes no argument

static double key_of(const struct rates_row *r)
{
	switch (sorted_by) {
	case SCREEN_BY_ERRORS:
		return r->errors_s;
	case SCREEN_BY_ACTIVE:
		return (double)r->active;
	case SCREEN_BY_P99:
		return r->p99_us;
	case SCREEN_BY_NAME:
		return 0;
	default:
		return r->requests_s;
	}
}

static int compare_clusters(const void *a, const void *b)
{
	double x = key_of(a), y = key_of(b);
	return x != y ? (x < y) - (x > y)
	              : strcmp(((const struct rates_row *)a)->name,
				((const struct rates_row *)b)->name);
}

static const char *short_state(const char *state)
{
	return strcmp(state, "TRANSIENT_FAILURE") == 0 ? "FAIL"
	       : strcmp(state, "CONNECTING") == 0      ? "CONN"
	                                               : state;
}

static void draw_clusters(const struct screen *s, int y)
{
	const struct rates *r = s->rates;
	int width = COLS - REST_WIDTH > NAME_WIDTH ? COLS - REST_WIDTH : NAME_WIDTH;
	char title[32];
	snprintf(title, sizeof(title), "CLUSTER (%zu)", r->n_clusters);
	sorted_by = s->sort;
	qsort(r->clusters, r->n_clusters, sizeof(r->clusters[0]), compare_clusters);
	put(y++, A_REVERSE, "%-*s %-5s %9s %7s %8s %7s %7s %7s%*s", width, title, "STATE", "READY",
		"REQ/S", "ERR/S", "ACTIVE", "P50", "P99", COLS, "");
	for (size_t i = 0; i < r->n_clusters && y < LINES - 1; i++) {
		const struct rates_row *c = &r->clusters[i];
		char ready[32], a[16], b[16], p50[16], p99[16];
		const char *state = short_state(c->state);
		bool is_bad = strcmp(state, "FAIL") == 0 || c->errors_s > 0;
		snprintf(ready, sizeof(ready), "%lld/%lld", c->ready, c->endpoints);
		put(y++, is_bad ? A_BOLD : A_NORMAL, "%-*.*s %-5.5s %9s %7s %8s %7lld %7s %7s",
			width, width, c->name, state, ready, print_count(c->requests_s, a),
			print_count(c->errors_s, b), c->active, print_time(c->p50_us, p50),
			print_time(c->p99_us, p99));
	}
}

static void draw_keys(const struct screen *s)
{
	char keys[LINE_MAX_LEN] = "";
	size_t len = 0;
	for (int i = 0; i < SCREEN_N_SORTS; i++)
		len += (size_t)snprintf(keys + len, sizeof(keys) - len, "  %c %s%s", sorts[i].key,
			sorts[i].name, i == (int)s->sort ? "*" : "");
	put(LINES - 1, A_NORMAL, "q quit   sort by:%s", keys);
}

void screen_draw(const struct screen *s)
{
	erase();
	draw_head(s);
	int y = draw_workers(s, 4);
	draw_clusters(s, y + 1);
	draw_keys(s);
	refresh();
}
