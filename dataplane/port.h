// SPDX-License-Identifier: Apache-2.0
// One network device: probed, configured with one rx/tx queue pair and one mbuf pool per worker,
// started, closed. A queue is the worker's end of it: bursts in, a small batch of frames out. Order
// of construction: eal_start, port_new, worker_new, worker_start; of destruction: worker_join,
// worker_free, port_free, eal_stop. A device that is removed while workers run is closed, and
// opened again when it returns. Several ports may be VLANs of one device (port_trunk.h).
// Thread: port_* on ctrl, new and free while no worker runs; port_queue_* on the worker that owns
// the queue.
#pragma once

#include "dataplane/net/net.h"
#include "dataplane/relay.h"
#include "lb/base/counter.h"
#include "lb/base/err.h"
#include "lb/base/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct lb_cables;
struct net_tap;
struct steer;
struct port;
struct port_queue;
struct rte_mbuf;

enum port_bond_mode {
	PORT_NO_BOND,
	PORT_BOND_8023AD, // LACP (IEEE 802.1AX)
	PORT_BOND_ACTIVE_BACKUP,
};

// A trunk: ports that are VLANs of one device. The first one, its carrier, has the device, and is
// made before the others and freed after them; what port_conf says of a device it alone says.
struct port_conf {
	uint32_t index; // in shunt.yaml's ports, for error texts: "ports[1].device: …"
	// Borrowed, outlives the port. DPDK's devargs: "net_af_packet0,iface=eth1",
	// "net_tap0,iface=tap0", "0000:03:00.0" (see pci_addr.h). Omitted parameters get defaults
	// for load balancing (ring sizes of af_packet).
	const char *device;
	// Several devices that are one: members are their devargs, borrowed as well, and device is
	// its name: "net_bonding0".
	enum port_bond_mode bond;
	const char *const *members;
	uint32_t n_members; // at most PORT_MAX_MEMBERS
	uint16_t mtu; // 0 = the device's own, at most PORT_MAX_MTU; of a trunk the longest of all
	uint16_t own_mtu; // of this port's packets, if that is less; 0 = it is not
	uint32_t n_queues; // workers
	uint32_t n_mbufs; // per queue; 2 KiB each, 12 KiB with an MTU above 1900; 0 = 8192
	// Borrowed. port_new() offers it the device's RSS, unless by_software; NULL = one queue.
	struct steer *steer;
	bool by_software; // ignore the device's RSS
	// Another process of ours may drive it, too, with the kernel giving both each frame
	// (net_af_packet): its claim is respected, and inherited when that one ends.
	bool shared;
	uint16_t vlan; // all frames have this tag (802.1Q); 0 = none has one
	struct port *carrier; // borrowed; NULL = the device is opened for this port
	uint32_t n_vlans; // of a carrier: ports of its trunk, itself included; 0 = it is none
	bool has_ip6; // an IPv6 address: the device has to receive its groups
	bool has_kernel; // behind it, and that may want any group
	// What another process's ports send by, whose devices are shared: a bond begins with the
	// address that it has there, and follows (port_cable.h). NULL = nobody is asked. Borrowed
	// for port_new() alone.
	const struct lb_cables *cables;
	// Another process has the device for now: the port begins without it, as port_pass_on()
	// would leave it, and with what that process says of it. NULL = it opens its device.
	// Borrowed for port_new() alone.
	const struct relay_port *relayed;
};
#define PORT_MAX_MTU 9000
#define PORT_MAX_MEMBERS 8 // of a bond
#define PORT_MAX_VLANS NET_MAX_PORTS // of a trunk
#define PORT_MAX_DEVICES 32 // of all ports: devices, and bonds with their members

// Whether another process of ours can have its devices besides, or take them over: 0, or -EINVAL
// with reterr, which begins with the field.
[[nodiscard]] int port_check_shared(const struct port_conf *, struct lb_err *reterr);
// True if these devargs name a device that needs physical addresses (pci_device.h). Call before EAL
// starts.
bool port_wants_pa(const char *device);
// Probes, configures and starts the device, or joins its carrier's, before workers run. Returns
// NULL on failure; reterr begins with the field.
struct port *port_new(const struct port_conf *, struct lb_err *reterr);
// Stops and closes the device and frees its queues. NULL is fine.
void port_free(struct port *);

