// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eal.h"

#include "lb/base/check.h"
#include "lb/limits.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ARGS 64

// EAL itself is one per process, and so is what belongs to it.
static struct {
	FILE *log; // owned; DPDK writes into it, under the FILE's own lock
	void (*sink)(void *ctx, int level, const char *line);
	void *sink_ctx;
	char blame[256]; // under the same lock
	char *args[MAX_ARGS + 1]; // owned; EAL keeps pointers into them
	int n_args;
} eal;

static void log_line(const char *line, size_t len)
{
	char text[512];
	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, line, len);
	text[len] = '\0';
	int level = rte_log_cur_msg_loglevel();
	if (level <= EAL_LOG_ERR && !eal.blame[0])
		snprintf(eal.blame, sizeof(eal.blame), "%s", text);
	if (eal.sink)
		eal.sink(eal.sink_ctx, level, text);
	else
		fprintf(stderr, "%s\n", text);
}

// DPDK flushes after each message, so that lines come whole.
static ssize_t log_write(void *cookie, const char *data, size_t len)
{
	const char *at = data;
	const char *end = data + len;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		if (stop > at)
			log_line(at, (size_t)(stop - at));
		at = newline ? newline + 1 : end;
	}
	return (ssize_t)len;
}

void eal_blame_start(void)
{
	if (!eal.log)
		return;
	flockfile(eal.log);
	eal.blame[0] = '\0';
	funlockfile(eal.log);
}

const char *eal_blame(void)
{
	return eal.blame;
}

static bool is_option(const char *arg, const char *name)
{
	size_t len = strlen(name);
	if (strncmp(arg, name, len) != 0)
		return false;
	bool is_long = name[1] == '-';
	return !is_long || arg[len] == '\0' || arg[len] == '=';
}

static bool is_ours(const char *arg)
{
	static const char *const names[] = {
		"-c", "-l", "-S", "--lcores", "--main-lcore", "--vdev", "--proc-type"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (is_option(arg, names[i]))
			return true;
	return false;
}

static int add_arg(const char *arg)
{
	if (eal.n_args == MAX_ARGS)
		return -E2BIG;
	char *copy = strdup(arg);
	if (!copy)
		return -ENOMEM;
	eal.args[eal.n_args++] = copy;
	return 0;
}

static void free_args(void)
{
	for (int i = 0; i < eal.n_args; i++)
		free(eal.args[i]);
	eal.n_args = 0;
}

// "0@(0,2),1@1": main on the cores that are left, worker i as lcore i + 1 on its own.
static int add_lcores(const struct eal_conf *conf, struct lb_err *reterr)
{
	cpu_set_t usable;
	if (sched_getaffinity(0, sizeof(usable), &usable) < 0)
		return -errno;
	cpu_set_t rest = usable;
	char text[8192];
	for (uint32_t i = 0; i < conf->n_cores; i++) {
		int core = conf->cores[i];
		if (core < 0 || core >= CPU_SETSIZE || !CPU_ISSET(core, &usable))
			return lb_err_set(reterr,
				"workers[%u]: %d is no CPU that this process may use", i, core);
		if (!CPU_ISSET(core, &rest))
			return lb_err_set(reterr, "workers[%u]: %d has a worker already", i, core);
		CPU_CLR(core, &rest);
	}
	if (CPU_COUNT(&rest) == 0)
		rest = usable;
	size_t at = 0;
	for (int core = 0; core < CPU_SETSIZE; core++)
		if (CPU_ISSET(core, &rest))
			at += (size_t)snprintf(
				text + at, sizeof(text) - at, "%s%d", at ? "," : "0@(", core);
	at += (size_t)snprintf(text + at, sizeof(text) - at, ")");
	for (uint32_t i = 0; i < conf->n_cores; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, ",%u@%d",
			eal_lcore_of_worker(i), conf->cores[i]);
	int rc = add_arg("--lcores");
	return rc ? rc : add_arg(text);
}

static bool has_option(const char *const *args, uint32_t n, const char *name)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_option(args[i], name))
			return true;
	return false;
}

