// SPDX-License-Identifier: Apache-2.0
// Client, libgrpc transport and dependency manager against a real server process, shunt-xds, over
// loopback: argv[1] is its path. Real time, so only what cannot be shown with a scripted server.
#include "ctrl/deps/config.h"
#include "ctrl/deps/depmgr.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/route.h"
#include "ctrl/res/types.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/federation.h"
#include "ctrl/xds/transport_grpc.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/support/free_port.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *server_path;

struct live {
	char folder[64];
	uint16_t port;
	pid_t server;
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	struct xds_grpc *grpc;
	struct xds_federation *client;
	struct depmgr *dm;
	struct xds_config *config; // borrowed; NULL = none, or an error came after it
	unsigned n_updates;
	char error[256];
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static void write_file(struct live *l, const char *name, const char *json)
{
	char path[128], hidden[128];
	snprintf(path, sizeof(path), "%s/%s.json", l->folder, name);
	snprintf(hidden, sizeof(hidden), "%s/.%s", l->folder, name);
	FILE *f = fopen(hidden, "we");
	assert_non_null(f);
	for (const char *p = json; *p; p++)
		fputc(*p == '\'' ? '"' : *p, f);
	fclose(f);
	assert_int_equal(rename(hidden, path), 0);
}

static void remove_file(struct live *l, const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s.json", l->folder, name);
	unlink(path);
}

static void start_server(struct live *l)
{
	char listen[32];
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", l->port);
	l->server = fork();
	assert_true(l->server >= 0);
	if (l->server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // also when an assertion ends the test
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(126);
		execl(server_path, server_path, l->folder, "--listen", listen, (char *)NULL);
		_exit(127);
	}
}

static void stop_server(struct live *l)
{
	if (!l->server)
		return;
	kill(l->server, SIGKILL);
	waitpid(l->server, NULL, 0);
	l->server = 0;
}

static void on_update(void *ctx, struct xds_config *config)
{
	struct live *l = ctx;
	l->config = config;
	l->n_updates++;
}

static void on_error(void *ctx, const char *text)
{
	struct live *l = ctx;
	l->config = NULL;
	snprintf(l->error, sizeof(l->error), "%s", text);
}

// Runs the loop until the condition holds; fails the test after 20 s.
#define WAIT_FOR(l, condition)                                                                     \
	do {                                                                                       \
		uint64_t end_ns = clock_ns() + 20 * NS_PER_SECOND;                                 \
		while (!(condition)) {                                                             \
			turn(l);                                                                   \
			if (clock_ns() > end_ns)                                                   \
				fail_msg("never: %s", #condition);                                 \
		}                                                                                  \
	} while (0)

static void turn(struct live *l)
{
	struct pollfd p = {.fd = xds_grpc_fd(l->grpc), .events = POLLIN};
	(void)poll(&p, 1, 5);
	xds_grpc_dispatch(l->grpc);
	twheel_advance(l->wheel, clock_ns());
}

static void write_resources(struct live *l)
{
	write_file(l, "listener",
		"{'@type':'type.googleapis.com/envoy.config.listener.v3.Listener','name':'web',"
		"'apiListener':{'apiListener':{'@type':'type.googleapis.com/envoy.extensions."
		"filters.network.http_connection_manager.v3.HttpConnectionManager',"
		"'rds':{'configSource':{'ads':{}},'routeConfigName':'rc'},'httpFilters':["
		"{'name':'router','typedConfig':{'@type':'type.googleapis.com/"
		"envoy.extensions.filters.http.router.v3.Router'}}]}}}");
	write_file(l, "routes",
		"{'@type':'type.googleapis.com/envoy.config.route.v3.RouteConfiguration',"
		"'name':'rc','virtualHosts':[{'name':'v','domains':['*'],'routes':["
		"{'match':{'prefix':''},'route':{'cluster':'blue'}}]}]}");
	write_file(l, "cluster",
		"{'@type':'type.googleapis.com/envoy.config.cluster.v3.Cluster','name':'blue',"
		"'type':'EDS','edsClusterConfig':{'edsConfig':{'ads':{}}}}");
}

static void write_endpoint(struct live *l, int port)
{
	char json[512];
	snprintf(json, sizeof(json),
		"{'@type':'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment',"
		"'clusterName':'blue','endpoints':[{'locality':{},'loadBalancingWeight':1,"
		"'lbEndpoints':[{'endpoint':{'address':{'socketAddress':"
		"{'address':'10.0.0.1','portValue':%d}}}}]}]}",
		port);
	write_file(l, "endpoints", json);
}

static void live_init(struct live *l)
{
	*l = (struct live){.folder = "/tmp/shunt-xds-live-XXXXXX", .port = free_port()};
	assert_non_null(mkdtemp(l->folder));
	write_resources(l);
	write_endpoint(l, 80);
	char json[256];
	struct lb_err err = {""};
	int len = snprintf(json, sizeof(json),
		"{\"xds_servers\":[{\"server_uri\":\"127.0.0.1:%u\",\"channel_creds\":"
		"[{\"type\":\"insecure\"}]}],\"node\":{\"id\":\"live\"}}",
		l->port);
	assert_int_equal(xds_bootstrap_parse(json, (size_t)len, "test", &l->bootstrap, &err), 0);
	l->wheel = twheel_new(clock_ns());
	rand_init(&l->rand, 1);
	l->grpc = xds_grpc_new();
	assert_non_null(l->grpc);
	l->client = xds_federation_new(&(struct xds_client_conf){
		.bootstrap = l->bootstrap,
		.types = res_types,
		.n_types = RES_N_TYPES,
		.transport = xds_grpc_factory(l->grpc),
		.wheel = l->wheel,
		.rand = &l->rand,
		.user_agent_version = "0",
	});
	assert_non_null(l->client);
}

static void start_depmgr(struct live *l)
{
	l->dm = depmgr_new(&(struct depmgr_conf){
		.client = l->client,
		.wheel = l->wheel,
		.listener_name = "web",
		.node_id = "live",
		.on_update = on_update,
		.on_error = on_error,
		.ctx = l,
	});
	assert_non_null(l->dm);
}

static void live_fini(struct live *l)
{
	stop_server(l);
	depmgr_free(l->dm);
	xds_federation_free(l->client);
	xds_grpc_free(l->grpc);
	twheel_free(l->wheel);
	xds_bootstrap_free(l->bootstrap);
	static const char *const FILES[] = {"listener", "routes", "cluster", "endpoints"};
	for (size_t i = 0; i < 4; i++)
		remove_file(l, FILES[i]);
	rmdir(l->folder);
}

// Port of the only endpoint, 0 = none.
static unsigned port_served(struct live *l)
{
	const struct xds_config *c = l->config;
	if (!c || c->n_clusters != 1 || !c->clusters[0].endpoints ||
		c->clusters[0].endpoints->list->n_priorities != 1)
		return 0;
	return c->clusters[0].endpoints->list->addresses[0].port;
}

static struct xds_server_info server_info(struct live *l)
{
	struct xds_server_info info;
	xds_federation_server(l->client, &info);
	return info;
}

static void real_server_is_followed_lost_and_found_again(void **state)
{
	struct live l;
	live_init(&l);
	start_server(&l);
	start_depmgr(&l);
	WAIT_FOR(&l, port_served(&l) == 80);
	assert_int_equal(l.n_updates, 1);
	WAIT_FOR(&l, server_info(&l).n_acks == 4); // the last may not have been sent yet
	assert_int_equal(server_info(&l).n_nacks, 0);

	write_endpoint(&l, 81);
	WAIT_FOR(&l, port_served(&l) == 81);

	write_file(&l, "cluster",
		"{'@type':'type.googleapis.com/envoy.config.cluster.v3.Cluster','name':'blue',"
		"'type':'STATIC'}");
	WAIT_FOR(&l, strstr(l.config->clusters[0].resolution_note, "STATIC"));
	assert_int_equal(port_served(&l), 81); // NACKed; the last good one serves
	write_resources(&l);
	WAIT_FOR(&l, !strstr(l.config->clusters[0].resolution_note, "STATIC"));

	stop_server(&l);
	WAIT_FOR(&l, server_info(&l).state == XDS_SERVER_BACKOFF &&
			     strstr(l.config->clusters[0].resolution_note, "not reachable"));
	assert_int_equal(port_served(&l), 81); // FM-09
	write_endpoint(&l, 82);
	start_server(&l);
	WAIT_FOR(&l, port_served(&l) == 82);
	assert_int_equal(server_info(&l).state, XDS_SERVER_CONNECTED);
	live_fini(&l);
}

static void absent_server_is_an_error_with_its_address(void **state)
{
	struct live l;
	char address[32];
	live_init(&l);
	start_depmgr(&l);
	WAIT_FOR(&l, *l.error);
	snprintf(address, sizeof(address), "127.0.0.1:%u", l.port);
	assert_non_null(strstr(l.error, address));
	assert_non_null(strstr(l.error, "UNAVAILABLE"));
	live_fini(&l);
}

static void shutdown_while_connecting_does_not_hang(void **state)
{
	struct live l;
	live_init(&l);
	start_depmgr(&l); // and no turn of the loop
	live_fini(&l);
}

static void shutdown_with_a_busy_stream_does_not_hang(void **state)
{
	struct live l;
	live_init(&l);
	start_server(&l);
	start_depmgr(&l);
	WAIT_FOR(&l, server_info(&l).state == XDS_SERVER_CONNECTED);
	depmgr_free(l.dm); // the unsubscription is under way
	l.dm = NULL;
	live_fini(&l);
}

static void missing_certificates_are_named(void **state)
{
	struct xds_grpc *grpc = xds_grpc_new();
	assert_non_null(grpc);
	struct xds_transport_factory factory = xds_grpc_factory(grpc);
	struct xds_transport *t = NULL;
	struct lb_err err = {""};
	char uri[] = "127.0.0.1:1", file[] = "/nowhere/ca.pem";
	struct xds_server_conf conf = {.uri = uri, .creds = XDS_CREDS_TLS, .files = {.ca = file}};
	assert_true(factory.connect(factory.ctx, &conf, &t, &err) < 0);
	assert_non_null(strstr(err.text, file));
	xds_grpc_free(grpc);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	server_path = argv[1];
	const struct CMUnitTest suite[] = {
		cmocka_unit_test(real_server_is_followed_lost_and_found_again),
		cmocka_unit_test(absent_server_is_an_error_with_its_address),
		cmocka_unit_test(shutdown_while_connecting_does_not_hang),
		cmocka_unit_test(shutdown_with_a_busy_stream_does_not_hang),
		cmocka_unit_test(missing_certificates_are_named),
	};
	return cmocka_run_group_tests_name("xds/live", suite, NULL, NULL);
}
