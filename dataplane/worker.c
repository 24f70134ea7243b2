// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker.h"

#include "dataplane/catch_up.h"
#include "dataplane/eal.h"
#include "dataplane/exception.h"
#include "dataplane/handover.h"
#include "dataplane/idle.h"
#include "dataplane/net/steer.h"
#include "dataplane/port.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "lb/slot.h"
#include "lb/snapshot.h"
#include "tlshs/threads.h"

#include <rte_launch.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define MAX_BURSTS 4 // of other workers' frames in one turn
#define MAX_COMMANDS 64 // in one turn
#define WATCH_INTERVAL_NS (100 * NS_PER_MS)
#define QUEUES_EACH 10 // of these

enum worker_state { WORKER_NEW, WORKER_LAUNCHED, WORKER_ENDED };

struct worker {
	uint32_t state; // enum worker_state; w: ctrl, then worker (release), r: ctrl (acquire)
	bool stop; // w: ctrl (relaxed), r: worker (relaxed)
	uint32_t index;
	enum worker_idle idle_mode;
	uint32_t n_ports;
	struct steer *steer; // borrowed
	struct handover_end *peers; // borrowed; the ways from and to other workers
	struct idle idle;
	struct twheel_timer watch; // of links, and of the devices' own counters
	uint32_t n_watches;
	struct lb_link *link; // borrowed
	const struct lb_slot *slot; // borrowed
	struct host *host;
	struct port_queue *const *queues; // the host's
	struct twheel *wheel; // the host's
	struct catch_up catch_up;
	struct proxy *proxy;
	struct lb_capture *capture; // the link's, while frames are copied; NULL = they are not
	struct tlshs_link **handshakes; // owned; by thread
	struct exception_end *exception; // borrowed; NULL = none
};

static uint64_t clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static bool is_ours(void *ctx, const struct tcp_flow *flow)
{
	const struct worker *w = ctx;
	return steer_owner(w->steer, flow) == w->index;
}

static bool is_ours_to_serve(const struct worker_conf *conf, const struct ip_addr *ip)
{
	for (uint32_t v = 0; v < conf->n_vips; v++)
		if (ip_in_prefix(ip, &conf->vips[v].prefix.ip, conf->vips[v].prefix.bits))
			return true;
	for (uint32_t p = 0; p < conf->n_ports; p++)
		for (uint32_t i = 0; i < conf->ports[p].n_addresses; i++)
			if (ip_eq(&conf->ports[p].addresses[i].ip, ip))
				return true;
	return false;
}

// The rest is for backends, so that clients alone can't shut them out.
static uint32_t max_clients(const struct worker_limits *limits)
{
	return limits->max_conns - limits->max_conns / 4;
}

static struct host *make_host(
	struct worker *w, const struct worker_conf *conf, struct lb_err *reterr)
{
	const struct worker_limits *limits = &conf->limits;
	struct host_conf host = {
		.ports = conf->ports,
		.n_ports = conf->n_ports,
		.vips = conf->vips,
		.n_vips = conf->n_vips,
		.n_vip_places = conf->n_frontends + conf->n_vip_places,
		.tunnels = conf->steer->tunnels,
		.gateways = &conf->link->shared->gateways,
		.queue = conf->index,
		.max_conns = limits->max_conns,
		.max_half_open = limits->max_conns / 4,
		.max_passive = max_clients(limits),
		.max_time_wait = limits->max_conns,
		.max_neighbors = limits->max_neighbors,
		.n_chunks = limits->n_chunks,
		.tcp_send_limit = limits->tcp_send_limit,
		.tcp_recv_window = limits->tcp_recv_window,
		.tcp_window_max = limits->window_max,
		.is_ours = w->steer->n_workers > 1 ? is_ours : NULL,
		.is_ours_ctx = w,
		.exception = w->exception,
		.relay = relays_end(conf->relays, conf->index),
	};
	return host_new(&host, reterr);
}

