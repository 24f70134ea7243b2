// SPDX-License-Identifier: Apache-2.0
// Frontends of a running daemon and of a newer shunt.yaml: which is which, and what of it can
// change.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_rows.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD                                                                                       \
	"eal: [--in-memory]\nworkers: [0]\nports:\n"                                               \
	"  - {device: net_a, addresses: [10.81.0.10/24]}\nfrontends:\n"
#define WEB "  - {name: web, address: 10.81.0.10, port: 80, target: web}\n"
#define API "  - {name: api, address: 10.81.0.10, port: 81, target: api}\n"
#define OWN "  - {name: own, address: 10.81.0.10, port: 82}\n" // its Listener says the rest

static struct config *load(const char *text)
{
	char path[] = "/tmp/shunt-rows-XXXXXX";
	int fd = mkstemp(path);
	struct lb_err err = {""};
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	struct config *c = config_load(path, &err);
	unlink(path);
	assert_string_equal(err.text, "");
	return c;
}

static struct config *run(const char *text)
{
	struct config *c = load(text);
	struct lb_err err = {""};
	assert_int_equal(config_rows_reserve(c, &err), 0);
	return c;
}

static struct config_rows_plan plan;
static char changed[1024], fixed[1024];

static void note(void *ctx, const char *field, bool needs_restart)
{
	char *to = needs_restart ? fixed : changed;
	size_t len = strlen(to);
	snprintf(to + len, sizeof(changed) - len, "%s%s", len ? " " : "", field);
}

static void compare(const struct config *running, const char *text)
{
	struct config *new = load(text);
	changed[0] = fixed[0] = 0;
	config_rows_plan_fini(&plan);
	assert_int_equal(config_rows_plan(&plan, running, new, note, NULL), 0);
	config_free(new);
}

static int forget(void **state)
{
	config_rows_plan_fini(&plan);
	plan = (struct config_rows_plan){.n = 0};
	return 0;
}

static void places_are_reserved_behind_the_frontends_of_the_file(void **state)
{
	struct config *c = run(HEAD WEB API);
	assert_int_equal(c->n_frontends, 2 + 16);
	assert_int_equal(config_n_serving(c), 2);
	assert_true(config_serves(c, 1));
	assert_false(config_serves(c, 2));
	assert_int_equal(c->n_chain_places, 0);
	assert_int_equal(config_find_frontend(c, "api", &(struct lb_err){""}), 1);
	assert_true(config_find_frontend(c, "", &(struct lb_err){""}) < 0);
	config_free(c);
	c = run(HEAD WEB);
	assert_int_equal(config_find_frontend(c, NULL, &(struct lb_err){""}), 0);
	config_free(c);
}

// The one of Listeners by wildcard stays the last.
static void places_are_reserved_before_the_frontend_of_listeners(void **state)
{
	struct config *c = run(HEAD WEB "vips: [{prefix: 10.9.0.0/24}]\nlisteners: wildcard\n");
	assert_int_equal(config_by_listeners(c), 17);
	assert_int_equal(c->n_frontends, 18);
	assert_int_equal(c->n_chain_places, 1024);
	assert_int_equal(c->n_vip_places, 1024);
	compare(c, HEAD WEB "vips: [{prefix: 10.9.0.0/24}]\nlisteners: wildcard\n");
	assert_false(plan.is_any);
	config_free(c);
}

// OPS-323
static void ops_323_frontends_are_known_by_their_names(void **state)
{
	struct config *c = run(HEAD WEB API OWN);
	compare(c, HEAD OWN API WEB);
	assert_false(plan.is_any);
	assert_string_equal(changed, "");
	compare(c, HEAD API "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n" OWN);
	assert_true(plan.is_any);
	assert_string_equal(changed, "frontends[1] frontends[web]");
	assert_int_equal(plan.entries[0].change, CONFIG_CHANGE_NONE);
	assert_int_equal(plan.entries[1].change, CONFIG_CHANGE_NEW);
	assert_int_equal(plan.entries[1].row, 3); // the first spare one
	assert_true(plan.goes[0] && !plan.goes[1] && !plan.goes[2]);
	compare(c, HEAD OWN WEB
		"  - {name: api, address: 10.81.0.10, port: 89, target: api, authority: x}\n");
	assert_string_equal(changed, "frontends[2].port frontends[2].authority");
	assert_int_equal(plan.entries[2].change, CONFIG_CHANGE_FIELDS);
	assert_int_equal(plan.entries[2].row, 1);
	assert_string_equal(fixed, "");
	config_free(c);
}

