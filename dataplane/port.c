// SPDX-License-Identifier: Apache-2.0
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/net/steer.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_stopgap.h"
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
#define HURRY_NS NS_PER_SECOND // in which whoever had the device before has let it go
#define HURRIED_NS (NS_PER_SECOND / 20) // twice that is the first wait behind it
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

static int take_device(struct port *port, const struct lb_cables *cables, struct lb_err *reterr)
{
	int rc = port->conf.bond ? port_bond_new(port, cables, reterr) : 0;
	if (rc == 0)
		rc = port_claim_devices(port, reterr);
	if (rc == 0)
		rc = port_open(port, reterr);
	// Whoever has it now serves on, if this process cannot have it.
	if (rc == 0 && port->conf.shared)
		rc = port_await_server(port, reterr);
	if (rc == 0 && (port->kind == PORT_PCI || port_bond_has_card(port->bond)))
		(void)unplug_survive(); // not to be had everywhere; without it, unplugging kills
	return rc;
}

static int begin(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	if (port->conf.carrier)
		return join_trunk(port, reterr);
	int rc = port->conf.n_vlans > 1 ? port_trunk_new(port) : 0;
	if (rc < 0)
		return blame(reterr, port, "", rc);
	return conf->relayed ? port_relay_new(port, conf->relayed, reterr)
	                     : take_device(port, conf->cables, reterr);
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
	port->conf.cables = NULL;
	port->n_queues = conf->n_queues;
	port->status.error = port->error;
	port->status.merged = port->merged;
	if (begin(port, conf, reterr) != 0) {
		port_free(port);
		return NULL;
	}
	for (uint32_t i = 0; i < port->n_queues && !port_carrier(port)->relayed; i++)
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
	port_stopgap_close(port);
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

static bool all_are(struct port *port, enum queue_phase phase)
{
	const struct port *p;
	for (uint32_t k = 0; (p = port_trunk_port(port, k)); k++)
		for (uint32_t i = 0; i < p->n_queues; i++)
			if (__atomic_load_n(&p->queues[i].phase, __ATOMIC_ACQUIRE) != phase)
				return false;
	return true;
}

static bool begins(const struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++)
		if (__atomic_load_n(&port->queues[i].phase, __ATOMIC_ACQUIRE) == QUEUE_STARTING)
			return true;
	return false;
}

static void become(struct port *port, enum port_state state, uint64_t now_ns)
{
	port->status.state = state;
	port->status.since_ns = now_ns;
}

// Each must agree anew.
static void distrust(struct port *port)
{
	const struct port *p;
	for (uint32_t k = 0; port->conf.steer && (p = port_trunk_port(port, k)); k++)
		steer_distrust(port->conf.steer, p->conf.index);
}

// Told once, until it is another reason; not while another process lets it go.
static enum port_event refuse(struct port *port, const struct lb_err *err, uint64_t now_ns)
{
	if (now_ns < port->hurry_ns || strcmp(port->error, err->text) == 0)
		return PORT_EVENT_NONE;
	memcpy(port->error, err->text, sizeof(port->error));
	return PORT_EVENT_REFUSED;
}

static enum port_event refuse_server(struct port *port, uint64_t now_ns)
{
	struct lb_err err = {0};
	(void)port_blame_server(port, &err);
	return refuse(port, &err, now_ns);
}

static enum port_event lose(struct port *port, enum port_event event, uint64_t now_ns)
{
	if (port->bond)
		(void)port_bond_watch(port, now_ns); // which of its members it was
	port_stopgap_end(port);
	port->returns = false;
	become(port, PORT_GONE, now_ns);
	port->status.mbps = 0;
	port->stopping = true;
	distrust(port);
	port_pass_queues(port, QUEUE_STOPPING);
	if (port->awaits_server)
		return refuse_server(port, now_ns);
	port->hurry_ns = 0;
	port->status.n_losses++;
	port->error[0] = '\0';
	return event;
}

static void retry_in(struct port *port, uint64_t now_ns, uint64_t wait_ns)
{
	port->retry_wait_ns = wait_ns;
	port->retry_ns = now_ns < port->hurry_ns ? now_ns : now_ns + wait_ns;
}

// It comes back from another process, and may be opened from now on.
static void hurry(struct port *port, uint64_t now_ns)
{
	port->hurry_ns = now_ns + HURRY_NS;
	retry_in(port, now_ns, HURRIED_NS);
}

