// SPDX-License-Identifier: Apache-2.0
// A port's device: found, configured, started, closed.
#include "dataplane/eal.h"
#include "dataplane/interface.h"
#include "dataplane/net/steer.h"
#include "dataplane/pci_device.h"
#include "dataplane/port_bond.h"
#include "dataplane/port_impl.h"
#include "dataplane/port_trunk.h"
#include "dataplane/remedy.h"
#include "dataplane/telemetry_socket.h"
#include "dataplane/unplug.h"
#include "dataplane/xsk_map.h"
#include "lb/base/check.h"

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int set_mtu(struct port *port, const struct port_conf *conf,
	const struct rte_eth_dev_info *info, struct lb_err *reterr)
{
	if (port->bond) // configure() has told the driver
		return 0;
	// The kernel's interface behind a virtual device has its own idea; DPDK says 1500.
	int now = info->if_index ? interface_mtu(info->if_index) : -1;
	if (now < 0 && rte_eth_dev_get_mtu(port->id, &port->mtu) == 0)
		now = port->mtu; // which not every device can set, such as memif
	now = now < 0 ? RTE_ETHER_MTU : now;
	port->mtu = now > PORT_SMALL_MTU ? PORT_SMALL_MTU : (uint16_t)now;
	if (conf->mtu == 0)
		return 0;
	if (conf->mtu > PORT_MAX_MTU || conf->mtu < 576) {
		lb_err_set(reterr, "ports[%u].mtu: %u is not within 576 and %u", conf->index,
			conf->mtu, PORT_MAX_MTU);
		return -EINVAL;
	}
	// A memif knows none: what is as long as its buffers passes.
	bool any = port_is_driver(info->driver_name, "net_memif");
	int rc = conf->mtu == now || any ? 0 : rte_eth_dev_set_mtu(port->id, conf->mtu);
	if (rc < 0)
		return lb_err_set(reterr, "ports[%u].mtu: %s does not take %u: %s", conf->index,
			port->name, conf->mtu, rte_strerror(-rc));
	port->mtu = conf->mtu;
	return 0;
}

static int make_queue(struct port *port, const struct port_conf *conf, uint16_t index,
	uint16_t n_rx, uint16_t n_tx, struct lb_err *reterr)
{
	struct port_queue *q = &port->queues[index];
	q->port_id = port->id;
	q->index = index;
	q->wait_fd = -1;
	q->wire_vlan = conf->vlan;
	q->trunk = port->trunk;
	q->bond = port->bond;
	q->is_lacp = conf->bond == PORT_BOND_8023AD;
	int socket = rte_eth_dev_socket_id(port->id);
	char name[RTE_MEMPOOL_NAMESIZE];
	snprintf(name, sizeof(name), "mbufs-%u-%u", q->port_id, q->index);
	bool made = q->mbufs || port_make_mbufs(q, conf, name, socket);
	struct rte_mempool *mbufs = made ? port_ring_mbufs(q, port, socket) : NULL;
	if (!mbufs) {
		char text[REMEDY_MAX];
		return lb_err_set(reterr, "ports[%u].device: %s: no memory for its packets: %s",
			port->conf.index, port->name,
			remedy_for_memory("", rte_eal_has_hugepages(), text));
	}
	int rc = rte_eth_rx_queue_setup(port->id, index, n_rx, (unsigned)socket, NULL, mbufs);
	port_ring_filled(q);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port->id, index, n_tx, (unsigned)socket, NULL);
	if (rc == 0)
		return 0;
	rc = port_blame(reterr, port, "cannot set up a queue", rc);
	port_blame_queues(port, reterr);
	return rc;
}

// TCP's of the families that come in.
static uint64_t hashes_of(const struct port_conf *conf)
{
	return RTE_ETH_RSS_NONFRAG_IPV4_TCP | (conf->has_ip6 ? RTE_ETH_RSS_NONFRAG_IPV6_TCP : 0);
}

// Those that don't say have the usual one.
static uint8_t key_len_of(const struct rte_eth_dev_info *info)
{
	return info->hash_key_size ? info->hash_key_size : 40;
}

// False = the device has no hash that could be followed.
static bool ask_to_hash(
	const struct port_conf *conf, const struct rte_eth_dev_info *info, struct rte_eth_conf *eth)
{
	uint64_t wanted = hashes_of(conf);
	uint8_t key_len = key_len_of(info);
	if (wanted & ~info->flow_type_rss_offloads || info->reta_size == 0 ||
		info->reta_size > STEER_ENTRIES_MAX || key_len < TOEPLITZ_KEY_MIN ||
		key_len > STEER_KEY_MAX)
		return false;
	eth->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	eth->rx_adv_conf.rss_conf = (struct rte_eth_rss_conf){
		.rss_key = conf->steer->key,
		.rss_key_len = key_len,
		.rss_hf = wanted,
	};
	return true;
}

