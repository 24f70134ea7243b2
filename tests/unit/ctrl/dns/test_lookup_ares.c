// SPDX-License-Identifier: Apache-2.0
// Lookups by c-ares against a name server of the test's own, in real time: each wait is short and
// has a bound.
#include "ctrl/dns/lookup_ares.h"
#include "ctrl/dns/names.h"
#include "ctrl/dns/resolver.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/dns/dns_server.h"

#include <event2/event.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define BOUND_NS (30 * S) // of one wait
#define TIMEOUT_MS 60
#define TRIES 3

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static unsigned n_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	unsigned n = 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

struct fixture {
	unsigned n_fds;
	struct event_base *events;
	struct twheel *wheel;
	struct dns_server server;
	struct dns_lookups *lookups;
};

static void init(struct fixture *f)
{
	struct lb_err err = {""};
	*f = (struct fixture){.n_fds = n_fds(), .wheel = twheel_new(clock_ns())};
	f->events = event_base_new();
	assert_non_null(f->events);
	assert_non_null(f->wheel);
	dns_server_init(&f->server, f->events);
	struct dns_ares_conf conf = {
		.events = f->events,
		.wheel = f->wheel,
		.servers = f->server.address,
		.timeout_ms = TIMEOUT_MS,
		.tries = TRIES,
	};
	assert_int_equal(dns_ares_new(&conf, &f->lookups, &err), 0);
}

static void fini(struct fixture *f)
{
	f->lookups->ops->free(f->lookups);
	dns_server_fini(&f->server);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX); // no timer is left
	twheel_free(f->wheel);
	event_base_free(f->events);
	assert_int_equal(n_fds(), f->n_fds); // nor a socket
}

static void turn(struct fixture *f)
{
	twheel_advance(f->wheel, clock_ns());
	event_base_loop(f->events, EVLOOP_NONBLOCK);
	usleep(300);
}

#define MAX_SHOWN 64

// A lookup that writes down what it found: "10.0.0.1 fd00::1", or "!" + error.
struct ear {
	struct dns_lookup lookup; // first member
	char found[4096];
	uint32_t n, ttl_s;
	unsigned n_done;
};

static void on_done(struct dns_lookup *l, const struct dns_found *found)
{
	struct ear *ear = (struct ear *)l;
	ear->n_done++;
	ear->n = found->n;
	ear->ttl_s = found->ttl_s;
	ear->found[0] = '\0';
	if (found->error)
		snprintf(ear->found, sizeof(ear->found), "!%s", found->error);
	for (uint32_t i = 0; !found->error && i < found->n && i < MAX_SHOWN; i++) {
		char text[IP_PORT_TEXT_MAX];
		strcat(ear->found, i ? " " : "");
		strcat(ear->found, ip_print(&found->addrs[i], text));
	}
}

static void start(struct fixture *f, const char *host, struct ear *ear)
{
	*ear = (struct ear){.lookup.done = on_done};
	assert_int_equal(f->lookups->ops->start(f->lookups, host, &ear->lookup), 0);
}

static void wait_for(struct fixture *f, const struct ear *ear)
{
	uint64_t end = clock_ns() + BOUND_NS;
	while (!ear->n_done && clock_ns() < end)
		turn(f);
	assert_int_equal(ear->n_done, 1);
	assert_null(ear->lookup.query);
}

static void look_up(struct fixture *f, const char *host, struct ear *ear)
{
	start(f, host, ear);
	wait_for(f, ear);
}

// A and AAAA come in any order.
static void assert_found(const struct ear *ear, const char *one, const char *other)
{
	char both[2][256];
	snprintf(both[0], sizeof(both[0]), "%s %s", one, other);
	snprintf(both[1], sizeof(both[1]), "%s %s", other, one);
	if (strcmp(ear->found, both[0]) != 0)
		assert_string_equal(ear->found, both[1]);
}

static void both_families_are_asked_for(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	dns_server_rule(&f.server,
		&(struct dns_rule){
			.host = "db.test", .a = "10.0.0.1 10.0.0.2", .aaaa = "fd00::1", .ttl = 77});
	look_up(&f, "db.test", &ear);
	assert_found(&ear, "10.0.0.1 10.0.0.2", "fd00::1");
	assert_int_equal(ear.ttl_s, 77);
	fini(&f);
}

