// SPDX-License-Identifier: Apache-2.0
// The relay between clients that are an unmodified OpenSSL and a server that is the test: over real
// sockets, with a clock of its own.
#include "ctrl/base/socket_counts.h"
#include "ctrl/status/status_relay.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/tlshs/meeting.h"

#include <event2/event.h>
#include <openssl/err.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONG_LEN ((size_t)4 << 20)
#define WAITING_LEN ((size_t)2 << 20) // of what the relay and four sockets may hold at most
#define PIECE 16384
#define H2 "\2h2"
#define TURNS 50 // more than any handshake takes

static struct pki_cert ca, leaf, next_leaf, of_client, stranger;

static struct world {
	struct event_base *base;
	struct twheel *wheel;
	uint64_t now_ns, clock_ns;
	struct socket_counts counts;
	struct tlshs_context *context;
	struct status_relay *relay;
	int servers[8]; // in the order in which they came
	int n_servers, n_descriptors;
	int last_added, last_client; // who was let in
} w;

struct client {
	struct meeting m; // its far side alone, by a socket
	int fd;
};

static int count_descriptors(void)
{
	int n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static struct tlshs_context *context_of(const struct pki_cert *cert, const struct pki_cert *clients)
{
	static const struct str protocols[] = {{"h2", 2}, {"http/1.1", 8}};
	return context_good(&(struct tlshs_context_conf){.role = TLSHS_SERVER,
		.certificate_pem = cert->pem,
		.key_pem = cert->key_pem,
		.ca_pem = clients ? clients->pem : STR(""),
		.require_peer_certificate = clients,
		.alpn = protocols,
		.n_alpn = 2});
}

static struct tlshs_context *context(void *ctx)
{
	return w.context;
}

static void use(struct tlshs_context *c)
{
	tlshs_context_put(w.context);
	w.context = c;
}

static void on_let_in(void *ctx, int client, int fd)
{
	w.last_client = client;
	w.servers[w.n_servers++] = fd;
}

// As if each look at it took a while.
static uint64_t clock_ns(void)
{
	return w.clock_ns += 20 * NS_PER_MS;
}

static void relay_start(void)
{
	w.relay = status_relay_new(&(struct status_relay_conf){.base = w.base,
		.wheel = w.wheel,
		.clock_ns = clock_ns,
		.counts = &w.counts,
		.context = context,
		.connect = on_let_in});
	assert_non_null(w.relay);
}

static int make_pki(void **state)
{
	ca = pki_make((struct pki_conf){.name = "ca"});
	leaf = pki_make((struct pki_conf){.name = "leaf", .issuer = &ca});
	next_leaf = pki_make((struct pki_conf){.name = "next", .issuer = &ca});
	of_client = pki_make((struct pki_conf){.name = "client", .issuer = &ca});
	stranger = pki_make((struct pki_conf){.name = "stranger"});
	tlshs_context_put(context_of(&leaf, NULL)); // the library opens what it has open for good
	return 0;
}

static int end_pki(void **state)
{
	pki_end();
	return 0;
}

static int set_up(void **state)
{
	w = (struct world){.n_descriptors = count_descriptors(), .now_ns = NS_PER_SECOND};
	w.base = event_base_new();
	w.wheel = twheel_new(w.now_ns);
	w.context = context_of(&leaf, NULL);
	relay_start();
	return 0;
}

static int tear_down(void **state)
{
	while (w.n_servers)
		close(w.servers[--w.n_servers]);
	status_relay_free(w.relay);
	tlshs_context_put(w.context);
	twheel_free(w.wheel);
	event_base_free(w.base);
	return count_descriptors() == w.n_descriptors ? 0 : -1;
}

static void turn(void)
{
	w.now_ns += NS_PER_MS;
	twheel_advance(w.wheel, w.now_ns);
	event_base_loop(w.base, EVLOOP_ONCE | EVLOOP_NONBLOCK); // one pass over what is ready
}

static void turns(void)
{
	for (int i = 0; i < TURNS; i++)
		turn();
}

static int plain_client(void)
{
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	status_relay_add(w.relay, w.last_added = ends[1]);
	return ends[0];
}

static struct client client_new(struct far_conf conf)
{
	struct client c;
	conf.role = TLSHS_CLIENT;
	meeting_init_far(&c.m, &conf);
	c.fd = plain_client();
	assert_int_equal(SSL_set_fd(c.m.far, c.fd), 1);
	return c;
}

static void client_free(struct client *c)
{
	meeting_fini(&c->m);
	close(c->fd);
	turns();
}

static void shake(struct client *c)
{
	for (int i = 0; i < TURNS; i++, turn())
		meeting_far_step(&c->m);
}

// Whether the server got it.
static bool is_let_in(struct client *c)
{
	int before = w.n_servers;
	shake(c);
	return w.n_servers == before + 1;
}

static bool is_ended(int fd)
{
	char byte[256];
	ssize_t n;
	while ((n = recv(fd, byte, sizeof(byte), MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno == ECONNRESET;
}

// Each byte says where it stands.
static char byte_at(size_t i)
{
	return (char)(i * 31 + (i >> 12));
}

// SSL = NULL: in the clear, by the descriptor.
static size_t write_some(SSL *ssl, int fd, size_t from, size_t until)
{
	static size_t same; // what TLS could not send has to be given again
	char bytes[4096];
	size_t n = until - from < sizeof(bytes) ? until - from : sizeof(bytes);
	for (size_t i = 0; i < n; i++)
		bytes[i] = byte_at(from + i);
	ERR_clear_error();
	if (ssl) {
		SSL_set_mode(ssl, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
		n = same ? same : n;
		int done = n ? SSL_write(ssl, bytes, (int)n) : 0;
		same = done > 0 ? 0 : n;
		return done > 0 ? (size_t)done : 0;
	}
	ssize_t done = n ? send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
	return done > 0 ? (size_t)done : 0;
}

static size_t read_some(SSL *ssl, int fd, size_t from)
{
	char bytes[4096];
	ERR_clear_error();
	ssize_t n = ssl ? SSL_read(ssl, bytes, sizeof(bytes))
	                : recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	for (ssize_t i = 0; i < n; i++)
		assert_int_equal(bytes[i], byte_at(from + (size_t)i));
	return n > 0 ? (size_t)n : 0;
}

// OPS-284
static void bytes_go_both_ways(void **state)
{
	static const uint16_t versions[] = {TLS_1_2, TLS_1_3};
	for (size_t i = 0; i < 2; i++) {
		struct client c = client_new((struct far_conf){
			.alpn = H2, .min_version = versions[i], .max_version = versions[i]});
		assert_true(is_let_in(&c));
		assert_int_equal(w.last_client, w.last_added);
		int server = w.servers[i];
		for (size_t written = 0, got = 0; got < LONG_LEN; turn()) {
			written += write_some(c.m.far, -1, written, LONG_LEN);
			got += read_some(NULL, server, got);
		}
		for (size_t written = 0, got = 0; got < LONG_LEN; turn()) {
			written += write_some(NULL, server, written, LONG_LEN);
			got += read_some(c.m.far, -1, got);
		}
		client_free(&c);
		assert_true(is_ended(server));
	}
	assert_int_equal(w.counts.n_refused, 0);
}

// OPS-284
static void who_does_not_read_is_not_read_for(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&c));
	for (int by_client = 0; by_client < 2; by_client++) {
		SSL *writer = by_client ? c.m.far : NULL, *reader = by_client ? NULL : c.m.far;
		size_t written = 0, got = 0, last;
		do {
			last = written;
			for (int i = 0; i < 200; i++, turn())
				written += write_some(writer, w.servers[0], written, LONG_LEN);
		} while (written > last);
		assert_true(written < WAITING_LEN);
		for (; got < written; turn())
			got += read_some(reader, w.servers[0], got);
		for (size_t until = written + 4096; got < until; turn()) {
			written += write_some(writer, w.servers[0], written, until);
			got += read_some(reader, w.servers[0], got);
		}
	}
	client_free(&c);
}

// OPS-284: each would be answered.
static void who_sends_much_but_text_is_hung_up_on(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2, .min_version = TLS_1_3});
	assert_true(is_let_in(&c));
	for (int i = 0; i < 100; i++) {
		assert_int_equal(SSL_key_update(c.m.far, SSL_KEY_UPDATE_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(c.m.far), 1);
	}
	turns();
	assert_true(is_ended(w.servers[0]) && is_ended(c.fd));
	client_free(&c);
}

static int n_waiting(int fd)
{
	int n = 0;
	assert_int_equal(ioctl(fd, FIONREAD, &n), 0);
	return n;
}

// OPS-284
static void a_turn_carries_a_piece_of_each_side(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	size_t written = 0;
	assert_true(is_let_in(&c));
	for (int i = 0; i < 20; i++)
		written += write_some(NULL, w.servers[0], written, LONG_LEN);
	assert_int_equal(written, 20 * 4096);
	turn();
	assert_true(n_waiting(c.fd) >= PIECE && n_waiting(c.fd) < PIECE + 1000);
	turns();
	assert_true(n_waiting(c.fd) > (int)written);
	for (size_t got = 0; got < written;)
		got += read_some(c.m.far, -1, got);
	for (size_t sent = 0; sent < written;)
		sent += write_some(c.m.far, -1, sent, written);
	turn();
	assert_true(n_waiting(w.servers[0]) > 0 && n_waiting(w.servers[0]) <= PIECE);
	turns();
	assert_int_equal(n_waiting(w.servers[0]), written);
	client_free(&c);
}

static void read_to_the_end(struct client *c, size_t until)
{
	size_t got = 0;
	char byte;
	for (int i = 0; i < 5000 && got < until; i++, turn())
		got += read_some(c->m.far, -1, got);
	assert_int_equal(got, until);
	turns();
	int is = SSL_read(c->m.far, &byte, 1);
	assert_int_equal(SSL_get_error(c->m.far, is), SSL_ERROR_ZERO_RETURN);
	assert_true(is_ended(c->fd));
}

// OPS-284
static void the_end_of_the_server_comes_behind_all_that_it_said(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	size_t written = 0;
	assert_true(is_let_in(&c));
	for (int i = 0; i < 200; i++, turn())
		written += write_some(NULL, w.servers[0], written, LONG_LEN);
	close(w.servers[0]);
	w.n_servers = 0;
	read_to_the_end(&c, written);
	client_free(&c);
}

// OPS-284
static void a_client_that_says_no_more_hears_the_rest(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&c));
	assert_int_equal(write_some(c.m.far, -1, 0, 100), 100);
	assert_int_equal(SSL_shutdown(c.m.far), 0);
	turns();
	assert_int_equal(read_some(NULL, w.servers[0], 0), 100);
	assert_true(is_ended(w.servers[0]));
	assert_int_equal(write_some(NULL, w.servers[0], 0, 1000), 1000);
	close(w.servers[0]);
	w.n_servers = 0;
	read_to_the_end(&c, 1000);
	client_free(&c);
}

