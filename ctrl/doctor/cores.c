// SPDX-License-Identifier: Apache-2.0
// The workers' cores: whether they are there, whose they are besides, and how far from the devices.
#include "ctrl/conf/config.h"
#include "ctrl/doctor/look.h"
#include "lb/base/path.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPU_DIR "/sys/devices/system/cpu/"

static void cores_of_workers(const struct config *c, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	for (unsigned i = 0; i < c->n_workers; i++)
		CPU_SET(c->workers[i], ret);
}

static bool online(const struct doctor_host *h, cpu_set_t *ret)
{
	char path[PATH_MAX];
	return look_cores(path_under(h->root, path, CPU_DIR "online"), ret);
}

// Of the cores without a worker the first; -1 = there is none.
static int first_free(const struct doctor_host *h)
{
	cpu_set_t all, ours;
	cores_of_workers(h->config, &ours);
	if (!online(h, &all))
		return -1;
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &all) && !CPU_ISSET(c, &ours))
			return c;
	return -1;
}

void check_core_online(const struct doctor_host *h)
{
	cpu_set_t all;
	if (!online(h, &all))
		return;
	for (unsigned i = 0; i < h->config->n_workers; i++) {
		unsigned core = h->config->workers[i];
		if (CPU_ISSET(core, &all))
			continue;
		doctor_find(h->report, DOCTOR_ERROR,
			"workers[%u]: core %u is offline; its worker cannot run", i, core);
		doctor_fix(h->report, "echo 1 > " CPU_DIR "cpu%u/online", core);
	}
}

void check_core_usable(const struct doctor_host *h)
{
	cpu_set_t all, usable;
	h->ops->usable_cores(h->ctx, &usable);
	if (!online(h, &all))
		return;
	for (unsigned i = 0; i < h->config->n_workers; i++) {
		unsigned core = h->config->workers[i];
		if (!CPU_ISSET(core, &all) || CPU_ISSET(core, &usable))
			continue;
		doctor_find(h->report, DOCTOR_ERROR,
			"workers[%u]: this process may not run on core %u (cpuset or taskset); its "
			"worker cannot be pinned there",
			i, core);
		doctor_fix(h->report, "AllowedCPUs= of the unit, cpuset of the container, or "
				      "another core in workers");
	}
}

void check_core_control(const struct doctor_host *h)
{
	cpu_set_t all;
	if (!online(h, &all) || first_free(h) >= 0)
		return;
	doctor_find(h->report, CPU_COUNT(&all) > 1 ? DOCTOR_WARNING : DOCTOR_NOTE,
		"workers have all %d cores; the control thread and the kernel take time from them",
		CPU_COUNT(&all));
	doctor_fix(h->report, "leave a core out of workers");
}

void check_core_sibling(const struct doctor_host *h)
{
	const struct config *c = h->config;
	for (unsigned i = 0; i < c->n_workers; i++) {
		char path[PATH_MAX];
		cpu_set_t siblings;
		path_under(h->root, path, CPU_DIR "cpu%u/topology/thread_siblings_list",
			c->workers[i]);
		if (!look_cores(path, &siblings))
			continue;
		for (unsigned j = i + 1; j < c->n_workers; j++) {
			if (!CPU_ISSET(c->workers[j], &siblings))
				continue;
			doctor_find(h->report, DOCTOR_NOTE,
				"workers[%u] and workers[%u]: %u and %u are threads of one "
				"physical core; each has about half of it",
				i, j, c->workers[i], c->workers[j]);
			doctor_fix(h->report, "cores of different lines of lscpu -e=CPU,CORE");
		}
	}
}

// The cores of a set as one text: "1,2,5".
static const char *print_cores(const cpu_set_t *set, char *ret, size_t size)
{
	size_t n = 0;
	ret[0] = '\0';
	for (int c = 0; c < CPU_SETSIZE && n < size; c++)
		if (CPU_ISSET(c, set))
			n += (size_t)snprintf(ret + n, size - n, "%s%d", n ? "," : "", c);
	return ret;
}

static void isolated(const struct doctor_host *h, cpu_set_t *ret)
{
	char path[PATH_MAX];
	if (!look_cores(path_under(h->root, path, CPU_DIR "isolated"), ret))
		CPU_ZERO(ret);
}

void check_core_isolated(const struct doctor_host *h)
{
	cpu_set_t ours, alone, shared, all;
	char text[256];
	cores_of_workers(h->config, &ours);
	isolated(h, &alone);
	CPU_AND(&shared, &ours, &alone);
	CPU_XOR(&shared, &ours, &shared);
	if (CPU_COUNT(&shared) == 0)
		return;
	print_cores(&shared, text, sizeof(text));
	doctor_find(h->report, DOCTOR_NOTE,
		"workers: cores %s are not isolated; whatever else runs there delays requests by "
		"milliseconds",
		text);
	CPU_OR(&all, &ours, &alone); // those that are isolated already are to stay so
	print_cores(&all, text, sizeof(text));
	doctor_fix(h->report, "isolcpus=%s nohz_full=%s on the kernel's command line", text, text);
}

