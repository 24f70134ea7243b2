// SPDX-License-Identifier: Apache-2.0
// Somebody who sits between a client and a server of ours while they shake hands: the input says
// how many bytes go on, which are changed, left out, sent twice or made up, and where they are cut.
// Whatever he does, each handshake keeps its promises, bytes behind it come back as they came, and
// if both succeed they have agreed upon the same. The client may offer a session of an earlier
// handshake, of 1.3 by a ticket of the input's. Randomness has a seed, so that an input means the
// same each time.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "lb/base/check.h"
#include "lb/base/rand.h"
#include "tests/unit/tlshs/pki.h"
#include "tlshs/handshake.h"
#include "tlshs/session.h"

#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <string.h>
#include <time.h>

#define MAX_PIPE (192u << 10)
#define MAX_TURNS 64 // of both, without anybody between
#define PEER 1 // the server's address, as a hash

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct end {
	struct tlshs_handshake *h;
	bool ok; // it has succeeded, and result is taken
	struct tlshs_result result;
	uint8_t pipe[MAX_PIPE]; // on the way to it
	size_t n_pipe;
	uint8_t fed[MAX_PIPE]; // what it has got
	size_t n_fed;
};

struct world {
	const uint8_t *in; // of the fuzzer
	size_t left;
	struct end ends[2]; // by enum tlshs_role
};

enum { ANY, ONLY_12, ONLY_13, N_VERSIONS };
static struct tlshs_context *servers[2][N_VERSIONS]; // without and with certificates of clients
static struct tlshs_context *clients[2][N_VERSIONS]; // that keep no sessions, and that do
static const char *const names[] = {"", "front.test", "b.a.test", "other.test"};
static struct rand rng;

static int fill(unsigned char *to, int len)
{
	for (int i = 0; i < len; i++)
		to[i] = (unsigned char)rand_u64(&rng);
	return 1;
}

static int is_seeded(void)
{
	return 1;
}

static struct tlshs_context *context(struct tlshs_context_conf conf, unsigned version)
{
	static const struct str alpn[] = {STR("h2"), STR("http/1.1")},
				both[] = {STR("*.a.test"), STR("front.test")};
	struct lb_err err;
	conf.min_version = version == ONLY_13 ? TLS_1_3 : TLS_1_2;
	conf.max_version = version == ONLY_12 ? TLS_1_2 : TLS_1_3;
	conf.alpn = alpn;
	conf.n_alpn = 2;
	conf.server_names = both;
	conf.n_server_names = conf.role == TLSHS_SERVER ? 2 : 0;
	struct tlshs_context *c = tlshs_context_new(&conf, &err);
	CHECK(c);
	return c;
}

static void make_contexts(void)
{
	struct pki_cert ca = pki_make((struct pki_conf){.name = "ca"});
	struct pki_cert own[2] = {
		pki_make((struct pki_conf){
			.name = "front", .issuer = &ca, .sans = "DNS:front.test"}),
		pki_make((struct pki_conf){
			.name = "client", .issuer = &ca, .sans = "URI:spiffe://a/b,DNS:c"})};
	struct tlshs_context_conf server = {.role = TLSHS_SERVER,
		.certificate_pem = own[0].pem,
		.key_pem = own[0].key_pem,
		.ticket_secret = STR("thirty-two bytes that are secret")};
	struct tlshs_context_conf mutual = server, client = {.role = TLSHS_CLIENT,
							   .certificate_pem = own[1].pem,
							   .key_pem = own[1].key_pem,
							   .ca_pem = ca.pem};
	mutual.ca_pem = ca.pem;
	mutual.require_peer_certificate = true;
	for (unsigned v = 0; v < N_VERSIONS; v++) {
		servers[0][v] = context(server, v);
		servers[1][v] = context(mutual, v);
		client.max_sessions = 0;
		clients[0][v] = context(client, v);
		client.max_sessions = 2;
		clients[1][v] = context(client, v);
	}
}

static uint8_t next(struct world *w)
{
	return w->left ? w->left--, *w->in++ : 0;
}

// Small, or as records and packets are.
static size_t next_len(struct world *w)
{
	uint8_t x = next(w);
	return x < 128 ? x : x < 192 ? (size_t)(x - 127) << 5 : (size_t)(x - 191) << 8;
}

