// SPDX-License-Identifier: Apache-2.0
// What a leaf asks of a worker beside a backend, one situation a test: drops, the circuit breaker,
// what is counted of attempts (gRFC A27, A32, A50; A27-I*, A32-I*, A50-E*, A75-O*, A55-O*).
#include "lb/cluster.h"
#include "lb/leaf/leaf.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/breaker.h"
#include "lb/pick/cause.h"
#include "lb/pick/link.h"
#include "lb/pick/loads.h"
#include "lb/pick/picker.h"
#include "lb/route/filter.h"
#include "lb/route/session.h"
#include "lb/snapshot.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <string.h>

static struct control_leaf *zero(struct world *w)
{
	return &w->control.leaves[0];
}

static void update(struct world *w)
{
	control_update(&w->control, 0);
}

static const struct lb_route_policy retries = {
	.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};

static void set_drops(struct world *w, uint32_t per_million, uint32_t then)
{
	struct control_leaf *l = zero(w);
	l->drops[0] = (struct lb_drop_category){"first", per_million};
	l->drops[1] = (struct lb_drop_category){"second", then};
	l->n_drops = then ? 2 : 1;
	lb_loads_put(l->loads);
	l->loads = lb_loads_new(l->n_drops);
	assert_non_null(l->loads);
	l->loads->breaker = 9;
	for (uint32_t i = 0; i < l->n_drops; i++)
		l->loads->drops[i] = 10 + i;
	update(w);
}

static uint64_t issued(const struct world *w, uint32_t load)
{
	return w->link->loads[load].issued;
}

// Sum of the members of cluster zero whose first address is this backend's; all that ever were.
static struct lb_member_counters counted(const struct world *w)
{
	struct lb_member_counters sum = {0};
	for (uint32_t i = 0; i < w->control.n_members; i++) {
		sum.issued += w->link->members[i].issued;
		sum.ok += w->link->members[i].ok;
		sum.failed += w->link->members[i].failed;
		sum.unjudged += w->link->members[i].unjudged;
	}
	return sum;
}

static uint32_t in_flight(struct world *w)
{
	return lb_breaker_in_flight(zero(w)->breaker) - (uint32_t)world_counter(w, "spare_places");
}

// A27-I01, A27-I02, A27-I03, ERR-01
static void a27_i03_drops_end_at_once_and_name_their_category(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	set_drops(w, LB_DROP_ALL, 0);
	struct ask *grpc = ask(w, KIND_ECHO, 100), *plain = ask(w, KIND_PLAIN, 10);
	finish(w);
	assert_reply(grpc, 14);
	assert_string_equal(grpc->message, "cluster zero: EDS-configured drop: first");
	assert_int_equal(plain->http_status, 503);
	assert_int_equal(world_ended(w, LB_CAUSE_DROPPED), 2);
	assert_int_equal(world_counter(w, "retries"), 0);
	assert_int_equal(issued(w, 10), 2);
	use_backends(w, 0); // A27-I02: with nobody there, too
	struct ask *alone = ask(w, KIND_ECHO, 100);
	finish(w);
	assert_string_equal(alone->message, "cluster zero: EDS-configured drop: first");
	assert_int_equal(counted(w).issued, 0);
	world_free(w);
}

