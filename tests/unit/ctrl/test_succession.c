// SPDX-License-Identifier: Apache-2.0
// What a takeover does to where a process is reached. The newer one is a socket that speaks by
// hand, and has the metrics' port for as long as it likes; there is no stats socket.
#include "ctrl/assemble/drains.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/bequest.h"
#include "ctrl/certs/certs.h"
#include "ctrl/conf/config.h"
#include "ctrl/listen_port.h"
#include "ctrl/loop.h"
#include "ctrl/reach.h"
#include "ctrl/service.h"
#include "ctrl/shutdown.h"
#include "ctrl/stats/show.h"
#include "ctrl/stats_start.h"
#include "ctrl/succession.h"
#include "ctrl/takeover/peer.h"
#include "ctrl/trust.h"
#include "ctrl/xds/bootstrap/bootstrap.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/pick/link.h"
#include "tests/support/check.h"
#include "tests/unit/ctrl/certs/pki.h"

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
void __wrap_stats_leave_names(struct stats_sockets *, const struct config_stats *);
const struct scrape_conf *__wrap_show_scrape_conf(const struct show *);
int __wrap_bequest_make(const struct assembler *, const struct credentials *);
uint32_t __wrap_assembler_reconnect(struct assembler *, const struct ip_port *);

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

void __wrap_stats_leave_names(struct stats_sockets *s, const struct config_stats *c)
{
}

const struct scrape_conf *__wrap_show_scrape_conf(const struct show *s)
{
	return NULL;
}

int __wrap_bequest_make(const struct assembler *a, const struct credentials *c)
{
	return -1;
}

static struct world {
	char dir[32], path[64], listen[32], csds_listen[32];
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
	struct reach_conf reach_conf;
	struct succession *succession;
	struct trust *trust;
	unsigned n_reopened, n_reconnected;
	uint32_t n_sources; // that the older one, by hand, says it will name
} w;

uint32_t __wrap_assembler_reconnect(struct assembler *a, const struct ip_port *address)
{
	assert_null(address);
	return w.n_reconnected++;
}

static void on_begin(void *ctx)
{
}

static void on_change(void *ctx)
{
}

static void on_credential(void *ctx, uint32_t id, struct lb_credential *credential)
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

static void succeed(struct takeover_seat seat)
{
	struct lb_err err = {""};
	const struct succession_conf conf = {.config = &w.config,
		.seat = seat,
		.loop = w.loop,
		.workers = w.workers,
		.trust = w.trust,
		.reach = &w.reach,
		.service = &w.service,
		.shutdown = &w.shutdown,
		.reopened = on_reopened};
	assert_int_equal(succession_new(&conf, &w.succession, &err), 0);
	assert_non_null(w.succession);
}

// A port that somebody has; `ret` is the address.
static int hold_port(char ret[32])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	snprintf(ret, 32, "127.0.0.1:%u", ntohs(a.sin_port));
	return fd;
}

// There is no file for the provider "p" yet.
static void parse_bootstrap(void)
{
	char boot[512];
	struct lb_err err = {""};
	snprintf(boot, sizeof(boot),
		"{\"xds_servers\": [{\"server_uri\": \"127.0.0.1:1\", "
		"\"channel_creds\": [{\"type\": \"insecure\"}]}], \"node\": {\"id\": \"n\"}, "
		"\"certificate_providers\": {\"p\": {\"plugin_name\": \"file_watcher\", "
		"\"config\": {\"ca_certificate_file\": \"%s\"}}}}",
		pki_path("ca.pem"));
	assert_int_equal(xds_bootstrap_parse(boot, strlen(boot), "test", &w.bootstrap, &err), 0);
}

