// SPDX-License-Identifier: Apache-2.0
// Starts and ends DPDK's environment (EAL), which a process has at most once. It decides which
// thread may run where: worker i becomes lcore i + 1 pinned to its core, the caller becomes the
// main lcore on all other cores. Devices are not named here but probed one by one (port.h), so that
// a bad one can be told from the others. No secondary processes.
// Thread: ctrl, the one that calls eal_start().
#pragma once

#include "dataplane/eal_args.h"
#include "lb/base/err.h"

#include <stddef.h>

// DPDK's levels, fewer is worse (RTE_LOG_ERR = 4 … RTE_LOG_DEBUG = 8).
enum eal_log_level { EAL_LOG_ERR = 4, EAL_LOG_WARNING = 5, EAL_LOG_NOTICE = 6, EAL_LOG_INFO = 7 };

struct eal_conf {
	struct eal_args_conf args; // usable is filled in
	// One line of DPDK's log, without the newline. On any thread, workers too: must be
	// thread-safe. NULL = stderr.
	void (*log)(void *ctx, int level, const char *line);
	void *log_ctx;
};

// The arguments with which it would start, as a shell would take them; from malloc. NULL with
// reterr, as eal_start(). Touches nothing.
char *eal_describe(const struct eal_conf *, struct lb_err *reterr);
// Pins the calling thread to the cores that no worker has (all cores when none is left), and with
// it every thread that it starts afterwards: call this before other libraries start threads. The
// lcores inherit the caller's signal mask: block signals before. 0, -EINVAL or -errno; reterr says
// which argument of shunt.yaml is to blame.
[[nodiscard]] int eal_start(const struct eal_conf *, struct lb_err *reterr);
// Waits, some seconds at most, until EAL's own thread has handled what drivers were to hear until
// now. That a memif goes away is news for its other end, which may be in this process: it must not
// be closed, nor memory given back, while that thread is at it.
void eal_settle(void);
// Workers joined and ports freed. EAL can't be started again in this process, and its own thread
// does nothing any more.
void eal_stop(void);

// The first thing DPDK complained about since eal_blame_start(), which is the nearest to the cause,
// for error texts; "" = nothing.
void eal_blame_start(void);
void eal_blame(char *ret, size_t size);