static void retry_later(struct port *port, uint64_t now_ns)
{
	uint64_t wait_ns = port->retry_wait_ns * (now_ns < port->hurry_ns ? 1 : 2);
	retry_in(port, now_ns, wait_ns < MAX_RETRY_NS ? wait_ns : MAX_RETRY_NS);
}

// Workers let go first, then the kernel lets the device go: not opened again at once.
static enum port_event let_go(struct port *port, uint64_t now_ns)
{
	bool rests = all_are(port, QUEUE_RESTS), stands_in = port_stopgap_stands_in(port);
	if (!rests && !port->closing && !stands_in)
		return PORT_EVENT_NONE;
	if (!port->closing)
		begin_closing(port);
	// They may have been told to let go of what stands in when it was being closed already.
	if (!is_closed(port) || (!rests && !stands_in))
		return PORT_EVENT_NONE;
	end_closing(port);
	port->stopping = false;
	if (!stands_in)
		port_stopgap_close(port);
	if (port->leaves && !port_why_stays(port))
		port_relay_leave(port);
	else if (port->leaves)
		become(port, PORT_GONE, now_ns); // the newer one could not open it
	if (port->awaits_server)
		retry_later(port, now_ns);
	else if (port->hurry_ns)
		hurry(port, now_ns);
	else
		retry_in(port, now_ns, RETRY_NS);
	port->awaits_server = false;
	return PORT_EVENT_NONE;
}

// That is for the newer process: not a loss.
static void begin_to_leave(struct port *port)
{
	if (port_why_stays(port))
		return;
	if (port->returns && port->opened)
		return; // workers are about to have it
	if (port->status.state == PORT_GONE || port->returns) {
		port_relay_leave(port);
	} else if (all_are(port, QUEUE_RUNS)) {
		port->stopping = true;
		distrust(port);
		if (port_stopgap_begin(port))
			return;
		port_stopgap_close(port);
		port_pass_queues(port, QUEUE_STOPPING);
	}
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
	int rc = port->returns ? port_stopgap_return(port, &err) : port_reopen(port, false, &err);
	if (rc == -EAGAIN)
		return PORT_EVENT_NONE;
	if (rc == 0) {
		port->status.since_ns = now_ns;
		port->awaits_server = port->kind == PORT_MEMIF;
		if (port->awaits_server)
			return PORT_EVENT_NONE; // watch_link() tells, or port_reset_look()
		port->error[0] = '\0';
		return PORT_EVENT_BACK;
	}
	retry_later(port, now_ns);
	enum port_event event = refuse(port, &err, now_ns);
	if (event == PORT_EVENT_REFUSED && port->returns) // somebody may have its frames
		become(port, PORT_GONE, now_ns);
	return event;
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
	if (!port->awaits_server)
		return PORT_EVENT_LINK;
	port->awaits_server = false;
	port->error[0] = '\0';
	return PORT_EVENT_BACK;
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
	port_inherit_claim(port);
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
	if (port->returns && !begins(port) && !port_is_there(port)) // as below
		return lose(port, PORT_EVENT_LOST, now_ns);
	if (port->status.state == PORT_GONE || port->returns)
		return take_again(port, now_ns);
	bool is_there = port_is_there(port);
	// Workers that have not begun again yet must do so first: the phase is theirs.
	if (!all_are(port, QUEUE_RUNS))
		return watch_running(port, now_ns);
	if (!is_there)
		return lose(port, PORT_EVENT_LOST, now_ns);
	enum port_event event = port_reset_look(port, now_ns);
	uint32_t mbps;
	if (event == PORT_EVENT_LOST && port_link(port, &mbps)) // since the last look
		event = PORT_EVENT_NONE;
	return event == PORT_EVENT_NONE ? watch_running(port, now_ns) : lose(port, event, now_ns);
}

bool port_is_passed_on(struct port *port, uint64_t now_ns)
{
	if (!port_carrier(port)->relayed)
		(void)port_watch(port, now_ns);
	return port_carrier(port)->relayed;
}

void port_take_back(struct port *port, uint64_t now_ns)
{
	bool stands_in = port_stopgap_remain(port);
	if (!stands_in)
		port_stopgap_end(port);
	if (!port->leaves && !port->relayed)
		return;
	// One that is being closed is opened when it is.
	port->returns = stands_in;
	if (!stands_in && (port->relayed || port->stopping))
		become(port, PORT_GONE, now_ns);
	port->leaves = port->relayed = false;
	hurry(port, now_ns);
}

bool port_is_urgent(const struct port *port, uint64_t now_ns)
{
	return now_ns < port->hurry_ns && (port->returns || port->status.state != PORT_UP);
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
