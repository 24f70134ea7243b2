// SPDX-License-Identifier: Apache-2.0
// This machine, as no file tells of it.
#include "ctrl/doctor/host.h"
#include "ctrl/doctor/reach.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/un.h>
#include <unistd.h>

static bool ethtool(int fd, struct ifreq *request, void *command)
{
	request->ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, request) == 0;
}

static unsigned offload(int fd, struct ifreq *request, uint32_t command, unsigned bit)
{
	struct ethtool_value v = {.cmd = command};
	return ethtool(fd, request, &v) && v.data ? bit : 0;
}

static unsigned offloads(int fd, struct ifreq *request)
{
	struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
	unsigned lro =
		ethtool(fd, request, &flags) && flags.data & ETH_FLAG_LRO ? DOCTOR_OFFLOAD_LRO : 0;
	return lro | offload(fd, request, ETHTOOL_GGRO, DOCTOR_OFFLOAD_GRO) |
	       offload(fd, request, ETHTOOL_GTSO, DOCTOR_OFFLOAD_TSO) |
	       offload(fd, request, ETHTOOL_GGSO, DOCTOR_OFFLOAD_GSO) |
	       offload(fd, request, ETHTOOL_GTXCSUM, DOCTOR_OFFLOAD_TX);
}

// The first number of a veth's statistics is the index of its other end, in whatever namespace that
// is. 0 = it is no veth, or it does not say.
static unsigned peer_index(int fd, struct ifreq *request)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	if (!ethtool(fd, request, &info) || strcmp(info.driver, "veth") != 0 || !info.n_stats)
		return 0;
	struct ethtool_stats *stats =
		calloc(1, sizeof(*stats) + (size_t)info.n_stats * sizeof(stats->data[0]));
	if (!stats)
		return 0;
	stats->cmd = ETHTOOL_GSTATS;
	stats->n_stats = info.n_stats;
	unsigned index = ethtool(fd, request, stats) ? (unsigned)stats->data[0] : 0;
	free(stats);
	return index;
}

// Another interface may have its index here: the two have to name each other.
static void find_peer(int fd, struct ifreq *request, struct doctor_interface *ret)
{
	struct ifreq peer = {0};
	unsigned index = peer_index(fd, request);
	ret->is_veth = index > 0;
	if (index && if_indextoname(index, peer.ifr_name) &&
		peer_index(fd, &peer) == if_nametoindex(request->ifr_name))
		strcpy(ret->peer, peer.ifr_name);
}

// The driver knows at once; what the kernel derives of it (IFF_RUNNING) follows within a second.
static bool has_carrier(int fd, struct ifreq *request, bool is_running)
{
	struct ethtool_value v = {.cmd = ETHTOOL_GLINK};
	return ethtool(fd, request, &v) ? v.data : is_running;
}

static bool interface(void *ctx, const char *name, struct doctor_interface *ret)
{
	struct ifreq request = {0};
	*ret = (struct doctor_interface){0};
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", name);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool found = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
	ret->is_up = found && request.ifr_flags & IFF_UP;
	bool is_running = found && request.ifr_flags & IFF_RUNNING;
	if (found && ioctl(fd, SIOCGIFMTU, &request) == 0)
		ret->mtu = request.ifr_mtu;
	if (found) {
		ret->has_carrier = has_carrier(fd, &request, is_running);
		ret->offloads = offloads(fd, &request);
		find_peer(fd, &request, ret);
	}
	close(fd);
	return found;
}

static bool has_address(const struct ifaddrs *i, const struct ip_addr *ip)
{
	if (!i->ifa_addr)
		return false;
	if (i->ifa_addr->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const void *)i->ifa_addr;
		return memcmp(&in6->sin6_addr, ip->b, sizeof(ip->b)) == 0;
	}
	const struct sockaddr_in *in = (const void *)i->ifa_addr;
	return i->ifa_addr->sa_family == AF_INET && ip_is_v4(ip) &&
	       ntohl(in->sin_addr.s_addr) == ip_to_v4(ip);
}

static bool owner(void *ctx, const struct ip_addr *ip, char ret_name[IF_NAMESIZE])
{
	struct ifaddrs *all;
	bool found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next) {
		found = has_address(i, ip);
		if (found)
			snprintf(ret_name, IF_NAMESIZE, "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return found;
}

static int dial(void *ctx, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
	close(fd);
	return rc == -EAGAIN ? 0 : rc; // it listens, and is busy
}

// Bound and not listened at: nobody can come in.
static int can_listen(void *ctx, const struct ip_port *place)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(place->port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(place->port)};
	bool v4 = ip_is_v4(&place->ip);
	int on = 1;
	memcpy(&in.sin_addr, place->ip.b + 12, 4);
	memcpy(&in6.sin6_addr, place->ip.b, 16);
	int fd = socket(v4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	int rc = v4 ? bind(fd, (const struct sockaddr *)&in, sizeof(in))
	            : bind(fd, (const struct sockaddr *)&in6, sizeof(in6));
	rc = rc ? -errno : 0;
	close(fd);
	return rc;
}

static uint64_t limit(void *ctx, int resource)
{
	struct rlimit l;
	if (getrlimit((__rlimit_resource_t)resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return l.rlim_cur;
}

static uint64_t capabilities(void *ctx)
{
	struct __user_cap_header_struct self = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	if (syscall(SYS_capget, &self, data))
		return UINT64_MAX; // nobody is accused
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static int synchronised(void *ctx)
{
	struct timex t = {0};
	int state = adjtimex(&t);
	return state < 0 ? -1 : !(t.status & STA_UNSYNC);
}

static void usable_cores(void *ctx, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	(void)sched_getaffinity(0, sizeof(*ret), ret);
}

const struct doctor_ops doctor_system = {
	.interface = interface,
	.owner = owner,
	.reach = reach_targets,
	.dial = dial,
	.listen = can_listen,
	.limit = limit,
	.capabilities = capabilities,
	.synchronised = synchronised,
	.usable_cores = usable_cores,
};