// A74-I12: from the next snapshot on.
static void a27_i01_first_category_that_hits_counts(void **state)
{
	struct world *w = ready_world(NULL);
	set_drops(w, LB_DROP_ALL / 2, LB_DROP_ALL);
	for (int i = 0; i < 200; i++) {
		ask(w, KIND_ECHO, 1);
		finish(w);
	}
	assert_int_equal(issued(w, 10) + issued(w, 11), 200);
	assert_in_range(issued(w, 10), 70, 130); // 4 sigma
	zero(w)->n_drops = 0;
	update(w);
	struct ask *a = ask(w, KIND_ECHO, 1);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

// A27-I04: those that wait are picked again with every snapshot, and drawn once.
static void a27_i04_a_waiting_request_is_drawn_once(void **state)
{
	struct world *w = a_world();
	open_client(w);
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	use_backends(w, 0x3);
	set_drops(w, LB_DROP_ALL / 2, 0);
	for (int i = 0; i < 100; i++)
		ask(w, KIND_ECHO, 1);
	world_run(w, 20 * MS);
	uint64_t dropped = world_ended(w, LB_CAUSE_DROPPED);
	assert_in_range(dropped, 30, 70); // 4 sigma
	assert_int_equal(w->link->clusters[0].queued, 100 - dropped);
	for (int i = 0; i < 30; i++) {
		update(w);
		control_set_policy(&w->control, ROUTE_ONE, &retries);
		world_run(w, 5 * MS);
	}
	assert_int_equal(world_ended(w, LB_CAUSE_DROPPED), dropped);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	finish(w);
	assert_int_equal(world_ended(w, LB_CAUSE_DROPPED), dropped);
	assert_int_equal(issued(w, 10), dropped);
	assert_true(world_ended(w, LB_CAUSE_OK) + dropped == w->link->counters.requests);
	world_free(w);
}

// A32-I06, A32-I09, A27-I03, ERR-01
static void a32_i06_the_breaker_holds_at_exactly_max_requests(void **state)
{
	struct world *w = ready_world(NULL);
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	w->frontends[0].wait_for_ready = LB_WAIT_ALWAYS;
	set_drops(w, 0, 0);
	zero(w)->max_requests = 3;
	update(w);
	struct ask *held[3];
	for (int i = 0; i < 3; i++)
		held[i] = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 3);
	struct ask *refused = ask(w, KIND_ECHO, 10), *plain = ask(w, KIND_PLAIN, 10);
	finish_of(w, refused);
	finish_of(w, plain);
	assert_reply(refused, 14);
	assert_string_equal(refused->message,
		"cluster zero: circuit breaker drop: 3 requests are in flight, the maximum");
	assert_int_equal(plain->http_status, 503);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 2);
	assert_int_equal(world_counter(w, "retries"), 0);
	assert_int_equal(issued(w, 9), 2);
	client_cancel(held[0]);
	world_run(w, 20 * MS);
	struct ask *next = ask(w, KIND_ECHO, 10);
	finish_of(w, next);
	assert_ok(w, next);
	// A32-I08: a lower limit ends nobody.
	zero(w)->max_requests = 1;
	update(w);
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 2);
	client_cancel(held[1]);
	world_run(w, 20 * MS);
	refused = ask(w, KIND_ECHO, 10);
	finish_of(w, refused);
	assert_reply(refused, 14);
	client_cancel(held[2]);
	world_run(w, 20 * MS);
	next = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, next);
	zero(w)->max_requests = 0; // A32-I05
	update(w);
	refused = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(refused, 14);
	world_free(w);
}

// A32-I09: whoever waits is not in; when it may go, the limit counts.
static void a32_i09_queued_requests_are_not_in_flight(void **state)
{
	struct world *w = a_world();
	open_client(w);
	w->wire.hosts[HOST_BACKENDS].unplugged = true;
	use_backends(w, 0x1);
	zero(w)->max_requests = 2;
	update(w);
	for (int i = 0; i < 5; i++)
		ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 0);
	assert_int_equal(w->link->clusters[0].queued, 5);
	w->wire.hosts[HOST_BACKENDS].unplugged = false;
	world_run(w, 5 * SECOND);
	assert_int_equal(in_flight(w), 2);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 3);
	world_free(w);
}

// Q-05, A32-I09: those that wait for a stream get in when there is one, and no sooner.
static void a32_i09_waiting_for_a_stream_is_not_in_flight(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.n_backends = 2;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = world_new(&conf);
	use_backends(w, 0x1);
	zero(w)->max_requests = 2;
	update(w);
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *a = ask(w, KIND_HANG, 0), *b = ask(w, KIND_ECHO, 10),
		   *c = ask(w, KIND_ECHO, 10);
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 1);
	assert_int_equal(w->link->clusters[0].queued, 2);
	client_cancel(a);
	finish(w);
	assert_ok(w, b);
	assert_ok(w, c);
	assert_int_equal(in_flight(w), 0);
	// The limit may be reached meanwhile: another who came later is in.
	a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	b = ask(w, KIND_ECHO, 10);
	world_run(w, 20 * MS);
	zero(w)->max_requests = 0;
	update(w);
	client_cancel(a);
	finish(w);
	assert_reply(b, 14);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 1);
	world_free(w);
}