// OPS-284
static void a_client_that_closes_has_ended_it_behind_what_it_said(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&c));
	assert_int_equal(write_some(c.m.far, -1, 0, 100), 100);
	close(c.fd);
	c.fd = -1;
	turns();
	assert_int_equal(read_some(NULL, w.servers[0], 0), 100);
	assert_true(is_ended(w.servers[0]));
	client_free(&c);
}

// TLS-222
static void only_clients_with_a_certificate_of_its_cas_are_let_in(void **state)
{
	use(context_of(&leaf, &ca));
	const struct {
		const struct pki_cert *cert;
		bool is_in;
	} rows[] = {{&of_client, true}, {NULL, false}, {&stranger, false}, {&of_client, true}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct client c = client_new((struct far_conf){.alpn = H2, .cert = rows[i].cert});
		uint64_t n_refused = w.counts.n_refused;
		assert_int_equal(is_let_in(&c), rows[i].is_in);
		assert_int_equal(w.counts.n_refused - n_refused, !rows[i].is_in);
		assert_int_equal(c.m.far_error[0] != 0, !rows[i].is_in); // it hears an alert
		assert_int_equal(is_ended(c.fd), !rows[i].is_in);
		client_free(&c);
	}
}

// TLS-222
static void who_speaks_no_h2_or_no_tls_is_hung_up_on(void **state)
{
	static const char *const protocols[] = {NULL, "\10http/1.1", "\6spdy/1"};
	for (size_t i = 0; i < 3; i++) {
		struct client c = client_new((struct far_conf){.alpn = protocols[i]});
		assert_false(is_let_in(&c));
		assert_int_equal(w.counts.n_refused, i + 1);
		assert_true(is_ended(c.fd));
		client_free(&c);
	}
	int fd = plain_client();
	static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
	assert_int_equal(write(fd, preface, sizeof(preface) - 1), sizeof(preface) - 1);
	turns();
	assert_true(is_ended(fd));
	close(fd);
	assert_int_equal(w.counts.n_refused, 4);
	assert_int_equal(w.n_servers, 0);
}

