// SPDX-License-Identifier: Apache-2.0
// Load reporting by the libgrpc transport to a real gRPC server, lrs_server.py (argv[1]), over
// loopback. Real time, so only what cannot be shown with a scripted server.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/bootstrap/node.h"
#include "ctrl/xds/load/lrs.h"
#include "ctrl/xds/transport_grpc.h"
#include "envoy/service/load_stats/v3/lrs.pb-c.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define BOUND_NS (30 * S)

typedef Envoy__Service__LoadStats__V3__LoadStatsRequest Request;

static const char *server_path;

struct live {
	pid_t server;
	FILE *said; // by the server
	char line[8192]; // what of its next line is here
	size_t line_len;
	struct xds_bootstrap *bootstrap;
	struct xds_node node;
	struct twheel *wheel;
	struct rand rand;
	struct xds_grpc *grpc;
	struct xds_lrs *lrs;
	struct xds_load_cluster *cluster;
	uint64_t unread; // issued since the last harvest
	uint64_t told; // what the server was told
	unsigned n_hellos, n_reports;
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static void start_server(struct live *l, char *line, int len)
{
	int in[2], out[2];
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	l->server = fork();
	assert_true(l->server >= 0);
	if (l->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // also when an assertion ends the test
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl("/usr/bin/python3", "python3", server_path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	l->said = fdopen(out[0], "r");
	assert_non_null(l->said);
	assert_non_null(fgets(line, len, l->said)); // its port
	assert_true(fcntl(out[0], F_SETFL, O_NONBLOCK) == 0);
}

static void read_message(struct live *l, const char *hex)
{
	uint8_t bytes[4096];
	size_t len = 0;
	unsigned byte;
	while (len < sizeof(bytes) && sscanf(hex + 2 * len, "%2x", &byte) == 1)
		bytes[len++] = (uint8_t)byte;
	Request *r = envoy__service__load_stats__v3__load_stats_request__unpack(NULL, len, bytes);
	assert_non_null(r);
	l->n_hellos += r->node != NULL;
	l->n_reports += r->node == NULL;
	for (size_t i = 0; i < r->n_cluster_stats; i++)
		for (size_t j = 0; j < r->cluster_stats[i]->n_upstream_locality_stats; j++)
			l->told += r->cluster_stats[i]
			                   ->upstream_locality_stats[j]
			                   ->total_issued_requests;
	envoy__service__load_stats__v3__load_stats_request__free_unpacked(r, NULL);
}

// A read can end within a line: what is there of it waits for its rest.
static void read_lines(struct live *l)
{
	int c;
	while ((c = fgetc(l->said)) != EOF) {
		assert_true(l->line_len < sizeof(l->line));
		l->line[l->line_len++] = (char)(c == '\n' ? '\0' : c);
		if (c != '\n')
			continue;
		l->line_len = 0;
		const char *hex = strchr(l->line, ' ');
		assert_non_null(hex);
		read_message(l, hex + 1);
	}
	clearerr(l->said);
}

static void turn(struct live *l)
{
	struct pollfd p = {.fd = xds_grpc_fd(l->grpc), .events = POLLIN};
	(void)poll(&p, 1, 5);
	xds_grpc_dispatch(l->grpc);
	twheel_advance(l->wheel, clock_ns());
	read_lines(l);
}

// Runs the loop until the condition holds.
#define WAIT_FOR(l, condition)                                                                     \
	do {                                                                                       \
		uint64_t end_ns = clock_ns() + BOUND_NS;                                           \
		while (!(condition)) {                                                             \
			turn(l);                                                                   \
			if (clock_ns() > end_ns)                                                   \
				fail_msg("never: %s", #condition);                                 \
		}                                                                                  \
	} while (0)

static void harvest(void *ctx)
{
	struct live *l = ctx;
	struct xds_load_requests r = {.issued = l->unread};
	if (l->cluster &&
		xds_load_add_requests(l->cluster, &(struct xds_load_place){"r", "z", "s"}, &r) == 0)
		l->unread = 0;
}

static void reports_reach_a_real_server_also_after_it_broke_the_stream(void **state)
{
	struct live l = {0};
	struct lb_err err;
	char port[64], json[256];
	start_server(&l, port, sizeof(port));
	snprintf(json, sizeof(json),
		"{\"xds_servers\":[{\"server_uri\":\"127.0.0.1:%d\",\"channel_creds\":"
		"[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"live\"}}",
		atoi(port));
	assert_int_equal(xds_bootstrap_parse(json, strlen(json), "test", &l.bootstrap, &err), 0);
	assert_int_equal(xds_node_init(&l.node, l.bootstrap, "1.2.3"), 0);
	l.wheel = twheel_new(clock_ns());
	l.grpc = xds_grpc_new();
	assert_non_null(l.grpc);
	rand_init(&l.rand, 1);
	l.lrs = xds_lrs_new(&(struct xds_lrs_conf){
		.server = &l.bootstrap->servers[0],
		.transport = xds_grpc_factory(l.grpc),
		.node = &l.node,
		.wheel = l.wheel,
		.rand = &l.rand,
		.harvest = harvest,
		.ctx = &l,
	});
	assert_non_null(l.lrs);

	l.cluster = xds_lrs_cluster_get(l.lrs, "a", "");
	assert_non_null(l.cluster);
	l.unread += 7;
	WAIT_FOR(&l, l.told == 7);
	l.unread += 5; // the server breaks the stream meanwhile
	WAIT_FOR(&l, l.n_hellos == 2);
	WAIT_FOR(&l, l.told == 12);
	l.unread += 3;
	harvest(&l);
	xds_lrs_cluster_put(l.lrs, l.cluster);
	l.cluster = NULL;
	WAIT_FOR(&l, l.told == 15); // LR-09
	assert_int_equal(l.n_hellos, 2);
	assert_true(l.n_reports >= 3);

	xds_lrs_free(l.lrs);
	xds_grpc_free(l.grpc);
	twheel_free(l.wheel);
	xds_node_fini(&l.node);
	xds_bootstrap_free(l.bootstrap);
	kill(l.server, SIGKILL);
	waitpid(l.server, NULL, 0);
	fclose(l.said);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	server_path = argv[1];
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(reports_reach_a_real_server_also_after_it_broke_the_stream)};
	return cmocka_run_group_tests_name("xds/lrs_live", suite, NULL, NULL);
}
