// SPDX-License-Identifier: Apache-2.0
#include "lb/leaf/ejection.h"

#include "lb/base/container_of.h"
#include "lb/base/gcra.h"
#include "lb/base/log.h"
#include "lb/base/twheel.h"
#include "lb/member/member.h"
#include "lb/policy/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#define SUMS_NS (10 * NS_PER_SECOND) // between two lines of what had none of its own

static const struct gcra_limit lines = {10 * NS_PER_SECOND, 160 * NS_PER_SECOND};

struct lb_ejection {
	struct lb_ejection_env env;
	struct lb_outlier_conf conf;
	uint64_t began_ns; // of the current interval; 0 = has no conf yet
	struct lb_member **members; // counted; [n], by id
	struct lb_outlier_host *hosts; // [n], of the member with the same index
	uint32_t n;
	struct twheel_timer sweep;
	struct gcra lines;
	uint64_t sums_ns; // when the next line of what follows may be
	uint32_t n_untold, n_untold_back; // ejections without a line, and ends of some
};

static void harvest(struct lb_ejection *e, uint32_t i)
{
	struct lb_outlier_host *h = &e->hosts[i];
	e->env.harvest(e->env.ctx, lb_member_id(e->members[i]), &h->n_ok, &h->n_failed);
}

// OPS-275: a sweep may eject thousands. True = there is a line for one more.
static bool takes_line(struct lb_ejection *e, uint32_t *n_untold)
{
	uint64_t now = twheel_now(e->env.wheel);
	if (gcra_is_spent(&e->lines, &lines, now)) {
		++*n_untold;
		return false;
	}
	return gcra_charge(&e->lines, &lines, now);
}

static void tell_ejected(struct lb_ejection *e, uint32_t i)
{
	static const char *const methods[] = {
		[LB_OUTLIER_SUCCESS_RATE] = "success_rate",
		[LB_OUTLIER_FAILURE_PERCENTAGE] = "failure_percentage",
	};
	if (!takes_line(e, &e->n_untold))
		return;
	const struct lb_outlier_host *h = &e->hosts[i];
	uint64_t for_ns = lb_outlier_ejected_until(&e->conf, h) - h->ejected_at_ns;
	char text[IP_PORT_TEXT_MAX];
	ip_port_print(lb_member_address(e->members[i], 0), text);
	log_warn("endpoint ejected", "cluster=%s endpoint=%s by=%s for_s=%g",
		log_quote(e->env.cluster), text, methods[h->method],
		(double)for_ns / (double)NS_PER_SECOND);
}

static void tell_back(struct lb_ejection *e, const struct lb_member *m)
{
	if (!takes_line(e, &e->n_untold_back))
		return;
	char text[IP_PORT_TEXT_MAX];
	ip_port_print(lb_member_address(m, 0), text);
	log_info("endpoint back from ejection", "cluster=%s endpoint=%s", log_quote(e->env.cluster),
		text);
}

static void tell_untold(struct lb_ejection *e, bool is_last)
{
	uint64_t now = twheel_now(e->env.wheel);
	if ((!e->n_untold && !e->n_untold_back) || (now < e->sums_ns && !is_last))
		return;
	log_warn("more ejections", "cluster=%s ejected=%" PRIu32 " back=%" PRIu32,
		log_quote(e->env.cluster), e->n_untold, e->n_untold_back);
	e->n_untold = e->n_untold_back = 0;
	e->sums_ns = now + SUMS_NS;
}

// Members hear of it last, when all verdicts stand.
static void carry_out(struct lb_ejection *e)
{
	for (uint32_t i = 0; i < e->n; i++) {
		bool is_ejected = e->hosts[i].ejected;
		if (lb_member_is_ejected(e->members[i]) == is_ejected)
			continue;
		if (is_ejected)
			tell_ejected(e, i);
		else
			tell_back(e, e->members[i]);
		lb_member_set_ejected(e->members[i], is_ejected);
	}
	tell_untold(e, false);
}

static void begin_interval(struct lb_ejection *e, uint64_t at_ns)
{
	uint64_t end;
	e->began_ns = at_ns;
	if (__builtin_add_overflow(at_ns, e->conf.interval_ns, &end))
		end = UINT64_MAX;
	twheel_arm(e->env.wheel, &e->sweep, end);
}

static void sweep_fired(struct twheel_timer *t)
{
	struct lb_ejection *e = CONTAINER_OF(t, struct lb_ejection, sweep);
	uint64_t now = twheel_now(e->env.wheel);
	for (uint32_t i = 0; i < e->n; i++)
		harvest(e, i);
	lb_outlier_sweep(&e->conf, e->hosts, e->n, now, e->env.rand, e->env.counts);
	begin_interval(e, now);
	carry_out(e);
}

struct lb_ejection *lb_ejection_new(const struct lb_ejection_env *env)
{
	struct lb_ejection *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct lb_ejection){.env = *env, .sweep = {.fire = sweep_fired}};
	return e;
}

static void put_members(struct lb_member **members, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		lb_member_put(members[i]);
	free(members);
}

