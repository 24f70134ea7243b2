// SPDX-License-Identifier: Apache-2.0
#include "ctrl/dns/names.h"

#include "ctrl/base/strmap.h"
#include "ctrl/dns/lookup.h"
#include "lb/base/backoff.h"
#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_INTERVAL_NS (30 * NS_PER_SECOND) // of questions for a name, without failure
#define MAX_TTL_S (7 * 24 * 3600u) // RFC 8767 4
// A name that nobody answers for counts as failed after this, as a resource does (FM-04): no
// configuration waits longer for it. The lookup goes on.
#define PATIENCE_NS (15 * NS_PER_SECOND)

enum state {
	ASKING, // a lookup is under way; the timer is our patience
	FRESH, // the last lookup found addresses; the timer asks again
	FAILED, // it did not; the timer asks again
};

struct names {
	struct dns_resolver base; // first member
	struct dns_names_conf conf;
	struct strmap by_host;
};

struct dns_name {
	struct strmap_link link; // by host
	struct names *names;
	char *host;
	TAILQ_HEAD(, dns_watch) watches; // empty = dropped as soon as nothing is told
	unsigned telling; // rounds under way
	uint64_t round; // numbers them; watches remember the last
	enum state state;
	struct twheel_timer timer;
	struct dns_lookup lookup;
	uint64_t asked_ns; // when the last lookup began
	struct backoff backoff;
	struct ip_addr addrs[DNS_MAX_ADDRESSES]; // no two alike
	uint32_t n_addrs;
	char error[320]; // "" = none
};

// Names

static void name_free(struct dns_name *n)
{
	const struct dns_names_conf *conf = &n->names->conf;
	conf->lookups->ops->cancel(conf->lookups, &n->lookup);
	twheel_cancel(conf->wheel, &n->timer);
	free(n->host);
	free(n);
}

static void drop_if_unwatched(struct dns_name *n)
{
	if (!TAILQ_EMPTY(&n->watches) || n->telling)
		return;
	strmap_remove(&n->names->by_host, &n->link);
	name_free(n);
}

// Telling

static void tell_one(const struct dns_name *n, struct dns_watch *w)
{
	struct ip_port list[DNS_MAX_ADDRESSES];
	char error[sizeof(n->error)]; // a copy: the name may go while it is read
	for (uint32_t i = 0; i < n->n_addrs; i++)
		list[i] = (struct ip_port){n->addrs[i], w->port};
	memcpy(error, n->error, sizeof(error));
	w->on_answer(w, &(struct dns_answer){list, n->n_addrs, error});
}

// Watches may come and go meanwhile: after each call the list is read from its start. The name may
// be gone afterwards.
static void tell(struct dns_name *n)
{
	uint64_t round = ++n->round;
	n->telling++;
	struct dns_watch *w = TAILQ_FIRST(&n->watches);
	while (w) {
		if (w->seen >= round) {
			w = TAILQ_NEXT(w, link);
			continue;
		}
		w->seen = n->round;
		tell_one(n, w);
		w = TAILQ_FIRST(&n->watches);
	}
	n->telling--;
	drop_if_unwatched(n);
}

// Answers

static bool contains(const struct ip_addr *list, uint32_t n, const struct ip_addr *addr)
{
	for (uint32_t i = 0; i < n; i++)
		if (ip_eq(&list[i], addr))
			return true;
	return false;
}

// Adds the addresses of one family that are not in the list yet.
static void collect(const struct dns_found *f, bool v4, const struct dns_name *known,
	struct ip_addr *list, uint32_t *n)
{
	for (uint32_t i = 0; i < f->n && *n < DNS_MAX_ADDRESSES; i++) {
		const struct ip_addr *a = &f->addrs[i];
		if (ip_is_v4(a) == v4 && !contains(list, *n, a) &&
			(!known || contains(known->addrs, known->n_addrs, a)))
			list[(*n)++] = *a;
	}
}

// The addresses once each, IPv6 first, else in the server's order. Of too many, those that are
// known come first: servers turn the order of their lists, and each time others would be left out.
static uint32_t tidy(const struct dns_name *known, const struct dns_found *f, struct ip_addr *ret)
{
	struct ip_addr list[DNS_MAX_ADDRESSES];
	uint32_t n_list = 0, n = 0;
	if (f->n > DNS_MAX_ADDRESSES)
		for (int v4 = 0; v4 <= 1; v4++)
			collect(f, v4, known, list, &n_list);
	for (int v4 = 0; v4 <= 1; v4++)
		collect(f, v4, NULL, list, &n_list);
	for (int v4 = 0; v4 <= 1; v4++)
		for (uint32_t i = 0; i < n_list; i++)
			if (ip_is_v4(&list[i]) == v4)
				ret[n++] = list[i];
	return n;
}

// Servers turn the order of their lists with every answer, which is no news.
static bool same_set(const struct dns_name *n, const struct ip_addr *list, uint32_t n_list)
{
	if (n->n_addrs != n_list)
		return false;
	for (uint32_t i = 0; i < n_list; i++)
		if (!contains(n->addrs, n->n_addrs, &list[i]))
			return false;
	return true;
}

static void wait_until(struct dns_name *n, enum state state, uint64_t at_ns)
{
	n->state = state;
	twheel_arm(n->names->conf.wheel, &n->timer, at_ns);
}

// Notes a failure. True = it is news.
static bool note_error(struct dns_name *n, const char *why)
{
	char text[sizeof(n->error)];
	snprintf(text, sizeof(text), "DNS resolution of \"%.200s\" failed: %s", n->host, why);
	if (strcmp(text, n->error) == 0)
		return false;
	memcpy(n->error, text, sizeof(text));
	return true;
}

