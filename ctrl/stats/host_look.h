// SPDX-License-Identifier: Apache-2.0
// Has this host examined by a process of its own, `shuntd --check --device --json`: that waits for
// files, names and servers, and the control thread must not. One at a time.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <jansson.h>

#include <stdint.h>

struct host_look;

#define HOST_LOOK_MAX ((size_t)1 << 20) // bytes of what it says
#define HOST_LOOK_NS (6 * NS_PER_SECOND) // it is ended then

// program: a shuntd; config: the path of shunt.yaml. Both are borrowed and outlive it. NULL = out
// of memory.
struct host_look *host_look_new(const char *program, const char *config);
void host_look_free(struct host_look *); // NULL is fine
// Starts the process. 0, -EBUSY = somebody's look is not over, or another -errno.
[[nodiscard]] int host_look_begin(struct host_look *, uint64_t now_ns);
// -EAGAIN = it goes on; 0 with what it said, owned by the caller; or -EINVAL with reterr. Unless it
// goes on, it is over.
[[nodiscard]] int host_look_poll(
	struct host_look *, uint64_t now_ns, json_t **ret, struct lb_err *reterr);
// Nobody wants to know any more.
void host_look_end(struct host_look *);
