// SPDX-License-Identifier: Apache-2.0
#include "tools/shuntctl/rates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_BUCKETS 128

// Requests by how long they took, in order of time.
struct bucket {
	double above_us, most_us; // most_us < 0: there is no bound
	double n;
};
struct times {
	struct bucket list[MAX_BUCKETS];
	size_t n;
};

static double number(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key)); // null: 0
}

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));
	return s ? s : "";
}

// Adds sign times what the row has.
static void add_times(struct times *t, const json_t *row, double sign)
{
	size_t k;
	const json_t *from;
	json_array_foreach(json_object_get(row, "times"), k, from)
	{
		double above = json_number_value(json_array_get(from, 0));
		const json_t *most = json_array_get(from, 1);
		double n = json_number_value(json_array_get(from, 2));
		size_t i = 0;
		while (i < t->n && t->list[i].above_us < above)
			i++;
		if (i == t->n || t->list[i].above_us > above) {
			if (t->n == MAX_BUCKETS)
				return;
			memmove(&t->list[i + 1], &t->list[i], (t->n - i) * sizeof(t->list[0]));
			t->n++;
			t->list[i] = (struct bucket){
				above, json_is_number(most) ? json_number_value(most) : -1, 0};
		}
		t->list[i].n += sign * n;
	}
}

// As if the times of a bucket lay evenly in it.
static double quantile(const struct times *t, double share)
{
	double n = 0, below = 0;
	for (size_t i = 0; i < t->n; i++)
		n += t->list[i].n;
	if (n <= 0)
		return -1;
	for (size_t i = 0; i < t->n; i++) {
		const struct bucket *b = &t->list[i];
		if (b->n > 0 && below + b->n >= share * n)
			return b->most_us < 0 ? b->above_us
			                      : b->above_us + (b->most_us - b->above_us) *
			                                              (share * n - below) / b->n;
		below += b->n;
	}
	return t->list[t->n - 1].above_us;
}

static void set_quantiles(struct rates_row *r, const struct times *t)
{
	r->p50_us = quantile(t, 0.5);
	r->p99_us = quantile(t, 0.99);
}

// What the row was before; NULL = it was not there, or it has begun anew.
static const json_t *row_before(const json_t *index, const json_t *row)
{
	char key[512];
	snprintf(key, sizeof(key), "%s %s", text(row, "kind"), text(row, "name"));
	const json_t *old = json_object_get(index, key);
	static const char *const subtracted[] = {"requests", "failed", "bad"};
	for (size_t i = 0; i < sizeof(subtracted) / sizeof(subtracted[0]); i++)
		if (number(row, subtracted[i]) < number(old, subtracted[i]))
			return NULL;
	return old;
}

static json_t *index_of(const json_t *rows)
{
	json_t *index = json_object(), *row;
	size_t i;
	char key[512];
	json_array_foreach(rows, i, row)
	{
		snprintf(key, sizeof(key), "%s %s", text(row, "kind"), text(row, "name"));
		json_object_set(index, key, row);
	}
	return index;
}

static double grown(const json_t *row, const json_t *old, const char *key)
{
	return number(row, key) - number(old, key);
}

static struct rates_row row_of(const json_t *row, const json_t *old, double seconds)
{
	struct rates_row r = {
		.name = text(row, "name"),
		.state = text(row, "state"),
		.busy_percent = number(row, "busy_percent"),
		.connections = (long long)number(row, "connections"),
		.active = (long long)number(row, "active"),
		.queued = (long long)number(row, "queued"),
		.endpoints = (long long)number(row, "endpoints"),
		.ready = (long long)number(row, "ready"),
	};
	struct times times = {.n = 0};
	if (old) {
		r.requests_s = grown(row, old, "requests") / seconds;
		r.errors_s = (grown(row, old, "failed") + grown(row, old, "bad")) / seconds;
		add_times(&times, row, 1);
		add_times(&times, old, -1);
	}
	set_quantiles(&r, &times);
	return r;
}

static void add_cause(struct rates *r, const char *cause, double per_s)
{
	size_t i = 0;
	while (i < r->n_causes && strcmp(r->causes[i].name, cause) != 0)
		i++;
	if (per_s <= 0 || i == RATES_MAX_CAUSES)
		return;
	r->causes[i].name = cause;
	r->causes[i].per_s += per_s;
	r->n_causes = i < r->n_causes ? r->n_causes : i + 1;
}

static void add_causes(struct rates *r, const json_t *row, const json_t *old, double seconds)
{
	const char *cause;
	json_t *n;
	add_cause(r, "answered", grown(row, old, "bad") / seconds);
	json_object_foreach(json_object_get(row, "ended"), cause, n)
	{
		double more = json_number_value(n) - number(json_object_get(old, "ended"), cause);
		if (strcmp(cause, "ok") != 0)
			add_cause(r, cause, more / seconds);
	}
}

static void add_frontend(
	struct rates *r, struct times *times, const json_t *row, const json_t *old, double seconds)
{
	struct rates_row one = row_of(row, old, seconds);
	r->total.requests_s += one.requests_s;
	r->total.errors_s += one.errors_s;
	r->total.active += one.active;
	if (!old)
		return;
	add_times(times, row, 1);
	add_times(times, old, -1);
	add_causes(r, row, old, seconds);
}

bool rates_init(struct rates *r, const json_t *before, const json_t *rows, double seconds)
{
	size_t n = json_array_size(rows), i;
	struct times times = {.n = 0};
	const json_t *row;
	json_t *index = index_of(before);
	*r = (struct rates){.total = {.name = "", .state = ""},
		.workers = calloc(n + 1, sizeof(*r->workers)),
		.clusters = calloc(n + 1, sizeof(*r->clusters))};
	if (!index || !r->workers || !r->clusters) {
		json_decref(index);
		rates_fini(r);
		return false;
	}
	json_array_foreach(rows, i, row)
	{
		const char *kind = text(row, "kind");
		const json_t *old = seconds > 0 ? row_before(index, row) : NULL;
		if (strcmp(kind, "worker") == 0)
			r->workers[r->n_workers++] = row_of(row, old, seconds);
		else if (strcmp(kind, "cluster") == 0)
			r->clusters[r->n_clusters++] = row_of(row, old, seconds);
		else
			add_frontend(r, &times, row, old, seconds);
	}
	set_quantiles(&r->total, &times);
	json_decref(index);
	return true;
}

void rates_fini(struct rates *r)
{
	free(r->workers);
	free(r->clusters);
	*r = (struct rates){0};
}
