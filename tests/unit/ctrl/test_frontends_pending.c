// SPDX-License-Identifier: Apache-2.0
// Frontends that a reload of shunt.yaml gave another target or certificates, while these are not
// there: what workers read, and what another reload may say meanwhile.
#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/live_frontend.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/reload_world.h"

#include <stdio.h>
#include <string.h>

// As `show info` has it.
static const char *waiting(const struct world *w)
{
	const char *here = assembler_frontend_waiting(w->assembler, 0);
	return *here ? here : frontends_waiting(w->frontends, 0);
}

static const char *refused(const struct world *w)
{
	const char *here = assembler_frontend_refusal(w->assembler, 0);
	return *here ? here : frontends_refused(w->frontends, 0);
}

// OPS-324
static void ops_324_another_target_serves_once_it_is_complete(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	uint64_t generation = row(&w, 0)->generation;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other, "
			    "authority: a.test}\n");
	assert_changed(&w, "frontends[0].port, frontends[0].target, frontends[0].authority");
	pass(&w, 10 * NS_PER_SECOND);
	assert_ptr_equal(row(&w, 0)->routes, before);
	assert_null(row(&w, 0)->live);
	assert_string_equal(waiting(&w), "listener other");
	assert_int_equal(w.config->frontends[0].port, 80);
	hold_other(&w);
	assert_ptr_not_equal(row(&w, 0)->routes, before);
	assert_non_null(row(&w, 0)->live);
	assert_int_equal(row(&w, 0)->live->conf.port, 90);
	assert_string_equal(row(&w, 0)->live->conf.authority, "a.test");
	assert_true(row(&w, 0)->generation > generation); // who came to the other one leaves
	assert_int_equal(w.config->frontends[0].port, 90);
	assert_string_equal(waiting(&w), "");
	tear_down(&w);
}

// OPS-304, OPS-324
static void ops_324_one_that_never_comes_can_be_taken_back(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	pass(&w, 60 * NS_PER_SECOND);
	assert_string_not_equal(refused(&w), ""); // there is no such listener
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_changed(&w, "");
	assert_string_equal(w.report.pending.text, "web");
	again(&w, FRONTENDS WEB);
	assert_changed(&w, "frontends[0].target");
	assert_string_equal(w.report.pending.text, "");
	assert_string_equal(refused(&w), "");
	assert_string_equal(waiting(&w), "");
	assert_ptr_equal(row(&w, 0)->routes, before);
	hold_endpoint(&w.deps, "e-blue", 3); // it is heard of as before
	say(&w.deps, &res_type_endpoints);
	pass(&w, NS_PER_SECOND);
	assert_ptr_equal(row(&w, 0)->routes, before);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	again(&w, HEAD "vips: [{prefix: 10.9.0.0/24}]\nfrontends:\n"
		       "  - {name: a, address: 10.81.0.10, port: 80, target: web}\n");
	assert_string_equal(w.report.changed.text, "vips, frontends[0], frontends[web]");
	tear_down(&w);
}

struct endpoints_seen {
	unsigned n, last; // of 10.0.0.x
};

static void see_endpoint(void *ctx, const struct assembler_endpoint_info *i)
{
	struct endpoints_seen *seen = ctx;
	seen->n++;
	seen->last = ip_to_v4(&i->addresses[0].ip) & 255;
}

// The only one of the cluster, as its last number.
static unsigned endpoint_of(const struct world *w, const char *cluster)
{
	struct endpoints_seen seen = {0};
	assembler_each_endpoint(w->assembler, cluster, see_endpoint, &seen);
	assert_int_equal(seen.n, 1);
	return seen.last;
}

static bool has_cluster(const struct world *w, const char *name)
{
	struct assembler_cluster_info info;
	return assembler_find_cluster(w->assembler, name, &info);
}

static bool has_ended(struct world *w, const void *cluster)
{
	return !has_cluster(w, cluster);
}

static void await_end(struct world *w, const char *cluster)
{
	assert_true(passes_until(w, has_ended, cluster));
}

static void move_blue(struct world *w, int n)
{
	hold_endpoint(&w->deps, "e-blue", n);
	say(&w->deps, &res_type_endpoints);
	pass(w, NS_PER_SECOND);
}

#define MOVED "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n"
#define SECURE                                                                                     \
	"  - {name: web, address: 10.81.0.10, port: 90, target: other, "                           \
	"tls: {certificate: c}}\n"
#define AT_80 "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n"

