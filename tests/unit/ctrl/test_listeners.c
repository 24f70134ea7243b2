// SPDX-License-Identifier: Apache-2.0
// Socket Listeners from an xDS server to the table of addresses and chains that workers read.
#include "ctrl/assemble/assemble.h"
#include "ctrl/base/show_listener.h"
#include "ctrl/conf/config.h"
#include "ctrl/frontends.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/chain_set.h"
#include "lb/pick/link.h"
#include "lb/route/chain_match.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "lb/vips.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/frontends_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DRAIN_S 5
#define SHOWN_MAX 2048

// Of shunt.yaml: "web" at 10.9.0.99:80 names the Listener "named"; the rest is in 10.9.0.0/24.
static struct {
	struct config config;
	struct config_frontend list[2];
	struct config_vip vips[2];
	char *names[2];
	unsigned n_unsecured; // so many chains find no id for their TLS contexts
} own;

bool __wrap_assembler_secure(struct assembler *, uint32_t chain, const struct res_tls *);
bool __real_assembler_secure(struct assembler *, uint32_t chain, const struct res_tls *);

bool __wrap_assembler_secure(struct assembler *a, uint32_t chain, const struct res_tls *tls)
{
	if (!own.n_unsecured)
		return __real_assembler_secure(a, chain, tls);
	own.n_unsecured--;
	return false;
}

static void set_up(struct world *w, unsigned n_chains, unsigned n_addresses)
{
	*w = (struct world){.config = &own.config, .names = own.names};
	log_set_level(LOG_LEVEL_ERROR);
	deps_init(&w->deps, "", NULL);
	own.list[0] = (struct config_frontend){.name = "web",
		.address_ip = ip_from_v4(0x0a090063),
		.port = 80,
		.listener = "named"};
	own.list[1] = (struct config_frontend){.name = "listeners", .by_listeners = true};
	own.names[0] = "named";
	own.vips[0].range = (struct ip_prefix){ip_from_v4(0x0a090000), 120};
	own.config = (struct config){.frontends = own.list,
		.n_frontends = 2,
		.vips = own.vips,
		.n_vips = 1,
		.n_chain_places = n_chains,
		.n_vip_places = n_addresses,
		.listener_drain_s = DRAIN_S};
	world_start(w, 0);
}

static void tear_down(struct world *w)
{
	world_end(w);
	deps_fini(&w->deps);
}

#define HCM                                                                                        \
	"'@type':'type.googleapis.com/"                                                            \
	"envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager'"
#define ROUTER                                                                                     \
	"'httpFilters':[{'name':'router','typedConfig':{'@type':"                                  \
	"'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router'}}]"

// A socket Listener with n chains, whose routes are inline and fail: there is no cluster to wait
// for.
static void hold_socket_with(
	struct world *w, const char *name, const char *ip, const char *more, unsigned n)
{
	char json[4096], *p = json;
	p += sprintf(p,
		"{'name':'%s','address':{'socketAddress':{'address':'%s','portValue':80}},%s"
		"'filterChains':[",
		name, ip, more);
	for (unsigned i = 0; i < n; i++)
		p += sprintf(p,
			"%s{'filterChainMatch':{'sourcePorts':[%u]},'filters':[{'name':'h',"
			"'typedConfig':{" HCM ",'routeConfig':{'name':'%s'}," ROUTER "}}]}",
			i ? "," : "", i + 1, name);
	strcpy(p, "]}");
	hold(&w->deps, &res_type_listener, name, json);
}

static void hold_socket(struct world *w, const char *name, const char *ip, unsigned n)
{
	hold_socket_with(w, name, ip, "", n);
}

// With the routes "rc".
#define LAST_CHAIN                                                                                 \
	"'defaultFilterChain':{'filters':[{'name':'h','typedConfig':{" HCM                         \
	",'rds':{'configSource':{'ads':{}},'routeConfigName':'rc'}," ROUTER "}}]}"

// A Listener "a" at 10.9.0.1 whose only chain is that.
static void hold_socket_by_name(struct world *w)
{
	hold(&w->deps, &res_type_listener, "a",
		"{'name':'a','address':{'socketAddress':{'address':'10.9.0.1','portValue':80}}"
		"," LAST_CHAIN "}");
}

