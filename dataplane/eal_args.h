// SPDX-License-Identifier: Apache-2.0
// Makes the arguments for DPDK's environment: our defaults, except for what `eal` in shunt.yaml
// sets. Depends on its input only.
// Thread: ctrl.
#pragma once

#include "lb/base/err.h"

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define EAL_ARGS_MAX 64

struct eal_args_conf {
	// eal of shunt.yaml, without the program's name. What it doesn't name is:
	// - memory: pages of the usual size (--no-huge), memory_mib of them. Whoever names an
	//   option of hugepages (--in-memory, --huge-dir, --socket-mem, …) and not --no-huge gets
	//   hugepages, as many as are needed, and no files unless the option is about files;
	// - addresses that devices see: virtual ones (--iova-mode=va), or physical ones with
	//   hugepages for a device that can't do without (wants_pa);
	// - no device on the PCI bus (--no-pci).
	// Those that place threads (-c, -l, -S, --lcores, --main-lcore), name vdevs (--vdev), leave
	// devices out (-b, --block) and --proc-type are refused. Devices of ports are taken out of
	// -a and --allow: they are opened one by one, once they are claimed.
	const char *const *given;
	uint32_t n_given;
	const char *const *devices; // devargs of all ports, members of bonds among them
	const uint8_t *device_ports; // which port's each is; NULL = one after the other
	uint32_t n_devices;
	bool wants_pa;
	uint32_t memory_mib; // 0 = DPDK's choice
	const int *cores; // of worker 0, 1, …
	uint32_t n_cores;
	cpu_set_t usable; // cores of this process
};

struct eal_args {
	char *list[EAL_ARGS_MAX + 1]; // owned; after the last one is NULL
	int n;
};

// Returns 0, or -EINVAL or -ENOMEM with reterr, which names the field of shunt.yaml. The caller
// frees the result either way.
[[nodiscard]] int eal_args_make(
	const struct eal_args_conf *, struct eal_args *ret, struct lb_err *reterr);
void eal_args_fini(struct eal_args *);
// The arguments in shell syntax, without the program's name, from malloc. NULL = out of memory.
char *eal_args_print(const struct eal_args *);
// True if hugepages are wanted.
bool eal_args_want_hugepages(const char *const *given, uint32_t n);

// The lcore of worker i.
static inline unsigned eal_lcore_of_worker(uint32_t worker)
{
	return worker + 1;
}