// All of it, for whoever looks and whoever connects.
static void assert_as_before(struct world *w, const struct lb_route_table *routes, int n)
{
	assert_ptr_equal(row(w, 0)->routes, routes);
	assert_null(row(w, 0)->live);
	assert_int_equal(w->config->frontends[0].port, 80);
	assert_string_equal(w->config->frontends[0].target, "web");
	assert_string_equal(assembler_frontend_error(w->assembler, 0), "");
	move_blue(w, n);
	assert_int_equal(endpoint_of(w, "blue"), (unsigned)n);
}

// Turn by turn: no snapshot has a part of it.
static void assert_changes_at_once(struct world *w, const struct lb_route_table *before)
{
	for (int i = 0; i < 300 && row(w, 0)->routes == before; i++) {
		assert_null(row(w, 0)->live);
		assert_int_equal(row(w, 0)->credential, LB_PLAIN_TEXT);
		pass(w, TURN_NS);
	}
	assert_ptr_not_equal(row(w, 0)->routes, before);
	assert_int_equal(row(w, 0)->live->conf.port, 90);
	assert_int_equal(w->config->frontends[0].port, 90);
	assert_string_equal(w->config->frontends[0].target, "other");
}

// OPS-302, OPS-304, OPS-305
static void ops_302_one_whose_routes_are_compiled_is_wholly_what_it_was(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.holds_routes = true;
	again(&w, FRONTENDS MOVED);
	assert_changed(&w, "frontends[0].port, frontends[0].target");
	assert_string_equal(w.report.pending.text, "web");
	hold_other(&w);
	assert_string_equal(waiting(&w), "compiling routes");
	assert_as_before(&w, before, 3);
	pass(&w, 10 * NS_PER_SECOND);
	assert_as_before(&w, before, 4);
	assert_refused(&w, FRONTENDS MOVED AT_80, "80 is still that of \"web\", until its target");
	fake.holds_routes = false;
	assert_changes_at_once(&w, before);
	again(&w, FRONTENDS MOVED AT_80);
	assert_changed(&w, "frontends[1]");
	assert_string_equal(w.report.pending.text, "");
	assert_int_equal(row(&w, 1)->live->conf.port, 80);
	settle(&w);
	move_blue(&w, 6); // which "new" has now
	assert_int_equal(endpoint_of(&w, "blue"), 6);
	tear_down(&w);
}

// OPS-302, OPS-304: TLS comes with it, too.
static void ops_302_one_whose_target_is_made_waits_for_its_certificates(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.has_tls = fake.tls_is_new = true;
	again(&w, FRONTENDS SECURE);
	hold_other(&w);
	assert_string_equal(waiting(&w), "certificates");
	assert_as_before(&w, before, 3);
	again(&w, FRONTENDS SECURE API);
	assert_changed(&w, "frontends[1]");
	assert_string_equal(w.report.pending.text, "web");
	fake.tls_is_new = false;
	assert_changes_at_once(&w, before);
	assert_int_equal(row(&w, 0)->credential, TLS_ID);
	assert_string_equal(waiting(&w), "");
	tear_down(&w);
}

// OPS-303: nobody is refused for it but what was to be, and it is tried again.
static void ops_303_what_is_refused_leaves_what_serves_and_is_told(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.routes_error = "too many states";
	again(&w, FRONTENDS MOVED);
	hold_other(&w);
	assert_string_equal(refused(&w), "too many states");
	assert_as_before(&w, before, 3);
	again(&w, FRONTENDS MOVED);
	assert_changed(&w, "");
	assert_string_equal(w.report.pending.text, "web");
	assert_refused(&w, FRONTENDS MOVED AT_80, "80 is still that of \"web\", until its target");
	assert_as_before(&w, before, 4);
	fake.routes_error = "";
	assert_changes_at_once(&w, before);
	assert_string_equal(refused(&w), "");
	tear_down(&w);
}

#define BAD_ROUTES(name) "{'name':'" name "','virtualHosts':[{}]}"

// OPS-302
static void ops_302_what_is_waited_for_is_of_what_it_is_to_be(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	hold_cluster(&w.deps, "red", "e-red"); // which the server lacks
	hold_routes(&w.deps, "rc", "red", NULL);
	settle(&w);
	assert_string_equal(waiting(&w), "endpoints e-red");
	again(&w, FRONTENDS MOVED);
	assert_string_equal(waiting(&w), "listener other");
	fake.routes_error = "too many states";
	hold_other(&w);
	assert_string_equal(refused(&w), "too many states");
	assert_string_equal(waiting(&w), "");
	again(&w, FRONTENDS WEB);
	assert_string_equal(waiting(&w), "endpoints e-red");
	tear_down(&w);
}

