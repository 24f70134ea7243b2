// SPDX-License-Identifier: Apache-2.0
// Faults in a host's set-up, each planted alone in a host that is well: exactly the check that is
// there for it says so, as severely as it is to, with what mends it.
#include "tests/support/check.h"
#include "tests/unit/ctrl/doctor/host_fixture.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define CPU "/sys/devices/system/cpu/"
#define PAGES "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define GROUP "/sys/fs/cgroup/system.slice/"
#define NOBODY 65534

struct row {
	const char *check;
	enum doctor_severity severity;
	const char *what, *fix; // a part of each
	const char *file, *text; // written; NULL = no file is
	void (*plant)(struct fixture *); // NULL = the file is all
};

static void no_core_left(struct fixture *f)
{
	CPU_CLR(3, &f->usable);
}

static void all_cores_are_workers(struct fixture *f)
{
	fixture_write(f, CPU "online", "2-3\n");
}

static void irq_on_a_shared_core(struct fixture *f)
{
	fixture_write(f, CPU "isolated", "3\n");
	fixture_write(f, "/proc/irq/30/smp_affinity_list", "2\n");
}

static void device_of_another_node(struct fixture *f)
{
	fixture_make_folder(f, CPU "cpu2/node1");
	fixture_write(f, "/sys/class/net/eth1/device/numa_node", "1\n");
}

static void wants_hugepages(struct fixture *f)
{
	f->host.memory = (struct doctor_memory){.hugepages = true, .in_memory = true};
}

static void wants_files_of_hugepages(struct fixture *f)
{
	f->host.memory = (struct doctor_memory){.hugepages = true};
}

static void wants_long_packets(struct fixture *f)
{
	wants_hugepages(f);
	f->port.mtu = 9000;
	f->interface.mtu = 9000;
}

static void hugetlbfs_is_shut(struct fixture *f)
{
	char path[PATH_MAX];
	wants_files_of_hugepages(f);
	assert_int_equal(chmod(fixture_path(f, path, "/dev/hugepages"), 0500), 0);
}

static void little_for_dpdk(struct fixture *f)
{
	f->host.memory.mib = 60;
}

static void little_may_be_locked(struct fixture *f)
{
	f->device = (struct doctor_device){.field = "ports[0].device",
		.kind = DOCTOR_DEVICE_PCI,
		.name = "0000:03:00.0",
		.pins = true};
	f->limit = UINT64_C(8) << 20;
}

static void kernel_has_the_card(struct fixture *f)
{
	f->device = (struct doctor_device){.field = "ports[0].device",
		.kind = DOCTOR_DEVICE_PCI,
		.name = "0000:03:00.0",
		.remedy = "the kernel's driver ixgbe has it: bind it to vfio-pci"};
}

static void may_lock_what_it_likes(struct fixture *f)
{
	little_may_be_locked(f);
	f->capabilities = UINT64_C(1) << CAP_IPC_LOCK;
}

static void another_user_left_hugepages(struct fixture *f)
{
	char path[PATH_MAX];
	wants_files_of_hugepages(f);
	strcpy(f->host.memory.prefix, "shunt");
	fixture_write(f, "/dev/hugepages/shuntmap_0", "");
	assert_int_equal(chmod(fixture_path(f, path, "/dev/hugepages/shuntmap_0"), 0600), 0);
}

static void capabilities_are_lacking(struct fixture *f)
{
	f->device.capabilities = UINT64_C(1) << CAP_NET_RAW | UINT64_C(1) << CAP_NET_ADMIN;
	f->capabilities = 0;
}

static void has_an_interface_of_the_kernels(struct fixture *f)
{
	static char name[] = "shunt0";
	static struct config_kernel kernel = {.interface = name};
	f->port.kernel = &kernel;
}

static void interface_is_absent(struct fixture *f)
{
	f->is_absent = true;
}

static void interface_is_down(struct fixture *f)
{
	f->interface.is_up = false;
}

static void no_carrier(struct fixture *f)
{
	f->interface.has_carrier = false;
}

static void is_a_member(struct fixture *f)
{
	f->device.is_member = true;
	strcpy(f->device.field, "ports[0].bond.members[1]");
}

