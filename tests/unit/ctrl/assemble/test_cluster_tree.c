// SPDX-License-Identifier: Apache-2.0
// Clusters of all kinds, from a configuration to what requests are balanced by. The worker is
// played by the test through its link.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/cluster_set.h"
#include "ctrl/assemble/load_report.h"
#include "ctrl/stats/show.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/rand.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/pick/affinity_map.h"
#include "lb/pick/leaf_picker.h"
#include "lb/pick/link.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/req.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/assembler_world.h"
#include "tests/unit/ctrl/routes_by_hand.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BACKEND(last)                                                                              \
	{                                                                                          \
		{{{[10] = 255, [11] = 255, [12] = 10, [15] = (last)}}, 80}, LB_LEAF_HEALTHY, 1     \
	}
static const struct told_endpoint one[] = {BACKEND(1)}, two[] = {BACKEND(2)};
static const struct told_locality first = {"r", "z", "s", 3, one, 1},
				  second = {"", "", "", 1, two, 1};
static const struct told_priority only_one[] = {{&first, 1}}, only_two[] = {{&second, 1}},
				  one_then_two[] = {{&first, 1}, {&second, 1}};
static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN},
				   by_locality = {.kind = LB_POLICY_WRR_LOCALITY,
					   .child = &round_robin},
				   ring = {.kind = LB_POLICY_RING_HASH, .ring_hash = {1024, 4096}};

static const struct res_vhost to_web = {
	"v", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"web", 1})})};

static const struct res_vhost to_late = {
	"v", DOMAINS("*"), ROUTES({PREFIX(""), CLUSTERS({"zlate", 1})})};

// A configuration in the making, with one route to "web".
static struct xds_cluster_config entries[4];
static uint32_t n_entries;

// Configurations point to them for as long as they serve.
static const char *const only_a[] = {"a"}, *const a_and_b[] = {"a", "b"};

static struct res_cluster *cluster(const char *name, enum res_cluster_kind kind)
{
	struct res_cluster *c =
		(struct res_cluster *)xds_res_new(&res_type_cluster, sizeof(*c), name, NULL, 0);
	c->kind = kind;
	c->eds_name = name;
	c->eds_service_name = "";
	c->spec = &by_locality;
	c->max_requests = 1024;
	c->session_health = 1u << LB_LEAF_UNKNOWN | 1u << LB_LEAF_HEALTHY;
	c->idle_timeout_ns = 3600 * 1000 * MS;
	return c;
}

static struct xds_cluster_config *entry(const char *name)
{
	struct xds_cluster_config *e = &entries[n_entries++];
	*e = (struct xds_cluster_config){.name = name,
		.is_root = strcmp(name, "web") == 0,
		.error = "",
		.resolution_note = "node n1"};
	return e;
}

static struct xds_cluster_config *leaf(
	const char *name, const struct told_priority *priorities, uint32_t n)
{
	struct xds_cluster_config *e = entry(name);
	e->cluster = cluster(name, RES_CLUSTER_EDS);
	e->endpoints = endpoints_of(priorities, n);
	return e;
}

static struct xds_cluster_config *aggregate(const char *name, const char *const *leaves, uint32_t n)
{
	struct xds_cluster_config *e = entry(name);
	e->cluster = cluster(name, RES_CLUSTER_AGGREGATE);
	e->leaves = leaves;
	e->n_leaves = n;
	return e;
}

// The loop takes one turn.
static void begin_to_give(struct world *w, const struct res_vhost *vhost, bool has_sessions)
{
	static const struct lb_filter session = {.name = STR("session"),
		.kind = LB_FILTER_SESSION,
		.session = {.enabled = true, .cookie = STR("c")}};
	struct config_builder b;
	struct res_listener *l = listener_of(has_sessions ? "1" : "0", &session, has_sessions);
	struct res_route_config *r = routes_of(vhost, 1);
	assert_int_equal(config_builder_init(&b, l, r, -1, n_entries), 0);
	memcpy(b.config->clusters, entries, n_entries * sizeof(entries[0]));
	n_entries = 0;
	config_builder_sort(&b);
	update(w, 0, b.config);
	xds_res_put(&l->base);
	xds_res_put(&r->base);
	turns(w, 1);
}

