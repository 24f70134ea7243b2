// SPDX-License-Identifier: Apache-2.0
// Workers and handshake threads: what one asks for comes back to it, whatever the others do.
#include "lb/base/time.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"
#include "tlshs/session.h"
#include "tlshs/sessions.h"
#include "tlshs/threads.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define N_WORKERS 2
#define N_THREADS 2
#define N_SEATS 4 // of one worker on one thread
#define N_ROUNDS 3
#define N_CONNS (N_THREADS * N_SEATS) // of a worker at a time
#define PATIENCE_S 60

static struct pki_cert ca, leaf;
static struct tlshs_context *contexts[2]; // by enum tlshs_role

static int setup(void **state)
{
	ca = pki_make((struct pki_conf){"ca"});
	leaf = pki_make((struct pki_conf){"leaf", &ca, "DNS:a.test"});
	contexts[TLSHS_SERVER] = context_good(
		&(struct tlshs_context_conf){.certificate_pem = leaf.pem, .key_pem = leaf.key_pem});
	contexts[TLSHS_CLIENT] =
		context_good(&(struct tlshs_context_conf){.role = TLSHS_CLIENT, .ca_pem = ca.pem});
	return 0;
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < 2; i++)
		tlshs_context_put(contexts[i]);
	pki_end();
	return 0;
}

static time_t now_s(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

// A connection of a worker: the peer, and what its handshake has told.
struct conn {
	struct meeting m;
	uint64_t id;
	enum tlshs_role role;
	struct tlshs_link *link;
	uint8_t kept[8192]; // bytes of the peer that found no room yet
	size_t n_kept;
	uint64_t n_sent, n_taken;
	bool ended;
	enum tlshs_outcome outcome;
	char why[TLSHS_MAX_WHY];
};

static void conn_init(struct conn *c, struct tlshs_link *link, uint64_t id, unsigned kind)
{
	struct far_conf far = {.role = TLSHS_CLIENT, .ca = &ca};
	*c = (struct conn){.id = id, .link = link, .role = kind & 1};
	if (c->role == TLSHS_CLIENT)
		far = (struct far_conf){.role = TLSHS_SERVER, .cert = &leaf};
	far.min_version = far.max_version = kind & 2 ? TLS_1_2 : TLS_1_3;
	meeting_init_far(&c->m, &far);
}

static void conn_start(struct conn *c, uint64_t source)
{
	struct tlshs_context *context = tlshs_context_get(contexts[c->role]);
	while (!tlshs_link_start(c->link, c->id, context, STR(""), source))
		sched_yield();
}

static void conn_stop(struct conn *c)
{
	while (!tlshs_link_stop(c->link, c->id))
		sched_yield();
}

static void hear(struct conn *c, const struct tlshs_answer *a)
{
	if (a->kind == TLSHS_TO_PEER) {
		BIO_write(c->m.far_in, a->bytes, a->len);
	} else if (a->kind == TLSHS_REST) {
		memcpy(c->m.rest + c->m.n_rest, a->bytes, a->len);
		c->m.n_rest += a->len;
	} else {
		c->ended = true;
		c->outcome = a->outcome;
		c->n_taken = a->n_taken;
		c->m.promised = a->promise;
		if (a->outcome == TLSHS_ok)
			c->m.result = a->result;
		else
			snprintf(c->why, sizeof(c->why), "%s", a->why);
	}
}

// The peer's turn; what it says goes to the thread in uneven pieces.
static void speak(struct conn *c)
{
	meeting_far_step(&c->m);
	int n = BIO_read(c->m.far_out, c->kept + c->n_kept, (int)(sizeof(c->kept) - c->n_kept));
	c->n_kept += n > 0 ? (size_t)n : 0;
	size_t piece = c->n_kept < 700 ? c->n_kept : 700;
	size_t gone = piece ? tlshs_link_send(c->link, c->id, c->kept, piece) : 0;
	memmove(c->kept, c->kept + gone, c->n_kept - gone);
	c->n_kept -= gone;
	c->n_sent += gone;
}

static bool conn_done(const struct conn *c)
{
	return c->ended && c->n_kept == 0 && c->m.n_rest == c->n_sent - c->n_taken &&
	       SSL_is_init_finished(c->m.far);
}

// Reads what there is for these connections of one link.
static void listen(struct tlshs_link *link, struct conn *conns, unsigned n)
{
	const struct tlshs_answer *a;
	for (; (a = tlshs_link_peek(link)); tlshs_link_pass(link))
		for (unsigned i = 0; i < n; i++)
			if (conns[i].link == link && conns[i].id == a->id)
				hear(&conns[i], a);
}

struct worker {
	struct tlshs_threads *threads;
	uint32_t index;
	pthread_t id;
	struct conn conns[N_ROUNDS * N_CONNS];
	bool failed;
};

static bool run_round(struct worker *w, unsigned round)
{
	struct conn *conns = &w->conns[round * N_CONNS];
	unsigned n = N_CONNS, n_done = 0;
	time_t until = now_s() + PATIENCE_S;
	for (unsigned i = 0; i < n; i++) {
		struct tlshs_link *link = tlshs_threads_link(w->threads, w->index, i % N_THREADS);
		uint64_t id = (uint64_t)(round + 1) << 32 | i / N_THREADS;
		conn_init(&conns[i], link, id, i / 2 + round);
		conn_start(&conns[i], i);
	}
	while (n_done < n && now_s() < until) {
		n_done = 0;
		for (unsigned i = 0; i < N_THREADS; i++)
			listen(tlshs_threads_link(w->threads, w->index, i), conns, n);
		for (unsigned i = 0; i < n; i++) {
			speak(&conns[i]);
			n_done += conn_done(&conns[i]);
		}
		sched_yield();
	}
	for (unsigned i = 0; i < n; i++)
		conn_stop(&conns[i]);
	return n_done == n;
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	for (unsigned i = 0; i < N_ROUNDS; i++)
		w->failed |= !run_round(w, i);
	return NULL;
}

static uint64_t counted(const struct tlshs_threads *t, uint32_t n, enum tlshs_outcome o)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += counter_read(&tlshs_threads_counters(t, i).values[o]);
	return sum;
}

