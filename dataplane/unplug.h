// SPDX-License-Identifier: Apache-2.0
// PCI devices that are removed while in use.
// Thread: ctrl, unless noted.
#pragma once

#include <stdbool.h>

// Call after EAL started: a thread that accesses registers of a removed device (uio) then reads
// memory instead of getting SIGBUS. Returns 0 or -errno.
[[nodiscard]] int unplug_survive(void);
// Until unplug_ignore(), sets *asked (relaxed, on EAL's interrupt thread) when the kernel requests
// this device back and waits for it (vfio). Returns 0 or -errno.
[[nodiscard]] int unplug_listen(const char *name, bool *asked);
void unplug_ignore(const char *name, bool *asked);
