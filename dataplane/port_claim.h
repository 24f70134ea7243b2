// SPDX-License-Identifier: Apache-2.0
// One process an interface: two that drive the same one would both answer for its addresses, and
// neither DPDK nor the kernel says a word.
// Thread: ctrl.
#pragma once

// Claims the interface that these devargs name, in this network namespace, for the life of the
// process or until port_claim_drop(). A descriptor, or -EADDRINUSE: another process has it;
// -ENODEV: they name none (a memif or a ring is its process's own, whatever others call theirs); or
// another -errno. Nothing is left behind, whatever the end.
int port_claim(const char *device);
void port_claim_drop(int claim); // negative = nothing
