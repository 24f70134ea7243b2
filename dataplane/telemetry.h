// SPDX-License-Identifier: Apache-2.0
// What DPDK's telemetry socket tells of Shunt beside DPDK's own commands (docs/stats.md): workers,
// their pools, and the counters of their modules, ports among them.
// Thread: ctrl starts and stops it; threads of DPDK's answer, and read what any thread may.
#pragma once

#include <stdint.h>

struct lb_link;

// Before the workers start. links: the workers', borrowed until telemetry_stop(). Where the socket
// is off (--no-telemetry) nobody asks. 0, or -errno of DPDK.
[[nodiscard]] int telemetry_start(struct lb_link *const *links, uint32_t n);
// From then on nobody is answered. Before anything that DPDK's own commands look at goes. Without a
// start it is fine.
void telemetry_stop(void);