// Asks for our table, then takes what the device says of itself, whether it listened or not.
static bool follow_device(struct port *port, struct steer *steer)
{
	struct rte_eth_dev_info info;
	if (rte_eth_dev_info_get(port->id, &info) < 0 || info.reta_size == 0 ||
		info.reta_size > STEER_ENTRIES_MAX)
		return false;
	struct rte_eth_rss_reta_entry64 groups[STEER_ENTRIES_MAX / RTE_ETH_RETA_GROUP_SIZE] = {0};
	uint16_t queues[STEER_ENTRIES_MAX];
	uint8_t key[STEER_KEY_MAX] = {0};
	for (uint32_t i = 0; i < info.reta_size; i++) {
		groups[i / RTE_ETH_RETA_GROUP_SIZE].mask |= UINT64_C(1)
		                                            << i % RTE_ETH_RETA_GROUP_SIZE;
		groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE] =
			steer->owners[i & steer->mask];
	}
	(void)rte_eth_dev_rss_reta_update(port->id, groups, info.reta_size);
	struct rte_eth_rss_conf rss = {.rss_key = key, .rss_key_len = sizeof(key)};
	if (rte_eth_dev_rss_reta_query(port->id, groups, info.reta_size) != 0 ||
		rte_eth_dev_rss_hash_conf_get(port->id, &rss) != 0 ||
		hashes_of(&port->conf) & ~rss.rss_hf)
		return false;
	for (uint32_t i = 0; i < info.reta_size; i++)
		queues[i] = groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	if (port->bond && !port_bond_spreads(port->bond, hashes_of(&port->conf), queues,
				  info.reta_size, key, key_len_of(&info)))
		return false;
	struct steer_device device = {
		.key = key,
		.key_len = key_len_of(&info),
		.queues = queues,
		.n_entries = info.reta_size,
	};
	return steer_try_device(steer, port->conf.index, &device);
}

// Says of no segment that its checksum is right, though it offers to verify them. The tap's driver
// would sum in software, as we do; that of e1000 tells of wrong ones alone.
static bool is_silent(const struct port *port)
{
	return port->driver && (port_is_driver(port->driver, "net_tap") ||
				       port_is_driver(port->driver, "net_e1000_em"));
}

// What the device is asked to do for us. TSO and LRO stay off: frames are those of the wire. So
// does the insertion of tags, which some drivers (virtio) do only in rte_eth_tx_prepare().
static void choose_offloads(
	struct port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *eth)
{
	port->filters_vlans = false;
	port->verifies = (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_TCP_CKSUM) &&
	                 !is_silent(port) && !port_bond_has(port->bond, is_silent);
	if (port->verifies)
		eth->rxmode.offloads |= RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
	if (!port->conf.vlan && !port->trunk)
		return;
	eth->rxmode.offloads |= info->rx_offload_capa &
	                        (RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	port->filters_vlans = eth->rxmode.offloads & RTE_ETH_RX_OFFLOAD_VLAN_FILTER;
}

static int configure(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	eal_blame_start();
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port->id, &info);
	if (rc < 0)
		return port_blame(reterr, port, "cannot be asked what it can do", rc);
	port->driver = info.driver_name;
	port->device = info.device;
	port->if_index = info.if_index;
	uint16_t n = (uint16_t)conf->n_queues;
	if (info.max_rx_queues < n || info.max_tx_queues < n)
		return lb_err_set(reterr, "ports[%u].device: %s has %u queues for %u workers",
			conf->index, port->name, RTE_MIN(info.max_rx_queues, info.max_tx_queues),
			n);
	struct rte_eth_conf eth = {0};
	// Only where the interrupt is a descriptor that needs no arming.
	eth.intr_conf.rxq = port_is_driver(info.driver_name, "net_tap");
	if (port->bond) // before its members are told, when it starts
		eth.rxmode.mtu = port->mtu = conf->mtu ? conf->mtu : port_bond_mtu(port->bond);
	choose_offloads(port, &info, &eth);
	struct rte_eth_conf spread = eth;
	port->hashes = n > 1 && !conf->by_software && ask_to_hash(conf, &info, &spread);
	uint16_t n_rx = PORT_DESCRIPTORS, n_tx = PORT_DESCRIPTORS;
	rc = rte_eth_dev_configure(port->id, n, n, port->hashes ? &spread : &eth);
	if (rc < 0 && port->hashes) { // it cannot with this key, say: then not at all
		port->hashes = false;
		rc = rte_eth_dev_configure(port->id, n, n, &eth);
	}
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &n_rx, &n_tx);
	if (rc < 0)
		return port_blame(reterr, port, "cannot be configured", rc);
	rc = set_mtu(port, conf, &info, reterr);
	wait_fd_begin(&port->search, info.driver_name, info.if_index, info.max_rx_queues);
	for (uint16_t i = 0; rc == 0 && i < n; i++) {
		rc = make_queue(port, conf, i, n_rx, n_tx, reterr);
		wait_fd_queue_made(&port->search);
	}
	if (rc)
		return rc;
	rc = rte_eth_macaddr_get(port->id, &port->mac);
	return rc < 0 ? port_blame(reterr, port, "has no MAC address", rc) : 0;
}