// OPS-303
static void ops_303_a_refusal_is_told_of_what_it_is_to_be(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.routes_error = "too many states";
	hold_routes(&w.deps, "rc", "blue", "blue", NULL);
	settle(&w);
	assert_string_equal(refused(&w), "too many states");
	again(&w, FRONTENDS MOVED);
	assert_string_equal(refused(&w), "");
	again(&w, FRONTENDS WEB);
	assert_string_equal(refused(&w), "too many states");
	tear_down(&w);
}

// OPS-303
static void ops_303_a_refused_resource_is_told_of_what_it_is_to_be(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	hold(&w.deps, &res_type_route_config, "rc", BAD_ROUTES("rc"));
	settle(&w);
	assert_non_null(strstr(refused(&w), "no domains"));
	fake.has_tls = fake.tls_is_new = true;
	again(&w, FRONTENDS SECURE);
	hold_other(&w);
	assert_string_equal(refused(&w), "");
	hold(&w.deps, &res_type_route_config, "rc2", BAD_ROUTES("rc2"));
	hold_routes(&w.deps, "rc", "blue", NULL);
	settle(&w);
	assert_non_null(strstr(refused(&w), "no domains"));
	assert_string_equal(waiting(&w), "certificates");
	tear_down(&w);
}

// OPS-303, OPS-324: nothing of it is left.
static void ops_303_what_is_refused_is_taken_back(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.routes_error = "too many states";
	again(&w, FRONTENDS MOVED);
	hold_other(&w);
	assert_true(has_cluster(&w, "green"));
	again(&w, FRONTENDS WEB);
	assert_changed(&w, "frontends[0].port, frontends[0].target");
	assert_string_equal(w.report.pending.text, "");
	assert_string_equal(refused(&w), "");
	await_end(&w, "green");
	assert_ptr_equal(row(&w, 0)->routes, before);
	assert_int_equal(row(&w, 0)->live->conf.port, 80);
	move_blue(&w, 3);
	assert_int_equal(endpoint_of(&w, "blue"), 3);
	tear_down(&w);
}

// OPS-303, OPS-325
static void ops_303_one_that_is_removed_meanwhile_goes_as_what_it_is(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.holds_routes = true;
	again(&w, FRONTENDS MOVED);
	hold_other(&w);
	counter_set_to(&w.link->counters.frontend_uses[0], 1);
	again(&w, FRONTENDS API);
	assert_changed(&w, "frontends[0], frontends[web]");
	assert_true(row(&w, 0)->live->is_left);
	assert_int_equal(row(&w, 0)->live->conf.port, 80);
	assert_ptr_equal(row(&w, 0)->routes, before);
	fake.holds_routes = false;
	await_end(&w, "green");
	tear_down(&w);
}

// OPS-326: who waits for its target or certificates is still at its address.
static void ops_326_nobody_comes_to_where_another_waits_to_leave(void **state)
{
	static const char *const held = "10.81.0.10:80 is still that of \"web\", until its target";
	struct world w;
	set_up_web(&w, FRONTENDS WEB API);
	// With another target one goes later than the other.
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 81, target: other}\n"
			  "  - {name: api, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n" API
			  "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	fake.has_tls = fake.tls_is_new = true;
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: web, "
			  "tls: {certificate: c}}\n" API
			  "  - {name: new, address: 10.81.0.10, port: 80, target: web}\n",
		held);
	// Else they go at once, and in one snapshot.
	uint64_t version = lb_slot_current(w.slot)->version;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 81, target: web}\n"
			    "  - {name: api, address: 10.81.0.10, port: 80, target: web}\n");
	assert_changed(&w, "frontends[0].port, frontends[1].port");
	assert_int_equal(lb_slot_current(w.slot)->version, version + 1);
	assert_int_equal(row(&w, 0)->live->conf.port, 81);
	assert_int_equal(row(&w, 1)->live->conf.port, 80);
	tear_down(&w);
}

// OPS-305, OPS-326: it was accepted by a reload before, and goes there still.
static void ops_326_nobody_comes_to_where_another_waits_to_go(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 90, target: other}\n");
	assert_changed(&w, "frontends[0].port, frontends[0].target");
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 91, target: other, "
			  "proxy_protocol: {allow: [10.0.0.0/8]}}\n"
			  "  - {name: new, address: 10.81.0.10, port: 90, target: web}\n",
		"10.81.0.10:90 is the next address of \"web\", once its target");
	hold_other(&w);
	assert_int_equal(row(&w, 0)->live->conf.port, 90);
	tear_down(&w);
}

