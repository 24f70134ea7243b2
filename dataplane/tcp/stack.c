// SPDX-License-Identifier: Apache-2.0
// A worker's stack: its memory, its listeners' and connections' tables, and the pass that sends.
#include "dataplane/tcp/tcp_internal.h"
#include "dataplane/tcp/timewait.h"
#include "lb/base/cacheline.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"

#include <stdlib.h>

#define MAX_FAILURES 4 // connections in a row that get no buffer before a flush gives up
#define MIN_RECENT 1024

static uint32_t table_size(uint32_t n)
{
	uint32_t size = 16;
	while (size < n && size < UINT32_C(1) << 31)
		size <<= 1;
	return size;
}

static void again_fire(struct twheel_timer *t)
{
	(void)t; // that the turn happens is all: its flush does the work
}

static uint8_t window_scale(uint32_t window)
{
	uint8_t shift = 0;
	while (shift < 14 && window >> shift > UINT16_MAX)
		shift++;
	return shift;
}

struct tcp_stack *tcp_stack_new(const struct tcp_conf *conf, const struct tcp_io *io,
	struct pool *chunks, struct twheel *wheel)
{
	struct tcp_stack *s = cacheline_alloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->conf = *conf;
	if (!s->conf.congestion)
		s->conf.congestion = &tcp_cc_cubic;
	s->io = *io;
	s->chunks = chunks;
	s->wheel = wheel;
	s->dropped = &s->own_dropped;
	s->key = sip_init(conf->secret);
	s->rcv_wscale = window_scale(max_u32(conf->recv_window, conf->window_max));
	rand_init(&s->rand, conf->seed);
	s->next_port = (uint32_t)rand_u64(&s->rand);
	tcp_stack_set_ports(s, 0, 1);
	list_init(&s->dirty);
	list_init(&s->tw_order);
	s->tw_timer.fire = tcp_tw_fire;
	s->again.fire = again_fire;
	s->expire = tcp_expire_fire;
	uint32_t n_buckets = table_size(conf->max_conns);
	uint32_t n_tw_buckets = table_size(conf->max_time_wait);
	s->table_mask = n_buckets - 1;
	s->tw_mask = n_tw_buckets - 1;
	uint32_t n_recent = table_size(max_u32(2 * conf->max_conns, MIN_RECENT));
	s->recent_key = siphash24(s->key, NULL, 0, 0) | 1;
	s->recent_shift = (unsigned)__builtin_clzll(n_recent) + 1;
	s->recent = cacheline_alloc(n_recent, sizeof(struct tcp_conn *));
	s->table = cacheline_alloc(n_buckets, sizeof(*s->table));
	s->tw_table = cacheline_alloc(n_tw_buckets, sizeof(*s->tw_table));
	// Ranges: a hundred connections with holes everywhere, and two holes in all others.
	uint32_t n_ranges = 100 * TCP_MAX_RANGES + 2 * conf->max_conns;
	// Runs: likewise.
	uint32_t n_runs = 100 * TCP_MAX_RUNS + TCP_OWN_RUNS * conf->max_conns;
	if (!s->table || !s->tw_table || !s->recent ||
		pool_init(&s->conns, sizeof(struct tcp_conn), conf->max_conns) ||
		pool_init(&s->ranges, sizeof(struct tcp_range), n_ranges) ||
		pool_init(&s->runs, sizeof(struct tcp_run), n_runs) ||
		pool_init(&s->tws, sizeof(struct tcp_tw), conf->max_time_wait)) {
		tcp_stack_free(s);
		return NULL;
	}
	return s;
}

void tcp_stack_free(struct tcp_stack *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->table && i <= s->table_mask; i++)
		while (s->table[i])
			tcp_conn_drop(s->table[i]);
	twheel_cancel(s->wheel, &s->tw_timer);
	twheel_cancel(s->wheel, &s->again);
	pool_fini(&s->conns);
	pool_fini(&s->ranges);
	pool_fini(&s->runs);
	pool_fini(&s->tws);
	cacheline_free(s->table);
	cacheline_free(s->tw_table);
	cacheline_free(s->recent);
	cacheline_free(s);
}

void tcp_stack_set_company(struct tcp_stack *s, enum lb_company company)
{
	s->company = company;
}

void tcp_stack_flush(struct tcp_stack *s)
{
	struct list_link todo, left;
	unsigned n_failures = 0;
	bool more = false;
	if (list_empty(&s->dirty))
		return;
	list_init(&todo);
	list_init(&left);
	list_splice(&todo, &s->dirty);
	while (!list_empty(&todo) && n_failures < MAX_FAILURES) {
		struct tcp_conn *c = CONTAINER_OF(todo.next, struct tcp_conn, dirty);
		list_remove(&c->dirty);
		enum tcp_output_result result = tcp_output(c);
		if (result == TCP_OUTPUT_DONE) {
			n_failures = 0;
			continue;
		}
		list_append(&left, &c->dirty);
		if (result == TCP_OUTPUT_MORE) {
			more = true;
			n_failures = 0;
			continue;
		}
		n_failures++;
		// Starts the user timeout's clock even if nothing ever gets out.
		if (c->state == TCP_OPEN && tcp_output_pending(c) && !c->deadlines[TCP_TIMER_RTX]) {
			c->progress_ns = tcp_now(s);
			tcp_rtx_start(c);
		}
	}
	// Those that were not tried come first next time.
	list_splice(&s->dirty, &todo);
	list_splice(&s->dirty, &left);
	if (more)
		twheel_arm(s->wheel, &s->again, tcp_now(s));
	else if (!list_empty(&s->dirty))
		twheel_arm(s->wheel, &s->again, tcp_now(s) + NS_PER_MS);
}

void tcp_stack_unreachable(struct tcp_stack *s, const struct tcp_flow *flow, uint32_t seq)
{
	struct tcp_conn *c = tcp_table_find(s, flow, tcp_flow_hash(s, flow));
	if (c && c->state == TCP_SYN_SENT && seq == c->iss)
		tcp_conn_close(c, TCP_CLOSE_UNREACHABLE);
}

struct counter_set tcp_stack_counters(const struct tcp_stack *s)
{
	static const char *const names[] = {TCP_COUNTERS(COUNTER_NAME)};
	return (struct counter_set){.names = names, .values = s->counters, .n = TCP_N_COUNTERS};
}

void tcp_stack_set_drop_mark(struct tcp_stack *s, uint8_t *mark)
{
	s->dropped = mark;
}

int tcp_stack_take_drop(struct tcp_stack *s)
{
	uint8_t why = *s->dropped;
	*s->dropped = 0;
	return why ? why : -1;
}

void tcp_stack_list_pools(struct tcp_stack *s, struct pool_list *l)
{
	pool_list_add(l, "tcp_connections", &s->conns);
	pool_list_add(l, "tcp_time_wait", &s->tws);
	pool_list_add(l, "tcp_ranges", &s->ranges);
	pool_list_add(l, "tcp_runs", &s->runs);
}

uint32_t tcp_stack_n_conns(const struct tcp_stack *s)
{
	return s->n_conns;
}
