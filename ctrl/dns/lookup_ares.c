// SPDX-License-Identifier: Apache-2.0
#include "ctrl/dns/lookup_ares.h"

#include "lb/base/container_of.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <ares.h>
#include <event2/event.h>

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/time.h>

// At once; further ones wait. Each holds a file descriptor or a few.
#define MAX_RUNNING 128
#define TIMEOUT_MS 2000
#define TRIES 3
#define LIMIT_MS 12000

struct lookups {
	struct dns_lookups base; // first member
	struct dns_ares_conf conf;
	char *servers; // NULL = resolv.conf's
	unsigned n_running;
	TAILQ_HEAD(, dns_query) waiting;
	struct twheel_timer kick; // starts waiting ones
};

struct sock {
	struct dns_query *query;
	struct sock *next;
	ares_socket_t fd;
	struct event *event; // owned
};

// c-ares is not to be destroyed inside its own callbacks: these only note what has happened, and
// step() acts on it.
struct dns_query {
	struct lookups *lookups;
	struct dns_lookup *lookup;
	TAILQ_ENTRY(dns_query) waiting; // while it has no channel
	char *host;
	ares_channel channel; // NULL while waiting
	struct sock *socks;
	struct twheel_timer timer; // c-ares's next time-out, or the end
	uint64_t end_ns; // once it runs
	bool over; // status and what was found are final
	int status;
	struct ip_addr addrs[DNS_MAX_FOUND];
	uint32_t n_addrs;
	uint32_t ttl_s;
};

static void step(struct dns_query *q);

// What c-ares calls

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct dns_query *q = ((struct sock *)arg)->query;
	ares_process_fd(q->channel, what & EV_READ ? fd : ARES_SOCKET_BAD,
		what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	step(q);
}

static void unlink_sock(struct sock **at)
{
	struct sock *s = *at;
	*at = s->next;
	if (s->event)
		event_free(s->event);
	free(s);
}

static void on_sock_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct dns_query *q = arg;
	struct sock **at = &q->socks;
	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	if (*at) // an event's conditions are for life
		unlink_sock(at);
	if (!readable && !writable)
		return;
	struct sock *s = calloc(1, sizeof(*s));
	if (s) {
		*s = (struct sock){.query = q, .next = q->socks, .fd = fd};
		q->socks = s;
		short what = (short)((readable ? EV_READ : 0) | (writable ? EV_WRITE : 0));
		s->event = event_new(q->lookups->conf.events, fd, what | EV_PERSIST, on_socket, s);
	}
	if (!s || !s->event || event_add(s->event, NULL)) {
		q->over = true;
		q->status = ARES_ENOMEM;
	}
}

static uint32_t min_ttl(uint32_t ttl_s, int other)
{
	uint32_t o = other < 0 ? 0 : (uint32_t)other; // RFC 2181 8
	return o < ttl_s ? o : ttl_s;
}

static void on_result(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	struct dns_query *q = arg;
	if (q->over) { // being destroyed
		ares_freeaddrinfo(found);
		return;
	}
	q->over = true;
	q->status = status == ARES_ECANCELLED ? ARES_ETIMEOUT : status; // nobody else cancels
	if (status != ARES_SUCCESS) {
		ares_freeaddrinfo(found);
		return;
	}
	q->ttl_s = INT_MAX;
	for (const struct ares_addrinfo_cname *c = found->cnames; c; c = c->next)
		q->ttl_s = min_ttl(q->ttl_s, c->ttl);
	for (const struct ares_addrinfo_node *n = found->nodes; n; n = n->ai_next) {
		q->ttl_s = min_ttl(q->ttl_s, n->ai_ttl);
		if (q->n_addrs == DNS_MAX_FOUND)
			break;
		if (n->ai_family == AF_INET) {
			struct sockaddr_in sin;
			memcpy(&sin, n->ai_addr, sizeof(sin));
			q->addrs[q->n_addrs++] = ip_from_v4(ntohl(sin.sin_addr.s_addr));
		} else if (n->ai_family == AF_INET6) {
			struct sockaddr_in6 sin6;
			memcpy(&sin6, n->ai_addr, sizeof(sin6));
			memcpy(q->addrs[q->n_addrs++].b, &sin6.sin6_addr, sizeof(struct ip_addr));
		}
	}
	ares_freeaddrinfo(found);
}

// Queries

static void unlink_query(struct dns_query *q)
{
	struct lookups *l = q->lookups;
	if (q->channel) {
		l->n_running--;
		if (!TAILQ_EMPTY(&l->waiting))
			twheel_arm(l->conf.wheel, &l->kick, twheel_now(l->conf.wheel));
	} else {
		TAILQ_REMOVE(&l->waiting, q, waiting);
	}
}

static void query_free(struct dns_query *q)
{
	q->over = true;
	if (q->channel)
		ares_destroy(q->channel);
	while (q->socks)
		unlink_sock(&q->socks);
	twheel_cancel(q->lookups->conf.wheel, &q->timer);
	free(q->host);
	free(q);
}

static void finish(struct dns_query *q)
{
	struct dns_lookup *lookup = q->lookup;
	struct ip_addr addrs[DNS_MAX_FOUND];
	struct dns_found found = {.addrs = addrs, .n = q->n_addrs, .ttl_s = q->ttl_s};
	memcpy(addrs, q->addrs, sizeof(addrs));
	if (q->status != ARES_SUCCESS)
		found.error = ares_strerror(q->status);
	unlink_query(q);
	query_free(q);
	lookup->query = NULL;
	lookup->done(lookup, &found);
}