static void one_family_is_enough(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	dns_server_rule(
		&f.server, &(struct dns_rule){.host = "v4.test", .a = "10.0.0.1", .ttl = 5});
	dns_server_rule(
		&f.server, &(struct dns_rule){.host = "v6.test", .aaaa = "fd00::1", .ttl = 6});
	dns_server_rule(&f.server,
		&(struct dns_rule){
			.host = "half.test", .a = "10.0.0.2", .ttl = 7, .aaaa_way = DNS_SERVFAIL});
	dns_server_rule(&f.server,
		&(struct dns_rule){
			.host = "mute.test", .a = "10.0.0.3", .ttl = 8, .aaaa_way = DNS_SILENT});
	look_up(&f, "v4.test", &ear);
	assert_string_equal(ear.found, "10.0.0.1");
	assert_int_equal(ear.ttl_s, 5);
	look_up(&f, "v6.test", &ear);
	assert_string_equal(ear.found, "fd00::1");
	look_up(&f, "half.test", &ear);
	assert_string_equal(ear.found, "10.0.0.2");
	look_up(&f, "mute.test", &ear);
	assert_string_equal(ear.found, "10.0.0.3");
	fini(&f);
}

static void least_ttl_of_the_chain_counts(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "alias.test",
					   .a = "10.0.0.1",
					   .ttl = 300,
					   .cname = "real.test",
					   .cname_ttl = 9});
	look_up(&f, "alias.test", &ear);
	assert_string_equal(ear.found, "10.0.0.1");
	assert_int_equal(ear.ttl_s, 9);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "zero.test", .a = "10.0.0.1"});
	look_up(&f, "zero.test", &ear);
	assert_int_equal(ear.ttl_s, 0);
	// RFC 2181 8: the highest bit makes it zero.
	dns_server_rule(&f.server,
		&(struct dns_rule){.host = "minus.test", .a = "10.0.0.1", .ttl = 0x80000005});
	look_up(&f, "minus.test", &ear);
	assert_int_equal(ear.ttl_s, 0);
	fini(&f);
}

static void refusals_fail_with_their_reason(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	look_up(&f, "absent.test", &ear);
	assert_string_equal(ear.found, "!Domain name not found");
	dns_server_rule(&f.server, &(struct dns_rule){.host = "empty.test"});
	look_up(&f, "empty.test", &ear);
	assert_string_equal(ear.found, "!DNS server returned answer with no data");
	dns_server_rule(&f.server, &(struct dns_rule){.host = "broken.test", .way = DNS_SERVFAIL});
	look_up(&f, "broken.test", &ear);
	assert_true(ear.found[0] == '!');
	look_up(&f, "no such name at all", &ear);
	assert_true(ear.found[0] == '!');
	look_up(&f, "", &ear);
	assert_true(ear.found[0] == '!');
	fini(&f);
}

// TH-60
static void silence_ends_in_bounded_time(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "mute.test", .way = DNS_SILENT});
	uint64_t before = clock_ns();
	look_up(&f, "mute.test", &ear);
	assert_string_equal(ear.found, "!Timeout while contacting DNS servers");
	assert_true(clock_ns() - before >= 7 * TIMEOUT_MS * S / 1000); // 1 + 2 + 4 times it
	assert_int_equal(f.server.n_udp, 2 * TRIES);
	fini(&f);
}

