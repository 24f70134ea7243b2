// SPDX-License-Identifier: Apache-2.0
// The status port by real gRPC over loopback, in one thread and with a clock of its own: what calls
// get, and that callers who read slowly, ask wrongly or stay for ever cost a bounded amount.
#include "ctrl/rpc/server.h"
#include "ctrl/status/csds_dump.h"
#include "ctrl/status/status_server.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/client.h"
#include "envoy/service/status/v3/csds.pb-c.h"
#include "grpc/health/v1/health.pb-c.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "lb/base/err.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/support/rpc_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define FETCH "/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus"
#define STREAM "/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus"
#define CHECK_METHOD "/grpc.health.v1.Health/Check"
#define WATCH "/grpc.health.v1.Health/Watch"
#define REFLECT "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
#define REFLECT_ALPHA "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
#define CANCELLED 1
#define MAX_UNREAD_LEN (4 * MIB)
#define BOOTSTRAP                                                                                  \
	"{\"xds_servers\":[{\"server_uri\":\"ads:1\",\"channel_creds\":[{\"type\":\"insecure\"}]}" \
	"],"                                                                                       \
	"\"node\":{\"id\":\"me\"}}"

typedef Envoy__Service__Status__V3__ClientStatusResponse Dump;
typedef Envoy__Service__Status__V3__ClientStatusRequest DumpRequest;
typedef Grpc__Reflection__V1__ServerReflectionRequest Question;
typedef Grpc__Reflection__V1__ServerReflectionResponse Answer;

static const struct xds_type toy = {.url = "type.googleapis.com/toy.Toy", .label = "toy"};

struct world {
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	uint64_t now_ns;
	int listener;
	struct status_server *server; // NULL = it has ended
	struct rpc_client *client;
	struct xds_res *res; // of every resource
	unsigned n_resources;
	unsigned n_dumps; // begun
	unsigned n_turns;
};

static uint64_t wall_ns(void)
{
	return 1700000000 * S;
}

// Megabytes through libgrpc: ThreadSanitizer takes minutes for each.
static bool is_too_slow(void)
{
#ifdef __SANITIZE_THREAD__
	return true;
#else
	return false;
#endif
}

static void each(void *ctx, void (*fn)(void *, const struct xds_entry_info *), void *fn_ctx)
{
	struct world *w = ctx;
	w->n_dumps++;
	for (unsigned i = 0; i < w->n_resources; i++)
		fn(fn_ctx, &(struct xds_entry_info){.type = &toy,
				   .name = "thing",
				   .status = XDS_STATUS_ACKED,
				   .res = w->res,
				   .version = "1",
				   .updated_ns = w->now_ns,
				   .error = "",
				   .error_version = ""});
}

static void serve(void *ctx)
{
	struct world *w = ctx;
	w->n_turns++;
	if (!w->server)
		return;
	int fd = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0)
		status_server_connect(w->server, fd);
	struct pollfd p = {.fd = status_server_fd(w->server), .events = POLLIN};
	if (poll(&p, 1, 0) > 0)
		status_server_dispatch(w->server);
	twheel_advance(w->wheel, w->now_ns);
}

