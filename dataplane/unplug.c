// SPDX-License-Identifier: Apache-2.0
// DPDK calls these functions experimental, in all releases since 2018.
#define ALLOW_EXPERIMENTAL_API
#include "dataplane/unplug.h"

#include <rte_dev.h>

#include <errno.h>
#include <sched.h>

int unplug_survive(void)
{
	return rte_dev_hotplug_handle_enable();
}

static void on_event(const char *name, enum rte_dev_event_type type, void *arg)
{
	bool *asked = arg;
	if (type == RTE_DEV_EVENT_REMOVE)
		__atomic_store_n(asked, true, __ATOMIC_RELAXED);
}

int unplug_listen(const char *name, bool *asked)
{
	*asked = false;
	return rte_dev_event_callback_register(name, on_event, asked);
}

void unplug_ignore(const char *name, bool *asked)
{
	// Not while it is being called, which is soon over.
	while (rte_dev_event_callback_unregister(name, on_event, asked) == -EAGAIN)
		sched_yield();
}