static void hold_refused(struct world *w, const char *name)
{
	char json[256];
	snprintf(json, sizeof(json),
		"{'name':'%s','address':{'socketAddress':{'address':'10.9.0.2','portValue':80}},"
		"'filterChains':[{}]}",
		name);
	hold(&w->deps, &res_type_listener, name, json);
}

static void say_listeners(struct world *w)
{
	pass(w, TURN_NS);
	say(&w->deps, &res_type_listener);
	pass(w, NS_PER_SECOND);
}

static void add_row(void *ctx, const struct show_listener *l)
{
	char *shown = ctx;
	size_t len = strlen(shown);
	snprintf(shown + len, SHOWN_MAX - len, "%s%s=%s", len ? " " : "", l->name, l->state);
}

// "a=serving b=outside"
static const char *states(struct world *w)
{
	static char shown[SHOWN_MAX];
	shown[0] = 0;
	frontends_each_listener(w->frontends, add_row, shown);
	return shown;
}

// How many chains the address has in the published snapshot; 0 = nobody listens there.
static unsigned chains_at(const struct world *w, uint32_t last)
{
	const struct lb_vips *v = lb_slot_current(w->slot)->vips;
	for (uint32_t i = 0; v && i < v->n; i++)
		if (lb_vips_at(v, i) && ip_to_v4(&v->list[i].at.ip) == 0x0a090000 + last)
			return v->list[i].chains->n;
	return 0;
}

// What fails requests of the chain that no other one goes before; NULL = there is no such chain.
static const char *error_of_last_chain(const struct world *w)
{
	const struct lb_snapshot *s = lb_slot_current(w->slot);
	const struct lb_chain_set *chains = s->vips->list[0].chains;
	uint32_t place = chains->places[chains->n];
	return place == LB_NO_PLACE ? NULL : lb_snapshot_frontend(s, place)->error;
}

static bool is_up(const struct world *w)
{
	return !*assembler_frontend_error(w->assembler, 1);
}

// A36-65, A36-66
static void listeners_in_vips_are_served_and_others_told(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	assert_true(asked_for(&w.deps, &res_type_listener, "*"));
	hold_socket(&w, "a", "10.9.0.1", 2);
	hold_socket(&w, "b", "10.8.0.1", 1);
	hold_listener(&w.deps, "rc");
	assert_string_equal(frontends_waiting(w.frontends, 1), "the list of listeners");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=outside web=outside");
	assert_int_equal(chains_at(&w, 1), 2);
	assert_says(&w, "b", "its address is in no prefix of vips: 10.8.0.1, port 80");
	assert_says(&w, "web", "it is not a socket listener");
	hold_socket(&w, "a", "10.9.0.2", 1);
	hold_socket(&w, "b", "10.9.0.3", 3);
	say_listeners(&w);
	assert_int_equal(chains_at(&w, 1), 0);
	assert_int_equal(chains_at(&w, 2), 1);
	assert_int_equal(chains_at(&w, 3), 3);
	tear_down(&w);
}

// A36-66, PP-09: a frontend of shunt.yaml alone says whom PROXY headers are taken from.
static void a36_66_a_listener_that_wants_proxy_headers_is_told_and_served_without(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket_with(&w, "a", "10.9.0.1",
		"'listenerFilters':[{'name':'p','typedConfig':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol'}}],",
		1);
	say_listeners(&w);
	assert_int_equal(chains_at(&w, 1), 0);
	assert_says(&w, "a", "it wants PROXY headers: only a frontend with proxy_protocol says");
	hold_socket(&w, "a", "10.9.0.1", 1);
	say_listeners(&w);
	assert_int_equal(chains_at(&w, 1), 1);
	tear_down(&w);
}

static void a36_64_one_that_is_refused_when_it_first_comes_is_told_of(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket(&w, "a", "10.9.0.1", 1);
	hold_refused(&w, "b");
	hold_refused(&w, "c");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=failing c=failing");
	assert_says(&w, "b", "there is not exactly one, an HttpConnectionManager");
	assert_true(is_up(&w)); // A36-69
	hold_socket(&w, "b", "10.9.0.2", 1);
	drop(&w.deps, &res_type_listener, "c");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=serving");
	assert_int_equal(chains_at(&w, 2), 1);
	tear_down(&w);
}