// Returns the port.
static int listen_somewhere(struct world *w)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	w->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(w->listener, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(w->listener, 8), 0);
	assert_int_equal(getsockname(w->listener, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static int world_init(void **state)
{
	struct lb_err err = {0};
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	w->now_ns = 1000 * S;
	assert_int_equal(
		xds_bootstrap_parse(BOOTSTRAP, strlen(BOOTSTRAP), "test", &w->bootstrap, &err), 0);
	w->wheel = twheel_new(w->now_ns);
	assert_non_null(w->wheel);
	struct status_server_conf conf = {.bootstrap = w->bootstrap,
		.user_agent_version = "1.2.3",
		.wheel = w->wheel,
		.max_unread_len = MAX_UNREAD_LEN,
		.wall_ns = wall_ns,
		.each = each,
		.ctx = w};
	assert_int_equal(status_server_new(&conf, &w->server), 0);
	w->client = rpc_client_new(listen_somewhere(w), serve, w);
	*state = w;
	return 0;
}

static int world_fini(void **state)
{
	struct world *w = *state;
	rpc_client_free(w->client);
	status_server_free(w->server);
	close(w->listener);
	xds_res_put(w->res);
	twheel_free(w->wheel);
	xds_bootstrap_free(w->bootstrap);
	free(w);
	return 0;
}

// n resources of len bytes.
static void hold(struct world *w, unsigned n, size_t len)
{
	uint8_t *bytes = calloc(1, len + 1);
	assert_non_null(bytes);
	w->res = xds_res_new(&toy, sizeof(struct xds_res), "thing", bytes, len);
	assert_non_null(w->res);
	w->n_resources = n;
	free(bytes);
}

static struct rpc_client_call *ask(
	struct world *w, const char *method, const void *bytes, size_t len)
{
	struct rpc_client_call *c = client_call_begin(w->client, method);
	client_call_say(c, bytes, len);
	return c;
}

static void assert_ends(struct rpc_client_call *c, int status, const char *word)
{
	const char *text;
	size_t len;
	uint8_t *more = client_call_hear(c, &len);
	assert_null(more);
	assert_int_equal(client_call_status(c, &text), status);
	if (!strstr(text, word))
		fail_msg("\"%s\" lacks \"%s\"", text, word);
	client_call_free(c);
}

// CSDS

static void await_dumps(struct world *w, unsigned n)
{
	for (unsigned i = 0; w->n_dumps < n; i++) {
		assert_true(i < 30000);
		rpc_client_turns(w->client, 1);
	}
}

static size_t hear_dump(struct rpc_client_call *c, unsigned n_entries)
{
	size_t len;
	uint8_t *bytes = client_call_hear(c, &len);
	assert_non_null(bytes);
	Dump *m = envoy__service__status__v3__client_status_response__unpack(NULL, len, bytes);
	free(bytes);
	assert_non_null(m);
	assert_int_equal(m->n_config, 1);
	assert_string_equal(m->config[0]->node->id, "me");
	assert_int_equal(m->config[0]->n_generic_xds_configs, n_entries);
	envoy__service__status__v3__client_status_response__free_unpacked(m, NULL);
	return len;
}

static void CS_01_fetch_answers_once_and_ends(void **state)
{
	struct world *w = *state;
	hold(w, 3, 10);
	struct rpc_client_call *c = ask(w, FETCH, "", 0);
	client_call_half_close(c);
	hear_dump(c, 3);
	assert_ends(c, RPC_OK, "");
}

static void CS_01_stream_answers_each_request_once_and_pushes_nothing(void **state)
{
	struct world *w = *state;
	hold(w, 2, 10);
	struct rpc_client_call *c = client_call_begin(w->client, STREAM);
	client_call_listen(c);
	rpc_client_turns(w->client, 20);
	assert_false(client_call_heard(c));
	for (unsigned i = 0; i < 3; i++) {
		client_call_say(c, (const uint8_t *)"", 0);
		hear_dump(c, 2);
	}
	client_call_listen(c);
	rpc_client_turns(w->client, 20);
	assert_false(client_call_heard(c));
	client_call_half_close(c);
	assert_ends(c, RPC_OK, "");
	assert_int_equal(w->n_dumps, 3);
}

static void requests_that_came_before_the_half_close_are_answered(void **state)
{
	struct world *w = *state;
	hold(w, 2, 10);
	struct rpc_client_call *c = client_call_begin(w->client, STREAM);
	for (unsigned i = 0; i < 4; i++)
		client_call_say(c, (const uint8_t *)"", 0);
	client_call_half_close(c);
	for (unsigned i = 0; i < 4; i++)
		hear_dump(c, 2);
	assert_ends(c, RPC_OK, "");
}

static void CS_01_node_matchers_are_an_invalid_argument(void **state)
{
	static const uint8_t request[] = {0x0a, 0x00}; // node_matchers: [{}]
	struct world *w = *state;
	assert_ends(ask(w, FETCH, request, 2), RPC_INVALID_ARGUMENT, "node_matchers");
	assert_ends(ask(w, STREAM, request, 2), RPC_INVALID_ARGUMENT, "node_matchers");
	assert_int_equal(w->n_dumps, 0);
}

static void CS_08_contents_are_left_out_when_asked(void **state)
{
	static const uint8_t request[] = {0x18, 0x01}; // exclude_resource_contents: true
	struct world *w = *state;
	hold(w, 3, 10 * KIB);
	struct rpc_client_call *c = ask(w, FETCH, request, 2);
	assert_true(hear_dump(c, 3) < KIB);
	assert_ends(c, RPC_OK, "");
}

static void what_is_no_request_is_an_invalid_argument(void **state)
{
	static const uint8_t junk[] = {0x0a, 0xff, 0xff, 0xff, 0xff};
	struct world *w = *state;
	static const char *const methods[] = {
		FETCH, STREAM, CHECK_METHOD, WATCH, REFLECT, REFLECT_ALPHA};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		assert_ends(ask(w, methods[i], junk, sizeof(junk)), RPC_INVALID_ARGUMENT, "");
	static const char *const unary[] = {FETCH, CHECK_METHOD, WATCH};
	for (size_t i = 0; i < sizeof(unary) / sizeof(unary[0]); i++) {
		struct rpc_client_call *c = client_call_begin(w->client, unary[i]);
		client_call_half_close(c);
		assert_ends(c, RPC_INVALID_ARGUMENT, "no request");
	}
	struct rpc_client_call *c = client_call_begin(w->client, "/grpc.health.v1.Health/Chuck");
	assert_ends(c, RPC_UNIMPLEMENTED, "");
}

static void too_long_requests_end_their_call(void **state)
{
	struct world *w = *state;
	static const uint8_t much[100 << 10];
	struct rpc_client_call *c = ask(w, CHECK_METHOD, much, sizeof(much));
	assert_ends(c, RPC_RESOURCE_EXHAUSTED, "");
}

// Each turn of the loop encodes a slice, so that other work has its turn in between.
static void a_large_response_takes_many_turns_of_the_loop(void **state)
{
	struct world *w = *state;
	if (is_too_slow())
		skip();
	hold(w, 320, 16 * KIB);
	struct rpc_client_call *c = ask(w, FETCH, "", 0);
	await_dumps(w, 1);
	unsigned before = w->n_turns;
	assert_true(hear_dump(c, 320) > 5 * MIB);
	assert_true(w->n_turns - before >= 19);
	assert_ends(c, RPC_OK, "");
}

static void a_caller_that_goes_away_costs_the_others_nothing(void **state)
{
	struct world *w = *state;
	if (is_too_slow())
		skip();
	hold(w, 320, 16 * KIB);
	struct rpc_client_call *making = ask(w, FETCH, "", 0);
	await_dumps(w, 1);
	struct rpc_client_call *waiting = ask(w, STREAM, "", 0);
	struct rpc_client_call *last = ask(w, FETCH, "", 0);
	rpc_client_turns(w->client, 10);
	client_call_free(making);
	client_call_free(waiting);
	hear_dump(last, 320);
	assert_ends(last, RPC_OK, "");
}

// Who asks and does not read holds one response, for half a minute.
static void a_caller_that_does_not_read_is_cut(void **state)
{
	struct world *w = *state;
	if (is_too_slow())
		skip();
	hold(w, 100, 10 * KIB);
	struct rpc_client_call *c = client_call_begin(w->client, STREAM);
	client_call_say(c, (const uint8_t *)"", 0);
	client_call_say(c, (const uint8_t *)"", 0);
	await_dumps(w, 1);
	rpc_client_turns(w->client, 100); // some five make the response and send it
	assert_int_equal(w->n_dumps, 1); // the second request is not looked at
	w->now_ns += 29 * S;
	rpc_client_turns(w->client, 10);
	assert_false(client_call_over(c));
	w->now_ns += 2 * S;
	rpc_client_turns(w->client, 50);
	assert_ends(c, CANCELLED, "");
}

// TH-62
static void responses_that_nobody_reads_keep_others_waiting_and_memory_bounded(void **state)
{
	struct world *w = *state;
	if (is_too_slow())
		skip();
	struct rpc_client_call *calls[6];
	hold(w, 24, 64 * KIB); // 1.5 MiB
	for (unsigned i = 0; i < 6; i++) {
		calls[i] = ask(w, FETCH, "", 0);
		if (i < 3) // calls may overtake each other
			await_dumps(w, i + 1);
	}
	rpc_client_turns(w->client, 500);
	assert_int_equal(w->n_dumps, 3); // three are more than it
	w->n_resources = 1;
	w->now_ns += 31 * S;
	rpc_client_turns(w->client, 50);
	for (unsigned i = 0; i < 3; i++)
		assert_ends(calls[i], CANCELLED, "");
	for (unsigned i = 3; i < 6; i++) {
		hear_dump(calls[i], 1);
		assert_ends(calls[i], RPC_OK, "");
	}
}

// A call takes up its place until its end has come to the server.
static void await_room(struct world *w)
{
	for (unsigned i = 0;; i++) {
		size_t len;
		struct rpc_client_call *c = ask(w, CHECK_METHOD, "", 0);
		uint8_t *bytes = client_call_hear(c, &len);
		bool answered = bytes;
		client_call_free(c);
		free(bytes);
		if (answered)
			return;
		assert_true(i < 5000);
		rpc_client_turns(w->client, 1);
	}
}

// TH-62
static void calls_beyond_a_hundred_are_refused(void **state)
{
	struct world *w = *state;
	struct rpc_client_call *calls[100];
	for (unsigned i = 0; i < 100; i++)
		calls[i] = ask(w, WATCH, "", 0);
	for (unsigned i = 0; i < 100; i++) {
		size_t len;
		free(client_call_hear(calls[i], &len));
	}
	assert_ends(ask(w, CHECK_METHOD, "", 0), RPC_RESOURCE_EXHAUSTED, "too many calls");
	client_call_free(calls[0]);
	await_room(w);
	for (unsigned i = 1; i < 100; i++)
		client_call_free(calls[i]);
}

// Health

static int hear_health(struct rpc_client_call *c)
{
	size_t len;
	uint8_t *bytes = client_call_hear(c, &len);
	assert_non_null(bytes);
	Grpc__Health__V1__HealthCheckResponse *m =
		grpc__health__v1__health_check_response__unpack(NULL, len, bytes);
	free(bytes);
	assert_non_null(m);
	int status = m->status;
	grpc__health__v1__health_check_response__free_unpacked(m, NULL);
	return status;
}

#define SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

static void health_check_says_whether_it_serves(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 3; i++) {
		struct rpc_client_call *c = ask(w, CHECK_METHOD, "", 0);
		assert_int_equal(hear_health(c), i == 1 ? SERVING : NOT_SERVING);
		assert_ends(c, RPC_OK, "");
		status_server_set_serving(w->server, i == 0);
	}
}

static void health_of_an_unknown_service_is_not_found(void **state)
{
	struct world *w = *state;
	assert_ends(ask(w, CHECK_METHOD, "\x0a\x01x", 3), RPC_NOT_FOUND, "unknown service");
	struct rpc_client_call *c = ask(w, WATCH, "\x0a\x01x", 3);
	assert_int_equal(hear_health(c), SERVICE_UNKNOWN);
	client_call_listen(c);
	status_server_set_serving(w->server, true);
	rpc_client_turns(w->client, 20);
	assert_false(client_call_heard(c) || client_call_over(c)); // it goes on, and is silent
	client_call_free(c);
}

static void health_watch_tells_each_change_once(void **state)
{
	struct world *w = *state;
	struct rpc_client_call *c = ask(w, WATCH, "", 0);
	client_call_half_close(c); // as unary requests do
	assert_int_equal(hear_health(c), NOT_SERVING);
	status_server_set_serving(w->server, true);
	assert_int_equal(hear_health(c), SERVING);
	status_server_set_serving(w->server, true);
	client_call_listen(c);
	rpc_client_turns(w->client, 20);
	assert_false(client_call_heard(c));
	status_server_set_serving(w->server, false);
	assert_int_equal(hear_health(c), NOT_SERVING);
	client_call_free(c);
}

static void health_changes_in_one_turn_are_told_as_the_last(void **state)
{
	struct world *w = *state;
	struct rpc_client_call *c = ask(w, WATCH, "", 0);
	assert_int_equal(hear_health(c), NOT_SERVING);
	rpc_client_turns(w->client, 20);
	for (unsigned i = 0; i < 101; i++)
		status_server_set_serving(w->server, i % 2 == 0);
	assert_int_equal(hear_health(c), SERVING);
	client_call_listen(c);
	rpc_client_turns(w->client, 20);
	assert_false(client_call_heard(c));
	client_call_free(c);
}

// Reflection

static void put_question(struct rpc_client_call *c, const Question *q)
{
	uint8_t bytes[1024];
	assert_true(protobuf_c_message_get_packed_size(&q->base) <= sizeof(bytes));
	client_call_say(c, bytes, protobuf_c_message_pack(&q->base, bytes));
}

static Answer *hear_answer(struct rpc_client_call *c)
{
	size_t len;
	uint8_t *bytes = client_call_hear(c, &len);
	assert_non_null(bytes);
	Answer *m = grpc__reflection__v1__server_reflection_response__unpack(NULL, len, bytes);
	free(bytes);
	assert_non_null(m);
	return m;
}

static void drop_answer(Answer *m)
{
	grpc__reflection__v1__server_reflection_response__free_unpacked(m, NULL);
}

#define ASK_KIND(kind) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##kind

static Question question(int kind, const char *text)
{
	Question q;
	grpc__reflection__v1__server_reflection_request__init(&q);
	q.host = (char *)(uintptr_t) "here";
	q.message_request_case = kind;
	q.file_by_filename = (char *)(uintptr_t)text; // a oneof
	return q;
}

static void reflection_lists_the_services_by_both_names(void **state)
{
	static const char *const methods[] = {REFLECT, REFLECT_ALPHA};
	struct world *w = *state;
	for (size_t i = 0; i < 2; i++) {
		struct rpc_client_call *c = client_call_begin(w->client, methods[i]);
		Question q = question(ASK_KIND(LIST_SERVICES), "");
		put_question(c, &q);
		Answer *m = hear_answer(c);
		assert_string_equal(m->valid_host, "here");
		assert_int_equal(
			m->original_request->message_request_case, ASK_KIND(LIST_SERVICES));
		assert_int_equal(m->list_services_response->n_service, 4);
		assert_string_equal(
			m->list_services_response->service[1]->name, "grpc.health.v1.Health");
		drop_answer(m);
		client_call_half_close(c);
		assert_ends(c, RPC_OK, "");
	}
}

static void reflection_sends_a_file_with_what_it_needs_once(void **state)
{
	struct world *w = *state;
	struct rpc_client_call *c = client_call_begin(w->client, REFLECT);
	Question by_symbol = question(ASK_KIND(FILE_CONTAINING_SYMBOL),
		"envoy.service.status.v3.ClientStatusDiscoveryService");
	put_question(c, &by_symbol);
	Answer *m = hear_answer(c);
	size_t n = m->file_descriptor_response->n_file_descriptor_proto;
	assert_true(n > 5);
	size_t len = m->file_descriptor_response->file_descriptor_proto[0].len;
	drop_answer(m);
	Question by_name =
		question(ASK_KIND(FILE_BY_FILENAME), "envoy/service/status/v3/csds.proto");
	put_question(c, &by_name);
	m = hear_answer(c);
	assert_int_equal(m->file_descriptor_response->n_file_descriptor_proto, 1);
	assert_int_equal(m->file_descriptor_response->file_descriptor_proto[0].len, len);
	drop_answer(m);
	client_call_free(c);
}

static void reflection_answers_what_it_does_not_know_with_an_error_and_goes_on(void **state)
{
	struct world *w = *state;
	struct rpc_client_call *c = client_call_begin(w->client, REFLECT);
	Question questions[] = {question(ASK_KIND(FILE_BY_FILENAME), "no.proto"),
		question(ASK_KIND(FILE_CONTAINING_SYMBOL), "no.Symbol"),
		question(ASK_KIND(ALL_EXTENSION_NUMBERS_OF_TYPE), "no.Type"),
		question(ASK_KIND(FILE_CONTAINING_EXTENSION), NULL), question(0, NULL)};
	Grpc__Reflection__V1__ExtensionRequest extension;
	grpc__reflection__v1__extension_request__init(&extension);
	extension.containing_type = (char *)(uintptr_t) "google.protobuf.Any";
	questions[3].file_containing_extension = &extension;
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		put_question(c, &questions[i]);
		Answer *m = hear_answer(c);
		assert_int_equal(m->message_response_case,
			GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE);
		assert_int_equal(m->error_response->error_code,
			i == 4 ? RPC_INVALID_ARGUMENT : RPC_NOT_FOUND);
		drop_answer(m);
	}
	Question q = question(ASK_KIND(ALL_EXTENSION_NUMBERS_OF_TYPE), "google.protobuf.Any");
	put_question(c, &q);
	Answer *m = hear_answer(c);
	assert_string_equal(
		m->all_extension_numbers_response->base_type_name, "google.protobuf.Any");
	assert_int_equal(m->all_extension_numbers_response->n_extension_number, 0);
	drop_answer(m);
	client_call_free(c);
}

