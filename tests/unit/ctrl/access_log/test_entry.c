// SPDX-License-Identifier: Apache-2.0
// Records as entries for a service; that Envoy makes the same of the same requests is for
// tests/integ/test_access_log_grpc.py to say.
#include "ctrl/access_log/entry.h"
#include "envoy/service/accesslog/v3/als.pb-c.h"
#include "lb/base/time.h"
#include "proto/wire.h"
#include "tests/support/check.h"

#include <string.h>

typedef Envoy__Service__Accesslog__V3__StreamAccessLogsMessage__HTTPAccessLogEntries Entries;
typedef Envoy__Data__Accesslog__V3__HTTPAccessLogEntry Entry;
typedef Envoy__Data__Accesslog__V3__ResponseFlags Flags;
#define ENTRIES                                                                                    \
	(&envoy__service__accesslog__v3__stream_access_logs_message__httpaccess_log_entries__descriptor)
#define BEGAN_S 1700000000

static struct lb_access_record record;
static char bytes[ACCESS_LINE_MAX];
static struct access_line line;
static Entries *entries;

static int set_up(void **state)
{
	lb_access_begin(&record);
	record.brief = (struct lb_access_brief){.began_ns = 5 * NS_PER_SECOND,
		.ended_ns = 7 * NS_PER_SECOND + 30,
		.status = 200,
		.grpc_status = LB_ACCESS_NO_GRPC};
	record.protocol = 20;
	record.client = (struct ip_port){ip_from_v4(0x0a000001), 4000};
	line = (struct access_line){.p = bytes, .size = sizeof(bytes)};
	return 0;
}

static int tear_down(void **state)
{
	proto_free(entries);
	entries = NULL;
	return 0;
}

static void write_entry(const char *form)
{
	struct access_entry_form *f = NULL;
	struct lb_err err = {.text = ""};
	const struct access_view v = {.record = &record,
		.frontend = "web",
		.local = {ip_from_v4(0x0a000002), 443},
		.began_wall_ns = BEGAN_S * NS_PER_SECOND + 7};
	if (access_entry_form_new(form, &f, &err))
		fail_msg("%s", err.text);
	access_entry_write(f, &v, &line);
	access_entry_form_free(f);
}

static const Entry *only(const char *form)
{
	write_entry(form);
	assert_int_equal(access_entry_count(bytes, line.len), 1);
	proto_free(entries);
	entries = proto_unpack(ENTRIES, (uint8_t *)bytes, line.len, NULL);
	assert_non_null(entries);
	assert_int_equal(entries->n_log_entry, 1);
	return entries->log_entry[0];
}

static void put(enum lb_access_text which, const char *text)
{
	lb_access_put(&record, which, str_from(text));
}

