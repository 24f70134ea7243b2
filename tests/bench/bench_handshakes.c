// SPDX-License-Identifier: Apache-2.0
// bench_handshakes: full handshakes of TLS 1.3 with a certificate on P-256, as handshake threads
// make them, one and two, and beside them OpenSSL alone on BIOs of memory, likewise: what two
// threads gain there is what the machine has for two. Then ours that end with a ticket, full ones
// and those that resume a session. tools/bench runs it.
//
// What clients do takes as long, and is not measured: they are OpenSSL's, many at a time, and speak
// while the threads have nothing to do. First all hellos are there, and it is measured how long all
// servers' flights take; then all of the clients' second flights, and how long all ends take. So
// the threads have the cores for themselves, with real-time priority, where that is allowed, and
// what they do at a time is what they can do.
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "tests/bench/measure.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/context.h"
#include "tlshs/handshake.h"
#include "tlshs/threads.h"

#include <openssl/ssl.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MAX_BATCH 4096
#define MAX_REPEATS 7
#define MAX_THREADS 2
#define MAX_FLIGHT TLSHS_SLOT // that a link carries as one answer
#define NAP_NS (50 * NS_PER_US)

static struct {
	struct pki_cert cert;
	SSL_CTX *client, *server; // OpenSSL's
	struct tlshs_context *ours, *ticketing;
	SSL_SESSION *session; // of a ticket of that one's
} ends;

struct client {
	SSL *ssl;
	uint8_t out[MAX_FLIGHT], in[MAX_FLIGHT];
	size_t out_len, in_len;
};

struct took {
	double wall_ns, cpu_ns; // of those that answer
};

// A server of all clients: what it makes of the flights that they have in `out`.
struct server {
	const char *impl;
	uint32_t n_threads;
	void *(*start)(const struct server *, uint32_t n);
	struct took (*answer)(void *, struct client *, uint32_t n, bool last);
	void (*stop)(void *);
	bool has_tickets, resumes; // ours
};

static double wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * (double)NS_PER_SECOND + (double)t.tv_nsec;
}

// CPU time of all threads but this one.
static double others_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * (double)NS_PER_SECOND + (double)t.tv_nsec - bench_now_ns();
}

static SSL_CTX *openssl_context(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);
	CHECK(ctx && SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1);
	CHECK(SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1);
	CHECK(SSL_CTX_set_num_tickets(ctx, 0) == 1); // nor has ours any without a secret
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	return ctx;
}

static SSL *openssl_end(SSL_CTX *ctx)
{
	SSL *ssl = SSL_new(ctx);
	CHECK(ssl);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	return ssl;
}

// Its session, if it has one, can be resumed.
static void openssl_end_free(SSL *ssl)
{
	SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
}

static size_t drain(SSL *ssl, uint8_t out[MAX_FLIGHT])
{
	int n = BIO_read(SSL_get_wbio(ssl), out, MAX_FLIGHT);
	CHECK(BIO_pending(SSL_get_wbio(ssl)) == 0);
	return n > 0 ? (size_t)n : 0;
}

static void put(SSL *ssl, const uint8_t *p, size_t len)
{
	CHECK(BIO_write(SSL_get_rbio(ssl), p, (int)len) == (int)len);
}

// Of a handshake of its own.
static SSL_SESSION *take_session(void)
{
	uint8_t bytes[MAX_FLIGHT];
	struct tlshs_handshake *h = tlshs_handshake_new(ends.ticketing, STR(""), 0);
	SSL *ssl = openssl_end(ends.client);
	CHECK(h);
	SSL_set_connect_state(ssl);
	while (SSL_do_handshake(ssl) != 1 || !tlshs_handshake_ended(h)) {
		size_t len = drain(ssl, bytes);
		tlshs_handshake_feed(h, bytes, len);
		put(ssl, bytes, tlshs_handshake_drain(h, bytes, sizeof(bytes)));
	}
	CHECK(SSL_read(ssl, bytes, sizeof(bytes)) < 0); // the ticket alone
	SSL_SESSION *session = SSL_get1_session(ssl);
	CHECK(SSL_SESSION_is_resumable(session));
	openssl_end_free(ssl);
	tlshs_handshake_free(h);
	return session;
}

