// SPDX-License-Identifier: Apache-2.0
// An active health check: what is sent to an endpoint, which answer passes, and when the next one
// is due (envoy.config.core.v3.HealthCheck). lb/leaf/health.h draws conclusions, lb/pick/probe.h
// carries a check to a worker.
// Thread: made, counted and freed by ctrl; immutable for workers.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/field.h"
#include "lb/base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum lb_check_kind { LB_CHECK_TCP, LB_CHECK_HTTP, LB_CHECK_GRPC };

// Of what is received and compared, in bytes: blocks of TCP, the message of gRPC.
#define LB_CHECK_MAX_RECEIVE 1024

struct lb_status_range {
	uint16_t from, to; // from is in, to is not
};
struct lb_status_ranges {
	const struct lb_status_range *list;
	uint32_t n;
};

struct lb_check {
	uint32_t n_refs; // ctrl's
	enum lb_check_kind kind;
	bool keeps_connection; // for the next check; never of TCP
	uint64_t timeout_ns; // from the attempt to connect to the last byte of the answer
	// HTTP and gRPC: the request.
	struct str method, authority, path;
	const struct field *fields;
	uint32_t n_fields;
	struct str body; // gRPC: its message with the prefix. TCP: what is sent; "" = nothing
	// HTTP: a status of `expected` passes, one of `retriable` counts as an attempt that failed.
	struct lb_status_ranges expected, retriable;
	// What must come, one after the other with anything between; none = TCP: to connect is
	// enough; HTTP: any body will do.
	const struct str *receive;
	uint32_t n_receive;

	// The rest is ctrl's.
	uint32_t healthy_threshold, unhealthy_threshold; // both >= 1
	uint64_t interval_ns, unhealthy_interval_ns, unhealthy_edge_ns, healthy_edge_ns;
	uint64_t no_traffic_ns, no_traffic_healthy_ns;
	uint64_t initial_jitter_ns, jitter_ns; // up to so much is added
	uint32_t jitter_percent; // likewise, of the interval
	struct lb_arena arena; // owns what the strings and lists are made of
};

struct lb_check *lb_check_new(void); // count 1, all zero; NULL = out of memory
struct lb_check *lb_check_get(struct lb_check *); // NULL stays NULL
void lb_check_put(struct lb_check *); // NULL is fine

bool lb_status_is_in(struct lb_status_ranges, uint16_t status);
// True if the blocks of the check are in these bytes. Any thread; pure.
bool lb_check_finds(const struct lb_check *, struct str received);
