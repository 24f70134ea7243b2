// SPDX-License-Identifier: Apache-2.0
// What this worker tells the control thread of members (lb/member/member.h): that a request waits
// for one to be connected, and what it says of its load. Kept here while the ring is full, and
// coalesced: one connect request a member and snapshot, the newest report of 100 ms. What is told
// of endpoints is backend.h's.
// Thread: the owning worker.
#pragma once

#include "lb/base/twheel.h"
#include "lb/pick/orca.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct field;
struct ip_addr;
struct lb_metrics;
struct proxy;

// Of one member. All zero: nothing to tell.
struct proxy_notice {
	uint64_t connect_requested; // in the turn of the snapshot of this version; 0 = never
	uint32_t next_connect, next_report; // ids + 1; 0 = the last one
	bool connect_listed, report_listed;
	struct lb_orca_report report;
};

struct proxy_notice_list {
	uint32_t head, tail; // ids + 1; 0 = empty
};

struct proxy_notices {
	struct proxy_notice *by_member; // [LB_MAX_MEMBERS]
	struct proxy_notice_list connects;
	struct proxy_notice_list reports; // of this period
	struct proxy_notice_list due; // of earlier ones
	struct twheel_timer period;
	uint64_t neighbors_since_ns; // hosts are counted
	uint32_t n_neighbors;
};

// 0 or -ENOMEM.
[[nodiscard]] int proxy_notices_init(struct proxy_notices *);
void proxy_notices_fini(struct proxy *);

void proxy_notice_connect_request(struct proxy *, uint32_t member);
// Whom a report concerns.
struct proxy_notice_to {
	uint32_t member;
	bool is_wanted; // as a whole
	uint32_t load; // of the locality, if metrics
	const struct lb_metrics *metrics; // which values load reports want; NULL = none
};
// From the last fields of a member's answer.
void proxy_notice_report(
	struct proxy *, const struct proxy_notice_to *, const struct field *, size_t n_fields);
// A host is there on a link: told at once, or not at all.
void proxy_notice_neighbor(struct proxy *, const struct ip_addr *);
// Writes what the ring takes. False = it is full.
bool proxy_notice_tell(struct proxy *);
static inline bool proxy_notice_tell_all(struct proxy *p, const struct proxy_notices *n)
{
	bool is_silent = !n->connects.head && !n->reports.head && !n->due.head;
	return is_silent || proxy_notice_tell(p);
}