static void member_has_no_carrier(struct fixture *f)
{
	is_a_member(f);
	no_carrier(f);
}

static void short_mtu(struct fixture *f)
{
	f->interface.mtu = 1400;
}

// Of the same device.
static void has_a_vlan_with_longer_packets(struct fixture *f)
{
	static struct config_port both[2];
	both[0] = both[1] = f->port;
	both[1].vlan = 7;
	both[1].mtu = 9000;
	f->config.ports = both;
	f->config.n_ports = 2;
}

static void gro_is_on(struct fixture *f)
{
	f->interface.offloads = DOCTOR_OFFLOAD_GRO | DOCTOR_OFFLOAD_TX;
}

static void veth(struct fixture *f, unsigned offloads)
{
	f->interface.is_veth = true;
	strcpy(f->interface.peer, "eth2");
	f->peer.offloads = offloads;
}

static void peer_sends_long_segments(struct fixture *f)
{
	veth(f, DOCTOR_OFFLOAD_TSO | DOCTOR_OFFLOAD_TX); // af_packet is told of the latter
}

static void peer_makes_no_checksums(struct fixture *f)
{
	f->device.kind = DOCTOR_DEVICE_XDP;
	veth(f, DOCTOR_OFFLOAD_TX);
}

static void members_peer_makes_no_checksums(struct fixture *f)
{
	is_a_member(f);
	veth(f, DOCTOR_OFFLOAD_TX);
}

static void kernel_has_the_address(struct fixture *f)
{
	f->owner = "eth7";
}

static void kernel_has_an_address_of_a_vlan(struct fixture *f)
{
	has_a_vlan_with_longer_packets(f);
	f->config.ports[0].n_addresses = 0;
	f->interface.mtu = 9000;
	kernel_has_the_address(f);
}

static void few_files(struct fixture *f)
{
	f->limit = 256;
}

static void make_socket(const struct fixture *f, const char *path)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s%s", f->root, path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
}

static void socket_is_left_over(struct fixture *f)
{
	make_socket(f, "/run/shunt/stats.sock");
	f->dial = -ECONNREFUSED;
}

static void socket_is_shut(struct fixture *f)
{
	socket_is_left_over(f);
	f->dial = -EACCES;
}

static void no_folder_for_the_socket(struct fixture *f)
{
	fixture_remove(f, "/run");
}

static void folder_of_the_socket_is_shut(struct fixture *f)
{
	char path[PATH_MAX];
	assert_int_equal(chmod(fixture_path(f, path, "/run/shunt"), 0755), 0);
}

static void all_may_ask(struct fixture *f)
{
	f->stats.mode_bits = 0666;
}

static void port_is_taken(struct fixture *f)
{
	f->config.metrics = NULL;
	f->listen = -EADDRINUSE;
}

static void address_is_not_here(struct fixture *f)
{
	f->config.csds = NULL;
	f->listen = -EADDRNOTAVAIL;
}

static void no_folder_for_logs(struct fixture *f)
{
	f->log.xds_directory = NULL;
	fixture_remove(f, "/var/log/shunt");
}

static void nobody_may_search_above_the_logs(struct fixture *f)
{
	char path[PATH_MAX];
	f->log.xds_directory = NULL;
	assert_int_equal(chmod(fixture_path(f, path, "/var/log"), 0700), 0);
}

static void no_folder_for_the_state(struct fixture *f)
{
	static char folder[] = "/var/lib/shunt";
	f->config.state_dir = folder;
}

static void folder_for_listeners_logs_is_a_file(struct fixture *f)
{
	fixture_remove(f, "/var/log/shunt/xds");
	fixture_write(f, "/var/log/shunt/xds", "");
}

static void log_is_a_folder(struct fixture *f)
{
	fixture_make_folder(f, "/var/log/shunt/access.log");
}

static void log_is_a_socket(struct fixture *f)
{
	make_socket(f, "/var/log/shunt/access.log");
}

static void log_is_anothers(struct fixture *f)
{
	char path[PATH_MAX];
	fixture_write(f, "/var/log/shunt/access.log", "");
	assert_int_equal(chmod(fixture_path(f, path, "/var/log/shunt/access.log"), 0640), 0);
}