// Rings of four slots: both sides often find them full.
static void tls_64_two_workers_shake_hands_on_two_threads(void **state)
{
	static struct worker workers[N_WORKERS];
	struct tlshs_threads *t = tlshs_threads_new(&(struct tlshs_threads_conf){
		N_THREADS, N_WORKERS, .max_handshakes = N_SEATS, .n_slots = 4});
	assert_non_null(t);
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		workers[i] = (struct worker){.threads = t, .index = i};
		assert_int_equal(pthread_create(&workers[i].id, NULL, run_worker, &workers[i]), 0);
	}
	for (uint32_t i = 0; i < N_WORKERS; i++)
		pthread_join(workers[i].id, NULL);
	uint64_t n_good = counted(t, N_THREADS, TLSHS_ok);
	tlshs_threads_free(t);
	for (uint32_t i = 0; i < N_WORKERS; i++) {
		assert_false(workers[i].failed);
		for (unsigned k = 0; k < N_ROUNDS * N_CONNS; k++) {
			struct conn *c = &workers[i].conns[k];
			assert_int_equal(c->outcome, TLSHS_ok);
			meeting_talk(&c->m);
			meeting_fini(&c->m);
		}
	}
	assert_int_equal(n_good, N_WORKERS * N_ROUNDS * N_CONNS);
}

static struct tlshs_threads *one_thread(struct tlshs_threads_conf conf)
{
	conf.n_threads = conf.n_workers = 1;
	conf.max_handshakes = conf.max_handshakes ? conf.max_handshakes : 8;
	conf.patience_ns = conf.patience_ns ? conf.patience_ns : PATIENCE_S * NS_PER_SECOND;
	struct tlshs_threads *t = tlshs_threads_new(&conf);
	assert_non_null(t);
	return t;
}

static void wait_for_end(struct conn *c)
{
	for (time_t until = now_s() + PATIENCE_S; !c->ended && now_s() < until; sched_yield())
		listen(c->link, c, 1);
	assert_true(c->ended);
}

