// SPDX-License-Identifier: Apache-2.0
// What nodes over many members cost: bench_nodes [N]. Run by hand; asserts nothing.
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/member/connectivity.h"
#include "lb/member/member.h"
#include "lb/pick/limits.h"
#include "lb/pick/link.h"
#include "lb/pick/orca.h"
#include "lb/pick/picker.h"
#include "lb/policy/node_ops.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_CHANGES 2000
#define N_PICKS 1000000

struct bench {
	struct twheel *wheel;
	struct rand rand;
	struct lb_connectivity *connectivity;
	struct lb_member_env member_env;
	struct lb_node_env env;
	struct lb_node_member *members;
	uint32_t n;
	struct lb_node *node;
	struct lb_picker *picker;
	struct lb_picker *kept[2 * N_CHANGES]; // those before, as snapshots do
	uint32_t n_kept, n_published;
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); // others run beside
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static size_t heap(void)
{
	struct mallinfo2 m = mallinfo2();
	return m.uordblks + m.hblkhd;
}

static void ignore(void *ctx, struct lb_endpoint *e)
{
	(void)ctx;
	(void)e;
}

static int publish(void *ctx, enum lb_state state, struct lb_picker *picker)
{
	struct bench *b = ctx;
	(void)state;
	if (b->n_kept < sizeof(b->kept) / sizeof(b->kept[0]))
		b->kept[b->n_kept++] = b->picker;
	else
		lb_picker_put(b->picker);
	b->picker = picker;
	b->n_published++;
	return 0;
}

static void free_kept(struct bench *b)
{
	while (b->n_kept)
		lb_picker_put(b->kept[--b->n_kept]);
}

static uint32_t slot_take(void *ctx)
{
	(void)ctx;
	return 0;
}

static void slot_give(void *ctx, uint32_t slot)
{
	(void)ctx;
	(void)slot;
}

static void event(struct bench *b, uint32_t id, enum lb_event_kind kind)
{
	struct lb_event e = {.kind = kind, .endpoint_id = id};
	lb_connectivity_event(b->connectivity, 0, &e);
}

static const struct lb_node_services services = {.slot_take = slot_take, .slot_give = slot_give};

static void init(struct bench *b, uint32_t n)
{
	*b = (struct bench){.n = n, .wheel = twheel_new(1000 * NS_PER_SECOND)};
	rand_init(&b->rand, 1);
	b->connectivity = lb_connectivity_new(&(struct lb_connectivity_env){.wheel = b->wheel,
		.rand = &b->rand,
		.n_workers = 1,
		.connect = ignore,
		.release = ignore,
		.on_state = lb_member_on_state});
	b->member_env = (struct lb_member_env){b->connectivity, 250 * NS_PER_MS};
	b->env = (struct lb_node_env){.cluster = "bench",
		.wheel = b->wheel,
		.rand = &b->rand,
		.orca = lb_orca_table_new(),
		.services = &services,
		.note = "",
		.ctx = b};
	lb_node_env_init(&b->env);
	b->members = calloc(n, sizeof(b->members[0]));
	size_t before = heap();
	for (uint32_t i = 0; i < n; i++) {
		struct ip_port a = {ip_from_v4(0x0a000000 + i), 80};
		b->members[i] = (struct lb_node_member){lb_member_new(&b->member_env, i, &a, 1), 1};
	}
	printf("  bytes of an IDLE member                 %zu\n", (heap() - before) / n);
}

static void update(struct bench *b, const struct lb_policy_spec *spec, const char *what)
{
	const struct lb_node_locality l = {STR("a/b/c"), 1, b->members, b->n};
	size_t before = heap();
	uint64_t start = clock_ns();
	int err = b->node->ops->update(b->node, &(struct lb_node_config){spec, &l, 1});
	printf("  update, %-31s %.2f ms, %zu bytes each%s\n", what,
		(double)(clock_ns() - start) / 1e6, (heap() - before) / b->n, err ? " FAILED" : "");
}