// OPS-326
static void ops_326_a_prefix_stays_while_one_waits_to_leave_it(void **state)
{
	struct world w;
	set_up_web(&w, HEAD VIPS
		"frontends:\n  - {name: web, address: 10.9.0.1, port: 80, target: web}\n");
	assert_refused(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: x}\n",
		"vips: 10.9.0.1 is still the address of \"web\", until its target");
	again(&w, HEAD VIPS "frontends:\n"
			    "  - {name: web, address: 10.9.0.2, port: 80, target: other}\n");
	assert_changed(&w, "frontends[0].address, frontends[0].target");
	hold_other(&w);
	assert_int_equal(ip_to_v4(&row(&w, 0)->live->conf.address), 0x0a090002);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_changed(&w, "vips, frontends[0].address");
	tear_down(&w);
}

// OPS-305, OPS-326: that was accepted with the prefix; what the file says of it now needs a
// restart.
static void ops_326_a_prefix_stays_while_one_waits_to_come_to_it(void **state)
{
	struct world w;
	set_up_web(&w, HEAD VIPS "frontends:\n" WEB);
	again(&w, HEAD VIPS "frontends:\n"
			    "  - {name: web, address: 10.9.0.2, port: 80, target: other}\n");
	assert_changed(&w, "frontends[0].address, frontends[0].target");
	assert_refused(&w,
		FRONTENDS "  - {name: web, address: 10.81.0.10, port: 91, target: other, "
			  "proxy_protocol: {allow: [10.0.0.0/8]}}\n",
		"vips: 10.9.0.2 is the next address of \"web\", once its target");
	tear_down(&w);
}

// OPS-324: its end may have the one that follows told of something, without memory for a request.
static void ops_324_a_source_is_nobodys_any_more_when_it_ends(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	hold_other(&w);
	assert_null(w.config->frontends[0].next);
	assert_int_equal(fake.n_freed_amid_use, 0);
	tear_down(&w);
}

// OPS-324
static void ops_324_certificates_that_fail_later_leave_what_serves(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.has_tls = fake.tls_is_new = true; // longer than a reload waits
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: web, "
			    "tls: {certificate: c}}\n");
	assert_changed(&w, "frontends[0].tls");
	assert_int_equal(row(&w, 0)->credential, LB_PLAIN_TEXT);
	fake.tls_is_new = false;
	fake.tls_error = "there is no key";
	pass(&w, NS_PER_SECOND);
	assert_int_equal(row(&w, 0)->credential, LB_PLAIN_TEXT);
	assert_string_equal(refused(&w), "there is no key");
	fake.tls_error = "";
	pass(&w, NS_PER_SECOND);
	assert_int_equal(row(&w, 0)->credential, TLS_ID);
	assert_string_equal(refused(&w), "");
	tear_down(&w);
}

// OPS-324: of what stays as it is nothing is asked, though a start would fail likewise.
static void ops_324_certificates_that_stay_hold_no_other_change_up(void **state)
{
#define WEB_BY(certificate, more)                                                                  \
	FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, tls: {certificate: " certificate \
		  "}, " more "}\n"
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.has_tls = true;
	again(&w, WEB_BY("c", "target: web"));
	assert_int_equal(row(&w, 0)->credential, TLS_ID);
	fake.tls_error = "there is no key";
	again(&w, WEB_BY("c", "target: web, wait_for_ready: always"));
	assert_changed(&w, "frontends[0].wait_for_ready");
	assert_int_equal(row(&w, 0)->live->conf.wait_for_ready, LB_WAIT_ALWAYS);
	again(&w, WEB_BY("c", "target: other"));
	assert_string_equal(waiting(&w), "listener other");
	hold_other(&w);
	assert_string_equal(w.config->frontends[0].target, "other");
	assert_int_equal(row(&w, 0)->credential, TLS_ID);
	assert_refused(&w, WEB_BY("d", "target: other"), "frontends[0]: tls: there is no key");
	tear_down(&w);
#undef WEB_BY
}

// OPS-324: what has come and is there no more serves nobody.
static void ops_324_a_target_that_goes_while_certificates_are_made_is_waited_for(void **state)
{
	struct world w;
	set_up_web_of(&w, FRONTENDS WEB, "\"fail_on_data_errors\""); // heeds deletions
	const struct lb_route_table *before = row(&w, 0)->routes;
	fake.has_tls = fake.tls_is_new = true;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other, "
			    "tls: {certificate: c}}\n");
	hold_other(&w);
	drop(&w.deps, &res_type_listener, "other");
	say(&w.deps, &res_type_listener);
	pass(&w, NS_PER_SECOND);
	assert_string_not_equal(refused(&w), "");
	fake.tls_is_new = false;
	pass(&w, NS_PER_SECOND);
	assert_string_equal(w.config->frontends[0].target, "web");
	assert_ptr_equal(row(&w, 0)->routes, before);
	hold_other(&w);
	assert_string_equal(w.config->frontends[0].target, "other");
	tear_down(&w);
}

