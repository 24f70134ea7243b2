// SPDX-License-Identifier: Apache-2.0
// Random lives of a proxy between simulated clients and backends. Prints each seed; argv[1] sets
// the first, argv[2] how many. The same ones every time unless told otherwise: a run that fails by
// itself helps nobody.
#include "dataplane/proxy/grpc_timeout.h"
#include "lb/base/check.h"
#include "lb/leaf/outlier.h"
#include "lb/pick/link.h"
#include "lb/policy/policy_spec.h"
#include "lb/route/filter.h"
#include "lb/route/session.h"
#include "tests/sim/proxy/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// A client aborted between the end of its answer and the backend's RST_STREAM(NO_ERROR).
#define SEED_ABORT_AFTER_ANSWER 1795234822

static uint64_t n_kept, n_set; // sessions, in all calm lives
static uint64_t n_refused, n_lost; // and sent again, in all
static uint64_t n_headed; // attempts over connections with a PROXY header, in all

static int grpc_of_reset(uint32_t code)
{
	switch (code) {
	case H2_REFUSED_STREAM:
		return 14;
	case H2_CANCEL:
		return 1;
	case H2_ENHANCE_YOUR_CALM:
		return 8;
	case H2_INADEQUATE_SECURITY:
		return 7;
	default:
		return 13;
	}
}

// Routes that retry status 14, up to two times.
static const struct lb_route_policy retries = {
	.retry = {.statuses = 1u << 14, .max_attempts = 3, .base_ns = 5 * MS, .max_ns = 20 * MS}};

static bool retried(const struct ask *a)
{
	return strcmp(a->route, "one") == 0;
}

// Sessions for all, a delay for some; aborts, and no more than a few faults at once, if it may get
// rough.
static void set_filters(struct world *w, bool rough)
{
	struct lb_filter filters[] = {
		{.name = STR("f"),
			.kind = LB_FILTER_FAULT,
			.fault = {.delay = LB_DELAY_FIXED,
				.delay_ns = rand_below(world_rand(w), 30 * MS),
				.delay_numerator = 20,
				.delay_denominator = 100,
				.abort = rough ? LB_ABORT_HTTP : LB_ABORT_NONE,
				.abort_status = 418,
				.abort_numerator = 50000,
				.abort_denominator = 1000000,
				.max_active = rough ? 3 : UINT32_MAX}},
		{.name = STR("s"),
			.kind = LB_FILTER_SESSION,
			.session = {.enabled = true, .cookie = STR("lane"), .ttl_s = 60}},
	};
	control_set_filters(&w->control, 0, filters, 2, LB_NO_TIMEOUT, 0);
}

// Any of the backends, as if some were draining; their sessions may stay or not.
static void set_hosts(struct world *w, uint32_t cluster)
{
	struct control_host hosts[4];
	uint32_t n = 0;
	for (uint32_t i = 1; i <= 4; i++)
		if (world_chance(w, 60))
			hosts[n++] = (struct control_host){i, "", world_chance(w, 70), 0};
	control_set_hosts(&w->control, cluster, HOST_BACKENDS, hosts, n);
}

static const struct lb_policy_spec round_robin = {.kind = LB_POLICY_ROUND_ROBIN};
static const struct lb_policy_spec specs[] = {
	{.kind = LB_POLICY_WRR_LOCALITY, .child = &round_robin},
	{.kind = LB_POLICY_WEIGHTED_ROUND_ROBIN,
		.wrr = {.expiration_ns = 180 * SECOND, .update_ns = 100 * MS, .error_penalty = 1}},
	{.kind = LB_POLICY_LEAST_REQUEST, .least_request = {.choice_count = 2}},
	{.kind = LB_POLICY_RING_HASH, .ring_hash = {.min_size = 64, .max_size = 64}},
	{.kind = LB_POLICY_PICK_FIRST, .pick_first = {.shuffle = true}},
};

static const struct lb_outlier_conf outlier = {.interval_ns = 100 * MS,
	.base_ejection_ns = 100 * MS,
	.max_ejection_ns = SECOND,
	.max_ejection_percent = 50,
	.failure_percentage = {true, 100, 1, 5},
	.threshold_percent = 50};

