// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/health.h"

#include "lb/base/check.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "lb/member/probes.h"
#include "lb/pick/check.h"
#include "lb/pick/security.h"
#include "lb/policy/dump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_NS NS_PER_MS // between two checks
#define AGAIN_NS NS_PER_SECOND // after one that our own memory ended
#define N_FIRST_AT_ONCE 100 // first checks of a list that may begin within a millisecond

struct host {
	struct lb_probe_user user;
	struct lb_health *health;
	struct lb_member *member; // counted
	struct lb_probe *probe; // owned; NULL = there was no memory for it yet
	struct twheel_timer timer; // until the next check; not armed while one is asked for
	uint64_t told_ns; // of the last result
	uint32_t n_passed, n_failed; // in a row, while the verdict is the other one
	bool is_first; // no result yet: the first one decides (AHC-05)
	char why[LB_PROBE_WHY_MAX]; // of the last result; "" = it passed
};

struct lb_health {
	struct lb_health_env env;
	struct lb_check *check; // counted
	struct host **hosts; // owned; [n], by the member's id
	uint32_t n;
	bool is_used; // requests were sent to some member
};

static void on_timer(struct twheel_timer *);
static void on_result(struct lb_probe_user *, enum lb_probe_result, const char *why);

struct lb_health *lb_health_new(const struct lb_health_env *env)
{
	struct lb_health *h = calloc(1, sizeof(*h));
	if (h)
		h->env = *env;
	return h;
}

static void host_free(struct host *host)
{
	const struct lb_health_env *env = &host->health->env;
	twheel_cancel(env->wheel, &host->timer);
	lb_probes_end(env->probes, host->probe);
	lb_member_put(host->member);
	free(host);
}

static void drop_hosts(struct lb_health *h)
{
	struct host **hosts = h->hosts;
	uint32_t n = h->n;
	h->hosts = NULL;
	h->n = 0;
	for (uint32_t i = 0; i < n; i++)
		host_free(hosts[i]);
	free(hosts);
}

void lb_health_free(struct lb_health *h)
{
	if (!h)
		return;
	drop_hosts(h);
	lb_check_put(h->check);
	free(h);
}

void lb_health_end(struct lb_health *h)
{
	for (uint32_t i = 0; i < h->n; i++)
		lb_member_set_health(h->hosts[i]->member, LB_MEMBER_SERVES);
	drop_hosts(h);
}

// Times.

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void arm(struct host *host, uint64_t delay_ns)
{
	struct twheel *w = host->health->env.wheel;
	twheel_arm(w, &host->timer, saturating_add(twheel_now(w), delay_ns));
}

static uint64_t up_to(struct lb_health *h, uint64_t ns)
{
	return ns ? rand_below(h->env.rand, ns) : 0;
}

static bool is_used(struct lb_health *h, const struct lb_member *m)
{
	if (!h->is_used)
		h->is_used = !h->env.is_used || h->env.is_used(h->env.ctx, lb_member_id(m));
	return h->is_used;
}

// AHC-03. changes: the verdict is about to be another one.
static uint64_t interval_ns(struct host *host, bool passed, bool changes)
{
	struct lb_health *h = host->health;
	const struct lb_check *c = h->check;
	if (!is_used(h, host->member))
		return passed && !changes ? c->no_traffic_healthy_ns : c->no_traffic_ns;
	if (passed)
		return changes ? c->healthy_edge_ns : c->interval_ns;
	return changes ? c->unhealthy_edge_ns : c->unhealthy_interval_ns;
}

static void check_later(struct host *host, uint64_t base_ns)
{
	struct lb_health *h = host->health;
	uint64_t part;
	if (__builtin_mul_overflow(base_ns / 100, h->check->jitter_percent, &part))
		part = UINT64_MAX;
	uint64_t at = saturating_add(base_ns, up_to(h, part));
	at = saturating_add(at, up_to(h, h->check->jitter_ns));
	arm(host, at < LEAST_NS ? LEAST_NS : at);
}

// Results.

static void tell(const struct host *host, bool serves, const char *why)
{
	const char *cluster = log_quote(host->health->env.cluster);
	char address[IP_PORT_TEXT_MAX], cause[LB_PROBE_WHY_MAX + 32];
	ip_port_print(lb_member_address(host->member, 0), address);
	snprintf(cause, sizeof(cause), "failed active health check: %s", why);
	if (serves)
		log_info("endpoint healthy", "cluster=%s endpoint=%s", cluster, address);
	else
		log_warn("endpoint unhealthy", "cluster=%s endpoint=%s cause=%s", cluster, address,
			log_quote(cause));
}