// OPS-326
static void ops_326_what_would_need_a_restart_is_named_and_the_rest_can_change(void **state)
{
	static const struct {
		const char *text, *changed, *fixed;
	} rows[] = {
		{HEAD WEB API "  - {name: own, address: 10.81.0.10, port: 83}\n", "",
			"frontends[2].port"},
		{HEAD WEB API "  - {name: own, address: 10.81.0.10, port: 82, listener: x}\n", "",
			"frontends[2].listener"},
		{HEAD WEB API "  - {name: own, address: 10.81.0.10, port: 82, target: x}\n", "",
			"frontends[2].target"},
		{HEAD WEB API
			"  - {name: own, address: 10.81.0.10, port: 82, reply_details: true}\n",
			"frontends[2].reply_details", ""},
		{HEAD WEB OWN "  - {name: api, address: 10.81.0.10, port: 84, target: api, "
			      "proxy_protocol: {allow: [10.0.0.0/8]}}\n",
			"", "frontends[2].port frontends[2].proxy_protocol"},
		{HEAD API OWN "  - {name: web, address: 10.81.0.10, port: 85, target: web}\n"
			      "  - {name: b, address: 10.81.0.10, port: 86, target: b, "
			      "proxy_protocol: {allow: [10.0.0.0/8]}}\n",
			"frontends[2].port", "frontends[3]"},
	};
	struct config *c = run(HEAD WEB API OWN);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		compare(c, rows[i].text);
		assert_string_equal(changed, rows[i].changed);
		assert_string_equal(fixed, rows[i].fixed);
	}
	config_free(c);
	// Memory for chains, and for headers, is there if somebody had any at the start.
	c = run(HEAD WEB);
	compare(c, HEAD WEB OWN);
	assert_string_equal(fixed, "frontends[1]");
	assert_false(plan.is_any);
	config_free(c);
	c = run(HEAD OWN "  - {name: h, address: 10.81.0.10, port: 83, target: b, "
			 "proxy_protocol: {allow: [10.0.0.0/8]}}\n");
	compare(c, HEAD OWN "  - {name: more, address: 10.81.0.10, port: 84, "
			    "proxy_protocol: {allow: [10.0.0.0/8]}}\n");
	assert_string_equal(changed, "frontends[1] frontends[h]");
	config_free(c);
}

// OPS-326
static void ops_326_beyond_the_places_a_new_one_needs_a_restart(void **state)
{
	char text[4096] = HEAD WEB;
	struct config *c = run(HEAD WEB);
	for (int i = 0; i < 17; i++)
		sprintf(text + strlen(text),
			"  - {name: n%d, address: 10.81.0.10, port: %d, target: web}\n", i,
			1000 + i);
	compare(c, text);
	assert_string_equal(fixed, "frontends[17]");
	assert_int_equal(plan.entries[16].row, 16);
	config_free(c);
}

// What the file said last counts, though the one before serves still.
static void what_has_changed_already_is_compared_with_that(void **state)
{
	struct config *c = run(HEAD WEB);
	struct config *newer =
		load(HEAD "  - {name: web, address: 10.81.0.10, port: 80, target: b}\n");
	c->frontends[0].next = config_frontend_take(newer, 0);
	config_free(newer);
	compare(c, HEAD "  - {name: web, address: 10.81.0.10, port: 80, target: b}\n");
	assert_false(plan.is_any);
	compare(c, HEAD WEB);
	assert_string_equal(changed, "frontends[0].target");
	config_free(c);
}

static void a_row_takes_what_another_file_has(void **state)
{
	struct config *c = run(HEAD WEB);
	struct config *newer =
		load(HEAD "  - {name: web, address: 10.81.0.10, port: 90, target: b, "
			  "tls: {certificate: c, sni: [a.test, b.test]}, "
			  "proxy_protocol: {allow: [10.0.0.0/8], v1: false}}\n" API);
	const char *name = c->frontends[0].name, *address = c->frontends[0].address;
	c->frontends[0].since_ns = 7;
	config_rows_put(c, 0, config_frontend_take(newer, 0));
	config_rows_put(c, 1, config_frontend_take(newer, 1));
	config_free(newer);
	assert_ptr_equal(c->frontends[0].name, name); // others have it
	assert_int_equal(c->frontends[0].since_ns, 7); // OPS-307: it is the same
	assert_ptr_not_equal(c->frontends[0].address, address);
	assert_int_equal(c->frontends[0].port, 90);
	assert_string_equal(c->frontends[0].tls->sni[1], "b.test");
	assert_string_equal(c->frontends[1].name, "api");
	assert_int_equal(config_n_serving(c), 2);
	c->frontends[1].row = CONFIG_ROW_SPARE;
	name = c->frontends[1].name;
	newer = load(HEAD WEB API "  - {name: x, address: 10.81.0.10, port: 99, target: x}\n");
	config_rows_put(c, 1, config_frontend_take(newer, 2));
	config_free(newer);
	assert_string_equal(name, "api"); // for the life of the configuration
	config_free(c);
}

#define CASE(test) cmocka_unit_test_teardown(test, forget)

RUN_SUITE("conf/config_rows", CASE(places_are_reserved_behind_the_frontends_of_the_file),
	CASE(places_are_reserved_before_the_frontend_of_listeners),
	CASE(ops_323_frontends_are_known_by_their_names),
	CASE(ops_326_what_would_need_a_restart_is_named_and_the_rest_can_change),
	CASE(ops_326_beyond_the_places_a_new_one_needs_a_restart),
	CASE(what_has_changed_already_is_compared_with_that),
	CASE(a_row_takes_what_another_file_has))