static void give_to(struct world *w, const struct res_vhost *vhost, bool has_sessions)
{
	begin_to_give(w, vhost, has_sessions);
	settle(w);
}

static void give_routes(struct world *w, const struct res_vhost *vhost)
{
	give_to(w, vhost, true);
}

static void give(struct world *w)
{
	give_routes(w, &to_web);
}

static const struct lb_cluster *web(const struct world *w)
{
	return lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/"));
}

static void tell(struct world *w, enum lb_event_kind kind, uint32_t endpoint)
{
	struct lb_event e = {.kind = kind, .endpoint_id = endpoint};
	if (kind != LB_EVENT_CONNECTED)
		strcpy(e.why, "refused");
	assert_true(spsc_write(&w->link->events, &e));
	settle(w);
}

static bool is_asked_to_connect(struct world *w, uint32_t *ret_endpoint)
{
	struct lb_command c;
	while (spsc_read(&w->link->commands, &c)) {
		*ret_endpoint = c.endpoint->id;
		if (c.kind == LB_COMMAND_CONNECT)
			return true;
	}
	return false;
}

static const char *leaf_of(const struct world *w)
{
	const struct lb_leaf_layer *layer = lb_leaf_layer(web(w)->picker);
	return layer ? layer->name : NULL;
}

// A75-G09, A75-T02: the second leaf is made when the first one's turn is over, and gives way again.
static void an_aggregate_uses_the_first_leaf_that_serves(void **state)
{
	struct world *w = *state;
	uint32_t a = 0, b = 0;
	leaf("a", only_one, 1);
	leaf("b", only_two, 1);
	aggregate("web", a_and_b, 2);
	give(w);
	assert_true(is_asked_to_connect(w, &a));
	assert_false(is_asked_to_connect(w, &b));
	tell(w, LB_EVENT_FAILED, a);
	assert_true(is_asked_to_connect(w, &b));
	tell(w, LB_EVENT_CONNECTED, b);
	assert_int_equal(web(w)->state, LB_READY);
	assert_string_equal(leaf_of(w), "b");
	tell(w, LB_EVENT_CONNECTED, a);
	assert_string_equal(leaf_of(w), "a");
}

// A74-C09: no connection closes, and none is asked for that is there.
static void a_leaf_becomes_an_aggregate_and_back_without_a_new_connection(void **state)
{
	struct world *w = *state;
	uint32_t id = 0;
	leaf("web", only_one, 1);
	give(w);
	assert_true(is_asked_to_connect(w, &id));
	tell(w, LB_EVENT_CONNECTED, id);
	leaf("a", only_one, 1);
	aggregate("web", only_a, 1);
	give(w);
	assert_int_equal(web(w)->state, LB_READY);
	assert_string_equal(leaf_of(w), "a");
	leaf("web", only_one, 1);
	give(w);
	assert_int_equal(web(w)->state, LB_READY);
	assert_string_equal(leaf_of(w), "web");
	struct lb_command none;
	assert_false(spsc_read(&w->link->commands, &none));
}

// A28-R06, A74-C01: an error fails requests with its text, and the cluster comes back.
static void a_cluster_in_error_lets_its_endpoints_go_and_recovers(void **state)
{
	struct world *w = *state;
	uint32_t id = 0;
	leaf("web", only_one, 1);
	give(w);
	assert_true(is_asked_to_connect(w, &id));
	tell(w, LB_EVENT_CONNECTED, id);
	entry("web")->error = "cluster web: gone";
	give(w);
	settle(w);
	struct lb_command c;
	assert_true(spsc_read(&w->link->commands, &c));
	assert_int_equal(c.kind, LB_COMMAND_RELEASE);
	struct lb_pick_hash hash = {0};
	struct lb_pick p = assembler_pick(w->assembler, "web", &(struct lb_req){0}, &hash);
	assert_string_equal(p.text, "cluster web: gone");
	tell(w, LB_EVENT_RELEASED, c.endpoint->id);
	leaf("web", only_one, 1);
	give(w);
	assert_true(is_asked_to_connect(w, &id));
}

