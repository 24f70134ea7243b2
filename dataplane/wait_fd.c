// SPDX-License-Identifier: Apache-2.0
#include "dataplane/wait_fd.h"

#include <rte_ethdev.h>

#include <dirent.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_of_domain(int fd, int domain)
{
	int found = 0;
	socklen_t len = sizeof(found);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &found, &len) == 0 && found == domain;
}

// The process's sockets of a domain, in no order.
static uint32_t list_sockets(int domain, int *ret_fds)
{
	uint32_t n = 0;
	DIR *dir = opendir("/proc/self/fd");
	if (!dir)
		return 0;
	for (struct dirent *e; (e = readdir(dir)) && n < WAIT_FD_MAX;) {
		int fd = atoi(e->d_name);
		if (e->d_name[0] != '.' && is_of_domain(fd, domain))
			ret_fds[n++] = fd;
	}
	closedir(dir);
	return n;
}

// 0 = there is no such descriptor. Other than those, inodes of sockets are not used again soon.
static uint64_t inode_of(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

// -1 = it is none of fds.
static int find_inode(const int *fds, uint32_t n, unsigned long inode)
{
	for (uint32_t i = 0; i < n; i++)
		if (inode_of(fds[i]) == inode)
			return fds[i];
	return -1;
}

// Ours, without other processes' at the same interface, in the order in which they were made. That
// is the kernel's, from 5.17 on at least.
static void list_packet_sockets(struct wait_fd_search *s, unsigned if_index)
{
	int fds[WAIT_FD_MAX];
	char line[256];
	uint32_t n = list_sockets(AF_PACKET, fds);
	FILE *list = fopen("/proc/thread-self/net/packet", "re");
	while (list && fgets(line, sizeof(line), list)) {
		unsigned interface;
		unsigned long inode;
		if (sscanf(line, "%*s %*s %*s %*s %u %*s %*s %*s %lu", &interface, &inode) != 2 ||
			interface != if_index)
			continue;
		int fd = find_inode(fds, n, inode);
		if (fd >= 0 && s->n < WAIT_FD_MAX)
			s->sockets[s->n++] = fd;
	}
	if (list)
		fclose(list);
}

// AF_PACKET's are made when the device is probed, the queues' one after the other; those in front
// are of a probe before that went wrong. AF_XDP's come with the queues.
void wait_fd_begin(
	struct wait_fd_search *s, const char *driver, unsigned if_index, uint32_t n_queues)
{
	*s = (struct wait_fd_search){0};
	if (strcmp(driver, "net_af_packet") == 0) {
		list_packet_sockets(s, if_index);
		s->first = s->n < n_queues ? s->n : s->n - n_queues;
	} else if (strcmp(driver, "net_af_xdp") == 0) {
		s->by_queue = true;
		s->first = s->n = list_sockets(AF_XDP, s->sockets);
		for (uint32_t i = 0; i < s->n; i++)
			s->inodes[i] = inode_of(s->sockets[i]);
	} else {
		s->interrupt = strcmp(driver, "net_tap") == 0;
	}
}

// Another port's may be closed meanwhile, in its own thread, and its number be used again.
static bool is_known(const struct wait_fd_search *s, int fd)
{
	uint64_t inode = inode_of(fd);
	if (!inode) // it has just gone, and is none of a queue that was made
		return true;
	for (uint32_t i = 0; i < s->n; i++)
		if (s->sockets[i] == fd && s->inodes[i] == inode)
			return true;
	return false;
}

void wait_fd_queue_made(struct wait_fd_search *s)
{
	int fds[WAIT_FD_MAX], made = -1;
	if (!s->by_queue || s->n == WAIT_FD_MAX)
		return;
	uint32_t n = list_sockets(AF_XDP, fds), n_made = 0;
	for (uint32_t i = 0; i < n; i++)
		if (!is_known(s, fds[i])) {
			made = fds[i];
			n_made++;
		}
	s->inodes[s->n] = n_made == 1 ? inode_of(made) : 0;
	s->sockets[s->n++] = n_made == 1 ? made : -1;
}

void wait_fd_close_left(struct wait_fd_search *s)
{
	for (uint32_t i = s->first; s->by_queue && i < s->n; i++)
		if (s->inodes[i] && inode_of(s->sockets[i]) == s->inodes[i])
			close(s->sockets[i]);
	*s = (struct wait_fd_search){0};
}

int wait_fd_find(const struct wait_fd_search *s, uint16_t port_id, uint16_t queue)
{
	if (s->interrupt)
		return rte_eth_dev_rx_intr_ctl_q_get_fd(port_id, queue);
	uint32_t at = s->first + queue;
	return at < s->n ? s->sockets[at] : -1;
}

uint32_t wait_fd_take_drops(int fd)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);
	if (fd < 0 || getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) < 0)
		return 0;
	return stats.tp_drops;
}
