// SPDX-License-Identifier: Apache-2.0
// A port that is a memif's client, and its server, which is a port of this process, too. So is the
// worker of both, which is why nobody reads what EAL's own thread unmaps.
#include "dataplane/eal.h"
#include "dataplane/port_impl.h"
#include "lb/base/time.h"
#include "lb/slot.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define S NS_PER_SECOND
#define FRAME 100
#define TRIES 10000 // of a millisecond
#define GOOD "role=client,secret=known"
#define BAD "role=client,secret=wrong"

static const struct relay_port there = {"", {2, 0, 0, 0, 0, 7}, 1500, 0};

static struct port *server, *client, *other;
static struct port_queue *queue;
static char socket_args[64];
static struct lb_err err;
static uint64_t now;

static void ignore(void *ctx, int level, const char *line)
{
}

static struct port *open_port(const char *device, bool follows, const struct relay_port *relayed)
{
	struct port_conf conf = {.device = device,
		.n_queues = 1,
		.n_mbufs = 2048,
		.shared = follows,
		.relayed = relayed};
	err.text[0] = '\0';
	return port_new(&conf, &err);
}

// Each test has a socket of its own, a file: DPDK listens at an abstract one for good.
static void name_socket(void)
{
	static unsigned n;
	snprintf(socket_args, sizeof(socket_args), "socket-abstract=no,socket=/tmp/shunt-%d-%u",
		(int)getpid(), n++);
}

// A name of its own each time: DPDK keeps those of devices that a process has had.
static const char *name(const char *args)
{
	static char devices[64][160]; // ports borrow them
	static unsigned n;
	assert_true(n < 64);
	snprintf(devices[n], sizeof(devices[n]), "net_memif%u,%s,%s", n, socket_args, args);
	return devices[n++];
}

static void open_server(void)
{
	server = open_port(name("role=server,secret=known"), false, NULL);
	assert_string_equal(err.text, "");
}

static int setup(void **state)
{
	static bool has_eal;
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = ignore};
	if (!has_eal)
		assert_int_equal(eal_start(&eal, &err), 0);
	has_eal = true;
	now = S;
	name_socket();
	open_server();
	return 0;
}

static int teardown(void **state)
{
	port_free(client);
	port_free(other);
	port_free(server);
	client = other = server = NULL;
	return 0;
}

static void close_server(void)
{
	port_free(server);
	server = NULL;
	eal_settle();
}

// Until that happens; the worker lets go and begins again meanwhile. The clock stands, or goes by
// a fifth of a second a look.
static void expect(enum port_event event, bool goes)
{
	enum port_event is = PORT_EVENT_NONE;
	for (int i = 0; is == PORT_EVENT_NONE && i < TRIES; i++) {
		if (!port_queue_is_live(queue))
			(void)port_queue_settle(queue);
		usleep(1000);
		now += goes ? S / 5 : 0;
		is = port_watch(client, now);
	}
	assert_int_equal(is, event);
}

// The first look tells of a link that is not up yet, too, if it comes before EAL's own thread has
// let the client in.
static void expect_link(enum port_state state)
{
	do {
		expect(PORT_EVENT_LINK, false);
	} while (state == PORT_UP && port_status(client)->state == PORT_DOWN);
	assert_int_equal(port_status(client)->state, state);
}

static void open_client(void)
{
	client = open_port(name(GOOD), false, NULL);
	assert_string_equal(err.text, "");
	queue = port_queue_of(client, 0);
	expect_link(PORT_UP);
}

static void expect_frames_pass(void)
{
	struct net_device device = port_queue_device(queue);
	struct rte_mbuf *got[PORT_BURST];
	uint8_t *frame = device.reserve(device.ctx, FRAME);
	assert_non_null(frame);
	memset(frame, 9, FRAME);
	device.send(device.ctx, FRAME);
	port_queue_flush(queue);
	uint32_t n = port_queue_rx(port_queue_of(server, 0), got);
	assert_int_equal(n, 1);
	port_queue_done(port_queue_of(server, 0), got, n);
}

