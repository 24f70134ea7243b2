// SPDX-License-Identifier: Apache-2.0
// What the files behind port.h share: port.c (life and watch of a port), port_probe.c (a device),
// port_open.c (the device of a port), port_pool.c (its mbufs), port_bond.c (several of them as
// one), port_trunk.c (several ports on one), port_queue.c (the workers' ends). Nobody else includes
// this.
// Thread: ctrl; a running queue is its worker's.
#pragma once

#include "dataplane/bpf_fds.h"
#include "dataplane/gso.h"
#include "dataplane/pci_addr.h"
#include "dataplane/port.h"
#include "dataplane/port_claim.h"
#include "dataplane/port_reset.h"
#include "dataplane/ring_marks.h"
#include "dataplane/vlan.h"
#include "dataplane/wait_fd.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <pthread.h>
#include <string.h>

#define PORT_MAX_DEVICE 1024 // bytes, as in shunt.yaml
// With what port_complete_devargs() adds, which may also spell out a PCI address.
#define PORT_MAX_DEVARGS (PORT_MAX_DEVICE + 128)

// A frame fits one mbuf: of the usual size up to a certain MTU, of three pages beyond it, as many
// as a frame takes in the rings of af_packet.
#define PORT_SMALL_MTU 1900
#define PORT_LARGE_ROOM 12288
_Static_assert(PORT_MAX_MTU + 256 <= PORT_LARGE_ROOM, "with what af_packet puts before it");

#define PORT_DESCRIPTORS 1024 // of a device's queue, each way
#define PORT_MAX_UNSENT 512 // frames a device may leave behind before we drop
#define PORT_MAX_READY (2 * PORT_BURST)
// In which a stand-in's ring of 4096 frames has been read twice, whatever comes into it meanwhile.
#define PORT_YIELD_TURNS 64
#define PORT_SWAP_BURSTS (PORT_YIELD_TURNS * PORT_MAX_BURSTS)

// clang-format off
#define PORT_COUNTERS(X)                                                                           \
	X(rx_frames)                                                                               \
	X(rx_bytes)                                                                                \
	X(rx_missed)                                                                               \
	X(rx_other_vlan)                                                                           \
	X(rx_cut)                                                                                  \
	X(rx_checksum_unmade)                                                                      \
	X(tx_frames)                                                                               \
	X(tx_bytes)                                                                                \
	X(tx_no_mbuf)                                                                              \
	X(tx_too_long)                                                                             \
	X(tx_dropped)                                                                              \
	X(copy_no_mbuf)
// clang-format on

#define X(name) PORT_##name,
enum port_counter { PORT_COUNTERS(X) PORT_N_COUNTERS };
#undef X

// Who owns the device's end of a queue. The owner passes it on (release), the other side sees that
// (acquire), so that nobody uses a device that is being closed or opened.
enum queue_phase {
	QUEUE_RUNS, // owned by the worker
	QUEUE_STOPPING, // owned by the worker, which must release it
	QUEUE_RESTS, // owned by ctrl
	QUEUE_STARTING, // owned by the worker, which may start using it
	QUEUE_SWAPPING, // owned by the worker, which is to take another device (port_stopgap.h)
	// The device's end is ctrl's, and the worker uses a relay in its place (port_relay.c).
	QUEUE_FAR,
};

