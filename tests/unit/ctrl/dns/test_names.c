// SPDX-License-Identifier: Apache-2.0
// The life of resolved names, in virtual time (DM-*, A37-D*, A61-D*).
#include "ctrl/dns/names.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/check.h"
#include "tests/support/fake_lookups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S NS_PER_SECOND

struct fixture {
	struct fake_lookups servers;
	struct twheel *wheel;
	struct rand rand;
	uint64_t now_ns;
	struct dns_resolver *resolver;
};

static void init(struct fixture *f)
{
	*f = (struct fixture){.now_ns = 1000 * S};
	fake_lookups_init(&f->servers);
	rand_init(&f->rand, 7);
	f->wheel = twheel_new(f->now_ns);
	assert_non_null(f->wheel);
	f->resolver = dns_names_new(&(struct dns_names_conf){
		.wheel = f->wheel, .rand = &f->rand, .lookups = &f->servers.base});
	assert_non_null(f->resolver);
}

static void fini(struct fixture *f)
{
	f->resolver->ops->free(f->resolver);
	fake_lookups_fini(&f->servers);
	assert_true(twheel_next_ns(f->wheel) == UINT64_MAX); // no timer is left
	twheel_free(f->wheel);
}

static void pass_time(struct fixture *f, uint64_t ns)
{
	f->now_ns += ns;
	twheel_advance(f->wheel, f->now_ns);
}

// A watch that writes down what it hears: "10.0.0.1:80 10.0.0.2:80", "!" + error after it.
struct ear {
	struct dns_watch watch; // first member
	struct fixture *f;
	char heard[2048]; // the last answer
	unsigned n; // answers since the last look
	struct ear *cancels, *starts; // inside on_answer; NULL = none
};

static void start(struct fixture *f, const char *host, uint16_t port, struct ear *ear);

static void on_answer(struct dns_watch *w, const struct dns_answer *a)
{
	struct ear *ear = (struct ear *)w;
	ear->heard[0] = '\0';
	for (uint32_t i = 0; i < a->n; i++) {
		char text[IP_PORT_TEXT_MAX];
		strcat(ear->heard, i ? " " : "");
		strcat(ear->heard, ip_port_print(&a->addresses[i], text));
	}
	if (*a->error) {
		strcat(ear->heard, "!");
		strcat(ear->heard, a->error);
	}
	ear->n++;
	struct ear *victim = ear->cancels, *newcomer = ear->starts;
	ear->cancels = ear->starts = NULL;
	if (newcomer)
		start(ear->f, "db", 99, newcomer);
	if (victim)
		victim->f->resolver->ops->cancel(victim->f->resolver, &victim->watch);
}

static void prepare(struct fixture *f, struct ear *ear)
{
	*ear = (struct ear){.watch.on_answer = on_answer, .f = f};
}

static void start(struct fixture *f, const char *host, uint16_t port, struct ear *ear)
{
	prepare(f, ear);
	assert_int_equal(f->resolver->ops->watch(f->resolver, host, port, &ear->watch), 0);
}

static void cancel(struct fixture *f, struct ear *ear)
{
	f->resolver->ops->cancel(f->resolver, &ear->watch);
}

static void refresh(struct fixture *f, struct ear *ear)
{
	f->resolver->ops->refresh(f->resolver, &ear->watch);
}

// The only answer since the last look; "" = there was none.
static const char *heard(struct ear *ear)
{
	assert_in_range(ear->n, 0, 1);
	const char *text = ear->n ? ear->heard : "";
	ear->n = 0;
	return text;
}

#define FAILED(why) "!DNS resolution of \"db\" failed: " why

// DM-04
static void name_is_asked_for_at_once_and_told_once(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	assert_true(fake_lookups_asks(&f.servers, "db"));
	assert_string_equal(heard(&a), "");
	fake_lookups_answer(&f.servers, "db", "10.0.0.1 10.0.0.2", 60);
	assert_string_equal(heard(&a), "10.0.0.1:80 10.0.0.2:80");
	fini(&f);
}