static struct end *far_end(struct world *w, const struct end *e)
{
	return &w->ends[e == &w->ends[0]];
}

static void put(struct end *e, const uint8_t *p, size_t len)
{
	if (len > MAX_PIPE - e->n_pipe)
		len = MAX_PIPE - e->n_pipe;
	memmove(e->pipe + e->n_pipe, p, len);
	e->n_pipe += len;
}

static void drop(struct end *e, size_t at, size_t len)
{
	e->n_pipe -= len;
	memmove(e->pipe + at, e->pipe + at + len, e->n_pipe - at);
}

// What it says goes on its way to the other one.
static void drain(struct world *w, struct end *e)
{
	uint8_t bytes[2048];
	for (size_t n; (n = tlshs_handshake_drain(e->h, bytes, sizeof(bytes)));)
		put(far_end(w, e), bytes, n);
}

static void look(struct end *e)
{
	enum tlshs_outcome outcome = tlshs_handshake_outcome(e->h);
	if (!tlshs_handshake_ended(e->h) || e->ok)
		return;
	CHECK(outcome < TLSHS_N_OUTCOMES && outcome != TLSHS_internal);
	CHECK((outcome == TLSHS_ok) == !*tlshs_handshake_why(e->h));
	if (outcome != TLSHS_ok)
		return;
	tlshs_handshake_take(e->h, &e->result);
	e->ok = true;
	CHECK(e->result.secrets.version == TLS_1_2 || e->result.secrets.version == TLS_1_3);
	CHECK(e->result.secrets.aead < TLS_N_AEADS && e->result.peer.n_sans <= TLSHS_MAX_SANS);
	CHECK(e->result.alpn_len <= TLSHS_MAX_ALPN && e->result.server_name_len <= TLSHS_MAX_NAME);
}

// The first bytes that wait for it.
static void deliver(struct world *w, struct end *e, size_t len)
{
	len = len < e->n_pipe ? len : e->n_pipe;
	len = len < MAX_PIPE - e->n_fed ? len : MAX_PIPE - e->n_fed;
	if (!len)
		return;
	memcpy(e->fed + e->n_fed, e->pipe, len);
	e->n_fed += len;
	tlshs_handshake_gather(e->h, e->pipe, len / 2);
	bool ended = tlshs_handshake_feed(e->h, e->pipe + len / 2, len - len / 2);
	CHECK(ended == tlshs_handshake_ended(e->h));
	drop(e, 0, len);
	drain(w, e);
	look(e);
}

// In front of what waits: bytes of the fuzzer's, as a record of the right length or as they are.
static void insert(struct world *w, struct end *e, bool as_record)
{
	uint8_t made[5 + 16384] = {(uint8_t)(20 + next(w) % 5), 3, (uint8_t)(1 + next(w) % 4)};
	size_t len = next_len(w), header = as_record ? 5 : 0;
	len = len < w->left ? len : w->left;
	if (header + len > MAX_PIPE - e->n_pipe)
		return;
	made[3] = (uint8_t)(len >> 8);
	made[4] = (uint8_t)len;
	memcpy(made + header, w->in, len);
	w->in += len;
	w->left -= len;
	memmove(e->pipe + header + len, e->pipe, e->n_pipe);
	memcpy(e->pipe, made, header + len);
	e->n_pipe += header + len;
}

static void step(struct world *w)
{
	uint8_t op = next(w);
	struct end *e = &w->ends[op & 1];
	size_t at = op >> 1 & 7 ? next_len(w) : MAX_PIPE;
	at = at < e->n_pipe ? at : e->n_pipe;
	switch (op >> 1 & 7) {
	case 0:
	case 1:
	case 2:
		deliver(w, e, at);
		break;
	case 3:
		if (at < e->n_pipe)
			e->pipe[at] ^= (uint8_t)(1 << (op >> 4 & 7));
		break;
	case 4:
		drop(e, op & 16 ? e->n_pipe - at : 0, at);
		break;
	case 5:
		put(e, e->pipe, at); // once more, behind the rest
		break;
	default:
		insert(w, e, op & 2);
	}
}

static void check_rest(struct end *e)
{
	static uint8_t rest[MAX_PIPE];
	size_t n = tlshs_handshake_n_rest(e->h), at = 0;
	CHECK(n <= e->n_fed && (e->ok || n == 0));
	for (size_t k; (k = tlshs_handshake_drain_rest(e->h, rest + at, 700));)
		at += k;
	CHECK(at == n && memcmp(rest, e->fed + e->n_fed - n, n) == 0);
}

