// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/leaf_world.h"

#include "ctrl/res/endpoints.h"
#include "envoy/config/endpoint/v3/endpoint.pb-c.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/cluster.h"
#include "lb/member/connectivity.h"
#include "lb/pick/breaker.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"
#include "lb/slot.h"
#include "lb/snapshot.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#define N_LOCALITIES 5 // the last one in the second priority

size_t bench_heap(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

// The world.

static void on_connect(void *ctx, struct lb_endpoint *e)
{
	struct leaf_world *w = ctx;
	CHECK(w->n_connecting < sizeof(w->connecting) / sizeof(w->connecting[0]));
	w->connecting[w->n_connecting++] = e->id;
}

static void on_release(void *ctx, struct lb_endpoint *e)
{
	struct lb_event event = {.kind = LB_EVENT_RELEASED, .endpoint_id = e->id};
	lb_connectivity_event(((struct leaf_world *)ctx)->connectivity, 0, &event);
}

static uint32_t member_take(void *ctx, void *owner)
{
	(void)owner;
	return ((struct leaf_world *)ctx)->n_members++;
}

static void give(void *ctx, uint32_t id)
{
	(void)ctx;
	(void)id;
}

static uint32_t slot_take(void *ctx)
{
	return ((struct leaf_world *)ctx)->n_slots++;
}

static void harvest(void *ctx, uint32_t member, uint64_t *ret_ok, uint64_t *ret_failed)
{
	(void)ctx;
	(void)member;
	*ret_ok = *ret_failed = 0;
}

static uint64_t last_used(void *ctx, uint32_t member)
{
	(void)ctx;
	(void)member;
	return 0;
}

void leaf_world_init(struct leaf_world *w)
{
	*w = (struct leaf_world){.wheel = twheel_new(1000 * NS_PER_SECOND)};
	rand_init(&w->rand, 1);
	w->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){.wheel = w->wheel,
		.rand = &w->rand,
		.n_workers = 1,
		.connect = on_connect,
		.release = on_release,
		.ctx = w,
		.on_state = lb_member_on_state});
	w->member_env = (struct lb_member_env){w->connectivity, 250 * NS_PER_MS};
	w->breakers = lb_breakers_new();
	w->slot = lb_slot_new(lb_snapshot_new(1, "none"));
	w->env = (struct lb_leaf_env){.wheel = w->wheel,
		.rand = &w->rand,
		.member_env = &w->member_env,
		.breakers = w->breakers,
		.ops_of = lb_node_ops_of,
		.has_sessions = true,
		.member_take = member_take,
		.member_give = give,
		.slot_take = slot_take,
		.slot_give = give,
		.harvest = harvest,
		.last_used = last_used,
		.ctx = w};
	CHECK(w->wheel && w->connectivity && w->breakers && w->slot);
}

void leaf_world_fini(struct leaf_world *w)
{
	lb_snapshot_free(w->draft);
	lb_slot_free(w->slot);
	lb_breakers_free(w->breakers);
	lb_connectivity_free(w->connectivity);
	twheel_free(w->wheel);
}

void leaf_world_event(struct leaf_world *w, uint32_t endpoint, bool is_connected)
{
	struct lb_event e = {
		.kind = is_connected ? LB_EVENT_CONNECTED : LB_EVENT_LOST, .endpoint_id = endpoint};
	lb_connectivity_event(w->connectivity, 0, &e);
}

void leaf_world_connect(struct leaf_world *w)
{
	while (w->n_connecting)
		leaf_world_event(w, w->connecting[--w->n_connecting], true);
}

void leaf_world_forget(struct leaf_world *w)
{
	w->n_connecting = 0;
}

void leaf_world_publish(struct leaf_world *w)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + NS_PER_MS);
	if (!w->draft)
		return;
	lb_slot_publish(w->slot, w->draft);
	w->draft = NULL;
}

unsigned leaf_world_reclaim(struct leaf_world *w)
{
	return lb_slot_reclaim(w->slot);
}

void leaf_world_pass(struct leaf_world *w, uint32_t seconds)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + seconds * NS_PER_SECOND);
}

// The clusters.

static int on_publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct leaf_cluster *c = ctx;
	struct leaf_world *w = c->world;
	if (!w->draft)
		w->draft = lb_snapshot_copy(lb_slot_current(w->slot));
	struct lb_cluster *cluster = lb_cluster_new(c->id, c->name, state, picker);
	CHECK(w->draft && cluster && lb_snapshot_set_cluster(w->draft, c->id, cluster) == 0);
	lb_cluster_put(cluster);
	lb_picker_put(picker);
	w->n_drafts++;
	return 0;
}

void leaf_cluster_init(struct leaf_cluster *c, struct leaf_world *w, uint32_t id)
{
	static const struct lb_policy_spec each = {.kind = LB_POLICY_ROUND_ROBIN};
	*c = (struct leaf_cluster){.world = w, .id = id};
	c->spec = (struct lb_policy_spec){.kind = LB_POLICY_WRR_LOCALITY, .child = &each};
	snprintf(c->name, sizeof(c->name), "cluster%u", id);
	c->leaf = lb_leaf_new(&w->env, (struct lb_leaf_parent){on_publish, c}, c->name, id);
	CHECK(c->leaf);
}

void leaf_cluster_fini(struct leaf_cluster *c)
{
	lb_leaf_free(c->leaf);
}