static void address_in_place_of_a_name_is_told_inside_the_call(void **state)
{
	struct fixture f;
	struct ear a, b;
	init(&f);
	start(&f, "192.0.2.7", 80, &a);
	assert_string_equal(heard(&a), "192.0.2.7:80");
	start(&f, "2001:db8::7", 443, &b);
	assert_string_equal(heard(&b), "[2001:db8::7]:443");
	assert_int_equal(f.servers.n_started, 0);
	refresh(&f, &a);
	pass_time(&f, 100 * S);
	assert_string_equal(heard(&a), "");
	cancel(&f, &a);
	fini(&f);
}

static void ipv6_comes_first_and_no_address_twice(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 1, &a);
	fake_lookups_answer(
		&f.servers, "db", "10.0.0.2 fd00::2 10.0.0.1 ::ffff:10.0.0.2 fd00::1 fd00::2", 60);
	assert_string_equal(heard(&a), "[fd00::2]:1 [fd00::1]:1 10.0.0.2:1 10.0.0.1:1");
	fini(&f);
}

// "10.0.0.<first>" and so on, n of 100 in a ring.
static const char *ring(unsigned first, unsigned n)
{
	static char list[2048];
	int len = 0;
	for (unsigned i = 0; i < n; i++)
		len += snprintf(
			list + len, sizeof(list) - (size_t)len, " 10.0.0.%u", (first + i) % 100);
	return list;
}

static void of_too_many_addresses_the_known_ones_stay(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 1, &a);
	fake_lookups_answer(&f.servers, "db", ring(0, 100), 60);
	assert_non_null(strstr(heard(&a), " 10.0.0.63:1"));
	assert_null(strstr(a.heard, " 10.0.0.64:1"));
	pass_time(&f, 61 * S);
	fake_lookups_answer(&f.servers, "db", ring(50, 100), 60); // the order turns
	assert_int_equal(a.n, 0);
	pass_time(&f, 61 * S);
	fake_lookups_answer(&f.servers, "db", ring(10, 90), 60); // ten known ones are gone
	assert_null(strstr(heard(&a), " 10.0.0.9:1"));
	assert_non_null(strstr(a.heard, " 10.0.0.63:1"));
	assert_non_null(strstr(a.heard, " 10.0.0.73:1"));
	assert_null(strstr(a.heard, " 10.0.0.74:1"));
	fini(&f);
}

static void answer_is_asked_for_again_when_its_ttl_is_over(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	pass_time(&f, 2 * S);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 100);
	heard(&a);
	pass_time(&f, 99 * S);
	assert_false(fake_lookups_asks(&f.servers, "db"));
	pass_time(&f, 2 * S);
	assert_true(fake_lookups_asks(&f.servers, "db"));
	fake_lookups_answer(&f.servers, "db", "10.0.0.9", 100);
	assert_string_equal(heard(&a), "10.0.0.9:80");
	fini(&f);
}

static void short_ttl_asks_no_more_than_every_30_s(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	for (unsigned i = 1; i <= 10; i++) {
		fake_lookups_answer(&f.servers, "db", "10.0.0.1", i % 2 ? 0 : 5);
		assert_int_equal(f.servers.n_started, i);
		pass_time(&f, 29 * S);
		assert_int_equal(f.servers.n_started, i);
		pass_time(&f, 1 * S);
	}
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 0);
	fini(&f);
}

static void ttl_of_years_counts_as_a_week(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", UINT32_MAX);
	pass_time(&f, 7 * 24 * 3600 * S - S);
	assert_false(fake_lookups_asks(&f.servers, "db"));
	pass_time(&f, 2 * S);
	assert_true(fake_lookups_asks(&f.servers, "db"));
	fini(&f);
}