// Neighbors are asked for in groups (RFC 4861): all are received, and the host drops what isn't its
// own. A driver that can do neither has no filter.
static void receive_groups(struct port *port)
{
	if (rte_eth_allmulticast_enable(port->id) != 0)
		(void)rte_eth_promiscuous_enable(port->id);
}

// Where it cannot be done, frames without a checksum are dropped as corrupt.
static void read_marks(struct port_queue *q, const struct port_conf *conf)
{
	char devargs[PORT_MAX_DEVARGS];
	port_complete_devargs(conf, devargs, sizeof(devargs));
	(void)!ring_marks_open(&q->marks, q->wait_fd, devargs);
}

static int start(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	int rc = rte_eth_dev_start(port->id);
	if (rc < 0)
		return port_blame(reterr, port, "cannot be started", rc);
	bool receives_all = port->bond && port_bond_started(port);
	if ((conf->has_ip6 || conf->has_kernel) && !receives_all)
		receive_groups(port);
	if (port->hashes)
		port->hashes = follow_device(port, conf->steer);
	for (uint16_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		q->wait_fd = wait_fd_find(&port->search, port->id, i);
		if (port_is_driver(port->driver, "net_af_packet"))
			read_marks(q, conf);
		q->reads_apart = q->marks.map || q->wire_vlan || q->trunk;
	}
	port_rings_started(port);
	rc = port_trunk_started(port);
	return rc < 0 ? port_blame(reterr, port, "does not take its VLANs", rc) : 0;
}

static void know_bpf(struct port *port, const struct bpf_fds *before)
{
	bpf_fds_list(&port->bpf);
	bpf_fds_keep_new(&port->bpf, before);
	port->xsk_map = xsk_map_find(&port->bpf);
}

int port_open(struct port *port, struct lb_err *reterr)
{
	const struct port_conf *conf = &port->conf;
	struct bpf_fds before;
	bool is_xdp = port_is_driver(conf->device, "net_af_xdp");
	if (is_xdp)
		bpf_fds_list(&before);
	port->xsk_map = 0;
	// Nobody reads its sockets before it is started, which waits for the kernel's lock of all
	// interfaces, too: meanwhile the older process, or what stands in for it here, goes on with
	// the frames (port_stopgap.h).
	if (is_xdp && (port->relayed || port->stopgap))
		xsk_map_hold();
	int rc = port->bond ? port_bond_open(port, reterr) : port_probe(port, reterr);
	if (rc == 0)
		rc = configure(port, conf, reterr);
	if (is_xdp)
		know_bpf(port, &before);
	if (rc == 0 && !port->bond)
		port_reset_listen(port);
	if (rc == 0)
		rc = start(port, conf, reterr);
	if (rc != 0) {
		xsk_map_drop();
		return rc;
	}
	rc = xsk_map_let_in();
	return rc < 0 ? port_blame(reterr, port, "cannot be given its frames", rc) : 0;
}

static void close_devices(struct port *port, bool forget)
{
	if (port->listens)
		unplug_ignore(port->name, &port->asked_away);
	port->listens = false;
	port_reset_ignore(port);
	for (uint32_t i = 0; i < port->n_queues && !port->stopgap; i++)
		ring_marks_close(&port->queues[i].marks); // a mapping would keep the socket
	gso_release(&port->gso);
	port->merged[0] = '\0';
	port->split_ns = 0;
	if (port->bond)
		port_bond_close(port, forget);
	if (!port->opened)
		return;
	port_rings_drain(port);
	if (port_is_driver(port->name, "net_memif"))
		eal_settle(); // its peer may have gone, which it handles on EAL's thread
	// Not started = nothing to stop; closing tells.
	(void)rte_eth_dev_stop(port->id);
	(void)rte_eth_dev_close(port->id);
	wait_fd_close_left(&port->search);
	bpf_fds_close(&port->bpf);
	port_rings_closed(port);
	if (forget && port->device)
		(void)rte_dev_remove(port->device);
	port->device = NULL;
	port->opened = false;
}

void port_close(struct port *port, bool forget)
{
	telemetry_socket_hide();
	close_devices(port, forget);
	telemetry_socket_show();
}

int port_reopen(struct port *port, bool waits, struct lb_err *reterr)
{
	int rc = port_claim_devices(port, reterr);
	if (rc == 0)
		rc = port_open(port, reterr);
	if (rc == 0 && waits)
		rc = port_await_server(port, reterr);
	if (rc == 0) {
		port->status.state = PORT_DOWN;
		port_pass_queues(port, QUEUE_STARTING);
		return 0;
	}
	port_close(port, true);
	return rc;
}