static bool meets(struct tlshs_link *link, struct tlshs_context *context,
	const struct far_conf *far, uint64_t id)
{
	struct conn c = {.id = id, .link = link, .role = TLSHS_CLIENT};
	meeting_init_far(&c.m, far);
	assert_true(tlshs_link_start(link, id, tlshs_context_get(context), STR("a.test"), 5));
	for (time_t until = now_s() + PATIENCE_S; !conn_done(&c) && now_s() < until;
		sched_yield()) {
		listen(link, &c, 1);
		speak(&c);
	}
	assert_true(conn_done(&c));
	assert_int_equal(c.outcome, TLSHS_ok);
	conn_stop(&c); // the seat is free, and the tickets are welcome
	c.m.link = link;
	bool resumed = c.m.result.resumed;
	uint64_t kept = counter_read(&tlshs_sessions_counters().values[TLSHS_SESSIONS_kept]);
	meeting_talk(&c.m);
	assert_int_equal(c.m.n_tickets, 1);
	assert_true(c.m.ticket_len > TLSHS_SLOT); // it takes two orders
	for (time_t until = now_s() + PATIENCE_S; now_s() < until; sched_yield())
		if (counter_read(&tlshs_sessions_counters().values[TLSHS_SESSIONS_kept]) > kept)
			break;
	meeting_fini(&c.m);
	return resumed;
}

// Our certificate is large, and OpenSSL has it in its tickets.
static void tls_226_tickets_that_a_worker_hands_on_resume_sessions(void **state)
{
	char names[2400] = "DNS:a";
	while (strlen(names) < sizeof(names) - 60)
		strcat(names, ",DNS:a-name-that-is-long-as-are-many-others.example.test");
	struct pki_cert large = pki_make((struct pki_conf){"large", &ca, names});
	struct tlshs_context *c = context_good(&(struct tlshs_context_conf){.role = TLSHS_CLIENT,
		.ca_pem = ca.pem,
		.certificate_pem = large.pem,
		.key_pem = large.key_pem,
		.max_sessions = 4});
	struct far_conf far = {
		.role = TLSHS_SERVER, .cert = &leaf, .ca = &ca, .min_version = TLS_1_3};
	far.ctx = meeting_far_ctx(&far);
	SSL_CTX_set_num_tickets(far.ctx, 1);
	SSL_CTX_set_session_id_context(far.ctx, (const unsigned char *)"x", 1);
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){0});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(meets(link, c, &far, i << 32), i > 0);
	assert_int_equal(tlshs_sessions_n(), 1);
	tlshs_context_put(c); // promises have it still
	tlshs_threads_free(t);
	assert_int_equal(tlshs_sessions_n(), 0);
	SSL_CTX_free(far.ctx);
}

// TH-111: or an address would be as many sources as there are workers.
static void th_111_all_workers_call_a_peer_the_same_source(void **state)
{
	static const uint8_t none[16];
	struct tlshs_threads *t = tlshs_threads_new(
		&(struct tlshs_threads_conf){N_THREADS, N_WORKERS, .max_handshakes = 1});
	assert_non_null(t);
	const uint8_t *key = tlshs_threads_link(t, 0, 0)->source_key;
	for (uint32_t i = 0; i < N_WORKERS; i++)
		assert_ptr_equal(tlshs_threads_link(t, i, N_THREADS - 1)->source_key, key);
	assert_memory_not_equal(key, none, sizeof(none));
	tlshs_threads_free(t);
}

static void wait_until_open(const struct tlshs_threads *t, uint32_t n)
{
	for (time_t until = now_s() + PATIENCE_S; tlshs_threads_open(t) != n && now_s() < until;)
		sched_yield();
	assert_int_equal(tlshs_threads_open(t), n);
}

static void tls_65_too_many_handshakes_at_a_time_are_refused(void **state)
{
	struct tlshs_threads *t =
		one_thread((struct tlshs_threads_conf){.max_open = 3, .max_open_of_source = 2});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	static const struct {
		uint64_t source;
		bool refused;
	} rows[] = {{1, false}, {1, false}, {1, true}, {2, false}, {3, true}};
	struct conn conns[5];
	for (unsigned i = 0; i < 5; i++) {
		conn_init(&conns[i], link, i, 0);
		conn_start(&conns[i], rows[i].source);
		if (!rows[i].refused)
			continue;
		wait_for_end(&conns[i]);
		assert_int_equal(conns[i].outcome, TLSHS_over_limit);
		assert_string_equal(conns[i].why, "over_limit");
		conn_stop(&conns[i]);
	}
	wait_until_open(t, 3);
	conn_stop(&conns[0]);
	wait_until_open(t, 2);
	meeting_fini(&conns[4].m);
	conn_init(&conns[4], link, UINT64_C(7) << 32 | 4, 0);
	conn_start(&conns[4], 1);
	wait_until_open(t, 3);
	assert_int_equal(counted(t, 1, TLSHS_over_limit), 2);
	assert_int_equal(counted(t, 1, TLSHS_lost), 1);
	tlshs_threads_free(t);
	for (unsigned i = 0; i < 5; i++)
		meeting_fini(&conns[i].m);
}