static void fl_118_a_client_is_opened_anew_when_its_server_is_back(void **state)
{
	uint8_t mac[6];
	open_client();
	memcpy(mac, port_mac(client), sizeof(mac));
	expect_frames_pass();
	close_server();
	expect_link(PORT_DOWN);
	assert_int_equal(port_watch(client, now + S / 2 - 1), PORT_EVENT_NONE);
	now += S / 2;
	expect(PORT_EVENT_LOST, false);
	assert_int_equal(port_status(client)->state, PORT_GONE);
	for (int i = 0; i < 100; i++, now += S / 5) {
		(void)port_queue_settle(queue);
		usleep(1000);
		assert_int_equal(port_watch(client, now), PORT_EVENT_NONE); // no socket
	}
	open_server();
	expect(PORT_EVENT_BACK, true);
	assert_int_equal(port_status(client)->state, PORT_UP);
	assert_memory_equal(port_mac(client), mac, 6); // no client hears of another one
	expect_frames_pass();
	assert_int_equal(port_status(client)->n_losses, 1);
}

// Of this process's memifs, both ends of each.
static unsigned n_mapped(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;
	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		n += strstr(line, "memfd:memif") != NULL;
	fclose(maps);
	return n;
}

static void expect_mapped(unsigned n)
{
	for (int i = 0; n_mapped() != n && i < TRIES; i++)
		usleep(1000);
	assert_int_equal(n_mapped(), n);
}

// This thread is a worker that was taken off its core in the midst of a burst.
static void fl_123_what_a_worker_may_be_reading_stays_when_the_peer_has_gone(void **state)
{
	open_client();
	unsigned both = n_mapped();
	assert_true(both > 0);
	lb_slot_reader_start();
	queue = NULL;
	port_close(client, false); // the server hears of it on EAL's thread
	assert_int_equal(n_mapped(), both / 2);
	usleep(50000);
	assert_false(port_link(server, &(uint32_t){0}));
	assert_int_equal(n_mapped(), both / 2);
	lb_slot_quiescent();
	expect_mapped(0);
	lb_slot_reader_stop();
}

static void fl_118_one_that_is_slow_to_connect_is_not_missed_before_its_time(void **state)
{
	struct port port = {.kind = PORT_MEMIF, .status = {.state = PORT_DOWN}};
	assert_int_equal(port_reset_look(&port, 100 * S), PORT_EVENT_NONE);
	assert_int_equal(port_reset_look(&port, 100 * S + S / 2 - 1), PORT_EVENT_NONE);
	assert_int_equal(port_reset_look(&port, 100 * S + S / 2), PORT_EVENT_LOST);
	port.status.state = PORT_UP;
	assert_int_equal(port_reset_look(&port, 200 * S), PORT_EVENT_NONE);
	port.status.state = PORT_DOWN;
	assert_int_equal(port_reset_look(&port, 200 * S + 1), PORT_EVENT_NONE);
	assert_int_equal(port_reset_look(&port, 201 * S), PORT_EVENT_LOST);
}

// It is told once, and that it is back when it is let in; nobody waits for either.
static void fl_118_one_that_is_not_let_in_when_its_server_is_back_is_refused(void **state)
{
	open_client();
	close_server();
	expect_link(PORT_DOWN);
	now += S / 2;
	expect(PORT_EVENT_LOST, false);
	server = open_port(name("role=server,secret=changed"), false, NULL);
	expect(PORT_EVENT_REFUSED, true);
	assert_non_null(strstr(port_status(client)->error, "does not let it in"));
	assert_int_equal(port_status(client)->n_losses, 1);
	for (int i = 0; i < 200; i++, now += S / 5) {
		(void)port_queue_settle(queue);
		usleep(1000);
		assert_int_equal(port_watch(client, now), PORT_EVENT_NONE);
	}
	assert_int_equal(client->retry_wait_ns, 16 * S);
	close_server();
	open_server();
	expect(PORT_EVENT_BACK, true);
	assert_string_equal(port_status(client)->error, "");
	expect_frames_pass();
}