// A75-G09: an aggregate that went over to another leaf takes along those that wait for a stream of
// the first, whose breaker is not the one that counts now.
static void waiting_for_a_stream_ends_with_the_leaf(void **state)
{
	struct world_conf conf = world_conf_default(3);
	conf.n_clients = 1;
	conf.backend_streams = 1;
	conf.max_conns_per_endpoint = 1;
	struct world *w = world_new(&conf);
	use_backends(w, 0x1);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0x4);
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *a = ask(w, KIND_HANG, 0), *b = ask(w, KIND_ECHO, 10);
	world_run(w, 20 * MS);
	struct lb_picker *other = lb_snapshot_cluster(w->control.snapshot, 1)->picker;
	struct lb_cluster *moved = lb_cluster_new(0, "zero", LB_READY, other);
	assert_non_null(moved);
	control_set_cluster(&w->control, moved);
	lb_cluster_put(moved);
	client_cancel(a);
	finish(w);
	assert_ok(w, b);
	assert_int_equal(w->seen[b->id].attempts[0].backend, 3);
	update(w); // its own again
	world_free(w);
}

static const struct {
	enum kind kind;
	uint32_t size;
	const char *timeout, *fail;
	uint32_t n, n_ok, n_unjudged;
	enum { TO_END, CANCELS, ASKS_HALF, ASKS_LATE } client;
	uint64_t limit_ns; // the route's
} endings[] = {
	{KIND_ECHO, 10, NULL, NULL, 1, 1},
	{KIND_DOWNLOAD, 100000, NULL, NULL, 1, 1},
	{KIND_TRAILERS_ONLY, 0, NULL, NULL, 1, 0}, // status 5
	{KIND_ECHO, 10, NULL, "1 status 0", 1, 1},
	{KIND_ECHO, 10, NULL, "1 status 1", 1, 0}, // CANCELLED counts, as in C-core
	{KIND_PLAIN, 10, NULL, NULL, 1, 1},
	{KIND_HEAD, 0, NULL, NULL, 1, 1},
	{KIND_PLAIN, 0, NULL, "1 http 404", 1, 1},
	{KIND_PLAIN, 0, NULL, "1 http 500", 1, 0},
	{KIND_EARLY, 300000, NULL, NULL, 1, 1},
	{KIND_RESET, H2_INTERNAL_ERROR, NULL, NULL, 1, 0},
	{KIND_RESET, H2_CANCEL, NULL, NULL, 1, 0},
	{KIND_RESET_LATE, 2, NULL, NULL, 1, 0},
	{KIND_BAD_LENGTH, 0, NULL, NULL, 1, 0},
	{KIND_REFUSE_ONCE, 10, NULL, NULL, 2, 1, 1}, // each attempt; a refused one was not begun
	{KIND_ECHO, 10, NULL, "2 status 14", 3, 1},
	{KIND_ECHO, 10, NULL, "1 lose 0", 2, 1},
	// The client's doing.
	{KIND_HANG, 0, NULL, NULL, 1, 0, 1, CANCELS},
	{KIND_STALL_PLAIN, 30, NULL, NULL, 1, 0, 1, CANCELS},
	// Its own deadline, as we or the backend see it come.
	{KIND_HANG, 0, "50m", NULL, 1, 0, 1},
	{KIND_STALL, 30, "50m", NULL, 1, 0, 1},
	{KIND_HANG, 0, "50m", NULL, 1, 0, 1, TO_END, SECOND},
	{KIND_ECHO, 10, "50m", "1 status 4", 1, 0, 1},
	{KIND_RESET, H2_CANCEL, "50m", NULL, 1, 0, 1},
	{KIND_RESET, H2_INTERNAL_ERROR, "50m", NULL, 1, 0},
	{KIND_ECHO, 10, NULL, "1 status 4", 1, 0},
	// The route's: of those that had the request whole in time, and did not begin to answer.
	{KIND_HANG, 0, NULL, NULL, 1, 0, 0, TO_END, 50 * MS},
	{KIND_HANG, 0, "1S", NULL, 1, 0, 0, TO_END, 50 * MS},
	{KIND_ECHO, 10, "1S", "1 status 4", 1, 0, 0, TO_END, 50 * MS},
	{KIND_STALL, 30, NULL, NULL, 1, 0, 1, TO_END, 50 * MS},
	{KIND_HANG, 0, NULL, NULL, 1, 0, 1, ASKS_HALF, 50 * MS},
	{KIND_HANG, 0, NULL, NULL, 1, 0, 1, ASKS_LATE, 30 * MS},
};

