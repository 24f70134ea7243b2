// SPDX-License-Identifier: Apache-2.0
// One endpoint's health checks, as they travel between the control thread and the one worker that
// does them. LB_COMMAND_PROBE has one check done and is answered by one LB_EVENT_PROBED;
// LB_COMMAND_PROBE_END has whatever is left let go and is answered by one LB_EVENT_PROBE_ENDED, the
// last event, after which the worker knows nothing of the probe.
// Thread: as tagged. Made and freed by ctrl (lb/member/probes.h).
#pragma once

#include "lb/base/ip.h"
#include "lb/base/list.h"
#include "lb/pick/credential.h"
#include "lb/pick/security.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_check;

enum lb_probe_result {
	LB_PROBE_PASSED,
	LB_PROBE_UNHEALTHY, // the endpoint answered, and says that it cannot serve
	LB_PROBE_RETRIABLE, // the same by a status that the check calls retriable
	LB_PROBE_NETWORK, // no connection, or no answer
	LB_PROBE_TIMEOUT, // no answer in time
	LB_PROBE_UNJUDGED, // our own memory ran short: it says nothing of the endpoint
};

#define LB_PROBE_WHY_MAX 60 // with its end

struct lb_probe {
	uint32_t id; // constant
	struct ip_port addr; // constant
	struct lb_security *security; // constant, counted by ctrl; NULL = plain text
	const struct lb_check *check; // w: ctrl while no check is under way; counted there
	// The worker's alone; zero at first.
	struct {
		void *conn; // that is in use, or kept for the next check; NULL = none
		struct list_link to_tell; // in the list of those that ctrl is yet to be told of
		uint8_t result; // enum lb_probe_result
		bool owes_result, owes_end;
		char why[LB_PROBE_WHY_MAX]; // "status 503"; "" if it passed
	} worker;
};

// The id at which its TLS context stands in snapshots; LB_PLAIN_TEXT = it is spoken to in plain
// text.
static inline uint32_t lb_probe_credential(const struct lb_probe *p)
{
	return p->security ? p->security->credential : LB_PLAIN_TEXT;
}
// The worker that does its checks.
static inline uint32_t lb_probe_worker(const struct lb_probe *p, uint32_t n_workers)
{
	return p->id % n_workers;
}