#define BACKLOG 32
#define MOST 4

// Of the backlog of one source, how much is answered before another one that came behind it. Their
// hashes differ in one bit.
static unsigned served_before_another(void)
{
	static struct conn conns[BACKLOG + 1];
	const uint64_t greedy = 0x7777555533331111;
	struct tlshs_threads *t = one_thread(
		(struct tlshs_threads_conf){.n_slots = 256, .max_handshakes = BACKLOG + 1});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	for (unsigned i = 0; i <= BACKLOG; i++) {
		struct conn *c = &conns[i];
		conn_init(c, link, i, 0);
		conn_start(c, i < BACKLOG ? greedy : greedy ^ 1);
		meeting_far_step(&c->m);
		c->n_kept = (size_t)BIO_read(c->m.far_out, c->kept, sizeof(c->kept));
	}
	for (unsigned i = 0; i <= BACKLOG; i++)
		assert_int_equal(
			tlshs_link_send(link, i, conns[i].kept, conns[i].n_kept), conns[i].n_kept);
	unsigned n = 0;
	bool is_served = false;
	for (time_t until = now_s() + PATIENCE_S; !is_served && now_s() < until; sched_yield()) {
		const struct tlshs_answer *a = tlshs_link_peek(link);
		if (!a)
			continue;
		is_served = a->id == BACKLOG;
		n += !is_served && !conns[a->id].ended;
		conns[a->id].ended = true;
		tlshs_link_pass(link);
	}
	assert_true(is_served);
	tlshs_threads_free(t);
	for (unsigned i = 0; i <= BACKLOG; i++)
		meeting_fini(&conns[i].m);
	return n;
}

// A thread may have served all before the other one came, while we were off the CPU.
static void th_128_who_comes_is_served_before_a_backlog(void **state)
{
	unsigned n = BACKLOG;
	for (int i = 0; i < 5 && n > MOST; i++)
		n = served_before_another();
	assert_in_range(n, 0, MOST);
}

// The last of the eight that clients may have is for who has nothing.
static void th_111_a_source_leaves_some_of_all_for_others(void **state)
{
	static const uint64_t sources[] = {1, 1, 1, 1, 1, 1, 1, 2, 2, 3};
	enum { N = sizeof(sources) / sizeof(sources[0]) };
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){.max_open = 10});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	struct conn conns[N];
	uint64_t n_open = 0;
	for (unsigned i = 0; i < N; i++) {
		conn_init(&conns[i], link, (uint64_t)i << 32 | n_open, 0);
		conn_start(&conns[i], sources[i]);
		if (i != 6 && i != 8) {
			n_open++;
			continue;
		}
		wait_for_end(&conns[i]);
		assert_int_equal(conns[i].outcome, TLSHS_over_limit);
		conn_stop(&conns[i]);
	}
	wait_until_open(t, 8);
	tlshs_threads_free(t);
	for (unsigned i = 0; i < N; i++)
		meeting_fini(&conns[i].m);
}

// Each from a source of its own.
static void th_111_clients_leave_a_quarter_of_all_for_backends(void **state)
{
	enum { N = 8, N_CLIENTS = 6 };
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){.max_open = N});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	struct conn conns[N], refused;
	for (unsigned i = 0; i < N; i++) {
		conn_init(&conns[i], link, i, i < N_CLIENTS ? TLSHS_SERVER : TLSHS_CLIENT);
		if (i == N_CLIENTS) {
			conn_init(&refused, link, i, TLSHS_SERVER);
			conn_start(&refused, N);
			wait_for_end(&refused);
			assert_int_equal(refused.outcome, TLSHS_over_limit);
			conn_stop(&refused);
			meeting_fini(&refused.m);
			conns[i].id |= UINT64_C(1) << 32;
		}
		conn_start(&conns[i], i);
	}
	wait_until_open(t, N);
	tlshs_threads_free(t);
	for (unsigned i = 0; i < N; i++)
		meeting_fini(&conns[i].m);
}

