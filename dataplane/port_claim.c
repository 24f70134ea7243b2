// SPDX-License-Identifier: Apache-2.0
// The claim is an abstract Unix socket: its name belongs to the network namespace, as interfaces
// do, and goes with the process.
#include "dataplane/port_claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int port_claim(const char *device)
{
	const char *iface = strstr(device, "iface=");
	if (!iface && strncmp(device, "net_", 4) == 0)
		return -ENODEV;
	const char *name = iface ? iface + strlen("iface=") : device;
	struct sockaddr_un addr = {.sun_family = AF_UNIX}; // sun_path[0] stays 0: abstract
	int len = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "shunt/port/%.*s",
		(int)strcspn(name, ","), name);
	if (len < 0 || (size_t)len >= sizeof(addr.sun_path) - 1)
		return -ENAMETOOLONG;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
	if (bind(fd, (const struct sockaddr *)&addr, size) == 0)
		return fd;
	int err = -errno;
	close(fd);
	return err;
}

void port_claim_drop(int claim)
{
	if (claim >= 0)
		close(claim);
}