static void check_agreement(const struct end *server, const struct end *client)
{
	const struct tlshs_result *a = &server->result, *b = &client->result;
	const struct tls_secrets *s = &a->secrets, *c = &b->secrets;
	CHECK(s->version == c->version && s->aead == c->aead && s->hash == c->hash);
	CHECK(memcmp(s->read.key, c->write.key, sizeof(s->read.key)) == 0);
	CHECK(memcmp(s->write.key, c->read.key, sizeof(s->read.key)) == 0);
	CHECK(memcmp(s->read.secret, c->write.secret, sizeof(s->read.secret)) == 0);
	CHECK(memcmp(s->write.secret, c->read.secret, sizeof(s->read.secret)) == 0);
	CHECK(a->alpn_len == b->alpn_len && memcmp(a->alpn, b->alpn, a->alpn_len) == 0);
	CHECK(a->server_name_len == b->server_name_len &&
		memcmp(a->server_name, b->server_name, a->server_name_len) == 0);
}

static void open_both(struct world *w, struct tlshs_context *const own[2], const char *name)
{
	for (unsigned role = 0; role < 2; role++) {
		struct end *e = &w->ends[role];
		e->ok = false;
		e->n_pipe = e->n_fed = 0;
		e->h = tlshs_handshake_new(
			own[role], str_from(role == TLSHS_CLIENT ? name : ""), PEER);
		CHECK(e->h);
	}
	drain(w, &w->ends[TLSHS_CLIENT]);
}

static void finish_both(struct world *w)
{
	for (unsigned i = 0; i < MAX_TURNS; i++)
		deliver(w, &w->ends[i & 1], MAX_PIPE);
	if (w->ends[0].ok && w->ends[1].ok)
		check_agreement(&w->ends[TLSHS_SERVER], &w->ends[TLSHS_CLIENT]);
}

static void close_both(struct world *w)
{
	for (unsigned role = 0; role < 2; role++) {
		check_rest(&w->ends[role]);
		tlshs_handshake_free(w->ends[role].h);
		tlshs_result_wipe(&w->ends[role].result);
	}
}

// What of a ticket becomes a session is what the library reads.
static void keep_session(struct world *w)
{
	struct tlshs_promise *p = tlshs_handshake_take_promise(w->ends[TLSHS_CLIENT].h);
	if (!p)
		return;
	size_t len = next_len(w);
	len = len < w->left ? len : w->left;
	struct tlshs_session *s = tlshs_promise_redeem(p, w->in, len, time(NULL));
	w->in += len;
	w->left -= len;
	if (s) {
		const uint8_t *der = s->bytes + s->peer_len;
		SSL_SESSION *x = d2i_SSL_SESSION(NULL, &der, (long)s->der_len);
		CHECK(x && der == s->bytes + s->peer_len + s->der_len);
		SSL_SESSION_free(x);
		tlshs_sessions_put(s);
	}
	tlshs_promise_free(p);
}

// Returns the client's context, whose sessions are to be dropped.
static struct tlshs_context *begin(struct world *w)
{
	uint8_t kind = next(w);
	unsigned version = (kind & 3) % N_VERSIONS, theirs = (kind >> 2 & 3) % N_VERSIONS;
	struct tlshs_context *own[] = {[TLSHS_SERVER] = servers[kind >> 4 & 1][version],
		[TLSHS_CLIENT] = clients[kind >> 7][theirs]};
	const char *name = names[kind >> 5 & 3];
	if (kind >> 7) {
		open_both(w, own, name);
		finish_both(w);
		keep_session(w);
		close_both(w);
	}
	open_both(w, own, name);
	return own[TLSHS_CLIENT];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const RAND_METHOD steady = {.bytes = fill, .pseudorand = fill, .status = is_seeded};
	static struct world w;
	rand_init(&rng, 1);
	if (!clients[0][0]) {
		RAND_set_rand_method(&steady);
		make_contexts();
	}
	rand_init(&rng, 1);
	w.in = data;
	w.left = size;
	struct tlshs_context *client = begin(&w);
	while (w.left)
		step(&w);
	finish_both(&w);
	close_both(&w);
	tlshs_sessions_drop(client);
	return 0;
}
