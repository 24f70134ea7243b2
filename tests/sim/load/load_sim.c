// SPDX-License-Identifier: Apache-2.0
// shunt-load's client against its echo backend over a wire that delays, reorders and loses: every
// answer is judged rightly, and an answer that is spoiled on purpose never passes. In HTTP/1.1 the
// backend is http1_peer.h.
#include "lb/base/check.h"
#include "tests/sim/load/http1_peer.h"
#include "tests/sim/proxy/wire.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/context.h"
#include "tools/shunt-load/client.h"
#include "tools/shunt-load/echo.h"
#include "tools/shunt-load/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ECHO_PORT 9090
#define MAX_CONNS 8192

struct world {
	struct wire wire;
	struct plan plan;
	struct client *client;
	struct echo *echo; // of HTTP/2
	struct http1_peer *peer; // of HTTP/1.1
	struct client_conf conf; // changed by a test before world_start()
	struct echo_conf echo_conf;
	struct http1_peer_conf peer_conf;
	struct twheel_timer tick[2];
	uint64_t heal_after; // requests, the backend does no wrong any more; 0 = never
	uint64_t stop_at_ns; // interrupt it then; 0 = never
};

static struct world w;
static uint64_t seed = 1;

static void client_begin(void *ctx)
{
	client_begin_turn(w.client, w.wire.now_ns);
}

static void client_end(void *ctx)
{
	if (w.stop_at_ns && w.wire.now_ns >= w.stop_at_ns)
		client_stop(w.client);
	client_end_turn(w.client);
}

static void echo_begin(void *ctx)
{
	echo_begin_turn(w.echo, w.wire.now_ns);
}

static void echo_end(void *ctx)
{
	if (w.heal_after && echo_result(w.echo)->requests >= w.heal_after)
		echo_heal(w.echo);
	echo_end_turn(w.echo);
}

// The program polls; here, something has to happen for a turn to come.
static void tick(struct twheel_timer *t)
{
	struct twheel *wheel = w.wire.hosts[t == &w.tick[1]].wheel;
	twheel_arm(wheel, t, twheel_now(wheel) + MS);
}

static void world_make(bool is_grpc, uint32_t body, uint32_t answer)
{
	static struct ip_addr source, listen;
	memset(&w, 0, sizeof(w));
	wire_init(&w.wire, seed);
	for (int i = 0; i < 2; i++) {
		struct host *h = wire_add_host(&w.wire, 65536, MAX_CONNS, 256 << 10);
		w.tick[i].fire = tick;
		twheel_arm(h->wheel, &w.tick[i], w.wire.now_ns + MS);
	}
	CHECK(plan_init(&w.plan, is_grpc, "echo.test") == 0);
	CHECK(plan_seal(&w.plan, PLAN_CHECK_CONTENT, body, answer) == 0);
	source = wire_address(0, 1);
	listen = wire_address(1, 1);
	w.conf = (struct client_conf){
		.tcp = w.wire.hosts[0].tcp,
		.wheel = w.wire.hosts[0].wheel,
		.chunks = &w.wire.hosts[0].chunks,
		.plan = &w.plan,
		.sources = &source,
		.n_sources = 1,
		.to = {listen, ECHO_PORT},
		.n_conns = 4,
		.n_streams = 8,
		.n_requests = 1000,
		.timeout_ns = 20 * SECOND,
		.seed = seed,
	};
	w.echo_conf = (struct echo_conf){
		.tcp = w.wire.hosts[1].tcp,
		.wheel = w.wire.hosts[1].wheel,
		.chunks = &w.wire.hosts[1].chunks,
		.addresses = &listen,
		.n_addresses = 1,
		.port = ECHO_PORT,
		.max_conns = MAX_CONNS,
		.max_streams = 100,
		.answer_size = 64,
		.seed = seed,
	};
}

static void world_make_http1(uint32_t body, uint32_t answer)
{
	world_make(false, body, answer);
	w.conf.is_http1 = true;
	w.conf.n_streams = 1;
	w.peer_conf = (struct http1_peer_conf){.tcp = w.echo_conf.tcp,
		.wheel = w.echo_conf.wheel,
		.chunks = w.echo_conf.chunks,
		.address = w.echo_conf.addresses,
		.port = ECHO_PORT,
		.max_conns = MAX_CONNS};
}