static bool shows(struct client *c, const struct pki_cert *cert)
{
	X509 *x = SSL_get0_peer_certificate(c->m.far);
	return x && X509_cmp(x, cert->x) == 0;
}

// TLS-224
static void each_handshake_goes_by_the_context_of_its_beginning(void **state)
{
	use(NULL);
	int fd = plain_client();
	assert_true(is_ended(fd));
	close(fd);
	assert_int_equal(w.counts.n_refused, 1);
	use(context_of(&leaf, NULL));
	struct client one = client_new((struct far_conf){.alpn = H2});
	use(context_of(&next_leaf, NULL));
	struct client other = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&one) && shows(&one, &leaf));
	assert_true(is_let_in(&other) && shows(&other, &next_leaf));
	assert_int_equal(w.counts.n_refused, 1);
	client_free(&one);
	client_free(&other);
}

// OPS-285
static void a_handshake_has_ten_seconds(void **state)
{
	int fd = plain_client();
	assert_int_equal(write(fd, "\x16\x03\x01", 3), 3);
	turns();
	w.now_ns += 9 * NS_PER_SECOND;
	turns();
	assert_false(is_ended(fd));
	w.now_ns += NS_PER_SECOND;
	turns();
	assert_true(is_ended(fd));
	close(fd);
	assert_int_equal(w.counts.n_refused, 1);
	struct client c = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&c));
	w.now_ns += 100 * NS_PER_SECOND;
	turns();
	assert_false(is_ended(c.fd));
	client_free(&c);
}

