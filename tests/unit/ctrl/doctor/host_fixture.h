// SPDX-License-Identifier: Apache-2.0
// A host in whose set-up nothing is wrong, in a made-up /proc, /sys and /run, for a configuration
// with two workers and one port; and what to plant a fault with.
// Thread: the test's.
#pragma once

#include "ctrl/conf/config.h"
#include "ctrl/doctor/host.h"
#include "ctrl/xds/bootstrap/bootstrap.h"

#include <limits.h>
#include <sched.h>

struct fixture {
	char root[64];
	uint16_t workers[2];
	char *addresses[1];
	struct ip_addr ips[1];
	struct config_port port;
	struct config_frontend frontend;
	struct config_stats stats;
	struct config_csds csds;
	struct config_metrics metrics;
	struct config_access_log log;
	struct config_tls tls;
	struct config config;
	struct xds_bootstrap *bootstrap;
	struct doctor_device device;
	struct doctor_host host;
	struct doctor_report report;
	// What the functions tell.
	struct doctor_interface interface, peer; // of "eth1" and "eth2"
	bool is_absent; // eth1
	const char *owner; // the kernel's interface with the port's address; NULL = none
	const char *unreachable; // a part of the host's name
	int dial, listen; // -errno
	uint64_t limit; // of every resource
	uint64_t capabilities;
	int synchronised;
	cpu_set_t usable;
};

int fixture_set_up(void **state); // as cmocka calls it
int fixture_tear_down(void **state);

// Below the root, with the folders that it needs.
void fixture_write(struct fixture *, const char *path, const char *text);
void fixture_make_folder(struct fixture *, const char *path);
void fixture_remove(struct fixture *, const char *path); // with what is in it
const char *fixture_path(const struct fixture *, char ret[PATH_MAX], const char *path);
// Examines the host; the findings are the fixture's.
json_t *fixture_examine(struct fixture *);
// The bootstrap anew.
void fixture_set_bootstrap(struct fixture *, const char *json);