// A new one cannot be made there, which only a rotation would need.
static void log_is_ours_in_a_folder_that_is_not(struct fixture *f)
{
	char path[PATH_MAX];
	f->log.xds_directory = NULL;
	fixture_write(f, "/var/log/shunt/access.log", "");
	assert_int_equal(chmod(fixture_path(f, path, "/var/log/shunt/access.log"), 0666), 0);
	assert_int_equal(chmod(fixture_path(f, path, "/var/log/shunt"), 0755), 0);
}

static void state_is_a_folder(struct fixture *f)
{
	static char folder[] = "/run/shunt";
	f->config.state_dir = folder;
	fixture_make_folder(f, "/run/shunt/xds-state");
}

static void ready_file_is_anothers(struct fixture *f)
{
	static char file[] = "/run/shunt/ready";
	f->config.ready_file = file;
	fixture_write(f, file, "mine\n");
}

static void state_is_anothers(struct fixture *f)
{
	static char folder[] = "/run/shunt";
	char path[PATH_MAX];
	f->config.state_dir = folder;
	fixture_write(f, "/run/shunt/xds-state", "");
	assert_int_equal(chmod(fixture_path(f, path, "/run/shunt/xds-state"), 0600), 0);
}

static void no_folder_for_a_takeover(struct fixture *f)
{
	static char path[] = "/run/nowhere/near/takeover.sock";
	f->config.takeover_socket = path;
}

static void clock_drifts(struct fixture *f)
{
	f->synchronised = 0;
}

static void clock_is_of_another_year(struct fixture *f)
{
	f->host.now_s = 1000000000;
}

static void no_bootstrap(struct fixture *f)
{
	f->host.bootstrap = NULL;
	f->host.bootstrap_error = "GRPC_XDS_BOOTSTRAP is not set";
}

static void server_is_away(struct fixture *f)
{
	f->unreachable = "xds.example";
}

static void second_server_is_away(struct fixture *f)
{
	fixture_set_bootstrap(f,
		"{\"xds_servers\":["
		"{\"server_uri\":\"dns:///a.example\",\"channel_creds\":[{\"type\":\"insecure\"}]},"
		"{\"server_uri\":\"b.example:1\",\"channel_creds\":[{\"type\":\"insecure\"}]}]}");
	f->unreachable = "b.example";
}

static void certificate_is_absent(struct fixture *f)
{
	fixture_set_bootstrap(f,
		"{\"xds_servers\":[{\"server_uri\":\"xds.example:443\","
		"\"channel_creds\":[{\"type\":\"tls\",\"config\":{\"ca_certificate_file\":"
		"\"/tmp/there/is/no/such.pem\"}}]}]}");
}

static void provider_is_without_cas(struct fixture *f)
{
	fixture_set_bootstrap(f,
		"{\"xds_servers\":[{\"server_uri\":\"xds.example:443\","
		"\"channel_creds\":[{\"type\":\"insecure\"}]}],"
		"\"certificate_providers\":{\"web\":{\"plugin_name\":\"file_watcher\","
		"\"config\":{\"ca_certificate_file\":\"/tmp/there/is/no/such.ca\"}}}}");
}

#define ERROR_ DOCTOR_ERROR
#define WARN DOCTOR_WARNING
#define NOTE DOCTOR_NOTE