static void ends_init(void)
{
	struct lb_err err;
	ends.cert = pki_make((struct pki_conf){.name = "bench"});
	ends.client = openssl_context(TLS_client_method());
	ends.server = openssl_context(TLS_server_method());
	CHECK(SSL_CTX_use_certificate(ends.server, ends.cert.x) == 1);
	CHECK(SSL_CTX_use_PrivateKey(ends.server, ends.cert.key) == 1);
	struct tlshs_context_conf conf = {.role = TLSHS_SERVER,
		.certificate_pem = ends.cert.pem,
		.key_pem = ends.cert.key_pem};
	ends.ours = tlshs_context_new(&conf, &err);
	conf.ticket_secret = STR("thirty-two bytes that are secret");
	ends.ticketing = tlshs_context_new(&conf, &err);
	CHECK(ends.ours && ends.ticketing);
	ends.session = take_session();
}

static void ends_fini(void)
{
	SSL_CTX_free(ends.client);
	SSL_CTX_free(ends.server);
	tlshs_context_put(ends.ours);
	tlshs_context_put(ends.ticketing);
	SSL_SESSION_free(ends.session);
	pki_end();
}

// OpenSSL, in threads that each have a part of the clients.

struct openssl {
	uint32_t n_threads;
	SSL *all[MAX_BATCH];
};

struct part {
	struct openssl *openssl;
	struct client *clients;
	uint32_t first, n;
	bool last;
	double cpu_ns;
};

static void *openssl_start(const struct server *s, uint32_t n)
{
	struct openssl *o = malloc(sizeof(*o));
	CHECK(o);
	o->n_threads = s->n_threads;
	return o;
}

static void *answer_part(void *arg)
{
	struct part *p = arg;
	SSL **all = p->openssl->all;
	for (uint32_t i = p->first; i < p->n; i += p->openssl->n_threads) {
		struct client *c = &p->clients[i];
		if (!p->last) {
			all[i] = openssl_end(ends.server);
			SSL_set_accept_state(all[i]);
		}
		put(all[i], c->out, c->out_len);
		CHECK((SSL_do_handshake(all[i]) == 1) == p->last);
		c->in_len = drain(all[i], c->in);
		if (p->last)
			SSL_free(all[i]);
	}
	p->cpu_ns = bench_now_ns();
	return NULL;
}

static struct took openssl_answer(void *openssl, struct client *clients, uint32_t n, bool last)
{
	struct openssl *o = openssl;
	pthread_t ids[MAX_THREADS];
	struct part parts[MAX_THREADS];
	struct took took = {.wall_ns = wall_ns()};
	for (uint32_t i = 0; i < o->n_threads; i++) {
		parts[i] = (struct part){o, clients, i, n, last, 0};
		CHECK(pthread_create(&ids[i], NULL, answer_part, &parts[i]) == 0);
	}
	for (uint32_t i = 0; i < o->n_threads; i++) {
		CHECK(pthread_join(ids[i], NULL) == 0);
		took.cpu_ns += parts[i].cpu_ns;
	}
	took.wall_ns = wall_ns() - took.wall_ns;
	return took;
}

// Ours, by the threads of the product.

struct threads {
	struct tlshs_threads *threads;
	struct tlshs_context *context;
	uint32_t n_threads;
};

static void *threads_start(const struct server *s, uint32_t n)
{
	struct threads *t = malloc(sizeof(*t));
	CHECK(t);
	t->n_threads = s->n_threads;
	t->context = s->has_tickets ? ends.ticketing : ends.ours;
	// Rings with room for a start and a flight of each: nothing ever waits for this thread.
	t->threads = tlshs_threads_new(&(struct tlshs_threads_conf){
		.n_threads = s->n_threads, .n_workers = 1, .max_handshakes = n, .n_slots = 2 * n});
	CHECK(t->threads);
	return t;
}

static void threads_stop(void *threads)
{
	struct threads *t = threads;
	tlshs_threads_free(t->threads);
	free(t);
}

static void order(const struct threads *t, const struct client *c, uint32_t i, bool last)
{
	struct tlshs_link *link = tlshs_threads_link(t->threads, 0, i % t->n_threads);
	struct tlshs_context *context = last ? NULL : tlshs_context_get(t->context);
	CHECK(last || tlshs_link_start(link, i, context, STR(""), i));
	CHECK(tlshs_link_send(link, i, c->out, c->out_len) == c->out_len);
}

// Returns how many of them had the answer that they wait for: a flight, or the end, which a ticket
// may come before.
static uint32_t hear(const struct threads *t, struct client *clients, bool last)
{
	const struct tlshs_answer *a;
	uint32_t n_heard = 0;
	for (uint32_t k = 0; k < t->n_threads; k++) {
		struct tlshs_link *link = tlshs_threads_link(t->threads, 0, k);
		for (; (a = tlshs_link_peek(link)); tlshs_link_pass(link)) {
			struct client *c = &clients[a->id];
			bool ended = a->kind == TLSHS_END;
			CHECK(ended ? last && a->outcome == TLSHS_ok : a->kind == TLSHS_TO_PEER);
			c->in_len = ended ? 0 : a->len;
			memcpy(c->in, a->bytes, c->in_len);
			CHECK(!ended || tlshs_link_stop(link, a->id));
			n_heard += ended == last;
		}
	}
	return n_heard;
}

