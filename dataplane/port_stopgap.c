// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_stopgap.h"

#include "dataplane/port_impl.h"
#include "dataplane/xsk_map.h"
#include "lb/base/cacheline.h"
#include "lb/base/devargs.h"
#include "lb/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct port_stopgap {
	struct port port; // whose queues lend the others what they need of a device
	char device[PORT_MAX_DEVICE];
	bool begun, ended;
	bool again; // while the device comes back from one process another one has come
	// Owned; of the device that has come back, for workers to go over to; NULL = it has not.
	struct port_queue *next;
};

// Of a trunk the carrier sorts the frames of all: not worth it for a moment.
static bool is_fit(const struct port *port)
{
	return !port->stopping && port->opened && !port->stopgap && port->xsk_map && !port->trunk;
}

static void free_stopgap(struct port_stopgap *s)
{
	port_close(&s->port, true);
	cacheline_free(s->port.queues);
	cacheline_free(s->next);
	free(s);
}

static struct port_stopgap *make(const struct port *port)
{
	struct str interface = devargs_find(port->conf.device, "iface");
	struct port_stopgap *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	snprintf(s->device, sizeof(s->device), "net_af_packet_gap%u,iface=%.*s", port->conf.index,
		(int)interface.len, interface.p);
	s->port = (struct port){.conf = port->conf,
		.claim = PORT_CLAIM_NONE,
		.n_queues = port->n_queues,
		.queues = cacheline_alloc(port->n_queues, sizeof(*s->port.queues))};
	s->port.conf.device = s->device;
	s->port.conf.steer = NULL;
	s->port.conf.has_ip6 = false; // the interface receives the groups already
	if (s->port.queues)
		return s;
	free(s);
	return NULL;
}

void port_get_ready(struct port *port)
{
	struct lb_err err = {""};
	if (port->stopgap)
		port->stopgap->again = port->returns;
	struct port_stopgap *s = is_fit(port) ? make(port) : NULL;
	if (!s)
		return;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		s->port.queues[i].mbufs = port->queues[i].mbufs; // borrowed
		s->port.queues[i].room = port->queues[i].room;
	}
	if (port_open(&s->port, &err) == 0) {
		port->stopgap = s;
		return;
	}
	log_warn("no frames while an interface changes hands", "port=%u error=%s", port->conf.index,
		log_quote(err.text));
	free_stopgap(s);
}

bool port_stopgap_begin(struct port *port)
{
	struct port_stopgap *s = port->stopgap;
	// Where that fails some frames would still come to the device.
	if (!s || xsk_map_empty(port->xsk_map, port->first_queue, port->n_queues) != 0)
		return false;
	s->begun = true;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		q->far = RELAY_TO_NEWER;
		s->port.queues[i].yields = PORT_YIELD_TURNS;
		__atomic_store_n(&q->spare, &s->port.queues[i], __ATOMIC_RELEASE);
	}
	port_pass_queues(port, QUEUE_SWAPPING);
	return true;
}

bool port_stopgap_stands_in(const struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++)
		if (__atomic_load_n(&port->queues[i].spare, __ATOMIC_ACQUIRE))
			return false;
	return port->stopgap && port->stopgap->begun && !port->stopgap->ended;
}

// Those that were behind the relay have what stands in, also one that went there just now.
static void bring_near(struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		if (__atomic_load_n(&q->phase, __ATOMIC_ACQUIRE) != QUEUE_FAR)
			continue;
		q->yields = PORT_YIELD_TURNS; // ours, while it is far
		__atomic_store_n(&q->phase, QUEUE_STARTING, __ATOMIC_RELEASE);
	}
}

bool port_stopgap_remain(struct port *port)
{
	struct port_stopgap *s = port->stopgap;
	if (!s || !s->begun || s->ended)
		return false;
	s->again = false;
	bring_near(port);
	return true;
}

static bool all_run(const struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++)
		if (!port_queue_is_live(&port->queues[i]))
			return false;
	return true;
}

// What is opened has queues of its own meanwhile, but for their memory.
static int open_beside(struct port *port, struct lb_err *reterr)
{
	struct port_stopgap *s = port->stopgap;
	int claimed = port_claim_devices(port, reterr);
	if (claimed != 0)
		return claimed;
	struct port_queue *used = port->queues;
	s->next = cacheline_alloc(port->n_queues, sizeof(*s->next));
	if (!s->next)
		return lb_err_set(reterr, "ports[%u]: out of memory", port->conf.index);
	for (uint32_t i = 0; i < port->n_queues; i++) {
		s->next[i].mbufs = used[i].mbufs; // borrowed
		s->next[i].room = used[i].room;
		s->next[i].n_lent = used[i].n_lent;
		s->next[i].rings = used[i].rings;
	}
	port->queues = s->next;
	int rc = port_open(port, reterr);
	if (rc != 0)
		port_close(port, true);
	port->queues = used;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		used[i].n_lent = s->next[i].n_lent;
		used[i].rings = s->next[i].rings;
	}
	if (rc == 0)
		return 0;
	cacheline_free(s->next);
	s->next = NULL;
	return rc;
}

// Workers take what has come to what stands in, and go over. True = all have.
static bool is_left(struct port *port)
{
	const struct port_stopgap *s = port->stopgap;
	bool all = true;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		uint32_t runs = QUEUE_RUNS;
		bool is_told = __atomic_load_n(&q->spare, __ATOMIC_ACQUIRE);
		if (!is_told && q->port_id == port->id)
			continue;
		all = false;
		if (is_told)
			continue;
		__atomic_store_n(&q->spare, &s->next[i], __ATOMIC_RELAXED);
		// One that just went far comes back first (bring_near()).
		if (!__atomic_compare_exchange_n(&q->phase, &runs, QUEUE_SWAPPING, false,
			    __ATOMIC_RELEASE, __ATOMIC_RELAXED))
			__atomic_store_n(&q->spare, NULL, __ATOMIC_RELAXED);
	}
	return all;
}

int port_stopgap_return(struct port *port, struct lb_err *reterr)
{
	bring_near(port);
	if (!port->opened) {
		int rc = all_run(port) ? open_beside(port, reterr) : -EAGAIN;
		if (rc != 0)
			return rc;
	}
	if (!is_left(port))
		return -EAGAIN;
	bool again = port->stopgap->again;
	port_stopgap_close(port);
	port->returns = false;
	if (again)
		port_get_ready(port);
	if (port->status.state == PORT_GONE)
		port->status.state = PORT_DOWN; // as far as is known
	return 0;
}

void port_stopgap_end(struct port *port)
{
	struct port_stopgap *s = port->stopgap;
	if (!s || s->ended)
		return;
	if (!s->begun) {
		port_stopgap_close(port);
		return;
	}
	s->ended = true;
	port->stopping = true;
	port_pass_queues(port, QUEUE_STOPPING);
}

void port_stopgap_close(struct port *port)
{
	struct port_stopgap *s = port->stopgap;
	if (!s)
		return;
	for (uint32_t i = 0; i < port->n_queues && s->ended; i++) {
		struct port_queue *q = &port->queues[i];
		q->yields = 0;
		q->swaps = 0;
		q->wait_fd = -1;
		q->spare = NULL;
		q->reads_apart = q->wire_vlan;
		q->marks = (struct ring_marks){0}; // closed with the stopgap
	}
	port->stopgap = NULL;
	free_stopgap(s);
}
