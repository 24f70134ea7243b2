// SPDX-License-Identifier: Apache-2.0
#include "tools/shunt-load/loop.h"

#include "dataplane/host.h"
#include "lb/base/time.h"
#include "lb/slot.h"
#include "tlshs/context.h"
#include "tools/shunt-load/client.h"
#include "tools/shunt-load/credentials.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define NAP_AFTER 2 // empty turns
#define NAP_NS 50000
#define GOODBYE_NS 50000000
#define MIN_CHUNKS 16384
#define MIN_TIME_WAIT 16384u
#define MAX_NEIGHBORS 4096
#define MAX_CHUNKS 524288 // 1 GiB, if all are ever used

enum { CLIENT, ECHO, N_SIDES };

struct loop {
	struct options options; // copied
	struct host *hosts[N_SIDES]; // NULL = not asked for
	struct tlshs_context *tls[N_SIDES]; // NULL = plain text
	struct ip_addr addresses[N_SIDES][NET_MAX_ADDRESSES];
	struct client *client;
	struct echo *echo;
	uint64_t started_ns;
	struct usage usage;
	struct { // the progress line
		bool shown;
		uint64_t next_ns, before_ns, answered;
	} progress;
	uint64_t n_empty; // turns in a row
	bool told_of_hold;
};

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SECOND + (uint64_t)ts.tv_nsec;
}

static struct host *make_host(struct loop *l, int side, const struct device_options *d,
	uint32_t max_conns, struct lb_err *reterr)
{
	uint64_t chunks = 16ull * max_conns;
	struct host_port port = {.device = d->device,
		.mtu = (uint16_t)l->options.mtu,
		.n_addresses = d->n_addresses,
		.gateways = {d->gateway, d->gateway6}};
	struct host_conf conf = {
		.ports = &port,
		.n_ports = 1,
		.max_conns = max_conns,
		.max_half_open = max_conns,
		.max_time_wait = max_conns < MIN_TIME_WAIT ? MIN_TIME_WAIT : max_conns,
		.max_neighbors = MAX_NEIGHBORS,
		.n_chunks = chunks < MIN_CHUNKS   ? MIN_CHUNKS
	                    : chunks > MAX_CHUNKS ? MAX_CHUNKS
	                                          : (uint32_t)chunks,
		.tcp_send_limit = 256 * 1024,
		.tcp_recv_window = 256 * 1024,
	};
	for (uint32_t i = 0; i < d->n_addresses; i++) {
		port.addresses[i] = d->addresses[i];
		l->addresses[side][i] = d->addresses[i].ip;
	}
	struct host *h = host_new(&conf, reterr);
	if (!h)
		lb_err_within(reterr, "%s", d->device);
	return h;
}

static int make_client(
	struct loop *l, const struct plan *plan, uint64_t seed, struct lb_err *reterr)
{
	const struct options *o = &l->options;
	struct client_conf conf = {
		.tcp = host_tcp(l->hosts[CLIENT]),
		.wheel = host_wheel(l->hosts[CLIENT]),
		.chunks = host_chunks(l->hosts[CLIENT]),
		.tls = l->tls[CLIENT],
		.plan = plan,
		.sources = l->addresses[CLIENT],
		.n_sources = o->client.n_addresses,
		.to = o->to,
		.is_http1 = o->is_http1,
		.n_conns = o->n_conns,
		.n_streams = o->n_streams,
		.n_idle = o->n_idle,
		.per_conn = o->per_conn,
		.n_requests = o->n_requests,
		.duration_ns = o->duration_ns,
		.warm_up_ns = o->warm_up_ns,
		.hold_ns = o->hold_ns,
		.probe = o->probe,
		.timeout_ns = o->timeout_ns,
		.rate = (double)o->rate,
		.seed = seed,
	};
	struct ip_addr source;
	const char *why = host_source_for(l->hosts[CLIENT], &o->to.ip, &source);
	if (why)
		return lb_err_set(reterr, "--to: %s", why);
	l->client = client_new(&conf);
	return l->client ? 0 : lb_err_set(reterr, "out of memory");
}

static int make_echo(struct loop *l, uint64_t seed, struct lb_err *reterr)
{
	const struct options *o = &l->options;
	struct echo_conf conf = {
		.tcp = host_tcp(l->hosts[ECHO]),
		.wheel = host_wheel(l->hosts[ECHO]),
		.chunks = host_chunks(l->hosts[ECHO]),
		.tls = l->tls[ECHO],
		.addresses = l->addresses[ECHO],
		.n_addresses = o->echo.n_addresses,
		.port = (uint16_t)o->listen,
		.max_conns = o->max_conns,
		.max_streams = o->max_streams,
		.answer_size = o->echo_size,
		.fault = o->fault,
		.fault_every = o->fault_every,
		.seed = seed,
	};
	l->echo = echo_new(&conf);
	return l->echo ? 0 : lb_err_set(reterr, "echo: out of memory, or an address given twice");
}