static void start_backend(void)
{
	struct host *h = &w.wire.hosts[1];
	if (w.conf.is_http1) {
		w.peer = http1_peer_new(&w.peer_conf);
		return;
	}
	w.echo = echo_new(&w.echo_conf);
	CHECK(w.echo);
	echo_watch(w.echo, client_tag(w.client));
	h->begin_turn = echo_begin;
	h->end_turn = echo_end;
}

static const struct client_result *world_run(void)
{
	w.client = client_new(&w.conf);
	CHECK(w.client);
	w.wire.hosts[0].begin_turn = client_begin;
	w.wire.hosts[0].end_turn = client_end;
	start_backend();
	while (client_phase(w.client) != CLIENT_DONE && w.wire.now_ns < 600 * SECOND)
		wire_step(&w.wire, 600 * SECOND);
	assert_int_equal(client_phase(w.client), CLIENT_DONE);
	return client_result(w.client);
}

static void world_end(void)
{
	client_free(w.client);
	echo_free(w.echo);
	http1_peer_free(w.peer);
	plan_fini(&w.plan);
	for (int i = 0; i < 2; i++) {
		w.wire.hosts[i].begin_turn = w.wire.hosts[i].end_turn = NULL;
		tcp_stack_flush(w.wire.hosts[i].tcp);
	}
	// What was queued anywhere went back: nothing leaks chunks.
	uint64_t until = w.wire.now_ns + 120 * SECOND;
	while (wire_step(&w.wire, until))
		;
	for (int i = 0; i < 2; i++)
		assert_int_equal(w.wire.hosts[i].chunks.n_used, 0);
	wire_fini(&w.wire);
}

static uint64_t all_ended(const struct client_result *r)
{
	uint64_t n = 0;
	for (int o = 0; o < N_OUTCOMES; o++)
		n += r->ended[o];
	return n;
}

static bool is_good(const struct client_result *r)
{
	struct report report = {.client = r, .echo = w.echo ? echo_result(w.echo) : NULL};
	const struct http1_peer_result *p = w.peer ? http1_peer_result(w.peer) : NULL;
	return report_is_good(&report) && (!p || (p->altered == 0 && p->doubled == 0));
}

static void every_answer_is_right_over_a_lossy_wire(void **state)
{
	static const uint32_t sizes[][2] = {{0, 0}, {0, 64}, {7, 7}, {8, 8}, {100, 100},
		{20000, 10}, {3, 30000}, {300000, 300000}};
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint32_t *size = sizes[i / 2];
		world_make(i & 1, size[0], size[1]);
		w.wire.loss = .02;
		w.conf.n_requests = size[0] + size[1] > 100000 ? 40 : 1000;
		w.conf.timeout_ns = 120 * SECOND;
		const struct client_result *r = world_run();
		assert_int_equal(r->ended[OUTCOME_OK], w.conf.n_requests);
		assert_int_equal(all_ended(r), w.conf.n_requests);
		assert_int_equal(r->latency.n, w.conf.n_requests);
		assert_true(histogram_quantile(&r->latency, 0) >= 2 * w.wire.delay_ns);
		assert_int_equal(echo_result(w.echo)->answered, w.conf.n_requests);
		assert_true(is_good(r));
		world_end();
	}
}

static void a_backend_that_lies_is_found_out(void **state)
{
	static const enum outcome wanted[ECHO_N_FAULTS] = {[ECHO_FAULT_ALTER] = OUTCOME_ALTERED,
		[ECHO_FAULT_CUT] = OUTCOME_ALTERED,
		[ECHO_FAULT_SWAP] = OUTCOME_DOUBLED,
		[ECHO_FAULT_STATUS] = OUTCOME_STATUS,
		[ECHO_FAULT_RESET] = OUTCOME_RESET,
		[ECHO_FAULT_SILENT] = OUTCOME_TIMED_OUT};
	for (int fault = ECHO_FAULT_NONE + 1; fault < ECHO_N_FAULTS; fault++)
		for (int is_grpc = 0; is_grpc < 2; is_grpc++) {
			world_make(is_grpc, 0, 64);
			w.echo_conf.fault = (enum echo_fault)fault;
			w.echo_conf.fault_every = 100;
			const struct client_result *r = world_run();
			assert_int_equal(r->ended[wanted[fault]], 10);
			assert_int_equal(r->ended[OUTCOME_OK], 990);
			assert_int_equal(echo_result(w.echo)->faults, 10);
			assert_false(is_good(r));
			world_end();
		}
}

