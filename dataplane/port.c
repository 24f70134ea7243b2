// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port.h"

#include "dataplane/eal.h"
#include "dataplane/net/steer.h"
#include "dataplane/pci_device.h"
#include "dataplane/port_claim.h"
#include "dataplane/wait_fd.h"
#include "lb/base/check.h"
#include "lb/base/lines.h"
#include "lb/limits.h"

#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MBUFS 8192
#define N_DESCRIPTORS 1024
#define MAX_UNSENT 512 // frames a device may leave behind before we drop
// A pool's mbufs also come to rest with workers that were handed its frames and freed them: each
// core keeps up to one and a half times what is called the size of its cache.
#define N_TAKEN 16 // mbufs that a queue takes out of its pool at once
#define MAX_READY (2 * PORT_BURST)
#define MAX_CACHE 256
#define CACHED_MBUFS 2048 // the caches' sizes together
_Static_assert(CACHED_MBUFS / LB_MAX_WORKERS >= PORT_BURST, "a burst is freed within a cache");
_Static_assert(DEFAULT_MBUFS - CACHED_MBUFS * 3 / 2 >= 2 * N_DESCRIPTORS + 2 * MAX_UNSENT,
	"a queue goes on when all caches are full");

enum port_counter {
	RX_FRAMES,
	RX_BYTES,
	RX_MISSED,
	TX_FRAMES,
	TX_BYTES,
	TX_NO_MBUF,
	TX_TOO_LONG,
	TX_DROPPED,
	COPY_NO_MBUF,
	N_COUNTERS,
};
static const char *const counter_names[N_COUNTERS] = {
	[RX_FRAMES] = "rx_frames",
	[RX_BYTES] = "rx_bytes",
	[RX_MISSED] = "rx_missed",
	[TX_FRAMES] = "tx_frames",
	[TX_BYTES] = "tx_bytes",
	[TX_NO_MBUF] = "tx_no_mbuf",
	[TX_TOO_LONG] = "tx_too_long",
	[TX_DROPPED] = "tx_dropped",
	[COPY_NO_MBUF] = "copy_no_mbuf",
};

struct port_queue {
	uint16_t port_id, index;
	int wait_fd;
	struct rte_mempool *mbufs; // owned
	struct rte_mbuf *open; // reserved, not sent yet
	uint32_t n_ready;
	uint32_t room; // of one of mbufs, behind the headroom
	struct rte_mbuf *ready[MAX_READY]; // to be reserved: of mbufs, one segment each
	uint64_t n_socket_drops;
	uint32_t n_mbufs_used, n_mbufs_peak; // as a pool's
	uint32_t n_unsent;
	struct rte_mbuf *unsent[MAX_UNSENT];
	uint64_t counters[N_COUNTERS];
} __attribute__((aligned(64)));

struct port {
	uint32_t index; // in shunt.yaml
	uint16_t id;
	bool opened;
	struct port_claim claim;
	uint16_t mtu;
	struct rte_ether_addr mac;
	char name[RTE_ETH_NAME_MAX_LEN];
	const char *driver; // static
	bool hashes; // it was told to spread flows over its queues
	uint32_t n_queues;
	struct port_queue *queues; // owned
	struct wait_fd_search search;
};

bool port_wants_pa(const char *device)
{
	struct pci_addr addr;
	struct pci_device found;
	if (!pci_addr_parse(device, &addr))
		return false;
	pci_device_look("", &addr, &found);
	return pci_device_wants_pa("", &found);
}

static int blame(struct lb_err *reterr, const struct port *port, const char *doing, int rc)
{
	const char *said = eal_blame();
	lb_err_set(reterr, "ports[%u].device: %s: %s: %s", port->index, port->name, doing,
		said[0] ? said : rte_strerror(rc < 0 ? -rc : rc));
	return rc < 0 ? rc : -EINVAL;
}

static bool is_driver(const char *device, const char *driver)
{
	return strncmp(device, driver, strlen(driver)) == 0;
}

