// SPDX-License-Identifier: Apache-2.0
// What stands in for an interface behind AF_XDP while it goes to the newer process. The kernel
// takes tens of milliseconds to let go of a queue, and gives it to nobody meanwhile; but frames for
// which there is no socket of AF_XDP go on to the kernel's stack, and so to any packet socket. So
// the process that had it goes on with a device of AF_PACKET, until the newer one has its own: that
// shows by frames of the interface that the relay brings (port_queue_yield()).
// Thread: ctrl. Private to port*.c.
#pragma once

#include <stdbool.h>

struct port;

// Before the device is to go; may take tens of milliseconds, in which workers use that. Without it,
// if it cannot be had: that is a gap, and no more. It may be open already.
void port_stopgap_open(struct port *);
// From now on frames come to it: workers take what has come to the device, and go over. False = it
// is not there, and they have to let go of the device.
bool port_stopgap_begin(struct port *);
// True when all have gone over, so that the device can be closed, until it ends.
bool port_stopgap_stands_in(const struct port *);
// The device comes back: workers let go of what they have, and it can be closed then. Closes one
// that has not begun.
void port_stopgap_end(struct port *);
// When workers have let go of it, or it has not begun. Takes some milliseconds. Without one
// nothing.
void port_stopgap_close(struct port *);