// Any policy; and where it may get rough, refusals and ejections too. From the next update on.
static void set_leaf(struct world *w, uint32_t cluster, bool rough)
{
	struct control_leaf *l = &w->control.leaves[cluster];
	l->spec = &specs[rand_below(world_rand(w), sizeof(specs) / sizeof(specs[0]))];
	l->load = (uint32_t)rand_below(world_rand(w), 4);
	static const char *const metrics[] = {"cpu_utilization", "named_metrics.*"};
	control_want_metrics(l, metrics, world_chance(w, 50) ? 2 : 0);
	if (!rough)
		return;
	l->outlier = world_chance(w, 50) ? &outlier : NULL;
	l->max_requests = world_chance(w, 50) ? 1024 : (uint32_t)rand_below(world_rand(w), 30);
	l->drops[0] = (struct lb_drop_category){"some", 100000};
	l->n_drops = world_chance(w, 50);
}

static void set_reports(struct world *w)
{
	static const char *const reports[] = {NULL, "BIN CQAAAAAAAOA/",
		"TEXT rps_fractional=9,cpu_utilization=1,named_metrics.a=1", "TEXT ?"};
	for (uint32_t i = 0; i < w->conf.n_backends; i++) {
		w->backends[i].report_field = "endpoint-load-metrics";
		w->backends[i].report = reports[rand_below(world_rand(w), 4)];
	}
}

static void set_policies(struct world *w)
{
	control_set_policy(&w->control, ROUTE_ONE, &retries);
	control_set_policy(&w->control, ROUTE_PINNED, &retries);
}

static bool complete(const struct ask *a, int http, int grpc, uint32_t received)
{
	return a->closed && a->got_end && !a->broken && a->http_status == http &&
	       a->grpc_status == grpc && a->received == received;
}

static bool is_plain(const struct ask *a)
{
	return a->kind == KIND_PLAIN || a->kind == KIND_HEAD;
}

// RT-06, RT-11: again only after an end that the route's policy lists; and those of plain HTTP that
// may be done twice once more after their connection broke, without a trace of the first time.
static bool done_as_often_as_may_be(const struct world *w, const struct ask *a)
{
	const struct seen *s = &w->seen[a->id];
	uint32_t most = retried(a) ? retries.retry.max_attempts : 1;
	if (is_plain(a))
		most = a->method ? 1 : 2;
	return s->n_delivered <= most && s->n_delivered <= 1 + s->n_excused &&
	       w->n_done[a->id] <= s->n_delivered && a->n_informational <= 2;
}

// What a healthy world owes this request.
static bool as_owed(const struct world *w, const struct ask *a)
{
	if (a->cancelled)
		return a->closed && !a->broken;
	if (strcmp(a->route, "down") == 0)
		return complete(a, 200, 14, 0) &&
		       strcmp(a->message, "cluster two: 100%25 broken") == 0;
	if (strcmp(a->route, "nowhere") == 0 || strcmp(a->route, "unsupported") == 0)
		return complete(a, 200, 14, 0);
	switch (a->kind) {
	case KIND_ECHO:
		return complete(a, 200, 0, a->size) && done_as_often_as_may_be(w, a);
	case KIND_REFUSE_ONCE:
		return complete(a, 200, 0, a->size) && done_as_often_as_may_be(w, a) &&
		       w->n_refused[a->id] == 1;
	case KIND_DOWNLOAD:
		return complete(a, 200, 0, a->size);
	case KIND_TRAILERS_ONLY:
		return complete(a, 200, 5, 0) && strcmp(a->message, "none%20here") == 0;
	case KIND_PLAIN:
		return complete(a, 200, -1, a->size) && a->n_informational == 2 &&
		       done_as_often_as_may_be(w, a);
	case KIND_HEAD:
		return complete(a, 200, -1, 0) && done_as_often_as_may_be(w, a);
	case KIND_EARLY:
		return complete(a, 200, 0, EARLY_SIZE) && (a->code == H2_NO_ERROR || a->conn_lost);
	case KIND_RESET:
		return complete(a, 200, grpc_of_reset(a->size), 0);
	case KIND_RESET_LATE:
		return a->closed && !a->got_end && a->http_status == 200 && a->by_peer &&
		       a->code == (a->size == H2_CANCEL ? H2_CANCEL : H2_INTERNAL_ERROR);
	case KIND_REFUSE:
		return complete(a, 200, 14, 0) && w->n_refused[a->id] == (retried(a) ? 4 : 2);
	case KIND_BAD_LENGTH:
		return complete(a, 200, 13, 0);
	case KIND_HANG:
	case KIND_STALL:
	case KIND_STALL_PLAIN:
	case N_KINDS:
		break;
	}
	return false;
}