void lb_ejection_free(struct lb_ejection *e)
{
	if (!e)
		return;
	twheel_cancel(e->env.wheel, &e->sweep);
	put_members(e->members, e->n);
	free(e->hosts);
	free(e);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = lb_member_id(*(struct lb_member *const *)a);
	uint32_t y = lb_member_id(*(struct lb_member *const *)b);
	return (x > y) - (x < y);
}

// A member that stays keeps its record, another begins with none: what was counted for its number
// before is not its own (A50-E18).
static void take_members(struct lb_ejection *e, struct lb_member **members,
	struct lb_outlier_host *hosts, uint32_t n)
{
	struct lb_member **old = e->members;
	struct lb_outlier_host *old_hosts = e->hosts;
	uint32_t n_old = e->n, at = 0;
	e->members = members;
	e->hosts = hosts;
	e->n = n;
	for (uint32_t i = 0; i < n; i++) {
		while (at < n_old && lb_member_id(old[at]) < lb_member_id(members[i]))
			at++;
		if (at < n_old && old[at] == members[i])
			hosts[i] = old_hosts[at];
		else
			harvest(e, i);
	}
	put_members(old, n_old);
	free(old_hosts);
}

void lb_ejection_end(struct lb_ejection *e)
{
	struct lb_member **members = e->members;
	uint32_t n = e->n;
	twheel_cancel(e->env.wheel, &e->sweep);
	free(e->hosts);
	e->members = NULL;
	e->hosts = NULL;
	e->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (lb_member_is_ejected(members[i]))
			tell_back(e, members[i]);
		lb_member_set_ejected(members[i], false);
	}
	tell_untold(e, true);
	put_members(members, n);
}

void lb_ejection_configure(struct lb_ejection *e, const struct lb_outlier_conf *conf)
{
	uint64_t interval_ns = e->conf.interval_ns;
	e->conf = *conf;
	e->env.counts[LB_OUTLIER_SUCCESS_RATE].was_enabled |= conf->success_rate.enabled;
	e->env.counts[LB_OUTLIER_FAILURE_PERCENTAGE].was_enabled |=
		conf->failure_percentage.enabled;
	if (!e->began_ns)
		begin_interval(e, twheel_now(e->env.wheel));
	else if (e->conf.interval_ns != interval_ns)
		begin_interval(e, e->began_ns); // A50-E17
}

int lb_ejection_update(struct lb_ejection *e, struct lb_member *const *members, uint32_t n)
{
	struct lb_member **list = calloc((size_t)n + 1, sizeof(struct lb_member *));
	struct lb_outlier_host *hosts = calloc((size_t)n + 1, sizeof(*hosts));
	if (!list || !hosts) {
		free(list);
		free(hosts);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		list[i] = lb_member_get(members[i]);
	qsort(list, n, sizeof(struct lb_member *), by_id);
	take_members(e, list, hosts, n);
	carry_out(e);
	return 0;
}

uint32_t lb_ejection_n_ejected(const struct lb_ejection *e)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->n; i++)
		n += e->hosts[i].ejected;
	return n;
}

// NULL = it is not listed.
static struct lb_outlier_host *host_of(const struct lb_ejection *e, const struct lb_member *m)
{
	uint32_t low = 0, high = e->n, id = lb_member_id(m);
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (lb_member_id(e->members[middle]) < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < e->n && e->members[low] == m ? &e->hosts[low] : NULL;
}

bool lb_ejection_find(
	const struct lb_ejection *e, const struct lb_member *m, struct lb_ejection_record *ret)
{
	const struct lb_outlier_host *h = host_of(e, m);
	if (!h)
		return false;
	uint64_t until = h->ejected ? lb_outlier_ejected_until(&e->conf, h) : 0;
	uint64_t now = twheel_now(e->env.wheel);
	*ret = (struct lb_ejection_record){h->multiplier, until > now ? until - now : 0};
	return true;
}

void lb_ejection_bequeath(
	const struct lb_ejection *e, const struct lb_member *m, struct lb_ejection_bequest *ret)
{
	const struct lb_outlier_host *h = host_of(e, m);
	*ret = (struct lb_ejection_bequest){0};
	if (h)
		*ret = (struct lb_ejection_bequest){h->multiplier, h->ejected,
			h->ejected ? twheel_now(e->env.wheel) - h->ejected_at_ns : 0};
}

bool lb_ejection_inherit(
	struct lb_ejection *e, struct lb_member *m, const struct lb_ejection_bequest *from)
{
	struct lb_outlier_host *h = host_of(e, m);
	uint64_t now = twheel_now(e->env.wheel);
	if (!h)
		return false;
	h->multiplier = from->multiplier;
	h->ejected = from->is_ejected;
	h->ejected_at_ns = from->ago_ns < now ? now - from->ago_ns : 0;
	lb_member_set_ejected(m, h->ejected);
	return true;
}

void lb_ejection_dump(const struct lb_ejection *e, struct lb_dump *d)
{
	lb_dump_timer(d, "sweep_ms", e->env.wheel, &e->sweep);
}