// OPS-131
static const struct row rows[] = {
	{"core-online", ERROR_, "workers[1]: core 3 is offline", "cpu3/online", CPU "online",
		"0-2\n", NULL},
	{"core-usable", ERROR_, "workers[1]: this process may not run on core 3",
		"AllowedCPUs=", NULL, NULL, no_core_left},
	{"core-control", WARN, "workers have all 2 cores", "leave a core out", NULL, NULL,
		all_cores_are_workers},
	{"core-sibling", NOTE, "2 and 3 are threads of one", "lscpu",
		CPU "cpu2/topology/thread_siblings_list", "2-3\n", NULL},
	{"core-isolated", NOTE, "cores 2,3 are not isolated", "isolcpus=2,3", CPU "isolated", "\n",
		NULL},
	{"core-isolated", NOTE, "cores 2 are not isolated", "isolcpus=2,3 ", CPU "isolated", "3\n",
		NULL},
	{"core-irq", WARN, "1 interrupts (30) arrive on the isolated cores 2,3 alone",
		"echo 0 > /proc/irq/30/smp_affinity_list", "/proc/irq/30/smp_affinity_list",
		"2-3\n", NULL},
	{"core-numa", WARN, "workers[1]: core 3 is not of NUMA node 1, where eth1 is",
		"node1/cpulist", NULL, NULL, device_of_another_node},
	{"cpu-quota", WARN, "/system.slice/shunt.service may use 1.5 cores", "at least 300 %",
		GROUP "shunt.service/cpu.max", "150000 100000\n", NULL},
	{"cpu-quota", WARN, "/system.slice may use 2.0 cores", "CPUQuota=", GROUP "cpu.max",
		"200000 100000\n", NULL},
	{"hugepages", ERROR_, "20 MiB of them are free, and 2 workers on 1 ports need 44",
		"sysctl vm.nr_hugepages=76", PAGES "free_hugepages", "10\n", wants_hugepages},
	{"hugepages", ERROR_, "128 MiB of them are free", "sysctl vm.nr_hugepages=100", NULL, NULL,
		wants_long_packets},
	{"hugepages", ERROR_, "128 MiB of them are free", "sysctl vm.nr_hugepages=100",
		"/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "3\n",
		wants_long_packets},
	{"hugetlbfs", ERROR_, "no hugetlbfs is mounted", "mount -t hugetlbfs", "/proc/mounts",
		"none / ext4 rw 0 0\n", wants_files_of_hugepages},
	{"hugetlbfs", ERROR_, "/dev/hugepages, where hugepages are files, may not be written",
		"--in-memory", NULL, NULL, hugetlbfs_is_shut},
	{"dpdk-memory", ERROR_, "DPDK gets 60 MiB", "eal: [-m, \"144\"]", NULL, NULL,
		little_for_dpdk},
	{"memory", WARN, "97 MiB of memory are available", "buffers_mib", "/proc/meminfo",
		"MemAvailable: 100000 kB\n", NULL},
	{"memory-limit", WARN, "/system.slice/shunt.service may have 100 MiB",
		"MemoryMax=", GROUP "shunt.service/memory.max", "104857600\n", NULL},
	{"memlock", ERROR_, "8192 KiB of memory may be locked, and vfio-pci locks 512 MiB",
		"LimitMEMLOCK=infinity", NULL, NULL, little_may_be_locked},
	{"device", ERROR_, "0000:03:00.0: the kernel's driver ixgbe has it; it cannot",
		"bind it to vfio-pci", NULL, NULL, kernel_has_the_card},
	{"hugetlbfs", ERROR_, "left /dev/hugepages/shuntmap_*, which this user may not write to",
		"rm /dev/hugepages/shuntmap_*", NULL, NULL, another_user_left_hugepages},
	{"capabilities", ERROR_,
		"ports[0].device: this process lacks CAP_NET_ADMIN CAP_NET_RAW, which eth1 takes",
		"AmbientCapabilities=CAP_NET_ADMIN CAP_NET_RAW", NULL, NULL,
		capabilities_are_lacking},
	{"capabilities", ERROR_, "ports[0].kernel: this process lacks CAP_NET_ADMIN, which shunt0",
		"AmbientCapabilities=CAP_NET_ADMIN", NULL, NULL, has_an_interface_of_the_kernels},
	{"device", ERROR_, "has no interface eth1", "ip link set eth1 netns", NULL, NULL,
		interface_is_absent},
	{"link", ERROR_, "eth1 is down", "ip link set eth1 up", NULL, NULL, interface_is_down},
	{"link", ERROR_, "eth1 has no carrier", "cable", NULL, NULL, no_carrier},
	{"link", WARN, "ports[0].bond.members[1]: eth1 has no carrier", "cable", NULL, NULL,
		member_has_no_carrier},
	{"offloads", ERROR_, "which a bond doesn't tell; what it sends is dropped", "tx off", NULL,
		NULL, members_peer_makes_no_checksums},
	{"mtu", ERROR_, "ports[0].mtu: 1500, and that of eth1 is 1400",
		"ip link set eth1 mtu 1500, or mtu: 1400", NULL, NULL, short_mtu},
	{"mtu", ERROR_, "ports[1].mtu: 9000, and that of eth1 is 1500",
		"ip link set eth1 mtu 9000, or mtu: 1500", NULL, NULL,
		has_a_vlan_with_longer_packets},
	{"offloads", NOTE, "eth1 merges what it receives (gro)", "ethtool -K eth1 gro off", NULL,
		NULL, gro_is_on},
	{"offloads", NOTE, "eth2, where the veth's other end is, sends segments of many frames",
		"ethtool -K eth2 tso off", NULL, NULL, peer_sends_long_segments},
	{"offloads", ERROR_, "eth2, where the veth's other end is, leaves checksums to hardware",
		"ethtool -K eth2 tx off", NULL, NULL, peer_makes_no_checksums},
	{"kernel-address", ERROR_,
		"ports[0].addresses[0]: the kernel has 10.0.0.1/24, too, on eth7",
		"ip addr del 10.0.0.1/... dev eth7", NULL, NULL, kernel_has_the_address},
	{"kernel-address", ERROR_,
		"ports[1].addresses[0]: the kernel has 10.0.0.1/24, too, on eth7",
		"ip addr del 10.0.0.1/... dev eth7", NULL, NULL, kernel_has_an_address_of_a_vlan},
	{"files", WARN, "256 files may be open", "LimitNOFILE=", NULL, NULL, few_files},
	{"socket", NOTE, "nobody listens at /run/shunt/stats.sock", "rm /run/shunt/stats.sock",
		NULL, NULL, socket_is_left_over},
	{"socket", WARN, "/run/shunt/stats.sock: Permission denied", "member of its group", NULL,
		NULL, socket_is_shut},
	{"socket", ERROR_, "is there and no socket", "rm /run/shunt/stats.sock",
		"/run/shunt/stats.sock", "", NULL},
	{"socket", ERROR_, "there is no directory /run/shunt", "mkdir -p /run/shunt", NULL, NULL,
		no_folder_for_the_socket},
	{"socket", ERROR_, "this user may not write to /run/shunt", "chown USER /run/shunt", NULL,
		NULL, folder_of_the_socket_is_shut},
	{"socket-mode", WARN, "each user of this host may ask", "0660", NULL, NULL, all_may_ask},
	{"listen", ERROR_, "csds.listen: 127.0.0.1:50052: Address already in use",
		"ss -ltnp sport = 50052", NULL, NULL, port_is_taken},
	{"listen", ERROR_, "metrics.listen: 127.0.0.1:9464: Cannot assign", "ip -br addr", NULL,
		NULL, address_is_not_here},
	{"log-directory", ERROR_, "access_log.path: there is no directory /var/log/shunt",
		"mkdir -p /var/log/shunt", NULL, NULL, no_folder_for_logs},
	{"log-directory", ERROR_, "may not search a directory above /var/log/shunt", "namei -m",
		NULL, NULL, nobody_may_search_above_the_logs},
	{"directory", ERROR_, "state_dir: there is no directory /var/lib/shunt",
		"mkdir -p /var/lib/shunt", NULL, NULL, no_folder_for_the_state},
	{"log-directory", ERROR_, "/var/log/shunt/xds is not a directory", "another path", NULL,
		NULL, folder_for_listeners_logs_is_a_file},
	{"log-file", ERROR_, "/var/log/shunt/access.log is a directory", "a file's", NULL, NULL,
		log_is_a_folder},
	{"log-file", ERROR_, "/var/log/shunt/access.log is a socket", "a file's", NULL, NULL,
		log_is_a_socket},
	{"log-file", ERROR_, "this user may not write to /var/log/shunt/access.log", "chown USER",
		NULL, NULL, log_is_anothers},
	{"directory", ERROR_, "/run/shunt/xds-state is not a file", "mv /run/shunt/xds-state", NULL,
		NULL, state_is_a_folder},
	{"directory", WARN, "this user may not read /run/shunt/xds-state", "chown USER", NULL, NULL,
		state_is_anothers},
	{"directory", ERROR_, "/run/shunt/ready is there and no empty file", "mv /run/shunt/ready",
		NULL, NULL, ready_file_is_anothers},
	{"socket", ERROR_, "takeover_socket: there is no directory /run/nowhere/near", "mkdir -p",
		NULL, NULL, no_folder_for_a_takeover},
	{"clock-source", WARN, "the kernel's clock is hpet", "tsc",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n", NULL},
	{"clock-synchronised", WARN, "the clock is not synchronised", "timedatectl", NULL, NULL,
		clock_drifts},
	{"clock-date", ERROR_, "the clock says 2001-09-09", "timedatectl", NULL, NULL,
		clock_is_of_another_year},
	{"bootstrap", ERROR_, "GRPC_XDS_BOOTSTRAP is not set", "bootstrap.json beside", NULL, NULL,
		no_bootstrap},
	{"xds-server", ERROR_, "xds.example:443: Connection refused by xds.example port 443",
		"server_uri", NULL, NULL, server_is_away},
	{"xds-server", WARN, "b.example:1: Connection refused", "server_uri", NULL, NULL,
		second_server_is_away},
	{"certificates", ERROR_, "/tmp/there/is/no/such.pem", "docs/certificates.md", NULL, NULL,
		certificate_is_absent},
	{"certificates", ERROR_, "\"web\": ca_certificate_file /tmp/there/is/no/such.ca",
		"docs/certificates.md", NULL, NULL, provider_is_without_cas},
};

static const char *field(const json_t *finding, const char *key)
{
	return json_string_value(json_object_get(finding, key));
}

static void expect(const struct row *r, const json_t *findings)
{
	char *told = json_dumps(findings, 0);
	const json_t *first = json_array_get(findings, 0);
	if (json_array_size(findings) != 1)
		fail_msg("%s (%s): not one finding: %s", r->check, r->what, told);
	if (strcmp(field(first, "check"), r->check) != 0 ||
		strcmp(field(first, "severity"), doctor_severity_name(r->severity)) != 0 ||
		!strstr(field(first, "what"), r->what) || !strstr(field(first, "fix"), r->fix))
		fail_msg("%s (%s): told otherwise: %s", r->check, r->what, told);
	free(told);
}

// OPS-131, OPS-246, OPS-247, OPS-290
static void each_planted_fault_is_named_with_its_fix_and_nothing_else_is(void **state)
{
	bool is_root = geteuid() == 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		void *made;
		fixture_set_up(&made);
		struct fixture *f = made;
		if (r->file)
			fixture_write(f, r->file, r->text);
		if (r->plant)
			r->plant(f);
		// Root may write and search everywhere.
		bool drops = is_root && strstr(r->what, "may not") &&
		             (strstr(r->what, "writ") || strstr(r->what, "search") ||
				     strstr(r->what, "read"));
		if (drops)
			assert_int_equal(seteuid(NOBODY), 0);
		json_t *findings = fixture_examine(f);
		if (drops)
			assert_int_equal(seteuid(0), 0);
		expect(r, findings);
		fixture_tear_down(&made);
	}
}