// A36-69
static void its_frontend_is_up_when_the_first_list_serves(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket_by_name(&w);
	pass(&w, NS_PER_SECOND);
	assert_false(is_up(&w));
	say_listeners(&w);
	assert_false(is_up(&w)); // its routes have not come
	assert_string_equal(states(&w), "a=waiting");
	hold(&w.deps, &res_type_route_config, "rc", "{'name':'rc'}");
	say(&w.deps, &res_type_route_config);
	pass(&w, NS_PER_SECOND);
	assert_true(is_up(&w));
	assert_string_equal(states(&w), "a=serving");
	tear_down(&w);
}

static void a36_37_a_listener_takes_effect_when_all_of_its_chains_can(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket(&w, "a", "10.9.0.1", 1);
	say_listeners(&w);
	hold_socket_with(&w, "a", "10.9.0.1", LAST_CHAIN ",", 2);
	say_listeners(&w);
	pass(&w, 10 * NS_PER_SECOND); // of the 15 s that routes may take
	assert_int_equal(chains_at(&w, 1), 1);
	assert_null(error_of_last_chain(&w));
	pass(&w, 5 * NS_PER_SECOND);
	assert_int_equal(chains_at(&w, 1), 2);
	assert_non_null(strstr(error_of_last_chain(&w), "rc"));
	hold(&w.deps, &res_type_route_config, "rc", "{'name':'rc'}");
	say(&w.deps, &res_type_route_config);
	pass(&w, NS_PER_SECOND);
	assert_string_equal(error_of_last_chain(&w), "");
	tear_down(&w);
}

// TLS-280: what it has found by then stays its own.
static void chains_without_a_tls_context_are_tried_again(void **state)
{
	struct world w;
	set_up(&w, 4, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	own.n_unsecured = 5; // both twice, and then one of them
	say_listeners(&w);
	assert_string_equal(states(&w), "a=waiting");
	assert_says(&w, "a", "no TLS context is left for all of its filter chains");
	assert_int_equal(own.n_unsecured, 1);
	pass(&w, NS_PER_SECOND);
	assert_int_equal(own.n_unsecured, 0);
	assert_int_equal(chains_at(&w, 1), 0);
	pass(&w, 2 * NS_PER_SECOND);
	assert_string_equal(states(&w), "a=serving");
	assert_int_equal(chains_at(&w, 1), 2);
	tear_down(&w);
}

// A36-67
static void who_is_first_at_an_address_keeps_it(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	say_listeners(&w);
	hold_socket(&w, "b", "10.9.0.1", 1);
	hold_socket(&w, "c", "10.9.0.99", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=failing c=failing");
	assert_int_equal(chains_at(&w, 1), 2);
	assert_says(&w, "b", "10.9.0.1:80 is the address of listener \"a\" already");
	assert_says(&w, "c", "10.9.0.99:80 is the address of frontend \"web\"");
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	assert_int_equal(chains_at(&w, 1), 1);
	tear_down(&w);
}

// A36-68, though deletions are kept elsewhere
static void what_is_deleted_is_not_served_and_its_clients_have_time(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	say_listeners(&w);
	uint64_t before = lb_slot_current(w.slot)->n_generations;
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=leaving");
	assert_int_equal(chains_at(&w, 1), 0);
	assert_true(lb_slot_current(w.slot)->n_generations >= before + 2);
	pass(&w, (DRAIN_S + 3) * NS_PER_SECOND);
	assert_string_equal(states(&w), "");
	hold_socket(&w, "a", "10.9.0.1", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving");
	tear_down(&w);
}

static uint64_t generation(const struct world *w, uint32_t place)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), place)->generation;
}