static int set_up(void **state)
{
	static char name[] = "a";
	log_set_level(LOG_LEVEL_ERROR);
	memset(&w, 0, sizeof(w));
	strcpy(w.dir, "/tmp/succession-XXXXXX");
	assert_non_null(mkdtemp(w.dir));
	snprintf(w.path, sizeof(w.path), "%s/sock", w.dir);
	w.metrics.listen = w.listen;
	w.csds.listen = w.csds_listen;
	close(hold_port(w.csds_listen));
	w.frontend.name = name;
	w.config = (struct config){.takeover_socket = w.path,
		.metrics = &w.metrics,
		.csds = &w.csds,
		.frontends = &w.frontend,
		.n_frontends = 1};
	pki_begin();
	parse_bootstrap();
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
	const struct trust_conf trust = {.config = &w.config,
		.bootstrap = w.bootstrap,
		.loop = w.loop,
		.changed = on_credential};
	w.trust = trust_new(&trust);
	assert_non_null(w.trust);
	w.reach_conf = (struct reach_conf){.config = &w.config,
		.bootstrap = w.bootstrap,
		.loop = w.loop,
		.slice = {.clock_ns = loop_clock_ns, .len_ns = NS_PER_MS},
		.generation = 1};
	w.reach.conf = w.reach_conf;
	succeed((struct takeover_seat){.fd = -1, .generation = 1});
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
	trust_free(w.trust);
	loop_free(w.loop);
	xds_bootstrap_free(w.bootstrap);
	pki_end();
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

// FL-08
static void ports_that_one_who_hangs_has_are_opened_once_it_is_gone(void **state)
{
	int port = hold_port(w.listen), fd = dial();
	obey(LB_FRONT);
	assert_int_equal(talk(fd, TAKEOVER_HELLO), TAKEOVER_WELCOME);
	assert_int_equal(talk(fd, TAKEOVER_TAKE), TAKEOVER_GIVEN);
	close(fd);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(w.n_reopened, 1);
	struct status_port *status = w.reach.status;
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
	struct takeover_message m = {.kind = TAKEOVER_HELLO};
	assert_int_equal(drains_begin(w.drains, DRAINS_ALL, &err), 1);
	int fd = dial();
	assert_int_equal(takeover_peer_say(fd, &m), 0);
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

// The metrics' port at a free address, and the status port; both are served.
static void open_reach(void)
{
	struct lb_err err = {""};
	close(hold_port(w.listen));
	assert_int_equal(reach_open_ports(&w.reach, false, &err), 0);
	assert_int_equal(reach_take_names(&w.reach, &err), 0);
}

static int connect_to_metrics(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	unsigned port;
	assert_int_equal(sscanf(w.listen, "127.0.0.1:%u", &port), 1);
	at.sin_port = htons((uint16_t)port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

#define HALF "GET /nothing HTTP/1.1\r\n"
#define WHOLE "Host: a\r\n\r\n"

static void say_on(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	tick(NS_PER_SECOND / 2);
}

static bool is_answered(int fd)
{
	char buf[1024] = "";
	return recv(fd, buf, sizeof(buf) - 1, MSG_DONTWAIT) > 0 && strstr(buf, "404");
}

union control { // of one descriptor
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

// The next message and what came with it; -1 = nothing.
static enum takeover_kind hear_with(int fd, int *ret_given)
{
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	union control control;
	struct takeover_message m;
	struct iovec part = {bytes, sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);
	assert_true(n > 0 && takeover_wire_read(bytes, (size_t)n, &m) == 0);
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	*ret_given = -1;
	if (c)
		memcpy(ret_given, CMSG_DATA(c), sizeof(*ret_given));
	return m.kind;
}

static void say_with(int fd, enum takeover_kind kind, int given)
{
	uint8_t bytes[TAKEOVER_MAX_MESSAGE];
	union control control = {{0}};
	struct iovec part = {
		bytes, takeover_wire_write(&(struct takeover_message){.kind = kind}, bytes)};
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &given, sizeof(given));
	assert_int_equal(sendmsg(fd, &msg, 0), part.iov_len);
	tick(NS_PER_SECOND / 2);
}

static bool may_listen(bool beside)
{
	struct lb_err err = {""};
	int fd = listen_port_open(w.listen, beside, &err);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static int greet(bool passes)
{
	struct takeover_message m = {.kind = TAKEOVER_HELLO, .passes_listeners = passes};
	int fd = dial();
	obey(LB_FRONT);
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_WELCOME);
	assert_int_equal(m.passes_listeners, 1);
	m = (struct takeover_message){.kind = TAKEOVER_TAKE};
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	tick(NS_PER_SECOND / 2);
	return fd;
}

// Until it has left.
static void take_over(int fd)
{
	obey(LB_BEHIND);
	assert_int_equal(talk(fd, TAKEOVER_OPENED), TAKEOVER_FREE);
	struct takeover_message m = {.kind = TAKEOVER_SERVING};
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	tick(NS_PER_SECOND / 2);
	assert_null(w.reach.metrics);
}

static void fl_70_who_is_at_a_port_is_answered_and_who_waits_there_is_the_newer_ones(void **state)
{
	int ports[2], none;
	open_reach();
	int early = connect_to_metrics();
	say_on(early, HALF);
	int fd = greet(true);
	assert_int_equal(hear_with(fd, &ports[0]), TAKEOVER_LISTENER);
	assert_int_equal(hear_with(fd, &ports[1]), TAKEOVER_LISTENER);
	assert_int_equal(hear_with(fd, &none), TAKEOVER_GIVEN);
	assert_false(may_listen(true)); // nobody else may have a part of it
	int waits = connect_to_metrics();
	say_on(waits, HALF WHOLE);
	assert_true(is_answered(waits)); // the older one serves still
	take_over(fd);
	int late = connect_to_metrics();
	say_on(late, HALF WHOLE);
	assert_false(is_answered(late));
	int server = accept(ports[1], NULL, NULL);
	assert_true(server >= 0);
	assert_int_equal(send(server, "404", 3, 0), 3);
	assert_true(is_answered(late));
	say_on(early, WHOLE);
	assert_true(is_answered(early));
	assert_non_null(w.reach.left_status);
	tick(2 * NS_PER_SECOND);
	assert_null(w.reach.left_status);
	int fds[] = {early, waits, late, server, ports[0], ports[1], fd};
	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		close(fds[i]);
}

// FL-08, FL-70
static void where_the_newer_one_ends_the_older_one_listens_on(void **state)
{
	int port, none;
	open_reach();
	int fd = greet(true);
	assert_int_equal(hear_with(fd, &none), TAKEOVER_LISTENER);
	close(none);
	assert_int_equal(hear_with(fd, &port), TAKEOVER_LISTENER);
	obey(LB_BEHIND);
	assert_int_equal(hear_with(fd, &none), TAKEOVER_GIVEN);
	assert_int_equal(talk(fd, TAKEOVER_OPENED), TAKEOVER_FREE);
	int waits = connect_to_metrics();
	close(fd);
	close(port);
	say_on(waits, HALF WHOLE);
	assert_true(is_answered(waits));
	close(waits);
}

static void fl_71_one_of_an_earlier_version_opens_ports_beside_ours_until_it_serves(void **state)
{
	int none;
	open_reach();
	assert_false(may_listen(true)); // and again once the kernel has forgotten the port
	for (int i = 0; i < 2; i++) {
		int fd = greet(false);
		assert_int_equal(hear_with(fd, &none), TAKEOVER_GIVEN);
		assert_true(may_listen(true) && !may_listen(false));
		if (i == 1)
			take_over(fd);
		close(fd); // the first time it comes to nothing
		tick(NS_PER_SECOND / 2);
	}
	assert_true(may_listen(false));
}

// The older process is played by hand, as one whose generation is 1.
static int sit_by_hand(bool passes)
{
	int fds[2];
	reach_stop(&w.reach);
	succession_free(w.succession);
	w.reach.conf = w.reach_conf;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	succeed((struct takeover_seat){fds[1], 2, 1, "0.9", passes, .n_sources = w.n_sources});
	obey(LB_BEHIND);
	return fds[0];
}

static int follow_by_hand(bool passes)
{
	struct takeover_message m;
	int fd = sit_by_hand(passes);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_TAKE);
	return fd;
}

// Returns whether it could open its ports.
static bool become_front(int fd)
{
	struct takeover_message m;
	if (talk(fd, TAKEOVER_GIVEN) != TAKEOVER_OPENED)
		return false;
	m = (struct takeover_message){.kind = TAKEOVER_FREE};
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	tick(NS_PER_SECOND / 2);
	obey(LB_FRONT);
	tick(NS_PER_SECOND / 2);
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, TAKEOVER_SERVING);
	return true;
}

static void fl_70_who_waits_at_an_inherited_port_is_answered_once_the_newer_one_serves(void **state)
{
	int fd = follow_by_hand(true), old = hold_port(w.listen), waits = connect_to_metrics();
	say_with(fd, TAKEOVER_LISTENER, old);
	say_on(waits, HALF WHOLE);
	assert_false(is_answered(waits));
	assert_true(become_front(fd));
	close(old);
	tick(NS_PER_SECOND / 2);
	assert_true(is_answered(waits));
	assert_false(may_listen(true));
	close(waits);
	close(fd);
}

// FL-71: the older one listens with SO_REUSEPORT, and passes nothing.
static void fl_71_beside_an_older_one_of_an_earlier_version_ports_are_opened(void **state)
{
	int fd = follow_by_hand(false), old = hold_port(w.listen);
	listen_port_let(old, true);
	assert_true(become_front(fd));
	close(old);
	int client = connect_to_metrics();
	say_on(client, HALF WHOLE);
	assert_true(is_answered(client));
	close(client);
	close(fd);
}

// FL-72: what the older one had there goes with it.
static void fl_72_a_port_that_the_older_one_had_at_a_part_of_the_address_is_opened(void **state)
{
	int fd = follow_by_hand(true), old = hold_port(w.listen);
	memmove(w.listen, "0.0.0.0", 7);
	memmove(w.listen + 7, w.listen + 9, strlen(w.listen + 9) + 1);
	say_with(fd, TAKEOVER_LISTENER, old);
	assert_true(become_front(fd));
	close(old);
	memmove(w.listen + 9, w.listen + 7, strlen(w.listen + 7) + 1);
	memcpy(w.listen, "127.0.0.1", 9);
	int client = connect_to_metrics();
	say_on(client, HALF WHOLE);
	assert_true(is_answered(client));
	close(client);
	close(fd);
}

static void name_source(int fd, const char *source)
{
	struct takeover_message m = {.kind = TAKEOVER_SOURCE};
	strcpy(m.text, source);
	assert_int_equal(takeover_peer_say(fd, &m), 0);
	event_base_loop(loop_base(w.loop), EVLOOP_NONBLOCK);
	tick(NS_PER_SECOND);
}

// FL-204: what the older process has said first.
static int sit_beside_one_with(const char *source)
{
	int fd = sit_by_hand(true);
	close(hold_port(w.listen));
	name_source(fd, source);
	return fd;
}

static bool has_said(int fd)
{
	char byte;
	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

static struct takeover_message expect_said(int fd, enum takeover_kind kind)
{
	struct takeover_message m;
	assert_int_equal(takeover_peer_hear(fd, 1, &m), 0);
	assert_int_equal(m.kind, kind);
	return m;
}

// Until the thread has read it.
static void write_ca(void)
{
	struct pki_cert ca = pki_make("ca", NULL, NULL, -1, 10);
	pki_write("ca.pem", pki_cert_pem(&ca));
	for (int i = 0; !certs_find(trust_certs(w.trust), "p") && i < 20000; i++) {
		usleep(1000);
		event_base_loop(loop_base(w.loop), EVLOOP_NONBLOCK);
	}
	assert_non_null(certs_find(trust_certs(w.trust), "p"));
}

static void fl_204_one_without_the_older_ones_certificates_waits_for_them(void **state)
{
	int fd = sit_beside_one_with("p");
	struct takeover_message m = expect_said(fd, TAKEOVER_LACKS);
	assert_non_null(strstr(m.text, "certificate provider \"p\": ca_certificate_file "));
	tick(100 * NS_PER_SECOND);
	assert_false(has_said(fd)); // once
	assert_int_equal(w.n_reconnected, 0);
	write_ca();
	tick(NS_PER_SECOND / 10);
	assert_string_equal(expect_said(fd, TAKEOVER_LACKS).text, "");
	assert_int_equal(w.n_reconnected, 1);
	assert_false(has_said(fd)); // what failed for it connects first
	tick(NS_PER_SECOND / 2);
	expect_said(fd, TAKEOVER_TAKE);
	assert_true(become_front(fd));
	assert_int_equal(w.n_reconnected, 1);
	close(fd);
}

static void fl_204_what_the_older_one_lacks_too_is_not_waited_for(void **state)
{
	int fd = sit_beside_one_with("another");
	expect_said(fd, TAKEOVER_TAKE);
	close(fd);
}

static void fl_204_it_asks_once_the_older_one_has_named_all_that_it_has(void **state)
{
	w.n_sources = 2;
	int fd = sit_beside_one_with("another");
	assert_false(has_said(fd));
	name_source(fd, "a third");
	expect_said(fd, TAKEOVER_TAKE);
	close(fd);
}

static void fl_204_without_the_older_one_nothing_is_waited_for(void **state)
{
	struct takeover_info i;
	w.n_sources = 2; // it ends before it has named the second one
	int fd = sit_beside_one_with("p");
	expect_said(fd, TAKEOVER_LACKS);
	close(fd);
	obey(LB_ALONE);
	tick(NS_PER_SECOND);
	takeover_info(succession_takeover(w.succession), &i);
	assert_string_equal(i.role, "front");
	assert_string_equal(i.lacks, "");
}

static void fl_204_the_older_one_names_what_it_has_and_tells_what_the_newer_one_lacks(void **state)
{
	struct takeover_message m = {.kind = TAKEOVER_LACKS, .text = "no key"};
	write_ca();
	for (int i = 0; i < 2; i++) {
		int fd = dial();
		obey(LB_FRONT);
		struct takeover_message hello = {.kind = TAKEOVER_HELLO};
		assert_int_equal(takeover_peer_say(fd, &hello), 0);
		tick(NS_PER_SECOND / 2);
		assert_int_equal(expect_said(fd, TAKEOVER_WELCOME).n_sources, 1);
		assert_string_equal(expect_said(fd, TAKEOVER_SOURCE).text, "p");
		assert_null(succession_newer_lacks(w.succession));
		assert_int_equal(takeover_peer_say(fd, &m), 0);
		tick(NS_PER_SECOND / 2);
		assert_string_equal(succession_newer_lacks(w.succession), "no key");
		if (i == 1)
			assert_int_equal(talk(fd, TAKEOVER_TAKE), TAKEOVER_GIVEN);
		close(fd); // the first time it goes while it waits
		tick(NS_PER_SECOND / 2);
		assert_null(succession_newer_lacks(w.succession));
	}
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
RUN_SUITE("ctrl/succession", CASE(ports_that_one_who_hangs_has_are_opened_once_it_is_gone),
	CASE(fl_70_who_is_at_a_port_is_answered_and_who_waits_there_is_the_newer_ones),
	CASE(where_the_newer_one_ends_the_older_one_listens_on),
	CASE(fl_71_one_of_an_earlier_version_opens_ports_beside_ours_until_it_serves),
	CASE(fl_70_who_waits_at_an_inherited_port_is_answered_once_the_newer_one_serves),
	CASE(fl_71_beside_an_older_one_of_an_earlier_version_ports_are_opened),
	CASE(fl_72_a_port_that_the_older_one_had_at_a_part_of_the_address_is_opened),
	CASE(fl_204_one_without_the_older_ones_certificates_waits_for_them),
	CASE(fl_204_what_the_older_one_lacks_too_is_not_waited_for),
	CASE(fl_204_it_asks_once_the_older_one_has_named_all_that_it_has),
	CASE(fl_204_without_the_older_one_nothing_is_waited_for),
	CASE(fl_204_the_older_one_names_what_it_has_and_tells_what_the_newer_one_lacks),
	CASE(nobody_takes_over_while_frontends_are_drained))
