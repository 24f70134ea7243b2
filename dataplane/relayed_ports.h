// SPDX-License-Identifier: Apache-2.0
// The ports of a process whose devices it cannot share (port_relay_name()), as it follows another
// one and is followed: where they are, and the relays to both.
// Thread: ctrl.
#pragma once

#include "dataplane/port.h"
#include "lb/base/cable.h"

// What both processes know a port by, whatever number each has for it.
struct relayed_name {
	char device[RELAY_MAX_NAME]; // "" = it is none of these
	uint16_t vlan; // 0 = none
};

struct relayed_ports {
	struct relays *relays; // owned; NULL = all of it is off
	struct port *ports[NET_MAX_PORTS]; // borrowed; of shunt.yaml
	struct relayed_name names[NET_MAX_PORTS];
	uint32_t n_ports, n_workers;
	// The older one's, until ports are made; fd is -1 without.
	struct relay_memory older;
	bool has_older;
};

// Without workers' knowledge, before ports are made. older_fd: borrowed, what the older process
// gave; -1 = nothing. Returns 0, or -EINVAL with reterr: it has devices that are not in our list,
// or VLANs of them, say. The caller calls relayed_ports_fini() either way, behind the last worker.
[[nodiscard]] int relayed_ports_init(struct relayed_ports *, const struct port_conf *ports,
	uint32_t n_ports, uint32_t n_workers, int older_fd, struct lb_err *reterr);
void relayed_ports_fini(struct relayed_ports *); // a zeroed one is fine
// What port_new() is to know of that port; NULL = it is not behind a relay. Of a VLAN that the
// older process does not have it is what is known of the device by another one.
const struct relay_port *relayed_ports_find(const struct relayed_ports *, uint32_t port);
// Once they are made, before workers are. Returns 0 or -ENOMEM.
[[nodiscard]] int relayed_ports_begin(struct relayed_ports *, struct port *const *);

// As tables of functions have them: the first argument is a struct relayed_ports.

// A newer process with so many workers comes, 0 = it knows of no relays: *ret_fd is what it needs,
// owned; -1 = nothing. Returns 0, or -EINVAL with reterr. As after relayed_ports_drop(), workers
// have to follow.
[[nodiscard]] int relayed_ports_lend(
	void *, uint32_t n_workers, int *ret_fd, struct lb_err *reterr);
bool relayed_ports_are_lent(const void *);
// Whether the newer process can have all of them. 0, or -EINVAL with reterr, which names the device
// that has to stay (port_why_stays()).
[[nodiscard]] int relayed_ports_may_leave(const void *, struct lb_err *reterr);
// True = what is an older process's goes through our devices.
bool relayed_ports_have_older(const void *);
// The newer process is to have the devices, once all are passed on. Call the second until it is
// true.
void relayed_ports_pass_on(void *);
bool relayed_ports_are_passed_on(void *, uint64_t now_ns);
// Opens the devices that the older process has passed on. Returns 0, or negative with reterr.
[[nodiscard]] int relayed_ports_take(void *, struct lb_err *reterr);
// The newer process is gone, and what it was to have is ours again; or the older one is.
void relayed_ports_drop(void *, bool newer, uint64_t now_ns);
// By which devices that both processes have ours send, and, where they are to, by the other one's;
// NULL: by themselves (port_cable.h).
void relayed_ports_cables(const void *, struct lb_cables *ret);
void relayed_ports_follow(void *, const struct lb_cables *);
// Call now and then.
void relayed_ports_tidy(void *);