// In the order of the command line, since a memif's client wants its server to be there.
static int make_hosts(struct loop *l, struct lb_err *reterr)
{
	const struct options *o = &l->options;
	uint32_t max_conns = 2 * (o->n_conns + o->n_idle) + 1024;
	if (o->command == COMMAND_RUN) {
		l->hosts[CLIENT] = make_host(l, CLIENT, &o->client, max_conns, reterr);
		if (!l->hosts[CLIENT])
			return -EINVAL;
	}
	if (o->echo.device) {
		l->hosts[ECHO] = make_host(l, ECHO, &o->echo, o->max_conns, reterr);
		if (!l->hosts[ECHO])
			return -EINVAL;
	}
	return 0;
}

static int make_credentials(struct loop *l, struct lb_err *reterr)
{
	const struct options *o = &l->options;
	int r = o->tls ? credentials_of_client(o->is_http1, &l->tls[CLIENT], reterr) : 0;
	if (r == 0 && o->certificate)
		r = credentials_of_echo(o->certificate, o->key, &l->tls[ECHO], reterr);
	return r;
}

struct loop *loop_new(const struct options *o, const struct plan *plan, struct lb_err *reterr)
{
	struct loop *l = calloc(1, sizeof(*l));
	uint64_t seed = o->seed;
	if (!l) {
		lb_err_set(reterr, "out of memory");
		return NULL;
	}
	l->options = *o;
	if (!o->has_seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
		lb_err_set(reterr, "getrandom() failed");
		loop_free(l);
		return NULL;
	}
	int r = make_credentials(l, reterr);
	if (r == 0)
		r = make_hosts(l, reterr);
	if (r == 0 && l->hosts[ECHO])
		r = make_echo(l, ~seed, reterr);
	if (r == 0 && l->hosts[CLIENT])
		r = make_client(l, plan, seed, reterr);
	if (r != 0) {
		loop_free(l);
		return NULL;
	}
	if (l->client && l->echo)
		echo_watch(l->echo, client_tag(l->client));
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	client_free(l->client);
	echo_free(l->echo);
	for (int i = 0; i < N_SIDES; i++)
		host_free(l->hosts[i]);
	for (int i = 0; i < N_SIDES; i++)
		tlshs_context_put(l->tls[i]);
	free(l);
}

// Both ends of a memif in one process come up only while somebody waits for them. False = told to
// stop, or too late.
static bool wait_for_links(struct loop *l, const volatile int *stop)
{
	uint64_t until = clock_ns(CLOCK_MONOTONIC) + l->options.timeout_ns;
	for (int i = 0; i < N_SIDES; i++)
		while (l->hosts[i] && !host_is_up(l->hosts[i])) {
			if (*stop)
				return false;
			// The echo backend waits for its peer, however long.
			if (l->client && clock_ns(CLOCK_MONOTONIC) > until)
				return false;
			nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
		}
	return true;
}

static void show_progress(struct loop *l, uint64_t now)
{
	if (now < l->progress.next_ns)
		return;
	uint64_t done = l->client ? client_result(l->client)->ended[OUTCOME_OK]
	                          : echo_result(l->echo)->answered;
	uint64_t bad = 0;
	for (int o = OUTCOME_OK + 1; l->client && o < N_OUTCOMES; o++)
		bad += client_result(l->client)->ended[o];
	if (l->progress.before_ns)
		fprintf(stderr, "\r%6.0f s  %12llu answered  %10.0f /s  %8llu failed ",
			(double)(now - l->started_ns) / 1e9, (unsigned long long)done,
			(double)(done - l->progress.answered) * 1e9 /
				(double)(now - l->progress.before_ns),
			(unsigned long long)bad);
	l->progress.answered = done;
	l->progress.before_ns = now;
	l->progress.next_ns = now + NS_PER_SECOND;
}

// Who watches the peer's memory waits for this line.
static void tell_of_hold(struct loop *l)
{
	if (l->told_of_hold || !l->client || client_phase(l->client) != CLIENT_HOLDING)
		return;
	l->told_of_hold = true;
	fprintf(stderr, "holding %u connections\n", client_result(l->client)->idle_held);
}

static bool is_over(const struct loop *l, uint64_t now, const volatile int *stop)
{
	if (l->client)
		return client_phase(l->client) == CLIENT_DONE || *stop > 1;
	return *stop || (l->options.duration_ns && now >= l->started_ns + l->options.duration_ns);
}

