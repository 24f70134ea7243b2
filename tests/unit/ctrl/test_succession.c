// SPDX-License-Identifier: Apache-2.0
// What a takeover does to where a process is reached. The newer one is a socket that speaks by
// hand, and has the metrics' port for as long as it likes; there is no stats socket.
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/bequest.h"
#include "ctrl/conf/config.h"
#include "ctrl/loop.h"
#include "ctrl/reach.h"
#include "ctrl/service.h"
#include "ctrl/shutdown.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats_start.h"
#include "ctrl/succession.h"
#include "ctrl/takeover/peer.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"

#include <event2/event.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int __wrap_stats_take_names(
	struct stats_sockets *, const struct config_stats *, struct lb_err *reterr);
int __wrap_stats_share_names(struct stats_sockets *, const struct config_stats *,
	uint32_t generation, struct lb_err *reterr);
const struct scrape_conf *__wrap_show_scrape_conf(const struct show *);
int __wrap_bequest_make(const struct assembler *);

int __wrap_stats_take_names(
	struct stats_sockets *s, const struct config_stats *c, struct lb_err *reterr)
{
	return 0;
}

int __wrap_stats_share_names(struct stats_sockets *s, const struct config_stats *c,
	uint32_t generation, struct lb_err *reterr)
{
	return 0;
}

const struct scrape_conf *__wrap_show_scrape_conf(const struct show *s)
{
	return NULL;
}

int __wrap_bequest_make(const struct assembler *a)
{
	return -1;
}

static struct world {
	char dir[32], path[64], listen[32];
	struct config_metrics metrics;
	struct config_csds csds;
	struct config_frontend frontend;
	struct config config;
	struct xds_bootstrap *bootstrap;
	struct loop *loop; // for its wheel and events; it never runs
	uint64_t now_ns;
	struct lb_shared *shared;
	struct lb_link *link;
	struct workers *workers;
	struct drains *drains;
	struct shutdown shutdown;
	struct service service;
	struct reach reach;
	struct succession *succession;
	unsigned n_reopened;
} w;

static void on_begin(void *ctx)
{
}

static void on_change(void *ctx)
{
}

static void on_reopened(void *ctx)
{
	w.n_reopened++;
}

static void tick(uint64_t ns)
{
	for (uint64_t end = w.now_ns + ns; w.now_ns < end;) {
		w.now_ns += NS_PER_SECOND / 10;
		twheel_advance(loop_wheel(w.loop), w.now_ns);
		(void)succession_tick(w.succession, true);
		event_base_loop(loop_base(w.loop), EVLOOP_NONBLOCK);
	}
}

static void succeed(void)
{
	struct lb_err err = {""};
	const struct succession_conf conf = {.config = &w.config,
		.seat = {.fd = -1, .generation = 1},
		.loop = w.loop,
		.workers = w.workers,
		.reach = &w.reach,
		.service = &w.service,
		.shutdown = &w.shutdown,
		.reopened = on_reopened};
	assert_int_equal(succession_new(&conf, &w.succession, &err), 0);
	assert_non_null(w.succession);
}

