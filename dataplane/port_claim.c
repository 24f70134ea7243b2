// SPDX-License-Identifier: Apache-2.0
// A name is claimed by an abstract Unix socket, which belongs to the network namespace, as
// interfaces do. PCI devices don't: their claim is a locked file, too. A file of sysfs would be
// nearer, but each network namespace has a sysfs with inodes, and so with locks, of its own; and
// /dev/uioN must not even be opened, since closing it stops the device's DMA for all.
#include "dataplane/port_claim.h"

#include "dataplane/memif.h"
#include "dataplane/pci_addr.h"
#include "lb/base/devargs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Of what is claimed by name: with what claim_name() puts before it, a socket's.
#define MAX_NAME 96

// A descriptor or -errno.
static int claim_name(struct str name)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX}; // sun_path[0] stays 0: abstract
	int len = snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, "shunt/port/%.*s",
		(int)name.len, name.p);
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

// Likewise. The file stays: without it, two could lock two files of one name.
static int claim_file(const char *dir, const char *address)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/pci-%s.lock", dir, address);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	mkdir(dir, 0755); // an error shows as open's
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	int err = errno == EWOULDBLOCK ? -EADDRINUSE : -errno;
	close(fd);
	return err;
}

// Of two clients of one memif the server would let one in, and the other would never hear why.
static int claim_memif(const struct memif *memif, struct port_claim *ret)
{
	char name[MAX_NAME];
	if (!memif->is_client || !memif_print(memif, name, sizeof(name)))
		return -ENODEV;
	ret->name = claim_name(str_from(name));
	return ret->name < 0 ? ret->name : 0;
}

static int claim_pci(const struct pci_addr *addr, const char *dir, struct port_claim *ret)
{
	char text[PCI_ADDR_TEXT_MAX];
	pci_addr_print(addr, text);
	ret->name = claim_name(str_from(text));
	if (ret->name < 0)
		return ret->name;
	ret->lock = claim_file(dir, text);
	return ret->lock < 0 ? ret->lock : 0;
}

int port_claim(const char *device, const char *dir, struct port_claim *ret)
{
	*ret = PORT_CLAIM_NONE;
	struct str interface = devargs_find(device, "iface");
	struct pci_addr addr;
	struct memif memif;
	int rc;
	if (pci_addr_parse(device, &addr)) {
		rc = claim_pci(&addr, dir, ret);
	} else if (memif_parse(device, &memif)) {
		rc = claim_memif(&memif, ret);
	} else if (!interface.p && strncmp(device, "net_", 4) == 0) {
		return -ENODEV;
	} else {
		ret->name = claim_name(interface.p ? interface : str_until(str_from(device), ','));
		rc = ret->name < 0 ? ret->name : 0;
	}
	if (rc != 0)
		port_claim_drop(ret);
	return rc;
}

void port_claim_drop(struct port_claim *claim)
{
	if (claim->name >= 0)
		close(claim->name);
	if (claim->lock >= 0)
		close(claim->lock);
	*claim = PORT_CLAIM_NONE;
}