// DM-23; gRPC's min_time_between_resolutions
static void request_asks_again_but_not_within_30_s(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	refresh(&f, &a); // one is under way
	assert_int_equal(f.servers.n_started, 1);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 3600);
	for (int i = 0; i < 3; i++) {
		refresh(&f, &a);
		pass_time(&f, 9 * S);
		assert_int_equal(f.servers.n_started, 1);
	}
	pass_time(&f, 3 * S);
	assert_int_equal(f.servers.n_started, 2);
	fake_lookups_answer(&f.servers, "db", "10.0.0.2", 3600);
	assert_int_equal(a.n, 2);
	pass_time(&f, 40 * S); // a request not used up does not come later
	assert_int_equal(f.servers.n_started, 2);
	refresh(&f, &a); // the time is over: at the next turn
	pass_time(&f, 2000000);
	assert_int_equal(f.servers.n_started, 3);
	fini(&f);
}

static void request_does_not_change_the_backoff(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	fake_lookups_fail(&f.servers, "db", "refused");
	for (int i = 0; i < 7; i++) {
		refresh(&f, &a);
		pass_time(&f, S / 10);
		assert_int_equal(f.servers.n_started, 1);
	}
	pass_time(&f, S * 6 / 10); // 1 s + 20 % are over
	assert_int_equal(f.servers.n_started, 2);
	fini(&f);
}

// DM-29
static void same_addresses_in_another_order_are_no_news(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1 10.0.0.2 10.0.0.3", 0);
	assert_string_equal(heard(&a), "10.0.0.1:80 10.0.0.2:80 10.0.0.3:80");
	pass_time(&f, 31 * S);
	fake_lookups_answer(&f.servers, "db", "10.0.0.2 10.0.0.3 10.0.0.1 10.0.0.2", 0);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 31 * S);
	fake_lookups_answer(&f.servers, "db", "10.0.0.2 10.0.0.3", 0);
	assert_string_equal(heard(&a), "10.0.0.2:80 10.0.0.3:80");
	fini(&f);
}

static void failure_before_any_answer_is_told_A37_D03(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	fake_lookups_fail(&f.servers, "db", "not found");
	assert_string_equal(heard(&a), FAILED("not found"));
	pass_time(&f, 2 * S);
	fake_lookups_answer(&f.servers, "db", "", 60); // a name without an address is no better
	assert_string_equal(heard(&a), FAILED("no address"));
	fini(&f);
}

// DM-13
// TH-60
static void failure_keeps_the_earlier_answer_A37_D03(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 30);
	heard(&a);
	pass_time(&f, 31 * S);
	fake_lookups_fail(&f.servers, "db", "refused");
	assert_string_equal(heard(&a), "10.0.0.1:80" FAILED("refused"));
	pass_time(&f, 2 * S);
	fake_lookups_fail(&f.servers, "db", "refused");
	assert_string_equal(heard(&a), ""); // as before
	pass_time(&f, 4 * S);
	fake_lookups_fail(&f.servers, "db", "not found");
	assert_string_equal(heard(&a), "10.0.0.1:80" FAILED("not found"));
	pass_time(&f, 4 * S);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 30);
	assert_string_equal(heard(&a), "10.0.0.1:80"); // the trouble is over
	fini(&f);
}

// grpc/grpc doc/connection-backoff.md, as for all retries of its resolvers
static void failures_are_spaced_by_the_backoff(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	double wait_s = 1;
	for (unsigned i = 1; i <= 15; i++) {
		fake_lookups_fail(&f.servers, "db", "refused");
		pass_time(&f, (uint64_t)(wait_s * 0.79 * S));
		assert_int_equal(f.servers.n_started, i);
		pass_time(&f, (uint64_t)(wait_s * 0.42 * S));
		assert_int_equal(f.servers.n_started, i + 1);
		wait_s = wait_s * 1.6 < 120 ? wait_s * 1.6 : 120;
	}
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 0); // starts the backoff anew
	pass_time(&f, 31 * S);
	fake_lookups_fail(&f.servers, "db", "refused");
	pass_time(&f, 1210 * S / 1000);
	assert_true(fake_lookups_asks(&f.servers, "db"));
	fini(&f);
}