static void check_owed(const struct world *w)
{
	for (uint32_t i = 0; i < w->n_asks; i++) {
		if (!w->asks[i].begun || as_owed(w, &w->asks[i]))
			continue;
		world_show(w, &w->asks[i]);
		CHECK(!"what was owed");
	}
	for (uint32_t i = 0; i < w->conf.n_backends; i++)
		CHECK(w->backends[i].n_bad_requests == 0);
}

static uint32_t any_size(struct world *w)
{
	static const uint32_t sizes[] = {0, 1, 100, 1000, 5000, 20000, 100000};
	return sizes[rand_below(world_rand(w), 7)];
}

// Deadlines and failures: in a calm world those that change nothing of the outcome.
static void spoil(struct world *w, struct ask *a, bool rough)
{
	static const char *const timeouts[] = {"10m", "50000u", "300m", "2S", "1M"};
	static const char *const failures[] = {"1 status 14", "2 status 14", "1 late 14",
		"1 lose 0", "1 status 13", "1 reset 8", "3 status 14 20", "1 status 14 -1"};
	if (world_chance(w, 30))
		a->timeout = rough ? timeouts[rand_below(world_rand(w), 5)] : "10M";
	if (!world_chance(w, 20) || (!rough && (!retried(a) || a->size > 20000)))
		return;
	a->fail = failures[rand_below(world_rand(w), rough ? 8 : 3)];
}

// The same for plain HTTP, some of which must not be done twice.
static void spoil_plain(struct world *w, struct ask *a, bool rough)
{
	static const char *const failures[] = {"1 reset 7", "4 reset 7", "1 lose 0", "1 hint 0"};
	if (world_chance(w, 30))
		a->fail = failures[rand_below(world_rand(w), rough ? 4 : 2)];
	if (a->kind == KIND_PLAIN && world_chance(w, 30))
		a->method = "POST";
}

// A session with any backend, of any cluster; some with one that does not exist.
static void bind(struct world *w, struct ask *a)
{
	static const char *const clusters[] = {"zero", "one", "two", ""};
	static char value[256]; // good until the ask has begun
	char address[IP_PORT_TEXT_MAX];
	struct ip_port at = {
		wire_address(HOST_BACKENDS, (uint32_t)rand_below(world_rand(w), 5) + 1), 50051};
	const struct lb_session_cookie c = {str_from(ip_port_print(&at, address)),
		str_from(clusters[rand_below(world_rand(w), 4)])};
	const struct lb_session s = {.cookie = STR("lane")};
	size_t len = lb_session_write(&s, &c, value, sizeof(value));
	a->extra[0] = (struct field){.name = STR("cookie"), .value = {value, len}};
}