// TH-60
static void a_lookup_as_a_whole_has_a_limit(void **state)
{
	struct fixture f;
	struct ear ear;
	struct lb_err err = {""};
	init(&f);
	f.lookups->ops->free(f.lookups);
	struct dns_ares_conf conf = {
		.events = f.events,
		.wheel = f.wheel,
		.servers = f.server.address,
		.timeout_ms = 30 * 1000,
		.limit_ms = 3 * TIMEOUT_MS,
	};
	assert_int_equal(dns_ares_new(&conf, &f.lookups, &err), 0);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "mute.test", .way = DNS_SILENT});
	// RFC 4074 4.1
	dns_server_rule(&f.server,
		&(struct dns_rule){
			.host = "half.test", .a = "10.0.0.3", .ttl = 8, .aaaa_way = DNS_SILENT});
	uint64_t before = clock_ns();
	look_up(&f, "mute.test", &ear);
	assert_string_equal(ear.found, "!Timeout while contacting DNS servers");
	assert_true(clock_ns() - before >= 3 * TIMEOUT_MS * S / 1000);
	look_up(&f, "half.test", &ear);
	assert_string_equal(ear.found, "10.0.0.3");
	assert_int_equal(ear.ttl_s, 8);
	fini(&f);
}

static void nobody_at_the_servers_port_fails(void **state)
{
	struct fixture f;
	struct ear ear;
	struct dns_lookups *ours;
	init(&f);
	struct dns_server other;
	dns_server_init(&other, f.events);
	dns_server_fini(&other); // a port that was just free
	ours = f.lookups;
	struct lb_err err;
	struct dns_ares_conf conf = {f.events, f.wheel, other.address, TIMEOUT_MS, TRIES};
	assert_int_equal(dns_ares_new(&conf, &f.lookups, &err), 0);
	look_up(&f, "db.test", &ear);
	assert_true(ear.found[0] == '!');
	f.lookups->ops->free(f.lookups);
	f.lookups = ours;
	fini(&f);
}

static char *many_addresses(unsigned n)
{
	char *list = calloc(n, 16);
	assert_non_null(list);
	for (unsigned i = 0; i < n; i++)
		sprintf(list + strlen(list), "10.0.%u.%u ", i / 256, i % 256);
	return list;
}

static void truncated_answer_is_fetched_by_tcp(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	char *list = many_addresses(60);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "big.test", .a = list, .ttl = 60});
	look_up(&f, "big.test", &ear);
	assert_int_equal(ear.n, 60);
	assert_int_equal(f.server.n_tcp, 1);
	assert_non_null(strstr(ear.found, "10.0.0.59"));
	free(list);
	list = many_addresses(600); // more than is taken
	dns_server_rule(&f.server, &(struct dns_rule){.host = "huge.test", .a = list, .ttl = 60});
	look_up(&f, "huge.test", &ear);
	assert_int_equal(ear.n, DNS_MAX_FOUND);
	free(list);
	fini(&f);
}

static void malformed_answers_are_failures(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	const enum dns_way ways[] = {DNS_SHORT, DNS_CUT, DNS_LOOP, DNS_LIES};
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		dns_server_rule(&f.server, &(struct dns_rule){.host = "bad.test",
						   .way = ways[i],
						   .a = "10.0.0.1",
						   .aaaa = "fd00::1",
						   .ttl = 1});
		look_up(&f, "bad.test", &ear);
		assert_true(ear.found[0] == '!');
	}
	fini(&f);
}

// RFC 5452 9.1
static void answer_to_another_question_is_not_believed(void **state)
{
	struct fixture f;
	struct ear ear;
	init(&f);
	struct dns_rule rule = {.host = "db.test", .a = "10.6.6.6", .aaaa = "fd66::6", .ttl = 60};
	rule.way = DNS_OTHER_ID;
	dns_server_rule(&f.server, &rule);
	look_up(&f, "db.test", &ear);
	assert_true(ear.found[0] == '!');
	rule.way = DNS_OTHER_NAME;
	dns_server_rule(&f.server, &rule);
	look_up(&f, "db.test", &ear);
	assert_true(ear.found[0] == '!');
	rule.way = DNS_GUESSED_FIRST;
	dns_server_rule(&f.server, &rule);
	look_up(&f, "db.test", &ear);
	assert_found(&ear, "10.6.6.6", "fd66::6");
	fini(&f);
}