// As a resource (FM-04): no configuration is to wait for a dead name server.
static void silence_for_15_s_counts_as_failure(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	start(&f, "db", 80, &a);
	pass_time(&f, 14 * S);
	assert_string_equal(heard(&a), "");
	pass_time(&f, 2 * S);
	assert_string_equal(heard(&a), FAILED("no answer within 15 s"));
	pass_time(&f, 60 * S);
	assert_int_equal(f.servers.n_started, 1); // the first goes on
	assert_string_equal(heard(&a), "");
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 60);
	assert_string_equal(heard(&a), "10.0.0.1:80");
	fini(&f);
}

static void watches_of_a_name_share_lookup_and_answer(void **state)
{
	struct fixture f;
	struct ear a, b, c, d;
	init(&f);
	start(&f, "db", 80, &a);
	start(&f, "db", 81, &b);
	assert_int_equal(f.servers.n_started, 1);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 60);
	assert_string_equal(heard(&a), "10.0.0.1:80");
	assert_string_equal(heard(&b), "10.0.0.1:81");
	start(&f, "db", 82, &c);
	assert_string_equal(heard(&c), "10.0.0.1:82"); // inside the call
	start(&f, "other", 80, &d);
	assert_int_equal(f.servers.n_started, 2);
	pass_time(&f, 61 * S);
	start(&f, "db", 83, &d);
	assert_string_equal(heard(&d), "10.0.0.1:83"); // what was found last, while it asks again
	fake_lookups_fail(&f.servers, "db", "refused");
	assert_string_equal(heard(&d), "10.0.0.1:83" FAILED("refused"));
	fini(&f);
}

static void cancelled_watch_hears_nothing_and_the_last_one_ends_the_name(void **state)
{
	struct fixture f;
	struct ear a, b;
	init(&f);
	start(&f, "db", 80, &a);
	start(&f, "db", 81, &b);
	cancel(&f, &a);
	cancel(&f, &a); // twice is fine
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 60);
	assert_string_equal(heard(&a), "");
	assert_string_equal(heard(&b), "10.0.0.1:81");
	cancel(&f, &b);
	assert_true(twheel_next_ns(f.wheel) == UINT64_MAX);
	start(&f, "db", 80, &a); // nothing is remembered
	assert_string_equal(heard(&a), "");
	cancel(&f, &a);
	assert_false(fake_lookups_asks(&f.servers, "db"));
	fini(&f);
}

static void watches_may_come_and_go_inside_an_answer(void **state)
{
	struct fixture f;
	struct ear a, b, c, late;
	init(&f);
	start(&f, "db", 1, &a);
	start(&f, "db", 2, &b);
	start(&f, "db", 3, &c);
	a.cancels = &b; // before its turn
	c.cancels = &c;
	c.starts = &late;
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 60);
	assert_string_equal(heard(&a), "10.0.0.1:1");
	assert_string_equal(heard(&b), "");
	assert_string_equal(heard(&c), "10.0.0.1:3");
	assert_string_equal(heard(&late), "10.0.0.1:99");
	pass_time(&f, 61 * S);
	a.cancels = &late;
	late.cancels = &a; // whoever is first takes the other away, and then there is one
	fake_lookups_answer(&f.servers, "db", "10.0.0.2", 60);
	assert_int_equal(a.n + late.n, 1);
	pass_time(&f, 61 * S);
	struct ear *left = a.n ? &a : &late;
	left->n = 0;
	left->cancels = left; // the last one: the name ends inside its own answer
	fake_lookups_answer(&f.servers, "db", "10.0.0.3", 60);
	assert_int_equal(left->n, 1);
	assert_true(twheel_next_ns(f.wheel) == UINT64_MAX);
	fini(&f);
}

static void answer_may_come_inside_the_question(void **state)
{
	struct fixture f;
	struct ear a, b;
	init(&f);
	f.servers.instant = "10.0.0.1";
	start(&f, "db", 80, &a);
	assert_string_equal(heard(&a), "10.0.0.1:80");
	prepare(&f, &b);
	b.cancels = &b; // ends a name before watch() returns
	assert_int_equal(f.resolver->ops->watch(f.resolver, "other", 81, &b.watch), 0);
	assert_string_equal(heard(&b), "10.0.0.1:81");
	f.servers.instant = "10.0.0.2";
	pass_time(&f, 31 * S);
	assert_string_equal(heard(&a), "10.0.0.2:80");
	fini(&f);
}

