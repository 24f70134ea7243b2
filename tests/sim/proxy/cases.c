// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/proxy/cases.h"

#include "tests/support/check.h"

#define GIVE_UP (100 * SECOND)

struct world *a_world(void)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 1;
	conf.n_backends = 2;
	return world_new(&conf);
}

void open_client(struct world *w)
{
	world_open_client(w, 0, 0);
	while (!w->clients[0].up)
		world_run(w, MS);
}

void use_backends(struct world *w, uint32_t mask)
{
	control_set_endpoints(&w->control, 0, HOST_BACKENDS, mask);
}

struct world *ready_world(const struct world_conf *conf)
{
	struct world *w = conf ? world_new(conf) : a_world();
	use_backends(w, 0x3);
	open_client(w);
	world_run(w, 20 * MS);
	return w;
}

struct lb_check *a_check(enum lb_check_kind kind, const char *path)
{
	static const struct field grpc[] = {
		{.name = {"te", 2}, .value = {"trailers", 8}},
		{.name = {"content-type", 12}, .value = {"application/grpc", 16}},
	};
	static const struct lb_status_range ok[] = {{200, 201}};
	struct lb_check *c = lb_check_new();
	assert_non_null(c);
	c->kind = kind;
	c->keeps_connection = kind != LB_CHECK_TCP;
	c->timeout_ns = 500 * MS;
	c->interval_ns = c->unhealthy_interval_ns = c->unhealthy_edge_ns = SECOND;
	c->healthy_edge_ns = c->no_traffic_ns = c->no_traffic_healthy_ns = SECOND;
	c->healthy_threshold = c->unhealthy_threshold = 2;
	c->method = STR("GET");
	c->authority = STR("calls.test");
	c->path = str_from(path);
	c->fields = grpc;
	c->n_fields = kind == LB_CHECK_GRPC ? 2 : 0;
	c->expected = (struct lb_status_ranges){ok, 1};
	return c;
}

struct world *world_of_hanging(uint32_t n)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = 20;
	conf.n_backends = 2;
	conf.backend_streams = 1000;
	conf.max_requests = 4096;
	struct world *w = ready_world(&conf);
	w->control.leaves[0].max_requests = 4096;
	control_update(&w->control, 0);
	for (uint32_t i = 1; i < 20; i++)
		world_open_client(w, i, 0);
	world_run(w, 100 * MS);
	for (uint32_t i = 0; i < n; i++) {
		struct ask *a = world_ask(w, "one", KIND_HANG, 0);
		client_ask(&w->clients[i % 20], a);
	}
	world_run(w, 100 * MS);
	return w;
}

struct world_conf headed(const struct lb_header *h, uint32_t n_clients)
{
	struct world_conf conf = world_conf_default(7);
	conf.n_clients = n_clients;
	conf.n_backends = 2;
	conf.to_backends = h;
	return conf;
}

struct world *headed_world(const struct lb_header *h, uint32_t n_clients)
{
	struct world_conf conf = headed(h, n_clients);
	struct world *w = ready_world(&conf);
	for (uint32_t i = 1; i < n_clients; i++)
		world_open_client(w, i, 0);
	use_backends(w, 0x1);
	world_run(w, 100 * MS);
	assert_int_equal(w->backends[0].n_conns, 1);
	return w;
}

struct ask *ask(struct world *w, enum kind kind, uint32_t size)
{
	struct ask *a = world_ask(w, "one", kind, size);
	client_ask(&w->clients[0], a);
	return a;
}

struct ask *ask_with(
	struct world *w, enum kind kind, uint32_t size, const char *timeout, const char *fail)
{
	struct ask *a = world_ask(w, "one", kind, size);
	a->timeout = timeout;
	a->fail = fail;
	client_ask(&w->clients[0], a);
	return a;
}

void abandon(struct world *w)
{
	for (uint32_t i = 0; i < w->n_asks; i++)
		client_cancel(&w->asks[i]);
	finish(w);
	world_free(w);
}

void finish_of(struct world *w, const struct ask *a)
{
	for (uint64_t until = w->wire.now_ns + GIVE_UP; !a->closed; world_run(w, MS))
		assert_true(w->wire.now_ns < until);
}

uint64_t took_ns(const struct ask *a)
{
	assert_true(a->closed);
	return a->closed_ns - a->begun_ns;
}

void finish(struct world *w)
{
	world_finish(w, GIVE_UP);
}

void assert_ok(const struct world *w, const struct ask *a)
{
	assert_true(a->closed && a->got_end && !a->broken);
	assert_int_equal(a->http_status, 200);
	assert_int_equal(a->grpc_status, 0);
	assert_int_equal(a->received, a->size);
	assert_int_equal(w->n_done[a->id], 1);
}

void assert_reply(const struct ask *a, int grpc)
{
	assert_true(a->closed && a->got_end);
	assert_int_equal(a->http_status, 200);
	assert_int_equal(a->grpc_status, grpc);
	assert_int_equal(a->received, 0);
}