static void meet_ending(struct world *w, size_t row)
{
	struct ask *a = world_ask(w, "one", endings[row].kind, endings[row].size);
	struct lb_route_policy policy = retries;
	policy.timeouts.has_max = endings[row].limit_ns;
	policy.timeouts.max_ns = endings[row].limit_ns;
	control_set_policy(&w->control, ROUTE_ONE, &policy);
	a->timeout = endings[row].timeout;
	a->fail = endings[row].fail;
	a->open_ended = endings[row].client == ASKS_HALF || endings[row].client == ASKS_LATE;
	client_ask(&w->clients[0], a);
	world_run(w, 20 * MS);
	if (endings[row].client == ASKS_LATE)
		assert_true(h2_stream_send_data(a->stream, NULL, 0, true));
	w->clients[0].host->due = true;
	if (endings[row].client == CANCELS)
		client_cancel(a);
	finish(w);
	world_run(w, SECOND); // what was lost is connected again
}

// A50-E05, A32-I09, TH-77: however it ends, once; and nobody is left in the breaker.
static void a50_e05_each_attempt_counts_once_as_what_its_backend_made_of_it(void **state)
{
	struct world *w = ready_world(NULL);
	zero(w)->load = 5;
	update(w);
	struct lb_member_counters before = counted(w);
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		meet_ending(w, i);
		struct lb_member_counters now = counted(w);
		uint64_t n = now.issued - before.issued, ok = now.ok - before.ok;
		uint64_t unjudged = now.unjudged - before.unjudged;
		if (n != endings[i].n || ok != endings[i].n_ok || unjudged != endings[i].n_unjudged)
			fail_msg("row %zu: %u attempts, %u ok, %u not judged", i, (unsigned)n,
				(unsigned)ok, (unsigned)unjudged);
		assert_int_equal(now.ok + now.failed + now.unjudged, now.issued);
		assert_int_equal(in_flight(w), 0);
		const struct lb_load_counters *load = &w->link->loads[5];
		assert_int_equal(load->issued, now.issued);
		assert_int_equal(load->ok, now.ok);
		assert_int_equal(load->failed, now.failed + now.unjudged);
		before = now;
	}
	// A client that goes away takes all of its attempts along.
	for (int i = 0; i < 10; i++)
		ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 10);
	client_abort(&w->clients[0]);
	world_run(w, SECOND);
	assert_int_equal(counted(w).failed, before.failed);
	assert_int_equal(counted(w).unjudged, before.unjudged + 10);
	assert_int_equal(in_flight(w), 0);
	world_free(w);
}

