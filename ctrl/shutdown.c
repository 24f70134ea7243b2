// SPDX-License-Identifier: Apache-2.0
#include "ctrl/shutdown.h"

#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/farewell.h"

#include <inttypes.h>

// After the drain's deadline workers get this long to cut what is left and report.
#define DRAIN_SLACK_NS (LB_DRAIN_LAST_NS + NS_PER_SECOND)
#define HALF_OPEN_NS (2 * NS_PER_SECOND) // a handshake takes, with a loss or two

static void arm(struct shutdown *s, struct twheel_timer *t, void (*fire)(struct twheel_timer *),
	uint64_t deadline_ns)
{
	t->fire = fire;
	twheel_arm(loop_wheel(s->loop), t, deadline_ns);
}

void shutdown_look(struct shutdown *s)
{
	if (s->over && (!s->may_end || s->may_end(s->ctx)))
		loop_stop(s->loop);
}

static void tell(struct shutdown *s)
{
	s->told = true;
	s->on_begin(s->ctx);
}

static void say_lame_duck(uint64_t for_ns)
{
	log_info("lame duck", "for_s=%" PRIu64, (for_ns + NS_PER_SECOND - 1) / NS_PER_SECOND);
}

static void on_unreachable(struct twheel_timer *timer)
{
	struct shutdown *s = CONTAINER_OF(timer, struct shutdown, lame_timer);
	s->over = true;
	shutdown_look(s);
}

// Nobody is left. After a farewell others believe still that somebody could come.
static void end(struct shutdown *s)
{
	uint64_t for_ns = s->config->lame_duck_s * NS_PER_SECOND;
	if (twheel_armed(&s->lame_timer))
		return; // it is waited for already
	if (s->told || !for_ns) {
		on_unreachable(&s->lame_timer);
		return;
	}
	tell(s);
	say_lame_duck(for_ns);
	arm(s, &s->lame_timer, on_unreachable, twheel_now(loop_wheel(s->loop)) + for_ns);
}

static void on_drain_overdue(struct twheel_timer *timer)
{
	struct shutdown *s = CONTAINER_OF(timer, struct shutdown, drain_timer);
	log_warn("stopping", "reason=\"drain overdue\"");
	end(s);
}

static void drain(struct shutdown *s, uint64_t deadline)
{
	s->draining = true;
	uint64_t now = twheel_now(loop_wheel(s->loop));
	uint64_t left = deadline > now ? deadline - now : 0;
	log_info("draining", "deadline_s=%" PRIu64, (left + NS_PER_SECOND - 1) / NS_PER_SECOND);
	struct lb_command command = {.kind = LB_COMMAND_DRAIN, .deadline_ns = deadline};
	workers_send_all(s->workers, &command);
	arm(s, &s->drain_timer, on_drain_overdue, now + left + DRAIN_SLACK_NS);
}

static void on_lame_over(struct twheel_timer *timer)
{
	struct shutdown *s = CONTAINER_OF(timer, struct shutdown, lame_timer);
	uint32_t drain_s = s->config->drain_s;
	uint64_t for_s = s->says_farewell ? lb_farewell_drain_s(drain_s) : drain_s;
	drain(s, twheel_now(loop_wheel(s->loop)) + for_s * NS_PER_SECOND);
}

static void say_farewell(struct shutdown *s)
{
	s->says_farewell = true;
	log_info("farewell", "for_s=%u", s->config->farewell_s);
	struct lb_command command = {.kind = LB_COMMAND_FAREWELL,
		.deadline_ns =
			twheel_now(loop_wheel(s->loop)) + s->config->farewell_s * NS_PER_SECOND};
	workers_send_all(s->workers, &command);
	arm(s, &s->lame_timer, on_lame_over, command.deadline_ns);
}

// Readiness goes first: who sends clients here is to look elsewhere before they are sent away. But
// where that moves their connections, too, it goes last.
void shutdown_signal(struct shutdown *s)
{
	if (s->left) {
		s->left = false;
		log_info("signal ignored", "reason=\"another process serves, this one drains\"");
		return;
	}
	if (s->begun) {
		log_warn("stopping", "reason=\"second signal\"");
		loop_stop(s->loop);
		return;
	}
	s->begun = true;
	uint64_t now = twheel_now(loop_wheel(s->loop)), lame_until, gone_by;
	bool all_drain = drains_stop(s->drains, &lame_until, &gone_by);
	if (s->config->farewell_s && !all_drain) {
		say_farewell(s);
		return;
	}
	tell(s);
	if (!all_drain) {
		lame_until = now + s->config->lame_duck_s * NS_PER_SECOND;
		gone_by = 0;
	}
	if (lame_until <= now) {
		drain(s, gone_by ? gone_by : now + s->config->drain_s * NS_PER_SECOND);
		return;
	}
	say_lame_duck(lame_until - now);
	arm(s, &s->lame_timer, on_lame_over, lame_until);
}

void shutdown_leave(struct shutdown *s)
{
	uint64_t lame_until, gone_by;
	if (s->begun) {
		if (!s->told)
			tell(s);
		return;
	}
	s->begun = s->left = true;
	(void)drains_stop(s->drains, &lame_until, &gone_by); // all are to go now
	tell(s);
	arm(s, &s->lame_timer, on_lame_over, twheel_now(loop_wheel(s->loop)) + HALF_OPEN_NS);
}

void shutdown_worker_drained(struct shutdown *s, uint32_t worker, uint32_t n_cut)
{
	log_info("worker drained", "worker=%u requests_cut=%u", worker, n_cut);
	s->n_cut += n_cut;
	if (++s->n_drained != workers_count(s->workers))
		return;
	twheel_cancel(loop_wheel(s->loop), &s->drain_timer);
	end(s);
}

bool shutdown_is_drained(const struct shutdown *s)
{
	return s->n_drained == workers_count(s->workers);
}