static char *ask(struct world *w, const char *command)
{
	struct show *show = show_new(&(struct show_conf){.config = &w->config,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	static const struct stats_caller user;
	char *text = show_answer(show, &user, command, &(struct stats_follow *){NULL});
	show_free(show);
	return text;
}

static bool shows(struct world *w, const char *command, const char *part)
{
	char *text = ask(w, command);
	bool found = strstr(text, part);
	free(text);
	return found;
}

static void endpoints_that_wait_are_connected_to_when_operators_say_so(void **state)
{
	static const char *const words[] = {
		"reconnect", "reconnect web", "reconnect web/10.0.0.1:80"};
	struct world *w = *state;
	uint32_t id = 0, again = 0;
	leaf("web", one_then_two, 2);
	give(w);
	assert_true(is_asked_to_connect(w, &id));
	for (int i = 0; i < 3; i++) {
		assert_true(shows(w, words[i], "reconnecting: 0"));
		tell(w, LB_EVENT_FAILED, id);
		(void)is_asked_to_connect(w, &again); // the next priority
		assert_true(shows(w, words[i], "reconnecting: 1"));
		assert_true(is_asked_to_connect(w, &again) && again == id);
	}
	assert_true(shows(w, "reconnect blue/10.0.0.1:80 json", "error: no cluster 'blue', try"));
	assert_true(shows(w, "reconnect web/x", "error: cluster 'web' has no endpoint 'x', try"));
	assert_true(shows(w, "reconnect web blue", "error: unexpected argument 'blue'"));
}

// A75-G06, A75-G08: the variable turns it.
static void leaves_have_their_own_policies_unless_the_aggregates_is_asked_for(void **state)
{
	struct world *w = *state;
	for (int compat = 0; compat < 2; compat++) {
		w->assembler->tree_env.aggregate_policy = compat;
		leaf("a", only_one, 1);
		aggregate("web", only_a, 1)->cluster->spec = &ring;
		give(w);
		assert_int_equal(shows(w, "show tree web", "ring_hash"), compat);
		assert_int_equal(shows(w, "show tree web", "round_robin"), !compat);
	}
	// An aggregate that is CLUSTER_PROVIDED (A75-G07) has no policy to give.
	leaf("a", only_one, 1);
	struct xds_cluster_config *web = aggregate("web", only_a, 1);
	web->cluster->spec = &ring;
	web->cluster->is_provided = true;
	give(w);
	assert_true(shows(w, "show tree web", "round_robin"));
}

static const char *text_of(json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

// A75-T01
static void the_tree_is_shown_in_the_order_of_its_layers(void **state)
{
	static const char *const layers[] = {"cds", "\n  outlier_detection",
		"\n    xds_cluster_impl", "\n      xds_override_host", "\n        priority",
		"weighted_target", "round_robin"};
	struct world *w = *state;
	leaf("web", one_then_two, 2);
	give(w);
	char *text = ask(w, "show tree");
	const char *at = text;
	for (size_t i = 0; i < sizeof(layers) / sizeof(layers[0]); i++) {
		at = strstr(at, layers[i]);
		assert_non_null(at);
	}
	free(text);
	text = ask(w, "show tree web json");
	json_t *whole = json_loads(text, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(json_object_get(whole, "data"), 0), "name")),
		"cds");
	json_t *layer = json_array_get(json_object_get(whole, "data"), 0);
	for (int i = 0; i < 2; i++) // cds, outlier_detection
		layer = json_array_get(json_object_get(layer, "children"), 0);
	assert_string_equal(text_of(layer, "name"), "xds_cluster_impl");
	assert_true(json_is_integer(json_object_get(layer, "in_flight")));
	assert_int_equal(json_integer_value(json_object_get(layer, "max_requests")), 1024);
	json_decref(whole);
	free(text);
	assert_true(shows(w, "show tree", "max_requests=1024  in_flight=0"));
	assert_true(shows(w, "show tree blue", "no cluster 'blue'"));
	assert_true(shows(w, "show tree web blue", "unexpected argument 'blue'"));
}

static json_t *endpoint_row(struct world *w, size_t i)
{
	char *text = ask(w, "show endpoints web json");
	json_t *whole = json_loads(text, 0, NULL);
	json_t *row = json_incref(json_array_get(json_object_get(whole, "data"), i));
	json_decref(whole);
	free(text);
	return row;
}

static void endpoints_are_shown_with_their_place_state_and_counts(void **state)
{
	struct world *w = *state;
	uint32_t id = 0;
	leaf("web", one_then_two, 2);
	give(w);
	assert_true(is_asked_to_connect(w, &id));
	counter_set_to(&w->link->members[0].issued, 5);
	counter_set_to(&w->link->members[0].ok, 2);
	counter_set_to(&w->link->members[0].failed, 1);
	counter_set_to(&w->link->endpoints[id].connections, 1);
	tell(w, LB_EVENT_FAILED, id);
	assert_true(shows(w, "show tree web",
		"error=cluster web: none of 1 endpoints is usable, "
		"last error: 10.0.0.1:80: refused"));
	json_t *row = endpoint_row(w, 0);
	assert_string_equal(text_of(row, "endpoint"), "10.0.0.1:80");
	assert_string_equal(text_of(row, "locality"), "r/z/s");
	assert_string_equal(text_of(row, "health"), "HEALTHY");
	assert_string_equal(text_of(row, "error"), "10.0.0.1:80: refused");
	assert_true(json_is_true(json_object_get(row, "failing")));
	assert_int_equal(json_integer_value(json_object_get(row, "locality_weight")), 3);
	assert_int_equal(json_integer_value(json_object_get(row, "requests")), 5);
	assert_int_equal(json_integer_value(json_object_get(row, "active")), 2);
	assert_int_equal(json_integer_value(json_object_get(row, "connections")), 1);
	json_decref(row);
	row = endpoint_row(w, 1);
	assert_string_equal(text_of(row, "endpoint"), "10.0.0.2:80");
	assert_string_equal(text_of(row, "locality"), "");
	assert_int_equal(json_integer_value(json_object_get(row, "priority")), 1);
	json_decref(row);
}

// A name in DNS is one endpoint, however many addresses it has.
static void an_endpoint_of_many_addresses_is_shown_whole(void **state)
{
	struct world *w = *state;
	struct ip_port others[199];
	for (uint32_t i = 0; i < 199; i++)
		others[i] = (struct ip_port){
			{{[10] = 255, [11] = 255, [12] = 99, [15] = (uint8_t)i}}, 80};
	const struct told_endpoint_more more = {others, 199, "", ""};
	const struct told_endpoint many[] = {
		{.addr = one[0].addr, .health = LB_LEAF_HEALTHY, .weight = 1, .more = &more}};
	const struct told_locality locality = {"", "", "", 1, many, 1};
	const struct told_priority priority = {&locality, 1};
	leaf("web", &priority, 1);
	give(w);
	json_t *row = endpoint_row(w, 0);
	assert_string_equal(text_of(row, "state"), "CONNECTING"); // the member was found
	assert_non_null(strstr(text_of(row, "endpoint"), "10.0.0.1:80,99.0.0.0:80,"));
	const char *end = strstr(text_of(row, "endpoint"), ",99.0.0.198:80");
	assert_non_null(end);
	assert_string_equal(end, ",99.0.0.198:80");
	json_decref(row);
	leaf("web", only_one, 1);
	give(w);
}

// A27-I01, A50-E02, A75-T01: the tree names categories of drops and the next sweep.
static void the_tree_tells_drops_and_sweeps(void **state)
{
	static const struct res_drop drops[] = {{"lb", 500000}, {"throttle", 100000}};
	static const struct lb_outlier_conf outlier = {.interval_ns = 10000 * MS,
		.base_ejection_ns = 30000 * MS,
		.max_ejection_ns = 300000 * MS,
		.max_ejection_percent = 10,
		.failure_percentage = {true, 100, 1, 1}};
	struct world *w = *state;
	struct xds_cluster_config *e = leaf("web", only_one, 1);
	e->endpoints->drops = drops;
	e->endpoints->n_drops = 2;
	e->cluster->outlier = &outlier;
	give(w);
	assert_true(shows(w, "show tree web", "drop  category=lb  per_million=500000"));
	assert_true(shows(w, "show tree web", "drop  category=throttle  per_million=100000"));
	assert_true(shows(w, "show tree web", "  sweep_ms="));
	counter_set_to(&w->link->clusters[route(w, "/")].ended[LB_CAUSE_DROPPED], 7);
	counter_set_to(&w->link->clusters[route(w, "/")].ended[LB_CAUSE_OVERFLOW], 5);
	assert_true(shows(w, "show clusters json", "\"dropped\":7,\"refused\":5"));
}

// A58-01, A58-03: why a reported weight does not count yet, and how much when it does.
static void endpoints_are_shown_with_what_they_report(void **state)
{
	static const struct lb_policy_spec wrr = {.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
		.wrr = {.blackout_ns = 1000 * MS,
			.expiration_ns = 3000 * MS,
			.update_ns = 1000 * MS}};
	static const struct {
		int wait;
		const char *report;
		double weight;
	} cases[] = {{0, "blackout", 0}, {1100, "counts", 200}, {2000, "expired", 0}};
	struct world *w = *state;
	leaf("web", only_one, 1);
	give(w);
	json_t *row = endpoint_row(w, 0);
	assert_string_equal(text_of(row, "report"), "");
	json_decref(row);
	leaf("web", only_one, 1)->cluster->spec = &wrr;
	give(w);
	row = endpoint_row(w, 0);
	assert_string_equal(text_of(row, "report"), "none");
	assert_true(json_is_null(json_object_get(row, "report_weight")));
	json_decref(row);
	struct lb_event report = {
		.kind = LB_EVENT_ORCA, .member = 0, .orca = {.qps = 100, .cpu_utilization = 0.5}};
	assert_true(spsc_write(&w->link->events, &report));
	turns(w, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		turns(w, cases[i].wait);
		row = endpoint_row(w, 0);
		assert_string_equal(text_of(row, "report"), cases[i].report);
		double weight = json_real_value(json_object_get(row, "report_weight"));
		assert_in_range((long)(weight + 0.5), (long)cases[i].weight, cases[i].weight);
		json_decref(row);
	}
}

// DM-12: a cluster may serve although its newest resource was refused.
static void trouble_of_a_cluster_that_serves_is_shown(void **state)
{
	struct world *w = *state;
	leaf("web", only_one, 1);
	give(w);
	assert_true(shows(w, "show clusters json", "\"detail\":\"\""));
	struct xds_cluster_config *e = leaf("web", only_one, 1);
	e->resolution_note = "cluster web: refused";
	e->has_trouble = true;
	give(w);
	assert_true(shows(w, "show clusters json", "\"detail\":\"cluster web: refused\""));
}

// A75-O06, A75-O08: it finds its leaf, also that of an aggregate; one of nobody is ignored.
static void a_connect_request_connects_the_member_that_it_names(void **state)
{
	struct world *w = *state;
	uint32_t id = 0;
	leaf("a", only_one, 1)->cluster->spec = &ring;
	aggregate("web", only_a, 1);
	give(w);
	assert_false(is_asked_to_connect(w, &id)); // RH-05
	for (uint32_t member = 9; member <= 9; member--) {
		struct lb_event request = {.kind = LB_EVENT_CONNECT_REQUEST, .member = member};
		assert_true(spsc_write(&w->link->events, &request));
		turns(w, 1);
		assert_int_equal(is_asked_to_connect(w, &id), member == 0);
	}
}

static bool connects_to(struct world *w, uint8_t last)
{
	struct lb_command c;
	bool is = false;
	while (spsc_read(&w->link->commands, &c))
		is |= c.endpoint->addr.ip.b[13] == 0 && c.endpoint->addr.ip.b[15] == last;
	return is;
}

// RR-01, paced: another cluster's endpoints, which never answer, have all the room.
static void requests_make_the_leaf_of_an_aggregate_expedite(void **state)
{
	struct world *w = *state;
	static struct told_endpoint many[1200];
	for (uint32_t i = 0; i < 1200; i++)
		many[i] = (struct told_endpoint){
			{ip_from_v4(0x0a400000 + i), 80}, LB_LEAF_HEALTHY, 1, NULL};
	const struct told_locality all = {"", "", "", 1, many, 1200};
	leaf("a", only_one, 1);
	leaf("first", &(struct told_priority){&all, 1}, 1)->is_root = true;
	aggregate("web", only_a, 1);
	begin_to_give(w, &to_web, false);
	assert_int_equal(assembler_n_attempts(w->assembler), 1024);
	assert_false(connects_to(w, 1));
	turns(w, 15);
	assert_false(connects_to(w, 1));
	counter_set_to(&w->link->clusters[route(w, "/")].queued, 1);
	turns(w, 15);
	assert_true(connects_to(w, 1));
}

static const char *refusal(const struct world *w)
{
	return assembler_frontend_refusal(w->assembler, 0);
}

static const char *pick_text(const struct world *w, const char *name)
{
	struct lb_pick_hash hash = {0};
	return assembler_pick(w->assembler, name, &(struct lb_req){0}, &hash).text;
}

// A74-T07: what cannot be made fails alone, an older tree serves on, the rest applies, and as soon
// as there is room nothing is refused any more.
static void a_cluster_without_room_holds_up_no_other(void **state)
{
	struct world *w = *state;
	struct members *members = w->assembler->members;
	const struct lb_policy_spec *specs[] = {&by_locality, &ring};
	leaf("web", only_one, 1);
	give(w);
	const struct lb_cluster *before = web(w);
	uint32_t *taken = calloc(LB_MAX_MEMBERS, sizeof(*taken)), n = 0;
	while ((taken[n] = members_take(members, w)) != UINT32_MAX)
		n++;
	for (int round = 0; round < 2; round++) {
		leaf("web", one_then_two, 2)->cluster->spec = specs[round];
		leaf("more", only_two, 1)->is_root = true;
		entry("zlate")->is_root = true;
		entries[n_entries - 1].error = "late on purpose";
		give_routes(w, &to_late);
		assert_non_null(strstr(refusal(w), "cluster 'more': out of memory, TLS "));
		assert_non_null(strstr(refusal(w), "and 1 more"));
		assert_string_equal(pick_text(w, "zlate"), "late on purpose");
		assert_non_null(strstr(pick_text(w, "more"), "out of memory, TLS "));
		assert_int_equal(lb_snapshot_cluster(lb_slot_current(w->slot), before->id)->state,
			LB_CONNECTING);
		assert_string_equal(
			lb_snapshot_cluster(lb_slot_current(w->slot), route(w, "/"))->name,
			"zlate");
	}
	uint64_t n_snapshots = assembler_n_snapshots(w->assembler);
	turns(w, 1100);
	assert_int_equal(assembler_n_snapshots(w->assembler), n_snapshots + 2);
	while (n)
		members_give(members, taken[--n]);
	free(taken);
	turns(w, 6000); // numbers rest for ten seconds
	settle(w);
	assert_string_equal(refusal(w), "");
	assert_true(shows(w, "show tree web", "ring_hash"));
	assert_true(shows(w, "show tree more", "round_robin"));
}

static uint8_t ringed(struct world *w, const struct field *fields, size_t n)
{
	struct lb_pick_hash hash = {0};
	const struct lb_req req = {.fields = fields, .n_fields = n};
	struct lb_pick p = assembler_pick(w->assembler, "web", &req, &hash);
	assert_int_equal(p.kind, LB_PICK_ENDPOINT);
	return p.cell->endpoint->addr.ip.b[15];
}

// RH-10: as workers see it, two of a header are the same as one with both values.
static void a_pick_by_a_header_that_is_there_twice_takes_both_values(void **state)
{
	struct world *w = *state;
	const struct lb_policy_spec by_key = {
		.kind = LB_POLICY_RING_HASH, .ring_hash = {1024, 4096, STR("x-key")}};
	const struct told_endpoint list[] = {one[0], two[0]};
	const struct told_locality locality = {"", "", "", 1, list, 2};
	const struct told_priority priority = {&locality, 1};
	unsigned seen = 0;
	leaf("web", &priority, 1)->cluster->spec = &by_key;
	give(w);
	for (uint32_t member = 0; member < 2; member++) {
		struct lb_event request = {.kind = LB_EVENT_CONNECT_REQUEST, .member = member};
		uint32_t id = 0;
		assert_true(spsc_write(&w->link->events, &request));
		turns(w, 1);
		assert_true(is_asked_to_connect(w, &id));
		tell(w, LB_EVENT_CONNECTED, id);
	}
	for (int i = 0; i < 64; i++) {
		char key[8], joined[16];
		snprintf(key, sizeof(key), "k%d", i);
		snprintf(joined, sizeof(joined), "k%d,last", i);
		const struct field both[] = {{.name = STR("x-key"), .value = str_from(key)},
			{.name = STR("x-key"), .value = STR("last")}};
		const struct field alone = {.name = STR("x-key"), .value = str_from(joined)};
		assert_int_equal(ringed(w, both, 2), ringed(w, &alone, 1));
		seen |= 1u << ringed(w, both, 2);
	}
	assert_int_equal(seen, 1u << 1 | 1u << 2);
	leaf("web", only_one, 1);
	give(w);
}

// ERR-01: a drop names its category, the breaker itself.
static void a_refusal_above_the_endpoints_says_whose_it_is(void **state)
{
	struct world *w = *state;
	static const struct res_drop drops[] = {{"some", 500000}, {"all of them", 1000000}};
	struct xds_cluster_config *c = leaf("web", only_one, 1);
	c->endpoints->drops = drops;
	c->endpoints->n_drops = 2;
	give(w);
	assert_string_equal(pick_text(w, "web"), "cluster web: EDS-configured drop: all of them");
	leaf("web", only_one, 1)->cluster->max_requests = 0;
	give(w);
	assert_string_equal(pick_text(w, "web"),
		"cluster web: circuit breaker drop: 0 requests are in flight or have their places "
		"kept by workers, the maximum");
}

static void eject_first(void *ctx, const struct leaf_source *s, struct lb_leaf *leaf)
{
	struct lb_member *m = lb_leaf_member(leaf, &one[0].addr, 1);
	(void)ctx;
	(void)s;
	assert_non_null(m);
	lb_member_set_ejected(m, true);
}

static bool is_barred_when_ejected(void **state)
{
	struct world *w = *state;
	struct lb_affinity_host host;
	leaf("web", only_one, 1);
	give(w);
	cluster_tree_each_leaf(
		cluster_set_find(w->assembler->clusters, "web")->tree, eject_first, NULL);
	settle(w);
	assert_true(
		lb_affinity_map_find(lb_leaf_layer(web(w)->picker)->affinity, &one[0].addr, &host));
	return host.state->is_barred;
}

// A75-O22: as Envoy has it, and the switch as gRPC does.
static void sessions_leave_ejected_endpoints_unless_shunt_yaml_says_so(void **state)
{
	static struct config_sessions stay = {true};
	assert_true(is_barred_when_ejected(state));
	world_tear_down(state);
	world_set_up_with(state, &stay);
	assert_false(is_barred_when_ejected(state));
}

static bool knows_hosts(struct world *w)
{
	const struct lb_leaf_layer *layer = lb_leaf_layer(web(w)->picker);
	assert_non_null(layer);
	assert_true(!layer->affinity == !layer->sessions);
	return layer->affinity;
}

// The next configuration has these resources, as the one before had.
static void keep(const struct xds_cluster_config *list, uint32_t n)
{
	memcpy(entries, list, n * sizeof(*list));
	for (n_entries = 0; n_entries < n; n_entries++) {
		xds_res_get(&list[n_entries].cluster->base);
		if (list[n_entries].endpoints)
			xds_res_get(&list[n_entries].endpoints->base);
	}
}

static void drop(const struct xds_cluster_config *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		xds_res_put(&list[i].cluster->base);
		if (list[i].endpoints)
			xds_res_put(&list[i].endpoints->base);
	}
}

