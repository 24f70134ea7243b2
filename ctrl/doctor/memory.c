// SPDX-License-Identifier: Apache-2.0
// Memory for packet buffers and workers: hugepages or ordinary pages, and what bounds them.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_trunk.h"
#include "ctrl/doctor/look.h"
#include "lb/base/path.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

// Of one port's queue; with an MTU above LONG_MTU a buffer holds a jumbo frame.
#define QUEUE_MIB 22
#define LONG_QUEUE_MIB 100
#define PIECES_MIB 10 // besides, without hugepages: DPDK has one piece of memory for all
#define LONG_MTU 1900
#define MIB ((uint64_t)1 << 20)

static uint32_t packet_mib(const struct config *c)
{
	uint32_t mib = 0;
	for (unsigned i = 0; i < c->n_ports; i++) {
		bool is_long = c->ports[config_trunk_longest(c, i)].mtu > LONG_MTU;
		if (c->ports[i].carrier == i) // else another port's are its, too
			mib += c->n_workers * (is_long ? LONG_QUEUE_MIB : QUEUE_MIB);
	}
	return mib;
}

struct hugepages {
	unsigned long free_mib; // of all sizes
	unsigned long n, kib; // of the smallest size with pages: how many, and of one
};

static void count_hugepages(const struct doctor_host *h, struct hugepages *ret)
{
	char path[PATH_MAX];
	unsigned long kib;
	*ret = (struct hugepages){0};
	DIR *dir = opendir(path_under(h->root, path, "/sys/kernel/mm/hugepages"));
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		if (sscanf(e->d_name, "hugepages-%lukB", &kib) != 1)
			continue;
		const char *base = "/sys/kernel/mm/hugepages";
		path_under(h->root, path, "%s/%s/nr_hugepages", base, e->d_name);
		unsigned long n = (unsigned long)look_number(path, 0);
		path_under(h->root, path, "%s/%s/free_hugepages", base, e->d_name);
		ret->free_mib += (unsigned long)look_number(path, 0) * kib / 1024;
		if (n && (!ret->kib || kib < ret->kib)) {
			ret->n = n;
			ret->kib = kib;
		}
	}
	if (dir)
		closedir(dir);
}

void check_hugepages(const struct doctor_host *h)
{
	struct hugepages pages;
	uint32_t wanted = packet_mib(h->config);
	if (!h->memory.hugepages)
		return;
	count_hugepages(h, &pages);
	if (pages.free_mib >= wanted)
		return;
	unsigned long kib = pages.kib ? pages.kib : 2048;
	unsigned long n = pages.n + ((wanted - pages.free_mib) * 1024 + kib - 1) / kib;
	doctor_find(h->report, DOCTOR_ERROR,
		"eal: hugepages are asked for, %lu MiB of them are free, and %u workers on %u "
		"ports need %u; the start fails",
		pages.free_mib, h->config->n_workers, h->config->n_ports, wanted);
	if (kib == 2048)
		doctor_fix(h->report, "sysctl vm.nr_hugepages=%lu", n);
	else
		doctor_fix(h->report,
			"echo %lu > /sys/kernel/mm/hugepages/hugepages-%lukB/nr_hugepages", n, kib);
}

// The mounts of hugetlbfs: the first folder that can be written to, or else the last one; "" =
// there is none.
static void look_for_mounts(const struct doctor_host *h, char ret_folder[PATH_MAX], bool *ret_open)
{
	char path[PATH_MAX];
	struct mntent *m;
	FILE *f = setmntent(path_under(h->root, path, "/proc/mounts"), "re");
	ret_folder[0] = '\0';
	*ret_open = false;
	while (f && !*ret_open && (m = getmntent(f))) {
		if (strcmp(m->mnt_type, "hugetlbfs") != 0)
			continue;
		*ret_open = faccessat(AT_FDCWD, path_under(h->root, path, "%s", m->mnt_dir), W_OK,
				    AT_EACCESS) == 0;
		snprintf(ret_folder, PATH_MAX, "%s", m->mnt_dir);
	}
	if (f)
		endmntent(f);
}

// What a process of another user left there. DPDK removes what it may open, and opens files by
// their numbers; it is at the first one that a start fails.
static void look_at_left_files(const struct doctor_host *h, const char *folder)
{
	char path[PATH_MAX];
	struct stat st;
	path_under(h->root, path, "%s/%smap_0", folder, h->memory.prefix);
	if (stat(path, &st) != 0 || faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0)
		return;
	doctor_find(h->report, DOCTOR_ERROR,
		"eal: another user (%u) left %.128s/%smap_*, which this user may not write to; the "
		"start fails",
		st.st_uid, folder, h->memory.prefix);
	doctor_fix(h->report, "rm %s/%smap_*, once nobody uses them (fuser)", folder,
		h->memory.prefix);
}