static struct proxy *make_proxy(struct worker *w, const struct worker_conf *conf, uint64_t seed)
{
	const struct worker_limits *limits = &conf->limits;
	struct proxy_conf proxy = {
		.frontends = conf->frontends,
		.n_frontends = conf->n_frontends,
		.n_workers = w->steer->n_workers,
		.max_clients = max_clients(limits),
		.max_requests = limits->max_requests,
		.max_queued = limits->max_queued,
		.max_conns_per_endpoint = limits->max_conns_per_endpoint,
		.connect_timeout_ns =
			conf->connect_timeout_ns ? conf->connect_timeout_ns : 20 * NS_PER_SECOND,
		.terms = conf->terms,
		.window_max = limits->window_max,
		.handshakes = {w->handshakes, conf->n_handshake_threads, WORKER_MAX_HANDSHAKES},
		.seed = seed,
		.source_for = host_source_for,
		.serve = host_serve,
		.own = host_own,
		.source_ctx = w->host,
	};
	struct h2_conf h2 = {
		.max_conns = limits->max_conns,
		.max_streams = 2 * limits->max_requests, // both sides
		.max_concurrent_streams = conf->terms.max_streams,
		.stream_window = 64 * 1024,
		.conn_window = 1024 * 1024,
		.max_header_bytes = 60 * 1024,
		.max_header_fields = 128,
		.seed = ~seed,
	};
	return proxy_new(&proxy, &h2, host_tcp(w->host), w->wheel, host_chunks(w->host), w->link);
}

static void on_neighbor(void *proxy, const struct ip_addr *ip)
{
	proxy_neighbor(proxy, ip);
}

static int check(const struct worker_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_ports >= 1 && conf->n_ports <= NET_MAX_PORTS);
	for (uint32_t i = 0; i < conf->n_frontends; i++)
		if (conf->frontends[i].port &&
			!is_ours_to_serve(conf, &conf->frontends[i].address)) {
			char text[IP_PORT_TEXT_MAX];
			return lb_err_set(reterr,
				"frontends[%u].address: %s is not an address of any port", i,
				ip_print(&conf->frontends[i].address, text));
		}
	return 0;
}

// False = out of memory.
static bool find_links(struct worker *w, const struct worker_conf *conf)
{
	w->handshakes = calloc(conf->n_handshake_threads, sizeof(w->handshakes[0]));
	for (uint32_t i = 0; w->handshakes && i < conf->n_handshake_threads; i++)
		w->handshakes[i] = tlshs_threads_link(conf->handshakes, conf->index, i);
	return w->handshakes != NULL;
}

// 0, or -EINVAL with reterr.
static int make(struct worker *w, const struct worker_conf *conf, struct lb_err *reterr)
{
	uint64_t seed;
	if (!find_links(w, conf))
		return lb_err_set(reterr, "workers[%u]: out of memory", conf->index);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return lb_err_set(reterr, "getrandom() failed");
	w->host = make_host(w, conf, reterr);
	if (!w->host)
		return lb_err_within(reterr, "workers[%u]", conf->index);
	w->queues = host_queues(w->host);
	w->wheel = host_wheel(w->host);
	w->proxy = make_proxy(w, conf, seed);
	if (!w->proxy)
		return lb_err_set(reterr,
			"workers[%u]: out of memory, or two frontends have one address and port",
			conf->index);
	net_set_on_neighbor(host_net(w->host), on_neighbor, w->proxy);
	return 0;
}

static void add_groups(struct worker *w)
{
	lb_link_add_group(w->link, "net", net_counters(host_net(w->host)));
	lb_link_add_group(w->link, "tcp", tcp_stack_counters(host_tcp(w->host)));
	lb_link_add_group(w->link, "h2", proxy_h2_counters(w->proxy));
	lb_link_add_group(w->link, "h1", proxy_h1_counters(w->proxy));
	lb_link_add_group(w->link, "proxy", proxy_counters(w->proxy));
	lb_link_add_group(w->link, "tls", proxy_tls_counters(w->proxy));
	lb_link_add_group(
		w->link, "tls_clients", proxy_handshake_counters(w->proxy, PROXY_WITH_CLIENT));
	lb_link_add_group(
		w->link, "tls_backends", proxy_handshake_counters(w->proxy, PROXY_WITH_BACKEND));
	lb_link_add_group(w->link, "handover", handover_counters(w->peers));
	host_add_groups(w->host, w->link);
}

static void list_pools(struct worker *w)
{
	struct pool_list *l = &w->link->pools;
	pool_list_add(l, "chunks", host_chunks(w->host));
	proxy_list_pools(w->proxy, l);
	tcp_stack_list_pools(host_tcp(w->host), l);
	net_list_pools(host_net(w->host), l);
	for (uint32_t i = 0; i < w->n_ports; i++) {
		if (!port_queue_has_device(w->queues[i]))
			continue;
		struct pool_view mbufs = port_queue_mbufs(w->queues[i]);
		pool_list_add_view(l, &mbufs);
	}
}

static void keep_company(struct worker *w, enum lb_company company)
{
	tcp_stack_set_company(host_tcp(w->host), company);
	net_set_silent(host_net(w->host), company == LB_BEHIND);
	__atomic_store_n(&w->link->company, company, __ATOMIC_RELEASE);
}

