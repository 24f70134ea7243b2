// SPDX-License-Identifier: Apache-2.0
#include "ctrl/trace/exporter.h"

#include "ctrl/trace/spans.h"
#include "lb/base/backoff.h"
#include "lb/base/log.h"
#include "lb/base/min.h"
#include "lb/base/time.h"
#include "lb/pick/trace.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define QUIET_NS (10 * NS_PER_SECOND)
#define LONGEST_PAUSE_NS (10 * NS_PER_SECOND)
// OTLP's table of failures that may pass: CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE,
// UNAVAILABLE, DATA_LOSS.
#define PASSING (1u << 1 | 1u << 4 | 1u << 10 | 1u << 11 | 1u << 14 | 1u << 15)

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse Response;
#define RESPONSE                                                                                   \
	(&opentelemetry__proto__collector__trace__v1__export_trace_service_response__descriptor)

struct batch {
	uint8_t *bytes; // owned
	size_t len;
	uint32_t n_spans;
	uint64_t made_ns;
};

struct trace_exporter {
	struct trace_exporter_conf conf;
	// What the next batch is made of.
	uint32_t n;
	uint64_t first_ns; // when the first of these was taken
	uint32_t worker; // whose ring is next
	struct span_source sources[TRACE_BATCH];
	struct lb_trace_record *records; // owned; [TRACE_BATCH]
	// Those that wait, the oldest at `head`.
	struct batch queue[TRACE_QUEUE];
	uint32_t head, n_queued;
	size_t n_bytes;
	bool under_way; // the oldest
	uint64_t retry_ns;
	struct backoff backoff;
	struct trace_numbers numbers;
	uint64_t told_lost, told_ns;
	char why[128]; // of the newest failure
};

struct trace_exporter *trace_exporter_new(const struct trace_exporter_conf *conf)
{
	struct trace_exporter *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->conf = *conf;
	e->records = calloc(TRACE_BATCH, sizeof(*e->records));
	if (e->records)
		return e;
	free(e);
	return NULL;
}

void trace_exporter_free(struct trace_exporter *e)
{
	if (!e)
		return;
	for (uint32_t i = 0; i < e->n_queued; i++)
		free(e->queue[(e->head + i) % TRACE_QUEUE].bytes);
	free(e->records);
	free(e);
}

static void drop_oldest(struct trace_exporter *e)
{
	struct batch *b = &e->queue[e->head];
	e->n_bytes -= b->len;
	free(b->bytes);
	e->head = (e->head + 1) % TRACE_QUEUE;
	e->n_queued--;
}

static void gather_of(struct trace_exporter *e, uint32_t worker, uint64_t now_ns, uint64_t wall_ns)
{
	struct lb_trace_record *r = &e->records[e->n];
	for (; e->n < TRACE_BATCH && spsc_read(&e->conf.workers[worker]->ring, r); r++) {
		uint32_t f = r->access.frontend;
		if (!e->n)
			e->first_ns = now_ns;
		e->sources[e->n++] = (struct span_source){.record = r,
			.frontend = f < e->conf.n_frontends ? e->conf.frontends[f] : "",
			.worker = worker,
			.began_wall_ns = wall_ns - (now_ns - r->access.brief.began_ns)};
	}
}

// What workers told, as much as the batch has room for; the next one begins behind the worker that
// filled it.
static void gather(struct trace_exporter *e, uint64_t now_ns)
{
	uint64_t wall_ns = e->conf.wall_ns();
	for (uint32_t i = 0; i < e->conf.n_workers && e->n < TRACE_BATCH; i++) {
		gather_of(e, e->worker, now_ns, wall_ns);
		e->worker = (e->worker + 1) % e->conf.n_workers;
	}
}

