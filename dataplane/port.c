// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/net/steer.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_trunk.h"
#include "dataplane/unplug.h"
#include "lb/base/cacheline.h"
#include "lb/base/check.h"
#include "lb/base/time.h"
#include "lb/pick/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS NS_PER_SECOND // of opening a device again
#define MAX_RETRY_NS (16 * RETRY_NS)
#define SPLIT_NS (5 * NS_PER_SECOND) // until the last frame that was sent too long has come

static int blame(struct lb_err *reterr, const struct port *port, const char *doing, int rc)
{
	if (rc == -ENOMEM)
		return lb_err_set(reterr, "ports[%u]: out of memory", port->conf.index);
	return port_blame(reterr, port, doing, rc);
}

static int join_trunk(struct port *port, struct lb_err *reterr)
{
	int rc = port_trunk_join(port);
	return rc < 0 ? blame(reterr, port->conf.carrier, "does not take a VLAN", rc) : 0;
}

static int take_device(struct port *port, struct lb_err *reterr)
{
	int rc = port->conf.n_vlans > 1 ? port_trunk_new(port) : 0;
	if (rc < 0)
		return blame(reterr, port, "", rc);
	rc = port->conf.bond ? port_bond_new(port, reterr) : port_take_claim(port, reterr);
	if (rc == 0)
		rc = port_open(port, reterr);
	if (rc == 0 && (port->kind == PORT_PCI || port_bond_has_card(port->bond)))
		(void)unplug_survive(); // not to be had everywhere; without it, unplugging kills
	return rc;
}

struct port *port_new(const struct port_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_queues >= 1 && conf->n_queues <= LB_MAX_WORKERS);
	struct port *port = calloc(1, sizeof(*port));
	if (port) {
		port->claim = PORT_CLAIM_NONE;
		port->queues = cacheline_alloc(conf->n_queues, sizeof(*port->queues));
	}
	if (!port || !port->queues) {
		lb_err_set(reterr, "ports[%u]: out of memory", conf->index);
		port_free(port);
		return NULL;
	}
	port->conf = *conf;
	port->conf.relayed = NULL;
	port->n_queues = conf->n_queues;
	port->status.error = port->error;
	port->status.merged = port->merged;
	int rc = conf->carrier   ? join_trunk(port, reterr)
	         : conf->relayed ? port_relay_new(port, conf->relayed, reterr)
	                         : take_device(port, reterr);
	if (rc != 0) {
		port_free(port);
		return NULL;
	}
	for (uint32_t i = 0; i < port->n_queues && !conf->relayed; i++)
		port->queues[i].vlan = port->queues[i].wire_vlan;
	return port;
}

static void *close_lost(void *arg)
{
	struct port *port = arg;
	port_close(port, true);
	__atomic_store_n(&port->closed, true, __ATOMIC_RELEASE); // pairs with is_closed()
	return NULL;
}

// Drivers ask the registers of a card that is gone again and again, some (e1000) for two minutes:
// the control thread must not wait for that. What is being closed is the closer's alone.
static void begin_closing(struct port *port)
{
	pthread_attr_t attr;
	sigset_t all;
	sigfillset(&all);
	sigdelset(&all, SIGBUS); // by which DPDK replaces registers that are gone
	port->closed = false;
	port->closing = pthread_attr_init(&attr) == 0;
	if (port->closing) {
		port->closing = pthread_attr_setsigmask_np(&attr, &all) == 0 &&
		                pthread_create(&port->closer, &attr, close_lost, port) == 0;
		pthread_attr_destroy(&attr);
	}
	if (!port->closing)
		close_lost(port);
}

static void end_closing(struct port *port)
{
	if (port->closing)
		pthread_join(port->closer, NULL);
	port->closing = false;
}

static bool is_closed(const struct port *port)
{
	return !port->closing || __atomic_load_n(&port->closed, __ATOMIC_ACQUIRE);
}

void port_free(struct port *port)
{
	if (!port)
		return;
	end_closing(port);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		rte_pktmbuf_free(q->open);
		rte_pktmbuf_free_bulk(q->ready, q->n_ready);
		rte_pktmbuf_free_bulk(q->unsent, q->n_unsent);
	}
	bool was_open = port->opened;
	port_close(port, false);
	if (was_open)
		eal_settle();
	port_claim_drop(&port->claim);
	port_bond_free(port->bond);
	port_trunk_leave(port);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		rte_mempool_free(port->queues[i].mbufs);
		port_rings_free(&port->queues[i]);
	}
	cacheline_free(port->queues);
	free(port);
}

