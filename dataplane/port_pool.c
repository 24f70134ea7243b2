// SPDX-License-Identifier: Apache-2.0
// A queue's mbufs. DPDK 22.11's driver of AF_XDP fills a ring with some when a queue is set up, if
// it then cannot have it, too, and gives none of them back when it is closed. So the queue's own
// pool is lent to it once; each later opening has another one to receive into, which goes when
// nobody can have any of its mbufs. What is sent is copied there by the driver then.
#include "dataplane/port_impl.h"
#include "lb/base/time.h"
#include "lb/pick/limits.h"

#include <rte_mempool.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_MBUFS 8192
// A pool's mbufs also come to rest with workers that were handed its frames and freed them: each
// core keeps up to one and a half times what is called the size of its cache.
#define MAX_CACHE 256
#define CACHED_MBUFS 2048 // the caches' sizes together
#define AF_XDP_RING 2048 // of a queue of AF_XDP to receive, and as many to send
_Static_assert(CACHED_MBUFS / LB_MAX_WORKERS >= PORT_BURST, "a burst is freed within a cache");
_Static_assert(DEFAULT_MBUFS - CACHED_MBUFS * 3 / 2 >= 2 * PORT_DESCRIPTORS + 2 * PORT_MAX_UNSENT,
	"a queue goes on when all caches are full");
_Static_assert(DEFAULT_MBUFS - CACHED_MBUFS * 3 / 2 - 2 * AF_XDP_RING >= 2 * PORT_MAX_UNSENT,
	"and sends when the driver of AF_XDP has kept what it was lent");

// A worker that frees an mbuf is still writing when it counts as free.
#define REST_NS (10 * NS_PER_SECOND)
// In which the kernel has sent what the driver was given last: a few microseconds.
#define DRAIN_TRIES 10

struct port_ring {
	struct port_ring *before; // of an earlier opening; owned
	struct rte_mempool *mbufs;
	uint32_t n_kept; // of them, by the driver
	bool open, started; // the device; frames have come since
	bool closed; // with its socket: the kernel does not write any more
	uint64_t since_ns; // no more than n_kept are missing; 0 = some are
};

static struct rte_mempool *make_pool(const struct port_conf *conf, const char *name, int socket)
{
	uint16_t room = port_is_large(conf) ? PORT_LARGE_ROOM : RTE_MBUF_DEFAULT_DATAROOM;
	uint32_t n = conf->n_mbufs ? conf->n_mbufs : DEFAULT_MBUFS;
	if (conf->n_members > 1) // each has rings of its own
		n += (conf->n_members - 1) * 2 * PORT_DESCRIPTORS;
	if (conf->n_vlans > 1) // each has batches of its own
		n += (conf->n_vlans - 1) * (PORT_MAX_READY + PORT_MAX_UNSENT);
	return rte_pktmbuf_pool_create(name, n, RTE_MIN(MAX_CACHE, CACHED_MBUFS / conf->n_queues),
		0, (uint16_t)(room + RTE_PKTMBUF_HEADROOM), socket);
}

bool port_make_mbufs(
	struct port_queue *q, const struct port_conf *conf, const char *name, int socket)
{
	q->mbufs = make_pool(conf, name, socket);
	if (!q->mbufs)
		return false;
	q->room = rte_pktmbuf_data_room_size(q->mbufs) - RTE_PKTMBUF_HEADROOM;
	return true;
}

struct rte_mempool *port_ring_mbufs(struct port_queue *q, const struct port *port, int socket)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	if (!port_is_driver(port->driver, "net_af_xdp"))
		return q->mbufs;
	if (!q->n_lent++)
		return q->mbufs;
	struct port_ring *r = calloc(1, sizeof(*r));
	snprintf(name, sizeof(name), "ring%u-%u-%u", port->conf.index, q->index, q->n_lent);
	if (r)
		r->mbufs = make_pool(&port->conf, name, socket);
	if (!r || !r->mbufs) {
		free(r);
		// Better than nothing, while it can be done.
		return rte_mempool_avail_count(q->mbufs) > q->mbufs->size / 2 ? q->mbufs : NULL;
	}
	r->open = true;
	r->before = q->rings;
	q->rings = r;
	return r->mbufs;
}

// Of the device that is open; NULL = none.
static struct port_ring *ring_of(const struct port_queue *q)
{
	return q->rings && q->rings->open ? q->rings : NULL;
}

void port_rings_started(struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_ring *r = ring_of(&port->queues[i]);
		if (!r)
			continue;
		r->started = true;
		r->closed = port->queues[i].wait_fd >= 0; // as it will be (wait_fd.h)
	}
}

// The driver takes back what was sent when it sends.
void port_rings_drain(struct port *port)
{
	for (uint16_t i = 0; i < port->n_queues; i++) {
		struct port_ring *r = ring_of(&port->queues[i]);
		for (int n = 0; r && r->started && n < DRAIN_TRIES; n++) {
			(void)rte_eth_tx_burst(port->id, i, NULL, 0);
			if (rte_mempool_in_use_count(r->mbufs) <= r->n_kept)
				break;
			usleep(1000);
		}
	}
}

static void drop(struct port_ring **at)
{
	struct port_ring *r = *at;
	*at = r->before;
	rte_mempool_free(r->mbufs);
	free(r);
}

void port_rings_closed(struct port *port)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		if (!ring_of(q))
			continue;
		q->rings->open = false;
		if (!q->rings->started) // no worker has seen it
			drop(&q->rings);
	}
}

static bool is_back(struct port_ring *r, uint64_t now_ns)
{
	if (r->open || !r->closed || rte_mempool_in_use_count(r->mbufs) > r->n_kept)
		r->since_ns = 0;
	else if (!r->since_ns)
		r->since_ns = now_ns;
	return r->since_ns && now_ns - r->since_ns >= REST_NS;
}

void port_rings_watch(struct port *port, uint64_t now_ns)
{
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_ring **at = &port->queues[i].rings;
		while (*at) {
			if (is_back(*at, now_ns))
				drop(at);
			else
				at = &(*at)->before;
		}
	}
}

void port_ring_filled(struct port_queue *q)
{
	struct port_ring *r = ring_of(q);
	if (r)
		r->n_kept = rte_mempool_in_use_count(r->mbufs);
}

void port_rings_free(struct port_queue *q)
{
	while (q->rings)
		drop(&q->rings);
}
