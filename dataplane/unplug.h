// SPDX-License-Identifier: Apache-2.0
// PCI devices that are taken away while they are in use.
// Thread: ctrl, but for what says otherwise.
#pragma once

#include <stdbool.h>

// Once EAL runs: a thread that touches the registers of a device that is gone (uio) meets memory
// instead of SIGBUS. 0 or -errno.
[[nodiscard]] int unplug_survive(void);
// *asked becomes true (relaxed, by EAL's interrupt thread) when the kernel wants the device of that
// name back and waits for it (vfio), until unplug_ignore(). 0 or -errno.
[[nodiscard]] int unplug_listen(const char *name, bool *asked);
void unplug_ignore(const char *name, bool *asked);