static int set_up(void **state)
{
	static char boot[] = "{\"xds_servers\": [{\"server_uri\": \"127.0.0.1:1\", "
			     "\"channel_creds\": [{\"type\": \"insecure\"}]}], "
			     "\"node\": {\"id\": \"n\"}}";
	static char any_port[] = "127.0.0.1:0", name[] = "a";
	struct lb_err err = {""};
	log_set_level(LOG_LEVEL_ERROR);
	memset(&w, 0, sizeof(w));
	strcpy(w.dir, "/tmp/succession-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.path, sizeof(w.path), "%s/sock", w.dir);
	w.metrics.listen = w.listen;
	w.csds.listen = any_port;
	w.frontend.name = name;
	w.config = (struct config){.takeover_socket = w.path,
		.metrics = &w.metrics,
		.csds = &w.csds,
		.frontends = &w.frontend,
		.n_frontends = 1};
	assert_int_equal(xds_bootstrap_parse(boot, strlen(boot), "test", &w.bootstrap, &err), 0);
	w.loop = loop_new();
	w.now_ns = twheel_now(loop_wheel(w.loop));
	w.link = lb_link_new(0, 0, w.shared = lb_shared_new());
	w.workers = workers_new(&w.link, 1, NULL, NULL);
	w.drains = drains_new(&(struct drains_conf){.config = &w.config,
		.workers = w.workers,
		.wheel = loop_wheel(w.loop),
		.changed = on_change});
	w.shutdown = (struct shutdown){.config = &w.config,
		.loop = w.loop,
		.workers = w.workers,
		.drains = w.drains,
		.on_begin = on_begin};
	w.reach.conf = (struct reach_conf){.config = &w.config,
		.bootstrap = w.bootstrap,
		.loop = w.loop,
		.slice = {.clock_ns = loop_clock_ns, .len_ns = NS_PER_MS},
		.generation = 1};
	succeed();
	return 0;
}

static int tear_down(void **state)
{
	reach_stop(&w.reach);
	succession_free(w.succession);
	drains_free(w.drains);
	workers_free(w.workers);
	lb_link_free(w.link);
	lb_shared_free(w.shared);
	loop_free(w.loop);
	xds_bootstrap_free(w.bootstrap);
	return rmdir(w.dir);
}

// The newer one's end of the talk.
static int dial(void)
{
	struct lb_err err = {""};
	int fd = takeover_peer_connect(w.path, 1, &err);
	assert_true(fd >= 0);
	return fd;
}

static enum takeover_kind talk(int fd, enum takeover_kind kind)
{
	struct takeover_message m = {.kind = kind};
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	return m.kind;
}

static void obey(enum lb_company company) // the worker
{
	__atomic_store_n(&w.link->company, company, __ATOMIC_RELEASE);
}

// A port that somebody has, whose text is the metrics'.
static int hold_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(w.listen, sizeof(w.listen), "127.0.0.1:%u", ntohs(a.sin_port));
	return fd;
}

// FL-08
static void ports_that_one_who_hangs_has_are_opened_once_it_is_gone(void **state)
{
	int port = hold_port(), fd = dial();
	obey(LB_FRONT);
	assert_int_equal(talk(fd, TAKEOVER_HELLO), TAKEOVER_WELCOME);
	assert_int_equal(talk(fd, TAKEOVER_TAKE), TAKEOVER_GIVEN);
	close(fd);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(w.n_reopened, 1);
	struct status_server *status = w.reach.status;
	assert_non_null(status);
	assert_null(w.reach.metrics);
	tick(NS_PER_SECOND);
	assert_int_equal(w.n_reopened, 2);
	assert_null(w.reach.metrics);
	close(port);
	tick(NS_PER_SECOND);
	assert_non_null(w.reach.metrics);
	assert_ptr_equal(w.reach.status, status);
	tick(5 * NS_PER_SECOND);
	assert_int_equal(w.n_reopened, 3);
}

// FL-10
static void nobody_takes_over_while_frontends_are_drained(void **state)
{
	struct lb_err err = {""};
	struct takeover_message m;
	assert_int_equal(drains_begin(w.drains, DRAINS_ALL, &err), 1);
	int fd = dial();
	tick(NS_PER_SECOND / 2);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_REFUSED);
	assert_string_equal(m.text, "frontends are drained: undrain first");
	close(fd);
	w.shutdown.begun = true;
	fd = dial();
	obey(LB_FRONT);
	assert_int_equal(talk(fd, TAKEOVER_HELLO), TAKEOVER_WELCOME);
	close(fd);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/succession", CASE(ports_that_one_who_hangs_has_are_opened_once_it_is_gone),
	CASE(nobody_takes_over_while_frontends_are_drained))