// AHC-04, AHC-05. True = the verdict waits for more of the same.
static bool conclude(struct host *host, enum lb_probe_result result)
{
	const struct lb_check *c = host->health->check;
	enum lb_member_health before = lb_member_health(host->member);
	bool passed = result == LB_PROBE_PASSED;
	bool is_first = host->is_first;
	host->is_first = false;
	host->n_passed = passed ? host->n_passed + 1 : 0;
	host->n_failed = passed ? 0 : host->n_failed + 1;
	if (before == (passed ? LB_MEMBER_SERVES : LB_MEMBER_UNHEALTHY))
		return false;
	bool says_so = result == LB_PROBE_UNHEALTHY;
	bool decides = passed ? is_first || host->n_passed >= c->healthy_threshold
	                      : says_so || before == LB_MEMBER_UNCHECKED ||
	                                host->n_failed >= c->unhealthy_threshold;
	if (!decides)
		return true;
	if (before != LB_MEMBER_UNCHECKED || !passed)
		tell(host, passed, host->why);
	lb_member_set_health(host->member, passed ? LB_MEMBER_SERVES : LB_MEMBER_UNHEALTHY);
	return false;
}

static void count(struct lb_health *h, enum lb_probe_result result)
{
	struct lb_health_counts *n = h->env.counts;
	if (!n)
		return;
	n->passed += result == LB_PROBE_PASSED;
	n->failed += result != LB_PROBE_PASSED;
	n->network_failures += result == LB_PROBE_NETWORK || result == LB_PROBE_TIMEOUT;
}

// What members hear of may change the leaf, but not free this.
static void on_result(struct lb_probe_user *user, enum lb_probe_result result, const char *why)
{
	struct host *host = CONTAINER_OF(user, struct host, user);
	struct lb_health *h = host->health;
	if (result == LB_PROBE_UNJUDGED) { // AHC-08
		arm(host, AGAIN_NS);
		return;
	}
	snprintf(host->why, sizeof(host->why), "%s", why);
	host->told_ns = twheel_now(h->env.wheel);
	count(h, result);
	bool changes = conclude(host, result);
	check_later(host, interval_ns(host, result == LB_PROBE_PASSED, changes));
}

// A probe of its first address, secured as connections to it are now. False = no memory.
static bool have_probe(struct host *host)
{
	const struct lb_health_env *env = &host->health->env;
	struct lb_security *security;
	const struct ip_port *address = lb_member_address(host->member, 0);
	if (env->security(env->security_ctx, address, &security))
		return false;
	const struct lb_probe *p = host->probe;
	if (!p || !ip_port_eq(&p->addr, address) || !lb_security_eq(p->security, security)) {
		lb_probes_end(env->probes, host->probe);
		host->probe = lb_probes_begin(env->probes, address, security, &host->user);
	}
	lb_security_put(security);
	return host->probe;
}

static void on_timer(struct twheel_timer *t)
{
	struct host *host = CONTAINER_OF(t, struct host, timer);
	struct lb_health *h = host->health;
	if (!have_probe(host)) {
		arm(host, AGAIN_NS);
		return;
	}
	if (h->env.counts)
		h->env.counts->attempts++;
	lb_probes_ask(h->env.probes, host->probe, h->check);
}

// Members.

static struct host *host_new(struct lb_health *h, struct lb_member *m)
{
	struct host *host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	*host = (struct host){.user = {on_result},
		.health = h,
		.member = lb_member_get(m),
		.timer = {.fire = on_timer},
		.is_first = true};
	return host;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = lb_member_id(*(struct lb_member *const *)a);
	uint32_t y = lb_member_id(*(struct lb_member *const *)b);
	return (x > y) - (x < y);
}

