// SPDX-License-Identifier: Apache-2.0
// What a worker writes for requests into memory that others have, too: of all that the control
// thread ever allocated (snapshots, pickers, routes, breakers) the line of the cluster's breaker
// alone, but for its own lane of a route table; for least_request also what is in flight at members
// (gRFC A48), and for a fault how many there are (FI-08). All of it is compared before and after
// each turn of the data plane, line by line; so this sees every write that leaves another value at
// the turn's end, and requests last for many turns. It takes the allocator's place, as sanitizers
// do: it is not built with one.
#include "lb/base/cacheline.h"
#include "lb/pick/breaker.h"
#include "lb/pick/cause.h"
#include "lb/pick/drop.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/filter.h"
#include "lb/route/session.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKS 65536

struct block {
	uint8_t *at; // NULL = freed
	size_t size;
};

// Blocks of the control thread. A freed one's place is used again.
static struct block blocks[MAX_BLOCKS];
static uint32_t n_blocks;
static bool is_control;
static bool is_watched; // a turn of the data plane is going on
static uint64_t n_allocated; // in such turns, by anybody

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static void *enter(void *p, size_t size)
{
	n_allocated += is_watched;
	if (!is_control || !p)
		return p;
	uint32_t i = 0;
	while (i < n_blocks && blocks[i].at)
		i++;
	if (i == MAX_BLOCKS)
		abort();
	blocks[i] = (struct block){p, size};
	n_blocks += i == n_blocks;
	return p;
}

static void leave(const void *p)
{
	for (uint32_t i = 0; p && i < n_blocks; i++)
		if (blocks[i].at == p)
			blocks[i].at = NULL;
}

void *malloc(size_t size)
{
	return enter(__libc_malloc(size), size);
}

void *calloc(size_t n, size_t size)
{
	return enter(__libc_calloc(n, size), n * size);
}

