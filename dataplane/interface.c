// SPDX-License-Identifier: Apache-2.0
#include "dataplane/interface.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

unsigned interface_find(const char *name)
{
	return if_nametoindex(name);
}

bool interface_exists(unsigned index)
{
	char name[IF_NAMESIZE];
	return if_indextoname(index, name);
}

// A socket to ask by, with the name filled in; -1 = there is no such interface.
static int ask(unsigned index, struct ifreq *request)
{
	*request = (struct ifreq){0};
	if (!if_indextoname(index, request->ifr_name))
		return -1;
	return socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

int interface_mtu(unsigned index)
{
	struct ifreq request;
	int fd = ask(index, &request);
	if (fd < 0)
		return -1;
	int rc = ioctl(fd, SIOCGIFMTU, &request);
	close(fd);
	return rc < 0 ? -1 : request.ifr_mtu;
}

// A command of ethtool's, laid out as that asks.
static bool ethtool(int fd, struct ifreq *request, void *command)
{
	request->ifr_data = command;
	return ioctl(fd, SIOCETHTOOL, request) == 0;
}

bool interface_is_veth(unsigned index)
{
	struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
	struct ifreq request;
	int fd = ask(index, &request);
	if (fd < 0)
		return false;
	bool known = ethtool(fd, &request, &info);
	close(fd);
	return known && strcmp(info.driver, "veth") == 0;
}

bool interface_refuse_merging(unsigned index)
{
	struct ethtool_value gro = {.cmd = ETHTOOL_GGRO}, flags = {.cmd = ETHTOOL_GFLAGS};
	struct ifreq request;
	bool done = false;
	int fd = ask(index, &request);
	if (fd < 0)
		return false;
	if (ethtool(fd, &request, &gro) && gro.data) {
		gro = (struct ethtool_value){.cmd = ETHTOOL_SGRO};
		done = ethtool(fd, &request, &gro);
	}
	if (ethtool(fd, &request, &flags) && flags.data & ETH_FLAG_LRO) {
		flags.cmd = ETHTOOL_SFLAGS;
		flags.data &= ~(uint32_t)ETH_FLAG_LRO;
		done |= ethtool(fd, &request, &flags);
	}
	close(fd);
	return done;
}

static uint32_t speed_of(int fd, const char *name)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	struct ifreq request = {0};
	memcpy(request.ifr_name, name, sizeof(request.ifr_name));
	if (!ethtool(fd, &request, &command))
		return 0;
	uint32_t mbps = ethtool_cmd_speed(&command);
	return mbps == (uint32_t)SPEED_UNKNOWN ? 0 : mbps;
}

bool interface_link(unsigned index, bool *ret_up, uint32_t *ret_mbps)
{
	struct ifreq request;
	int fd = ask(index, &request);
	if (fd < 0)
		return false;
	bool known = ioctl(fd, SIOCGIFFLAGS, &request) == 0;
	if (known) {
		*ret_up = (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
		*ret_mbps = speed_of(fd, request.ifr_name);
	}
	close(fd);
	return known;
}