// Beginning and end

static void the_end_of_the_server_ends_every_kind_of_call(void **state)
{
	struct world *w = *state;
	hold(w, 100, 10 * KIB);
	struct rpc_client_call *calls[] = {ask(w, WATCH, "", 0),
		client_call_begin(w->client, STREAM), client_call_begin(w->client, REFLECT),
		ask(w, STREAM, "", 0), ask(w, FETCH, "", 0), ask(w, FETCH, "", 0)};
	assert_int_equal(hear_health(calls[0]), NOT_SERVING);
	rpc_client_turns(w->client, 20);
	status_server_free(w->server);
	w->server = NULL;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		size_t len;
		assert_null(client_call_hear(calls[i], &len));
		int status = client_call_status(calls[i], NULL);
		// Of responses that are not read it cannot be said in order.
		assert_true(status == RPC_UNAVAILABLE || (i >= 3 && status == CANCELLED));
		client_call_free(calls[i]);
	}
}

#define LIVE(test) cmocka_unit_test_setup_teardown(test, world_init, world_fini)

RUN_SUITE("status/status_live", LIVE(CS_01_fetch_answers_once_and_ends),
	LIVE(CS_01_stream_answers_each_request_once_and_pushes_nothing),
	LIVE(requests_that_came_before_the_half_close_are_answered),
	LIVE(CS_01_node_matchers_are_an_invalid_argument),
	LIVE(CS_08_contents_are_left_out_when_asked),
	LIVE(what_is_no_request_is_an_invalid_argument), LIVE(too_long_requests_end_their_call),
	LIVE(a_large_response_takes_many_turns_of_the_loop),
	LIVE(a_caller_that_goes_away_costs_the_others_nothing),
	LIVE(a_caller_that_does_not_read_is_cut),
	LIVE(responses_that_nobody_reads_keep_others_waiting_and_memory_bounded),
	LIVE(calls_beyond_a_hundred_are_refused), LIVE(health_check_says_whether_it_serves),
	LIVE(health_of_an_unknown_service_is_not_found), LIVE(health_watch_tells_each_change_once),
	LIVE(health_changes_in_one_turn_are_told_as_the_last),
	LIVE(reflection_lists_the_services_by_both_names),
	LIVE(reflection_sends_a_file_with_what_it_needs_once),
	LIVE(reflection_answers_what_it_does_not_know_with_an_error_and_goes_on),
	LIVE(the_end_of_the_server_ends_every_kind_of_call))
