// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/stats/inflight_fixture.h"

#include "ctrl/assemble/workers.h"
#include "ctrl/base/show_port.h"
#include "ctrl/conf/config.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <event2/buffer.h>

#include <stdlib.h>

const struct stats_caller anybody = {.level = STATS_USER};
struct show *show;
uint32_t ids[2]; // of the endpoints 10.0.0.1 and 10.0.0.2

const struct told_endpoint inflight_backends[2] = {
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80}, LB_LEAF_HEALTHY, 1},
	{{{{[10] = 255, [11] = 255, [12] = 10, [15] = 2}}, 80}, LB_LEAF_HEALTHY, 1}};

const struct res_vhost inflight_vhost = {
	"any", DOMAINS("*"), ROUTES({PREFIX("/"), CLUSTERS({"blue", 1}, {"green", 1})})};

int inflight_set_up(void **state)
{
	if (world_set_up_both(state))
		return -1;
	struct world *w = *state;
	w->config.n_frontends = 2;
	// The first one's gateway answers.
	static struct config_port ports[2] = {
		{.gateway_ips = {{{[10] = 255, [11] = 255, [12] = 10, [15] = 7}}},
			.n_gateway_ips = 1}};
	static const struct show_port shown[2] = {{.gateways = {{.state = LB_GATEWAY_UP}}}};
	w->config.ports = ports;
	w->config.n_ports = 2;
	static const struct told_locality localities[] = {
		{"", "", "", 1, inflight_backends, 2}, {"", "", "", 1, inflight_backends + 1, 1}};
	static const struct told_priority priorities[] = {{&localities[0], 1}, {&localities[1], 1}};
	struct res_endpoints *both = endpoints_of(&priorities[0], 1);
	struct res_endpoints *one = endpoints_of(&priorities[1], 1);
	apply(w, &inflight_vhost, (const char *const[]){"blue", "green"},
		(struct res_endpoints *[]){both, one}, 2);
	xds_res_put(&both->base);
	xds_res_put(&one->base);
	turns(w, 1);
	for (int i = 0; i < 2; i++) {
		struct lb_command c;
		assert_true(spsc_read(&w->link->commands, &c));
		assert_int_equal(c.kind, LB_COMMAND_CONNECT);
		ids[c.endpoint->addr.ip.b[15] - 1] = c.endpoint->id;
	}
	show = show_new(&(struct show_conf){.config = &w->config,
		.ports = shown,
		.workers = w->workers,
		.assembler = w->assembler,
		.wheel = w->wheel});
	return show ? 0 : -1;
}

int inflight_tear_down(void **state)
{
	show_free(show);
	return world_tear_down(state);
}

struct stats_follow *begin(const char *command)
{
	struct stats_follow *follow = NULL;
	char *text = show_answer(show, &anybody, command, &follow);
	if (text[0])
		fail_msg("%s", text);
	free(text);
	assert_true(follow && follow->is_soon);
	return follow;
}

// What has come; NULL = it is yet to come.
char *look(struct stats_follow *follow)
{
	struct evbuffer *out = evbuffer_new();
	bool is_all = !follow->more(follow, out);
	size_t len = evbuffer_get_length(out);
	char *text = is_all ? calloc(1, len + 1) : NULL;
	if (is_all)
		evbuffer_remove(out, text, len);
	else
		assert_int_equal(len, 0);
	evbuffer_free(out);
	return text;
}

struct lb_inflight *expect_question(struct world *w)
{
	struct lb_command c;
	assert_true(spsc_read(&w->link->commands, &c));
	assert_int_equal(c.kind, LB_COMMAND_INFLIGHT);
	assert_false(lb_inflight_is_free(w->link->inflight));
	return w->link->inflight;
}

json_t *end(struct stats_follow *follow)
{
	char *text = look(follow);
	assert_non_null(text);
	json_t *whole = json_loads(text, 0, NULL);
	json_t *data = json_incref(json_object_get(whole, "data"));
	if (!data)
		fail_msg("%s", text);
	json_decref(whole);
	free(text);
	follow->free(follow);
	return data;
}

void let_pass(struct world *w, uint64_t ns)
{
	twheel_advance(w->wheel, twheel_now(w->wheel) + ns);
}

static const struct lb_inflight_request a_request = {
	.endpoint = {{{[10] = 255, [11] = 255, [12] = 10, [15] = 1}}, 80},
	.has_endpoint = true,
	.route_index = 3,
	.n_attempts = 2,
	.id = "my id",
	.method = "GET",
	.authority = "a.example",
	.path = "/slow\n",
	.vhost = "any",
	.route = "canary",
	.cluster = "blue",
};

void tell_request(struct lb_inflight *f, uint64_t began_ns)
{
	struct lb_inflight_row *row = lb_inflight_find_place(f, began_ns);
	row->bytes_in = 10;
	row->bytes_out = 20;
	row->peer = (struct ip_port){ip_from_v4(0x0a510001), 5000};
	row->frontend = 1;
	row->state = LB_REQUEST_sent;
	row->slot = 5;
	row->request = a_request;
}

void tell_conn(struct lb_inflight *f, uint64_t began_ns, uint32_t endpoint)
{
	struct lb_inflight_row *row = lb_inflight_find_place(f, began_ns);
	row->peer = (struct ip_port){ip_from_v4(0x0a510001), 5000};
	row->state = LB_CONN_open;
	row->conn = (struct lb_inflight_conn){.local = {ip_from_v4(0x0a000001), 80},
		.endpoint = endpoint,
		.n_streams = 2,
		.tcp = {.state = "established",
			.rtt_ns = 1500 * NS_PER_US,
			.rttvar_ns = 250 * NS_PER_US,
			.rto_ns = 200 * NS_PER_MS,
			.pace = 12000000,
			.send_queue = 3000,
			.recv_queue = 7,
			.cwnd = 14600,
			.ssthresh = UINT32_MAX,
			.in_flight = 2920,
			.n_resent = 3,
			.send_window = 65536,
			.recv_window = 262144,
			.mss = 1460,
			.send_scale = 7,
			.recv_scale = 9,
			.n_backoff = 1,
			.congestion = "cubic"},
		.tls = 0x0304,
		.http = 20};
}