static struct ask *any_ask(struct world *w, bool rough)
{
	static const uint32_t codes[] = {0, 1, 2, 8, 11, 12};
	static const char *const routes[] = {
		"one", "two", "two", "two", "down", "nowhere", "unsupported"};
	uint32_t n_routes = world_chance(w, 10) ? 7 : 4;
	enum kind kind = (enum kind)rand_below(world_rand(w), KIND_HANG);
	uint32_t size = any_size(w);
	if (kind == KIND_RESET || kind == KIND_RESET_LATE)
		size = codes[rand_below(world_rand(w), 6)];
	else if (kind == KIND_EARLY)
		size = 300000;
	else if (kind == KIND_TRAILERS_ONLY || kind == KIND_HEAD || kind == KIND_BAD_LENGTH)
		size = 0;
	else if (kind == KIND_REFUSE || kind == KIND_REFUSE_ONCE)
		size %= 7000;
	const char *route = routes[rand_below(world_rand(w), n_routes)];
	if (kind == KIND_PLAIN || kind == KIND_HEAD)
		route = "one";
	struct ask *a = world_ask(w, route, kind, size);
	a->omit_te = world_chance(w, 20);
	if (kind == KIND_ECHO && size)
		a->request_trailers = world_chance(w, 20);
	if (kind == KIND_DOWNLOAD && size > 1000 && world_chance(w, 20))
		a->cancel_after = size / 2;
	if (kind == KIND_ECHO || kind == KIND_DOWNLOAD)
		spoil(w, a, rough);
	if (is_plain(a))
		spoil_plain(w, a, rough);
	if (world_chance(w, 40))
		bind(w, a);
	return a;
}

// Begins asks where there is room, `n` at most.
static void begin_some(struct world *w, uint32_t n, bool rough)
{
	while (n-- && w->n_asks < MAX_ASKS) {
		struct client *c = &w->clients[rand_below(world_rand(w), w->conf.n_clients)];
		if (!client_has_room(c))
			continue;
		struct ask *a = any_ask(w, rough);
		// A pinned authority has one cluster for all paths.
		if (c->frontend == 1)
			a->route = "one";
		client_ask(c, a);
	}
}

static void open_clients(struct world *w)
{
	for (uint32_t i = 0; i < w->conf.n_clients; i++)
		world_open_client(w, i, i == 1 ? 1 : 0);
	while (!w->clients[0].up || !w->clients[1].up)
		world_run(w, MS);
}

// PP-13: half of the worlds, of one worker and of two, have connections that begin with a PROXY
// header.
static const struct lb_header *header_of(uint64_t seed)
{
	static const struct lb_header v1 = {.version = 1},
				      v2 = {.tlvs = STR("\xe0\0\1a"), .version = 2};
	uint64_t which = seed / 2 % 4;
	return which == 0 ? &v1 : which == 2 ? &v2 : NULL;
}

// … and each request came over its own client's.
static void check_headers(const struct world *w)
{
	for (uint32_t i = 0; w->conf.to_backends && i < w->n_asks; i++) {
		const struct seen *s = &w->seen[i];
		for (uint32_t k = 0; k < s->n; k++)
			CHECK(ip_port_eq(&s->attempts[k].source, &w->asks[i].from));
		n_headed += s->n;
	}
}

// Requests before the first backend connection wait and none fails; then every kind, with loss.
static void calm(uint64_t seed)
{
	struct world_conf conf = world_conf_default(seed);
	conf.n_workers = 1 + seed % 2;
	conf.to_backends = header_of(seed);
	struct world *w = world_new(&conf);
	w->wire.loss = (double)rand_below(world_rand(w), 3) * 0.01;
	set_policies(w);
	set_filters(w, false);
	set_reports(w);
	set_leaf(w, 0, false);
	set_leaf(w, 1, false);
	open_clients(w);
	begin_some(w, 100, false);
	world_run(w, 50 * MS);
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, 0x3);
	control_set_endpoints(&w->control, 1, HOST_BACKENDS, 0xe);
	for (int i = 0; i < 40; i++) {
		begin_some(w, (uint32_t)rand_below(world_rand(w), 12), false);
		world_run(w, rand_below(world_rand(w), 30 * MS));
		if (i % 10 == 9) { // new snapshots change nothing that is asked for
			control_set_endpoints(
				&w->control, 1, HOST_BACKENDS, i % 20 == 9 ? 0xc : 0xe);
			set_hosts(w, 0);
			set_hosts(w, 1);
		}
	}
	world_finish(w, 120 * SECOND);
	check_owed(w);
	check_headers(w);
	n_kept += world_counter(w, "sessions_kept");
	n_set += world_counter(w, "sessions_set");
	world_free(w);
}

