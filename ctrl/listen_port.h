// SPDX-License-Identifier: Apache-2.0
// A TCP port at which this process is to listen, or shares it with one that takes over.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

// Listens there for a moment, as one who shares the port with nobody. Returns 0, also for what is
// no address with a port, or -EINVAL with reterr: somebody has it.
[[nodiscard]] int listen_port_check(const char *address, struct lb_err *reterr);