void *realloc(void *old, size_t size)
{
	leave(old);
	return enter(__libc_realloc(old, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return enter(__libc_memalign(alignment, size), size);
}

void free(void *p)
{
	leave(p);
	__libc_free(p);
}

struct watch {
	uint8_t *copies[MAX_BLOCKS];
	struct block then[MAX_BLOCKS];
	uint32_t n;
	uint32_t n_turns; // of the data plane; below: those that have changed…
	uint32_t n_breaker_turns; // the line of a breaker
	uint32_t n_active_turns, n_fault_turns; // a count of members or faults
	bool may_count_active, may_fault;
	uint32_t n_bad;
	uint64_t n_packets; // that others than the proxy sent in such turns
};

static struct watch watch;

static void copy_all(void)
{
	bool was = is_control;
	is_control = false;
	watch.n = n_blocks;
	for (uint32_t i = 0; i < n_blocks; i++) {
		watch.then[i] = blocks[i];
		watch.copies[i] = NULL;
		if (!blocks[i].at)
			continue;
		watch.copies[i] = malloc(blocks[i].size);
		assert_non_null(watch.copies[i]);
		memcpy(watch.copies[i], blocks[i].at, blocks[i].size);
	}
	is_control = was;
}

static bool is_of(const void *p, const void *line, size_t size)
{
	return (const uint8_t *)line < (const uint8_t *)p + size &&
	       (const uint8_t *)p < (const uint8_t *)line + CACHELINE_SIZE;
}

static bool is_breaker(const struct world *w, const uint8_t *line)
{
	for (uint32_t i = 0; i < N_CLUSTERS; i++) {
		const struct lb_breaker *b = w->control.leaves[i].breaker;
		if (b && is_of(&b->in_flight, line, sizeof(b->in_flight)))
			return true;
	}
	return false;
}

// What any worker may write. Returns what counts the turns; NULL = it may not.
static uint32_t *common_line(const struct world *w, const uint8_t *line)
{
	const struct lb_shared *s = w->shared;
	if (is_breaker(w, line))
		return &watch.n_breaker_turns;
	if (watch.may_count_active && is_of(s->active, line, LB_MAX_MEMBERS * sizeof(s->active[0])))
		return &watch.n_active_turns;
	if (watch.may_fault && is_of(&s->active_faults, line, sizeof(s->active_faults)))
		return &watch.n_fault_turns;
	return NULL;
}

// What lookups of this worker write to (lb/route/table_scratch.h): its own of some in one block,
// which begins with where they are, that of the control thread last.
static bool is_own_table_scratch(
	const uint8_t *then, const uint8_t *now, size_t size, const uint8_t *line)
{
	const uint8_t *lanes[2];
	if (size < sizeof(lanes) + 2 * CACHELINE_SIZE)
		return false;
	memcpy(lanes, then, sizeof(lanes));
	return lanes[0] >= now + sizeof(lanes) && (uintptr_t)lanes[0] % CACHELINE_SIZE == 0 &&
	       (uintptr_t)lanes[1] % CACHELINE_SIZE == 0 && lanes[1] < now + size &&
	       line >= lanes[0] && line < lanes[1];
}

static void compare_block(
	const struct world *w, const uint8_t *now, const uint8_t *then, size_t size)
{
	const uint8_t *first = now - (uintptr_t)now % CACHELINE_SIZE;
	for (const uint8_t *line = first; line < now + size; line += CACHELINE_SIZE) {
		const uint8_t *from = line < now ? now : line;
		const uint8_t *to =
			line + CACHELINE_SIZE < now + size ? line + CACHELINE_SIZE : now + size;
		if (memcmp(from, then + (from - now), (size_t)(to - from)) == 0)
			continue;
		uint32_t *counts = common_line(w, line);
		if (counts) {
			++*counts;
		} else if (!is_own_table_scratch(then, now, size, line)) {
			print_error("line %td of %p, %zu bytes\n", (line - first) / CACHELINE_SIZE,
				now, size);
			watch.n_bad++;
		}
	}
}

static void compare_all(const struct world *w)
{
	for (uint32_t i = 0; i < watch.n; i++) {
		const struct block *b = &watch.then[i];
		if (b->at) // the data plane frees nothing of it
			compare_block(w, b->at, watch.copies[i], b->size);
		free(watch.copies[i]);
	}
	watch.n_turns++;
}

static void (*begin_turn)(void *), (*end_turn)(void *);

static void watched_begin(void *ctx)
{
	is_control = true;
	begin_turn(ctx); // the control thread's part, then the worker takes the snapshot
	is_control = false;
	copy_all();
	is_watched = true;
	watch.n_packets -= ((struct world *)ctx)->wire.serial;
}

static void watched_end(void *ctx)
{
	struct world *w = ctx;
	proxy_end_turn(w->proxy);
	is_watched = false;
	watch.n_packets += w->wire.serial;
	compare_all(w);
	// What follows is the world's own view of it, at the end of a turn without anything to do.
	proxy_begin_turn(w->proxy, w->control.snapshot, w->wire.now_ns);
	end_turn(ctx);
}

static void control_enters(bool enters)
{
	is_control = enters;
}

static struct world *watched_world(void)
{
	n_blocks = 0;
	memset(&watch, 0, sizeof(watch));
	struct world_conf conf = world_conf_default(11);
	conf.n_clients = 1;
	conf.n_backends = 3;
	conf.in_control = control_enters;
	return world_new(&conf);
}

static void start(struct world *w)
{
	is_control = true;
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0x7);
	is_control = false;
	open_client(w);
	world_run(w, 50 * MS);
	struct host *h = &w->wire.hosts[HOST_PROXY];
	begin_turn = h->begin_turn;
	end_turn = h->end_turn;
	h->begin_turn = watched_begin;
	h->end_turn = watched_end;
}

static void stop(struct world *w)
{
	struct host *h = &w->wire.hosts[HOST_PROXY];
	h->begin_turn = begin_turn;
	h->end_turn = end_turn;
	world_free(w);
}

static void ask_many(struct world *w)
{
	for (int i = 0; i < 40; i++) {
		ask(w, KIND_ECHO, 100 + (uint32_t)i * 50);
		if (i % 4 == 3)
			world_run(w, MS);
	}
	finish(w);
	for (uint32_t i = 0; i < w->n_asks; i++)
		assert_ok(w, &w->asks[i]);
}

static void request_writes_no_shared_line_but_the_breakers(void **state)
{
	struct world *w = watched_world();
	start(w);
	ask_many(w);
	assert_true(watch.n_turns > 50);
	assert_true(watch.n_breaker_turns > 5); // so it would see another one, too
	assert_int_equal(watch.n_bad, 0);
	stop(w);
}

static const struct lb_policy_spec policies[] = {
	{.kind = LB_POLICY_ROUND_ROBIN},
	{.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
		.wrr = {.expiration_ns = 180 * SECOND, .update_ns = 100 * MS, .error_penalty = 1}},
	{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}},
	{.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 64, .max_size = 64}},
	{.kind = LB_POLICY_PICK_FIRST},
};

