// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pci_device.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(
	const char *root, const struct pci_addr *addr, const char *file, char path[PATH_MAX])
{
	char text[PCI_ADDR_TEXT_MAX];
	snprintf(path, PATH_MAX, "%s/sys/bus/pci/devices/%s%s", root, pci_addr_print(addr, text),
		file);
	return path;
}

// The last part of where a link leads; "" = there is none.
static void read_link_name(const char *path, char *ret, size_t size)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(target, '/');
	snprintf(ret, size, "%s", slash ? slash + 1 : target);
}

void pci_device_look(const char *root, const struct pci_addr *addr, struct pci_device *ret)
{
	char path[PATH_MAX];
	struct stat st;
	*ret = (struct pci_device){0};
	if (stat(path_of(root, addr, "", path), &st) < 0)
		return;
	ret->exists = true;
	ret->id = st.st_ino;
	read_link_name(path_of(root, addr, "/driver", path), ret->driver, sizeof(ret->driver));
	ret->is_uio =
		strcmp(ret->driver, "uio_pci_generic") == 0 || strcmp(ret->driver, "igb_uio") == 0;
	ret->is_vfio = strcmp(ret->driver, "vfio-pci") == 0;
}

static bool vfio_is_unsafe(const char *root)
{
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%s/sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
		root);
	FILE *f = fopen(path, "re");
	if (!f)
		return false;
	int c = fgetc(f);
	fclose(f);
	return c == 'Y';
}

bool pci_device_wants_pa(const char *root, const struct pci_device *d)
{
	return d->is_uio || (d->is_vfio && vfio_is_unsafe(root));
}