// A request ends under the load that it was sent under (lb_shared.loads).
static void a27_i10_an_attempt_keeps_its_load_counter(void **state)
{
	struct world *w = ready_world(NULL);
	zero(w)->load = 5;
	update(w);
	struct ask *a = ask(w, KIND_HANG, 0);
	world_run(w, 20 * MS);
	zero(w)->load = 6;
	update(w);
	client_cancel(a);
	world_run(w, 20 * MS);
	struct ask *b = ask(w, KIND_ECHO, 1);
	finish(w);
	assert_ok(w, b);
	const struct lb_load_counters *l = w->link->loads;
	assert_int_equal(l[5].issued, 1);
	assert_int_equal(l[5].failed, 1);
	assert_int_equal(l[6].issued, 1);
	assert_int_equal(l[6].ok, 1);
	zero(w)->load = 0; // nobody wants to know any more
	update(w);
	ask(w, KIND_ECHO, 1);
	finish(w);
	assert_int_equal(l[0].issued + l[5].issued + l[6].issued, 2);
	world_free(w);
}

// A48-01, A48-02, MC-12
static void a48_02_requests_in_flight_are_shared_and_fall_to_zero(void **state)
{
	static const struct lb_policy_spec least = {
		.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 10}};
	struct world *w = a_world();
	zero(w)->spec = &least;
	use_backends(w, 0x3);
	open_client(w);
	world_run(w, 20 * MS);
	struct ask *held[10];
	for (int i = 0; i < 10; i++) {
		held[i] = ask(w, KIND_HANG, 0);
		world_run(w, 5 * MS);
	}
	uint32_t active[2] = {w->shared->active[0], w->shared->active[1]};
	assert_int_equal(active[0] + active[1], 10);
	assert_in_range(active[0], 4, 6); // ten draws miss one of two once in 512
	for (int i = 0; i < 10; i++)
		if (w->seen[held[i]->id].attempts[0].backend == 2)
			client_cancel(held[i]);
	world_run(w, 20 * MS);
	uint32_t n = w->backends[0].n_served;
	for (int i = 0; i < 20; i++) {
		ask(w, KIND_ECHO, 1);
		finish_of(w, &w->asks[w->n_asks - 1]);
	}
	assert_in_range(w->backends[0].n_served - n, 0, 1);
	for (int i = 0; i < 10; i++)
		client_cancel(held[i]);
	world_run(w, 20 * MS);
	assert_int_equal(w->shared->active[0] + w->shared->active[1], 0);
	world_free(w);
}

// Sessions.

static const struct lb_filter lane = {
	.name = {"s", 1}, .kind = LB_FILTER_SESSION, .session = {true, {"lane", 4}, {"", 0}, 60}};
static const struct control_host both[] = {{1, "", true}, {2, "", true}};

static struct world *session_world(void)
{
	struct world *w = ready_world(NULL);
	control_set_filters(&w->control, 0, &lane, 1, LB_NO_TIMEOUT, 0);
	control_set_hosts(&w->control, 0, HOST_BACKENDS, both, 2);
	world_run(w, 20 * MS);
	return w;
}

static struct ask *ask_at(struct world *w, uint32_t backend, enum kind kind)
{
	static char values[16][128]; // asks read theirs at once
	static uint32_t n;
	char *value = values[n++ % 16], address[IP_PORT_TEXT_MAX];
	struct ip_port at = {wire_address(HOST_BACKENDS, backend), 50051};
	const struct lb_session_cookie c = {str_from(ip_port_print(&at, address)), STR("zero")};
	size_t len = lb_session_write(&lane.session, &c, value, 128);
	len = strcspn(value, ";") < len ? strcspn(value, ";") : len;
	struct ask *a = world_ask(w, "one", kind, 0);
	a->extra[0] = (struct field){.name = STR("cookie"), .value = {value, len}};
	client_ask(&w->clients[0], a);
	return a;
}