// OPS-132
static void of_a_host_that_is_well_nothing_is_told(void **state)
{
	char *told = json_dumps(fixture_examine(*state), 0);
	assert_string_equal(told, "[]");
	free(told);
}

static void a_machine_that_tells_nothing_is_not_accused(void **state)
{
	struct fixture *f = *state;
	f->synchronised = -1;
	fixture_remove(f, "/proc");
	fixture_remove(f, "/sys");
	fixture_write(f, CPU "isolated", "2-3\n"); // what is not isolated is told
	assert_int_equal(json_array_size(fixture_examine(f)), 0);
}

// OPS-133
static void what_a_running_daemon_has_taken_is_no_fault(void **state)
{
	struct fixture *f = *state;
	port_is_taken(f);
	wants_hugepages(f);
	fixture_write(f, PAGES "free_hugepages", "0\n");
	no_core_left(f);
	f->dial = 0;
	assert_int_equal(json_array_size(fixture_examine(f)), 0);
	assert_true(f->host.is_served);
}

// OPS-133, TLS-109: what was good before may still serve, which the daemon tells.
static void providers_of_a_running_daemon_are_not_judged_as_for_a_start(void **state)
{
	struct fixture *f = *state;
	provider_is_without_cas(f);
	f->dial = 0;
	assert_int_equal(json_array_size(fixture_examine(f)), 0);
	certificate_is_absent(f);
	assert_int_equal(json_array_size(fixture_examine(f)), 1); // of an xDS server it tells not
}

