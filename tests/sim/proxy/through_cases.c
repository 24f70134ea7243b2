// SPDX-License-Identifier: Apache-2.0
// Backends behind an HTTP proxy (gRFC A86): what the proxy is asked, and what becomes of requests
// and health checks when it does not open the way.
#include "dataplane/proxy/state.h"
#include "lb/pick/check.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 101 // numbers of the proxies' addresses
#define SECOND_ONE 102
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define OPENS "HTTP/1.1 200 Connection established\r\nvia: x\r\n\r\n"

struct way {
	struct http_proxy *proxy;
	struct tcp_conn *tcp;
	const struct tcp_conn_ops *behind; // NULL = it is not open
	void *user;
	size_t n_known; // bytes to come that the backend has already
	size_t len;
	char head[256];
};

// It leads to the world's backends by their addresses.
struct http_proxy {
	struct world *w;
	const char *answer; // NULL = none
	size_t n_alone; // bytes of it that go out in segments of their own, before all else
	bool hangs_up; // behind the answer, if that opens no way
	uint32_t n_asked, n_opened;
	size_t n_behind; // bytes that last went out in one piece with the answer's end
	char last[256]; // what it was asked
	struct way ways[64];
	uint32_t n_ways;
};

static void open_way(struct way *y)
{
	unsigned number;
	assert_int_equal(sscanf(y->head, "CONNECT 10.0.2.%u:50051 HTTP/1.1\r\n", &number), 1);
	assert_in_range(number, 1, y->proxy->w->conf.n_backends);
	struct backend *b = &y->proxy->w->backends[number - 1];
	y->behind = backend_accept(b, y->tcp, &y->user);
	y->proxy->n_opened++;
	if (b->wants_header)
		return; // it speaks once it has that
	// Ours greets who has greeted; others speak first.
	y->n_known = strlen(PREFACE);
	y->behind->on_data(y->tcp, y->user, (const uint8_t *)PREFACE, y->n_known);
	backend_pump(b);
}

static void say(struct way *y, const char *text, size_t len)
{
	struct pool *chunks = &y->proxy->w->wire.hosts[HOST_BACKENDS].chunks;
	assert_true(buf_append(tcp_conn_sendq(y->tcp), chunks, text, len));
}

// The backend's SETTINGS go out with the end of the answer, as they do through a proxy that has
// both at once.
static void answer(struct way *y)
{
	struct http_proxy *x = y->proxy;
	x->n_asked++;
	memcpy(x->last, y->head, sizeof(x->last));
	if (x->answer) {
		say(y, x->answer, x->n_alone);
		tcp_conn_push(y->tcp);
		say(y, x->answer + x->n_alone, strlen(x->answer) - x->n_alone);
		size_t n = tcp_conn_sendq(y->tcp)->len;
		if (strncmp(x->answer, "HTTP/1.1 200", 12) == 0)
			open_way(y);
		x->n_behind = tcp_conn_sendq(y->tcp)->len - n;
		tcp_conn_push(y->tcp);
	}
	if (!y->behind && x->hangs_up)
		tcp_conn_shutdown(y->tcp);
}

static size_t on_data(struct tcp_conn *tcp, void *user, const uint8_t *p, size_t len)
{
	struct way *y = user;
	if (y->behind) {
		size_t n = len < y->n_known ? len : y->n_known;
		y->n_known -= n;
		return n + (n < len ? y->behind->on_data(tcp, y->user, p + n, len - n) : 0);
	}
	assert_in_range(y->len + len, 1, sizeof(y->head) - 1);
	memcpy(y->head + y->len, p, len);
	y->len += len;
	if (strstr(y->head, "\r\n\r\n"))
		answer(y);
	return len;
}

static void on_send_room(struct tcp_conn *tcp, void *user)
{
	const struct way *y = user;
	if (y->behind)
		y->behind->on_send_room(tcp, y->user);
}

static void on_eof(struct tcp_conn *tcp, void *user)
{
	const struct way *y = user;
	if (y->behind)
		y->behind->on_eof(tcp, y->user);
	else
		tcp_conn_shutdown(tcp);
}