void check_hugetlbfs(const struct doctor_host *h)
{
	char folder[PATH_MAX];
	bool is_open;
	if (!h->memory.hugepages || h->memory.in_memory)
		return;
	look_for_mounts(h, folder, &is_open);
	if (is_open) {
		look_at_left_files(h, folder);
		return;
	}
	if (folder[0])
		doctor_find(h->report, DOCTOR_ERROR,
			"eal: %.128s, where hugepages are files, may not be written to by this "
			"user; the start fails",
			folder);
	else
		doctor_find(h->report, DOCTOR_ERROR,
			"eal: hugepages are to be files, and no hugetlbfs is mounted; the start "
			"fails");
	doctor_fix(h->report, "eal: [--in-memory], or %s %s",
		folder[0] ? "chown the folder" : "mount -t hugetlbfs none",
		folder[0] ? folder : "/dev/hugepages");
}

void check_dpdk_memory(const struct doctor_host *h)
{
	const struct config *c = h->config;
	uint32_t wanted = packet_mib(c) + c->n_workers * c->n_ports * PIECES_MIB;
	if (h->memory.hugepages || !h->memory.is_given || h->memory.mib >= wanted)
		return;
	doctor_find(h->report, DOCTOR_ERROR,
		"eal: DPDK gets %u MiB, and packet buffers of %u workers on %u ports take %u; the "
		"start fails",
		h->memory.mib, c->n_workers, c->n_ports, wanted);
	doctor_fix(h->report, "eal: [-m, \"%u\"]", wanted + wanted / 4 + 64);
}

// What becomes resident of a worker that is busy: packet buffers and its queued bytes.
static uint64_t wanted_mib(const struct doctor_host *h)
{
	const struct config *c = h->config;
	return (h->memory.hugepages ? 0 : packet_mib(c)) +
	       (uint64_t)c->n_workers * c->max_buffers_mib;
}

void check_memory(const struct doctor_host *h)
{
	char path[PATH_MAX];
	long kib = look_field(path_under(h->root, path, "/proc/meminfo"), "MemAvailable");
	uint64_t wanted = wanted_mib(h);
	if (kib < 0 || (uint64_t)kib / 1024 >= wanted)
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"%ld MiB of memory are available, and packet buffers and limits.buffers_mib of %u "
		"workers are %" PRIu64 "; the kernel may kill shuntd under load",
		kib / 1024, h->config->n_workers, wanted);
	doctor_fix(h->report, "limits: {buffers_mib: ...}, fewer workers, or more memory");
}

static double bytes_of(const char *path)
{
	return (double)look_number(path, -1);
}

void check_memory_limit(const struct doctor_host *h)
{
	char group[LOOK_GROUP_MAX];
	uint64_t wanted = wanted_mib(h);
	double bytes;
	if (!look_cgroups(h, "memory.max", bytes_of, &bytes, group) ||
		bytes / (double)MIB >= (double)wanted)
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"control group %s may have %.0f MiB of memory, and packet buffers and "
		"limits.buffers_mib of %u workers are %" PRIu64
		"; the kernel may kill shuntd under load",
		group, bytes / (double)MIB, h->config->n_workers, wanted);
	doctor_fix(h->report, "MemoryMax= of the unit, or memory.max");
}

// Locked is what a card may write to, as VFIO maps it.
void check_memlock(const struct doctor_host *h)
{
	bool pins = false;
	for (unsigned i = 0; i < h->n_devices; i++)
		pins |= h->devices[i].pins;
	uint64_t limit = h->ops->limit(h->ctx, RLIMIT_MEMLOCK);
	uint64_t wanted =
		h->memory.hugepages || !h->memory.mib ? packet_mib(h->config) : h->memory.mib;
	bool locks_freely = h->ops->capabilities(h->ctx) >> CAP_IPC_LOCK & 1;
	if (!pins || limit / MIB >= wanted || locks_freely)
		return;
	doctor_find(h->report, DOCTOR_ERROR,
		"%" PRIu64 " KiB of memory may be locked, and vfio-pci locks %" PRIu64
		" MiB; the device cannot be opened",
		limit / 1024, wanted);
	doctor_fix(h->report,
		"ulimit -l unlimited, LimitMEMLOCK=infinity of the unit, or CAP_IPC_LOCK");
}