// The place of the member, or that where it would be.
static uint32_t place_of(const struct lb_health *h, const struct lb_member *m)
{
	uint32_t low = 0, high = h->n, id = lb_member_id(m);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (lb_member_id(h->hosts[middle]->member) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct host *find(const struct lb_health *h, const struct lb_member *m)
{
	uint32_t at = place_of(h, m);
	return at < h->n && h->hosts[at]->member == m ? h->hosts[at] : NULL;
}

// Hosts of those that stay, and new ones. False = out of memory, with nothing to undo but `list`.
static bool list_hosts(
	struct lb_health *h, struct lb_member *const *members, uint32_t n, struct host **list)
{
	for (uint32_t i = 0; i < n; i++) {
		list[i] = find(h, members[i]);
		if (!list[i])
			list[i] = host_new(h, members[i]);
		if (list[i])
			continue;
		while (i--)
			if (!find(h, members[i]))
				host_free(list[i]);
		return false;
	}
	return true;
}

// The nth of a list's new ones: a turn of the loop is no place for a hundred thousand (AHC-07).
static void begin(struct host *host, bool serves_already, uint32_t nth)
{
	uint64_t jitter_ns = up_to(host->health, host->health->check->initial_jitter_ns);
	lb_member_set_health(host->member, serves_already ? LB_MEMBER_SERVES : LB_MEMBER_UNCHECKED);
	arm(host, saturating_add(jitter_ns, nth / N_FIRST_AT_ONCE * NS_PER_MS));
}

// Both in the same order.
static void drop_others(struct lb_health *h, struct host *const *list, uint32_t n)
{
	for (uint32_t i = 0, at = 0; i < h->n; i++) {
		while (at < n && lb_member_id(list[at]->member) < lb_member_id(h->hosts[i]->member))
			at++;
		if (at == n || list[at] != h->hosts[i])
			host_free(h->hosts[i]);
	}
	free(h->hosts);
}

int lb_health_update(
	struct lb_health *h, struct lb_member *const *members, uint32_t n, bool serves_already)
{
	DCHECK(h->check);
	struct lb_member **sorted = calloc((size_t)n + 1, sizeof(struct lb_member *));
	struct host **list = calloc((size_t)n + 1, sizeof(struct host *));
	for (uint32_t i = 0; sorted && i < n; i++)
		sorted[i] = members[i];
	if (sorted)
		qsort(sorted, n, sizeof(struct lb_member *), by_id);
	bool ok = sorted && list && list_hosts(h, sorted, n, list);
	free(sorted);
	if (!ok) {
		free(list);
		return -ENOMEM;
	}
	drop_others(h, list, n);
	h->hosts = list;
	h->n = n;
	for (uint32_t i = 0, nth = 0; i < n; i++)
		if (list[i]->is_first && !list[i]->probe && !twheel_armed(&list[i]->timer))
			begin(list[i], serves_already, nth++);
	return 0;
}

// One that waits longer than the new check wants waits no longer than that.
void lb_health_configure(struct lb_health *h, struct lb_check *check)
{
	if (check == h->check)
		return;
	lb_check_put(h->check);
	h->check = lb_check_get(check);
	uint64_t latest_ns = saturating_add(twheel_now(h->env.wheel), check->interval_ns);
	for (uint32_t i = 0; i < h->n; i++) {
		struct host *host = h->hosts[i];
		if (twheel_armed(&host->timer) && twheel_expires_ns(&host->timer) > latest_ns)
			arm(host, up_to(h, check->interval_ns));
	}
}

bool lb_health_inherit(struct lb_health *h, struct lb_member *m, bool serves)
{
	struct host *host = find(h, m);
	if (!host || !host->is_first || lb_member_health(m) != LB_MEMBER_UNCHECKED)
		return false;
	host->is_first = false;
	if (!serves)
		snprintf(host->why, sizeof(host->why), "as the process before this one found");
	lb_member_set_health(m, serves ? LB_MEMBER_SERVES : LB_MEMBER_UNHEALTHY);
	return true;
}

// Display.

bool lb_health_find(
	const struct lb_health *h, const struct lb_member *m, struct lb_health_record *ret)
{
	const struct host *host = find(h, m);
	if (!host)
		return false;
	*ret = (struct lb_health_record){.health = lb_member_health(m), .is_checked = true};
	if (host->told_ns)
		ret->since_ns = twheel_now(h->env.wheel) - host->told_ns;
	snprintf(ret->why, sizeof(ret->why), "%s", host->why);
	return true;
}

void lb_health_dump(const struct lb_health *h, struct lb_dump *d)
{
	uint32_t n_unhealthy = 0, n_unchecked = 0;
	for (uint32_t i = 0; i < h->n; i++) {
		enum lb_member_health health = lb_member_health(h->hosts[i]->member);
		n_unhealthy += health == LB_MEMBER_UNHEALTHY;
		n_unchecked += health == LB_MEMBER_UNCHECKED;
	}
	lb_dump_number(d, "unhealthy", n_unhealthy);
	lb_dump_number(d, "unchecked", n_unchecked);
}