static void fl_118_one_that_was_let_in_since_it_was_looked_at_is_kept(void **state)
{
	open_client();
	client->status.state = PORT_DOWN;
	client->reset.since_ns = now;
	assert_int_equal(port_watch(client, now + S), PORT_EVENT_LINK);
	assert_int_equal(port_status(client)->state, PORT_UP);
}

static void fl_116_one_without_its_server_stays(void **state)
{
	static const char why[] = "has no server that would let the newer process in";
	open_client();
	assert_null(port_why_stays(client));
	close_server();
	for (int i = 0; !port_why_stays(client) && i < TRIES; i++)
		usleep(1000);
	assert_int_equal(port_status(client)->state, PORT_UP); // nobody has looked yet
	assert_string_equal(port_why_stays(client), why);
	expect_link(PORT_DOWN);
	now += S / 2;
	expect(PORT_EVENT_LOST, false);
	for (int i = 0; client->stopping && i < TRIES; i++) {
		(void)port_queue_settle(queue);
		usleep(1000);
		(void)port_watch(client, now);
	}
	assert_string_equal(port_why_stays(client), why);
}

static void fl_119_two_processes_are_not_clients_of_the_same_end(void **state)
{
	open_client();
	assert_null(open_port(name(GOOD), false, NULL));
	assert_non_null(strstr(err.text, "another process drives it"));
	assert_null(open_port(name(GOOD), true, NULL)); // not as an interface
	assert_non_null(strstr(err.text, "another process drives it"));
}

// The first one of a service starts, and waits; one that follows another leaves it in its place.
static void fl_119_one_that_the_server_does_not_let_in_cannot_take_a_place(void **state)
{
	static const char why[] = "the memif's server does not let it in";
	assert_null(open_port(name(BAD), true, NULL));
	assert_non_null(strstr(err.text, why));
	other = open_port(name(BAD), false, &there);
	assert_non_null(other);
	for (int i = 0; i < 2; i++) {
		assert_int_not_equal(port_take(other, &err), 0);
		assert_non_null(strstr(err.text, why));
		assert_int_equal(port_watch(other, now), PORT_EVENT_NONE); // it is as it was
	}
	usleep(500000); // in which the server sees the last one go: a client asks once
	open_client(); // nobody claims it meanwhile
	expect_frames_pass();
}

static void fl_116_a_client_that_comes_from_a_relay_has_the_older_ones_address(void **state)
{
	client = open_port(name(GOOD), true, &there);
	assert_string_equal(err.text, "");
	queue = port_queue_of(client, 0);
	assert_memory_equal(port_mac(client), there.mac, 6);
	assert_int_equal(port_take(client, &err), 0);
	assert_true(port_queue_settle(queue));
	assert_memory_equal(port_mac(client), there.mac, 6);
	expect_frames_pass();
}

static void fl_116_one_with_another_address_is_refused(void **state)
{
	assert_null(open_port(name(GOOD ",mac=02:00:00:00:00:08"), true, &there));
	assert_non_null(strstr(
		err.text, "mac=02:00:00:00:00:08: the older process has 02:00:00:00:00:07 there"));
	other = open_port(name(GOOD ",mac=02:00:00:00:00:07"), true, &there);
	assert_non_null(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
RUN_SUITE("dataplane/port_memif", TEST(fl_118_a_client_is_opened_anew_when_its_server_is_back),
	TEST(fl_123_what_a_worker_may_be_reading_stays_when_the_peer_has_gone),
	cmocka_unit_test(fl_118_one_that_is_slow_to_connect_is_not_missed_before_its_time),
	TEST(fl_118_one_that_is_not_let_in_when_its_server_is_back_is_refused),
	TEST(fl_118_one_that_was_let_in_since_it_was_looked_at_is_kept),
	TEST(fl_116_one_without_its_server_stays),
	TEST(fl_119_two_processes_are_not_clients_of_the_same_end),
	TEST(fl_119_one_that_the_server_does_not_let_in_cannot_take_a_place),
	TEST(fl_116_a_client_that_comes_from_a_relay_has_the_older_ones_address),
	TEST(fl_116_one_with_another_address_is_refused))