void leaf_cluster_update(struct leaf_cluster *c, const struct res_endpoints *r)
{
	const struct lb_leaf_config config = {.spec = &c->spec,
		.endpoints = r->list,
		.max_requests = 1u << 30,
		.eds_service_name = "",
		.session_health = 1 << LB_LEAF_UNKNOWN | 1 << LB_LEAF_HEALTHY,
		.idle_timeout_ns = 3600000000000,
		.note = ""};
	CHECK(lb_leaf_update(c->leaf, &config) == 0);
}

const struct lb_picker *leaf_cluster_picker(const struct leaf_cluster *c)
{
	return lb_snapshot_cluster(lb_slot_current(c->world->slot), c->id)->picker;
}

// The resource.

typedef Envoy__Config__Endpoint__V3__ClusterLoadAssignment Assignment;
typedef Envoy__Config__Endpoint__V3__LocalityLbEndpoints Locality;
typedef Envoy__Config__Endpoint__V3__LbEndpoint LbEndpoint;
typedef Envoy__Config__Endpoint__V3__Endpoint Endpoint;

struct message { // one endpoint's
	LbEndpoint lb;
	Endpoint endpoint;
	Envoy__Config__Core__V3__Address address;
	Envoy__Config__Core__V3__SocketAddress socket;
	Google__Protobuf__UInt32Value weight;
	char text[IP_PORT_TEXT_MAX];
};

struct ip_port leaf_address(uint32_t number)
{
	return (struct ip_port){ip_from_v4(0x0a000000 + number), 8080};
}

static void fill(struct message *m, uint32_t number, uint32_t weight)
{
	envoy__config__endpoint__v3__lb_endpoint__init(&m->lb);
	envoy__config__endpoint__v3__endpoint__init(&m->endpoint);
	envoy__config__core__v3__address__init(&m->address);
	envoy__config__core__v3__socket_address__init(&m->socket);
	google__protobuf__uint32_value__init(&m->weight);
	struct ip_port a = leaf_address(number);
	m->socket.address = m->text;
	ip_print(&a.ip, m->text);
	m->socket.port_specifier_case =
		ENVOY__CONFIG__CORE__V3__SOCKET_ADDRESS__PORT_SPECIFIER_PORT_VALUE;
	m->socket.port_value = a.port;
	m->address.address_case = ENVOY__CONFIG__CORE__V3__ADDRESS__ADDRESS_SOCKET_ADDRESS;
	m->address.socket_address = &m->socket;
	m->endpoint.address = &m->address;
	m->lb.host_identifier_case =
		ENVOY__CONFIG__ENDPOINT__V3__LB_ENDPOINT__HOST_IDENTIFIER_ENDPOINT;
	m->lb.endpoint = &m->endpoint;
	m->lb.health_status = ENVOY__CONFIG__CORE__V3__HEALTH_STATUS__HEALTHY;
	m->weight.value = weight;
	m->lb.load_balancing_weight = &m->weight;
}

uint8_t *leaf_assignment(uint32_t first_address, uint32_t n, uint32_t round, size_t *ret_len)
{
	return leaf_assignment_in(N_LOCALITIES - 1, first_address, n, round, ret_len);
}

uint8_t *leaf_assignment_in(
	uint32_t n_first, uint32_t first_address, uint32_t n, uint32_t round, size_t *ret_len)
{
	CHECK(n_first > 0 && n_first < N_LOCALITIES);
	Assignment a;
	Locality localities[N_LOCALITIES], *list[N_LOCALITIES];
	Envoy__Config__Core__V3__Locality names[N_LOCALITIES];
	Google__Protobuf__UInt32Value weights[N_LOCALITIES];
	static char region[] = "europe-west4", name[] = "orders";
	static char zones[N_LOCALITIES][3] = {"a", "b", "c", "d", "e"};
	envoy__config__endpoint__v3__cluster_load_assignment__init(&a);
	struct message *messages = calloc(n, sizeof(*messages));
	LbEndpoint **endpoints = calloc(n, sizeof(LbEndpoint *));
	CHECK(messages && endpoints);
	for (uint32_t i = 0; i < n; i++) {
		fill(&messages[i], first_address + i, 1 + (i + round) % 100);
		endpoints[i] = &messages[i].lb;
	}
	uint32_t at = 0;
	for (uint32_t i = 0; i <= n_first; i++) {
		bool is_last = i == n_first;
		uint32_t in_first = n - n / 100;
		uint32_t end = is_last ? n : in_first * (i + 1) / n_first;
		envoy__config__endpoint__v3__locality_lb_endpoints__init(&localities[i]);
		envoy__config__core__v3__locality__init(&names[i]);
		google__protobuf__uint32_value__init(&weights[i]);
		names[i].region = region;
		names[i].zone = zones[i];
		names[i].sub_zone = zones[0];
		weights[i].value = i + 1;
		localities[i].locality = &names[i];
		localities[i].load_balancing_weight = &weights[i];
		localities[i].priority = is_last;
		localities[i].lb_endpoints = endpoints + at;
		localities[i].n_lb_endpoints = end - at;
		list[i] = &localities[i];
		at = end;
	}
	a.cluster_name = name;
	a.endpoints = list;
	a.n_endpoints = n >= 100 ? n_first + 1 : n_first;
	*ret_len = envoy__config__endpoint__v3__cluster_load_assignment__get_packed_size(&a);
	uint8_t *bytes = malloc(*ret_len);
	CHECK(bytes);
	envoy__config__endpoint__v3__cluster_load_assignment__pack(&a, bytes);
	free(messages);
	free(endpoints);
	return bytes;
}