// af_packet's own default of 512 frames loses what arrives while this thread doesn't run: 4096
// small frames are about 4 ms of a million a second.
// PCI addresses are spelled as DPDK will call the port.
static void complete_devargs(const struct port_conf *conf, char *text, size_t size)
{
	struct pci_addr addr;
	char name[PCI_ADDR_TEXT_MAX];
	int n;
	if (pci_addr_parse(conf->device, &addr)) {
		const char *rest = pci_addr_skip(conf->device);
		snprintf(text, size, "%s%s%s", pci_addr_print(&addr, name), *rest ? "," : "", rest);
		return;
	}
	n = snprintf(text, size, "%s", conf->device);
	if (n < 0 || (size_t)n >= size)
		return;
	if (is_driver(text, "net_af_xdp") && conf->n_queues > 1 && !strstr(text, "queue_count="))
		snprintf(text + n, size - (size_t)n, ",queue_count=%u", conf->n_queues);
	if (!is_driver(text, "net_af_packet"))
		return;
	bool rings =
		strstr(text, "framecnt=") || strstr(text, "framesz=") || strstr(text, "blocksz=");
	if (conf->n_queues > 1 && !strstr(text, "qpairs="))
		n += snprintf(text + n, size - (size_t)n, ",qpairs=%u", conf->n_queues);
	if (!rings)
		snprintf(text + n, size - (size_t)n, ",blocksz=65536,framesz=2048,framecnt=4096");
}

static int probe(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	char devargs[512];
	complete_devargs(conf, devargs, sizeof(devargs));
	size_t len = strcspn(devargs, ",");
	if (len == 0 || len >= sizeof(port->name))
		return lb_err_set(
			reterr, "ports[%u].device: %s: no device name", conf->index, conf->device);
	memcpy(port->name, devargs, len);
	if (rte_eth_dev_get_port_by_name(port->name, &port->id) == 0)
		return lb_err_set(
			reterr, "ports[%u].device: %s is in use already", conf->index, port->name);
	eal_blame_start();
	int rc = rte_dev_probe(devargs);
	if (rc < 0)
		return blame(reterr, port, "cannot open", rc);
	rc = rte_eth_dev_get_port_by_name(port->name, &port->id);
	if (rc < 0)
		return blame(reterr, port, "is no network device", rc);
	port->opened = true;
	return 0;
}

static int set_mtu(struct port *port, const struct port_conf *conf,
	const struct rte_eth_dev_info *info, struct lb_err *reterr)
{
	// The kernel's interface behind a virtual device has its own idea; DPDK says 1500.
	int now = info->if_index ? wait_fd_interface_mtu(info->if_index) : -1;
	if (now < 0 && rte_eth_dev_get_mtu(port->id, &port->mtu) == 0)
		now = port->mtu; // which not every device can set, such as memif
	now = now < 0 ? RTE_ETHER_MTU : now;
	port->mtu = now > PORT_MAX_MTU ? PORT_MAX_MTU : (uint16_t)now;
	if (conf->mtu == 0 || conf->mtu == now)
		return 0;
	if (conf->mtu > PORT_MAX_MTU || conf->mtu < 576) {
		lb_err_set(reterr, "ports[%u].mtu: %u is not within 576 and %u", conf->index,
			conf->mtu, PORT_MAX_MTU);
		return -EINVAL;
	}
	int rc = rte_eth_dev_set_mtu(port->id, conf->mtu);
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
	char name[RTE_MEMPOOL_NAMESIZE];
	snprintf(name, sizeof(name), "mbufs-%u-%u", port->id, index);
	int socket = rte_eth_dev_socket_id(port->id);
	q->mbufs = rte_pktmbuf_pool_create(name, conf->n_mbufs ? conf->n_mbufs : DEFAULT_MBUFS,
		RTE_MIN(MAX_CACHE, CACHED_MBUFS / conf->n_queues), 0, RTE_MBUF_DEFAULT_BUF_SIZE,
		socket);
	if (!q->mbufs)
		return blame(reterr, port, "no memory for mbufs (see -m in eal)", rte_errno);
	q->room = rte_pktmbuf_data_room_size(q->mbufs) - RTE_PKTMBUF_HEADROOM;
	int rc = rte_eth_rx_queue_setup(port->id, index, n_rx, (unsigned)socket, NULL, q->mbufs);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port->id, index, n_tx, (unsigned)socket, NULL);
	return rc < 0 ? blame(reterr, port, "cannot set up a queue", rc) : 0;
}