// Connections and backends come and go. Nothing hangs, nothing that claims to be complete is not,
// nothing is done twice.
static bool too_late(const struct ask *a)
{
	uint64_t ns;
	if (!a->begun || !a->timeout || !proxy_grpc_timeout_parse(str_from(a->timeout), &ns))
		return false;
	return a->closed_ns - a->begun_ns > ns + 10 * SECOND; // the wire loses much
}

static void chaos(uint64_t seed)
{
	struct world_conf conf = world_conf_default(seed);
	conf.backend_streams = seed % 3 ? 5 : 1;
	conf.n_workers = 1 + seed % 2;
	conf.to_backends = header_of(seed);
	conf.n_events = 2; // full all the time
	conf.max_queued = 60;
	if (seed % 5 == 0)
		conf.n_chunks = 200;
	if (seed % 7 == 0)
		conf.max_requests = 40;
	struct world *w = world_new(&conf);
	w->wire.loss = (double)rand_below(world_rand(w), 4) * 0.01;
	set_policies(w);
	set_filters(w, true);
	set_reports(w);
	for (uint32_t i = 0; i < N_FRONTENDS; i++)
		w->frontends[i].wait_for_ready =
			(enum lb_wait_for_ready)rand_below(world_rand(w), 2);
	open_clients(w);
	uint32_t masks[2] = {0x3, 0xe};
	for (int i = 0; i < 60; i++) {
		begin_some(w, (uint32_t)rand_below(world_rand(w), 12), true);
		world_run(w, rand_below(world_rand(w), 40 * MS));
		struct backend *b = &w->backends[rand_below(world_rand(w), conf.n_backends)];
		uint32_t c = (uint32_t)rand_below(world_rand(w), conf.n_clients);
		switch (rand_below(world_rand(w), 12)) {
		case 0:
			backend_abort_conns(b);
			break;
		case 1:
			backend_goaway(b, true);
			break;
		case 2:
			backend_goaway(b, false);
			break;
		case 3:
			backend_close(b);
			break;
		case 4:
			if (!b->listening) {
				backend_fini(b);
				backend_open(b, &w->wire.hosts[HOST_BACKENDS], b->address,
					&w->backend_conf);
			}
			break;
		case 5:
			client_abort(&w->clients[c]);
			world_open_client(w, c, c == 1);
			break;
		case 6:
		case 7:
			masks[i % 2] = (uint32_t)rand_below(world_rand(w), 15) + 1;
			[[fallthrough]];
		default:
			if (world_chance(w, 20))
				set_leaf(w, i % 2, true);
			set_hosts(w, i / 2 % 2);
			control_set_endpoints(&w->control, i % 2, HOST_BACKENDS, masks[i % 2]);
		}
	}
	for (uint32_t i = 0; i < conf.n_backends; i++)
		if (!w->backends[i].listening) {
			backend_fini(&w->backends[i]);
			backend_open(&w->backends[i], &w->wire.hosts[HOST_BACKENDS],
				w->backends[i].address, &w->backend_conf);
		}
	control_leave(&w->control, 2); // A31-R12: or they waited for ever
	world_finish(w, 60 * SECOND);
	for (uint32_t i = 0; i < w->n_asks; i++) {
		const struct ask *a = &w->asks[i];
		bool bad = a->broken || !done_as_often_as_may_be(w, a) || too_late(a);
		if (a->got_end && a->grpc_status == 0)
			bad = bad || !as_owed(w, a);
		if (bad)
			world_show(w, a);
		CHECK(!bad);
	}
	check_headers(w);
	n_refused += world_counter(w, "transparent_retries");
	n_lost += world_counter(w, "idempotent_retries");
	world_free(w);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 1000;
	clock_t start = clock();
	if (argc == 1)
		chaos(SEED_ABORT_AFTER_ANSWER);
	uint64_t i = 0;
	for (; i < n && clock() - start < 10 * CLOCKS_PER_SEC; i++) {
		printf("seed %llu\n", (unsigned long long)(seed + i));
		fflush(stdout);
		calm(seed + i);
		chaos(seed + i);
	}
	CHECK(i < 10 ||
		(n_kept > 100 && n_set > 100 && n_refused > 100 && n_lost > 10 && n_headed > 1000));
	return 0;
}
