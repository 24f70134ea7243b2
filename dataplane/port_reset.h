// SPDX-License-Identifier: Apache-2.0
// Devices that are reset while they are open: by an administrator (`reset` in sysfs), by a
// hypervisor, or by the driver of the physical function. Their rings are gone, and they must be
// closed and opened again. Some drivers tell of it. Of others nothing is to be seen, not even by
// their link, but that nothing comes from the card any more, whatever is sent; a card that hangs
// looks the same.
// Thread: ctrl.
#pragma once

#include "dataplane/port.h"

#include <stdbool.h>
#include <stdint.h>

struct port_reset {
	bool told; // by the driver; w: EAL's interrupt thread (relaxed)
	bool listens;
	bool was_heard; // something was received since it was opened
	uint64_t n_received, n_sent, since_ns; // frames of all queues, when the last one came
	// Not before this time again, and how long that was from the last time on. They outlive an
	// opening.
	uint64_t may_ns, pace_ns;
};

// Call before the device is started, whose driver may tell at once, and before it is closed.
void port_reset_listen(struct port *);
void port_reset_ignore(struct port *);
// Call while it is open: PORT_EVENT_RESET, PORT_EVENT_SILENT, or none.
enum port_event port_reset_look(struct port *, uint64_t now_ns);