const char *port_driver(const struct port *port)
{
	return port_carrier(port)->driver;
}

const uint8_t *port_mac(const struct port *port)
{
	return port_carrier(port)->mac.addr_bytes;
}

uint16_t port_mtu(const struct port *port)
{
	uint16_t own = port->conf.own_mtu, mtu = port_carrier(port)->mtu;
	return own && own < mtu ? own : mtu;
}

uint16_t port_vlan(const struct port *port)
{
	return port->conf.vlan;
}

bool port_verifies_checksums(const struct port *port)
{
	return port_carrier(port)->verifies;
}

// The watch. A device that is gone: workers let go of its queues (port_queue_settle), it is closed,
// then opened again as soon as it is back, for the same queues.

// Of the whole trunk, if it is one.
void port_pass_queues(struct port *port, enum queue_phase phase)
{
	const struct port *p;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			__atomic_store_n(&p->queues[i].phase, phase, __ATOMIC_RELEASE);
}

static bool all_are(struct port *port, enum queue_phase phase)
{
	const struct port *p;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			if (__atomic_load_n(&p->queues[i].phase, __ATOMIC_ACQUIRE) != phase)
				return false;
	return true;
}

static void become(struct port *port, enum port_state state, uint64_t now_ns)
{
	port->status.state = state;
	port->status.since_ns = now_ns;
}

static enum port_event lose(struct port *port, enum port_event event, uint64_t now_ns)
{
	if (port->bond)
		(void)port_bond_watch(port, now_ns); // which of its members it was
	become(port, PORT_GONE, now_ns);
	port->status.mbps = 0;
	port->status.n_losses++;
	port->stopping = true;
	port->error[0] = '\0';
	// It must agree anew.
	const struct port *p;
	for (uint32_t k = 0; port->conf.steer && (p = port_trunk_port(port, k)); k++)
		steer_distrust(port->conf.steer, p->conf.index);
	port_pass_queues(port, QUEUE_STOPPING);
	return event;
}

static void retry_in(struct port *port, uint64_t now_ns, uint64_t wait_ns)
{
	port->retry_wait_ns = wait_ns;
	port->retry_ns = now_ns + wait_ns;
}

// Workers let go first, then the kernel lets the device go: not opened again at once.
static enum port_event let_go(struct port *port, uint64_t now_ns)
{
	if (!all_are(port, QUEUE_RESTS))
		return PORT_EVENT_NONE;
	if (!port->closing)
		begin_closing(port);
	if (!is_closed(port))
		return PORT_EVENT_NONE;
	end_closing(port);
	port->stopping = false;
	if (port->leaves)
		port_relay_leave(port);
	retry_in(port, now_ns, RETRY_NS);
	return PORT_EVENT_NONE;
}

// That is for the newer process: not a loss.
static void begin_to_leave(struct port *port)
{
	if (port->status.state == PORT_GONE) {
		port_relay_leave(port);
	} else if (all_are(port, QUEUE_RUNS)) {
		port->stopping = true;
		if (port->conf.steer)
			steer_distrust(port->conf.steer, port->conf.index);
		port_pass_queues(port, QUEUE_STOPPING);
	}
}

int port_reopen(struct port *port, struct lb_err *reterr)
{
	bool is_ours = port->bond || port->claim.name >= 0;
	int rc = is_ours ? 0 : port_take_claim(port, reterr);
	if (rc == 0)
		rc = port_open(port, reterr);
	if (rc == 0) {
		become(port, PORT_DOWN, port->status.since_ns);
		port_pass_queues(port, QUEUE_STARTING);
		return 0;
	}
	port_close(port, true);
	return rc;
}

static enum port_event take_again(struct port *port, uint64_t now_ns)
{
	struct lb_err err = {0};
	if (!port_may_open(port)) {
		port->error[0] = '\0'; // what comes next may be another
		retry_in(port, now_ns, RETRY_NS);
		return PORT_EVENT_NONE;
	}
	if (now_ns < port->retry_ns)
		return PORT_EVENT_NONE;
	if (port_reopen(port, &err) == 0) {
		port->error[0] = '\0';
		port->status.since_ns = now_ns;
		return PORT_EVENT_BACK;
	}
	uint64_t wait_ns = port->retry_wait_ns * 2;
	retry_in(port, now_ns, wait_ns < MAX_RETRY_NS ? wait_ns : MAX_RETRY_NS);
	bool same = strcmp(port->error, err.text) == 0;
	memcpy(port->error, err.text, sizeof(port->error));
	return same ? PORT_EVENT_NONE : PORT_EVENT_REFUSED;
}

