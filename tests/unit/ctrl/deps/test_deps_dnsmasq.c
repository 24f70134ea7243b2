// SPDX-License-Identifier: Apache-2.0
// LOGICAL_DNS clusters from the resource to the configuration, with a name server that others
// wrote: dnsmasq on loopback. c-ares and the server run in real time, each wait with a bound; the
// names' timers in virtual time.
// usage: test_deps_dnsmasq DNSMASQ ("" = there is none)
#include "ctrl/dns/lookup_ares.h"
#include "ctrl/dns/names.h"
#include "ctrl/res/cluster.h"
#include "ctrl/res/endpoints.h"
#include "ctrl/res/listener.h"
#include "ctrl/res/route.h"
#include "lb/base/twheel.h"
#include "tests/support/check.h"
#include "tests/support/free_port.h"
#include "tests/unit/ctrl/deps/deps_fixture.h"

#include <event2/event.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BOUND_NS (30 * S) // of one wait
#define TTL_S 301 // that of the server's answers is over

static const char *dnsmasq;

struct world {
	struct deps_fixture f; // without its own manager and its own names
	struct deps_fixture hears; // for its config alone
	struct depmgr *dm;
	struct dns_resolver *resolver;
	struct dns_lookups *lookups;
	struct event_base *events;
	struct twheel *real; // c-ares's
	char hosts[64]; // the file that the server reads
	int port;
	pid_t server;
};

static uint64_t clock_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * S + (uint64_t)t.tv_nsec;
}

static void start_server(struct world *w)
{
	char port[32], hosts[80];
	snprintf(port, sizeof(port), "--port=%d", w->port);
	snprintf(hosts, sizeof(hosts), "--addn-hosts=%s", w->hosts);
	w->server = fork();
	assert_true(w->server >= 0);
	if (w->server)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execl(dnsmasq, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null",
		"--user=", "--pid-file=", "--listen-address=127.0.0.1", "--bind-interfaces",
		"--no-resolv", "--no-hosts", "--local-ttl=300", "--local=/test/",
		"--log-facility=/dev/null", port, hosts, (char *)NULL);
	_exit(127);
}

// A question that finds nobody fails at once, and half an answer is one.
static void await_server(const struct world *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)w->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	uint64_t end = clock_ns() + BOUND_NS;
	for (int rc = -1; rc;) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);
		rc = connect(fd, (struct sockaddr *)&a, sizeof(a));
		close(fd);
		assert_true(clock_ns() < end);
		usleep(1000);
	}
}

static void stop_server(struct world *w)
{
	kill(w->server, SIGKILL);
	waitpid(w->server, NULL, 0);
}

// The file's new lines, "10.0.0.1 db.test\n…", which the server reads at once.
static void set_hosts(struct world *w, const char *lines)
{
	FILE *f = fopen(w->hosts, "w");
	assert_non_null(f);
	fputs(lines, f);
	fclose(f);
	if (w->server)
		kill(w->server, SIGHUP);
	usleep(100000); // it tells nobody when it has read it
}

static void on_update(void *ctx, struct xds_config *config)
{
	struct world *w = ctx;
	w->hears.config = config;
}

static void on_error(void *ctx, const char *text)
{
	fail_msg("%s", text);
}

static void init(struct world *w)
{
	char servers[32];
	struct lb_err err = {""};
	*w = (struct world){.port = free_port(), .hosts = "/tmp/shunt-hosts-XXXXXX"};
	close(mkstemp(w->hosts));
	set_hosts(w, "10.0.0.1 db.test\n10.0.0.2 db.test\nfd00::1 db.test\n");
	start_server(w);
	await_server(w);
	deps_init(&w->f, "", NULL);
	depmgr_free(w->f.dm);
	w->f.dm = NULL;
	w->real = twheel_new(clock_ns());
	w->events = event_base_new();
	snprintf(servers, sizeof(servers), "127.0.0.1:%d", w->port);
	struct dns_ares_conf ares = {
		.events = w->events,
		.wheel = w->real,
		.servers = servers,
		.timeout_ms = 200,
		.tries = 5,
		.limit_ms = 1000,
	};
	assert_int_equal(dns_ares_new(&ares, &w->lookups, &err), 0);
	w->resolver = dns_names_new(&(struct dns_names_conf){
		.wheel = w->f.wheel, .rand = &w->f.rand, .lookups = w->lookups});
	assert_non_null(w->resolver);
	w->dm = depmgr_new(&(struct depmgr_conf){
		.client = w->f.client,
		.dns = w->resolver,
		.wheel = w->f.wheel,
		.listener_name = "web",
		.node_id = "me",
		.on_update = on_update,
		.on_error = on_error,
		.ctx = w,
	});
	assert_non_null(w->dm);
	deps_pass_time(&w->f, 1);
}