static void on_closed(struct tcp_conn *tcp, void *user, enum tcp_close_reason reason)
{
	const struct way *y = user;
	if (y->behind)
		y->behind->on_closed(tcp, y->user, reason);
}

static const struct tcp_conn_ops ops = {
	.on_data = on_data, .on_send_room = on_send_room, .on_eof = on_eof, .on_closed = on_closed};

static const struct tcp_conn_ops *accept_way(void *arg, struct tcp_conn *tcp, void **ret_user)
{
	struct http_proxy *x = arg;
	assert_in_range(x->n_ways, 0, 63);
	struct way *y = &x->ways[x->n_ways++];
	*y = (struct way){.proxy = x, .tcp = tcp};
	*ret_user = y;
	return &ops;
}

static void listen_at(struct http_proxy *x, struct world *w, uint32_t number, const char *answer)
{
	const struct ip_addr at = wire_address(HOST_BACKENDS, number);
	memset(x, 0, sizeof(*x));
	x->w = w;
	x->answer = answer;
	assert_int_equal(
		tcp_listen(w->wire.hosts[HOST_BACKENDS].tcp, &at, PROXY_PORT, accept_way, x), 0);
}

static void unlisten(struct world *w, uint32_t number)
{
	const struct ip_addr at = wire_address(HOST_BACKENDS, number);
	tcp_unlisten(w->wire.hosts[HOST_BACKENDS].tcp, &at, PROXY_PORT);
}

// The first backend is behind this proxy, the second one as well if asked so.
static void use_proxy(struct world *w, uint32_t number, bool both)
{
	struct control_host hosts[] = {
		{1, "", false, 0, number}, {2, "", false, 0, both ? number : 0}};
	control_set_hosts(&w->control, 0, HOST_BACKENDS, hosts, 2);
	use_backends(w, 0x3);
}

static struct http_proxy first, second;

static struct world *through_world(const char *answer, bool both)
{
	struct world *w = a_world();
	listen_at(&first, w, FIRST, answer);
	use_proxy(w, FIRST, both);
	open_client(w);
	world_run(w, 50 * MS);
	return w;
}

static void hc_08_a_proxy_is_asked_for_the_endpoints_address(void **state)
{
	struct world *w = through_world(OPENS, true);
	use_backends(w, 0x1);
	world_run(w, 50 * MS);
	for (unsigned i = 0; i < 4; i++) {
		struct ask *a = ask(w, i % 2 ? KIND_ECHO : KIND_DOWNLOAD, 100000);
		finish(w);
		assert_ok(w, a);
		assert_int_equal(w->seen[a->id].attempts[0].backend, 1);
	}
	assert_int_equal(first.n_opened, 2); // the second backend's, before it was taken out
	assert_int_equal(world_counter(w, "through_opened"), 2);
	assert_int_equal(world_counter(w, "connects"), 2);
	backend_abort_conns(&w->backends[0]);
	world_run(w, 20 * MS); // until that is known
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	assert_string_equal(
		first.last, "CONNECT 10.0.2.1:50051 HTTP/1.1\r\nHost: 10.0.2.1:50051\r\n\r\n");
	world_free(w);
}

// The segment with the answer's end has the backend's SETTINGS, too, wherever it is cut.
static void hc_12_bytes_behind_the_answer_are_the_backends(void **state)
{
	for (size_t n = 0; n < strlen(OPENS); n++) {
		struct world *w = a_world();
		listen_at(&first, w, FIRST, OPENS);
		first.n_alone = n;
		use_proxy(w, FIRST, true);
		open_client(w);
		struct ask *a = ask(w, KIND_ECHO, 1000);
		finish(w);
		assert_ok(w, a);
		assert_true(first.n_behind > 9); // more than an empty SETTINGS frame
		assert_int_equal(world_counter(w, "connect_failures"), 0);
		world_free(w);
	}
}

