// SPDX-License-Identifier: Apache-2.0
#include "ctrl/steering_watch.h"

#include "ctrl/base/show_port.h"
#include "lb/base/log.h"

#include <string.h>

void steering_watch_look(struct steering_watch *w, const struct show_port *ports)
{
	for (uint32_t i = 0; i < w->n_ports; i++) {
		const char *was = w->was[i];
		w->was[i] = w->steering(w->ctx, i);
		if (was && strcmp(was, w->was[i]) != 0)
			log_warn("port", "index=%u driver=%s steering=%s was=%s", i,
				ports[i].driver, w->was[i], was);
	}
}