static void random_damage_ends_somehow(void **state)
{
	struct fixture f;
	struct ear ears[40];
	init(&f);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "bad.test",
					   .way = DNS_RANDOM,
					   .a = "10.0.0.1 10.0.0.2",
					   .aaaa = "fd00::1",
					   .ttl = 60,
					   .cname = "real.test",
					   .cname_ttl = 1});
	for (unsigned round = 0; round < 10; round++) {
		for (unsigned i = 0; i < 40; i++)
			start(&f, "bad.test", &ears[i]);
		for (unsigned i = 0; i < 40; i++) {
			wait_for(&f, &ears[i]);
			assert_true(ears[i].n <= DNS_MAX_FOUND);
		}
	}
	fini(&f);
}

static void cancelled_lookup_is_over_at_once(void **state)
{
	struct fixture f;
	struct ear ear, big;
	init(&f);
	unsigned before = n_fds();
	dns_server_rule(&f.server, &(struct dns_rule){.host = "mute.test", .way = DNS_SILENT});
	char *list = many_addresses(60);
	dns_server_rule(&f.server, &(struct dns_rule){.host = "big.test", .a = list, .ttl = 60});
	start(&f, "mute.test", &ear);
	start(&f, "big.test", &big);
	for (unsigned i = 0; i < 20; i++) {
		turn(&f);
		if (i == 2) // perhaps inside its TCP exchange
			f.lookups->ops->cancel(f.lookups, &big.lookup);
	}
	assert_true(n_fds() > before);
	f.lookups->ops->cancel(f.lookups, &ear.lookup);
	f.lookups->ops->cancel(f.lookups, &ear.lookup); // twice is fine
	assert_int_equal(ear.n_done, 0);
	free(list);
	fini(&f); // no socket, no timer
}

static void lookups_beyond_the_bound_wait_for_their_turn(void **state)
{
	enum { N = 400 };
	struct fixture f;
	init(&f);
	struct ear *ears = calloc(N, sizeof(*ears));
	assert_non_null(ears);
	dns_server_rule(
		&f.server, &(struct dns_rule){.host = "db.test", .a = "10.0.0.1", .ttl = 60});
	for (unsigned i = 0; i < N; i++)
		start(&f, "db.test", &ears[i]);
	assert_in_range(n_fds(), f.n_fds + 128, f.n_fds + 2 * 128);
	f.lookups->ops->cancel(f.lookups, &ears[3].lookup); // running
	f.lookups->ops->cancel(f.lookups, &ears[200].lookup); // waiting: in the middle, first, last
	f.lookups->ops->cancel(f.lookups, &ears[128].lookup);
	f.lookups->ops->cancel(f.lookups, &ears[N - 1].lookup);
	for (unsigned i = 0; i < N; i++) {
		bool cancelled = i == 3 || i == 200 || i == 128 || i == N - 1;
		if (cancelled)
			continue;
		wait_for(&f, &ears[i]);
		assert_string_equal(ears[i].found, "10.0.0.1");
	}
	assert_int_equal(ears[3].n_done + ears[200].n_done, 0);
	free(ears);
	fini(&f);
}

static void hosts_file_answers_inside_the_call(void **state)
{
	FILE *hosts = fopen("/etc/hosts", "r");
	char line[512] = "", name[256] = "", address[128];
	while (hosts && !*name && fgets(line, sizeof(line), hosts)) {
		if (sscanf(line, "%127[0-9.] %255s", address, name) != 2 ||
			strstr(name, "localhost"))
			name[0] = '\0';
	}
	if (hosts)
		fclose(hosts);
	if (!*name)
		skip();
	struct fixture f;
	struct ear ear;
	init(&f);
	start(&f, name, &ear);
	assert_int_equal(ear.n_done, 1);
	assert_non_null(strstr(ear.found, address));
	assert_int_equal(f.server.n_udp, 0);
	fini(&f);
}

static void unusable_servers_are_refused(void **state)
{
	struct fixture f;
	struct dns_lookups *none = NULL;
	struct lb_err err = {""};
	init(&f);
	struct dns_ares_conf conf = {
		.events = f.events, .wheel = f.wheel, .servers = "not an address"};
	assert_int_equal(dns_ares_new(&conf, &none, &err), -EINVAL);
	assert_non_null(strstr(err.text, "not an address"));
	assert_null(none);
	conf.servers = NULL; // resolv.conf's, whatever they are
	assert_int_equal(dns_ares_new(&conf, &none, &err), 0);
	none->ops->free(none);
	fini(&f);
}