struct port_queue {
	uint32_t phase; // enum queue_phase
	// w: ctrl, before workers run or while the queue rests.
	uint16_t port_id, index;
	uint16_t vlan; // 0 = none; the worker's copy, 0 while it is far: no wire is here then
	uint16_t wire_vlan;
	bool reads_apart; // what the driver gives is not all there is to it
	int wait_fd;
	struct ring_marks marks; // of an AF_PACKET ring
	struct port_trunk *trunk; // the port's; NULL = none
	struct port_waiting *waiting; // owned; of a trunk but its carrier's: what that has read
	struct rte_mempool *mbufs; // owned; of a trunk by its carrier's
	// Ctrl's: of mbufs to drivers that keep them, and what they were lent then.
	uint32_t n_lent;
	struct port_ring *rings; // owned, the latest first
	struct rte_mbuf *open; // reserved, not sent yet
	uint32_t n_ready;
	uint32_t room; // of one of mbufs, behind the headroom
	struct rte_mbuf *ready[PORT_MAX_READY]; // to be reserved next: from mbufs, one segment each
	uint64_t n_missed_before; // of earlier devices
	uint64_t n_socket_drops; // of this device
	uint32_t n_mbufs_used, n_mbufs_peak; // as a pool's
	uint32_t n_unsent;
	struct rte_mbuf *unsent[PORT_MAX_UNSENT];
	// Bytes of each: of a batch that waits, mbufs are no longer in the cache.
	uint16_t unsent_len[PORT_MAX_UNSENT];
	struct port_bond *bond; // the port's; NULL = none
	bool is_lacp; // of that: its frames leave with ours, so there must be some
	enum relay_side far; // while QUEUE_FAR, or once it yields
	// Takes what the device has left, in so many bursts at most, and goes over to spare; 0 = it
	// does not.
	uint32_t swaps;
	// To the relay, once the other process has the device (port_stopgap.h): in so many turns
	// at most; 0 = it does not.
	uint32_t yields;
	// Borrowed; has another device for it. w: ctrl (release), and the worker, once it has gone
	// over (NULL, release); r: both (acquire).
	const struct port_queue *spare;
	uint32_t relay_port; // the port's number there
	struct relay_end *relay; // borrowed; NULL = none
	struct net_tap *tap; // borrowed; NULL = nobody copies what is sent
	uint32_t n_tapped; // of unsent: those that it has seen, or that came before it
	uint64_t counters[PORT_N_COUNTERS];
} __attribute__((aligned(64)));

enum port_kind {
	PORT_OTHER, // cannot be removed
	PORT_INTERFACE, // on top of a kernel interface
	PORT_PCI,
	PORT_MEMIF, // the client's end, whose server may go
};

struct port_bond;
struct port_ring;
struct port_stopgap;
struct port_trunk;

// Or a member of a bond, which is claimed, probed and closed likewise, and has no queues.
struct port {
	struct port_conf conf; // device is borrowed
	char field[32]; // of shunt.yaml, that names it: "bond.members[1]"; "" = "device"
	struct port_bond *bond; // owned; NULL = one device
	struct port_trunk *trunk; // owned by its carrier; NULL = none
	bool is_carried; // of a trunk, and not its carrier: all of the device is unused
	enum port_kind kind;
	struct port_claim claim;
	// The device, while open.
	bool opened;
	uint16_t id;
	uint16_t mtu;
	struct rte_ether_addr mac;
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *driver; // static
	bool filters_vlans; // receives those that it was told of alone
	bool verifies; // TCP checksums of what it received
	bool hashes; // it has been told to spread flows over its queues
	unsigned if_index; // of the kernel's interface; 0 = none
	struct rte_device *device; // EAL's
	struct pci_addr pci_addr;
	uint64_t pci_id; // see pci_device.h
	char pci_driver[32];
	bool asked_away; // see unplug.h
	bool listens; // listens for asked_away
	struct port_reset reset;
	uint32_t n_queues;
	struct port_queue *queues; // owned
	struct wait_fd_search search;
	struct bpf_fds bpf; // that came with it
	uint32_t xsk_map; // of AF_XDP, by which its sockets are found (xsk_map.h); 0 = not known
	uint32_t first_queue; // of ours, among the interface's
	struct gso gso;
	// The watch.
	struct port_status status;
	uint32_t n_link_ups; // w: ctrl (relaxed), r: workers (relaxed)
	uint64_t n_cut; // rx_cut of all queues when last looked at
	uint64_t split_ns; // no complaints before: frames that were on their way may still be cut
	char merged[160]; // what was done about frames that were cut, or is to be
	bool stopping; // workers are releasing it, or it is being closed
	bool leaves; // to the newer process, once it is closed
	bool relayed; // another process has the device, or may take it
	bool returns; // ours again, and not open yet, or not used: the stopgap stands in
	struct port_stopgap *stopgap; // owned; in place of the device; NULL = none
	bool closing; // in a separate thread
	pthread_t closer; // while closing
	bool closed; // closing is complete; w: closer (release), r: ctrl (acquire)
	uint64_t retry_ns, retry_wait_ns;
	bool awaits_server; // a memif that was opened again and has not been let in yet
	// Until then each look tries: it comes back from another process. 0 = it does not, or was
	// lost since.
	uint64_t hurry_ns;
	char error[384]; // why it could not be opened again
};

static inline const char *port_field(const struct port *port)
{
	return port->field[0] ? port->field : "device";
}

