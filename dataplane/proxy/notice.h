// SPDX-License-Identifier: Apache-2.0
// Notices from this worker to the control thread about members (lb/member/member.h): a request
// waits for one to be connected, or a backend reported its load. While the ring is full they are
// kept here and coalesced: one connect request per member and snapshot, and the newest report of
// each 100 ms. backend.h reports events of endpoints.
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

// Of one member. All zero = nothing to report.
struct proxy_notice {
	// version of the snapshot that last asked for a connection; 0 = never
	uint64_t connect_requested;
	uint32_t next_connect, next_report; // ids + 1; 0 = end of list
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
	struct proxy_notice_list due; // of earlier periods
	struct twheel_timer period;
	uint64_t neighbors_since_ns; // start of the second in which neighbors are counted
	uint32_t n_neighbors;
};

// 0 or -ENOMEM.
[[nodiscard]] int proxy_notices_init(struct proxy_notices *);
void proxy_notices_fini(struct proxy *);

void proxy_notice_connect_request(struct proxy *, uint32_t member);
// Whom a load report concerns.
struct proxy_notice_to {
	uint32_t member;
	bool is_wanted; // the whole report goes to the member's policy
	uint32_t load; // load entry of the locality, if metrics is set
	const struct lb_metrics *metrics; // values that load reports want; NULL = none
};
// Reads a report from the last fields of a member's answer.
void proxy_notice_report(
	struct proxy *, const struct proxy_notice_to *, const struct field *, size_t n_fields);
// Reports a neighbor on a link; dropped if the ring is full.
void proxy_notice_neighbor(struct proxy *, const struct ip_addr *);
// Writes as many notices as the ring takes. Returns false if the ring is full.
bool proxy_notice_tell(struct proxy *);
static inline bool proxy_notice_tell_all(struct proxy *p, const struct proxy_notices *n)
{
	bool is_silent = !n->connects.head && !n->reports.head && !n->due.head;
	return is_silent || proxy_notice_tell(p);
}