// The whole resolver: c-ares and the server in real time, the names' timers in virtual time.

struct listener {
	struct dns_watch watch; // first member
	char heard[256];
	unsigned n;
};

static void on_answer(struct dns_watch *w, const struct dns_answer *a)
{
	struct listener *l = (struct listener *)w;
	l->heard[0] = '\0';
	for (uint32_t i = 0; i < a->n; i++) {
		char text[IP_PORT_TEXT_MAX];
		strcat(l->heard, i ? " " : "");
		strcat(l->heard, ip_port_print(&a->addresses[i], text));
	}
	strcat(l->heard, *a->error ? "!" : "");
	l->n++;
}

static void hear(struct fixture *f, struct listener *l, const char *want)
{
	uint64_t end = clock_ns() + BOUND_NS;
	while (!l->n && clock_ns() < end)
		turn(f);
	assert_int_equal(l->n, 1);
	l->n = 0;
	assert_string_equal(l->heard, want);
}

static void resolver_follows_a_changing_server(void **state)
{
	struct fixture f;
	struct rand rand;
	struct listener l = {.watch.on_answer = on_answer};
	uint64_t now_ns = 5 * S;
	init(&f);
	rand_init(&rand, 1);
	struct twheel *wheel = twheel_new(now_ns);
	assert_non_null(wheel);
	struct dns_resolver *r = dns_names_new(
		&(struct dns_names_conf){.wheel = wheel, .rand = &rand, .lookups = f.lookups});
	assert_non_null(r);
	struct dns_rule rule = {.host = "db.test", .a = "10.0.0.1", .ttl = 60};

	dns_server_rule(&f.server, &rule);
	assert_int_equal(r->ops->watch(r, "db.test", 5432, &l.watch), 0);
	hear(&f, &l, "10.0.0.1:5432");
	rule.a = "10.0.0.2";
	rule.aaaa = "fd00::2";
	dns_server_rule(&f.server, &rule);
	twheel_advance(wheel, now_ns += 61 * S); // the TTL is over
	hear(&f, &l, "[fd00::2]:5432 10.0.0.2:5432");
	rule.way = DNS_NXDOMAIN;
	dns_server_rule(&f.server, &rule);
	r->ops->refresh(r, &l.watch);
	twheel_advance(wheel, now_ns += 31 * S); // DM-23: before the TTL is over
	hear(&f, &l, "[fd00::2]:5432 10.0.0.2:5432!"); // A37-D03
	rule.way = DNS_ANSWER;
	rule.aaaa = NULL;
	dns_server_rule(&f.server, &rule);
	twheel_advance(wheel, now_ns += 2 * S); // the backoff is over
	hear(&f, &l, "10.0.0.2:5432");

	r->ops->free(r);
	twheel_free(wheel);
	fini(&f);
}

RUN_SUITE("dns/lookup_ares", cmocka_unit_test(both_families_are_asked_for),
	cmocka_unit_test(one_family_is_enough), cmocka_unit_test(least_ttl_of_the_chain_counts),
	cmocka_unit_test(refusals_fail_with_their_reason),
	cmocka_unit_test(silence_ends_in_bounded_time),
	cmocka_unit_test(a_lookup_as_a_whole_has_a_limit),
	cmocka_unit_test(nobody_at_the_servers_port_fails),
	cmocka_unit_test(truncated_answer_is_fetched_by_tcp),
	cmocka_unit_test(malformed_answers_are_failures),
	cmocka_unit_test(answer_to_another_question_is_not_believed),
	cmocka_unit_test(random_damage_ends_somehow),
	cmocka_unit_test(cancelled_lookup_is_over_at_once),
	cmocka_unit_test(lookups_beyond_the_bound_wait_for_their_turn),
	cmocka_unit_test(hosts_file_answers_inside_the_call),
	cmocka_unit_test(unusable_servers_are_refused),
	cmocka_unit_test(resolver_follows_a_changing_server))