static void lookup_without_memory_is_tried_again(void **state)
{
	struct fixture f;
	struct ear a;
	init(&f);
	f.servers.starve = true;
	start(&f, "db", 80, &a);
	assert_string_equal(heard(&a), FAILED("out of memory"));
	f.servers.starve = false;
	pass_time(&f, 2 * S);
	fake_lookups_answer(&f.servers, "db", "10.0.0.1", 60);
	assert_string_equal(heard(&a), "10.0.0.1:80");
	fini(&f);
}

static void watch_without_memory_leaves_nothing(void **state)
{
	struct fixture f;
	struct ear a;
	int rc;
	init(&f);
	prepare(&f, &a);
	ALLOC_FAIL_EACH(rc = f.resolver->ops->watch(f.resolver, "db", 80, &a.watch), rc == -ENOMEM,
		cancel(&f, &a));
	fini(&f);
}

static void freeing_forgets_watches(void **state)
{
	struct fixture f;
	struct ear ears[40];
	init(&f);
	for (unsigned i = 0; i < 40; i++) {
		char host[16];
		snprintf(host, sizeof(host), "h%u", i / 2);
		start(&f, host, 80, &ears[i]);
	}
	fini(&f);
	for (unsigned i = 0; i < 40; i++)
		assert_null(ears[i].watch.name);
}

// Random life of a few names against a naive model: each watch's last answer is what its name's
// last lookups came to, no set is told twice in a row, and a server is not asked too often.

#define N_HOSTS 3
#define N_EARS 8

struct model {
	char addrs[64]; // found last, "" = none
	char why[16]; // last failure, "" = none
	uint64_t asked_ns;
	bool known, failed;
};

static unsigned host_of(const struct ear *ear)
{
	return (unsigned)(ear->watch.port - 1000);
}

static void check_ears(const struct model *m, struct ear *ears)
{
	for (unsigned i = 0; i < N_EARS; i++) {
		struct ear *e = &ears[i];
		if (!e->watch.name)
			continue;
		const struct model *of = &m[host_of(e)];
		char want[256] = "", port[16];
		if (*of->addrs)
			snprintf(want, sizeof(want), "%s:%u", of->addrs, e->watch.port);
		snprintf(port, sizeof(port), "h%u", host_of(e));
		if (*of->why) {
			size_t len = strlen(want);
			snprintf(want + len, sizeof(want) - len,
				"!DNS resolution of \"%s\" failed: %s", port, of->why);
		}
		assert_string_equal(e->heard, want);
	}
}

struct world {
	struct fixture f;
	struct ear ears[N_EARS];
	struct model m[N_HOSTS];
	bool asked[N_HOSTS]; // open questions that were noted
};

static const char *host_name(unsigned h)
{
	static const char *const NAMES[N_HOSTS] = {"h0", "h1", "h2"};
	return NAMES[h];
}

static void fail_host(struct world *w, unsigned h, const char *why)
{
	if (!w->asked[h])
		return;
	snprintf(w->m[h].why, sizeof(w->m[h].why), "%s", why);
	w->m[h].failed = true;
	w->asked[h] = false;
	fake_lookups_fail(&w->f.servers, host_name(h), why);
}

static void answer_host(struct world *w, unsigned h, unsigned n, uint32_t ttl_s)
{
	if (!w->asked[h])
		return;
	snprintf(w->m[h].addrs, sizeof(w->m[h].addrs), "10.0.0.%u", n);
	w->m[h].why[0] = '\0';
	w->m[h].failed = false;
	w->asked[h] = false;
	fake_lookups_answer(&w->f.servers, host_name(h), w->m[h].addrs, ttl_s);
}

