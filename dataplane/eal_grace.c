// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eal_grace.h"

#include "lb/slot.h"

#include <rte_alarm.h>
#include <rte_interrupts.h>

#include <dlfcn.h>
#include <stdbool.h>

static __thread bool is_eals_own; // DPDK's own way to ask is not for applications

static void on_own_thread(void *arg)
{
	is_eals_own = true;
}

int eal_grace_begin(void)
{
	return rte_eal_alarm_set(1, on_own_thread, NULL);
}

// DPDK's libraries and drivers find this one, since the program comes first (dataplane/meson.build
// exports it).
int rte_intr_callback_unregister(
	const struct rte_intr_handle *handle, rte_intr_callback_fn callback, void *arg)
{
	int (*next)(const struct rte_intr_handle *, rte_intr_callback_fn, void *);
	*(void **)&next = dlsym(RTLD_NEXT, "rte_intr_callback_unregister");
	if (is_eals_own)
		lb_slot_wait();
	return next(handle, callback, arg);
}
