// SPDX-License-Identifier: Apache-2.0
#include "dataplane/remedy.h"

#include "dataplane/pci_device.h"
#include "lb/base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WANTS_HUGEPAGES                                                                            \
	"sees physical addresses and so needs hugepages: put --in-memory and no --no-huge into "   \
	"eal"

struct question {
	const char *root;
	const struct pci_addr *addr;
	char name[PCI_ADDR_TEXT_MAX];
	struct pci_device device;
	bool hugepages;
	char *ret;
};

static bool answer(struct question *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static bool answer(struct question *q, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(q->ret, REMEDY_MAX, fmt, args);
	va_end(args);
	return true;
}

// Whether the device's file /dev/NAME may be used; else the answer.
static bool is_shut(struct question *q, const char *name)
{
	char path[PATH_MAX];
	if (faccessat(AT_FDCWD, path_under(q->root, path, "/dev/%s", name), R_OK | W_OK,
		    AT_EACCESS) == 0)
		return false;
	if (errno == ENOENT)
		return answer(q, "there is no /dev/%s: a container has to be given it", name);
	return answer(q, "/dev/%s: %s: run as root, or give the file to this user", name,
		strerror(errno));
}

// An interface of the kernel's may serve DPDK beside it: such drivers need no other one.
static bool is_shared(const char *driver)
{
	return strcmp(driver, "mlx5_core") == 0 || strcmp(driver, "mlx4_core") == 0;
}

static bool is_not_ours(struct question *q)
{
	const char *driver = q->device.driver;
	if (!q->device.exists)
		return answer(q, "there is no such device on the PCI bus (lspci -D lists them)");
	if (q->device.is_uio || q->device.is_vfio || is_shared(driver))
		return false;
	char who[64] = "no driver has it";
	if (driver[0])
		snprintf(who, sizeof(who), "the kernel's driver %s has it", driver);
	return answer(q,
		"%s: bind it to vfio-pci, or without an IOMMU to uio_pci_generic "
		"(dpdk-devbind.py -b vfio-pci %s)",
		who, q->name);
}

// "3-1" in a path leads to something else than a PCI device: pci_addr_parse() leaves it out.
static bool has_foreign_sibling(struct question *q)
{
	char path[PATH_MAX];
	DIR *dir = opendir(
		path_under(q->root, path, "/sys/bus/pci/devices/%s/iommu_group/devices", q->name));
	bool found = false;
	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		struct pci_addr addr;
		struct pci_device d;
		if (!pci_addr_parse(e->d_name, &addr))
			continue;
		pci_device_look(q->root, &addr, &d);
		if (d.driver[0] && !d.is_vfio && strcmp(d.driver, "pcieport") != 0)
			found = answer(q,
				"%.16s is in the same IOMMU group, and the kernel's driver %s has "
				"it: bind that to vfio-pci, too, or to nothing",
				e->d_name, d.driver);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool is_shut_by_vfio(struct question *q)
{
	char path[PATH_MAX], target[PATH_MAX], group[64];
	ssize_t n =
		readlink(path_under(q->root, path, "/sys/bus/pci/devices/%s/iommu_group", q->name),
			target, sizeof(target) - 1);
	if (n <= 0)
		return answer(q, "vfio-pci has it, but there is no IOMMU: switch it on (BIOS, "
				 "intel_iommu=on), "
				 "or bind it to uio_pci_generic");
	target[n] = '\0';
	const char *slash = strrchr(target, '/');
	bool unsafe = pci_device_wants_pa(q->root, &q->device);
	if (unsafe && !q->hugepages)
		return answer(q, "without an IOMMU it " WANTS_HUGEPAGES);
	snprintf(group, sizeof(group), "vfio/%s%.32s", unsafe ? "noiommu-" : "",
		slash ? slash + 1 : target);
	return is_shut(q, group) || has_foreign_sibling(q);
}

static bool is_shut_by_uio(struct question *q)
{
	char path[PATH_MAX];
	if (!q->hugepages)
		return answer(q,
			"on %s it " WANTS_HUGEPAGES " (or bind it to vfio-pci, with an IOMMU)",
			q->device.driver);
	DIR *dir = opendir(path_under(q->root, path, "/sys/bus/pci/devices/%s/uio", q->name));
	bool shut = false;
	for (struct dirent *e; dir && !shut && (e = readdir(dir));)
		shut = strncmp(e->d_name, "uio", 3) == 0 && is_shut(q, e->d_name);
	if (dir)
		closedir(dir);
	return shut;
}

const char *remedy_for_device(
	const char *root, const struct pci_addr *addr, bool hugepages, char ret[REMEDY_MAX])
{
	struct question q = {.root = root, .addr = addr, .hugepages = hugepages, .ret = ret};
	ret[0] = '\0';
	pci_addr_print(addr, q.name);
	pci_device_look(root, addr, &q.device);
	if (is_not_ours(&q))
		return ret;
	if (q.device.is_vfio)
		(void)is_shut_by_vfio(&q);
	else if (q.device.is_uio)
		(void)is_shut_by_uio(&q);
	return ret;
}

static unsigned long read_number(const char *path)
{
	unsigned long n = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

const char *remedy_for_memory(const char *root, bool hugepages, char ret[REMEDY_MAX])
{
	struct question q = {.root = root, .ret = ret};
	char path[PATH_MAX];
	unsigned long kib, n_all = 0, n_free = 0, free_mib = 0;
	if (!hugepages) {
		(void)answer(&q, "give it more memory (-m in eal)");
		return ret;
	}
	DIR *dir = opendir(path_under(q.root, path, "/sys/kernel/mm/hugepages"));
	for (struct dirent *e; dir && (e = readdir(dir));) {
		if (sscanf(e->d_name, "hugepages-%lukB", &kib) != 1)
			continue;
		const char *base = "/sys/kernel/mm/hugepages/";
		unsigned long n = read_number(
			path_under(q.root, path, "%s%s/free_hugepages", base, e->d_name));
		n_all +=
			read_number(path_under(q.root, path, "%s%s/nr_hugepages", base, e->d_name));
		n_free += n;
		free_mib += n * kib / 1024;
	}
	if (dir)
		closedir(dir);
	if (n_all == 0)
		(void)answer(&q,
			"there are no hugepages: reserve some (sysctl vm.nr_hugepages=512), or do "
			"without (--no-huge in eal)");
	else
		(void)answer(&q,
			"%lu of %lu hugepages are free (%lu MiB): reserve more (sysctl "
			"vm.nr_hugepages), or ask for less (-m, --socket-mem in eal)",
			n_free, n_all, free_mib);
	return ret;
}