static void latency_counts_from_the_planned_time(void **state)
{
	// No coordinated omission: requests that could only be sent late say so.
	world_make(false, 0, 64);
	w.conf.n_conns = 1;
	w.conf.n_streams = 1;
	w.conf.n_requests = 0;
	w.conf.duration_ns = 2 * SECOND;
	w.conf.rate = 100;
	w.wire.delay_ns = 20 * MS; // 40 ms an answer: 25 a second at most, of 100 planned
	w.wire.jitter_ns = 0;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 200);
	// The last one was planned at 2 s and answered at 8 s.
	assert_true(r->latency.max > 5 * SECOND && r->latency.max < 7 * SECOND);
	assert_true(is_good(r));
	world_end();
}

static void a_rate_is_kept(void **state)
{
	world_make(true, 50, 50);
	w.conf.n_requests = 0;
	w.conf.duration_ns = 3 * SECOND;
	w.conf.warm_up_ns = 1 * SECOND;
	w.conf.rate = 1000;
	const struct client_result *r = world_run();
	assert_int_equal(r->sent, 4000);
	assert_in_range(r->measured, 2990, 3010);
	assert_in_range(r->latency.n, 2990, 3010);
	assert_true(r->latency.max < 10 * MS);
	assert_int_equal(r->window_ns, 3 * SECOND);
	world_end();
}

static void connections_are_opened_used_and_closed(void **state)
{
	world_make(false, 0, 64);
	w.wire.loss = .01;
	w.conf.per_conn = 3;
	w.conf.n_requests = 900;
	w.conf.n_idle = 50;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 900);
	assert_int_equal(r->opened, 50 + 900 / 3); // none in vain
	assert_int_equal(r->conns_lost, 0);
	assert_int_equal(r->idle_held, 50);
	assert_int_equal(r->idle_lost, 0);
	assert_true(is_good(r));
	world_end();
}

// As many requests as connections: each has one.
static void all_connections_are_held_after_the_last_answer(void **state)
{
	world_make(false, 0, 64);
	w.conf.n_conns = 40;
	w.conf.n_streams = 1;
	w.conf.n_idle = 5;
	w.conf.n_requests = 40;
	w.conf.hold_ns = 30 * SECOND;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 40);
	assert_int_equal(r->opened, 45);
	assert_int_equal(r->idle_held, 45);
	assert_int_equal(r->idle_lost, 0);
	assert_true(r->window_ns < SECOND);
	assert_true(w.wire.now_ns > 30 * SECOND);
	assert_true(is_good(r));
	world_end();
}

static void a_held_run_ends_when_told_to(void **state)
{
	world_make(false, 0, 64);
	w.conf.n_requests = 40;
	w.conf.hold_ns = 300 * SECOND;
	w.stop_at_ns = 10 * SECOND;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 40);
	assert_int_equal(r->ended[OUTCOME_CUT], 0);
	assert_true(w.wire.now_ns < 60 * SECOND);
	assert_true(is_good(r));
	world_end();
}

static void close_echo(struct twheel_timer *t)
{
	echo_close(w.echo);
}

static void a_held_connection_that_goes_is_a_failure(void **state)
{
	struct twheel_timer timer = {.fire = close_echo};
	world_make(false, 0, 64);
	w.conf.n_requests = 40;
	w.conf.hold_ns = 10 * SECOND;
	twheel_arm(w.wire.hosts[1].wheel, &timer, 3 * SECOND);
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 40);
	assert_int_equal(r->idle_lost, 4);
	assert_false(is_good(r));
	world_end();
}

static void an_interrupted_run_fails_nobody(void **state)
{
	world_make(false, 0, 64);
	w.conf.n_requests = 1000000000;
	w.stop_at_ns = 3 * SECOND;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_CUT], 32);
	assert_int_equal(all_ended(r), r->sent);
	assert_true(is_good(r));
	world_end();
}

