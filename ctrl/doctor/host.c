// SPDX-License-Identifier: Apache-2.0
#include "ctrl/doctor/host.h"

#include "ctrl/conf/config.h"
#include "ctrl/doctor/look.h"
#include "lb/base/path.h"

#include <limits.h>

const struct doctor_check doctor_checks[] = {
	{"core-online", "`workers`: whether each core is online", DOCTOR_ERROR, check_core_online,
		false},
	{"core-usable", "`workers`: whether the process may run there (cpuset, taskset)",
		DOCTOR_ERROR, check_core_usable, true},
	{"core-control", "`workers`: whether a core is left for everything else", DOCTOR_WARNING,
		check_core_control, false},
	{"core-sibling", "`workers`: whether two of them share a physical core", DOCTOR_NOTE,
		check_core_sibling, false},
	{"core-isolated", "`workers`: whether the kernel keeps other work away", DOCTOR_NOTE,
		check_core_isolated, false},
	{"core-irq",
		"interrupts that arrive on workers' cores alone; a warning where these are "
		"isolated",
		DOCTOR_WARNING, check_core_irq, false},
	{"core-numa", "`workers`: whether each core is of the devices' NUMA node", DOCTOR_WARNING,
		check_core_numa, false},
	{"cpu-quota", "what the control group may use of the cores (`cpu.max`)", DOCTOR_WARNING,
		check_cpu_quota, false},
	{"hugepages", "whether enough hugepages are free, where `eal` asks for them", DOCTOR_ERROR,
		check_hugepages, true},
	{"hugetlbfs",
		"whether hugetlbfs is mounted and open to this user, and without files of others, "
		"where `eal` needs it",
		DOCTOR_ERROR, check_hugetlbfs, true},
	{"dpdk-memory", "whether packet buffers fit into `-m` of `eal`", DOCTOR_ERROR,
		check_dpdk_memory, false},
	{"memory", "whether memory is available for packet buffers and `limits.buffers_mib`",
		DOCTOR_WARNING, check_memory, true},
	{"memory-limit", "the same of the control group's `memory.max`", DOCTOR_WARNING,
		check_memory_limit, false},
	{"memlock", "whether as much memory may be locked as `vfio-pci` locks", DOCTOR_ERROR,
		check_memlock, false},
	{"device",
		"`ports[].device`: whether it is there and can be opened: driver, IOMMU, files "
		"in /dev",
		DOCTOR_ERROR, check_device, true},
	{"capabilities",
		"`ports[].device`, `ports[].kernel`: whether this process has the capabilities "
		"that opening it takes",
		DOCTOR_ERROR, check_capabilities, true},
	{"link", "`ports[].device`: whether an interface is up and has a carrier", DOCTOR_ERROR,
		check_link, false},
	{"mtu", "`ports[].mtu`: whether the interface takes packets of that length", DOCTOR_ERROR,
		check_mtu, false},
	{"offloads",
		"what an interface merges, and what its veth's other end leaves to hardware; "
		"an error where AF_XDP would drop it",
		DOCTOR_ERROR, check_offloads, false},
	{"kernel-address",
		"`ports[].addresses`, `frontends[].address`: whether the kernel has one "
		"of them, too",
		DOCTOR_ERROR, check_kernel_address, false},
	{"files", "how many files may be open", DOCTOR_WARNING, check_files, false},
	{"socket",
		"`stats.socket`, `stats.haproxy_socket`, `takeover_socket`: whether it can be "
		"made, or was left over",
		DOCTOR_ERROR, check_socket, true},
	{"socket-mode", "`stats.mode`: whether strangers may ask", DOCTOR_WARNING,
		check_socket_mode, false},
	{"listen", "`csds.listen`, `metrics.listen`: whether address and port are free",
		DOCTOR_ERROR, check_listen, true},
	{"log-directory", "`access_log`: whether its directories are there and open to this user",
		DOCTOR_ERROR, check_log_directory, false},
	{"log-file", "`access_log.path`: whether what is there takes lines from this user",
		DOCTOR_ERROR, check_log_file, false},
	{"directory",
		"`state_dir`, `capture.directory`, `ready_file`: whether folders are open to "
		"this user, and what is there ours",
		DOCTOR_ERROR, check_directory, false},
	{"clock-source", "whether the kernel's clock is a fast one", DOCTOR_WARNING,
		check_clock_source, false},
	{"clock-synchronised", "whether the clock follows a time server", DOCTOR_WARNING,
		check_clock_synchronised, false},
	{"clock-date", "whether the date can be right", DOCTOR_ERROR, check_clock_date, false},
	{"bootstrap", "whether the bootstrap is there and can be read", DOCTOR_ERROR,
		check_bootstrap, false},
	{"xds-server",
		"whether each xDS server's name resolves and TCP reaches it within 2 s; a "
		"warning while another one does",
		DOCTOR_ERROR, check_xds_server, false},
	{"certificates",
		"files of certificates, keys, CAs, CRLs and tickets; where a daemon answers those "
		"for xDS servers",
		DOCTOR_ERROR, check_certificates, false},
	{"certificate-dates",
		"certificates, and a CA that is alone in its file: not valid, or not for another 7 "
		"days",
		DOCTOR_ERROR, check_certificate_dates, false},
	{NULL, NULL, DOCTOR_NOTE, NULL, false},
};

// A daemon answers at the stats socket.
static bool is_served(const struct doctor_host *h)
{
	char path[PATH_MAX];
	const char *socket = h->config->stats->socket;
	if (socket[0] == '/')
		socket = path_under(h->root, path, "%s", socket);
	return h->ops->dial(h->ctx, socket) == 0;
}

void doctor_examine(struct doctor_host *h)
{
	h->is_served = is_served(h);
	for (const struct doctor_check *c = doctor_checks; c->id; c++) {
		doctor_report_begin(h->report, c->id);
		if (!c->before_start || !h->is_served)
			c->look(h);
	}
}