// A snapshot whose filters look for sessions has what they look in, though no cluster changed;
// requests of before the filter's end look for theirs yet.
static void hosts_are_known_with_the_first_filter_for_sessions_and_stay_known(void **state)
{
	struct world *w = *state;
	for (int is_aggregate = 0; is_aggregate < 2; is_aggregate++) {
		struct xds_cluster_config same[2];
		leaf(is_aggregate ? "a" : "web", only_one, 1);
		if (is_aggregate)
			aggregate("web", only_a, 1);
		uint32_t n = n_entries;
		memcpy(same, entries, sizeof(same));
		for (int step = 0; step < 3; step++) {
			keep(same, n);
			give_to(w, &to_web, step == 1);
			const struct lb_frontend *f =
				lb_snapshot_frontend(lb_slot_current(w->slot), 0);
			assert_int_equal(f->filters->n, step == 1);
			assert_int_equal(knows_hosts(w), step > 0);
		}
		drop(same, n);
		world_tear_down(state);
		world_set_up(state);
		w = *state;
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, world_set_up, world_tear_down)

static int refuse_connection(void *ctx, const struct xds_server_conf *conf,
	struct xds_transport **ret, struct lb_err *err)
{
	return lb_err_set(err, "there is no network");
}

static void give_web_from(struct world *w, const struct xds_server_conf *server, bool reports_load)
{
	struct xds_cluster_config *e = leaf("web", only_one, 1);
	e->cluster->reports_load = reports_load;
	xds_res_set_server(&e->cluster->base, server);
	give_routes(w, &to_web);
}

// LR-01, LR-05
static void fe_09_load_is_reported_to_who_sent_the_cluster(void **state)
{
	static struct xds_server_conf servers[] = {{.uri = "first"}, {.uri = "second"}};
	struct world *w = *state;
	struct xds_bootstrap bootstrap = {.servers = servers,
		.n_servers = 2,
		.node_id = "",
		.node_cluster = "",
		.region = "",
		.zone = "",
		.sub_zone = ""};
	struct rand rand;
	struct load_report_info info;
	rand_init(&rand, 1);
	struct load_report *loads = load_report_new(&(struct load_report_conf){
		.bootstrap = &bootstrap,
		.transport = {refuse_connection, NULL},
		.workers = w->workers,
		.wheel = w->wheel,
		.rand = &rand,
		.user_agent_version = "1",
	});
	assert_non_null(loads);
	w->assembler->tree_env.loads = loads;
	give_web_from(w, &servers[1], true);
	load_report_info(loads, &info);
	assert_string_equal(info.stream.uri, "second");
	assert_int_equal(info.stream.n_clusters, 1);
	give_web_from(w, &servers[0], true); // the same, but for that
	turns(w, 3000); // what it had counted is over
	load_report_info(loads, &info);
	assert_string_equal(info.stream.uri, "first");
	assert_int_equal(info.stream.n_clusters, 1);
	give_web_from(w, &servers[0], false);
	turns(w, 3000);
	load_report_info(loads, &info);
	assert_int_equal(info.stream.n_clusters, 0);
	load_report_free(loads);
	w->assembler->tree_env.loads = NULL;
}

RUN_SUITE("ctrl/cluster_tree", CASE(fe_09_load_is_reported_to_who_sent_the_cluster),
	CASE(an_aggregate_uses_the_first_leaf_that_serves),
	CASE(a_leaf_becomes_an_aggregate_and_back_without_a_new_connection),
	CASE(a_cluster_in_error_lets_its_endpoints_go_and_recovers),
	CASE(leaves_have_their_own_policies_unless_the_aggregates_is_asked_for),
	CASE(the_tree_is_shown_in_the_order_of_its_layers),
	CASE(endpoints_are_shown_with_their_place_state_and_counts),
	CASE(the_tree_tells_drops_and_sweeps), CASE(endpoints_are_shown_with_what_they_report),
	CASE(trouble_of_a_cluster_that_serves_is_shown),
	CASE(a_connect_request_connects_the_member_that_it_names),
	CASE(endpoints_that_wait_are_connected_to_when_operators_say_so),
	CASE(requests_make_the_leaf_of_an_aggregate_expedite),
	CASE(a_cluster_without_room_holds_up_no_other),
	CASE(sessions_leave_ejected_endpoints_unless_shunt_yaml_says_so),
	CASE(hosts_are_known_with_the_first_filter_for_sessions_and_stay_known),
	CASE(an_endpoint_of_many_addresses_is_shown_whole),
	CASE(a_refusal_above_the_endpoints_says_whose_it_is),
	CASE(a_pick_by_a_header_that_is_there_twice_takes_both_values))
