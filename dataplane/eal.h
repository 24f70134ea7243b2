// SPDX-License-Identifier: Apache-2.0
// Starts and stops DPDK's environment (EAL), of which a process has at most one. It assigns threads
// to cores: worker i is lcore i + 1, pinned to its core; the caller becomes the main lcore on all
// other cores. Devices are probed one by one later (port.h), so that an error can be attributed to
// one. No secondary processes.
// Thread: ctrl, the one that calls eal_start().
#pragma once

#include "dataplane/eal_args.h"
#include "lb/base/err.h"

#include <stddef.h>

// DPDK's levels; lower is more severe (RTE_LOG_ERR = 4 … RTE_LOG_DEBUG = 8).
enum eal_log_level { EAL_LOG_ERR = 4, EAL_LOG_WARNING = 5, EAL_LOG_NOTICE = 6, EAL_LOG_INFO = 7 };

struct eal_conf {
	struct eal_args_conf args; // eal_start() fills in usable
	// Called with one line of DPDK's log, without the newline, on any thread, even workers:
	// must be thread-safe. NULL = stderr.
	void (*log)(void *ctx, int level, const char *line);
	void *log_ctx;
};

// Returns the arguments that eal_start() would use, in shell syntax, from malloc; NULL with reterr,
// as eal_start(). Has no side effects.
char *eal_describe(const struct eal_conf *, struct lb_err *reterr);
// Pins the calling thread, and so all threads that it starts later, to the cores without a worker
// (all cores if none is left): call this before other libraries start threads. The lcores inherit
// the caller's signal mask: block signals before. Returns 0, -EINVAL or -errno; reterr names the
// field of shunt.yaml.
[[nodiscard]] int eal_start(const struct eal_conf *, struct lb_err *reterr);
// Which addresses devices use since then: "va" (the process's) or "pa" (those of physical memory).
const char *eal_iova_mode(void);
// Waits, at most some seconds, until EAL's own thread has handled all device events so far. When a
// memif is closed, its peer, perhaps in this process, gets such an event: until it is handled, that
// peer must not be closed, nor memory freed.
void eal_settle(void);
// Call after workers are joined and ports freed. EAL cannot be started again in this process, and
// its own thread does nothing any more.
void eal_stop(void);

// The first error that DPDK logged since eal_blame_start(), the closest to the cause, for error
// texts; "" = none.
void eal_blame_start(void);
void eal_blame(char *ret, size_t size);