// One endpoint ejected, or back. All pickers are kept meanwhile, so that nothing is used again.
static void change_one(struct bench *b)
{
	uint64_t sum = 0, max = 0;
	free_kept(b);
	size_t before = heap();
	for (uint32_t i = 0; i < N_CHANGES; i++) {
		struct lb_member *m = b->members[rand_below(&b->rand, b->n)].member;
		uint64_t start = clock_ns();
		lb_member_set_ejected(m, !lb_member_is_ejected(m));
		uint64_t took = clock_ns() - start;
		sum += took;
		max = took > max ? took : max;
	}
	size_t grown = heap() - before;
	uint64_t start = clock_ns();
	free_kept(b);
	printf("  one of them changes                     %.2f us, longest %.1f us, %zu bytes; "
	       "freeing takes %.2f us\n",
		(double)sum / N_CHANGES / 1e3, (double)max / 1e3, grown / N_CHANGES,
		(double)(clock_ns() - start) / N_CHANGES / 1e3);
}

static void pick_many(struct bench *b)
{
	static uint64_t ready[LB_MAX_ENDPOINTS / 64];
	static uint32_t active[LB_MAX_ENDPOINTS];
	memset(ready, 0xff, sizeof(ready));
	uint32_t positions[1] = {0}, check = 0;
	uint64_t start = clock_ns();
	for (uint32_t i = 0; i < N_PICKS; i++) {
		struct lb_pick_hash hash = {i * 0x9e3779b97f4a7c15, true};
		struct lb_pick_ctx ctx = {.rand = &b->rand,
			.positions = positions,
			.ready = ready,
			.active = active,
			.hash = &hash};
		check += lb_pick(b->picker, &ctx).cell->member;
	}
	printf("  one pick                                %.1f ns (%u)\n",
		(double)(clock_ns() - start) / N_PICKS, check);
}

static void run(const struct lb_node_ops *ops, const struct lb_policy_spec *spec, uint32_t n)
{
	static struct bench b;
	printf("%s over %u members\n", ops->name, n);
	init(&b, n);
	b.node = ops->new (&b.env, (struct lb_node_parent){publish, &b});
	update(&b, spec, "none connected yet");
	uint64_t start = clock_ns();
	size_t before = heap();
	for (uint32_t i = 0; i < n; i++)
		lb_member_connect(b.members[i].member); // ring_hash has not
	for (uint32_t i = 0; i < n; i++) {
		free_kept(&b);
		event(&b, i, LB_EVENT_CONNECTED);
	}
	printf("  all become READY                        %.2f us and %zu bytes each, %u pickers\n",
		(double)(clock_ns() - start) / n / 1e3, (heap() - before) / n, b.n_published);
	update(&b, spec, "all READY");
	change_one(&b);
	pick_many(&b);
	free_kept(&b);
	lb_picker_put(b.picker);
	lb_node_free(b.node);
	for (uint32_t i = 0; i < n; i++)
		lb_member_put(b.members[i].member);
	free(b.members);
	lb_orca_table_free(b.env.orca);
	lb_connectivity_free(b.connectivity);
	twheel_free(b.wheel);
}

int main(int argc, char **argv)
{
	uint32_t n = argc > 1 ? (uint32_t)atoi(argv[1]) : 100000;
	if (n == 0 || n > LB_MAX_ENDPOINTS) {
		fprintf(stderr, "usage: %s [members, up to %d]\n", argv[0], LB_MAX_ENDPOINTS);
		return 2;
	}
	struct lb_policy_spec spec = {.kind = LB_POLICY_ROUND_ROBIN};
	run(&lb_node_round_robin, &spec, n);
	spec.least_request.choice_count = 2;
	run(&lb_node_least_request, &spec, n);
	spec.ring_hash.min_size = 1024;
	spec.ring_hash.max_size = 4096;
	run(&lb_node_ring_hash, &spec, n);
	spec.wrr.blackout_ns = spec.wrr.expiration_ns = spec.wrr.update_ns = NS_PER_SECOND;
	run(&lb_node_weighted_round_robin, &spec, n);
	return 0;
}
