// SPDX-License-Identifier: Apache-2.0
// DPDK calls it experimental to make an rte_intr_handle.
#define ALLOW_EXPERIMENTAL_API
#include "dataplane/eal.h"

#include "dataplane/eal_grace.h"
#include "dataplane/remedy.h"
#include "lb/base/check.h"
#include "lb/pick/limits.h"

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_log.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define VISIT_NS 100000
#define VISIT_TRIES 50000 // 5 s

// EAL itself is one per process, and so is what belongs to it.
static struct {
	FILE *log; // owned; DPDK writes into it, under the FILE's own lock
	void (*sink)(void *ctx, int level, const char *line);
	void *sink_ctx;
	char blame[256]; // under the same lock
	struct eal_args args; // EAL keeps pointers into them
	uint32_t n_visits; // w: EAL's own thread
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

void eal_blame(char *ret, size_t size)
{
	ret[0] = '\0';
	if (!eal.log)
		return;
	flockfile(eal.log);
	snprintf(ret, size, "%s", eal.blame);
	funlockfile(eal.log);
}

static int make_args(const struct eal_conf *conf, struct eal_args *ret, struct lb_err *reterr)
{
	struct eal_args_conf own = conf->args;
	if (sched_getaffinity(0, sizeof(own.usable), &own.usable) < 0)
		return lb_err_set(reterr, "workers: sched_getaffinity: %s", strerror(errno));
	return eal_args_make(&own, ret, reterr);
}

char *eal_describe(const struct eal_conf *conf, struct lb_err *reterr)
{
	struct eal_args args = {0};
	char *text = NULL;
	if (make_args(conf, &args, reterr) == 0) {
		text = eal_args_print(&args);
		if (!text)
			lb_err_set(reterr, "eal: out of memory");
	}
	eal_args_fini(&args);
	return text;
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

// Its arguments are right, or the first complaint says so; memory is what it may lack besides.
static void blame_start(const struct eal_conf *conf, int rc, struct lb_err *reterr)
{
	char said[256], text[REMEDY_MAX] = "";
	bool hugepages = eal_args_want_hugepages(conf->args.given, conf->args.n_given);
	eal_blame(said, sizeof(said));
	if (rc != -EINVAL && hugepages)
		remedy_for_memory("", true, text);
	lb_err_set(reterr, "eal: DPDK failed to start: %s%s%s", said[0] ? said : rte_strerror(-rc),
		text[0] ? ": " : "", text);
}

int eal_start(const struct eal_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->args.n_cores >= 1 && conf->args.n_cores <= LB_MAX_WORKERS);
	int rc = make_args(conf, &eal.args, reterr);
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
	char *argv[EAL_ARGS_MAX + 1]; // EAL permutes the array it is given
	memcpy(argv, eal.args.list, sizeof(argv));
	int muted = mute_stdout();
	int n_taken = rte_eal_init(eal.args.n, argv);
	unmute_stdout(muted);
	if (n_taken < 0) {
		rc = rte_errno ? -rte_errno : -EINVAL;
		blame_start(conf, rc, reterr);
		goto err;
	}
	rc = eal_grace_begin();
	if (rc) {
		lb_err_set(reterr, "eal: no alarm: %s", strerror(-rc));
		goto err;
	}
	return 0;
err:
	close_log();
	eal_args_fini(&eal.args);
	return rc;
}

// EAL's own thread takes its events in their order.
static void on_visit(void *arg)
{
	__atomic_fetch_add(&eal.n_visits, 1, __ATOMIC_RELEASE); // pairs with wait_for_visit()
}

static void wait_for_visit(uint32_t before)
{
	for (int i = 0; i < VISIT_TRIES; i++) {
		if (__atomic_load_n(&eal.n_visits, __ATOMIC_ACQUIRE) != before)
			return;
		nanosleep(&(struct timespec){.tv_nsec = VISIT_NS}, NULL);
	}
}

void eal_settle(void)
{
	uint32_t before = __atomic_load_n(&eal.n_visits, __ATOMIC_ACQUIRE);
	if (rte_eal_alarm_set(1, on_visit, NULL) == 0)
		wait_for_visit(before);
}

static void on_park(void *arg)
{
	on_visit(arg);
	for (;;)
		pause();
}

// That thread would read its list of handlers once more while the memory goes that has them: it
// stays here for good. Not in an alarm, whose end EAL waits for. What this takes goes with the
// process.
static void park(void)
{
	uint32_t before = __atomic_load_n(&eal.n_visits, __ATOMIC_ACQUIRE);
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int fd = eventfd(1, EFD_CLOEXEC);
	if (h && fd >= 0 && rte_intr_fd_set(h, fd) == 0 &&
		rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) == 0 &&
		rte_intr_callback_register(h, on_park, NULL) == 0)
		wait_for_visit(before);
}

const char *eal_iova_mode(void)
{
	return rte_eal_iova_mode() == RTE_IOVA_PA ? "pa" : "va";
}

void eal_stop(void)
{
	park();
	rte_eal_cleanup();
	close_log();
	eal_args_fini(&eal.args);
}