static void tls_66_a_handshake_that_takes_too_long_ends(void **state)
{
	struct tlshs_threads *t =
		one_thread((struct tlshs_threads_conf){.timeout_ns = 20 * NS_PER_MS});
	struct conn c;
	conn_init(&c, tlshs_threads_link(t, 0, 0), 3, 0);
	conn_start(&c, 1);
	assert_int_equal(tlshs_link_send(c.link, c.id, (const uint8_t *)"\26", 1), 1);
	wait_for_end(&c);
	assert_int_equal(c.outcome, TLSHS_timeout);
	assert_int_equal(counted(t, 1, TLSHS_timeout), 1);
	wait_until_open(t, 0);
	tlshs_threads_free(t);
	meeting_fini(&c.m);
}

// With clients; one of them sends a byte, which wins it nothing.
static void th_140_half_handshakes_give_way_while_more_than_half_of_the_places_are_taken(
	void **state)
{
	enum { N_BACKENDS = 2, N_ALL = 8, N_LEFT = 4, FIRST = N_BACKENDS };
	struct tlshs_threads *t =
		one_thread((struct tlshs_threads_conf){.patience_ns = 200 * NS_PER_MS});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	struct conn conns[N_ALL];
	for (unsigned i = 0; i < N_ALL; i++) {
		conn_init(&conns[i], link, i, i < N_BACKENDS);
		conn_start(&conns[i], i);
	}
	assert_int_equal(tlshs_link_send(link, conns[FIRST].id, (const uint8_t *)"\26", 1), 1);
	time_t until = now_s() + PATIENCE_S;
	while (!(conns[FIRST].ended && conns[FIRST + 1].ended) && now_s() < until)
		listen(link, conns, N_ALL);
	for (unsigned i = 0; i < N_ALL; i++)
		assert_int_equal(conns[i].ended, i == FIRST || i == FIRST + 1);
	assert_int_equal(conns[FIRST].outcome, TLSHS_gave_way);
	assert_string_equal(conns[FIRST].why, "gave_way");
	assert_int_equal(counted(t, 1, TLSHS_gave_way), 2);
	wait_until_open(t, N_BACKENDS + N_LEFT);
	tlshs_threads_free(t);
	for (unsigned i = 0; i < N_ALL; i++)
		meeting_fini(&conns[i].m);
}

static void wait_for_rest(const struct conn *c)
{
	for (time_t until = now_s() + PATIENCE_S; tlshs_link_is_busy(c->link) && now_s() < until;)
		sched_yield();
	assert_false(tlshs_link_is_busy(c->link));
}

// The first half of one whose peer then says nothing, and the other half.
static void tls_270_a_thread_says_when_nothing_is_to_come(void **state)
{
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){0});
	struct conn c;
	conn_init(&c, tlshs_threads_link(t, 0, 0), 0, 0);
	assert_false(tlshs_link_is_busy(c.link));
	conn_start(&c, 1);
	speak(&c);
	assert_int_equal(c.n_kept, 0);
	wait_for_rest(&c);
	assert_non_null(tlshs_link_peek(c.link)); // its whole flight is there
	listen(c.link, &c, 1);
	assert_int_equal(tlshs_threads_open(t), 1);
	speak(&c);
	assert_true(tlshs_link_is_busy(c.link) || tlshs_link_peek(c.link));
	wait_for_rest(&c);
	listen(c.link, &c, 1);
	assert_true(conn_done(&c));
	conn_stop(&c);
	wait_for_rest(&c);
	tlshs_threads_free(t);
	meeting_fini(&c.m);
}

#define N_AT_A_TIME 256

static size_t resident(void)
{
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &size, &pages), 2);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

