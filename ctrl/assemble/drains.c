// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/drains.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"

#include <stdlib.h>

// How often clients that are left are counted.
#define LOOK_NS (NS_PER_SECOND / 5)

struct drain {
	enum drain_phase phase;
	uint64_t until_ns; // end of the phase; while leaving, the deadline
};

struct drains {
	struct drains_conf conf;
	struct twheel_timer timer; // armed while some frontend is about to change its phase
	bool stopped;
	uint32_t n; // frontends
	struct drain list[];
};

const char *drain_phase_name(enum drain_phase phase)
{
	static const char *const names[] = {
		[DRAIN_NONE] = "",
		[DRAIN_LAME_DUCK] = "lame_duck",
		[DRAIN_LEAVING] = "draining",
		[DRAIN_DONE] = "drained",
	};
	return names[phase];
}

// Clients that are connected, and workers that accept more.
static uint64_t uses(const struct drains *d, uint32_t frontend)
{
	uint64_t n = 0;
	for (uint32_t w = 0; w < workers_count(d->conf.workers); w++)
		n += counter_read(
			&workers_link(d->conf.workers, w)->counters.frontend_uses[frontend]);
	return n;
}

static void send(struct drains *d, enum lb_command_kind kind, uint32_t frontend, uint64_t ns)
{
	const struct lb_command command = {.kind = kind, .deadline_ns = ns, .frontend = frontend};
	workers_send_all(d->conf.workers, &command);
}

// One line for all that change at once: there may be thousands.
static void tell(const struct drains *d, const char *what, uint32_t n, uint32_t last)
{
	if (n)
		log_info(what, "frontends=%u %s=%s", n, n == 1 ? "name" : "last",
			log_quote(d->conf.config->frontends[last].name));
}

static void leave(struct drains *d, uint32_t i, uint64_t now_ns)
{
	d->list[i].phase = DRAIN_LEAVING;
	d->list[i].until_ns = now_ns + d->conf.config->drain_s * NS_PER_SECOND;
	send(d, LB_COMMAND_LEAVE, i, d->list[i].until_ns);
}