// Those that don't say have the usual one.
static uint8_t key_len_of(const struct rte_eth_dev_info *info)
{
	return info->hash_key_size ? info->hash_key_size : 40;
}

// False = the device has no hash that could be followed.
static bool ask_to_hash(
	struct steer *steer, const struct rte_eth_dev_info *info, struct rte_eth_conf *eth)
{
	uint8_t key_len = key_len_of(info);
	if (!(info->flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_TCP) ||
		info->reta_size == 0 || info->reta_size > STEER_ENTRIES_MAX ||
		key_len < TOEPLITZ_KEY_MIN || key_len > STEER_KEY_MAX)
		return false;
	eth->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	eth->rx_adv_conf.rss_conf = (struct rte_eth_rss_conf){
		.rss_key = steer->key,
		.rss_key_len = key_len,
		.rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_TCP,
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
		!(rss.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_TCP))
		return false;
	for (uint32_t i = 0; i < info.reta_size; i++)
		queues[i] = groups[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE];
	struct steer_device device = {
		.key = key,
		.key_len = key_len_of(&info),
		.queues = queues,
		.n_entries = info.reta_size,
	};
	return steer_try_device(steer, port->index, &device);
}

static int configure(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	eal_blame_start();
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port->id, &info);
	if (rc < 0)
		return blame(reterr, port, "cannot be asked what it can do", rc);
	uint16_t n = (uint16_t)conf->n_queues;
	if (info.max_rx_queues < n || info.max_tx_queues < n)
		return lb_err_set(reterr, "ports[%u].device: %s has %u queues for %u workers",
			conf->index, port->name, RTE_MIN(info.max_rx_queues, info.max_tx_queues),
			n);
	port->driver = info.driver_name;
	struct rte_eth_conf eth = {0};
	// Only where the interrupt is a descriptor that needs no arming.
	eth.intr_conf.rxq = is_driver(info.driver_name, "net_tap");
	struct rte_eth_conf spread = eth;
	port->hashes = n > 1 && !conf->by_software && ask_to_hash(conf->steer, &info, &spread);
	uint16_t n_rx = N_DESCRIPTORS, n_tx = N_DESCRIPTORS;
	rc = rte_eth_dev_configure(port->id, n, n, port->hashes ? &spread : &eth);
	if (rc < 0 && port->hashes) { // it cannot with this key, say: then not at all
		port->hashes = false;
		rc = rte_eth_dev_configure(port->id, n, n, &eth);
	}
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &n_rx, &n_tx);
	if (rc < 0)
		return blame(reterr, port, "cannot be configured", rc);
	rc = set_mtu(port, conf, &info, reterr);
	wait_fd_begin(&port->search, info.driver_name, info.if_index);
	for (uint16_t i = 0; rc == 0 && i < n; i++)
		rc = make_queue(port, conf, i, n_rx, n_tx, reterr);
	if (rc)
		return rc;
	rc = rte_eth_macaddr_get(port->id, &port->mac);
	return rc < 0 ? blame(reterr, port, "has no MAC address", rc) : 0;
}

static int start(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	int rc = rte_eth_dev_start(port->id);
	if (rc < 0)
		return blame(reterr, port, "cannot be started", rc);
	if (port->hashes)
		port->hashes = follow_device(port, conf->steer);
	for (uint16_t i = 0; i < port->n_queues; i++)
		port->queues[i].wait_fd = wait_fd_find(&port->search, port->id, i);
	return 0;
}

// Before the device is touched: opening it resets it.
static int claim(struct port *port, const struct port_conf *conf, struct lb_err *reterr)
{
	int rc = port_claim(conf->device, PORT_CLAIM_DIR, &port->claim);
	if (rc == 0 || rc == -ENODEV)
		return 0;
	if (rc == -EADDRINUSE)
		return lb_err_set(reterr, "ports[%u].device: %s: another process drives it",
			conf->index, conf->device);
	return lb_err_set(reterr, "ports[%u].device: %s: cannot be claimed (in %s): %s",
		conf->index, conf->device, PORT_CLAIM_DIR, strerror(-rc));
}

