// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/ctrl/doctor/host_fixture.h"

#include "tests/support/check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU "/sys/devices/system/cpu/"

static bool interface(void *ctx, const char *name, struct doctor_interface *ret)
{
	const struct fixture *f = ctx;
	*ret = strcmp(name, "eth1") == 0 ? f->interface : f->peer;
	return strcmp(name, "eth1") != 0 || !f->is_absent;
}

static bool owner(void *ctx, const struct ip_addr *ip, char ret_name[IF_NAMESIZE])
{
	const struct fixture *f = ctx;
	if (f->owner)
		strcpy(ret_name, f->owner);
	return f->owner;
}

static void reach(void *ctx, struct doctor_target *targets, unsigned n)
{
	const struct fixture *f = ctx;
	for (unsigned i = 0; i < n; i++)
		if (f->unreachable && strstr(targets[i].host, f->unreachable))
			lb_err_set(&targets[i].err, "Connection refused by %s port %s",
				targets[i].host, targets[i].port);
}

static int dial(void *ctx, const char *path)
{
	return ((const struct fixture *)ctx)->dial;
}

static int can_listen(void *ctx, const struct ip_port *place)
{
	return ((const struct fixture *)ctx)->listen;
}

static uint64_t limit(void *ctx, int resource)
{
	return ((const struct fixture *)ctx)->limit;
}

static uint64_t capabilities(void *ctx)
{
	return ((const struct fixture *)ctx)->capabilities;
}

static int synchronised(void *ctx)
{
	return ((const struct fixture *)ctx)->synchronised;
}

static void usable_cores(void *ctx, cpu_set_t *ret)
{
	*ret = ((const struct fixture *)ctx)->usable;
}

static const struct doctor_ops ops = {
	.interface = interface,
	.owner = owner,
	.reach = reach,
	.dial = dial,
	.listen = can_listen,
	.limit = limit,
	.capabilities = capabilities,
	.synchronised = synchronised,
	.usable_cores = usable_cores,
};

const char *fixture_path(const struct fixture *f, char ret[PATH_MAX], const char *path)
{
	snprintf(ret, PATH_MAX, "%s%s", f->root, path);
	return ret;
}

static void run(const char *fmt, const char *path)
{
	char command[2 * PATH_MAX];
	snprintf(command, sizeof(command), fmt, path, path);
	assert_int_equal(system(command), 0);
}

void fixture_make_folder(struct fixture *f, const char *path)
{
	char whole[PATH_MAX];
	run("mkdir -p '%s'", fixture_path(f, whole, path));
}

void fixture_remove(struct fixture *f, const char *path)
{
	char whole[PATH_MAX];
	run("rm -r '%s'", fixture_path(f, whole, path));
}

void fixture_write(struct fixture *f, const char *path, const char *text)
{
	char whole[PATH_MAX];
	run("mkdir -p \"$(dirname '%s')\"", fixture_path(f, whole, path));
	FILE *out = fopen(whole, "w");
	assert_non_null(out);
	fputs(text, out);
	fclose(out);
}

void fixture_set_bootstrap(struct fixture *f, const char *json)
{
	struct lb_err err = {.text = ""};
	xds_bootstrap_free(f->bootstrap);
	f->bootstrap = NULL;
	(void)xds_bootstrap_parse(json, strlen(json), "bootstrap.json", &f->bootstrap, &err);
	assert_string_equal(err.text, "");
	f->host.bootstrap = f->bootstrap;
}