// Who was sent away goes on leaving, and who comes is not sent away.
static void a36_75_what_comes_back_is_served_at_once_where_it_was(void **state)
{
	struct world w;
	set_up(&w, 3, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	say_listeners(&w);
	uint32_t place = lb_vips_at(lb_slot_current(w.slot)->vips, 0)->chains->places[0];
	uint64_t first = generation(&w, place);
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=leaving");
	uint64_t second = generation(&w, place);
	assert_true(second > first);
	hold_socket(&w, "a", "10.9.0.1", 2);
	hold_socket(&w, "b", "10.9.0.2", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=serving");
	assert_int_equal(chains_at(&w, 1), 2);
	assert_int_equal(lb_vips_at(lb_slot_current(w.slot)->vips, 0)->chains->places[0], place);
	pass(&w, (DRAIN_S + 3) * NS_PER_SECOND);
	assert_string_equal(states(&w), "a=serving b=serving");
	assert_int_equal(generation(&w, place), second);
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	assert_string_equal(states(&w), "a=leaving b=serving");
	pass(&w, (DRAIN_S + 3) * NS_PER_SECOND);
	assert_string_equal(states(&w), "b=serving");
	tear_down(&w);
}

// Of the frontend "web".
static unsigned n_named_chains(const struct world *w)
{
	return lb_snapshot_frontend(lb_slot_current(w->slot), 0)->chains->n;
}

static void a36_75_so_it_is_after_a_version_with_a_wrong_address(void **state)
{
	struct world w;
	set_up(&w, 3, 4);
	hold_socket(&w, "named", "10.9.0.99", 2);
	say_listeners(&w);
	assert_int_equal(n_named_chains(&w), 2);
	hold_socket(&w, "named", "10.9.0.98", 2);
	say_listeners(&w);
	assert_int_equal(n_named_chains(&w), 0);
	hold_socket(&w, "named", "10.9.0.99", 2);
	say_listeners(&w);
	assert_int_equal(n_named_chains(&w), 2);
	pass(&w, (DRAIN_S + 3) * NS_PER_SECOND);
	assert_int_equal(n_named_chains(&w), 2);
	assert_string_equal(assembler_frontend_error(w.assembler, 0), "");
	tear_down(&w);
}

// A chain that is waited for keeps its place meanwhile, and no longer: its clients had their time.
static void a36_75_it_is_kept_while_another_version_waits_for_the_rest(void **state)
{
	struct world w;
	set_up(&w, 2, 4);
	hold_socket(&w, "a", "10.9.0.1", 1);
	say_listeners(&w);
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	hold_socket_with(&w, "a", "10.9.0.1", LAST_CHAIN ",", 1);
	say_listeners(&w);
	pass(&w, (DRAIN_S + 3) * NS_PER_SECOND); // of the 15 s that routes may take
	assert_string_equal(states(&w), "a=waiting");
	hold_socket(&w, "b", "10.9.0.2", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=waiting b=waiting");
	hold_socket_by_name(&w); // without the one that came back
	say_listeners(&w);
	pass(&w, 2 * NS_PER_SECOND);
	assert_string_equal(states(&w), "a=waiting b=serving");
	tear_down(&w);
}

// A36-71
static void what_is_beyond_the_addresses_waits_for_room(void **state)
{
	struct world w;
	set_up(&w, 8, 2);
	hold_socket(&w, "a", "10.9.0.1", 1);
	hold_socket(&w, "b", "10.9.0.2", 1);
	say_listeners(&w);
	hold_socket(&w, "c", "10.9.0.3", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=serving c=failing");
	assert_says(&w, "c", "10.9.0.3:80: listeners have 2 addresses already");
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w);
	assert_int_equal(chains_at(&w, 3), 1);
	tear_down(&w);
}

// A36-71
static void what_is_beyond_the_chains_waits_for_room(void **state)
{
	struct world w;
	set_up(&w, 3, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	say_listeners(&w);
	hold_socket(&w, "b", "10.9.0.2", 2);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=serving b=waiting");
	assert_says(&w, "b", "no place for more filter chains");
	assert_int_equal(chains_at(&w, 2), 0);
	drop(&w.deps, &res_type_listener, "a");
	say_listeners(&w); // its chains have their places until clients have left
	assert_string_equal(states(&w), "a=leaving b=waiting");
	pass(&w, (DRAIN_S + 4) * NS_PER_SECOND);
	assert_string_equal(states(&w), "b=serving");
	assert_int_equal(chains_at(&w, 2), 2);
	tear_down(&w);
}

// A36-69, A36-71
static void who_has_no_room_in_the_first_list_keeps_nobody_waiting(void **state)
{
	struct world w;
	set_up(&w, 1, 4);
	hold_socket(&w, "a", "10.9.0.1", 2);
	hold_socket(&w, "b", "10.9.0.2", 1);
	say_listeners(&w);
	pass(&w, 2 * NS_PER_SECOND);
	assert_string_equal(states(&w), "a=waiting b=serving");
	assert_true(is_up(&w));
	tear_down(&w);
}

// A36-67: nothing is made anew for one that stays refused.
static void who_is_refused_holds_no_address_and_costs_nothing(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	hold_socket_with(&w, "a", "10.9.0.1", // the other one is web's
		"'additionalAddresses':[{'address':{'socketAddress':{'address':'10.9.0.99',"
		"'portValue':80}}}],",
		1);
	say_listeners(&w);
	assert_says(&w, "a", "10.9.0.99:80 is the address of frontend \"web\"");
	const struct lb_vips *before = lb_slot_current(w.slot)->vips;
	pass(&w, 10 * NS_PER_SECOND);
	assert_ptr_equal(lb_slot_current(w.slot)->vips, before);
	hold_socket(&w, "b", "10.9.0.1", 1);
	say_listeners(&w);
	assert_string_equal(states(&w), "a=failing b=serving");
	tear_down(&w);
}

#define ALSO                                                                                       \
	"'additionalAddresses':[{'address':{'socketAddress':{'address':'10.9.0.200',"              \
	"'portValue':80}}}],"

static void a36_73_an_address_that_vips_lose_is_given_up_while_a_newer_listener_waits(void **state)
{
	struct world w;
	set_up(&w, 8, 4);
	own.vips[0].range = (struct ip_prefix){ip_from_v4(0x0a090000), 121};
	own.vips[1].range = (struct ip_prefix){ip_from_v4(0x0a090080), 121};
	own.config.n_vips = 2;
	hold_socket_with(&w, "a", "10.9.0.1", ALSO, 1);
	say_listeners(&w);
	hold_socket_with(&w, "a", "10.9.0.1", ALSO LAST_CHAIN ",", 2);
	say_listeners(&w);
	assert_true(chains_at(&w, 1) == 1 && chains_at(&w, 200) == 1);
	own.config.n_vips = 1;
	frontends_follow_vips(w.frontends);
	pass(&w, NS_PER_SECOND);
	assert_true(chains_at(&w, 1) == 1 && chains_at(&w, 200) == 0);
	pass(&w, 15 * NS_PER_SECOND); // its routes do not come
	assert_true(chains_at(&w, 1) == 2 && chains_at(&w, 200) == 0);
	tear_down(&w);
}

// A36-34: a chain that failed all its life has clients as well, who are to be gone before its place
// is another's.
static void clients_of_a_failed_chain_do_not_meet_the_next_one(void **state)
{
	struct world w;
	set_up(&w, 1, 4);
	hold_socket_by_name(&w);
	say_listeners(&w);
	pass(&w, 16 * NS_PER_SECOND); // its routes do not come
	assert_string_equal(states(&w), "a=serving");
	const struct lb_vips *v = lb_slot_current(w.slot)->vips;
	assert_int_equal(lb_vips_at(v, 0)->chains->places[0], 2);
	assert_null(lb_snapshot_frontend(lb_slot_current(w.slot), 2)->routes);
	uint64_t first = generation(&w, 2);
	assert_true(first > 0); // who came with 0 would stay
	drop(&w.deps, &res_type_listener, "a");
	hold_socket(&w, "b", "10.9.0.1", 1);
	say_listeners(&w);
	uint64_t leaving = generation(&w, 2);
	assert_true(leaving > first);
	assert_string_equal(states(&w), "a=leaving b=waiting");
	pass(&w, (DRAIN_S + 4) * NS_PER_SECOND);
	assert_string_equal(states(&w), "b=serving");
	assert_true(generation(&w, 2) > leaving);
	tear_down(&w);
}

// A36-64
static void a_wildcard_has_one_server(void **state)
{
	static const char *const json =
		"{\"xds_servers\":[{\"server_uri\":\"a:1\",\"channel_creds\":[{\"type\":"
		"\"insecure\"}]},{\"server_uri\":\"b:1\",\"channel_creds\":[{\"type\":"
		"\"insecure\"}]}],\"node\":{\"id\":\"me\"}}";
	struct config_frontend f = {.name = "listeners", .by_listeners = true};
	const struct config c = {.frontends = &f, .n_frontends = 1};
	struct xds_bootstrap *b = NULL;
	struct lb_err err = {""};
	char **names = NULL;
	assert_int_equal(xds_bootstrap_parse(json, strlen(json), "test", &b, &err), 0);
	assert_int_not_equal(frontends_name_listeners(&c, b, &names, &err), 0);
	assert_string_equal(
		err.text, "listeners: wildcard has one xDS server, and the bootstrap has 2");
	xds_bootstrap_free(b);
}

// A36-32, A36-35
static void a_frontend_with_a_listener_takes_nobody_in_the_clear_before_it_comes(void **state)
{
	struct world w;
	set_up(&w, 4, 4);
	pass(&w, TURN_NS);
	const struct lb_snapshot *s = lb_slot_current(w.slot);
	const struct ip_addr local = ip_from_v4(0x0a090063);
	const struct ip_port remote = {ip_from_v4(0x0a090001), 1};
	const struct lb_chain_hello silent = {.tls = false};
	for (uint32_t i = 0; i < 2; i++) {
		const struct lb_frontend *f = lb_snapshot_frontend(s, i);
		assert_non_null(f->chains);
		assert_int_equal(
			lb_chain_set_find(f->chains, &local, &remote, &silent), LB_NO_PLACE);
	}
	hold_socket(&w, "named", "10.9.0.99", 1);
	say_listeners(&w);
	s = lb_slot_current(w.slot);
	uint32_t place =
		lb_chain_set_find(lb_snapshot_frontend(s, 0)->chains, &local, &remote, &silent);
	assert_in_range(place, 2, 5);
	assert_int_equal(lb_snapshot_frontend(s, place)->credential, LB_PLAIN_TEXT);
	tear_down(&w);
}

RUN_SUITE("ctrl/listeners", cmocka_unit_test(listeners_in_vips_are_served_and_others_told),
	cmocka_unit_test(a36_66_a_listener_that_wants_proxy_headers_is_told_and_served_without),
	cmocka_unit_test(a36_64_one_that_is_refused_when_it_first_comes_is_told_of),
	cmocka_unit_test(its_frontend_is_up_when_the_first_list_serves),
	cmocka_unit_test(a36_37_a_listener_takes_effect_when_all_of_its_chains_can),
	cmocka_unit_test(chains_without_a_tls_context_are_tried_again),
	cmocka_unit_test(who_is_first_at_an_address_keeps_it),
	cmocka_unit_test(what_is_deleted_is_not_served_and_its_clients_have_time),
	cmocka_unit_test(a36_75_what_comes_back_is_served_at_once_where_it_was),
	cmocka_unit_test(a36_75_so_it_is_after_a_version_with_a_wrong_address),
	cmocka_unit_test(a36_75_it_is_kept_while_another_version_waits_for_the_rest),
	cmocka_unit_test(what_is_beyond_the_addresses_waits_for_room),
	cmocka_unit_test(what_is_beyond_the_chains_waits_for_room),
	cmocka_unit_test(who_has_no_room_in_the_first_list_keeps_nobody_waiting),
	cmocka_unit_test(who_is_refused_holds_no_address_and_costs_nothing),
	cmocka_unit_test(a36_73_an_address_that_vips_lose_is_given_up_while_a_newer_listener_waits),
	cmocka_unit_test(a_wildcard_has_one_server),
	cmocka_unit_test(clients_of_a_failed_chain_do_not_meet_the_next_one),
	cmocka_unit_test(a_frontend_with_a_listener_takes_nobody_in_the_clear_before_it_comes))