static void finish_batch(struct trace_exporter *e, uint64_t now_ns)
{
	const struct span_service service = {e->conf.service_name, e->conf.version, e->conf.host};
	struct batch b = {.made_ns = now_ns};
	for (uint32_t i = 0; i < e->n; i++)
		b.n_spans += spans_count(e->sources[i].record);
	uint32_t n = e->n;
	e->n = 0;
	if (e->n_queued == TRACE_QUEUE || spans_pack(&service, e->sources, n, &b.bytes, &b.len)) {
		e->numbers.n_queue += b.n_spans;
		return;
	}
	if (e->n_bytes + b.len > TRACE_QUEUE_BYTES) {
		e->numbers.n_queue += b.n_spans;
		free(b.bytes);
		return;
	}
	e->queue[(e->head + e->n_queued++) % TRACE_QUEUE] = b;
	e->n_bytes += b.len;
}

static void drop_late(struct trace_exporter *e, uint64_t now_ns)
{
	while (e->n_queued && !e->under_way &&
		now_ns - e->queue[e->head].made_ns > TRACE_TRIES_NS) {
		e->numbers.n_refused += e->queue[e->head].n_spans;
		drop_oldest(e);
	}
}

static uint64_t n_lost(const struct trace_exporter *e)
{
	const struct trace_numbers n = trace_exporter_numbers(e);
	return n.n_ring + n.n_queue + n.n_refused;
}

static void tell(struct trace_exporter *e, uint64_t now_ns)
{
	uint64_t lost = n_lost(e);
	if (lost == e->told_lost || now_ns < e->told_ns)
		return;
	log_warn("traces lost", "lost=%" PRIu64 " waiting=%u error=%s", lost - e->told_lost,
		e->n_queued, log_quote(e->why));
	e->told_lost = lost;
	e->told_ns = now_ns + QUIET_NS;
}

void trace_exporter_tick(struct trace_exporter *e)
{
	if (!e)
		return;
	uint64_t now_ns = e->conf.clock_ns();
	gather(e, now_ns);
	if (e->n == TRACE_BATCH || (e->n && now_ns - e->first_ns >= TRACE_WAIT_NS))
		finish_batch(e, now_ns);
	drop_late(e, now_ns);
	tell(e, now_ns);
	if (!e->n_queued || e->under_way || now_ns < e->retry_ns)
		return;
	e->under_way = true;
	e->conf.send(e->conf.ctx, e->queue[e->head].bytes, e->queue[e->head].len);
}

// What the collector says that it did not take of a request.
static uint64_t n_rejected(const uint8_t *answer, size_t len)
{
	Response *r = proto_unpack(RESPONSE, answer, len, NULL);
	int64_t n = r && r->partial_success ? r->partial_success->rejected_spans : 0;
	proto_free(r);
	return n > 0 ? (uint64_t)n : 0;
}

static void note_failure(struct trace_exporter *e, int status, const char *text)
{
	snprintf(e->why, sizeof(e->why), "status %d: %.100s", status, text);
	if (!e->numbers.is_failing)
		log_warn("traces not sent", "error=%s", log_quote(e->why));
	e->numbers.is_failing = true;
}

void trace_exporter_sent(
	struct trace_exporter *e, int status, const char *text, const uint8_t *answer, size_t len)
{
	uint64_t now_ns = e->conf.clock_ns(), n = e->queue[e->head].n_spans;
	e->under_way = false;
	if (status == 0) {
		uint64_t rejected = min_u64(n_rejected(answer, len), n);
		e->numbers.n_sent += n - rejected;
		e->numbers.n_refused += rejected;
		if (e->numbers.is_failing)
			log_info("traces sent again", "waiting=%u", e->n_queued);
		e->numbers.is_failing = false;
		e->retry_ns = 0;
		backoff_reset(&e->backoff);
		drop_oldest(e);
		return;
	}
	note_failure(e, status, text);
	e->retry_ns =
		now_ns + min_u64(backoff_next_ns(&e->backoff, e->conf.rand), LONGEST_PAUSE_NS);
	if ((unsigned)status < 32 && PASSING >> status & 1)
		return;
	e->numbers.n_refused += n;
	drop_oldest(e);
}

struct trace_numbers trace_exporter_numbers(const struct trace_exporter *e)
{
	struct trace_numbers n = e->numbers;
	for (uint32_t w = 0; w < e->conf.n_workers; w++)
		n.n_ring += counter_read(&e->conf.workers[w]->n_dropped);
	n.n_waiting = e->n_queued;
	return n;
}
