// SPDX-License-Identifier: Apache-2.0
// Sends traces to a collector (docs/tracing.md, OPS-167 to OPS-169): takes the records of all
// workers' rings, makes batches of spans, and has them sent one after the other. A collector that
// is away for a while loses nothing that the queue holds; what goes beyond is dropped and counted.
// It has no clock and no network of its own.
// Thread: ctrl.
#pragma once

#include "lb/base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_trace;
struct rand;
struct trace_exporter;

#define TRACE_BATCH 256 // records
#define TRACE_WAIT_NS NS_PER_SECOND // of a batch that is not full
#define TRACE_QUEUE 64 // batches, the one under way included
#define TRACE_QUEUE_BYTES (64u << 20) // of them all
#define TRACE_TRIES_NS (60 * NS_PER_SECOND) // of a batch, from when it was made
#define TRACE_TIMEOUT_NS (10 * NS_PER_SECOND) // of a try

struct trace_exporter_conf { // all borrowed, outlives it
	struct lb_trace *const *workers;
	uint32_t n_workers;
	const char *const *frontends; // names
	uint32_t n_frontends;
	const char *service_name, *version, *host;
	uint64_t (*clock_ns)(void); // the workers'
	uint64_t (*wall_ns)(void); // since 1970
	struct rand *rand;
	// Sends a request, which stays until the exporter is told of its end.
	void (*send)(void *ctx, const uint8_t *bytes, size_t len);
	void *ctx;
};

struct trace_exporter *trace_exporter_new(const struct trace_exporter_conf *); // NULL: no memory
void trace_exporter_free(struct trace_exporter *); // NULL is fine; what it holds is lost
// Takes what workers tell, up to a batch, and sends what is due. Call every few milliseconds; NULL
// is fine.
void trace_exporter_tick(struct trace_exporter *);
// What was sent has ended, with this status of gRPC, and answer if that is OK.
void trace_exporter_sent(
	struct trace_exporter *, int status, const char *text, const uint8_t *answer, size_t len);

struct trace_numbers {
	uint64_t n_sent; // spans that the collector took
	uint64_t n_ring; // requests: a worker's ring was full
	uint64_t n_queue; // spans: the queue was full, or there was no memory
	uint64_t n_refused; // spans: the collector did not take them, or not in time
	uint32_t n_waiting; // batches
	bool is_failing; // the newest try was in vain
};
struct trace_numbers trace_exporter_numbers(const struct trace_exporter *);