static struct took threads_answer(void *threads, struct client *clients, uint32_t n, bool last)
{
	const struct threads *t = threads;
	double wall = wall_ns(), cpu = others_ns();
	for (uint32_t i = 0; i < n; i++)
		order(t, &clients[i], i, last);
	for (uint32_t n_heard = 0; (n_heard += hear(t, clients, last)) < n;)
		nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	return (struct took){wall_ns() - wall, others_ns() - cpu};
}

// One batch: n handshakes.
static struct took measure(const struct server *s, uint32_t n)
{
	static struct client clients[MAX_BATCH];
	void *state = s->start(s, n);
	CHECK(state);
	for (uint32_t i = 0; i < n; i++) {
		clients[i].ssl = openssl_end(ends.client);
		SSL_set_connect_state(clients[i].ssl);
		CHECK(!s->resumes || SSL_set_session(clients[i].ssl, ends.session) == 1);
		CHECK(SSL_do_handshake(clients[i].ssl) != 1);
		clients[i].out_len = drain(clients[i].ssl, clients[i].out);
	}
	struct took first = s->answer(state, clients, n, false);
	for (uint32_t i = 0; i < n; i++) {
		put(clients[i].ssl, clients[i].in, clients[i].in_len);
		CHECK(SSL_do_handshake(clients[i].ssl) == 1);
		CHECK(SSL_session_reused(clients[i].ssl) == s->resumes);
		clients[i].out_len = drain(clients[i].ssl, clients[i].out);
		openssl_end_free(clients[i].ssl);
	}
	struct took last = s->answer(state, clients, n, true);
	s->stop(state);
	return (struct took){(first.wall_ns + last.wall_ns) / n, (first.cpu_ns + last.cpu_ns) / n};
}

// Each with one thread, and behind that the same with more.
static const struct server servers[] = {
	{"openssl", 1, openssl_start, openssl_answer, free, false, false},
	{"openssl", 2, openssl_start, openssl_answer, free, false, false},
	{"shunt", 1, threads_start, threads_answer, threads_stop, false, false},
	{"shunt", 2, threads_start, threads_answer, threads_stop, false, false},
	{"shunt, a ticket", 1, threads_start, threads_answer, threads_stop, true, false},
	{"shunt, resumed", 1, threads_start, threads_answer, threads_stop, true, true},
};
#define N_SERVERS (sizeof(servers) / sizeof(servers[0]))

static void report(const struct server *s, double *wall, double *cpu, double *gain, size_t n)
{
	printf("{\"bench\":\"handshakes\",\"impl\":\"%s\",\"threads\":%u,\"per_second\":%.0f,"
	       "\"gain\":%.3f,\"cpu_ns\":%.0f}\n",
		s->impl, s->n_threads, (double)NS_PER_SECOND / bench_median(wall, n),
		bench_median(gain, n), bench_median(cpu, n));
}

// bench_handshakes [HANDSHAKES REPEATS]
int main(int argc, char **argv)
{
	static double wall[N_SERVERS][MAX_REPEATS], cpu[N_SERVERS][MAX_REPEATS],
		gain[N_SERVERS][MAX_REPEATS]; // over one thread in the same repeat
	uint32_t n = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
	size_t n_repeats = argc > 2 ? strtoul(argv[2], NULL, 10) : MAX_REPEATS;
	CHECK(n && n <= MAX_BATCH && n_repeats && n_repeats <= MAX_REPEATS);
	// Threads inherit it.
	(void)!sched_setscheduler(0, SCHED_RR, &(struct sched_param){.sched_priority = 1});
	ends_init();
	for (size_t r = 0; r < n_repeats; r++)
		for (size_t i = 0; i < N_SERVERS; i++) {
			struct took took = measure(&servers[i], n);
			wall[i][r] = took.wall_ns;
			cpu[i][r] = took.cpu_ns;
			gain[i][r] = wall[i - (servers[i].n_threads > 1)][r] / wall[i][r];
		}
	for (size_t i = 0; i < N_SERVERS; i++)
		report(&servers[i], wall[i], cpu[i], gain[i], n_repeats);
	ends_fini();
	return 0;
}