static void make_files(struct fixture *f)
{
	fixture_write(f, CPU "online", "0-3\n");
	fixture_write(f, CPU "isolated", "2-3\n");
	fixture_write(f, CPU "cpu2/topology/thread_siblings_list", "2\n");
	fixture_write(f, CPU "cpu3/topology/thread_siblings_list", "3\n");
	fixture_make_folder(f, CPU "cpu2/node0");
	fixture_make_folder(f, CPU "cpu3/node0");
	fixture_write(f, "/sys/class/net/eth1/device/numa_node", "0\n");
	fixture_write(
		f, "/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
	fixture_write(f, "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
	fixture_write(f, "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "64\n");
	fixture_write(f, "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0\n");
	fixture_write(f, "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "0\n");
	fixture_write(f, "/sys/fs/cgroup/system.slice/shunt.service/cpu.max", "max 100000\n");
	fixture_write(f, "/sys/fs/cgroup/system.slice/shunt.service/memory.max", "max\n");
	fixture_write(
		f, "/proc/self/cgroup", "1:name=systemd:/a\n0::/system.slice/shunt.service\n");
	fixture_write(f, "/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable:    4000000 kB\n");
	fixture_write(
		f, "/proc/mounts", "none / ext4 rw 0 0\nnone /dev/hugepages hugetlbfs rw 0 0\n");
	fixture_make_folder(f, "/dev/hugepages");
	fixture_write(f, "/proc/irq/30/smp_affinity_list", "0-1\n");
	fixture_make_folder(f, "/proc/irq/30/eth1");
	fixture_make_folder(f, "/run/shunt");
	fixture_make_folder(f, "/var/log/shunt/xds");
}

static void make_config(struct fixture *f)
{
	static char address[] = "10.0.0.1/24", gateway[] = "10.0.0.254", name[] = "web",
		    bare[] = "10.0.0.1", socket[] = "/run/shunt/stats.sock", mode[] = "0660",
		    path[] = "/var/log/shunt/access.log", folder[] = "/var/log/shunt/xds",
		    csds[] = "127.0.0.1:50052", metrics[] = "127.0.0.1:9464",
		    device[] = "net_af_packet0,iface=eth1";
	f->workers[0] = 2;
	f->workers[1] = 3;
	f->addresses[0] = address;
	assert_true(ip_parse(bare, &f->ips[0]));
	f->port = (struct config_port){.device = device,
		.addresses = f->addresses,
		.n_addresses = 1,
		.address_ips = f->ips,
		.gateway = gateway,
		.mtu = 1500};
	f->frontend = (struct config_frontend){
		.name = name, .address = bare, .port = 80, .address_ip = f->ips[0]};
	f->stats = (struct config_stats){.socket = socket, .mode = mode, .mode_bits = 0660};
	f->csds.listen = csds;
	f->metrics.listen = metrics;
	f->log = (struct config_access_log){.path = path, .xds_directory = folder};
	f->config = (struct config){.workers = f->workers,
		.n_workers = 2,
		.ports = &f->port,
		.n_ports = 1,
		.frontends = &f->frontend,
		.n_frontends = 1,
		.stats = &f->stats,
		.csds = &f->csds,
		.metrics = &f->metrics,
		.access_log = &f->log,
		.tls = &f->tls,
		.max_buffers_mib = 256};
}

int fixture_set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	strcpy(f->root, "/tmp/test-doctor-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	make_files(f);
	run("chmod -R 777 '%s'", f->root); // another user may do all that is not forbidden
	make_config(f);
	f->interface = f->peer =
		(struct doctor_interface){.is_up = true, .has_carrier = true, .mtu = 1500};
	f->dial = -ENOENT;
	f->limit = UINT64_MAX;
	f->synchronised = 1;
	for (int c = 0; c < 4; c++)
		CPU_SET(c, &f->usable);
	f->device = (struct doctor_device){
		.field = "ports[0].device", .kind = DOCTOR_DEVICE_PACKET, .name = "eth1"};
	f->host = (struct doctor_host){
		.root = f->root,
		.config = &f->config,
		.bootstrap_error = "",
		.devices = &f->device,
		.n_devices = 1,
		.memory = {.in_memory = true, .mib = 512, .is_given = true},
		.ops = &ops,
		.ctx = f,
		.now_s = INT64_C(1900000000),
		.report = &f->report,
	};
	fixture_set_bootstrap(f, "{\"xds_servers\":[{\"server_uri\":\"xds.example:443\","
				 "\"channel_creds\":[{\"type\":\"insecure\"}]}]}");
	assert_true(doctor_report_init(&f->report));
	*state = f;
	return 0;
}

int fixture_tear_down(void **state)
{
	struct fixture *f = *state;
	run("chmod -R u+rwx '%s' && rm -r '%s'", f->root);
	xds_bootstrap_free(f->bootstrap);
	doctor_report_fini(&f->report);
	free(f);
	return 0;
}

json_t *fixture_examine(struct fixture *f)
{
	doctor_examine(&f->host);
	return f->report.findings;
}
