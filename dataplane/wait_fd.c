// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wait_fd.h"

#include <rte_ethdev.h>

#include <dirent.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_of_domain(int fd, int domain)
{
	int found = 0;
	socklen_t len = sizeof(found);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &len) == 0 && found == domain;
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

// The process's sockets of a domain, in the order they were made (kept descriptors grow).
static uint32_t list_sockets(int domain, int *ret_fds)
{
	uint32_t n = 0;
	DIR *dir = domain ? opendir("/proc/self/fd") : NULL;
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) && n < WAIT_FD_MAX;) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && is_of_domain(fd, domain))
			ret_fds[n++] = fd;
	}
	closedir(dir);
	qsort(ret_fds, n, sizeof(ret_fds[0]), ascending);
	return n;
}

void wait_fd_begin(struct wait_fd_search *s, const char *driver, unsigned if_index)
{
	*s = (struct wait_fd_search){.if_index = if_index};
	if (strcmp(driver, "net_af_packet") == 0)
		s->domain = AF_PACKET;
	else if (strcmp(driver, "net_af_xdp") == 0)
		s->domain = AF_XDP;
	else
		s->interrupt = strcmp(driver, "net_tap") == 0;
	s->n_before = list_sockets(s->domain, s->before);
}

static bool was_before(const struct wait_fd_search *s, int fd)
{
	for (uint32_t i = 0; i < s->n_before; i++)
		if (s->before[i] == fd)
			return true;
	return false;
}

// AF_PACKET sockets are made when the port is probed and know their interface; AF_XDP ones are
// made with the queues and don't.
static bool is_of_port(const struct wait_fd_search *s, int fd)
{
	if (s->domain == AF_XDP)
		return !was_before(s, fd);
	struct sockaddr_ll address;
	socklen_t len = sizeof(address);
	return getsockname(fd, (struct sockaddr *)&address, &len) == 0 &&
	       address.sll_ifindex == (int)s->if_index;
}

int wait_fd_find(const struct wait_fd_search *s, uint16_t port_id, uint16_t queue)
{
	if (s->interrupt)
		return rte_eth_dev_rx_intr_ctl_q_get_fd(port_id, queue);
	if (!s->domain)
		return -1;
	int fds[WAIT_FD_MAX];
	uint32_t n = list_sockets(s->domain, fds);
	uint32_t at = 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_of_port(s, fds[i]) && at++ == queue)
			return fds[i];
	return -1;
}

uint32_t wait_fd_take_drops(int fd)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	if (fd < 0 || getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) < 0)
		return 0;
	return stats.tp_drops;
}
