// SPDX-License-Identifier: Apache-2.0
// What shunt.yaml says of a frontend, as workers need it: where it is and how its requests are
// treated. Workers are started with all of them; one that a reload changes, adds or removes comes
// with a snapshot.
// Thread: built, counted and freed on ctrl; workers read.
#pragma once

#include "lb/base/ip.h"

#include <stdbool.h>
#include <stdint.h>

// Which requests wait while their cluster fails. All others fail at once.
enum lb_wait_for_ready {
	LB_WAIT_NEVER,
	LB_WAIT_ALWAYS,
	LB_WAIT_HEADER, // requests with x-shunt-wait-for-ready: true, which is not forwarded
};

// PROXY headers of clients (dataplane/proxy/client_header.h).
struct lb_header_conf {
	const struct ip_prefix *allow; // who may connect, and has to send one; borrowed
	uint32_t n_allow; // 0 = nobody sends one
	bool v1, v2; // versions that are taken
};

struct lb_frontend_conf {
	struct ip_addr address;
	uint16_t port; // 0 = nowhere
	// Pinned :authority for the choice of virtual host; NULL = the request's. Borrowed.
	const char *authority;
	enum lb_wait_for_ready wait_for_ready;
	struct lb_header_conf header;
	bool reply_details; // local replies name clusters and addresses (TH-95)
	bool by_listeners; // it is where the snapshot's vips say, not at an address of its own
};

// Copies what it borrows as well. False = out of memory; call fini() anyway.
[[nodiscard]] bool lb_frontend_conf_copy(
	struct lb_frontend_conf *, const struct lb_frontend_conf *from);
void lb_frontend_conf_fini(struct lb_frontend_conf *); // of a copy; all zero is fine

struct lb_live_frontend {
	uint32_t n_refs; // ctrl only
	uint64_t number; // of no two of a process the same, and not 0
	// The number that its frontend had first: another one is another frontend, which has the
	// place after the last client of the one before.
	uint64_t owner;
	// It is in the file no more: nobody is accepted, and its clients are sent away.
	bool is_left;
	struct lb_frontend_conf conf; // owned, all of it
};

// Copies what the configuration borrows. Count 1. NULL = out of memory.
struct lb_live_frontend *lb_live_frontend_new(
	const struct lb_frontend_conf *, uint64_t number, uint64_t owner, bool is_left);
struct lb_live_frontend *lb_live_frontend_get(struct lb_live_frontend *); // NULL stays NULL
void lb_live_frontend_put(struct lb_live_frontend *); // NULL is fine