enum port_state {
	PORT_UNKNOWN, // not watched yet
	PORT_DOWN, // no link, or no peer process of a memif
	PORT_UP,
	PORT_GONE, // the device was removed
};
struct port_status {
	enum port_state state;
	uint64_t since_ns; // of port_watch()'s clock
	uint32_t mbps; // 0 = unknown
	uint64_t n_link_downs, n_losses; // how often link and device were lost
	const char
		*merged; // what was done, or is to be, about frames that were cut; "" = none were
	const char *error; // why a device that returned could not be opened; "" = no error
};
enum port_event {
	PORT_EVENT_NONE,
	PORT_EVENT_LINK, // it went up or down
	PORT_EVENT_LOST,
	PORT_EVENT_RESET, // as its driver says; like LOST, as it must be opened anew
	PORT_EVENT_SILENT, // the same without a word: nothing comes from it
	PORT_EVENT_BACK,
	PORT_EVENT_REFUSED, // status.error is new
	PORT_EVENT_SPLIT, // longer frames came than the ring holds; status.merged: why no more will
	PORT_EVENT_CUT, // the same, and more will: status.merged has the remedy
};
// Call several times a second while workers run: checks the device and its link, and returns what
// happened. A device that is gone (unplugged, requested by the kernel, an interface deleted), was
// reset, or is silent is closed when all workers have released it; one that returns, or was there
// all the time, is opened for the same queues, which may take a second or two. Of a trunk the
// carrier tells of all that happens; the others follow it if they are watched after it.
enum port_event port_watch(struct port *, uint64_t now_ns);
const struct port_status *port_status(const struct port *); // borrowed; as of the last watch

// Of a device that a process has alone, and that one after it may have, a card, a bond of some, or
// the client's end of a memif: its name for both. False = it is none.
bool port_relay_name(const struct port_conf *, char ret[RELAY_MAX_NAME]);
// NULL = it may leave. Else why it has to stay, to be said behind its name, or behind that of the
// card: one of a bond is gone, and the rest can't be closed, say. Static. Ask before each step:
// while it is being closed, or is, it is NULL, since then nobody knows better.
const char *port_why_stays(const struct port *);
// The newer process has come, and may want the device: takes some milliseconds, so that less is to
// do then. Undone by port_take_back().
void port_get_ready(struct port *);
// The newer process is to have the device: workers let go of it, it is closed, and they have what
// the relay to that process brings from then on. Several devices at a time are closed side by side.
// A trunk goes as one: what is said here is done to its carrier, and of the others to nobody.
void port_pass_on(struct port *);
// Call until it is true, often.
bool port_is_passed_on(struct port *, uint64_t now_ns);
// Opens the device in place of the relay, which takes a second or two. No other process has it any
// more. Returns 0, or negative with reterr: it is as it was, and may be tried again.
[[nodiscard]] int port_take(struct port *, struct lb_err *reterr);
// The newer process came to nothing: port_watch() opens the device as soon as it can.
void port_take_back(struct port *, uint64_t now_ns);
// True = the next port_watch() should be soon, in some milliseconds: the device is on its way back.
bool port_is_urgent(const struct port *, uint64_t now_ns);

// A member of a bond.
enum port_member_state {
	PORT_MEMBER_GONE, // the device was removed
	PORT_MEMBER_DOWN, // no link
	PORT_MEMBER_STANDBY, // another one is active
	PORT_MEMBER_ACTIVE,
	PORT_MEMBER_WAITING, // LACP: the partner is not known, or not ready
	PORT_MEMBER_COLLECTING, // LACP: takes frames, the partner does not yet
	PORT_MEMBER_DISTRIBUTING, // LACP: takes and sends them
};
struct port_member {
	enum port_member_state state;
	uint64_t since_ns; // of port_watch()'s clock
	uint32_t mbps; // 0 = unknown
	uint64_t n_downs; // how often its link or device was lost
	const char *driver; // ""
	uint8_t mac[6];
	uint8_t partner[6]; // LACP: the system at the other end; 0 = nobody is known
	uint64_t rx_frames, tx_frames; // since the device was opened, as of a second ago
};
// As of the last watch. 0 = the port is no bond, or not the carrier of one, or another process has
// its device.
uint32_t port_n_members(const struct port *);
struct port_member port_member_of(const struct port *, uint32_t member);