// What a balancer wants and shunt.yaml may leave out.
static int add_implied(const char *const *args, uint32_t n)
{
	int rc = 0;
	if (!has_option(args, n, "--file-prefix"))
		rc = add_arg("--file-prefix=shunt");
	if (rc == 0 && !has_option(args, n, "--telemetry") &&
		!has_option(args, n, "--no-telemetry"))
		rc = add_arg("--no-telemetry"); // its socket would outlive a crash
	// A NIC that nobody named must not be taken from the kernel: EAL would probe all it finds.
	if (rc == 0 && !has_option(args, n, "-a") && !has_option(args, n, "--allow") &&
		!has_option(args, n, "--no-pci"))
		rc = add_arg("--no-pci");
	return rc;
}

static int build_args(const struct eal_conf *conf, struct lb_err *reterr)
{
	char memory[16];
	snprintf(memory, sizeof(memory), "%u", conf->memory_mib);
	const char *const default_args[] = {
		"--no-huge", "--in-memory", "-m", memory, "--iova-mode=va"};
	const char *const *given = conf->n_args ? conf->args : default_args;
	uint32_t n = conf->n_args ? conf->n_args : sizeof(default_args) / sizeof(default_args[0]);
	// DPDK 22.11 refuses --in-memory beside --no-huge, which has no shared files but the
	// configuration anyway: say that instead.
	bool no_huge = has_option(given, n, "--no-huge");
	int rc = add_arg("shuntd");
	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		if (is_ours(given[i]))
			return lb_err_set(
				reterr, "eal[%u]: %s is decided by workers and ports", i, given[i]);
		bool memory_only = no_huge && is_option(given[i], "--in-memory");
		rc = add_arg(memory_only ? "--no-shconf" : given[i]);
	}
	if (rc == 0)
		rc = add_implied(given, n);
	if (rc == 0)
		rc = add_lcores(conf, reterr);
	if (rc == -E2BIG)
		lb_err_set(reterr, "eal: more than %d", MAX_ARGS - 4);
	else if (rc == -ENOMEM)
		lb_err_set(reterr, "eal: out of memory");
	return rc;
}

static void close_log(void)
{
	if (!eal.log)
		return;
	rte_openlog_stream(NULL);
	fclose(eal.log);
	eal.log = NULL;
}

// For one argument that it does not know, EAL prints a page of usage: an operator wants the line
// that names it, which comes through the log. Returns what unmute_stdout() takes.
static int mute_stdout(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (null < 0)
		return -1;
	fflush(stdout);
	int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (saved >= 0)
		dup2(null, STDOUT_FILENO);
	close(null);
	return saved;
}

static void unmute_stdout(int saved)
{
	if (saved < 0)
		return;
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

int eal_start(const struct eal_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_cores >= 1 && conf->n_cores <= LB_MAX_WORKERS);
	int rc = build_args(conf, reterr);
	if (rc)
		goto err;
	eal.sink = conf->log;
	eal.sink_ctx = conf->log_ctx;
	eal.log = fopencookie(NULL, "w", (cookie_io_functions_t){.write = log_write});
	if (!eal.log || rte_openlog_stream(eal.log) != 0) {
		lb_err_set(reterr, "eal: no log stream");
		rc = -ENOMEM;
		goto err;
	}
	eal_blame_start();
	// EAL permutes the array it is given; ours keeps the order for free_args().
	char *argv[MAX_ARGS + 1];
	memcpy(argv, eal.args, sizeof(argv));
	argv[eal.n_args] = NULL;
	int muted = mute_stdout();
	int n_taken = rte_eal_init(eal.n_args, argv);
	unmute_stdout(muted);
	if (n_taken < 0) {
		rc = rte_errno ? -rte_errno : -EINVAL;
		lb_err_set(reterr, "eal: DPDK does not start: %s",
			eal.blame[0] ? eal.blame : rte_strerror(-rc));
		goto err;
	}
	return 0;
err:
	close_log();
	free_args();
	return rc;
}

void eal_stop(void)
{
	rte_eal_cleanup();
	close_log();
	free_args();
}

unsigned eal_lcore_of_worker(uint32_t worker)
{
	return worker + 1;
}