struct worker *worker_new(const struct worker_conf *conf, struct lb_err *reterr)
{
	if (check(conf, reterr) != 0)
		return NULL;
	struct worker *w = cacheline_alloc(1, sizeof(*w));
	if (!w) {
		lb_err_set(reterr, "workers[%u]: out of memory", conf->index);
		return NULL;
	}
	w->index = conf->index;
	w->idle_mode = conf->idle;
	w->link = conf->link;
	w->slot = conf->slot;
	w->steer = conf->steer;
	w->peers = handover_end(conf->handover, conf->index);
	w->exception = exception_end(conf->exception, conf->index);
	w->n_ports = conf->n_ports;
	if (make(w, conf, reterr) != 0) {
		worker_free(w);
		return NULL;
	}
	if (conf->n_port_parts)
		tcp_stack_set_ports(host_tcp(w->host), conf->port_part, conf->n_port_parts);
	keep_company(w, conf->company);
	add_groups(w);
	list_pools(w);
	return w;
}

static void tap(struct worker *w, struct lb_capture *to)
{
	if (w->capture)
		lb_capture_turn(w->capture, twheel_now(w->wheel));
	w->capture = to;
	host_tap(w->host, to);
	if (to) {
		to->now_ns = twheel_now(w->wheel);
		memset(to->n_lost, 0, sizeof(to->n_lost)); // of the capture before
	}
	lb_capture_heard(w->link->capture);
}

static void carry_out(struct worker *w, const struct lb_command *command)
{
	bool begins = command->kind == LB_COMMAND_CAPTURE;
	if (begins || command->kind == LB_COMMAND_CAPTURE_END)
		tap(w, begins ? w->link->capture : NULL);
	else if (command->kind == LB_COMMAND_COMPANY)
		keep_company(w, command->company);
	else if (command->kind == LB_COMMAND_CLEAR_MAXIMA)
		lb_link_clear_maxima(w->link);
	else if (!host_carry_out(w->host, w->link, command))
		proxy_command(w->proxy, command);
}

static bool take_commands(struct worker *w)
{
	struct lb_command command;
	int n = 0;
	for (; n < MAX_COMMANDS && spsc_read(&w->link->commands, &command); n++)
		carry_out(w, &command);
	return n > 0;
}

static void give_copies(struct worker *w, uint32_t port, const struct rte_mbuf *frame)
{
	for (uint32_t to = 0; to < w->steer->n_workers; to++) {
		if (to == w->index)
			continue;
		struct rte_mbuf *copy = port_queue_copy(w->queues[port], frame);
		struct handover_item item = {.frame = copy, .port = port, .is_copy = true};
		if (copy && !handover_give(w->peers, to, &item))
			rte_pktmbuf_free(copy);
	}
}

// Keeps what is this worker's and returns how much that is; the rest is on its way.
static uint32_t sort(void *ctx, uint32_t port, struct rte_mbuf **frames, uint32_t n)
{
	struct worker *w = ctx;
	bool by_device = steer_by_device(w->steer, port);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct rte_mbuf *m = frames[i];
		const uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
		uint16_t len = rte_pktmbuf_data_len(m);
		int to = steer_frame(w->steer, frame, len, by_device);
		if (to == STEER_ALL)
			give_copies(w, port, m);
		if (to < 0 || (uint32_t)to == w->index) {
			frames[kept++] = m;
			continue;
		}
		if (by_device && steer_is_evidence(frame, len))
			steer_distrust(w->steer, port);
		if (!handover_give(w->peers, (uint32_t)to,
			    &(struct handover_item){.frame = m, .port = port}))
			rte_pktmbuf_free(m);
	}
	return kept;
}

static bool take_over(struct worker *w)
{
	struct handover_item items[HANDOVER_BATCH];
	struct rte_mbuf *frames[HANDOVER_BATCH];
	struct net *net = host_net(w->host);
	uint32_t n = HANDOVER_BATCH, n_all = 0;
	for (int burst = 0; burst < MAX_BURSTS && n == HANDOVER_BATCH; burst++) {
		n = handover_take(w->peers, items, HANDOVER_BATCH);
		for (uint32_t i = 0; i < n; i++) {
			frames[i] = items[i].frame;
			rte_prefetch0(rte_pktmbuf_mtod(frames[i], void *));
		}
		for (uint32_t i = 0; i < n; i++) {
			const uint8_t *frame = rte_pktmbuf_mtod(frames[i], uint8_t *);
			uint16_t len = rte_pktmbuf_data_len(frames[i]);
			if (items[i].is_copy)
				net_hear(net, items[i].port, frame, len);
			else
				host_input(w->host, items[i].port, frames[i]);
		}
		rte_pktmbuf_free_bulk(frames, n);
		n_all += n;
	}
	return n_all > 0;
}