// As many open at a time as a storm has, of which none says anything.
static void tls_218_an_idle_thread_gives_back_what_handshakes_took(void **state)
{
	if (!alloc_fail_works()) // sanitizers' allocators keep what was freed
		skip();
	struct tlshs_threads *t = tlshs_threads_new(&(struct tlshs_threads_conf){1, 1,
		.max_handshakes = N_AT_A_TIME, .max_open_of_source = N_AT_A_TIME,
		.patience_ns = PATIENCE_S * NS_PER_SECOND});
	assert_non_null(t);
	struct conn *conns = calloc(N_AT_A_TIME, sizeof(*conns));
	for (unsigned i = 0; i < N_AT_A_TIME; i++)
		conns[i] = (struct conn){.link = tlshs_threads_link(t, 0, 0), .id = i};
	size_t before = resident();
	for (unsigned i = 0; i < N_AT_A_TIME; i++)
		conn_start(&conns[i], i);
	wait_until_open(t, N_AT_A_TIME);
	size_t took = resident() - before;
	usleep(100000); // while they are open nothing is given back
	assert_true(resident() > before + took / 2);
	for (unsigned i = 0; i < N_AT_A_TIME; i++)
		conn_stop(&conns[i]);
	wait_until_open(t, 0);
	for (time_t until = now_s() + PATIENCE_S;
		resident() > before + took / 2 && now_s() < until;)
		usleep(10000);
	assert_in_range(resident(), 0, before + took / 2);
	tlshs_threads_free(t);
	free(conns);
}

static void tls_53_bytes_that_cross_the_end_come_back(void **state)
{
	static const uint8_t rubbish[] = "GET / HTTP/1.1\r\n\r\n", late[] = "late";
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){0});
	struct conn c;
	conn_init(&c, tlshs_threads_link(t, 0, 0), 0, 0);
	conn_start(&c, 1);
	assert_int_equal(tlshs_link_send(c.link, c.id, rubbish, 18), 18);
	wait_for_end(&c);
	assert_int_equal(c.outcome, TLSHS_malformed);
	assert_int_equal(c.n_taken, 18);
	assert_int_equal(tlshs_link_send(c.link, c.id, late, 4), 4);
	for (time_t until = now_s() + PATIENCE_S; c.m.n_rest < 4 && now_s() < until; sched_yield())
		listen(c.link, &c, 1);
	assert_int_equal(c.m.n_rest, 4);
	assert_memory_equal(c.m.rest, late, 4);
	conn_stop(&c);
	tlshs_threads_free(t);
	meeting_fini(&c.m);
}

// Here a client's request, which came with its Finished.
static void tls_225_what_comes_back_is_there_with_the_end(void **state)
{
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){0});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	for (uint64_t i = 1; i <= 200; i++) {
		const struct tlshs_answer *a;
		uint8_t bytes[1024];
		struct conn c;
		conn_init(&c, link, i << 32, 0);
		conn_start(&c, 1);
		for (speak(&c); !SSL_is_init_finished(c.m.far); meeting_far_step(&c.m))
			listen(link, &c, 1);
		int n = BIO_read(c.m.far_out, bytes, 1000);
		assert_in_range(n, 1, 999);
		memcpy(bytes + n, "more", 4);
		size_t len = (size_t)n + 4;
		assert_int_equal(tlshs_link_send(link, c.id, bytes, len), len);
		while (!(a = tlshs_link_peek(link)))
			;
		assert_int_equal(a->kind, TLSHS_END);
		assert_int_equal(a->outcome, TLSHS_ok);
		tlshs_link_pass(link);
		a = tlshs_link_peek(link);
		assert_non_null(a);
		assert_int_equal(a->kind, TLSHS_REST);
		assert_int_equal(a->len, 4);
		tlshs_link_pass(link);
		conn_stop(&c);
		meeting_fini(&c.m);
	}
	tlshs_threads_free(t);
}

static void note_free(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
}

struct hand {
	pthread_t id;
	const struct tlshs_promise *promise;
	uint64_t n_taken;
	bool ok;
};

static void *use_store(void *arg)
{
	static const uint8_t ticket[] = {0, 0, 2, 0, 0, 0, 0, 7, 1, 1, 0, 2, 't', 't', 0, 0};
	struct hand *hand = arg;
	hand->ok = true;
	for (unsigned i = 0; i < 2000; i++) {
		struct tlshs_session *s =
			tlshs_promise_redeem(hand->promise, ticket, sizeof(ticket), time(NULL));
		hand->ok &= s != NULL;
		if (!s)
			break;
		s->origin.peer = i % 7;
		const struct tlshs_origin o = s->origin;
		tlshs_sessions_put(s);
		if (i % 3 == 0 && (s = tlshs_sessions_take(&o, i % 9 ? time(NULL) : INT64_MAX))) {
			hand->n_taken++;
			tlshs_session_free(s);
		}
		if (i % 31 == 0)
			tlshs_sessions_forget(&o, 0); // long ago
		if (i % 301 == 0)
			tlshs_sessions_drop(o.context);
	}
	return NULL;
}