// A75-I11, A75-O21
static void a75_i11_sessions_pass_drops_breaker_and_counters(void **state)
{
	struct world *w = session_world();
	zero(w)->load = 5;
	zero(w)->max_requests = 2;
	update(w);
	struct ask *held[2] = {ask_at(w, 2, KIND_HANG), ask_at(w, 2, KIND_HANG)};
	world_run(w, 20 * MS);
	assert_int_equal(in_flight(w), 2);
	assert_int_equal(issued(w, 5), 2);
	struct ask *refused = ask_at(w, 2, KIND_ECHO);
	finish_of(w, refused);
	assert_reply(refused, 14);
	assert_int_equal(world_ended(w, LB_CAUSE_OVERFLOW), 1);
	client_cancel(held[0]);
	client_cancel(held[1]);
	world_run(w, 20 * MS);
	assert_int_equal(counted(w).unjudged, 2);
	set_drops(w, LB_DROP_ALL, 0);
	struct ask *dropped = ask_at(w, 2, KIND_ECHO);
	finish(w);
	assert_string_equal(dropped->message, "cluster zero: EDS-configured drop: first");
	assert_int_equal(w->backends[1].n_served, 2);
	world_free(w);
}

// A75-O21: the others' turns go on as if sessions were not there.
static void a75_o21_sessions_take_no_turn(void **state)
{
	struct world *w = session_world();
	uint32_t at[2] = {0};
	for (int i = 0; i < 10; i++) {
		struct ask *bound = ask_at(w, 2, KIND_ECHO);
		finish(w);
		assert_int_equal(w->seen[bound->id].attempts[0].backend, 2);
		struct ask *other = ask(w, KIND_ECHO, 1);
		finish(w);
		at[w->seen[other->id].attempts[0].backend - 1]++;
	}
	assert_int_equal(at[0], 5);
	assert_int_equal(at[1], 5);
	world_free(w);
}

// A75-O12, MC-16
static void a75_o12_use_is_noted_for_sessions_alone_and_once_a_second(void **state)
{
	struct world *w = ready_world(NULL);
	ask(w, KIND_ECHO, 1);
	finish(w);
	for (uint32_t i = 0; i < w->control.n_members; i++)
		assert_int_equal(w->link->members[i].used_ns, 0);
	world_free(w);

	w = session_world();
	finish(w);
	struct ask *a = ask_at(w, 2, KIND_ECHO);
	finish(w);
	uint32_t used = w->link->members[0].used_ns ? 0 : 1;
	const uint64_t *used_ns = &w->link->members[used].used_ns;
	uint64_t first = *used_ns;
	assert_in_range(first, a->begun_ns, a->closed_ns);
	assert_int_equal(w->link->members[1 - used].used_ns, 0);
	for (int i = 0; i < 9; i++) {
		world_run(w, 100 * MS);
		ask_at(w, 2, KIND_ECHO);
		finish(w);
	}
	assert_int_equal(*used_ns, first);
	world_run(w, SECOND);
	a = ask_at(w, 2, KIND_ECHO);
	finish(w);
	assert_in_range(*used_ns, a->begun_ns, a->closed_ns);
	// A75-O12: without a cookie yet, too.
	struct ask *fresh = ask(w, KIND_ECHO, 1), *other = ask(w, KIND_ECHO, 1);
	finish(w);
	assert_ok(w, fresh);
	assert_ok(w, other);
	assert_true(w->link->members[0].used_ns && w->link->members[1].used_ns);
	world_free(w);
}

// A75-O08, A75-O19, A75-E11: endpoints of a priority that nobody needs are for sessions all the
// same.
static void a75_o08_a_session_reaches_a_lower_priority(void **state)
{
	struct world *w = session_world();
	zero(w)->masks[0] = 0x1;
	zero(w)->masks[1] = 0x2;
	zero(w)->idle_timeout_ns = 20 * SECOND;
	update(w);
	world_run(w, 100 * SECOND); // 2's connection is nobody's
	assert_int_equal(w->backends[1].n_conns, 0);
	uint32_t n = w->control.n_connect_requests;
	struct ask *a = ask_at(w, 2, KIND_ECHO), *b = ask_at(w, 2, KIND_ECHO);
	finish(w);
	assert_ok(w, a);
	assert_ok(w, b);
	assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
	assert_int_equal(w->seen[b->id].attempts[0].backend, 2);
	assert_int_equal(a->n_set_cookies, 0);
	assert_int_equal(w->control.n_connect_requests, n + 1);
	// A75-O19: it moves up, and keeps its connection.
	uint32_t accepted = w->backends[1].n_accepted;
	zero(w)->masks[0] = 0x2;
	zero(w)->masks[1] = 0x1;
	update(w);
	world_run(w, SECOND);
	a = ask_at(w, 2, KIND_ECHO);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(w->backends[1].n_accepted, accepted);
	world_free(w);
}