// A number that somebody uses has a directory with his name.
static bool is_irq_used(const char *folder)
{
	DIR *dir = opendir(folder);
	bool found = false;
	for (const struct dirent *e; dir && !found && (e = readdir(dir));)
		found = e->d_type == DT_DIR && e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

// Whether it may arrive on these cores alone.
static bool is_irq_bound(const struct doctor_host *h, const char *number, const cpu_set_t *cores)
{
	char path[PATH_MAX];
	cpu_set_t allowed, there;
	if (!is_irq_used(path_under(h->root, path, "/proc/irq/%s", number)))
		return false;
	if (!look_cores(
		    path_under(h->root, path, "/proc/irq/%s/smp_affinity_list", number), &allowed))
		return false;
	CPU_AND(&there, &allowed, cores);
	return CPU_COUNT(&there) > 0 && CPU_EQUAL(&there, &allowed);
}

static void find_irqs(const struct doctor_host *h, const cpu_set_t *cores,
	enum doctor_severity severity, const char *which)
{
	char path[PATH_MAX], list[128] = "", text[128], last[32] = "";
	unsigned n = 0;
	DIR *dir = opendir(path_under(h->root, path, "/proc/irq"));
	for (const struct dirent *e; dir && (e = readdir(dir));) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || !is_irq_bound(h, e->d_name, cores))
			continue;
		snprintf(last, sizeof(last), "%.31s", e->d_name);
		if (n++ < 8)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
				n > 1 ? ", " : "", last);
	}
	if (dir)
		closedir(dir);
	if (!n)
		return;
	int other = first_free(h);
	doctor_find(h->report, severity,
		"workers: %u interrupts (%s%s) arrive on %s %s alone; each stops a worker for "
		"microseconds",
		n, list, n > 8 ? ", ..." : "", which, print_cores(cores, text, sizeof(text)));
	if (other >= 0)
		doctor_fix(h->report,
			"echo %d > /proc/irq/%s/smp_affinity_list; isolcpus=managed_irq,... for "
			"those that refuse",
			other, last);
}

// Who isolated a core wants nothing there; on others the kernel spreads interrupts by itself.
void check_core_irq(const struct doctor_host *h)
{
	cpu_set_t ours, alone, both, rest;
	cores_of_workers(h->config, &ours);
	isolated(h, &alone);
	CPU_AND(&both, &ours, &alone);
	CPU_XOR(&rest, &ours, &both);
	if (CPU_COUNT(&both))
		find_irqs(h, &both, DOCTOR_WARNING, "the isolated cores");
	if (CPU_COUNT(&rest))
		find_irqs(h, &rest, DOCTOR_NOTE, "the workers' cores");
}

static long node_of_device(const struct doctor_host *h, const struct doctor_device *d)
{
	char path[PATH_MAX];
	const char *folder = d->kind == DOCTOR_DEVICE_PCI ? "bus/pci/devices" : "class/net";
	const char *below = d->kind == DOCTOR_DEVICE_PCI ? "" : "device/";
	return look_number(
		path_under(h->root, path, "/sys/%s/%s/%snuma_node", folder, d->name, below), -1);
}

static bool is_core_of_node(const struct doctor_host *h, unsigned core, long node)
{
	char path[PATH_MAX];
	return access(path_under(h->root, path, CPU_DIR "cpu%u/node%ld", core, node), F_OK) == 0;
}

void check_core_numa(const struct doctor_host *h)
{
	for (unsigned p = 0; p < h->n_devices; p++) {
		const struct doctor_device *d = &h->devices[p];
		long node = d->kind == DOCTOR_DEVICE_OTHER ? -1 : node_of_device(h, d);
		for (unsigned i = 0; node >= 0 && i < h->config->n_workers; i++) {
			unsigned core = h->config->workers[i];
			if (is_core_of_node(h, core, node))
				continue;
			doctor_find(h->report, DOCTOR_WARNING,
				"workers[%u]: core %u is not of NUMA node %ld, where %s is; each "
				"frame crosses the link between nodes",
				i, core, node, d->name);
			doctor_fix(h->report,
				"workers: cores of /sys/devices/system/node/node%ld/cpulist", node);
		}
	}
}

// "max 100000", or what all may use in a period.
static double quota_of(const char *path)
{
	char line[64];
	double quota, period;
	if (!look_line(path, line, sizeof(line)))
		return -1;
	return sscanf(line, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : -1;
}

void check_cpu_quota(const struct doctor_host *h)
{
	char group[LOOK_GROUP_MAX];
	unsigned wanted = h->config->n_workers + 1;
	double cores;
	if (!look_cgroups(h, "cpu.max", quota_of, &cores, group) || cores >= wanted)
		return;
	doctor_find(h->report, DOCTOR_WARNING,
		"control group %s may use %.1f cores, and %u workers and the control thread are to "
		"run; once that is used up, all of them stand still for up to 100 ms",
		group, cores, h->config->n_workers);
	doctor_fix(h->report, "CPUQuota= of the unit, or cpu.max: at least %u00 %%", wanted);
}
