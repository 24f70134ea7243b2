// SPDX-License-Identifier: Apache-2.0
#include "dataplane/interface.h"

#include "lb/base/min.h"

#include <errno.h>
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
	return if_indextoname(index, name) || (errno != ENXIO && errno != ENODEV);
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

uint32_t interface_queues(unsigned index, uint32_t *ret_all)
{
	struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
	struct ifreq request;
	int fd = ask(index, &request);
	*ret_all = 0;
	if (fd < 0)
		return 0;
	bool known = ethtool(fd, &request, &channels);
	bool lacks_them = !known && errno == EOPNOTSUPP;
	close(fd);
	if (known)
		*ret_all = channels.combined_count + max_u32(channels.rx_count, channels.tx_count);
	if (lacks_them || (known && !channels.max_combined))
		return 1;
	return known ? channels.combined_count : 0;
}

// What joins received segments, by the kernel's names for it. Those of hardware (virtio's
// rx-gro-hw) go on when the kernel's own is off.
static const char *const merging[] = {
	"rx-gro", "rx-lro", "rx-gro-hw", "rx-gro-list", "rx-udp-gro-forwarding"};

#define MAX_FEATURES 128
#define BLOCKS (MAX_FEATURES / 32)

static bool merges(const char *name)
{
	for (size_t i = 0; i < sizeof(merging) / sizeof(merging[0]); i++)
		if (strncmp(name, merging[i], ETH_GSTRING_LEN) == 0)
			return true;
	return false;
}

// Which features merge, a bit for each. Returns how many features there are; 0 = it doesn't say.
static uint32_t list_merging(int fd, struct ifreq *request, uint32_t ret[BLOCKS])
{
	_Alignas(uint64_t)
		uint8_t room[sizeof(struct ethtool_gstrings) + MAX_FEATURES * ETH_GSTRING_LEN] = {
			0};
	struct ethtool_sset_info *count = (void *)room;
	count->cmd = ETHTOOL_GSSET_INFO;
	count->sset_mask = UINT64_C(1) << ETH_SS_FEATURES;
	if (!ethtool(fd, request, count) || !count->sset_mask || count->data[0] > MAX_FEATURES)
		return 0;
	uint32_t n = count->data[0];
	struct ethtool_gstrings *names = (void *)room;
	*names = (struct ethtool_gstrings){
		.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = n};
	if (!ethtool(fd, request, names))
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (merges((const char *)names->data + (size_t)i * ETH_GSTRING_LEN))
			ret[i / 32] |= UINT32_C(1) << i % 32;
	return n;
}

// Those of `wanted` that are on. False = it doesn't say.
static bool active(
	int fd, struct ifreq *request, uint32_t n, const uint32_t *wanted, uint32_t ret[BLOCKS])
{
	_Alignas(uint32_t) uint8_t room[sizeof(struct ethtool_gfeatures) +
					BLOCKS * sizeof(struct ethtool_get_features_block)] = {0};
	struct ethtool_gfeatures *now = (void *)room;
	now->cmd = ETHTOOL_GFEATURES;
	now->size = (n + 31) / 32;
	if (!ethtool(fd, request, now))
		return false;
	for (uint32_t i = 0; i < BLOCKS; i++)
		ret[i] = wanted[i] & now->features[i].active;
	return true;
}

static void switch_off(int fd, struct ifreq *request, uint32_t n, const uint32_t *which)
{
	_Alignas(uint32_t) uint8_t room[sizeof(struct ethtool_sfeatures) +
					BLOCKS * sizeof(struct ethtool_set_features_block)] = {0};
	struct ethtool_sfeatures *to = (void *)room;
	to->cmd = ETHTOOL_SFEATURES;
	to->size = (n + 31) / 32;
	for (uint32_t i = 0; i < to->size; i++)
		to->features[i].valid = which[i];
	(void)ethtool(fd, request, to); // what became of it is seen
}

bool interface_refuse_merging(unsigned index)
{
	uint32_t all[BLOCKS] = {0}, before[BLOCKS], after[BLOCKS];
	struct ifreq request;
	bool done = false;
	int fd = ask(index, &request);
	if (fd < 0)
		return false;
	uint32_t n = list_merging(fd, &request, all);
	if (n && active(fd, &request, n, all, before)) {
		switch_off(fd, &request, n, before);
		if (active(fd, &request, n, all, after))
			done = memcmp(before, after, sizeof(before)) != 0;
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
