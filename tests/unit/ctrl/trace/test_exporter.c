// SPDX-License-Identifier: Apache-2.0
// The exporter in virtual time, before a collector that the test plays.
#include "ctrl/trace/exporter.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/pick/trace.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.pb-c.h"
#include "proto/wire.h"
#include "tests/support/check.h"

#include <stdlib.h>
#include <string.h>

#define UNAVAILABLE 14
#define INVALID 3

typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceRequest Request;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTraceServiceResponse Response;
typedef Opentelemetry__Proto__Collector__Trace__V1__ExportTracePartialSuccess Partial;

static uint64_t now_ns;
static struct rand chance;
static struct lb_trace *rings[2];
static struct trace_exporter *exporter;
static uint32_t n_requests;
static size_t n_spans; // of the newest request
static bool under_way;

static uint64_t clock_ns(void)
{
	return now_ns;
}

static void on_send(void *ctx, const uint8_t *bytes, size_t len)
{
	Request *r = proto_unpack(
		&opentelemetry__proto__collector__trace__v1__export_trace_service_request__descriptor,
		bytes, len, NULL);
	assert_non_null(r);
	assert_false(under_way);
	n_spans = r->resource_spans[0]->scope_spans[0]->n_spans;
	proto_free(r);
	under_way = true;
	n_requests++;
}

static int setup(void **state)
{
	static const char *const frontends[] = {"web"};
	log_set_level(LOG_LEVEL_ERROR);
	now_ns = 1000 * NS_PER_SECOND;
	rand_init(&chance, 1);
	rings[0] = lb_trace_new();
	rings[1] = lb_trace_new();
	n_requests = 0;
	under_way = false;
	const struct trace_exporter_conf conf = {
		.workers = rings,
		.n_workers = 2,
		.frontends = frontends,
		.n_frontends = 1,
		.service_name = "s",
		.version = "1",
		.host = "h",
		.clock_ns = clock_ns,
		.wall_ns = clock_ns,
		.rand = &chance,
		.send = on_send,
	};
	exporter = trace_exporter_new(&conf);
	return rings[0] && rings[1] && exporter ? 0 : -1;
}

static int teardown(void **state)
{
	trace_exporter_free(exporter);
	lb_trace_free(rings[0]);
	lb_trace_free(rings[1]);
	return 0;
}

static void tell(uint32_t worker, uint32_t n)
{
	for (; n; n--) {
		struct lb_trace_record *r = lb_trace_place(rings[worker]);
		if (!r)
			continue;
		memset(r, 0, sizeof(*r));
		r->ids.low = r->ids.span = 1;
		r->access.brief.began_ns = r->access.brief.ended_ns = now_ns;
		r->access.brief.grpc_status = LB_ACCESS_NO_GRPC;
		lb_trace_told(rings[worker]);
	}
}

static void after(uint64_t ns)
{
	now_ns += ns;
	trace_exporter_tick(exporter);
}

static void answer(int status)
{
	assert_true(under_way);
	under_way = false;
	trace_exporter_sent(exporter, status, "text", (const uint8_t *)"", 0);
}

static struct trace_numbers numbers(void)
{
	return trace_exporter_numbers(exporter);
}

static void ops_167_batches_go_when_they_are_full_or_have_waited(void **state)
{
	tell(0, 3);
	tell(1, 2);
	after(0);
	assert_int_equal(n_requests, 0);
	after(TRACE_WAIT_NS);
	assert_int_equal(n_requests, 1);
	assert_int_equal(n_spans, 5);
	tell(0, TRACE_BATCH + 1);
	after(0);
	assert_int_equal(n_requests, 1); // one after the other
	answer(0);
	after(0);
	assert_int_equal(n_requests, 2);
	assert_int_equal(n_spans, TRACE_BATCH);
	answer(0);
	after(TRACE_WAIT_NS);
	assert_int_equal(n_spans, 1);
	answer(0);
	assert_int_equal(numbers().n_sent, 5 + TRACE_BATCH + 1);
	assert_int_equal(numbers().n_waiting, 0);
}