// OPS-246, OPS-247
static void what_is_enough_is_no_fault(void **state)
{
	static void (*const plants[])(struct fixture *) = {
		may_lock_what_it_likes, log_is_ours_in_a_folder_that_is_not};
	for (size_t i = 0; i < sizeof(plants) / sizeof(plants[0]); i++) {
		void *made;
		fixture_set_up(&made);
		plants[i](made);
		bool drops = geteuid() == 0;
		if (drops)
			assert_int_equal(seteuid(NOBODY), 0);
		json_t *findings = fixture_examine(made);
		if (drops)
			assert_int_equal(seteuid(0), 0);
		char *told = json_dumps(findings, 0);
		assert_string_equal(told, "[]");
		free(told);
		fixture_tear_down(&made);
	}
}

static void an_irq_on_a_core_that_is_shared_is_a_note(void **state)
{
	struct fixture *f = *state;
	irq_on_a_shared_core(f);
	json_t *findings = fixture_examine(f);
	assert_int_equal(json_array_size(findings), 2); // the core's own finding is the other one
	assert_int_equal(f->report.n_notes, 2);
}

// Which host and port a server's name means, as gRPC reads it.
static void targets_are_read_as_grpc_reads_them(void **state)
{
	static const struct {
		const char *uri, *told;
	} names[] = {
		{"a.example", "by a.example port https"},
		{"a.example:1", "by a.example port 1"},
		{"dns:a.example:2", "by a.example port 2"},
		{"dns:///a.example:3", "by a.example port 3"},
		{"dns://8.8.8.8/a.example:4", "by a.example port 4"},
		{"ipv4:10.0.0.a:5", "by 10.0.0.a port 5"},
		{"ipv6:[fd00::a]:6", "by fd00::a port 6"},
		{"[fd00::a]:7", "by fd00::a port 7"},
		{"fd00::a", "by fd00::a port https"},
		{"xds:///a.example", NULL}, // of gRPC alone
		{"google-c2p:///a.example", NULL},
	};
	struct fixture *f = *state;
	f->unreachable = "a";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char json[256];
		snprintf(json, sizeof(json),
			"{\"xds_servers\":[{\"server_uri\":\"%s\",\"channel_creds\":[{\"type\":"
			"\"insecure\"}]}]}",
			names[i].uri);
		fixture_set_bootstrap(f, json);
		json_array_clear(f->report.findings);
		const json_t *first = json_array_get(fixture_examine(f), 0);
		if (!first != !names[i].told)
			fail_msg("%s: %s", names[i].uri, first ? field(first, "what") : "nothing");
		if (first && !strstr(field(first, "what"), names[i].told))
			fail_msg("%s: %s", names[i].uri, field(first, "what"));
	}
}

#define IN_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_set_up, fixture_tear_down)

RUN_SUITE("ctrl/doctor/host",
	cmocka_unit_test(each_planted_fault_is_named_with_its_fix_and_nothing_else_is),
	cmocka_unit_test(what_is_enough_is_no_fault),
	IN_FIXTURE(of_a_host_that_is_well_nothing_is_told),
	IN_FIXTURE(a_machine_that_tells_nothing_is_not_accused),
	IN_FIXTURE(what_a_running_daemon_has_taken_is_no_fault),
	IN_FIXTURE(providers_of_a_running_daemon_are_not_judged_as_for_a_start),
	IN_FIXTURE(an_irq_on_a_core_that_is_shared_is_a_note),
	IN_FIXTURE(targets_are_read_as_grpc_reads_them))
