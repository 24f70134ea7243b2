// SPDX-License-Identifier: Apache-2.0
// One network device: probed, configured with one rx/tx queue pair and one mbuf pool per worker,
// started, closed. A queue is the worker's end of it: bursts in, a small batch of frames out.
// Order of birth: eal_start, port_new, worker_new, worker_start; of death: worker_join,
// worker_free, port_free, eal_stop.
// A device that goes away while workers run is closed, and opened again when it is back.
// Thread: port_* on ctrl, new and free while no worker runs; port_queue_* on the worker that owns
// the queue.
#pragma once

#include "dataplane/net/net.h"
#include "lb/base/counter.h"
#include "lb/base/err.h"
#include "lb/base/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct steer;
struct port;
struct port_queue;
struct rte_mbuf;

struct port_conf {
	uint32_t index; // in shunt.yaml's ports, for error texts: "ports[1].device: …"
	// Borrowed, outlives the port. DPDK's devargs: "net_af_packet0,iface=eth1",
	// "net_tap0,iface=tap0", "0000:03:00.0" (see pci_addr.h). What is left out is chosen for
	// load balancing (ring sizes of af_packet).
	const char *device;
	uint16_t mtu; // 0 = the device's own, at most PORT_MAX_MTU
	uint32_t n_queues; // workers
	uint32_t n_mbufs; // per queue, of 2 KiB, with an MTU above 1900 of 12; 0 = 8192
	// Borrowed. Gets offered what the device does (RSS), unless by_software; NULL = one queue.
	struct steer *steer;
	bool by_software; // don't use the device's steering, even if it has it
};
#define PORT_MAX_MTU 9000

// Whether these devargs name a device that needs physical addresses, see pci_device.h. Before EAL.
bool port_wants_pa(const char *device);
// Probes, configures and starts the device. NULL = failed; reterr begins with the field that is to
// blame.
struct port *port_new(const struct port_conf *, struct lb_err *reterr);
// Stops and closes the device; its queues are gone. NULL is fine.
void port_free(struct port *);

enum port_state {
	PORT_UNKNOWN, // not watched yet
	PORT_DOWN, // no link, or no other process of a memif
	PORT_UP,
	PORT_GONE, // the device
};
struct port_status {
	enum port_state state;
	uint64_t since_ns; // of port_watch()'s clock
	uint32_t mbps; // 0 = unknown
	uint64_t n_link_downs, n_losses; // how often the link, the device went
	const char *error; // why a device that is there again could not be opened; "" = none
};
enum port_event {
	PORT_EVENT_NONE,
	PORT_EVENT_LINK, // it went up or down
	PORT_EVENT_LOST,
	PORT_EVENT_BACK,
	PORT_EVENT_REFUSED, // status.error is new
};
// Several times a second while workers run: looks at the device and its link, and says what became
// of them. A device that is gone (unplugged, wanted back by the kernel, an interface deleted) is
// given up when all workers have let go of it; one that is back is opened for the same queues,
// which may take a second or two.
enum port_event port_watch(struct port *, uint64_t now_ns);
const struct port_status *port_status(const struct port *); // borrowed; of the last watch

const char *port_driver(const struct port *); // "net_af_packet"
// Gives back a frame of any port that no worker took.
void port_drop_frame(void *frame);
const uint8_t *port_mac(const struct port *);
uint16_t port_mtu(const struct port *);
// The link, or the other process of a memif, is there.
bool port_is_up(const struct port *);
struct port_queue *port_queue_of(struct port *, uint32_t queue); // borrowed

// The way out of net/: frames are batched until port_queue_flush(), or until a batch is full.
struct net_device port_queue_device(struct port_queue *);

// False = the device is gone or was: only port_queue_settle() then; what is sent is dropped and
// counted.
bool port_queue_is_live(const struct port_queue *);
// Each turn while it isn't live. True = from now on it is again, with what port_mac() says now.
bool port_queue_settle(struct port_queue *);

#define PORT_BURST 32
// Frames that arrived, at most PORT_BURST, owned: for port_queue_done() or another worker.
uint32_t port_queue_rx(struct port_queue *, struct rte_mbuf **ret_frames);
// Takes back what this queue received and nobody needs any more: the next frames go out in it.
void port_queue_done(struct port_queue *, struct rte_mbuf **frames, uint32_t n);
// One of its own with the same bytes. NULL = no mbuf, counted.
struct rte_mbuf *port_queue_copy(struct port_queue *, const struct rte_mbuf *);
// Offers the batch to the device and returns how many frames it took. The rest stays for the next
// turn, within a bound; beyond it frames are dropped and counted.
uint32_t port_queue_flush(struct port_queue *);
uint32_t port_queue_unsent(const struct port_queue *);
// Reads what the device lost for want of room, and how many mbufs are out. Costs a system call or
// more: seldom.
void port_queue_watch(struct port_queue *);
// A descriptor that poll(2) says is readable when frames wait, or -1: the device has none.
int port_queue_wait_fd(const struct port_queue *);
struct counter_set port_queue_counters(const struct port_queue *);
// Its mbufs, as of the last port_queue_watch().
struct pool_view port_queue_mbufs(const struct port_queue *);