static bool has_bytes(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

// OPS-285
static void a_turn_has_the_work_of_one_handshake(void **state)
{
	struct client c[5];
	for (int i = 0; i < 5; i++) {
		c[i] = client_new((struct far_conf){.alpn = H2});
		meeting_far_step(&c[i].m);
	}
	turn(); // their hellos are read
	for (int n = 0; n <= 5; n++, turn()) {
		int n_answered = 0;
		for (int i = 0; i < 5; i++)
			n_answered += has_bytes(c[i].fd);
		assert_int_equal(n_answered, n);
	}
	for (int i = 0; i < 5; i++)
		client_free(&c[i]);
	assert_int_equal(w.counts.n_refused, 5);
}

// OPS-286
static void without_a_descriptor_a_client_is_hung_up_on_and_the_next_is_not(void **state)
{
	struct rlimit was, none;
	struct client c = client_new((struct far_conf){.alpn = H2});
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	int lowest = dup(0);
	close(lowest);
	none = (struct rlimit){(rlim_t)lowest, was.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	bool is_in = is_let_in(&c);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_false(is_in);
	assert_true(is_ended(c.fd));
	assert_int_equal(w.counts.n_refused, 1);
	struct client next = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&next));
	client_free(&c);
	client_free(&next);
}

// OPS-286
static void bytes_are_carried_while_somebody_waits_for_a_descriptor(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	int late = plain_client(), pipe_ends[2];
	assert_true(is_let_in(&c));
	assert_int_equal(pipe2(pipe_ends, O_CLOEXEC), 0);
	for (size_t written = 0, got = 0; got < LONG_LEN;) {
		written += write_some(NULL, w.servers[0], written, LONG_LEN);
		status_relay_wait(w.relay, pipe_ends[0], 0);
		got += read_some(c.m.far, -1, got);
	}
	assert_true(is_ended(late));
	assert_int_equal(write(pipe_ends[1], "x", 1), 1);
	status_relay_wait(w.relay, pipe_ends[0], -1);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
	close(late);
	client_free(&c);
}

// OPS-286
static void the_last_words_of_the_server_are_sent_before_the_relay_ends(void **state)
{
	struct client c = client_new((struct far_conf){.alpn = H2});
	struct client idle = client_new((struct far_conf){.alpn = H2});
	assert_true(is_let_in(&c));
	assert_true(is_let_in(&idle));
	assert_int_equal(write_some(NULL, w.servers[0], 0, 4000), 4000);
	close(w.servers[0]);
	status_relay_free(w.relay); // and it ends, though neither client closes
	w.relay = NULL;
	event_base_loop(w.base, EVLOOP_NONBLOCK);
	read_to_the_end(&c, 4000);
	assert_true(is_ended(idle.fd) && is_ended(w.servers[1]));
	close(w.servers[1]);
	w.n_servers = 0;
	client_free(&c);
	client_free(&idle);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest suite[] = {
		TEST(bytes_go_both_ways),
		TEST(who_does_not_read_is_not_read_for),
		TEST(who_sends_much_but_text_is_hung_up_on),
		TEST(a_turn_carries_a_piece_of_each_side),
		TEST(the_end_of_the_server_comes_behind_all_that_it_said),
		TEST(a_client_that_says_no_more_hears_the_rest),
		TEST(a_client_that_closes_has_ended_it_behind_what_it_said),
		TEST(only_clients_with_a_certificate_of_its_cas_are_let_in),
		TEST(who_speaks_no_h2_or_no_tls_is_hung_up_on),
		TEST(each_handshake_goes_by_the_context_of_its_beginning),
		TEST(a_handshake_has_ten_seconds),
		TEST(a_turn_has_the_work_of_one_handshake),
		TEST(without_a_descriptor_a_client_is_hung_up_on_and_the_next_is_not),
		TEST(bytes_are_carried_while_somebody_waits_for_a_descriptor),
		TEST(the_last_words_of_the_server_are_sent_before_the_relay_ends),
	};
	return cmocka_run_group_tests_name("ctrl/status relay", suite, make_pki, end_pki);
}
