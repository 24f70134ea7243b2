// SPDX-License-Identifier: Apache-2.0
// An interface of the kernel whose other end is a descriptor: each read() and write() is one frame
// of Ethernet (TAP). It goes when the descriptor is closed, unless it was there before and stays by
// itself (`ip tuntap add`).
// Thread: any.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>
#include <stdint.h>

// Makes the interface, or takes the one of that name that nobody has, gives it the address and the
// MTU, and sets it up. Returns a descriptor that does not block, or -1 with reterr.
int tun_open(const char *interface, const uint8_t mac[6], uint16_t mtu, struct lb_err *reterr);
// False = the kernel does not take it.
bool tun_set_mac(int fd, const uint8_t mac[6]);
// Whether programs see a link (carrier). Kernels before 5.0 cannot tell.
void tun_set_carrier(int fd, bool is_up);