static uint64_t n_ended(void)
{
	static const enum tlshs_session_counter all[] = {
		TLSHS_SESSIONS_evicted, TLSHS_SESSIONS_dropped, TLSHS_SESSIONS_expired};
	uint64_t n = 0;
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		n += counter_read(&tlshs_sessions_counters().values[all[i]]);
	return n;
}

static void the_store_is_right_whoever_uses_it_at_once(void **state)
{
	struct tlshs_context *c = context_good(&(struct tlshs_context_conf){
		.role = TLSHS_CLIENT, .ca_pem = ca.pem, .max_sessions = 3});
	struct far_conf far = {
		.role = TLSHS_SERVER, .cert = &leaf, .min_version = TLS_1_3, .peer = 1};
	struct meeting m;
	meeting_init(&m, c, STR("a.test"), &far);
	assert_int_equal(meeting_run(&m), TLSHS_ok);
	assert_non_null(m.promise);
	const uint64_t *kept = &tlshs_sessions_counters().values[TLSHS_SESSIONS_kept];
	uint64_t kept_before = counter_read(kept), ended_before = n_ended(), n_taken = 0;
	struct hand hands[4];
	for (unsigned i = 0; i < 4; i++) {
		hands[i] = (struct hand){.promise = m.promise};
		assert_int_equal(pthread_create(&hands[i].id, NULL, use_store, &hands[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(hands[i].id, NULL);
		assert_true(hands[i].ok);
		n_taken += hands[i].n_taken;
	}
	assert_true(n_taken > 0);
	assert_int_equal(counter_read(kept) - kept_before, 4 * 2000);
	assert_int_equal(n_ended() - ended_before + n_taken + tlshs_sessions_n(), 4 * 2000);
	meeting_fini(&m);
	tlshs_context_put(c);
	assert_int_equal(tlshs_sessions_n(), 0);
}

static bool accept_all(const void *arg, const struct tlshs_peer *p, struct str name)
{
	return true;
}

static void contexts_are_given_back_whatever_threads_were_at(void **state)
{
	atomic_uint n_freed = 0;
	struct tlshs_context_conf conf = {.role = TLSHS_CLIENT, .ca_pem = ca.pem};
	conf.matcher = (struct tlshs_matcher){accept_all, note_free, &n_freed};
	struct tlshs_context *c = context_good(&conf);
	struct tlshs_threads *t = one_thread((struct tlshs_threads_conf){0});
	struct tlshs_link *link = tlshs_threads_link(t, 0, 0);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(tlshs_link_start(link, i, tlshs_context_get(c), STR("a.test"), i));
	for (uint64_t i = 0; i < 4; i++)
		assert_true(tlshs_link_stop(link, i));
	tlshs_context_put(c);
	tlshs_threads_free(t);
	assert_int_equal(n_freed, 1);
}

int main(void)
{
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(tls_64_two_workers_shake_hands_on_two_threads),
		cmocka_unit_test(tls_226_tickets_that_a_worker_hands_on_resume_sessions),
		cmocka_unit_test(the_store_is_right_whoever_uses_it_at_once),
		cmocka_unit_test(tls_65_too_many_handshakes_at_a_time_are_refused),
		cmocka_unit_test(th_111_clients_leave_a_quarter_of_all_for_backends),
		cmocka_unit_test(th_111_all_workers_call_a_peer_the_same_source),
		cmocka_unit_test(th_128_who_comes_is_served_before_a_backlog),
		cmocka_unit_test(th_111_a_source_leaves_some_of_all_for_others),
		cmocka_unit_test(tls_66_a_handshake_that_takes_too_long_ends),
		cmocka_unit_test(
			th_140_half_handshakes_give_way_while_more_than_half_of_the_places_are_taken),
		cmocka_unit_test(tls_270_a_thread_says_when_nothing_is_to_come),
		cmocka_unit_test(tls_218_an_idle_thread_gives_back_what_handshakes_took),
		cmocka_unit_test(tls_225_what_comes_back_is_there_with_the_end),
		cmocka_unit_test(tls_53_bytes_that_cross_the_end_come_back),
		cmocka_unit_test(contexts_are_given_back_whatever_threads_were_at),
	};
	return cmocka_run_group_tests_name("tlshs/threads", suite, setup, teardown);
}
