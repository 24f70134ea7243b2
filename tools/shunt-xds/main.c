// SPDX-License-Identifier: Apache-2.0
// shunt-xds: an xDS management server, or a caching proxy of one. Signals, logs, time.
#include "ctrl/base/std_out.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "tools/shunt-xds/app.h"
#include "tools/shunt-xds/options.h"

#include <grpc/support/log.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

uint64_t app_now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

void app_wait(struct pollfd *fds, unsigned n, uint64_t due_ns)
{
	uint64_t now = app_now_ns();
	int timeout = -1;
	if (due_ns != UINT64_MAX) {
		uint64_t ms = due_ns <= now ? 0 : (due_ns - now + NS_PER_MS - 1) / NS_PER_MS;
		timeout = ms > INT_MAX ? INT_MAX : (int)ms;
	}
	poll(fds, n, timeout);
}

// The threads of libgrpc inherit the mask: only the loop sees the signals.
static int signals_open(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void grpc_says(gpr_log_func_args *args)
{
	log_write(args->severity == GPR_LOG_SEVERITY_ERROR ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		"grpc", "said=%s", log_quote(args->message));
}

int main(int argc, char **argv)
{
	struct app_options o;
	std_out_watch("shunt-xds", EXIT_FAILURE);
	options_read(argc, argv, &o);
	log_set_level(o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	gpr_set_log_function(grpc_says);
	int signals = signals_open();
	if (signals < 0) {
		log_error("cannot watch for signals", "error=%s", log_quote(strerror(errno)));
		return EXIT_FAILURE;
	}
	int r = o.folder ? app_serve(&o, signals) : app_proxy(&o, signals);
	close(signals);
	return r;
}
