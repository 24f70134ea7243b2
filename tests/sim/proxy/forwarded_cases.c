// SPDX-License-Identifier: Apache-2.0
// Whom a request comes from: fields that the listener has rewritten (HX-50..HX-53), and PROXY
// headers in front of clients' connections (PP-*).
#include "lb/base/ip.h"
#include "lb/pick/cause.h"
#include "lb/route/filter.h"
#include "lb/route/rbac.h"
#include "lb/route/timeouts.h"
#include "tests/sim/proxy/cases.h"
#include "tests/support/check.h"

#include <string.h>

static const struct ip_prefix anybody[] = {{{{[10] = 0xff, [11] = 0xff}}, IP_V4_BITS}, {.bits = 0}};

static struct world *header_world(const struct ip_prefix *allow, uint32_t n_allow)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 2;
	conf.n_backends = 2;
	conf.header = (struct lb_header_conf){allow, n_allow, true, true};
	struct world *w = world_new(&conf);
	use_backends(w, 0x3);
	return w;
}

static void set_forwarding(struct world *w, struct lb_forwarding f)
{
	w->control.forwarding = f;
	control_set_filters(&w->control, 0, NULL, 0, LB_NO_TIMEOUT, 0);
}

static const char *seen_by_backend(const struct world *w, const struct ask *a, uint32_t attempt)
{
	assert_true(w->seen[a->id].n > attempt);
	return w->seen[a->id].attempts[attempt].forwarded_for;
}

static struct ask *ask_from(struct world *w, const char *forwarded_for)
{
	struct ask *a = world_ask(w, "one", KIND_ECHO, 100);
	a->extra[0] =
		(struct field){.name = STR("x-forwarded-for"), .value = str_from(forwarded_for)};
	client_ask(&w->clients[0], a);
	finish_of(w, a);
	assert_ok(w, a);
	return a;
}

// HX-50: and each attempt has them.
static void the_listener_says_whether_fields_are_rewritten(void **state)
{
	struct world *w = ready_world(NULL);
	struct ask *a = ask_from(w, "1.1.1.1");
	assert_string_equal(seen_by_backend(w, a, 0), "1.1.1.1;");
	set_forwarding(w, (struct lb_forwarding){.on = true, .use_remote_address = true});
	a = ask_from(w, "1.1.1.1");
	assert_string_equal(seen_by_backend(w, a, 0), "1.1.1.1,10.0.0.1;");
	a = world_ask(w, "one", KIND_REFUSE_ONCE, 100);
	client_ask(&w->clients[0], a);
	finish_of(w, a);
	assert_ok(w, a);
	assert_string_equal(seen_by_backend(w, a, 0), "10.0.0.1;");
	assert_string_equal(seen_by_backend(w, a, 1), "10.0.0.1;");
	set_forwarding(w, (struct lb_forwarding){.on = true});
	a = ask_from(w, "1.1.1.1");
	assert_string_equal(seen_by_backend(w, a, 0), "1.1.1.1;"); // HX-53
	finish(w);
	world_free(w);
}

// What waits is stored as its listener wants it.
static void a_request_that_waits_keeps_its_rewritten_fields(void **state)
{
	struct world *w = a_world();
	open_client(w);
	set_forwarding(w, (struct lb_forwarding){.on = true, .use_remote_address = true});
	struct ask *a = ask(w, KIND_ECHO, 100);
	world_run(w, 100 * MS);
	set_forwarding(w, (struct lb_forwarding){0});
	use_backends(w, 0x3);
	finish_of(w, a);
	assert_ok(w, a);
	assert_string_equal(seen_by_backend(w, a, 0), "10.0.0.1;");
	finish(w);
	world_free(w);
}

#define V2_IP4 "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x01\x02\x03\x04\x7f\0\0\1\0\x50\0\x50"
#define V2_LOCAL "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"