const char *port_driver(const struct port *); // "net_af_packet"
// Frees a frame of any port that no worker took.
void port_drop_frame(void *frame);
const uint8_t *port_mac(const struct port *);
uint16_t port_mtu(const struct port *);
uint16_t port_vlan(const struct port *); // as configured
bool port_verifies_checksums(const struct port *); // the device does, of TCP segments received
// How often a link that was down came up, as of the last watch. Thread: any.
uint32_t port_link_ups(const struct port *);
// True if there is a link, or the peer process of a memif.
bool port_is_up(const struct port *);
struct port_queue *port_queue_of(struct port *, uint32_t queue); // borrowed

// Output for net/: frames are batched until port_queue_flush(), or until a batch is full.
struct net_device port_queue_device(struct port_queue *);

// False = the device is or was gone: call only port_queue_settle(); frames sent are dropped and
// counted.
bool port_queue_is_live(const struct port_queue *);
// Call each turn while it is not live. True = it is live again, with the address in port_mac().
bool port_queue_settle(struct port_queue *);

// Where the worker's relays end, and the port's number there. Before the worker runs; borrowed.
void port_queue_set_relay(struct port_queue *, struct relay_end *, uint32_t port);
// Before a frame to send is taken from another process: true = none is to be taken, since the newer
// one has the device by now. The queue, on which something stood in for it, is far from here on, or
// soon: when it has taken what has come to that.
bool port_queue_yield(struct port_queue *);
// The relay through which the queue has its device; RELAY_NONE = it has one of its own, or none.
enum relay_side port_queue_far(const struct port_queue *);
// port_queue_rx() of a queue that is far, which is not live.
uint32_t port_queue_rx_far(struct port_queue *, struct rte_mbuf **ret_frames);

#define PORT_BURST 32
#define PORT_MAX_BURSTS 4 // that are read from one port in one turn
// Received frames, at most PORT_BURST, owned: pass them to port_queue_done() or to another worker.
// Of a trunk the carrier's queue is read first, which has the others' frames wait for them.
uint32_t port_queue_rx(struct port_queue *, struct rte_mbuf **ret_frames);
// True if the device vouches for the TCP segment in a received frame: it verified the checksum, or
// the segment has come from this machine and has none yet.
bool port_frame_is_verified(const struct rte_mbuf *);
// True if the sender left the checksum of a segment or datagram to hardware, and nobody made it.
bool port_frame_is_unmade(const struct rte_mbuf *);
// Returns processed frames of this queue; the next frames are sent in their buffers.
void port_queue_done(struct port_queue *, struct rte_mbuf **frames, uint32_t n);
// A copy of the frame in an own mbuf. NULL = no mbuf, counted.
struct rte_mbuf *port_queue_copy(struct port_queue *, const struct rte_mbuf *);
// Offers the batch to the device and returns how many frames it took. The rest stays for the next
// turn, up to a limit; above it frames are dropped and counted.
uint32_t port_queue_flush(struct port_queue *);
uint32_t port_queue_unsent(const struct port_queue *);
// False = of a trunk, and not its carrier's: device and mbufs are the carrier's.
bool port_queue_has_device(const struct port_queue *);
// Each frame that is sent from now on is shown to the tap when its batch is offered to the device,
// or when it is dropped instead. The tap is borrowed; NULL = none is.
void port_queue_tap(struct port_queue *, struct net_tap *);
// Reads how many frames the device dropped for lack of buffers, and how many mbufs are in use.
// Rarely: costs at least a system call.
void port_queue_watch(struct port_queue *);
// A descriptor that is readable in poll(2) when frames wait; -1 = the device has none.
int port_queue_wait_fd(const struct port_queue *);
struct counter_set port_queue_counters(const struct port_queue *);
// Usage of its mbufs, as of the last port_queue_watch().
struct pool_view port_queue_mbufs(struct port_queue *);