static void failed(struct dns_name *n, const char *why)
{
	uint64_t wait = backoff_next_ns(&n->backoff, n->names->conf.rand);
	wait_until(n, FAILED, twheel_now(n->names->conf.wheel) + wait);
	if (note_error(n, why))
		tell(n);
}

static void found(struct dns_name *n, const struct dns_found *f)
{
	struct ip_addr list[DNS_MAX_ADDRESSES];
	uint32_t n_list = tidy(n, f, list);
	if (n_list == 0) {
		failed(n, "no address");
		return;
	}
	bool news = *n->error || !same_set(n, list, n_list);
	if (news) {
		memcpy(n->addrs, list, n_list * sizeof(*list));
		n->n_addrs = n_list;
		n->error[0] = '\0';
	}
	backoff_reset(&n->backoff);
	uint32_t ttl_s = f->ttl_s < MAX_TTL_S ? f->ttl_s : MAX_TTL_S;
	uint64_t expiry = twheel_now(n->names->conf.wheel) + ttl_s * NS_PER_SECOND;
	uint64_t earliest = n->asked_ns + MIN_INTERVAL_NS;
	wait_until(n, FRESH, expiry > earliest ? expiry : earliest);
	if (news)
		tell(n);
}

static void lookup_done(struct dns_lookup *l, const struct dns_found *f)
{
	struct dns_name *n = CONTAINER_OF(l, struct dns_name, lookup);
	if (f->error)
		failed(n, f->error);
	else
		found(n, f);
}

// The answer may come inside, and with it the end of the name.
static void ask(struct dns_name *n)
{
	const struct dns_names_conf *conf = &n->names->conf;
	n->asked_ns = twheel_now(conf->wheel);
	wait_until(n, ASKING, n->asked_ns + PATIENCE_NS);
	if (conf->lookups->ops->start(conf->lookups, n->host, &n->lookup))
		failed(n, "out of memory");
}

static void timer_fired(struct twheel_timer *t)
{
	struct dns_name *n = CONTAINER_OF(t, struct dns_name, timer);
	if (n->state != ASKING)
		ask(n);
	else if (note_error(n, "no answer within 15 s"))
		tell(n);
}

// Watches

// NULL = out of memory.
static struct dns_name *name_new(struct names *names, const char *host)
{
	struct dns_name *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->names = names;
	n->timer.fire = timer_fired;
	n->lookup.done = lookup_done;
	TAILQ_INIT(&n->watches);
	n->host = strdup(host);
	if (n->host && strmap_add(&names->by_host, &n->link, n->host) == 0)
		return n;
	free(n->host);
	free(n);
	return NULL;
}

static int names_watch(struct dns_resolver *r, const char *host, uint16_t port, struct dns_watch *w)
{
	struct names *names = CONTAINER_OF(r, struct names, base); // base is the first member
	CHECK(!w->name);
	struct ip_port literal = {.port = port};
	if (ip_parse(host, &literal.ip)) {
		w->on_answer(w, &(struct dns_answer){&literal, 1, ""});
		return 0;
	}
	struct strmap_link *l = strmap_find(&names->by_host, host);
	struct dns_name *n = l ? CONTAINER_OF(l, struct dns_name, link) : NULL;
	bool fresh = !n;
	if (fresh)
		n = name_new(names, host);
	if (!n)
		return -ENOMEM;
	w->port = port;
	w->name = n;
	w->seen = fresh ? 0 : n->round;
	TAILQ_INSERT_TAIL(&n->watches, w, link);
	if (fresh)
		ask(n);
	else if (n->n_addrs || *n->error)
		tell_one(n, w);
	return 0;
}

static void names_cancel(struct dns_resolver *r, struct dns_watch *w)
{
	struct dns_name *n = w->name;
	if (!n)
		return;
	TAILQ_REMOVE(&n->watches, w, link);
	w->name = NULL;
	drop_if_unwatched(n);
}

// Where a lookup or a backoff is under way, the request has its answer in it (gRPC's polling
// resolver likewise).
static void names_refresh(struct dns_resolver *r, struct dns_watch *w)
{
	struct dns_name *n = w->name;
	if (n && n->state == FRESH)
		wait_until(n, FRESH, n->asked_ns + MIN_INTERVAL_NS);
}

static void names_free(struct dns_resolver *r)
{
	struct names *names = CONTAINER_OF(r, struct names, base); // base is the first member
	for (uint32_t b = 0; b < names->by_host.n_buckets; b++) {
		for (struct strmap_link *l = names->by_host.buckets[b], *next; l; l = next) {
			next = l->next;
			struct dns_name *n = CONTAINER_OF(l, struct dns_name, link);
			CHECK(!n->telling);
			for (struct dns_watch *w = TAILQ_FIRST(&n->watches); w;
				w = TAILQ_NEXT(w, link))
				w->name = NULL;
			name_free(n);
		}
	}
	strmap_fini(&names->by_host);
	free(names);
}

static const struct dns_resolver_ops ops = {
	.watch = names_watch,
	.cancel = names_cancel,
	.refresh = names_refresh,
	.free = names_free,
};

struct dns_resolver *dns_names_new(const struct dns_names_conf *conf)
{
	struct names *names = calloc(1, sizeof(*names));
	if (!names)
		return NULL;
	names->base.ops = &ops;
	names->conf = *conf;
	return &names->base;
}
