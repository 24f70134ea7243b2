// SPDX-License-Identifier: Apache-2.0
#include "dataplane/tun.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static void fill_mac(struct ifreq *request, const uint8_t mac[6])
{
	request->ifr_hwaddr.sa_family = ARPHRD_ETHER;
	memcpy(request->ifr_hwaddr.sa_data, mac, 6);
}

bool tun_set_mac(int fd, const uint8_t mac[6])
{
	struct ifreq request = {0};
	if (ioctl(fd, TUNGETIFF, &request) < 0)
		return false;
	fill_mac(&request, mac);
	return ioctl(fd, SIOCSIFHWADDR, &request) == 0;
}

void tun_set_carrier(int fd, bool is_up)
{
	int value = is_up;
	(void)ioctl(fd, TUNSETCARRIER, &value);
}

static int set_up(int sock, struct ifreq *request, uint16_t mtu)
{
	request->ifr_mtu = mtu;
	if (ioctl(sock, SIOCSIFMTU, request) < 0 || ioctl(sock, SIOCGIFFLAGS, request) < 0)
		return -1;
	request->ifr_flags |= IFF_UP;
	return ioctl(sock, SIOCSIFFLAGS, request);
}

// Without offloads (TUNSETOFFLOAD 0, which is how it begins) the kernel makes all checksums and
// sends no segment that is longer than a frame.
static int attach(int fd, const char *interface, const uint8_t mac[6], uint16_t mtu)
{
	struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
	if (ioctl(fd, TUNSETIFF, &request) < 0 || ioctl(fd, TUNSETOFFLOAD, 0) < 0 ||
		!tun_set_mac(fd, mac))
		return -1;
	int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return -1;
	int rc = set_up(sock, &request, mtu);
	int error = errno;
	close(sock);
	errno = error;
	return rc;
}

int tun_open(const char *interface, const uint8_t mac[6], uint16_t mtu, struct lb_err *reterr)
{
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0) {
		lb_err_set(reterr, "%s: /dev/net/tun: %s", interface, strerror(errno));
		return -1;
	}
	if (attach(fd, interface, mac, mtu) == 0)
		return fd;
	if (errno == EBUSY)
		lb_err_set(reterr, "%s: another process has it", interface);
	else if (errno == EINVAL)
		lb_err_set(reterr, "%s: there is another interface of that name", interface);
	else
		lb_err_set(reterr, "%s: cannot be made: %s", interface, strerror(errno));
	close(fd);
	return -1;
}