static void hc_06_who_has_no_proxy_is_reached_directly(void **state)
{
	struct world *w = through_world(OPENS, false);
	for (unsigned i = 0; i < 8; i++)
		ask(w, KIND_ECHO, 10);
	finish(w);
	assert_int_equal(first.n_opened, 1);
	assert_int_equal(w->backends[0].n_accepted, 1);
	assert_int_equal(w->backends[1].n_accepted, 1);
	assert_true(w->backends[1].n_served > 0);
	world_free(w);
}

// A request to both backends, neither of which can be had, says why.
static void refused(const char *answer, bool hangs_up, const char *why, const char *counter)
{
	struct world *w = a_world();
	listen_at(&first, w, FIRST, answer);
	first.hangs_up = hangs_up;
	use_proxy(w, FIRST, true);
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 14);
	if (!strstr(a->message, why))
		fail_msg("\"%s\" instead of \"%s\"", a->message, why);
	assert_string_equal(w->control.last_why, why);
	assert_true(world_counter(w, counter) >= 2);
	assert_int_equal(world_counter(w, counter), world_counter(w, "connect_failures"));
	assert_int_equal(world_counter(w, "through_opened"), 0);
	assert_int_equal(w->backends[0].n_accepted + w->backends[1].n_accepted, 0);
	world_run(w, 30 * SECOND); // backoff goes on, and nothing piles up
	assert_in_range(first.n_asked, 2, 40);
	world_free(w);
}

static void hc_13_what_a_proxy_does_instead_has_a_name_and_a_counter(void **state)
{
	static char endless[9000] = "HTTP/1.1 200 OK\r\nx: ";
	memset(endless + strlen(endless), 'a', sizeof(endless) - strlen(endless) - 1);
	refused("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", false, "proxy: status 407",
		"through_refused");
	refused("HTTP/1.1 502 x\r\n", true, "proxy: status 502", "through_refused");
	refused("SSH-2.0-OpenSSH_9.2\r\n", false, "proxy: malformed answer", "through_malformed");
	refused("HTTP/1.1 301", true, "proxy: closed by peer", "through_closed");
	refused(NULL, true, "proxy: closed by peer", "through_closed");
	refused(NULL, false, "proxy: no answer", "through_late");
	endless[9] = '1'; // informational, so that it is no open way to this proxy
	refused(endless, false, "proxy: answer too long", "through_too_long");
}

static void hc_13_a_proxy_that_is_away_is_not_the_endpoint(void **state)
{
	struct world *w = through_world(OPENS, true);
	unlisten(w, FIRST);
	backend_abort_conns(&w->backends[0]);
	backend_abort_conns(&w->backends[1]);
	world_run(w, 2 * SECOND);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_reply(a, 14);
	assert_non_null(strstr(a->message, "proxy: connection refused"));
	assert_true(world_counter(w, "through_unreachable") > 0);
	listen_at(&first, w, FIRST, OPENS); // and it is back
	world_run(w, 20 * SECOND);
	a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	world_free(w);
}

static void hc_07_another_proxy_takes_over_when_it_is_connected(void **state)
{
	struct world *w = through_world(OPENS, true);
	struct ask *held = ask(w, KIND_DOWNLOAD, 300000);
	listen_at(&second, w, SECOND_ONE, NULL);
	use_proxy(w, SECOND_ONE, true);
	world_run(w, 100 * MS);
	struct ask *a = ask(w, KIND_ECHO, 10);
	finish(w); // the first one serves until then
	assert_ok(w, a);
	assert_ok(w, held);
	assert_true(second.n_asked > 0);
	second.answer = OPENS;
	world_run(w, 40 * SECOND);
	assert_true(second.n_opened > 0);
	uint32_t n = first.n_opened;
	for (unsigned i = 0; i < 8; i++)
		ask(w, KIND_ECHO, 10);
	finish(w);
	assert_int_equal(first.n_opened, n);
	assert_int_equal(w->backends[0].n_conns, 1);
	assert_int_equal(w->backends[1].n_conns, 1);
	use_proxy(w, 0, false); // and without any
	world_run(w, 100 * MS);
	n = second.n_opened;
	a = ask(w, KIND_ECHO, 10);
	finish(w);
	assert_ok(w, a);
	assert_int_equal(second.n_opened, n);
	world_free(w);
}