// OPS-216
static void an_entry_has_what_is_known_of_the_request(void **state)
{
	put(LB_ACCESS_METHOD, "POST");
	put(LB_ACCESS_PATH, "/a?b");
	put(LB_ACCESS_AUTHORITY, "example.org");
	put(LB_ACCESS_USER_AGENT, "curl");
	put(LB_ACCESS_REQUEST_ID, "id-1");
	put(LB_ACCESS_FORWARDED_FOR, "10.0.0.9");
	put(LB_ACCESS_CLUSTER, "blue");
	put(LB_ACCESS_ROUTE, "the-route");
	record.received_ns = 6 * NS_PER_SECOND;
	record.answered_ns = 6 * NS_PER_SECOND + 5;
	record.body_in = 11;
	record.body_out = 12;
	record.head_in = 13;
	record.is_tls = true;
	record.n_attempts = 2;
	record.backend = (struct ip_port){ip_from_v4(0x0a000003), 80};
	const Entry *e = only("");
	assert_string_equal(e->request->path, "/a?b");
	assert_string_equal(e->request->authority, "example.org");
	assert_string_equal(e->request->scheme, "https");
	assert_string_equal(e->request->user_agent, "curl");
	assert_string_equal(e->request->request_id, "id-1");
	assert_string_equal(e->request->forwarded_for, "10.0.0.9");
	assert_int_equal(e->request->request_method, 3); // POST
	assert_int_equal(e->request->request_body_bytes, 11);
	assert_int_equal(e->request->request_headers_bytes, 13);
	assert_int_equal(e->response->response_body_bytes, 12);
	assert_int_equal(e->response->response_code->value, 200);
	assert_string_equal(e->response->response_code_details, "via_upstream");
	assert_int_equal(e->protocol_version, 3); // HTTP2
	const Envoy__Data__Accesslog__V3__AccessLogCommon *c = e->common_properties;
	assert_string_equal(c->upstream_cluster, "blue");
	assert_string_equal(c->route_name, "the-route");
	assert_string_equal(c->stream_id, "id-1");
	assert_int_equal(c->upstream_request_attempt_count, 2);
	assert_int_equal(c->start_time->seconds, BEGAN_S);
	assert_int_equal(c->start_time->nanos, 7);
	assert_int_equal(c->duration->seconds, 2);
	assert_int_equal(c->duration->nanos, 30);
	assert_int_equal(c->time_to_last_rx_byte->seconds, 1);
	assert_int_equal(c->time_to_first_upstream_rx_byte->nanos, 5);
	assert_string_equal(c->downstream_remote_address->socket_address->address, "10.0.0.1");
	assert_int_equal(c->downstream_direct_remote_address->socket_address->port_value, 4000);
	assert_int_equal(c->downstream_local_address->socket_address->port_value, 443);
	assert_string_equal(c->upstream_remote_address->socket_address->address, "10.0.0.3");
	assert_null(c->response_flags);
	assert_int_equal(c->access_log_type, 6); // DownstreamEnd
}

// OPS-216
static void what_a_request_has_not_is_not_there(void **state)
{
	record.brief.status = 0;
	record.brief.cause = LB_CAUSE_CLIENT_LOST;
	const Entry *e = only("request traceparent\nrequest x-envoy-original-path\nresponse "
			      ":status\nresponse grpc-status\ntrailers grpc-status\n");
	assert_null(e->response->response_code);
	assert_null(e->common_properties->upstream_remote_address);
	assert_null(e->common_properties->time_to_last_rx_byte);
	assert_null(e->common_properties->time_to_first_upstream_rx_byte);
	assert_null(e->common_properties->time_to_last_downstream_tx_byte);
	assert_int_equal(e->request->n_request_headers, 0);
	assert_int_equal(e->response->n_response_headers, 0);
	assert_int_equal(e->response->n_response_trailers, 0);
	assert_int_equal(e->request->request_method, 0);
	assert_true(e->common_properties->response_flags->downstream_connection_termination);
}

static unsigned n_flags(const Flags *f)
{
	unsigned n = 0;
	for (size_t at = sizeof(f->base); f && at < sizeof(*f); at += sizeof(protobuf_c_boolean))
		n += *(const protobuf_c_boolean *)((const char *)f + at) != 0;
	return n;
}

// OPS-216: each cause has one flag, or none where Envoy has no such message.
static void a_cause_has_the_flag_that_envoy_has_for_it(void **state)
{
	static const enum lb_cause without[] = {LB_CAUSE_OK, LB_CAUSE_NO_ACTION,
		LB_CAUSE_UPSTREAM_TOO_LARGE, LB_CAUSE_OVER_SHARE, LB_CAUSE_DROPPED, LB_CAUSE_DENIED,
		LB_CAUSE_CLIENT_SLOW, LB_CAUSE_KILLED, LB_CAUSE_DRAINED};
	for (int cause = 0; cause < LB_N_CAUSES; cause++) {
		bool has = true;
		for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
			has &= without[i] != (enum lb_cause)cause;
		line.len = 0;
		record.brief.cause = (uint8_t)cause;
		const Flags *f = only("")->common_properties->response_flags;
		if (n_flags(f) != has)
			fail_msg("%s has %u flags", lb_cause_info(cause)->name, n_flags(f));
	}
	record.brief.cause = LB_CAUSE_TIMEOUT;
	line.len = 0;
	assert_true(only("")->common_properties->response_flags->upstream_request_timeout);
}