struct port *port_new(const struct port_conf *conf, struct lb_err *reterr)
{
	DCHECK(conf->n_queues >= 1 && conf->n_queues <= LB_MAX_WORKERS);
	struct port *port = calloc(1, sizeof(*port));
	if (port) {
		port->claim = PORT_CLAIM_NONE;
		port->queues = lines_new(conf->n_queues, sizeof(*port->queues));
	}
	if (!port || !port->queues) {
		lb_err_set(reterr, "ports[%u]: out of memory", conf->index);
		port_free(port);
		return NULL;
	}
	if (claim(port, conf, reterr) != 0) {
		port_free(port);
		return NULL;
	}
	port->n_queues = conf->n_queues;
	port->index = conf->index;
	if (probe(port, conf, reterr) != 0 || configure(port, conf, reterr) != 0 ||
		start(port, conf, reterr) != 0) {
		port_free(port);
		return NULL;
	}
	return port;
}

void port_free(struct port *port)
{
	if (!port)
		return;
	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct port_queue *q = &port->queues[i];
		rte_pktmbuf_free(q->open);
		rte_pktmbuf_free_bulk(q->ready, q->n_ready);
		rte_pktmbuf_free_bulk(q->unsent, q->n_unsent);
	}
	if (port->opened) {
		// Not started = nothing to stop; closing tells.
		(void)rte_eth_dev_stop(port->id);
		(void)rte_eth_dev_close(port->id);
	}
	port_claim_drop(&port->claim);
	for (uint32_t i = 0; i < port->n_queues; i++)
		rte_mempool_free(port->queues[i].mbufs);
	lines_free(port->queues);
	free(port);
}

void port_drop_frame(void *frame)
{
	rte_pktmbuf_free(frame);
}

const char *port_driver(const struct port *port)
{
	return port->driver;
}

const uint8_t *port_mac(const struct port *port)
{
	return port->mac.addr_bytes;
}

uint16_t port_mtu(const struct port *port)
{
	return port->mtu;
}

bool port_is_up(const struct port *port)
{
	struct rte_eth_link link = {0};
	return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status;
}

struct port_queue *port_queue_of(struct port *port, uint32_t queue)
{
	DCHECK(queue < port->n_queues);
	return &port->queues[queue];
}

int port_queue_wait_fd(const struct port_queue *q)
{
	return q->wait_fd;
}

uint32_t port_queue_rx(struct port_queue *q, struct rte_mbuf **ret_frames)
{
	uint16_t n = rte_eth_rx_burst(q->port_id, q->index, ret_frames, PORT_BURST);
	if (n == 0)
		return 0;
	uint64_t bytes = 0;
	for (uint16_t i = 0; i < n; i++) {
		rte_prefetch0(rte_pktmbuf_mtod(ret_frames[i], void *));
		bytes += rte_pktmbuf_pkt_len(ret_frames[i]);
	}
	counter_add(&q->counters[RX_FRAMES], n);
	counter_add(&q->counters[RX_BYTES], bytes);
	return n;
}

struct rte_mbuf *port_queue_copy(struct port_queue *q, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy = rte_pktmbuf_copy(m, q->mbufs, 0, UINT32_MAX);
	if (!copy)
		counter_add(&q->counters[COPY_NO_MBUF], 1);
	return copy;
}

uint32_t port_queue_flush(struct port_queue *q)
{
	uint32_t offered = q->n_unsent;
	if (offered == 0)
		return 0;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < offered; i++)
		bytes += rte_pktmbuf_pkt_len(q->unsent[i]);
	uint32_t sent = 0;
	while (sent < offered) {
		uint16_t n = rte_eth_tx_burst(
			q->port_id, q->index, q->unsent + sent, (uint16_t)(offered - sent));
		if (n == 0)
			break;
		sent += n;
	}
	q->n_unsent = offered - sent;
	memmove(q->unsent, q->unsent + sent, q->n_unsent * sizeof(q->unsent[0]));
	for (uint32_t i = 0; i < q->n_unsent; i++)
		bytes -= rte_pktmbuf_pkt_len(q->unsent[i]);
	counter_add(&q->counters[TX_FRAMES], sent);
	counter_add(&q->counters[TX_BYTES], bytes);
	return sent;
}

uint32_t port_queue_unsent(const struct port_queue *q)
{
	return q->n_unsent;
}