// Checks.

static void checked(enum lb_check_kind kind, const char *answer, const char *why)
{
	struct world *w = a_world();
	struct lb_check *c = a_check(kind, "/check/plain/1000/100");
	c->keeps_connection = false; // each asks the proxy
	struct lb_leaf_record r;
	const struct ip_port at = {wire_address(HOST_BACKENDS, 1), 50051};
	listen_at(&first, w, FIRST, answer);
	w->control.leaves[0].check = c;
	use_proxy(w, FIRST, true);
	lb_check_put(c);
	w->control.leaves[0].check = NULL; // the leaf's own from here on
	open_client(w);
	world_run(w, 5 * SECOND);
	const struct lb_leaf *leaf = w->control.leaves[0].leaf;
	lb_leaf_look(leaf, lb_leaf_member(leaf, &at, 1), &r);
	assert_string_equal(r.health.why, why);
	assert_int_equal(r.health.health, *why ? LB_MEMBER_UNHEALTHY : LB_MEMBER_SERVES);
	assert_true(first.n_asked >= 6);
	control_update(&w->control, 0);
	world_run(w, 2 * SECOND);
	world_free(w);
}

// PP-15: of a client's own connection, whose way the proxy does not open before it has gone.
static void pp_13_a_client_may_go_while_the_proxy_is_asked(void **state)
{
	static const struct lb_header v2 = {.version = 2};
	struct world_conf conf = headed(&v2, 1);
	struct world *w = world_new(&conf);
	const struct proxy_client_backends *all = &w->proxy->client_backends;
	listen_at(&first, w, FIRST, OPENS);
	use_proxy(w, FIRST, true);
	use_backends(w, 0x1);
	open_client(w);
	world_run(w, 100 * MS);
	struct ask *a = ask(w, KIND_ECHO, 1000);
	finish(w);
	assert_ok(w, a);
	assert_true(ip_port_eq(&w->seen[a->id].attempts[0].source, &a->from));
	client_abort(&w->clients[0]);
	open_client(w);
	uint32_t n = first.n_asked;
	first.answer = NULL;
	ask(w, KIND_ECHO, 1000);
	world_run(w, 100 * MS);
	assert_int_equal(first.n_asked, n + 1);
	assert_int_equal(all->n_conns, 1);
	client_abort(&w->clients[0]);
	world_run(w, 100 * MS);
	assert_int_equal(all->n_conns, 0);
	assert_int_equal(all->pool.n_used, 0);
	assert_int_equal(world_counter(w, "upstreams"), 1);
	world_free(w);
}

static void hc_14_health_checks_go_through_the_proxy(void **state)
{
	checked(LB_CHECK_HTTP, OPENS, "");
	checked(LB_CHECK_TCP, OPENS, "");
	checked(LB_CHECK_HTTP, "HTTP/1.1 403 no\r\n\r\n", "proxy: status 403");
	checked(LB_CHECK_TCP, "nonsense", "proxy: malformed answer");
	checked(LB_CHECK_HTTP, NULL, "proxy: no answer");
}

RUN_SUITE("proxy/through", cmocka_unit_test(hc_08_a_proxy_is_asked_for_the_endpoints_address),
	cmocka_unit_test(hc_12_bytes_behind_the_answer_are_the_backends),
	cmocka_unit_test(hc_06_who_has_no_proxy_is_reached_directly),
	cmocka_unit_test(hc_13_what_a_proxy_does_instead_has_a_name_and_a_counter),
	cmocka_unit_test(hc_13_a_proxy_that_is_away_is_not_the_endpoint),
	cmocka_unit_test(hc_07_another_proxy_takes_over_when_it_is_connected),
	cmocka_unit_test(pp_13_a_client_may_go_while_the_proxy_is_asked),
	cmocka_unit_test(hc_14_health_checks_go_through_the_proxy))