// Sessions, faults, drops and retries, and load reports of it all.
static void ask_for_much(struct world *w, const struct lb_policy_spec *policy)
{
	static const struct control_host hosts[] = {
		{1, "one.test", true}, {2, "two.test", true}, {3, "", true}};
	static const struct lb_filter filters[] = {{.name = {"f", 1},
							   .kind = LB_FILTER_FAULT,
							   .fault = {.delay = LB_DELAY_FIXED,
								   .delay_ns = 2 * MS,
								   .delay_numerator = 30,
								   .delay_denominator = 100,
								   .max_active = UINT32_MAX}},
		{.name = {"s", 1},
			.kind = LB_FILTER_SESSION,
			.session = {true, {"lane", 4}, {"", 0}, 60}}};
	static const struct lb_route_policy retries = {
		.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = MS, .max_ns = MS}};
	struct control_leaf *l = &w->control.leaves[0];
	is_control = true;
	l->spec = policy;
	l->drops[0] = (struct lb_drop_category){"some", LB_DROP_ALL / 10};
	l->n_drops = 1;
	l->load = 3;
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	control_set_filters(&w->control, 0, filters, 2, LB_NO_TIMEOUT, 0);
	control_set_hosts(&w->control, 0, HOST_BACKENDS, hosts, 3);
	is_control = false;
	world_run(w, 50 * MS);
}

static void no_policy_or_filter_writes_another_shared_line(void **state)
{
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct world *w = watched_world();
		start(w);
		ask_for_much(w, &policies[i]);
		watch.may_fault = true;
		watch.may_count_active = policies[i].kind == LB_POLICY_LEAST_REQUEST;
		for (int k = 0; k < 24; k++) {
			ask_with(w, KIND_ECHO, 100, NULL, k % 5 == 4 ? "1 status 14" : NULL);
			if (k % 4 == 3)
				world_run(w, MS);
		}
		finish(w);
		assert_true(watch.n_breaker_turns > 5 && watch.n_fault_turns > 2);
		assert_true(!watch.may_count_active || watch.n_active_turns > 5);
		assert_int_equal(watch.n_bad, 0);
		assert_true(world_counter(w, "sessions_set") > 5 &&
			    world_ended(w, LB_CAUSE_DROPPED) > 0 &&
			    world_counter(w, "retries") > 0);
		stop(w);
	}
}

// Others do: the wire for each packet, a backend for each request that it gets.
static void request_allocates_nothing(void **state)
{
	struct world *w = watched_world();
	start(w);
	ask_many(w); // the first one through each connection
	uint64_t before = n_allocated - watch.n_packets;
	ask_many(w);
	assert_int_equal(w->n_asks, 80);
	assert_int_equal(n_allocated - watch.n_packets - before, 40);
	stop(w);
}

// The blocks that a worker writes in every turn begin lines of their own (cacheline.h ends them
// so), and what all workers write lies apart from what each request reads.
static void blocks_of_one_writer_begin_lines(void **state)
{
	struct world *w = watched_world();
	const struct host *h = &w->wire.hosts[HOST_PROXY];
	const void *own[] = {w->shared, &w->shared->active_faults, w->shared->active, w->proxy,
		w->link, w->link->clusters, w->link->endpoints, w->link->members, w->link->loads,
		w->link->commands.items, w->link->events.items, h->tcp, h->wheel, h->chunks.memory};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_int_equal((uintptr_t)own[i] % CACHELINE_SIZE, 0);
	world_free(w);
}

RUN_SUITE("sim/proxy sharing", cmocka_unit_test(request_writes_no_shared_line_but_the_breakers),
	cmocka_unit_test(no_policy_or_filter_writes_another_shared_line),
	cmocka_unit_test(request_allocates_nothing),
	cmocka_unit_test(blocks_of_one_writer_begin_lines))