static void a_target_that_is_not_there_is_given_up(void **state)
{
	world_make(false, 0, 64);
	w.wire.hosts[1].unplugged = true;
	const struct client_result *r = world_run();
	assert_true(r->gave_up);
	assert_false(is_good(r));
	assert_int_equal(all_ended(r), 0);
	assert_true(w.wire.now_ns < 40 * SECOND);
	world_end();
}

// The backend goes away in the middle.
static void break_wire(struct twheel_timer *t)
{
	w.wire.hosts[1].unplugged = true;
}

static void requests_to_a_backend_that_dies_are_lost(void **state)
{
	struct twheel_timer timer = {.fire = break_wire};
	world_make(true, 100, 100);
	w.conf.n_requests = 100000000;
	w.conf.timeout_ns = 2 * SECOND;
	twheel_arm(w.wire.hosts[1].wheel, &timer, 3 * SECOND);
	const struct client_result *r = world_run();
	assert_true(r->ended[OUTCOME_OK] > 1000);
	assert_true(r->ended[OUTCOME_TIMED_OUT] + r->ended[OUTCOME_LOST] >= 32);
	assert_false(is_good(r));
	assert_true(w.wire.now_ns < 120 * SECOND);
	world_end();
}

static void probes_wait_for_a_right_answer_and_count_nowhere(void **state)
{
	world_make(true, 50, 50);
	w.conf.probe = true;
	w.conf.n_requests = 300;
	w.echo_conf.fault = ECHO_FAULT_STATUS;
	w.echo_conf.fault_every = 1;
	w.heal_after = 10;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 300);
	assert_int_equal(all_ended(r), 300);
	assert_int_equal(r->sent, 300);
	assert_int_equal(r->latency.n, 300);
	assert_int_equal(echo_result(w.echo)->requests, 300 + 10 + 1);
	assert_true(is_good(r));
	world_end();
}

static void probes_give_up(void **state)
{
	world_make(true, 50, 50);
	w.conf.probe = true;
	w.echo_conf.fault = ECHO_FAULT_SILENT;
	w.echo_conf.fault_every = 1;
	const struct client_result *r = world_run();
	assert_true(r->gave_up);
	assert_int_equal(r->sent, 0);
	assert_false(is_good(r));
	world_end();
}

static void more_streams_than_the_backend_allows_wait(void **state)
{
	world_make(false, 0, 64);
	w.echo_conf.max_streams = 3;
	w.conf.n_streams = 50;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 1000);
	assert_true(is_good(r));
	world_end();
}

static struct tlshs_context *context(enum tlshs_role role)
{
	const struct str alpn[] = {STR("h2")};
	struct tlshs_context_conf conf = {.role = role, .alpn = alpn, .n_alpn = 1};
	struct lb_err err;
	if (role == TLSHS_SERVER) {
		struct pki_cert cert = pki_make((struct pki_conf){.name = "echo"});
		conf.certificate_pem = cert.pem;
		conf.key_pem = cert.key_pem;
	}
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	if (!c)
		fail_msg("%s", err.text);
	return c;
}

static void with_tls_every_answer_is_right_over_a_lossy_wire(void **state)
{
	static const uint32_t sizes[][2] = {{0, 64}, {8, 8}, {300000, 300000}};
	struct tlshs_context *client = context(TLSHS_CLIENT), *server = context(TLSHS_SERVER);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		world_make(true, sizes[i][0], sizes[i][1]);
		w.wire.loss = .02;
		w.conf.tls = client;
		w.echo_conf.tls = server;
		w.conf.n_requests = 100;
		w.conf.per_conn = 20;
		w.conf.timeout_ns = 120 * SECOND;
		const struct client_result *r = world_run();
		assert_int_equal(r->ended[OUTCOME_OK], 100);
		assert_true(is_good(r));
		world_end();
	}
	tlshs_context_put(client);
	tlshs_context_put(server);
	pki_end();
}

static void one_end_with_tls_gives_up(void **state)
{
	struct tlshs_context *contexts[] = {context(TLSHS_CLIENT), context(TLSHS_SERVER)};
	for (int i = 0; i < 2; i++) {
		world_make(true, 8, 8);
		w.conf.timeout_ns = 2 * SECOND;
		w.conf.tls = i ? NULL : contexts[0];
		w.echo_conf.tls = i ? contexts[1] : NULL;
		w.conf.probe = true;
		const struct client_result *r = world_run();
		assert_true(r->gave_up);
		assert_int_equal(r->ended[OUTCOME_OK], 0);
		assert_false(is_good(r));
		world_end();
	}
	tlshs_context_put(contexts[0]);
	tlshs_context_put(contexts[1]);
	pki_end();
}

