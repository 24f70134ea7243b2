// SPDX-License-Identifier: Apache-2.0
// A virtual switch as memifs know it: the server of a memif for each interface of the kernel's, and
// frames go from one to the other, both ways. SIGTERM or SIGINT ends it; then it prints what it did
// as JSON.
//
// All of it happens in EAL's interrupt thread, as an alarm's callback: the driver unmaps a client's
// memory there when that goes, and asks nobody who may be reading it.
#include "dataplane/eal.h"
#include "lb/base/check.h"

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WAYS 4
#define PERIOD_US 100 // from one look at the devices to the next
#define BURST 32
#define MAX_BURSTS 16 // of a queue at a look
#define N_DESCRIPTORS 1024
#define N_MBUFS 16384

struct way {
	uint16_t memif, interface; // DPDK's numbers
	uint64_t n_to_memif, n_from_memif;
	uint64_t n_unheard; // lost: the memif had no client, or one that did not keep up
};

static struct way ways[MAX_WAYS];
static unsigned n_ways;
static uint16_t n_queues; // of each memif: the client's workers
static struct rte_mempool *pool;

_Noreturn static void fail(const char *what, const char *which)
{
	char said[256];
	eal_blame(said, sizeof(said));
	fprintf(stderr, "memif_switch: %s: %s: %s\n", which, what, said);
	exit(1);
}

static void be_quiet(void *ctx, int level, const char *line)
{
	if (level <= EAL_LOG_WARNING)
		fprintf(stderr, "%s\n", line);
}

static uint16_t open_device(const char *devargs, uint16_t n)
{
	static const struct rte_eth_conf conf = {0};
	char name[RTE_ETH_NAME_MAX_LEN];
	uint16_t id;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(devargs, ","), devargs);
	eal_blame_start();
	if (rte_dev_probe(devargs) < 0 || rte_eth_dev_get_port_by_name(name, &id) < 0 ||
		rte_eth_dev_configure(id, n, n, &conf) < 0)
		fail("cannot open", devargs);
	for (uint16_t i = 0; i < n; i++)
		if (rte_eth_rx_queue_setup(id, i, N_DESCRIPTORS, 0, NULL, pool) < 0 ||
			rte_eth_tx_queue_setup(id, i, N_DESCRIPTORS, 0, NULL) < 0)
			fail("cannot set up a queue", devargs);
	if (rte_eth_dev_start(id) < 0)
		fail("cannot start", devargs);
	return id;
}

static uint64_t carry(uint16_t from, uint16_t queue, uint16_t to, uint64_t *n_lost)
{
	struct rte_mbuf *frames[BURST];
	uint64_t n_all = 0;
	uint16_t n = BURST;
	for (int i = 0; i < MAX_BURSTS && n == BURST; i++) {
		n = rte_eth_rx_burst(from, queue, frames, BURST);
		uint16_t n_sent = rte_eth_tx_burst(to, 0, frames, n);
		rte_pktmbuf_free_bulk(frames + n_sent, n - n_sent);
		n_all += n_sent;
		*n_lost += n - n_sent;
	}
	return n_all;
}

static void look(void *arg)
{
	uint64_t n_lost = 0; // an interface takes all
	for (struct way *w = ways; w < ways + n_ways; w++) {
		w->n_to_memif += carry(w->interface, 0, w->memif, &w->n_unheard);
		for (uint16_t q = 0; q < n_queues; q++)
			w->n_from_memif += carry(w->memif, q, w->interface, &n_lost);
	}
	CHECK(rte_eal_alarm_set(PERIOD_US, look, NULL) == 0);
}

// SOCKET=INTERFACE
static void add_way(const char *text)
{
	char devargs[512];
	struct way *w = &ways[n_ways];
	const char *sign = strchr(text, '=');
	if (!sign || n_ways == MAX_WAYS)
		fail("no way", text);
	snprintf(devargs, sizeof(devargs), "net_af_packet%u,iface=%s,framecnt=4096,blocksz=65536",
		n_ways, sign + 1);
	w->interface = open_device(devargs, 1);
	snprintf(devargs, sizeof(devargs),
		"net_memif%u,role=server,secret=known,socket-abstract=no,socket=%.*s", n_ways,
		(int)(sign - text), text);
	w->memif = open_device(devargs, n_queues);
	n_ways++;
}

static void start_eal(void)
{
	static const char *const given[] = {"--no-huge", "--in-memory"};
	int core = sched_getcpu();
	struct eal_conf conf = {.args = {.memory_mib = 128,
					.cores = &core,
					.n_cores = 1,
					.given = given,
					.n_given = 2},
		.log = be_quiet};
	struct lb_err err = {""};
	if (eal_start(&conf, &err) != 0)
		fail(err.text, "EAL");
	pool = rte_pktmbuf_pool_create(
		"switch", N_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (!pool)
		fail("no memory", "mbufs");
}

static void print(void)
{
	for (unsigned i = 0; i < n_ways; i++)
		printf("%s{\"to_memif\": %" PRIu64 ", \"from_memif\": %" PRIu64
		       ", \"unheard\": %" PRIu64 "}%s",
			i ? ", " : "[", ways[i].n_to_memif, ways[i].n_from_memif, ways[i].n_unheard,
			i + 1 == n_ways ? "]\n" : "");
}

int main(int argc, char **argv)
{
	sigset_t ends;
	int which;
	if (argc < 3 || atoi(argv[1]) < 1) {
		fprintf(stderr, "usage: memif_switch QUEUES SOCKET=INTERFACE...\n");
		return 2;
	}
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	n_queues = (uint16_t)atoi(argv[1]);
	start_eal();
	for (int i = 2; i < argc; i++)
		add_way(argv[i]);
	CHECK(rte_eal_alarm_set(PERIOD_US, look, NULL) == 0);
	puts("ready");
	fflush(stdout);
	sigwait(&ends, &which);
	rte_eal_alarm_cancel(look, (void *)-1);
	print();
	for (unsigned i = 0; i < n_ways; i++) { // whose socket is a file
		(void)rte_eth_dev_stop(ways[i].memif);
		(void)rte_eth_dev_close(ways[i].memif);
	}
	eal_stop();
	return 0;
}
