// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port_stopgap.h"

#include "dataplane/device_name.h"
#include "dataplane/port_impl.h"
#include "dataplane/xsk_map.h"
#include "lb/base/cacheline.h"
#include "lb/base/log.h"

#include <stdio.h>
#include <stdlib.h>

struct port_stopgap {
	struct port port; // whose queues lend the others what they need of a device
	char device[PORT_MAX_DEVICE];
	bool begun, ended;
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
	free(s);
}

static struct port_stopgap *make(const struct port *port)
{
	size_t len;
	const char *interface = device_name_interface(port->conf.device, &len);
	struct port_stopgap *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	snprintf(s->device, sizeof(s->device), "net_af_packet_gap%u,iface=%.*s", port->conf.index,
		(int)len, interface);
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

void port_stopgap_open(struct port *port)
{
	struct lb_err err = {""};
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
	for (uint32_t i = 0; i < port->n_queues && s->begun; i++) {
		struct port_queue *q = &port->queues[i];
		q->yields = 0;
		q->swaps = false;
		q->wait_fd = -1;
		q->spare = NULL;
		q->reads_apart = q->wire_vlan;
		q->marks = (struct ring_marks){0}; // closed with the stopgap
	}
	port->stopgap = NULL;
	free_stopgap(s);
}