static void in_http1_every_answer_is_right_over_a_lossy_wire(void **state)
{
	static const uint32_t sizes[][2] = {{0, 0}, {0, 64}, {7, 7}, {8, 8}, {100, 100},
		{20000, 10}, {3, 30000}, {300000, 300000}};
	for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
		const uint32_t *size = sizes[i / 2];
		world_make_http1(size[0], size[1]);
		w.peer_conf.chunked = i & 1;
		w.wire.loss = .02;
		w.conf.n_requests = size[0] + size[1] > 100000 ? 40 : 500;
		w.conf.timeout_ns = 120 * SECOND;
		const struct client_result *r = world_run();
		assert_int_equal(r->ended[OUTCOME_OK], w.conf.n_requests);
		assert_int_equal(all_ended(r), w.conf.n_requests);
		assert_int_equal(r->latency.n, w.conf.n_requests);
		assert_int_equal(http1_peer_result(w.peer)->requests, w.conf.n_requests);
		assert_int_equal(r->opened, w.conf.n_conns); // they stay
		assert_int_equal(r->content_in, w.conf.n_requests * size[1]);
		assert_int_equal(r->content_out, w.conf.n_requests * size[0]);
		assert_true(is_good(r));
		world_end();
	}
}

static void in_http1_a_backend_that_lies_is_found_out(void **state)
{
	static const enum outcome wanted[PEER_N_FAULTS] = {[PEER_FAULT_ALTER] = OUTCOME_ALTERED,
		[PEER_FAULT_SHORT] = OUTCOME_ALTERED,
		[PEER_FAULT_CUT] = OUTCOME_LOST,
		[PEER_FAULT_SWAP] = OUTCOME_DOUBLED,
		[PEER_FAULT_STATUS] = OUTCOME_STATUS,
		[PEER_FAULT_SILENT] = OUTCOME_TIMED_OUT,
		[PEER_FAULT_RESET] = OUTCOME_LOST,
		[PEER_FAULT_LEAVE] = OUTCOME_LOST,
		[PEER_FAULT_UNFRAMED] = OUTCOME_ALTERED,
		[PEER_FAULT_TWICE] = OUTCOME_ALTERED};
	for (int fault = PEER_FAULT_NONE + 1; fault <= PEER_FAULT_TWICE; fault++) {
		world_make_http1(0, 64);
		w.peer_conf.chunked = fault & 1;
		w.peer_conf.fault = (enum peer_fault)fault;
		w.peer_conf.fault_every = 100;
		const struct client_result *r = world_run();
		assert_int_equal(all_ended(r), 1000);
		// What is taken and not answered is lost, not sent again.
		assert_int_equal(r->resent, 0);
		assert_int_equal(http1_peer_result(w.peer)->doubled, 0);
		if (r->ended[wanted[fault]] != http1_peer_result(w.peer)->faults)
			fail_msg("fault %d: %llu", fault,
				(unsigned long long)r->ended[wanted[fault]]);
		assert_int_equal(r->ended[OUTCOME_OK] + r->ended[wanted[fault]], 1000);
		assert_false(is_good(r));
		world_end();
	}
}

static void in_http1_connections_that_the_backend_ends_well_cost_no_request(void **state)
{
	for (int fault = 0; fault < 2; fault++) {
		world_make_http1(0, 64);
		w.peer_conf.fault = fault ? PEER_FAULT_HANG_UP : PEER_FAULT_CLOSE;
		w.peer_conf.fault_every = 10;
		const struct client_result *r = world_run();
		assert_int_equal(r->ended[OUTCOME_OK], 1000);
		assert_int_equal(http1_peer_result(w.peer)->requests, 1000);
		// Told so, nobody sends what then has to be sent again.
		if (fault)
			assert_true(r->resent > 50 && r->goaways == 0);
		else
			assert_true(r->resent == 0 && r->conns_lost == 0);
		// The last one may go when all is over.
		assert_in_range(fault ? r->conns_lost : r->goaways, 99, 100);
		assert_true(is_good(r));
		world_end();
	}
}