static bool has_vip(const struct world *w, const char *ip, uint16_t port)
{
	const struct lb_vips *v = lb_slot_current(w->slot)->vips;
	char text[IP_PORT_TEXT_MAX];
	for (uint32_t i = 0; v && i < v->n; i++) {
		const struct lb_vip *vip = lb_vips_at(v, i);
		if (vip && vip->at.port == port && strcmp(ip_print(&vip->at.ip, text), ip) == 0)
			return true;
	}
	return false;
}

// OPS-305, OPS-324: Listeners by wildcard come to no address that one waits to go to, and to those
// that it has left.
static void ops_324_listeners_come_to_what_one_has_left_some_time_later(void **state)
{
#define ALL HEAD VIPS "listeners: wildcard\nfrontends:\n"
	struct world w;
	set_up_web(&w, ALL "  - {name: web, address: 10.9.0.1, port: 80, target: web}\n");
	again(&w, ALL "  - {name: web, address: 10.9.0.2, port: 80, target: other}\n");
	assert_changed(&w, "frontends[0].address, frontends[0].target");
	hold_socket(&w, "before", "10.9.0.1", 80);
	hold_socket(&w, "after", "10.9.0.2", 80);
	hold_socket(&w, "beside", "10.9.0.3", 80);
	settle(&w);
	assert_true(has_vip(&w, "10.9.0.3", 80));
	assert_false(has_vip(&w, "10.9.0.1", 80) || has_vip(&w, "10.9.0.2", 80));
	assert_says(&w, "before", "10.9.0.1:80 is the address of frontend \"web\"");
	assert_says(&w, "after", "10.9.0.2:80 is the next address of frontend \"web\"");
	hold_other(&w);
	assert_int_equal(ip_to_v4(&row(&w, 0)->live->conf.address), 0x0a090002);
	assert_true(has_vip(&w, "10.9.0.1", 80));
	assert_false(has_vip(&w, "10.9.0.2", 80));
	tear_down(&w);
#undef ALL
}

// OPS-324
static void ops_324_one_without_memory_is_tried_again(void **state)
{
	struct world w;
	set_up_web(&w, FRONTENDS WEB);
	fake.n_lacking = 2;
	again(&w, FRONTENDS "  - {name: web, address: 10.81.0.10, port: 80, target: other}\n");
	assert_int_equal(fake.n_lacking, 0);
	hold_other(&w);
	assert_string_equal(w.config->frontends[0].target, "other");
	tear_down(&w);
}

#define CASE(test) cmocka_unit_test(test)

RUN_SUITE("ctrl/frontends_pending", CASE(ops_324_another_target_serves_once_it_is_complete),
	CASE(ops_324_one_that_never_comes_can_be_taken_back),
	CASE(ops_302_one_whose_routes_are_compiled_is_wholly_what_it_was),
	CASE(ops_302_one_whose_target_is_made_waits_for_its_certificates),
	CASE(ops_303_what_is_refused_leaves_what_serves_and_is_told),
	CASE(ops_302_what_is_waited_for_is_of_what_it_is_to_be),
	CASE(ops_303_a_refusal_is_told_of_what_it_is_to_be),
	CASE(ops_303_a_refused_resource_is_told_of_what_it_is_to_be),
	CASE(ops_303_what_is_refused_is_taken_back),
	CASE(ops_303_one_that_is_removed_meanwhile_goes_as_what_it_is),
	CASE(ops_326_nobody_comes_to_where_another_waits_to_leave),
	CASE(ops_326_nobody_comes_to_where_another_waits_to_go),
	CASE(ops_326_a_prefix_stays_while_one_waits_to_leave_it),
	CASE(ops_326_a_prefix_stays_while_one_waits_to_come_to_it),
	CASE(ops_324_a_source_is_nobodys_any_more_when_it_ends),
	CASE(ops_324_certificates_that_fail_later_leave_what_serves),
	CASE(ops_324_certificates_that_stay_hold_no_other_change_up),
	CASE(ops_324_a_target_that_goes_while_certificates_are_made_is_waited_for),
	CASE(ops_324_listeners_come_to_what_one_has_left_some_time_later),
	CASE(ops_324_one_without_memory_is_tried_again))