// Ours alone, and as its pool gave it, but for what a driver wrote about a received frame.
static bool is_plain(const struct port_queue *q, const struct rte_mbuf *m)
{
	return m->pool == q->mbufs && rte_mbuf_refcnt_read(m) == 1 && m->nb_segs == 1 &&
	       RTE_MBUF_DIRECT(m);
}

void port_queue_done(struct port_queue *q, struct rte_mbuf **frames, uint32_t n)
{
	uint32_t i = 0;
	for (; i < n && q->n_ready < MAX_READY && is_plain(q, frames[i]); i++)
		q->ready[q->n_ready++] = frames[i];
	if (i < n)
		rte_pktmbuf_free_bulk(frames + i, n - i);
}

// False = the pool is empty. A call of its own, since it seldom happens and needs more registers.
static __attribute__((noinline)) bool refill(struct port_queue *q)
{
	// All or nothing; of the last few each by itself.
	if (rte_mempool_get_bulk(q->mbufs, (void **)q->ready, N_TAKEN) == 0)
		q->n_ready = N_TAKEN;
	else if (rte_mempool_get(q->mbufs, (void **)q->ready) == 0)
		q->n_ready = 1;
	return q->n_ready;
}

static uint8_t *device_reserve(void *ctx, size_t len)
{
	struct port_queue *q = ctx;
	DCHECK(!q->open);
	if (!q->n_ready && !refill(q)) {
		counter_add(&q->counters[TX_NO_MBUF], 1);
		return NULL;
	}
	if (len > q->room) {
		counter_add(&q->counters[TX_TOO_LONG], 1);
		return NULL;
	}
	// A pool's mbufs have one segment and no other owner: this is all that the sender reads.
	struct rte_mbuf *m = q->ready[--q->n_ready];
	m->data_off = RTE_PKTMBUF_HEADROOM;
	m->ol_flags = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	q->open = m;
	return rte_pktmbuf_mtod(m, uint8_t *);
}

static void device_send(void *ctx, size_t len)
{
	struct port_queue *q = ctx;
	struct rte_mbuf *m = q->open;
	DCHECK(m && len == rte_pktmbuf_pkt_len(m));
	q->open = NULL;
	if (q->n_unsent == MAX_UNSENT) {
		counter_add(&q->counters[TX_DROPPED], 1);
		rte_pktmbuf_free(m);
		return;
	}
	q->unsent[q->n_unsent++] = m;
	if (q->n_unsent % PORT_BURST == 0)
		port_queue_flush(q);
}

static void device_cancel(void *ctx)
{
	struct port_queue *q = ctx;
	rte_pktmbuf_free(q->open);
	q->open = NULL;
}

void port_queue_watch(struct port_queue *q)
{
	// Devices count what they lost for all queues together: the first one reports it. The
	// driver of AF_PACKET in DPDK 22.11 doesn't ask its sockets; a later one that does leaves
	// nothing here to count twice.
	struct rte_eth_stats stats = {0};
	if (q->index == 0)
		(void)rte_eth_stats_get(q->port_id, &stats);
	q->n_socket_drops += wait_fd_take_drops(q->wait_fd);
	counter_set_to(
		&q->counters[RX_MISSED], stats.imissed + stats.rx_nombuf + q->n_socket_drops);
	uint32_t n_out = rte_mempool_in_use_count(q->mbufs); // what is ready is free, too
	pool_count(&q->n_mbufs_used, &q->n_mbufs_peak, n_out - RTE_MIN(n_out, q->n_ready));
}

struct net_device port_queue_device(struct port_queue *q)
{
	return (struct net_device){
		.reserve = device_reserve,
		.send = device_send,
		.cancel = device_cancel,
		.ctx = q,
	};
}

struct counter_set port_queue_counters(const struct port_queue *q)
{
	return (struct counter_set){.names = counter_names, .values = q->counters, .n = N_COUNTERS};
}

struct pool_view port_queue_mbufs(const struct port_queue *q)
{
	return (struct pool_view){.name = q->mbufs->name,
		.size = q->mbufs->elt_size,
		.n_total = q->mbufs->size,
		.n_used = &q->n_mbufs_used,
		.n_peak = &q->n_mbufs_peak};
}
