// SPDX-License-Identifier: Apache-2.0
// NET-38: devices that are reset while they are open: what is taken for it, and that they are
// opened anew.
#include "dataplane/eal.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_reset.h"
#include "lb/base/time.h"
#include "tests/support/check.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define S NS_PER_SECOND

// As a driver does it, of those that tell.
static rte_eth_dev_cb_fn told;
static void *told_arg;

int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_register(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg)
{
	assert_int_equal(type, RTE_ETH_EVENT_INTR_RESET);
	told = fn;
	told_arg = arg;
	return 0;
}

int __wrap_rte_eth_dev_callback_unregister(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg);
int __wrap_rte_eth_dev_callback_unregister(
	uint16_t id, enum rte_eth_event_type type, rte_eth_dev_cb_fn fn, void *arg)
{
	assert_ptr_equal(told, fn);
	told = NULL;
	return 0;
}

static void ignore(void *ctx, int level, const char *line)
{
}

// NET-38
static void a_device_that_its_driver_calls_reset_is_opened_anew(void **state)
{
	int core = sched_getcpu();
	struct eal_conf eal = {
		.args = {.memory_mib = 64, .cores = &core, .n_cores = 1}, .log = ignore};
	struct port_conf conf = {.device = "net_ring0", .n_queues = 1, .n_mbufs = 2048};
	struct lb_err err;
	uint64_t now = S;
	enum port_event event;
	assert_int_equal(eal_start(&eal, &err), 0);
	struct port *port = port_new(&conf, &err);
	assert_non_null(port);
	struct port_queue *q = port_queue_of(port, 0);
	assert_int_equal(port_watch(port, now), PORT_EVENT_LINK);
	assert_int_equal(port_watch(port, now), PORT_EVENT_NONE);
	told(port->id, RTE_ETH_EVENT_INTR_RESET, told_arg, NULL);
	assert_int_equal(port_watch(port, now), PORT_EVENT_RESET);
	assert_int_equal(port_status(port)->state, PORT_GONE);
	assert_int_equal(port_status(port)->n_losses, 1);
	assert_false(port_queue_is_live(q));
	for (int i = 0; (event = port_watch(port, now)) != PORT_EVENT_BACK && i < 10000; i++) {
		assert_int_equal(event, PORT_EVENT_NONE);
		assert_false(port_queue_settle(q)); // the worker lets go
		usleep(1000); // another thread closes it, sooner or later
		now += S / 5;
	}
	assert_int_equal(event, PORT_EVENT_BACK);
	assert_true(port_queue_settle(q));
	assert_int_equal(port_watch(port, now), PORT_EVENT_LINK);
	assert_int_equal(port_watch(port, now), PORT_EVENT_NONE); // that was it
	port_free(port);
	assert_null(told);
}

// A card with one queue.
struct card {
	struct port port;
	struct port_queue queue;
	uint64_t now_ns;
};

static void open_card(struct card *c)
{
	*c = (struct card){.port = {.kind = PORT_PCI, .n_queues = 1}, .now_ns = 100 * S};
	c->port.queues = &c->queue;
	c->port.status.state = PORT_UP;
	port_reset_listen(&c->port);
}

static bool is_silent(struct card *c, unsigned n_received, unsigned n_sent, uint64_t for_ns)
{
	counter_add(&c->queue.counters[PORT_rx_frames], n_received);
	counter_add(&c->queue.counters[PORT_tx_frames], n_sent);
	c->now_ns += for_ns;
	return port_reset_look(&c->port, c->now_ns) == PORT_EVENT_SILENT;
}

// NET-38
static void a_card_that_answers_nothing_for_ten_seconds_is_silent(void **state)
{
	struct card c;
	open_card(&c);
	assert_false(is_silent(&c, 1, 1, S));
	assert_false(is_silent(&c, 0, 4, 10 * S - 1));
	assert_true(is_silent(&c, 0, 0, 1));
}

static void a_card_with_little_to_send_may_be_silent(void **state)
{
	struct card c;
	open_card(&c);
	assert_false(is_silent(&c, 1, 1, S));
	assert_false(is_silent(&c, 0, 3, 3600 * S));
	assert_true(is_silent(&c, 0, 1, S));
}

static void one_frame_is_enough_to_be_heard(void **state)
{
	struct card c;
	open_card(&c);
	for (int i = 0; i < 100; i++)
		assert_false(is_silent(&c, 1, 1000, 60 * S));
}

// Else a network in which nobody is would have it opened for ever.
static void a_card_that_was_never_heard_is_not_silent(void **state)
{
	struct card c;
	open_card(&c);
	assert_false(is_silent(&c, 0, 1000, 60 * S));
	assert_false(is_silent(&c, 1, 0, S));
	assert_true(is_silent(&c, 0, 4, 10 * S));
	port_reset_ignore(&c.port);
	port_reset_listen(&c.port);
	assert_false(is_silent(&c, 0, 1000, 60 * S));
}

// How long a card that is silent again ten seconds after it was opened and heard is left so, in
// seconds.
static uint64_t left_for(struct card *c)
{
	uint64_t began = c->now_ns;
	port_reset_ignore(&c->port);
	port_reset_listen(&c->port);
	bool is = is_silent(c, 1, 4, 0) || is_silent(c, 0, 4, 10 * S);
	for (int i = 0; !is && i < 1000; i++)
		is = is_silent(c, 0, 1, S);
	assert_true(is);
	return (c->now_ns - began) / S;
}

// Where now and then something comes that is no answer.
static void a_card_is_opened_anew_less_and_less_often(void **state)
{
	static const uint64_t waits[] = {10, 20, 40, 80, 160, 300, 300};
	struct card c;
	open_card(&c);
	assert_false(is_silent(&c, 1, 4, S));
	assert_true(is_silent(&c, 0, 4, 10 * S));
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		assert_int_equal(left_for(&c), waits[i]);
	assert_false(is_silent(&c, 1, 4, 400 * S)); // it is well
	assert_int_equal(left_for(&c), 10);
	assert_int_equal(left_for(&c), 10);
}

static void time_without_a_link_does_not_count(void **state)
{
	struct card c;
	open_card(&c);
	assert_false(is_silent(&c, 1, 0, S));
	c.port.status.state = PORT_DOWN;
	assert_false(is_silent(&c, 0, 100, 60 * S));
	c.port.status.state = PORT_UP;
	assert_false(is_silent(&c, 0, 100, 10 * S - 1));
	assert_true(is_silent(&c, 0, 0, 1));
}

static void devices_of_the_kernel_may_be_silent(void **state)
{
	struct card c;
	open_card(&c);
	c.port.kind = PORT_INTERFACE;
	assert_false(is_silent(&c, 1, 0, S));
	assert_false(is_silent(&c, 0, 100, 60 * S));
}

RUN_SUITE("dataplane/port_reset",
	cmocka_unit_test(a_device_that_its_driver_calls_reset_is_opened_anew),
	cmocka_unit_test(a_card_that_answers_nothing_for_ten_seconds_is_silent),
	cmocka_unit_test(a_card_with_little_to_send_may_be_silent),
	cmocka_unit_test(one_frame_is_enough_to_be_heard),
	cmocka_unit_test(a_card_that_was_never_heard_is_not_silent),
	cmocka_unit_test(a_card_is_opened_anew_less_and_less_often),
	cmocka_unit_test(time_without_a_link_does_not_count),
	cmocka_unit_test(devices_of_the_kernel_may_be_silent))
