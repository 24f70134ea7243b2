// SPDX-License-Identifier: Apache-2.0
// shunt-load: loads an HTTP/2, gRPC or HTTP/1.1 server from a DPDK device and checks every answer,
// or is the backend that answers, or both. The order of birth, and signals.
#include "ctrl/base/std_out.h"
#include "dataplane/eal.h"
#include "tools/shunt-load/loop.h"
#include "tools/shunt-load/options.h"
#include "tools/shunt-load/plan.h"
#include "tools/shunt-load/report.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_CANNOT_BEGIN 2

static volatile int stop; // signals so far

static void on_signal(int number)
{
	stop++;
}

// DPDK's warnings, such as a device's, go where ours go; what is less is nobody's business.
static void log_line(void *ctx, int level, const char *line)
{
	if (level <= EAL_LOG_ERR)
		fprintf(stderr, "shunt-load: DPDK: %s\n", line);
}

static int choose_core(const struct options *o, int *ret, struct lb_err *reterr)
{
	cpu_set_t usable;
	if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
		return lb_err_set(reterr, "sched_getaffinity: %s", strerror(errno));
	if (o->core >= 0 && (o->core >= CPU_SETSIZE || !CPU_ISSET((int)o->core, &usable)))
		return lb_err_set(
			reterr, "--core %d: not a CPU that this process may use", (int)o->core);
	int last = 0;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &usable))
			last = i;
	*ret = o->core >= 0 ? (int)o->core : last;
	return 0;
}

// EAL leaves the calling thread on the other cores: it is the one that polls.
static int start_eal(const struct options *o, struct lb_err *reterr)
{
	int core, r = choose_core(o, &core, reterr);
	if (r != 0)
		return r;
	const char *devices[2];
	uint32_t n_devices = 0;
	if (o->client.device)
		devices[n_devices++] = o->client.device;
	if (o->echo.device)
		devices[n_devices++] = o->echo.device;
	struct eal_conf conf = {.args = {.given = o->eal,
					.n_given = o->n_eal,
					.devices = devices,
					.n_devices = n_devices,
					.cores = &core,
					.n_cores = 1},
		.log = log_line};
	r = eal_start(&conf, reterr);
	if (r != 0)
		return r;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0) {
		r = lb_err_set(reterr, "sched_setaffinity: %s", strerror(errno));
		eal_stop();
	}
	return r;
}

static int make_plan(const struct options *o, struct plan *plan, struct lb_err *reterr)
{
	char authority[IP_PORT_TEXT_MAX];
	ip_port_print(&o->to, authority);
	int r = plan_init(plan, o->is_grpc, o->authority ? o->authority : authority);
	for (uint32_t i = 0; r == 0 && i < o->n_paths; i++)
		r = plan_add_path(plan, o->paths[i], reterr);
	if (r == 0 && o->headers)
		r = plan_read_fields(plan, o->headers, reterr);
	if (r == 0)
		r = plan_seal(plan, o->check, o->body_size, o->answer_size);
	if (r == -ENOMEM)
		lb_err_set(reterr, "out of memory");
	return r;
}

static int run(const struct options *o, const struct plan *plan, struct lb_err *reterr)
{
	if (start_eal(o, reterr) != 0)
		return EXIT_CANNOT_BEGIN;
	struct loop *loop = loop_new(o, plan, reterr);
	int status = EXIT_CANNOT_BEGIN;
	if (loop) {
		loop_run(loop, &stop);
		struct report report = loop_report(loop);
		if (o->json)
			report_print_json(&report, stdout);
		else
			report_print(&report, stdout);
		status = report_is_good(&report) ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	loop_free(loop);
	eal_stop();
	return status;
}

int main(int argc, char **argv)
{
	static struct options options;
	struct lb_err err = {""};
	std_out_watch("shunt-load", EXIT_CANNOT_BEGIN);
	int r = options_read(argc, argv, &options, &err);
	if (r > 0) {
		options_help(stdout);
		return EXIT_SUCCESS;
	}
	struct plan plan = {0};
	if (r == 0)
		r = make_plan(&options, &plan, &err);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	int status = r == 0 ? run(&options, &plan, &err) : EXIT_CANNOT_BEGIN;
	if (status == EXIT_CANNOT_BEGIN)
		fprintf(stderr, "shunt-load: %s\n", err.text);
	plan_fini(&plan);
	return status;
}