// The VLAN of a received frame, whoever took its tag out or not; VLAN_NONE = it has no tag.
static inline int port_frame_vlan(const struct rte_mbuf *m)
{
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		return m->vlan_tci & 0xfff;
	return vlan_of(rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m));
}

// Its tag, of which port_frame_vlan() has told, is gone afterwards.
static inline void port_frame_untag(struct rte_mbuf *m)
{
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		return;
	(void)vlan_strip(rte_pktmbuf_mtod(m, uint8_t *));
	(void)rte_pktmbuf_adj(m, VLAN_TAG);
}

static inline bool port_is_driver(const char *device, const char *driver)
{
	return strncmp(device, driver, strlen(driver)) == 0;
}

// True = its mbufs are of the larger size.
static inline bool port_is_large(const struct port_conf *conf)
{
	return conf->mtu > PORT_SMALL_MTU;
}

// Says what failed, with what DPDK said of it since eal_blame_start(). Negative.
int port_blame(struct lb_err *reterr, const struct port *, const char *doing, int rc);
// Says so instead, if an interface behind AF_XDP lacks queues: its driver does not.
void port_blame_queues(const struct port *, struct lb_err *reterr);
// What DPDK is told of the device.
void port_complete_devargs(const struct port_conf *, char *text, size_t size);
// Claims the device: before it is touched, since opening it resets it. 0, or negative with reterr.
[[nodiscard]] int port_take_claim(struct port *, struct lb_err *reterr);
// Of a port, with all members: those claims that aren't ours yet, and all of ours.
[[nodiscard]] int port_claim_devices(struct port *, struct lb_err *reterr);
void port_drop_claims(struct port *);
// The claim of a device that two processes had, once the other one is gone.
void port_inherit_claim(struct port *);
// Finds the device and makes it a port of DPDK's, whose id is then known. Returns 0, or negative
// with reterr, which begins with the field; call port_close() then.
[[nodiscard]] int port_probe(struct port *, struct lb_err *reterr);

// Of a queue, once; they outlive the device. False = out of memory.
[[nodiscard]] bool port_make_mbufs(
	struct port_queue *, const struct port_conf *, const char *name, int socket);
// What the driver of a device that is being opened receives into: the queue's mbufs, or a pool made
// for this opening (port_pool.c). NULL = out of memory.
struct rte_mempool *port_ring_mbufs(struct port_queue *, const struct port *, int socket);
// Call when the queue is set up, or is not; when all of them are started and their descriptors
// known; before the device is closed, when no worker has it, and after.
void port_ring_filled(struct port_queue *);
void port_rings_started(struct port *);
void port_rings_drain(struct port *);
void port_rings_closed(struct port *);
// Frees those of closed devices whose mbufs are back. Not while it is being closed.
void port_rings_watch(struct port *, uint64_t now_ns);
// All of them. Nobody may have any of their mbufs.
void port_rings_free(struct port_queue *);
// Opens the device again, as it was, and claims it before, if it isn't ours: 0, or negative with
// reterr, and it is closed. waits: up to a second, until a memif has its server, or fails.
[[nodiscard]] int port_reopen(struct port *, bool waits, struct lb_err *reterr);
// Those of the whole trunk, if it is one.
void port_pass_queues(struct port *, enum queue_phase);
// The port begins behind the relay to the older process: 0, or negative with reterr.
[[nodiscard]] int port_relay_new(struct port *, const struct relay_port *, struct lb_err *reterr);
// Its device is closed, and the newer process's from now on.
void port_relay_leave(struct port *);
// Sends the batch of a queue that is far.
uint32_t port_queue_flush_far(struct port_queue *);

// Probes, configures and starts the device; queues without mbufs get theirs. Returns 0, or negative
// with reterr, which begins with the field; call port_close() then.
[[nodiscard]] int port_open(struct port *, struct lb_err *reterr);
// Stops and closes it, if open. forget: so that a device of the same name can be opened again.
void port_close(struct port *, bool forget);
// Of a memif's client: waits until its server has let it in, as it does at once if at all. Returns
// 0, or negative with reterr. Of other devices 0.
[[nodiscard]] int port_await_server(const struct port *, struct lb_err *reterr);
// That it does not. Negative.
int port_blame_server(const struct port *, struct lb_err *reterr);
// True if the device is still the one that was opened, and ours.
bool port_is_there(const struct port *);
// True if there is a device to open.
bool port_may_open(const struct port *);
// Whether there is a link, and its speed (0 = unknown).
bool port_link(const struct port *, uint32_t *ret_mbps);
