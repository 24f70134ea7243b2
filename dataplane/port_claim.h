// SPDX-License-Identifier: Apache-2.0
// Ensures that one process uses a device: two that drive the same one would both answer for its
// addresses, and neither DPDK nor the kernel reports it. A claim ends with its process, however
// that ends.
// Thread: ctrl.
#pragma once

#define PORT_CLAIM_DIR "/run/shunt"

struct port_claim {
	int name, lock; // descriptors; negative = none
};
#define PORT_CLAIM_NONE ((struct port_claim){-1, -1})

// Claims the device in these devargs: an interface, or the client's end of a memif, in this network
// namespace; or a PCI device, which belongs to no namespace, among all processes that share this
// namespace or the directory (created if missing). Returns 0; -EADDRINUSE: another process has it;
// -ENODEV: there is nothing to claim (a memif's server has its socket, a ring belongs to its
// process, the name of a memif's socket is too long to be claimed); or another -errno. On failure
// *ret is PORT_CLAIM_NONE.
[[nodiscard]] int port_claim(const char *device, const char *dir, struct port_claim *ret);
void port_claim_drop(struct port_claim *); // PORT_CLAIM_NONE is fine
