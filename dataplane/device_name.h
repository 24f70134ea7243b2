// SPDX-License-Identifier: Apache-2.0
// What a device may be called in shunt.yaml, as far as that can be told without DPDK,
// and what is said there.
// Thread: any.
#pragma once

#include "lb/base/err.h"

// A device with its arguments, of a port or as a member of a bond. Returns 0, or -EINVAL with
// reterr: an interface of the kernel's by its bare name, or a driver of such interfaces without
// one. Names that only DPDK knows, those of buses besides PCI among them, are left to it.
[[nodiscard]] int device_name_check(const char *device, struct lb_err *reterr);