// A50-E08, A50-E14, A50-E16, A75-O22: a backend that fails is left out, by its sessions too, and
// comes back.
static void a50_e16_a_failing_backend_is_ejected_for_sessions_too(void **state)
{
	static const struct lb_outlier_conf outlier = {.interval_ns = 10 * SECOND,
		.base_ejection_ns = 30 * SECOND,
		.max_ejection_ns = 300 * SECOND,
		.max_ejection_percent = 100,
		.failure_percentage = {true, 100, 1, 5},
		.threshold_percent = 50};
	struct world *w = session_world();
	zero(w)->outlier = &outlier;
	update(w);
	for (int i = 0; i < 10; i++) {
		struct ask *a = ask_at(w, 2, KIND_TRAILERS_ONLY); // status 5
		finish(w);
		assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
		ask_at(w, 1, KIND_ECHO);
		finish(w);
	}
	world_run(w, 10 * SECOND);
	for (int i = 0; i < 6; i++) {
		struct ask *a = ask_at(w, 2, KIND_ECHO), *b = ask(w, KIND_ECHO, 1);
		finish(w);
		assert_ok(w, a);
		assert_int_equal(w->seen[a->id].attempts[0].backend, 1);
		assert_int_equal(w->seen[b->id].attempts[0].backend, 1);
	}
	assert_int_equal(w->backends[1].n_conns, 1); // A50-E16
	world_run(w, 41 * SECOND);
	struct ask *a = ask_at(w, 2, KIND_ECHO);
	finish(w);
	assert_int_equal(w->seen[a->id].attempts[0].backend, 2);
	assert_int_equal(w->backends[1].n_accepted, 1);
	world_free(w);
}

// MC-10: however short a picker lives, nobody is its favourite.
static void mc_10_first_picks_after_swaps_favour_nobody(void **state)
{
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 1;
	struct world *w = ready_world(&conf);
	use_backends(w, 0xf);
	world_run(w, 20 * MS);
	struct control_host host = {1, "", true};
	for (int i = 0; i < 600; i++) {
		host.is_session_target = i % 2;
		control_set_hosts(&w->control, 0, HOST_BACKENDS, &host, 1);
		ask(w, KIND_ECHO, 1);
		finish(w);
	}
	for (int i = 0; i < 4; i++)
		assert_in_range(w->backends[i].n_served, 100, 200); // 4.7 sigma of a random draw
	world_free(w);
}

#define CASE(f) cmocka_unit_test(f)
RUN_SUITE("proxy/leaf_cases", CASE(a27_i03_drops_end_at_once_and_name_their_category),
	CASE(a27_i01_first_category_that_hits_counts),
	CASE(a27_i04_a_waiting_request_is_drawn_once),
	CASE(a32_i06_the_breaker_holds_at_exactly_max_requests),
	CASE(a32_i09_queued_requests_are_not_in_flight),
	CASE(a32_i09_waiting_for_a_stream_is_not_in_flight),
	CASE(waiting_for_a_stream_ends_with_the_leaf),
	CASE(a50_e05_each_attempt_counts_once_as_what_its_backend_made_of_it),
	CASE(a27_i10_an_attempt_keeps_its_load_counter),
	CASE(a48_02_requests_in_flight_are_shared_and_fall_to_zero),
	CASE(a75_i11_sessions_pass_drops_breaker_and_counters), CASE(a75_o21_sessions_take_no_turn),
	CASE(a75_o12_use_is_noted_for_sessions_alone_and_once_a_second),
	CASE(a75_o08_a_session_reaches_a_lower_priority),
	CASE(a50_e16_a_failing_backend_is_ejected_for_sessions_too),
	CASE(mc_10_first_picks_after_swaps_favour_nobody))
