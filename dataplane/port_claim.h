// SPDX-License-Identifier: Apache-2.0
// One process a device: two that drive the same one would both answer for its addresses, and
// neither DPDK nor the kernel says a word. A claim goes with its process, however that ends.
// Thread: ctrl.
#pragma once

#define PORT_CLAIM_DIR "/run/shunt"

struct port_claim {
	int name, lock; // descriptors; negative = none
};
#define PORT_CLAIM_NONE ((struct port_claim){-1, -1})

// Claims what these devargs name: an interface in this network namespace, or a PCI device, which
// belongs to no namespace, for all processes that have this namespace or the directory (made if it
// is not there) in common. 0; -EADDRINUSE: another process has it; -ENODEV: they name none (a memif
// or a ring is its process's own, whatever others call theirs); or another -errno. Then nothing is
// left behind, and *ret is PORT_CLAIM_NONE.
[[nodiscard]] int port_claim(const char *device, const char *dir, struct port_claim *ret);
void port_claim_drop(struct port_claim *); // none is fine