static void tell_ups(struct port *port)
{
	__atomic_store_n(&port->n_link_ups, port->n_link_ups + 1, __ATOMIC_RELAXED);
}

static enum port_event watch_link(struct port *port, uint64_t now_ns)
{
	bool up = port_link(port, &port->status.mbps);
	enum port_state was = port->status.state, is = up ? PORT_UP : PORT_DOWN;
	if (was == is)
		return PORT_EVENT_NONE;
	if (was == PORT_UP)
		port->status.n_link_downs++;
	if (was == PORT_DOWN)
		tell_ups(port);
	become(port, is, now_ns);
	return PORT_EVENT_LINK;
}

static uint64_t count_cut(const struct port *port)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < port->n_queues; i++)
		n += counter_read(&port->queues[i].counters[PORT_rx_cut]);
	return n;
}

// Frames that come cut: it is tried once to get them whole from now on.
static enum port_event watch_cut(struct port *port, uint64_t now_ns)
{
	uint64_t n = count_cut(port);
	if (n == port->n_cut || !port->if_index)
		return PORT_EVENT_NONE;
	port->n_cut = n;
	if (now_ns < port->split_ns)
		return PORT_EVENT_NONE;
	char was[sizeof(port->merged)];
	memcpy(was, port->merged, sizeof(was));
	bool done = gso_refuse(&port->gso, port->if_index, port->merged, sizeof(port->merged));
	if (done) {
		port->n_cut = count_cut(port);
		port->split_ns = now_ns + SPLIT_NS;
	}
	if (strcmp(was, port->merged) == 0)
		return PORT_EVENT_NONE;
	return done ? PORT_EVENT_SPLIT : PORT_EVENT_CUT;
}

static enum port_event watch_running(struct port *port, uint64_t now_ns)
{
	// Switches have yet to learn that the addresses are behind another member.
	if (port->bond && port_bond_watch(port, now_ns) && port->status.state == PORT_UP)
		tell_ups(port);
	if (port->conf.shared && port->claim.name < 0)
		(void)port_claim(port->conf.device, PORT_CLAIM_DIR, &port->claim);
	enum port_event event = watch_link(port, now_ns);
	return event == PORT_EVENT_NONE ? watch_cut(port, now_ns) : event;
}

enum port_event port_watch(struct port *port, uint64_t now_ns)
{
	if (port->is_carried) {
		port->status = port_carrier(port)->status;
		return PORT_EVENT_NONE;
	}
	if (port->leaves && !port->stopping)
		begin_to_leave(port);
	if (port->stopping)
		return let_go(port, now_ns);
	port_rings_watch(port, now_ns);
	if (port->relayed)
		return PORT_EVENT_NONE;
	if (port->status.state == PORT_GONE)
		return take_again(port, now_ns);
	bool is_there = port_is_there(port);
	// Workers that have not begun again yet must do so first: the phase is theirs.
	if (!all_are(port, QUEUE_RUNS))
		return watch_running(port, now_ns);
	if (!is_there)
		return lose(port, PORT_EVENT_LOST, now_ns);
	enum port_event event = port_reset_look(port, now_ns);
	return event == PORT_EVENT_NONE ? watch_running(port, now_ns) : lose(port, event, now_ns);
}

void port_pass_on(struct port *port)
{
	port->leaves = !port->relayed;
}

bool port_is_passed_on(struct port *port, uint64_t now_ns)
{
	if (!port->relayed)
		(void)port_watch(port, now_ns);
	return port->relayed;
}

void port_take_back(struct port *port, uint64_t now_ns)
{
	if (!port->leaves && !port->relayed)
		return;
	// One that is being closed is opened when it is.
	if (port->relayed || port->stopping)
		become(port, PORT_GONE, now_ns);
	port->leaves = port->relayed = false;
	retry_in(port, now_ns, RETRY_NS);
	port->retry_ns = now_ns;
}

const struct port_status *port_status(const struct port *port)
{
	return &port->status;
}

uint32_t port_link_ups(const struct port *port)
{
	return __atomic_load_n(&port_carrier(port)->n_link_ups, __ATOMIC_RELAXED);
}

bool port_is_up(const struct port *port)
{
	uint32_t mbps;
	return port_link(port_carrier(port), &mbps);
}

struct port_queue *port_queue_of(struct port *port, uint32_t queue)
{
	DCHECK(queue < port->n_queues);
	return &port->queues[queue];
}
