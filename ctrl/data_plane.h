// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml means for the data plane.
// Thread: control.
#pragma once

#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "ctrl/doctor/host.h"
#include "ctrl/takeover/devices.h"
#include "dataplane/eal.h"
#include "dataplane/exception.h"
#include "dataplane/port.h"
#include "dataplane/relayed_ports.h"
#include "dataplane/worker.h"
#include "lb/pick/limits.h"
#include "tlshs/threads.h"

struct net_tunnels;

// Lists of what data_plane_describe_eal() returns; the caller's.
struct data_plane_eal_lists {
	int cores[LB_MAX_WORKERS];
	const char *devices[CONFIG_MAX_DEVICES];
	uint8_t ports[CONFIG_MAX_DEVICES]; // of each device
};
// What DPDK is told; without a log. The texts are borrowed from the configuration.
struct eal_conf data_plane_describe_eal(
	const struct config *, struct data_plane_eal_lists *ret_lists);
// The same in shell syntax, from malloc; NULL with reterr.
char *data_plane_print_eal(const struct config *, struct lb_err *reterr);
// Whether `eal` can be had so, whatever cores this process may use: 0, or -EINVAL or -ENOMEM with
// reterr.
[[nodiscard]] int data_plane_check_eal(const struct config *, struct lb_err *reterr);
// Of each device, what an examination of the host is to know; root: in front of /sys and /dev.
// Returns how many there are.
unsigned data_plane_describe_devices(
	const struct config *, const char *root, struct doctor_device ret[CONFIG_MAX_DEVICES]);
struct doctor_memory data_plane_describe_memory(const struct config *);

// Sets what the configuration says of a port's devices; the texts are borrowed from it.
void data_plane_describe_port(const struct config *, unsigned port, struct port_conf *ret);
// What operators are told of a port, as of its last watch.
void data_plane_show_port(const struct port *, struct show_port *ret);
// Sets what the configuration says of every worker; the caller has set what is the worker's own.
// ports: those of the configuration, borrowed.
void data_plane_describe_worker(
	const struct config *, struct port *const *ports, struct worker_conf *ret);
// Returns false if none end here.
bool data_plane_describe_tunnels(const struct config *, struct net_tunnels *ret);
// Which source ports a process of that generation chooses: where none is to follow, all.
void data_plane_take_source_ports(
	const struct config *, uint32_t generation, struct worker_conf *ret);
// Whether all ports can be had beside or after another process: 0, or -EINVAL with reterr, which
// names one that can't.
[[nodiscard]] int data_plane_check_shared(const struct config *, struct lb_err *reterr);
// Where a process can be followed: relayed_ports_init() of its ports, which *ret has to outlive.
[[nodiscard]] int data_plane_init_relays(
	const struct config *, int older_fd, struct relayed_ports *ret, struct lb_err *reterr);
// What takeovers are told of these; borrowed.
struct takeover_devices data_plane_devices(struct relayed_ports *);
// Makes and starts the exception path of ports with a kernel, if there are any: *ret stays NULL if
// not, and is the caller's even on failure. 0, or -EINVAL with reterr.
[[nodiscard]] int data_plane_make_exception(const struct config *, struct port *const *ports,
	struct exception **ret, struct lb_err *reterr);
// Threads that shake hands for all workers, from before the first worker to behind the last. They
// are there whether anything speaks TLS or not: what does may come with any configuration. NULL =
// out of memory, or no thread is to be had.
struct tlshs_threads *data_plane_make_handshakes(const struct config *, struct tlshs_keylog *);
// What workers begin with, [n_frontends] of the configuration, of which nothing is borrowed: a
// reload changes it. NULL = out of memory.
struct lb_frontend_conf *data_plane_describe_frontends(const struct config *);
void data_plane_free_frontends(const struct config *, struct lb_frontend_conf *); // NULL is fine