static void fini(struct world *w)
{
	depmgr_free(w->dm);
	w->resolver->ops->free(w->resolver);
	w->lookups->ops->free(w->lookups);
	deps_fini(&w->f);
	twheel_free(w->real);
	event_base_free(w->events);
	stop_server(w);
	unlink(w->hosts);
}

static bool says(struct world *w, const char *part, const char *name, const char *note)
{
	return w->hears.config && strstr(look(&w->hears), part) &&
	       strstr(note_of(&w->hears, name), note);
}

// Until a configuration has this part and this note; questions that failed are asked again
// meanwhile, in virtual time.
static void await(struct world *w, const char *part, const char *name, const char *note)
{
	uint64_t end = clock_ns() + BOUND_NS;
	while (!says(w, part, name, note) && clock_ns() < end) {
		twheel_advance(w->real, clock_ns());
		event_base_loop(w->events, EVLOOP_NONBLOCK);
		deps_pass_time(&w->f, 1);
		usleep(300);
	}
	if (!says(w, part, name, note))
		fail_msg("\"%s\" and \"%s\" do not come: %s", part, note, look(&w->hears));
}

static void a_real_name_server_is_followed(void **state)
{
	struct world w;
	if (!*dnsmasq)
		skip();
	init(&w);
	hold_listener(&w.f, "rc");
	hold_routes(&w.f, "rc", "top", NULL);
	hold_aggregate(&w.f, "top", "d e");
	hold_name(&w.f, "d", "db.test");
	hold_name(&w.f, "e", "none.test");
	say_all(&w.f);
	await(&w, " ~d=db.test/fd00::1+10.0.0.", "e", "none.test"); // A37-D03
	assert_non_null(strstr(look(&w.hears), "10.0.0.1"));
	assert_non_null(strstr(look(&w.hears), "10.0.0.2"));
	assert_non_null(strstr(look(&w.hears), " ~e=none.test? top[d e]"));

	set_hosts(&w, "10.0.0.3 db.test\n");
	depmgr_reresolve(w.dm); // DM-23
	deps_pass_time(&w.f, 31 * S);
	await(&w, " ~d=db.test/10.0.0.3 ", "d", "node id");

	set_hosts(&w, "10.0.0.4 none.test\n"); // one goes, one comes
	deps_pass_time(&w.f, TTL_S * S);
	await(&w, " ~d=db.test/10.0.0.3 ~e=none.test/10.0.0.4 ", "d", "\"db.test\" failed");

	kill(w.server, SIGSTOP); // silence
	deps_pass_time(&w.f, TTL_S * S);
	await(&w, " ~d=db.test/10.0.0.3 ~e=none.test/10.0.0.4 ", "e", "\"none.test\" failed");

	kill(w.server, SIGCONT);
	set_hosts(&w, "10.0.0.5 db.test\n10.0.0.4 none.test\n");
	deps_pass_time(&w.f, 145 * S); // any backoff is over
	await(&w, " ~d=db.test/10.0.0.5 ", "d", "node id");
	await(&w, " ~e=none.test/10.0.0.4 ", "e", "node id");
	fini(&w);
}

int main(int argc, char **argv)
{
	dnsmasq = argc > 1 ? argv[1] : "";
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_real_name_server_is_followed)};
	return cmocka_run_group_tests_name("deps/dnsmasq", tests, NULL, NULL);
}