static void cancel_ear(struct world *w, struct ear *e)
{
	if (!e->watch.name)
		return;
	unsigned h = host_of(e);
	cancel(&w->f, e);
	for (unsigned i = 0; i < N_EARS; i++)
		if (w->ears[i].watch.name && host_of(&w->ears[i]) == h)
			return;
	w->m[h] = (struct model){0};
	w->asked[h] = false;
}

// What was asked since, and that it was not too soon.
static void note_questions(struct world *w)
{
	for (unsigned h = 0; h < N_HOSTS; h++) {
		if (w->asked[h] || !fake_lookups_asks(&w->f.servers, host_name(h)))
			continue;
		struct model *m = &w->m[h];
		uint64_t least = m->failed ? S * 8 / 10 : 30 * S;
		assert_true(!m->known || w->f.now_ns - m->asked_ns >= least);
		m->known = w->asked[h] = true;
		m->asked_ns = w->f.now_ns;
	}
}

static void random_life(uint64_t seed)
{
	struct world w = {0};
	struct rand r;
	init(&w.f);
	rand_init(&r, seed);
	for (unsigned step = 0; step < 400; step++) {
		struct ear *e = &w.ears[rand_below(&r, N_EARS)];
		unsigned h = (unsigned)rand_below(&r, N_HOSTS);
		switch (rand_below(&r, 6)) {
		case 0:
			if (!e->watch.name)
				start(&w.f, host_name(h), (uint16_t)(1000 + h), e);
			break;
		case 1:
			cancel_ear(&w, e);
			break;
		case 2:
			refresh(&w.f, e);
			break;
		case 3: // nothing stays open: patience is a case of its own
			for (unsigned i = 0; i < N_HOSTS; i++)
				fail_host(&w, i, "refused");
			pass_time(&w.f, rand_below(&r, 40 * S));
			break;
		case 4:
			answer_host(
				&w, h, (unsigned)rand_below(&r, 3), (uint32_t)rand_below(&r, 50));
			break;
		case 5:
			fail_host(&w, h, rand_below(&r, 2) ? "refused" : "not found");
			break;
		}
		note_questions(&w);
		check_ears(w.m, w.ears);
	}
	fini(&w.f);
}

static void random_lives_agree_with_a_naive_model(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++)
		random_life(seed);
}

RUN_SUITE("dns/names", cmocka_unit_test(name_is_asked_for_at_once_and_told_once),
	cmocka_unit_test(address_in_place_of_a_name_is_told_inside_the_call),
	cmocka_unit_test(ipv6_comes_first_and_no_address_twice),
	cmocka_unit_test(of_too_many_addresses_the_known_ones_stay),
	cmocka_unit_test(answer_is_asked_for_again_when_its_ttl_is_over),
	cmocka_unit_test(short_ttl_asks_no_more_than_every_30_s),
	cmocka_unit_test(ttl_of_years_counts_as_a_week),
	cmocka_unit_test(request_asks_again_but_not_within_30_s),
	cmocka_unit_test(request_does_not_change_the_backoff),
	cmocka_unit_test(same_addresses_in_another_order_are_no_news),
	cmocka_unit_test(failure_before_any_answer_is_told_A37_D03),
	cmocka_unit_test(failure_keeps_the_earlier_answer_A37_D03),
	cmocka_unit_test(failures_are_spaced_by_the_backoff),
	cmocka_unit_test(silence_for_15_s_counts_as_failure),
	cmocka_unit_test(watches_of_a_name_share_lookup_and_answer),
	cmocka_unit_test(cancelled_watch_hears_nothing_and_the_last_one_ends_the_name),
	cmocka_unit_test(watches_may_come_and_go_inside_an_answer),
	cmocka_unit_test(answer_may_come_inside_the_question),
	cmocka_unit_test(lookup_without_memory_is_tried_again),
	cmocka_unit_test(watch_without_memory_leaves_nothing),
	cmocka_unit_test(freeing_forgets_watches),
	cmocka_unit_test(random_lives_agree_with_a_naive_model))
