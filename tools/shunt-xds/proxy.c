// SPDX-License-Identifier: Apache-2.0
// `shunt-xds proxy`: a caching proxy (xRFC TP2) between clients and another management server. The
// loop: signals, the server above, the clients.
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "ctrl/xds/client.h"
#include "ctrl/xds/keeper.h"
#include "ctrl/xds/protocol.h"
#include "ctrl/xds/transport_grpc.h"
#include "lb/base/err.h"
#include "lb/base/log.h"
#include "lb/base/rand.h"
#include "lb/base/time.h"
#include "lb/base/twheel.h"
#include "tools/shunt-xds/ads_service.h"
#include "tools/shunt-xds/app.h"
#include "tools/shunt-xds/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

// Of a request, for all that is not names: the node, a refusal's text.
#define REQUEST_REST (128 << 10)

struct app {
	struct xds_bootstrap *bootstrap;
	struct twheel *wheel;
	struct rand rand;
	struct xds_grpc *grpc;
	struct catalog *catalog;
	struct xds_keeper *keeper; // NULL = off
	struct upstream *upstream;
	struct ads_service *service;
};

static void upstream_says(void *ctx, const char *line)
{
	log_info("upstream", "said=%s", log_quote(line));
}

static void run(struct app *app, int signals)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = signals, .events = POLLIN},
			{.fd = xds_grpc_fd(app->grpc), .events = POLLIN},
			{.fd = ads_service_fd(app->service), .events = POLLIN}};
		uint64_t due = twheel_next_ns(app->wheel);
		uint64_t clients_due = ads_service_due_ns(app->service);
		app_wait(fds, 3, clients_due < due ? clients_due : due);
		if (fds[0].revents)
			return;
		twheel_advance(app->wheel, app_now_ns());
		upstream_begin(app->upstream);
		xds_grpc_dispatch(app->grpc);
		ads_service_dispatch(app->service, twheel_now(app->wheel));
		upstream_end(app->upstream);
		if (upstream_settle(app->upstream))
			ads_service_publish(app->service, twheel_now(app->wheel));
	}
}

static int load_bootstrap(struct app *app, const char *path)
{
	struct lb_err err = {""};
	int r = xds_bootstrap_load_file(path, &app->bootstrap, &err);
	if (r < 0) {
		log_error("bad bootstrap", "file=%s error=%s", log_quote(path),
			log_quote(err.text[0] ? err.text : strerror(-r)));
		return r;
	}
	const struct xds_bootstrap *b = app->bootstrap;
	if (b->n_servers > 1)
		log_warn("the first server of the bootstrap is the one that is asked",
			"servers=%u first=%s", b->n_servers, log_quote(b->servers[0].uri));
	if (b->n_authorities > 0)
		log_warn("authorities of the bootstrap are not used", "authorities=%u",
			b->n_authorities);
	return 0;
}

static uint64_t wall_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

// Clients that are not back yet want what is kept for them for as long as what they left.
static int open_keeper(struct app *app, const struct app_options *o)
{
	if (!o->state_dir)
		return 0;
	struct lb_err err = {""};
	struct xds_keeper_conf conf = {
		.directory = o->state_dir,
		.bootstrap = app->bootstrap,
		.wheel = app->wheel,
		.wall_ns = wall_ns,
		.hold_ns = o->grace_ns,
	};
	int rc = xds_keeper_new(&conf, &app->keeper, &err);
	if (rc)
		log_error("cannot keep state", "error=%s", log_quote(err.text));
	return rc;
}

static int open_upstream(struct app *app, const struct app_options *o)
{
	uint64_t seed = app_now_ns();
	(void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK); // spreads reconnects, no more
	rand_init(&app->rand, seed);
	app->wheel = twheel_new(app_now_ns());
	app->grpc = xds_grpc_new();
	const struct xds_protocol *protocol =
		o->is_delta ? &xds_protocol_delta : &xds_protocol_sotw;
	app->catalog = catalog_new(protocol->newest_wins);
	if (!app->wheel || !app->grpc || !app->catalog)
		return -ENOMEM;
	int rc = open_keeper(app, o);
	if (rc)
		return rc;
	app->upstream = upstream_new(
		&(struct upstream_conf){
			.bootstrap = app->bootstrap,
			.protocol = protocol,
			.transport = xds_grpc_factory(app->grpc),
			.wheel = app->wheel,
			.rand = &app->rand,
			.user_agent_version = SHUNT_VERSION,
			.grace_ns = o->grace_ns,
			.names_max = o->request_max - REQUEST_REST,
			.keeper = app->keeper,
			.log = upstream_says,
		},
		app->catalog);
	return app->upstream ? 0 : -ENOMEM;
}

static int open_all(struct app *app, const struct app_options *o)
{
	struct lb_err err = {""};
	int r = load_bootstrap(app, o->upstream);
	if (r < 0)
		return r;
	r = open_upstream(app, o);
	if (r < 0) {
		log_error("cannot start", "error=%s", log_quote(strerror(-r)));
		return r;
	}
	r = ads_service_new(
		o->listen, o->tls.cert ? &o->tls : NULL, app->catalog, &app->service, &err);
	if (r < 0) {
		log_error("cannot serve", "address=%s error=%s", log_quote(o->listen),
			log_quote(err.text[0] ? err.text : strerror(-r)));
		return r;
	}
	log_info("serving", "upstream=%s protocol=%s address=%s port=%d",
		log_quote(app->bootstrap->servers[0].uri), o->is_delta ? "delta" : "sotw",
		log_quote(o->listen), ads_service_port(app->service));
	return 0;
}

int app_proxy(const struct app_options *o, int signals)
{
	struct app app = {.wheel = NULL};
	int r = open_all(&app, o);
	if (r == 0) {
		run(&app, signals);
		log_info("stopping", "%s", "");
	}
	xds_keeper_finish(app.keeper); // while clients' subscriptions are there
	ads_service_free(app.service);
	upstream_free(app.upstream);
	xds_keeper_free(app.keeper);
	catalog_free(app.catalog);
	if (app.grpc)
		xds_grpc_free(app.grpc);
	twheel_free(app.wheel);
	xds_bootstrap_free(app.bootstrap);
	return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