// OPS-301
static void a_delay_by_a_fault_has_a_flag_beside_that_of_the_cause(void **state)
{
	record.brief.delayed = true;
	const Flags *f = only("")->common_properties->response_flags;
	assert_true(f->delay_injected);
	assert_int_equal(n_flags(f), 1);
	record.brief.cause = LB_CAUSE_FAULT;
	line.len = 0;
	f = only("")->common_properties->response_flags;
	assert_true(f->delay_injected && f->fault_injected);
	assert_int_equal(n_flags(f), 2);
}

// OPS-216
static void headers_are_those_that_are_asked_for(void **state)
{
	put(LB_ACCESS_PATH, "/p");
	put(LB_ACCESS_TRACEPARENT, "00-1-2-01");
	record.brief.grpc_status = 5;
	const Entry *e = only("request traceparent\nresponse :status\ntrailers grpc-status\n");
	assert_int_equal(e->request->n_request_headers, 1);
	assert_string_equal(e->request->request_headers[0]->key, "traceparent");
	assert_string_equal(e->request->request_headers[0]->value, "00-1-2-01");
	assert_string_equal(e->response->response_headers[0]->key, ":status");
	assert_string_equal(e->response->response_headers[0]->value, "200");
	assert_string_equal(e->response->response_trailers[0]->key, "grpc-status");
	assert_string_equal(e->response->response_trailers[0]->value, "5");
}

// OPS-216, OPS-37: protobuf's texts are UTF-8.
static void whatever_clients_send_an_entry_is_well_formed(void **state)
{
	char long_path[600];
	memset(long_path, '\xff', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	put(LB_ACCESS_PATH, long_path);
	put(LB_ACCESS_METHOD, long_path);
	put(LB_ACCESS_AUTHORITY, long_path);
	put(LB_ACCESS_USER_AGENT, long_path);
	put(LB_ACCESS_REQUEST_ID, long_path);
	put(LB_ACCESS_TRACEPARENT, long_path);
	put(LB_ACCESS_FORWARDED_FOR, long_path);
	put(LB_ACCESS_CLUSTER, long_path);
	put(LB_ACCESS_ROUTE, long_path);
	record.protocol = 11;
	const Entry *e = only("request :path\nrequest :method\nrequest :authority\nrequest "
			      "user-agent\nrequest x-request-id\nrequest traceparent\nrequest "
			      "x-forwarded-for\n");
	assert_int_equal(e->request->n_request_headers, 7);
	assert_int_equal(strlen(e->request->path), 384 * 3 + 3);
	assert_string_equal(e->request->path + 384 * 3, "...");
	assert_int_equal(e->protocol_version, 2);
}

static void several_entries_are_a_message(void **state)
{
	put(LB_ACCESS_PATH, "/a");
	for (unsigned i = 0; i < 3; i++)
		write_entry("");
	assert_int_equal(access_entry_count(bytes, line.len), 3);
	entries = proto_unpack(ENTRIES, (uint8_t *)bytes, line.len, NULL);
	assert_int_equal(entries->n_log_entry, 3);
	assert_string_equal(entries->log_entry[2]->request->path, "/a");
}

static void a_form_of_what_is_not_kept_is_an_error(void **state)
{
	static const struct {
		const char *form, *says;
	} rows[] = {
		{"request cookie\n", "'cookie' is not kept; kept are :method"},
		{"trailers :status\n", "':status' is not kept; kept are grpc-status"},
		{"cookie\n", "'cookie' is no header of an entry"},
		{"request\n", "'' is not kept"},
		{"\n", "'' is no header of an entry"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct access_entry_form *f = NULL;
		struct lb_err err = {.text = ""};
		assert_int_not_equal(access_entry_form_new(rows[i].form, &f, &err), 0);
		if (!strstr(err.text, rows[i].says))
			fail_msg("%s: %s", rows[i].form, err.text);
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

RUN_SUITE("ctrl/access_log/entry", CASE(an_entry_has_what_is_known_of_the_request),
	CASE(what_a_request_has_not_is_not_there), CASE(a_cause_has_the_flag_that_envoy_has_for_it),
	CASE(a_delay_by_a_fault_has_a_flag_beside_that_of_the_cause),
	CASE(headers_are_those_that_are_asked_for),
	CASE(whatever_clients_send_an_entry_is_well_formed), CASE(several_entries_are_a_message),
	CASE(a_form_of_what_is_not_kept_is_an_error))
