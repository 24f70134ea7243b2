// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_workers.h"

#include "ctrl/conf/config.h"

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

// That this process may use: in a container the machine's last one may be another's.
static uint16_t last_core(void)
{
	cpu_set_t own;
	uint16_t last = 0;
	CPU_ZERO(&own);
	sched_getaffinity(0, sizeof(own), &own);
	for (uint16_t i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &own))
			last = i;
	return last;
}

int config_check_workers(struct config *c, struct lb_err *reterr)
{
	if (!c->workers) {
		c->workers = malloc(sizeof(*c->workers));
		if (!c->workers)
			return lb_err_set(reterr, "out of memory");
		c->workers[0] = last_core();
		c->n_workers = 1;
		return 0;
	}
	for (unsigned i = 0; i < c->n_workers; i++) {
		if (c->workers[i] >= sysconf(_SC_NPROCESSORS_CONF)) // some may be offline
			return lb_err_set(reterr, "workers[%u]: this machine has no core %u", i,
				c->workers[i]);
		for (unsigned j = 0; j < i; j++)
			if (c->workers[i] == c->workers[j])
				return lb_err_set(reterr,
					"workers[%u]: core %u has workers[%u] already", i,
					c->workers[i], j);
	}
	return 0;
}
