// SPDX-License-Identifier: Apache-2.0
// What can be told of a configuration on a host without a running daemon: each check looks at one
// thing that a start, or the daemon's speed, depends on, and says how to mend it. A daemon that
// serves this configuration already is no fault: checks of what it has taken are then left out.
// Thread: one; it may wait for files, names and servers, the latter for two seconds in all.
#pragma once

#include "ctrl/doctor/report.h"
#include "lb/base/err.h"
#include "lb/base/ip.h"

#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

struct config;
struct xds_bootstrap;

// A port's device, or a member of its bond, as the data plane knows it.
enum doctor_device_kind {
	DOCTOR_DEVICE_PCI,
	DOCTOR_DEVICE_PACKET, // an interface of the kernel's, by AF_PACKET
	DOCTOR_DEVICE_XDP, // likewise, by AF_XDP
	DOCTOR_DEVICE_OTHER, // made when it is opened (tap, memif)
};
#define DOCTOR_MAX_REMEDY 256
struct doctor_device {
	unsigned port;
	bool is_member;
	char field[40]; // of shunt.yaml: "ports[0].device", "ports[0].bond.members[1]"
	enum doctor_device_kind kind;
	char name[64]; // of the card, "0000:03:00.0", or of the interface
	bool pins; // its driver is VFIO, which pins the memory
	uint64_t capabilities; // bits, of <linux/capability.h>: those that opening it takes
	char remedy[DOCTOR_MAX_REMEDY]; // what stands in its way: "what is so: fix"; "" = nothing
};

// What DPDK asks the kernel for.
struct doctor_memory {
	bool hugepages;
	bool in_memory; // no files: nothing of hugetlbfs is needed
	char prefix[32]; // else what the files' names begin with
	uint32_t mib; // in all; 0 = it takes hugepages as it needs them
	bool is_given; // by `eal`
};

enum {
	DOCTOR_OFFLOAD_GRO = 1,
	DOCTOR_OFFLOAD_LRO = 2,
	DOCTOR_OFFLOAD_TSO = 4,
	DOCTOR_OFFLOAD_GSO = 8,
	DOCTOR_OFFLOAD_TX = 16, // checksums of what is sent
};
struct doctor_interface {
	bool is_up; // an operator wants it up
	bool has_carrier;
	int mtu;
	unsigned offloads; // those that are on
	bool is_veth;
	char peer[IF_NAMESIZE]; // of a veth, if it is in this network namespace; "" = it is not
};

struct doctor_target {
	char host[256];
	char port[16];
	bool is_unix; // host is a path
	struct lb_err err; // out: why it is not reached; "" = it is
};

// What no file tells; tests have their own. ctx is the first argument of each.
struct doctor_ops {
	bool (*interface)(void *, const char *name, struct doctor_interface *ret); // false = none
	// The kernel's interface with this address.
	bool (*owner)(void *, const struct ip_addr *, char ret_name[IF_NAMESIZE]);
	// Connects to each at the same time, for a bounded one.
	void (*reach)(void *, struct doctor_target *, unsigned n);
	int (*dial)(void *, const char *path); // a Unix socket; 0 or -errno
	int (*listen)(void *, const struct ip_port *); // whether that could be done; 0 or -errno
	uint64_t (*limit)(void *, int resource); // of getrlimit(), UINT64_MAX = none
	uint64_t (*capabilities)(void *); // of this process: bits, of <linux/capability.h>
	int (*synchronised)(void *); // the clock: 1 = yes, 0 = no, -1 = the kernel doesn't tell
	void (*usable_cores)(void *, cpu_set_t *ret); // of this process
};
extern const struct doctor_ops doctor_system; // of this machine; its ctx is NULL

struct doctor_host { // all borrowed
	const char *root; // in front of /proc, /sys, /dev and of what the configuration names
	const struct config *config;
	const struct xds_bootstrap *bootstrap; // NULL = bootstrap_error says why there is none
	const char *bootstrap_error;
	const struct doctor_device *devices; // of the configuration's ports, one after the other
	unsigned n_devices;
	struct doctor_memory memory;
	const struct doctor_ops *ops;
	void *ctx;
	int64_t now_s; // since 1970
	struct doctor_report *report;
	bool is_served; // by a running daemon; doctor_examine() finds out
};

struct doctor_check {
	const char *id;
	const char *looks_at; // as docs/doctor.md says it
	enum doctor_severity worst;
	void (*look)(const struct doctor_host *);
	bool before_start; // says nothing of a daemon that runs
};
extern const struct doctor_check doctor_checks[]; // ended by one without an id

// Runs all checks.
void doctor_examine(struct doctor_host *);
