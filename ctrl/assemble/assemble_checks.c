// SPDX-License-Identifier: Apache-2.0
// Health checks on their way to workers.
#include "ctrl/assemble/assemble_inside.h"
#include "ctrl/assemble/workers.h"
#include "lb/member/probes.h"
#include "lb/pick/link.h"

#define MAX_CHECKS 512 // under way at a time; others wait for their turn

static bool may_check(void *ctx, const struct lb_probe *probe)
{
	return !assembler_awaits_context(ctx, lb_probe_credential(probe));
}

static bool on_probe(void *ctx, struct lb_probe *probe, bool is_end)
{
	struct assembler *a = ctx;
	uint32_t n = workers_count(a->conf.workers);
	struct lb_command c = {
		.kind = is_end ? LB_COMMAND_PROBE_END : LB_COMMAND_PROBE, .probe = probe};
	return workers_send(a->conf.workers, lb_probe_worker(probe, n), &c);
}

struct lb_probes *assembler_make_probes(struct assembler *a)
{
	const struct lb_probes_env env = {.wheel = a->conf.wheel,
		.max_under_way = MAX_CHECKS,
		.may_begin = may_check,
		.send = on_probe,
		.ctx = a};
	return lb_probes_new(&env);
}