// After every call into c-ares. The query may be gone afterwards.
static void step(struct dns_query *q)
{
	if (q->over) {
		finish(q);
		return;
	}
	struct timeval tv = {0};
	struct twheel *wheel = q->lookups->conf.wheel;
	uint64_t at_ns = q->end_ns;
	if (ares_timeout(q->channel, NULL, &tv)) {
		uint64_t next_ns = twheel_now(wheel) + (uint64_t)tv.tv_sec * NS_PER_SECOND +
		                   (uint64_t)tv.tv_usec * NS_PER_US;
		at_ns = next_ns < at_ns ? next_ns : at_ns;
	}
	twheel_arm(wheel, &q->timer, at_ns);
}

static void timer_fired(struct twheel_timer *t)
{
	struct dns_query *q = CONTAINER_OF(t, struct dns_query, timer);
	if (twheel_now(q->lookups->conf.wheel) >= q->end_ns)
		ares_cancel(q->channel); // what has come is the result
	else
		ares_process_fd(q->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	step(q);
}

// ARES_SUCCESS or what c-ares says.
static int open_channel(const struct lookups *l, struct dns_query *q, ares_channel *ret)
{
	struct ares_options options = {
		.timeout = l->conf.timeout_ms ? l->conf.timeout_ms : TIMEOUT_MS,
		.tries = l->conf.tries ? l->conf.tries : TRIES,
		.sock_state_cb = on_sock_state,
		.sock_state_cb_data = q,
	};
	int mask = ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES;
	ares_channel channel;
	int rc = ares_init_options(&channel, &options, mask);
	if (rc != ARES_SUCCESS)
		return rc;
	if (l->servers)
		rc = ares_set_servers_ports_csv(channel, l->servers);
	if (rc == ARES_SUCCESS)
		*ret = channel;
	else
		ares_destroy(channel);
	return rc;
}

static void fail_early(struct dns_query *q, int status)
{
	struct dns_lookup *lookup = q->lookup;
	query_free(q);
	lookup->query = NULL;
	lookup->done(lookup, &(struct dns_found){.error = ares_strerror(status)});
}

// The query is in no list. The answer may come inside (hosts file), and with it the end.
static void run(struct dns_query *q)
{
	// Sorting would ask the kernel's routes, which are not those of the packets' ways.
	struct ares_addrinfo_hints hints = {.ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC};
	int rc = open_channel(q->lookups, q, &q->channel);
	if (rc != ARES_SUCCESS) {
		fail_early(q, rc);
		return;
	}
	q->lookups->n_running++;
	int limit_ms = q->lookups->conf.limit_ms ? q->lookups->conf.limit_ms : LIMIT_MS;
	q->end_ns = twheel_now(q->lookups->conf.wheel) + (uint64_t)limit_ms * NS_PER_MS;
	ares_getaddrinfo(q->channel, q->host, NULL, &hints, on_result, q);
	step(q);
}

static void kick_fired(struct twheel_timer *t)
{
	struct lookups *l = CONTAINER_OF(t, struct lookups, kick);
	struct dns_query *q;
	while ((q = TAILQ_FIRST(&l->waiting)) && l->n_running < MAX_RUNNING) {
		unlink_query(q);
		run(q);
	}
}

// The vtable

static int lookups_start(struct dns_lookups *base, const char *host, struct dns_lookup *lookup)
{
	struct lookups *l = CONTAINER_OF(base, struct lookups, base); // base is the first member
	struct dns_query *q = calloc(1, sizeof(*q));
	if (!q)
		return -ENOMEM;
	q->lookups = l;
	q->lookup = lookup;
	q->timer.fire = timer_fired;
	q->host = strdup(host);
	if (!q->host) {
		free(q);
		return -ENOMEM;
	}
	lookup->query = q;
	if (l->n_running < MAX_RUNNING) {
		run(q);
		return 0;
	}
	TAILQ_INSERT_TAIL(&l->waiting, q, waiting);
	return 0;
}

static void lookups_cancel(struct dns_lookups *base, struct dns_lookup *lookup)
{
	struct dns_query *q = lookup->query;
	if (!q)
		return;
	lookup->query = NULL;
	unlink_query(q);
	query_free(q);
}

static void lookups_free(struct dns_lookups *base)
{
	struct lookups *l = CONTAINER_OF(base, struct lookups, base); // base is the first member
	twheel_cancel(l->conf.wheel, &l->kick);
	free(l->servers);
	free(l);
	ares_library_cleanup();
}

static const struct dns_lookups_ops ops = {
	.start = lookups_start,
	.cancel = lookups_cancel,
	.free = lookups_free,
};

int dns_ares_new(const struct dns_ares_conf *conf, struct dns_lookups **ret, struct lb_err *err)
{
	if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
		return -ENOMEM;
	struct lookups *l = calloc(1, sizeof(*l));
	int rc = l ? ARES_SUCCESS : ARES_ENOMEM;
	if (l) {
		l->base.ops = &ops;
		TAILQ_INIT(&l->waiting);
		l->conf = *conf;
		l->kick.fire = kick_fired;
		l->servers = conf->servers ? strdup(conf->servers) : NULL;
		if (conf->servers && !l->servers)
			rc = ARES_ENOMEM;
	}
	ares_channel probe;
	if (rc == ARES_SUCCESS) // what cannot be used is said now, not with each lookup
		rc = open_channel(l, NULL, &probe);
	if (rc == ARES_SUCCESS) {
		ares_destroy(probe);
		*ret = &l->base;
		return 0;
	}
	if (l)
		lookups_free(&l->base);
	else
		ares_library_cleanup();
	if (rc == ARES_ENOMEM)
		return -ENOMEM;
	return lb_err_set(err, "DNS servers \"%s\": %s",
		conf->servers ? conf->servers : "of resolv.conf", ares_strerror(rc));
}