static bool turn_client(struct loop *l, uint64_t now)
{
	client_begin_turn(l->client, now);
	bool busy = host_receive(l->hosts[CLIENT], now);
	busy |= client_end_turn(l->client);
	return host_flush(l->hosts[CLIENT]) || busy;
}

static bool turn_echo(struct loop *l, uint64_t now)
{
	echo_begin_turn(l->echo, now);
	bool busy = host_receive(l->hosts[ECHO], now);
	busy |= echo_end_turn(l->echo);
	return host_flush(l->hosts[ECHO]) || busy;
}

// Naps count as time, not as work.
static void nap(struct loop *l, bool busy, uint64_t now)
{
	l->n_empty = busy ? 0 : l->n_empty + 1;
	uint64_t due = l->client ? client_due_ns(l->client) : UINT64_MAX;
	if (l->n_empty < NAP_AFTER || due <= now)
		return;
	struct host *hosts[N_SIDES];
	uint32_t n = 0;
	for (int i = 0; i < N_SIDES; i++)
		if (l->hosts[i])
			hosts[n++] = l->hosts[i];
	host_rest(hosts, n, due - now < NAP_NS ? due - now : NAP_NS);
}

// Each role's turn; the clock is read between them: where one ends, the next begins. Returns now.
static uint64_t turn(struct loop *l, uint64_t now, bool counted)
{
	uint64_t begun = now;
	bool any = false;
	lb_slot_quiescent();
	for (int side = 0; side < N_SIDES; side++) {
		if (!l->hosts[side])
			continue;
		bool busy = side == CLIENT ? turn_client(l, now) : turn_echo(l, now);
		uint64_t then = now;
		now = clock_ns(CLOCK_MONOTONIC);
		if (counted && busy)
			l->usage.busy_ns[side] += now - then;
		any |= busy;
	}
	if (l->options.nap) {
		nap(l, any, now);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	if (counted)
		l->usage.ns += now - begun;
	return now;
}

// Frames that are still on their way must be read before a memif vanishes, and answered.
static void say_goodbye(struct loop *l, uint64_t now)
{
	if (l->echo)
		echo_close(l->echo);
	for (uint64_t until = now + GOODBYE_NS; now < until;)
		now = turn(l, now, false);
}

void loop_run(struct loop *l, const volatile int *stop)
{
	if (!wait_for_links(l, stop)) {
		if (l->client)
			client_give_up(l->client);
		return;
	}
	for (int i = 0; i < N_SIDES; i++)
		if (l->hosts[i])
			host_announce(l->hosts[i]);
	prctl(PR_SET_TIMERSLACK, 1000ul);
	l->progress.shown = !l->options.quiet && isatty(STDERR_FILENO);
	uint64_t cpu = 0, now = l->started_ns = clock_ns(CLOCK_MONOTONIC);
	bool counted = false, told = false;
	lb_slot_reader_start(); // so that no memif goes while it is read (dataplane/eal_grace.h)
	while (!is_over(l, now, stop)) {
		bool is_counted = !l->client || client_phase(l->client) == CLIENT_MEASURED;
		if (is_counted != counted) {
			uint64_t cpu_now = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			l->usage.cpu_ns += counted ? cpu_now - cpu : 0;
			cpu = cpu_now;
			counted = is_counted;
		}
		now = turn(l, now, counted);
		if (l->progress.shown)
			show_progress(l, now);
		tell_of_hold(l);
		if (*stop && !told && l->client) {
			told = true;
			client_stop(l->client);
		}
	}
	if (counted)
		l->usage.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (l->progress.shown)
		fputs("\r\033[K", stderr);
	say_goodbye(l, now);
	lb_slot_reader_stop();
}

static uint64_t counter(const struct loop *l, const char *name)
{
	uint64_t sum = 0;
	for (int s = 0; s < N_SIDES; s++) {
		if (!l->hosts[s])
			continue;
		struct counter_set set = host_port_counters(l->hosts[s], 0);
		for (uint32_t i = 0; i < set.n; i++)
			if (strcmp(set.names[i], name) == 0)
				sum += counter_read(&set.values[i]);
	}
	return sum;
}

struct report loop_report(const struct loop *l)
{
	return (struct report){
		.client = l->client ? client_result(l->client) : NULL,
		.echo = l->echo ? echo_result(l->echo) : NULL,
		.usage = l->usage,
		.rate = (double)l->options.rate,
		.rx_missed = counter(l, "rx_missed"),
		.tx_dropped = counter(l, "tx_dropped"),
	};
}
