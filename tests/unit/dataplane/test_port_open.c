// SPDX-License-Identifier: Apache-2.0
// Devices that cannot be opened: what is said of them, and what is left.
#include "dataplane/eal.h"
#include "dataplane/host.h"
#include "dataplane/port_impl.h" // only a card comes back with fewer queues than it had
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void ignore(void *ctx, int level, const char *line)
{
}

static int setup(void **state)
{
	static bool started; // EAL starts once
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = ignore};
	struct lb_err err;
	if (!started)
		assert_int_equal(eal_start(&eal, &err), 0);
	started = true;
	return 0;
}

// Up to 1024 bytes are DPDK's to judge, with what we add.
static void a_device_of_any_length_is_answered(void **state)
{
	char device[1200], name[64];
	int n = snprintf(name, sizeof(name), "net_af_packet0,iface=t%d,x=", (int)getpid());
	for (size_t len = 384; len <= 1030; len++) {
		memset(device, 'x', len);
		memcpy(device, name, (size_t)n);
		device[len] = '\0';
		struct port_conf conf = {.index = 3, .device = device, .n_queues = 2};
		struct lb_err err;
		assert_null(port_new(&conf, &err));
		assert_non_null(strstr(err.text, "ports[3].device: net_af_packet0"));
		const char *why = len > 1024 ? "longer than 1024 bytes" : "no interface t";
		assert_non_null(strstr(err.text, why));
	}
}

// A port's device that is there again is opened over and over, until it is as before.
static void a_device_that_was_refused_can_be_opened_again(void **state)
{
	struct port port = {.conf = {.device = "net_ring7", .n_queues = 64}};
	struct lb_err first, next;
	assert_int_not_equal(port_open(&port, &first), 0);
	assert_non_null(strstr(first.text, "queues for 64 workers"));
	for (int i = 0; i < 3; i++) {
		port_close(&port, true);
		assert_int_not_equal(port_open(&port, &next), 0);
		assert_string_equal(next.text, first.text);
	}
	port_close(&port, true);
}

// Neither that it was refused nor the wait for the next try outlasts its going.
static void a_refusal_is_forgotten_when_the_device_goes_again(void **state)
{
	const uint64_t second = NS_PER_SECOND;
	struct port port = {.kind = PORT_INTERFACE,
		.conf = {.device = "net_af_packet0,iface=nosuchthing", .n_queues = 1},
		.status = {.state = PORT_GONE, .error = port.error},
		.retry_ns = 20 * second,
		.retry_wait_ns = 16 * second,
		.error = "refused"};
	assert_int_equal(port_watch(&port, 10 * second), PORT_EVENT_NONE);
	assert_string_equal(port_status(&port)->error, "");
	assert_int_equal(port.retry_ns, 11 * second);
	assert_int_equal(port.retry_wait_ns, second);
}

// Addresses of the ARP requests that net_ring gave back and that ask for their own sender.
static uint32_t n_announced(struct port_queue *q)
{
	struct rte_mbuf *frames[PORT_BURST];
	uint32_t n_all = 0, n = port_queue_rx(q, frames);
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *f = rte_pktmbuf_mtod(frames[i], uint8_t *);
		n_all += f[12] == 8 && f[13] == 6 && memcmp(f + 28, f + 38, 4) == 0;
	}
	port_queue_done(q, frames, n);
	return n_all;
}

// NET-18, IP6-24
static void addresses_are_announced_when_a_link_comes_up(void **state)
{
	struct port_conf conf = {.device = "net_ring8", .n_queues = 1, .n_mbufs = 1023};
	struct lb_err err;
	struct port *port = port_new(&conf, &err);
	assert_non_null(port);
	struct host_port address = {
		.port = port, .addresses = {{ip_from_v4(0x0a000001), 24}}, .n_addresses = 1};
	struct host_conf of_host = {.ports = &address,
		.n_ports = 1,
		.max_conns = 4,
		.max_half_open = 1,
		.max_passive = 3,
		.max_time_wait = 4,
		.max_neighbors = 4,
		.n_chunks = 64,
		.tcp_send_limit = 65536,
		.tcp_recv_window = 65536,
		.tcp_window_max = 65536};
	struct host *host = host_new(&of_host, &err);
	assert_non_null(host);
	struct port_queue *q = port_queue_of(port, 0);
	assert_int_equal(port_watch(port, 1), PORT_EVENT_LINK); // it was up all the time
	host_watch_links(host);
	port_queue_flush(q);
	assert_int_equal(n_announced(q), 0); // not the one that tells
	host_announce(host);
	assert_int_equal(n_announced(q), 1);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(rte_eth_dev_set_link_down(port->id), 0);
		assert_int_equal(port_watch(port, 2), PORT_EVENT_LINK);
		host_watch_links(host);
		port_queue_flush(q);
		assert_int_equal(n_announced(q), 0);
		assert_int_equal(rte_eth_dev_set_link_up(port->id), 0);
		assert_int_equal(port_watch(port, 3), PORT_EVENT_LINK);
		host_watch_links(host);
		host_watch_links(host);
		port_queue_flush(q);
		assert_int_equal(n_announced(q), 1);
	}
	host_free(host);
	port_free(port);
}

// The first call helps, though frames are cut until it does; another one can do no more.
static struct port_queue cut;
static uint32_t n_refused;

bool __wrap_gso_refuse(struct gso *, unsigned if_index, char *said, size_t size);
bool __wrap_gso_refuse(struct gso *gso, unsigned if_index, char *said, size_t size)
{
	counter_add(&cut.counters[PORT_rx_cut], 3);
	snprintf(said, size, n_refused ? "remedy" : "done");
	return !n_refused++;
}

static void frames_cut_until_their_sender_splits_them_are_no_failure(void **state)
{
	const uint64_t second = NS_PER_SECOND;
	struct port port = {.if_index = 1, .n_queues = 1, .queues = &cut};
	(void)port_watch(&port, second); // the link
	assert_int_equal(port_watch(&port, second), PORT_EVENT_NONE);
	counter_add(&cut.counters[PORT_rx_cut], 1);
	assert_int_equal(port_watch(&port, 2 * second), PORT_EVENT_SPLIT);
	assert_int_equal(port_watch(&port, 3 * second), PORT_EVENT_NONE);
	counter_add(&cut.counters[PORT_rx_cut], 1); // it was on its way
	assert_int_equal(port_watch(&port, 4 * second), PORT_EVENT_NONE);
	assert_int_equal(port_watch(&port, 60 * second), PORT_EVENT_NONE);
	assert_string_equal(port.merged, "done");
	counter_add(&cut.counters[PORT_rx_cut], 1);
	assert_int_equal(port_watch(&port, 61 * second), PORT_EVENT_CUT);
	assert_string_equal(port.merged, "remedy");
}

#define CASE(f) cmocka_unit_test_setup(f, setup)
RUN_SUITE("dataplane/port_open", CASE(a_device_of_any_length_is_answered),
	CASE(a_device_that_was_refused_can_be_opened_again),
	CASE(frames_cut_until_their_sender_splits_them_are_no_failure),
	CASE(addresses_are_announced_when_a_link_comes_up),
	CASE(a_refusal_is_forgotten_when_the_device_goes_again))
