// SPDX-License-Identifier: Apache-2.0
// A device with its arguments, as shunt.yaml and DPDK write it: "net_af_packet0,iface=eth1".
// Thread: any.
#pragma once

#include "lb/base/str.h"

// The value of an argument, within the device; of one that is there twice the last, which is DPDK's
// as well. p NULL = it is not there.
struct str devargs_find(const char *device, const char *key);
// Likewise a number; 0 = it is not there, or is none.
uint32_t devargs_number(const char *device, const char *key);