// Each phase that is over, and when to look again.
static void look(struct drains *d)
{
	uint64_t now_ns = twheel_now(d->conf.wheel), next_ns = UINT64_MAX;
	uint32_t n_leaving = 0, n_done = 0, last_leaving = 0, last_done = 0;
	for (uint32_t i = 0; i < d->n; i++) {
		struct drain *f = &d->list[i];
		if (f->phase == DRAIN_LAME_DUCK && f->until_ns <= now_ns) {
			leave(d, i, now_ns);
			n_leaving++;
			last_leaving = i;
		} else if (f->phase == DRAIN_LEAVING && uses(d, i) == 0) {
			f->phase = DRAIN_DONE;
			n_done++;
			last_done = i;
		}
		uint64_t at_ns = f->phase == DRAIN_LAME_DUCK ? f->until_ns
		                 : f->phase == DRAIN_LEAVING ? now_ns + LOOK_NS
		                                             : UINT64_MAX;
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	tell(d, "frontends send clients away", n_leaving, last_leaving);
	tell(d, "frontends drained", n_done, last_done);
	if (next_ns != UINT64_MAX)
		twheel_arm(d->conf.wheel, &d->timer, next_ns);
}

static void on_timer(struct twheel_timer *timer)
{
	look(CONTAINER_OF(timer, struct drains, timer));
}

struct drains *drains_new(const struct drains_conf *conf)
{
	uint32_t n = conf->config->n_frontends;
	struct drains *d = calloc(1, sizeof(*d) + n * sizeof(d->list[0]));
	if (!d)
		return NULL;
	d->conf = *conf;
	d->timer.fire = on_timer;
	d->n = n;
	return d;
}

void drains_free(struct drains *d)
{
	if (d)
		twheel_cancel(d->conf.wheel, &d->timer);
	free(d);
}

static bool begin(struct drains *d, uint32_t i)
{
	if (d->list[i].phase != DRAIN_NONE || !config_serves(d->conf.config, i))
		return false;
	d->list[i].phase = DRAIN_LAME_DUCK;
	d->list[i].until_ns =
		twheel_now(d->conf.wheel) + d->conf.config->lame_duck_s * NS_PER_SECOND;
	return true;
}

static bool end(struct drains *d, uint32_t i)
{
	if (d->list[i].phase == DRAIN_NONE)
		return false;
	if (d->list[i].phase != DRAIN_LAME_DUCK)
		send(d, LB_COMMAND_RETURN, i, 0);
	d->list[i].phase = DRAIN_NONE;
	return true;
}

static int change(struct drains *d, uint32_t frontend, bool (*fn)(struct drains *, uint32_t),
	const char *what, struct lb_err *reterr)
{
	uint32_t n = 0, last = 0;
	if (d->stopped)
		return lb_err_set(reterr, "the daemon is stopping");
	for (uint32_t i = 0; i < d->n; i++) {
		if ((frontend != DRAINS_ALL && frontend != i) || !fn(d, i))
			continue;
		n++;
		last = i;
	}
	tell(d, what, n, last);
	if (n)
		d->conf.changed(d->conf.ctx);
	look(d);
	return (int)n;
}

int drains_begin(struct drains *d, uint32_t frontend, struct lb_err *reterr)
{
	return change(d, frontend, begin, "frontends begin to drain", reterr);
}

int drains_end(struct drains *d, uint32_t frontend, struct lb_err *reterr)
{
	return change(d, frontend, end, "frontends serve again", reterr);
}

void drains_forget(struct drains *d, uint32_t frontend)
{
	if (!d || d->list[frontend].phase == DRAIN_NONE)
		return;
	d->list[frontend].phase = DRAIN_NONE;
	d->conf.changed(d->conf.ctx);
}

// Clients of one that a reload has taken away know that they are to leave, but have as long as all.
static bool has_left_clients(const struct drains *d, uint32_t i)
{
	return d->conf.config->frontends[i].row == CONFIG_ROW_LEAVES && uses(d, i);
}

bool drains_stop(struct drains *d, uint64_t *ret_lame_until_ns, uint64_t *ret_gone_by_ns)
{
	uint64_t lame_until_ns = 0, gone_by_ns = 0;
	uint64_t all_gone_ns = twheel_now(d->conf.wheel) + d->conf.config->drain_s * NS_PER_SECOND;
	bool all = true, some_are_lame = false;
	d->stopped = true;
	for (uint32_t i = 0; i < d->n; i++) {
		const struct drain *f = &d->list[i];
		if (has_left_clients(d, i) && all_gone_ns > gone_by_ns)
			gone_by_ns = all_gone_ns;
		if (!config_serves(d->conf.config, i))
			continue;
		uint64_t *latest = f->phase == DRAIN_LAME_DUCK ? &lame_until_ns : &gone_by_ns;
		*latest = f->until_ns > *latest ? f->until_ns : *latest;
		all &= f->phase != DRAIN_NONE;
		some_are_lame |= f->phase == DRAIN_LAME_DUCK;
	}
	*ret_lame_until_ns = lame_until_ns;
	*ret_gone_by_ns = some_are_lame ? 0 : gone_by_ns;
	return all;
}

void drains_look(const struct drains *d, uint32_t frontend, struct drain_info *ret)
{
	*ret = (struct drain_info){.phase = d ? d->list[frontend].phase : DRAIN_NONE};
	if (ret->phase == DRAIN_NONE)
		return;
	uint64_t now_ns = twheel_now(d->conf.wheel), until_ns = d->list[frontend].until_ns;
	if (ret->phase != DRAIN_DONE && until_ns > now_ns)
		ret->left_ns = until_ns - now_ns;
	uint64_t n = uses(d, frontend), n_open = workers_count(d->conf.workers);
	// A worker that has yet to read of it still counts itself.
	ret->n_clients = ret->phase != DRAIN_LAME_DUCK ? n : n > n_open ? n - n_open : 0;
}

bool drains_any(const struct drains *d)
{
	for (uint32_t i = 0; d && i < d->n; i++)
		if (d->list[i].phase != DRAIN_NONE)
			return true;
	return false;
}

bool drains_stopped(const struct drains *d)
{
	return d && d->stopped;
}