static bool receive(struct worker *w)
{
	if (w->steer->n_workers == 1)
		return host_poll(w->host, NULL, NULL);
	bool any = host_poll(w->host, sort, w);
	handover_flush(w->peers);
	return take_over(w) || any;
}

static void watch(struct twheel_timer *timer)
{
	struct worker *w = CONTAINER_OF(timer, struct worker, watch);
	for (uint32_t p = 0; p < w->n_ports && w->n_watches % QUEUES_EACH == 0; p++)
		port_queue_watch(w->queues[p]);
	w->n_watches++;
	host_watch_links(w->host);
	twheel_arm(w->wheel, &w->watch, twheel_now(w->wheel) + WATCH_INTERVAL_NS);
}

// What a round of the loop found to do.
enum turn { TURN_EMPTY, TURN_TIMERS, TURN_WORK };

static enum turn turn(struct worker *w, uint64_t now_ns)
{
	struct lb_worker_counters *counters = &w->link->counters;
	counter_set_to(&counters->beat_ns, now_ns);
	lb_slot_quiescent();
	const struct lb_snapshot *snap = lb_slot_read(w->slot);
	bool any = snap->version != counters->snapshot_version;
	counter_set_to(&counters->snapshot_version, snap->version);
	if (w->capture)
		lb_capture_turn(w->capture, now_ns);
	twheel_set_now(w->wheel, now_ns);
	proxy_begin_turn(w->proxy, snap, now_ns);
	any |= take_commands(w);
	bool received = receive(w);
	any |= received;
	bool fired = catch_up(&w->catch_up, now_ns, received) && twheel_advance(w->wheel, now_ns);
	proxy_end_turn(w->proxy);
	any |= host_flush(w->host);
	return any ? TURN_WORK : fired ? TURN_TIMERS : TURN_EMPTY;
}

// The clock is read once a turn: where one ends, the next begins.
static void account(struct worker *w, bool busy, uint64_t ns)
{
	struct lb_worker_counters *counters = &w->link->counters;
	counter_add(&counters->turns, 1);
	if (busy) {
		counter_add(&counters->busy_ns, ns);
		if (ns > counters->longest_turn_ns)
			counter_set_to(&counters->longest_turn_ns, ns);
		if (ns > LB_LONG_TURN_NS)
			counter_add(&counters->long_turns, 1);
	} else {
		counter_add(&counters->empty_turns, 1);
		counter_add(&counters->idle_ns, ns);
	}
}

static int run(void *arg)
{
	struct worker *w = arg;
	lb_slot_reader_start();
	idle_init(&w->idle, w->queues, w->n_ports, w->peers, exception_end_wait_fd(w->exception));
	uint64_t now = clock_ns();
	twheel_advance(w->wheel, now);
	if (w->index == 0) // for all
		host_announce(w->host);
	w->watch.fire = watch;
	watch(&w->watch);
	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		enum turn did = turn(w, now);
		// Timers alone say nothing of traffic, but a turn of theirs has no sleep in it.
		if (w->idle_mode == WORKER_IDLE_BACKOFF && did != TURN_TIMERS)
			idle_step(&w->idle, did == TURN_WORK, proxy_is_shaking(w->proxy), now,
				w->wheel);
		uint64_t then = now;
		now = clock_ns();
		account(w, did != TURN_EMPTY, now - then);
	}
	host_flush(w->host);
	if (w->capture)
		lb_capture_turn(w->capture, clock_ns());
	lb_slot_reader_stop();
	__atomic_store_n(&w->state, WORKER_ENDED, __ATOMIC_RELEASE); // pairs with worker_join()
	return 0;
}

int worker_start(struct worker *w)
{
	w->state = WORKER_LAUNCHED;
	int rc = rte_eal_remote_launch(run, w, eal_lcore_of_worker(w->index));
	if (rc < 0)
		w->state = WORKER_NEW;
	return rc;
}

void worker_stop(struct worker *w)
{
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
}

void worker_join(struct worker *w)
{
	if (w->state == WORKER_NEW)
		return;
	// rte_eal_wait_lcore() spins: it must not begin before the end.
	while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != WORKER_ENDED)
		nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
	rte_eal_wait_lcore(eal_lcore_of_worker(w->index));
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	proxy_free(w->proxy);
	host_free(w->host);
	free(w->handshakes);
	cacheline_free(w);
}