// PP-01, PP-04
static void a_header_says_whose_the_connection_is(void **state)
{
	static const struct {
		struct str header;
		const char *seen;
	} rows[] = {
		{STR("PROXY TCP4 1.2.3.4 10.0.0.1 1000 80\r\n"), "1.2.3.4;"},
		{STR("PROXY TCP6 2001:db8::7 ::1 1000 80\r\n"), "2001:db8::7;"},
		{STR("PROXY UNKNOWN\r\n"), "10.0.0.1;"},
		{STR(V2_IP4), "1.2.3.4;"},
		{STR(V2_LOCAL), "10.0.0.1;"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = header_world(anybody, 2);
		set_forwarding(w, (struct lb_forwarding){.on = true, .use_remote_address = true});
		w->clients[0].header = rows[i].header;
		open_client(w);
		struct ask *a = ask(w, KIND_ECHO, 100);
		finish_of(w, a);
		assert_ok(w, a);
		assert_string_equal(seen_by_backend(w, a, 0), rows[i].seen);
		assert_int_equal(world_counter(w, "headers_taken"), 1);
		finish(w);
		world_free(w);
	}
}

// PP-01, HX-51: and of x-forwarded-for, where the listener trusts it.
static void access_control_sees_the_client(void **state)
{
	static const struct lb_rbac_policy one = {.name = STR("one"),
		.rule = {.kind = LB_RBAC_REMOTE_IP,
			.range = {{{[10] = 0xff, [11] = 0xff, [12] = 1, 2, 3, 4}}, 128}}};
	static const struct lb_rbac_rules rules = {
		.action = LB_RBAC_ALLOW, .policies = &one, .n = 1};
	static const struct lb_rbac_conf conf = {.rules = &rules};
	const struct lb_filter f = {.name = STR("f"), .kind = LB_FILTER_RBAC, .rbac.conf = &conf};
	struct world *w = header_world(anybody, 2);
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
	w->clients[0].header = STR("PROXY TCP4 1.2.3.4 10.0.0.1 1000 80\r\n");
	w->clients[1].header = STR("PROXY TCP4 1.2.3.5 10.0.0.1 1000 80\r\n");
	open_client(w);
	world_open_client(w, 1, 0);
	world_run(w, 20 * MS);
	struct ask *good = ask(w, KIND_ECHO, 100);
	struct ask *denied = world_ask(w, "one", KIND_ECHO, 100);
	client_ask(&w->clients[1], denied);
	finish_of(w, good);
	finish_of(w, denied);
	assert_ok(w, good);
	assert_reply(denied, 7);
	w->control.forwarding = (struct lb_forwarding){.on = true};
	control_set_filters(&w->control, 0, &f, 1, LB_NO_TIMEOUT, 0);
	struct ask *named = world_ask(w, "one", KIND_ECHO, 100);
	named->extra[0] = (struct field){.name = STR("x-forwarded-for"), .value = STR("1.2.3.4")};
	client_ask(&w->clients[1], named);
	finish_of(w, named);
	assert_ok(w, named);
	finish(w);
	world_free(w);
}

struct raw {
	struct world *w;
	struct str says;
	bool ends, closed, reset;
};

static void say(struct tcp_conn *c, void *user)
{
	const struct raw *r = user;
	assert_true(buf_append(
		tcp_conn_sendq(c), &r->w->wire.hosts[HOST_CLIENTS].chunks, r->says.p, r->says.len));
	tcp_conn_push(c);
	if (r->ends)
		tcp_conn_shutdown(c);
}

static size_t hear(struct tcp_conn *c, void *user, const uint8_t *data, size_t len)
{
	fail(); // nothing is answered
	return len;
}

static void nothing(struct tcp_conn *c, void *user)
{
}

static void on_closed(struct tcp_conn *c, void *user, enum tcp_close_reason reason)
{
	struct raw *r = user;
	r->closed = true;
	r->reset = reason == TCP_CLOSE_RESET || reason == TCP_CLOSE_REFUSED;
}

static void connect_raw(struct raw *r)
{
	static const struct tcp_conn_ops ops = {say, hear, nothing, nothing, on_closed};
	struct tcp_flow flow = {.local = wire_address(HOST_CLIENTS, 9),
		.remote = r->w->frontends[0].address,
		.remote_port = 80};
	struct host *h = &r->w->wire.hosts[HOST_CLIENTS];
	assert_non_null(tcp_connect(h->tcp, &flow, SECOND, &ops, r));
	h->due = true;
}

// PP-07, PP-08
static void without_a_good_header_a_connection_is_aborted_and_counted(void **state)
{
	static const struct {
		struct str says;
		const char *counter;
		bool ends;
	} rows[] = {
		{STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "headers_missing"},
		{STR("GET / HTTP/1.1\r\n\r\n"), "headers_missing"},
		{STR("PROXY TCP4 1.2.3.4 10.0.0.1 1000 80"), "headers_missing", true},
		{STR("PROXY TCP5 1.2.3.4 10.0.0.1 1000 80\r\n"), "headers_malformed"},
		{STR("\r\n\r\n\0\r\nQUIT\n\x21\x11\xff\xff"), "headers_too_long"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *w = header_world(anybody, 2);
		struct raw r = {.w = w, .says = rows[i].says, .ends = rows[i].ends};
		connect_raw(&r);
		world_run(w, SECOND);
		assert_true(r.closed && r.reset);
		assert_int_equal(world_counter(w, rows[i].counter), 1);
		assert_int_equal(world_counter(w, "clients"), 0);
		world_free(w);
	}
}

// PP-08
static void a_header_that_does_not_come_to_its_end_is_waited_for_five_seconds(void **state)
{
	static const struct str says[] = {{NULL, 0}, STR("P"), STR("PROXY TCP4 1.2.3.4"),
		STR("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\1")};
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		struct world *w = header_world(anybody, 2);
		struct raw r = {.w = w, .says = says[i]};
		connect_raw(&r);
		world_run(w, 4 * SECOND);
		assert_false(r.closed);
		world_run(w, 2 * SECOND);
		assert_true(r.closed && r.reset);
		assert_int_equal(world_counter(w, "headers_late"), 1);
		world_free(w);
	}
}

// PP-09
static void who_may_not_speak_for_clients_is_refused(void **state)
{
	struct ip_prefix one = {wire_address(HOST_CLIENTS, 1), IP_V4_BITS + 32};
	struct world *w = header_world(&one, 1);
	struct raw r = {.w = w, .says = STR("PROXY UNKNOWN\r\n")};
	connect_raw(&r);
	world_run(w, SECOND);
	assert_true(r.closed && r.reset);
	assert_int_equal(world_counter(w, "headers_untrusted"), 1);
	w->clients[0].header = STR("PROXY UNKNOWN\r\n");
	open_client(w);
	struct ask *a = ask(w, KIND_ECHO, 100);
	finish_of(w, a);
	assert_ok(w, a);
	finish(w);
	world_free(w);
}

// PP-10
static void where_no_header_is_wanted_it_is_no_http(void **state)
{
	struct world *w = a_world();
	w->clients[0].header = STR("PROXY TCP4 1.2.3.4 10.0.0.1 1000 80\r\n");
	world_open_client(w, 0, 0);
	world_run(w, SECOND);
	assert_true(w->clients[0].over);
	assert_int_equal(world_counter(w, "headers_taken"), 0);
	assert_int_equal(world_counter(w, "clients"), 0);
	world_free(w);
}

RUN_SUITE("sim/proxy/forwarded", cmocka_unit_test(the_listener_says_whether_fields_are_rewritten),
	cmocka_unit_test(a_request_that_waits_keeps_its_rewritten_fields),
	cmocka_unit_test(a_header_says_whose_the_connection_is),
	cmocka_unit_test(access_control_sees_the_client),
	cmocka_unit_test(without_a_good_header_a_connection_is_aborted_and_counted),
	cmocka_unit_test(a_header_that_does_not_come_to_its_end_is_waited_for_five_seconds),
	cmocka_unit_test(who_may_not_speak_for_clients_is_refused),
	cmocka_unit_test(where_no_header_is_wanted_it_is_no_http))