static void in_http1_an_answer_before_the_body_is_out_ends_the_connection(void **state)
{
	world_make_http1(2000000, 64); // more than TCP takes at once
	w.conf.n_requests = 25;
	w.peer_conf.fault = PEER_FAULT_EARLY;
	w.peer_conf.fault_every = 5;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_STATUS], 5);
	assert_int_equal(r->ended[OUTCOME_OK], 20);
	assert_true(r->opened > w.conf.n_conns);
	assert_int_equal(r->conns_lost, 0); // we end them
	assert_int_equal(http1_peer_result(w.peer)->altered, 0);
	world_end();
}

// Between requests: there is none that could be blamed.
static void in_http1_an_answer_that_nobody_asked_for_is_a_failure(void **state)
{
	world_make_http1(0, 64);
	w.conf.n_conns = 1;
	w.conf.rate = 20;
	w.conf.n_requests = 100;
	w.peer_conf.fault = PEER_FAULT_LATE;
	w.peer_conf.fault_every = 50;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 100);
	assert_true(r->unasked > 0);
	assert_false(is_good(r));
	world_end();
}

static void in_http1_connections_are_opened_used_and_closed(void **state)
{
	world_make_http1(0, 64);
	w.wire.loss = .01;
	w.conf.per_conn = 3;
	w.conf.n_requests = 900;
	w.conf.n_idle = 50;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_OK], 900);
	assert_int_equal(r->opened, 50 + 900 / 3); // none in vain
	assert_int_equal(r->conns_lost, 0);
	assert_int_equal(r->idle_held, 50);
	assert_int_equal(r->idle_lost, 0);
	assert_true(is_good(r));
	world_end();
}

static void in_http1_an_interrupted_run_fails_nobody(void **state)
{
	world_make_http1(0, 64);
	w.conf.n_requests = 1000000000;
	w.stop_at_ns = 3 * SECOND;
	const struct client_result *r = world_run();
	assert_int_equal(r->ended[OUTCOME_CUT], 4);
	assert_int_equal(all_ended(r), r->sent);
	assert_true(is_good(r));
	world_end();
}

int main(int argc, char **argv)
{
	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : seed;
	printf("seed %llu\n", (unsigned long long)seed);
	const struct CMUnitTest cases[] = {
		cmocka_unit_test(every_answer_is_right_over_a_lossy_wire),
		cmocka_unit_test(a_backend_that_lies_is_found_out),
		cmocka_unit_test(latency_counts_from_the_planned_time),
		cmocka_unit_test(a_rate_is_kept),
		cmocka_unit_test(connections_are_opened_used_and_closed),
		cmocka_unit_test(all_connections_are_held_after_the_last_answer),
		cmocka_unit_test(a_held_run_ends_when_told_to),
		cmocka_unit_test(a_held_connection_that_goes_is_a_failure),
		cmocka_unit_test(an_interrupted_run_fails_nobody),
		cmocka_unit_test(a_target_that_is_not_there_is_given_up),
		cmocka_unit_test(requests_to_a_backend_that_dies_are_lost),
		cmocka_unit_test(probes_wait_for_a_right_answer_and_count_nowhere),
		cmocka_unit_test(probes_give_up),
		cmocka_unit_test(more_streams_than_the_backend_allows_wait),
		cmocka_unit_test(with_tls_every_answer_is_right_over_a_lossy_wire),
		cmocka_unit_test(one_end_with_tls_gives_up),
		cmocka_unit_test(in_http1_every_answer_is_right_over_a_lossy_wire),
		cmocka_unit_test(in_http1_a_backend_that_lies_is_found_out),
		cmocka_unit_test(in_http1_connections_that_the_backend_ends_well_cost_no_request),
		cmocka_unit_test(in_http1_an_answer_before_the_body_is_out_ends_the_connection),
		cmocka_unit_test(in_http1_an_answer_that_nobody_asked_for_is_a_failure),
		cmocka_unit_test(in_http1_connections_are_opened_used_and_closed),
		cmocka_unit_test(in_http1_an_interrupted_run_fails_nobody),
	};
	return cmocka_run_group_tests_name("sim/load", cases, NULL, NULL);
}
