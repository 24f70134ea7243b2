// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/eal_bench.h"

#include "dataplane/eal.h"
#include "lb/base/check.h"
#include "lb/base/err.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *program; // static

void eal_bench_die(const struct lb_err *err)
{
	fprintf(stderr, "%s: %s\n", program, err->text);
	exit(1);
}

static void quiet(void *ctx, int level, const char *line)
{
	if (level <= EAL_LOG_ERR)
		fprintf(stderr, "%s\n", line);
}

const char *eal_bench_memif(char *text, size_t size, unsigned end)
{
	snprintf(text, size, "net_memif%u,id=%u,role=%s,socket-abstract=yes,socket=shunt-bench-%d",
		end, end / 2, end % 2 ? "client" : "server", (int)getpid());
	return text;
}

// One that this process may use, so that EAL finds what it asks for.
static int first_core(void)
{
	cpu_set_t set;
	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			return i;
	return 0;
}

void eal_bench_start(const char *name)
{
	int core = first_core();
	struct eal_conf conf = {
		.args = {.memory_mib = 512, .cores = &core, .n_cores = 1}, .log = quiet};
	struct lb_err err;
	program = name;
	if (eal_start(&conf, &err) != 0)
		eal_bench_die(&err);
}
