// SPDX-License-Identifier: Apache-2.0
// What stands in for an interface behind AF_XDP while it goes to the newer process. The kernel
// takes tens of milliseconds to let go of a queue, and gives it to nobody meanwhile; but frames for
// which there is no socket of AF_XDP go on to the kernel's stack, and so to any packet socket. So
// the process that had it goes on with a device of AF_PACKET, until the newer one has its own: that
// shows by frames of the interface that the relay brings (port_queue_yield()). If the newer one
// comes to nothing it stands in until the older one has opened the device again.
// Thread: ctrl. Private to port*.c.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct port;

// It is opened by port_get_ready(), before the device is to go; that may take tens of milliseconds,
// in which workers use the device. If it cannot be had there is a gap, and no more.

// From now on frames come to it: workers take what has come to the device, and go over. False = it
// is not there, and they have to let go of the device.
bool port_stopgap_begin(struct port *);
// True when all have gone over, so that the device can be closed, until it ends.
bool port_stopgap_stands_in(const struct port *);
// The device is to come back: workers have their frames from what stands in until then, also those
// that were behind the relay. False = nothing stands in.
bool port_stopgap_remain(struct port *);
// Opens the device again, while what stands in is in use, and closes that when workers have taken
// what has come to it and gone over. Call at each look. Returns 0 when it is done; -EAGAIN: not
// yet; or another negative one with reterr: the device is closed, and what stands in goes on.
[[nodiscard]] int port_stopgap_return(struct port *, struct lb_err *reterr);
// There is no interface any more: workers let go of what they have, and it can be closed then.
// Closes one that has not begun.
void port_stopgap_end(struct port *);
// When workers have let go of it or left it, or it has not begun. Takes some milliseconds. Without
// one nothing.
void port_stopgap_close(struct port *);
