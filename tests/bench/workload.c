// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/workload.h"

#include "lb/base/check.h"
#include "lb/base/rand.h"

#include <stdio.h>
#include <stdlib.h>

#define MAX_PATHS 65536
#define MAX_TEXT 160

static const char *const teams[] = {"billing", "search", "identity", "inventory", "payments",
	"shipping", "media", "analytics", "messaging", "profile", "catalog", "pricing", "audit",
	"scheduler", "storage", "gateway"};
static const char *const nouns[] = {"Invoice", "Account", "Session", "Item", "Order", "Address",
	"Video", "Report", "Thread", "Avatar", "Product", "Quote", "Event", "Job", "Bucket",
	"Route"};
static const char *const methods[] = {"Get", "List", "Create", "Update", "Delete", "Watch"};
#define PICK(list, i) (list)[(i) % (sizeof(list) / sizeof((list)[0]))]

static struct str keep(const char *text)
{
	char *copy = strdup(text);
	CHECK(copy);
	return str_from(copy);
}

static void route_text(char *to, uint32_t i, bool is_regex)
{
	uint32_t team = i, noun = i / 16, number = i / 256;
	if (is_regex)
		snprintf(to, MAX_TEXT, "/v1/%s-%u/[^/]+/%ss/[0-9]+", PICK(teams, team), number,
			PICK(nouns, noun));
	else
		snprintf(to, MAX_TEXT, "/acme.%s.v%u.%sService%u/", PICK(teams, team),
			1 + number % 3, PICK(nouns, noun), number);
}

// A request that the route's text covers.
static void request_path(char *to, uint32_t i, bool is_regex, struct rand *r)
{
	uint32_t team = i, noun = i / 16, number = i / 256;
	if (is_regex)
		snprintf(to, MAX_TEXT, "/v1/%s-%u/tenant%u/%ss/%u", PICK(teams, team), number,
			(unsigned)rand_below(r, 100000), PICK(nouns, noun),
			(unsigned)rand_below(r, 1000000));
	else
		snprintf(to, MAX_TEXT, "/acme.%s.v%u.%sService%u/%s%s", PICK(teams, team),
			1 + number % 3, PICK(nouns, noun), number, PICK(methods, rand_below(r, 6)),
			PICK(nouns, rand_below(r, 16)));
}

void workload_init(struct workload *w, uint32_t n_routes, uint32_t regex_percent)
{
	struct rand r;
	rand_init(&r, n_routes + regex_percent);
	*w = (struct workload){.n_routes = n_routes, .n_paths = 1024};
	while (w->n_paths < n_routes && w->n_paths < MAX_PATHS)
		w->n_paths *= 2;
	w->routes = calloc(n_routes, sizeof(w->routes[0]));
	w->paths = calloc(w->n_paths, sizeof(w->paths[0]));
	uint32_t *order = calloc(n_routes, sizeof(*order)); // in which the routes are listed
	CHECK(w->routes && w->paths && order);
	char text[MAX_TEXT];
	for (uint32_t i = 0; i < n_routes; i++) {
		uint32_t k = (uint32_t)rand_below(&r, i + 1);
		order[i] = order[k];
		order[k] = i;
	}
	uint32_t every = regex_percent ? 100 / regex_percent : 0;
	for (uint32_t i = 0; i < n_routes; i++) {
		bool is_regex = every && order[i] % every == every - 1;
		route_text(text, order[i], is_regex);
		w->routes[i] = (struct bench_route){keep(text), is_regex};
		w->n_regexes += is_regex;
		w->n_text += w->routes[i].text.len;
	}
	for (uint32_t i = 0; i < w->n_paths; i++) {
		uint32_t k = (uint32_t)rand_below(&r, n_routes);
		request_path(text, order[k], w->routes[k].is_regex, &r);
		w->paths[i] = keep(text);
	}
	free(order);
}

void workload_fini(struct workload *w)
{
	for (uint32_t i = 0; i < w->n_routes; i++)
		free((void *)(uintptr_t)w->routes[i].text.p);
	for (uint32_t i = 0; i < w->n_paths; i++)
		free((void *)(uintptr_t)w->paths[i].p);
	free(w->routes);
	free(w->paths);
}