static void ops_169_batches_have_room_for_each_worker(void **state)
{
	tell(0, 3 * TRACE_BATCH);
	tell(1, 1);
	after(0);
	after(0);
	assert_true(spsc_is_empty(&rings[1]->ring));
}

static void ops_168_a_collector_that_is_away_is_tried_again(void **state)
{
	tell(0, 1);
	after(0);
	after(TRACE_WAIT_NS);
	answer(UNAVAILABLE);
	assert_true(numbers().is_failing);
	after(NS_PER_SECOND / 2);
	assert_int_equal(n_requests, 1); // not at once
	after(NS_PER_SECOND);
	assert_int_equal(n_requests, 2);
	answer(0);
	assert_int_equal(numbers().n_sent, 1);
	assert_int_equal(numbers().n_refused, 0);
	assert_false(numbers().is_failing);
}

static void ops_168_a_batch_is_given_up_in_time(void **state)
{
	tell(0, 4);
	after(0);
	after(TRACE_WAIT_NS);
	uint64_t made_ns = now_ns;
	for (; now_ns - made_ns <= TRACE_TRIES_NS; after(NS_PER_SECOND))
		if (under_way)
			answer(UNAVAILABLE);
	if (under_way)
		answer(UNAVAILABLE);
	after(0);
	assert_int_equal(numbers().n_waiting, 0);
	assert_int_equal(numbers().n_refused, 4);
	assert_in_range(n_requests, 5, 30);
}

static void ops_168_what_a_collector_refuses_is_not_sent_again(void **state)
{
	tell(0, 2);
	after(0);
	after(TRACE_WAIT_NS);
	answer(INVALID);
	assert_int_equal(numbers().n_refused, 2);
	assert_int_equal(numbers().n_waiting, 0);
}

static void ops_168_spans_that_a_collector_rejects_are_counted(void **state)
{
	Response r =
		OPENTELEMETRY__PROTO__COLLECTOR__TRACE__V1__EXPORT_TRACE_SERVICE_RESPONSE__INIT;
	Partial p;
	opentelemetry__proto__collector__trace__v1__export_trace_partial_success__init(&p);
	uint8_t *bytes;
	size_t len;
	p.rejected_spans = 2;
	r.partial_success = &p;
	assert_int_equal(proto_pack(&r.base, &bytes, &len), 0);
	tell(0, 5);
	after(0);
	after(TRACE_WAIT_NS);
	trace_exporter_sent(exporter, 0, "", bytes, len);
	free(bytes);
	assert_int_equal(numbers().n_sent, 3);
	assert_int_equal(numbers().n_refused, 2);
}

static void ops_169_the_queue_and_the_rings_are_bounded_and_count_what_they_drop(void **state)
{
	for (int i = 0; i < TRACE_QUEUE + 3; i++) {
		tell(0, TRACE_BATCH);
		after(0);
	}
	assert_int_equal(numbers().n_waiting, TRACE_QUEUE);
	assert_int_equal(numbers().n_queue, 3 * TRACE_BATCH);
	tell(1, LB_TRACE_RECORDS + 7);
	assert_int_equal(numbers().n_ring, 7);
	for (int i = 0; i < TRACE_QUEUE; i++) {
		answer(0);
		after(0);
	}
	assert_int_equal(numbers().n_sent, TRACE_QUEUE * TRACE_BATCH);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
RUN_SUITE("ctrl/trace/exporter", CASE(ops_167_batches_go_when_they_are_full_or_have_waited),
	CASE(ops_169_batches_have_room_for_each_worker),
	CASE(ops_168_a_collector_that_is_away_is_tried_again),
	CASE(ops_168_a_batch_is_given_up_in_time),
	CASE(ops_168_what_a_collector_refuses_is_not_sent_again),
	CASE(ops_168_spans_that_a_collector_rejects_are_counted),
	CASE(ops_169_the_queue_and_the_rings_are_bounded_and_count_what_they_drop))
