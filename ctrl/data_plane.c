// SPDX-License-Identifier: Apache-2.0
#include "ctrl/data_plane.h"

#include "ctrl/conf/config_numbers.h"
#include "ctrl/conf/config_terms.h"
#include "ctrl/conf/config_trunk.h"
#include "ctrl/takeover/takeover.h"
#include "dataplane/buf/buf.h"
#include "dataplane/net/tunnel_list.h"
#include "dataplane/pci_device.h"
#include "dataplane/remedy.h"
#include "dataplane/vlan.h"
#include "lb/base/devargs.h"
#include "lb/base/time.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What config.h lets through must fit the data plane, which it does not know.
_Static_assert(CONFIG_MAX_PORTS <= NET_MAX_PORTS, "ports");
_Static_assert(LB_MAX_CABLES == NET_MAX_PORTS && LB_CABLE_MEMBERS == PORT_MAX_MEMBERS, "cables");
_Static_assert(CONFIG_MAX_ADDRESSES <= NET_MAX_ADDRESSES, "addresses of a port");
_Static_assert(CONFIG_MAX_GATEWAYS == NET_MAX_GATEWAYS, "gateways of a port");
_Static_assert(CONFIG_MAX_VIPS <= NET_MAX_VIPS, "vips");
_Static_assert(CONFIG_MAX_TUNNELS <= NET_MAX_TUNNELS, "tunnels");
_Static_assert(CONFIG_MAX_TUNNEL_PREFIXES <= NET_MAX_TUNNEL_PREFIXES, "prefixes of a tunnel");
_Static_assert(CONFIG_MAX_MTU <= PORT_MAX_MTU, "mtu");
_Static_assert(CONFIG_MAX_VLAN <= VLAN_MAX, "vlan");
_Static_assert(CONFIG_MAX_MEMBERS == PORT_MAX_MEMBERS, "members of a bond");
_Static_assert(CONFIG_MAX_MEMBERS == SHOW_MAX_MEMBERS, "members that are shown");
_Static_assert(CONFIG_MAX_DEVICES <= PORT_MAX_DEVICES, "devices");

// Of all workers; of one source a quarter. Each takes some 40 KiB.
#define MAX_HANDSHAKES 4096
#define MAX_QUEUED 16384
// gRFC A105's cap; more than one only when streams run out
#define MAX_CONNS_PER_ENDPOINT 10
#define CHUNKS_OF_MIB ((1u << 20) / BUF_CHUNK_SIZE)

#define CAP(name) (UINT64_C(1) << CAP_##name)

// Packet buffers of one port's queue take about 20 MiB.
#define QUEUE_MIB 24
#define MEMBER_MIB 6 // more, for each member of a bond beyond the first
#define VLAN_MIB 2 // more, for each VLAN of a device beyond the first
#define LEAST_MIB 512

static const char *const *devices_of(const struct config_port *p)
{
	return (const char *const *)(p->bond ? p->bond->members : &p->device);
}

// 0 = it is a VLAN of another port's.
static unsigned n_devices_of(const struct config *c, unsigned port)
{
	const struct config_port *p = &c->ports[port];
	if (p->carrier != port)
		return 0;
	return p->bond ? p->bond->n_members : 1;
}

static unsigned n_carriers(const struct config *c)
{
	unsigned n = 0;
	for (unsigned i = 0; i < c->n_ports; i++)
		n += c->ports[i].carrier == i;
	return n;
}

struct eal_conf data_plane_describe_eal(
	const struct config *c, struct data_plane_eal_lists *ret_lists)
{
	uint32_t n = 0, n_xdp = 0; // those are opened again with a second pool (port_pool.c)
	bool wants_pa = false;
	for (unsigned i = 0; i < c->n_workers; i++)
		ret_lists->cores[i] = c->workers[i];
	for (unsigned i = 0; i < c->n_ports; i++)
		for (unsigned k = 0; k < n_devices_of(c, i); k++, n++) {
			ret_lists->ports[n] = (uint8_t)i;
			ret_lists->devices[n] = devices_of(&c->ports[i])[k];
			n_xdp += strncmp(ret_lists->devices[n], "net_af_xdp", 10) == 0;
			wants_pa |= port_wants_pa(ret_lists->devices[n]);
		}
	unsigned n_first = n_carriers(c);
	uint32_t of_queues = (n_first + n_xdp) * QUEUE_MIB + (n - n_first) * MEMBER_MIB +
	                     (c->n_ports - n_first) * VLAN_MIB;
	uint32_t memory = LEAST_MIB / 4 + c->n_workers * of_queues;
	return (struct eal_conf){
		.args = {.given = (const char *const *)c->eal,
			.n_given = c->n_eal,
			.devices = ret_lists->devices,
			.device_ports = ret_lists->ports,
			.n_devices = n,
			.wants_pa = wants_pa,
			.memory_mib = memory > LEAST_MIB ? memory : LEAST_MIB,
			.cores = ret_lists->cores,
			.n_cores = c->n_workers},
	};
}

char *data_plane_print_eal(const struct config *c, struct lb_err *reterr)
{
	struct data_plane_eal_lists lists;
	struct eal_conf conf = data_plane_describe_eal(c, &lists);
	return eal_describe(&conf, reterr);
}

int data_plane_check_eal(const struct config *c, struct lb_err *reterr)
{
	struct data_plane_eal_lists lists;
	struct eal_conf conf = data_plane_describe_eal(c, &lists);
	struct eal_args args = {0};
	memset(&conf.args.usable, 0xff, sizeof(conf.args.usable));
	int ret = eal_args_make(&conf.args, &args, reterr);
	eal_args_fini(&args);
	return ret;
}

static bool is_af_packet(const char *device)
{
	return strncmp(device, "net_af_packet", strlen("net_af_packet")) == 0;
}

static bool wants_hugepages(const struct config *c)
{
	return eal_args_want_hugepages((const char *const *)c->eal, c->n_eal);
}

static void describe_card(const struct config *c, const char *root, const struct pci_addr *addr,
	struct doctor_device *ret)
{
	struct pci_device card;
	char name[PCI_ADDR_TEXT_MAX], remedy[REMEDY_MAX];
	_Static_assert(REMEDY_MAX <= DOCTOR_MAX_REMEDY, "a remedy has room");
	pci_device_look(root, addr, &card);
	ret->kind = DOCTOR_DEVICE_PCI;
	ret->pins = card.is_vfio;
	if (pci_device_wants_pa(root, &card)) // it reads /proc/self/pagemap
		ret->capabilities = CAP(SYS_ADMIN) | CAP(SYS_RAWIO);
	strcpy(ret->name, pci_addr_print(addr, name));
	strcpy(ret->remedy, remedy_for_device(root, addr, wants_hugepages(c), remedy));
}

static void describe_device(
	const struct config *c, const char *root, const char *device, struct doctor_device *ret)
{
	struct str interface = devargs_find(device, "iface");
	struct pci_addr addr;
	if (pci_addr_parse(device, &addr)) {
		describe_card(c, root, &addr, ret);
		return;
	}
	ret->kind = DOCTOR_DEVICE_OTHER;
	if (is_af_packet(device)) {
		ret->kind = DOCTOR_DEVICE_PACKET;
		ret->capabilities = CAP(NET_RAW) | CAP(NET_ADMIN); // its MAC, and promiscuous mode
	} else if (strncmp(device, "net_af_xdp", strlen("net_af_xdp")) == 0) {
		ret->kind = DOCTOR_DEVICE_XDP; // libxdp asks for programs by their numbers
		ret->capabilities = CAP(NET_RAW) | CAP(NET_ADMIN) | CAP(SYS_ADMIN);
	} else if (strncmp(device, "net_tap", strlen("net_tap")) == 0) {
		ret->capabilities = CAP(NET_ADMIN);
	}
	struct str name = interface.p ? interface : str_until(str_from(device), ',');
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)name.len, name.p);
}

unsigned data_plane_describe_devices(
	const struct config *c, const char *root, struct doctor_device ret[CONFIG_MAX_DEVICES])
{
	unsigned n = 0;
	for (unsigned i = 0; i < c->n_ports; i++)
		for (unsigned k = 0; k < n_devices_of(c, i); k++, n++) {
			struct doctor_device *d = &ret[n];
			*d = (struct doctor_device){.port = i, .is_member = c->ports[i].bond};
			snprintf(d->field, sizeof(d->field), "ports[%u].device", i);
			if (d->is_member)
				snprintf(d->field, sizeof(d->field), "ports[%u].bond.members[%u]",
					i, k);
			describe_device(c, root, devices_of(&c->ports[i])[k], d);
		}
	return n;
}

void data_plane_describe_port(const struct config *c, unsigned port, struct port_conf *ret)
{
	static const enum port_bond_mode modes[] = {
		[CONFIG_BOND_8023AD] = PORT_BOND_8023AD,
		[CONFIG_BOND_ACTIVE_BACKUP] = PORT_BOND_ACTIVE_BACKUP,
	};
	const struct config_port *p = &c->ports[port];
	ret->index = port;
	ret->device = p->device;
	if (p->bond) {
		ret->bond = modes[p->bond->mode];
		ret->members = devices_of(p);
		ret->n_members = p->bond->n_members;
	}
	ret->own_mtu = p->mtu;
	ret->mtu = c->ports[config_trunk_longest(c, port)].mtu;
	ret->vlan = p->vlan;
	ret->n_vlans = config_trunk_size(c, port);
	ret->n_queues = c->n_workers;
	ret->by_software = p->steering == CONFIG_STEERING_SOFTWARE;
	ret->has_ip6 = config_trunk_has_ip6(c, port);
	ret->has_kernel = config_trunk_has_kernel(c, port);
}

// What stands behind that option of DPDK, as one word or two; NULL = that argument is none.
static const char *eal_value(const struct config *c, unsigned i, const char *option)
{
	size_t len = strlen(option);
	if (strncmp(c->eal[i], option, len) != 0)
		return NULL;
	if (c->eal[i][len] == '=')
		return c->eal[i] + len + 1;
	return !c->eal[i][len] && i + 1 < c->n_eal ? c->eal[i + 1] : NULL;
}

struct doctor_memory data_plane_describe_memory(const struct config *c)
{
	static const char *const files[] = {"--huge-dir", "--huge-unlink", "--legacy-mem"};
	struct data_plane_eal_lists lists;
	struct doctor_memory m = {
		.hugepages = wants_hugepages(c), .in_memory = true, .prefix = "shunt"};
	if (!m.hugepages)
		m.mib = data_plane_describe_eal(c, &lists).args.memory_mib;
	for (unsigned i = 0; i < c->n_eal; i++) {
		const char *arg = c->eal[i];
		const char *prefix = eal_value(c, i, "--file-prefix");
		if (prefix)
			snprintf(m.prefix, sizeof(m.prefix), "%s", prefix);
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
			m.in_memory &= strncmp(arg, files[k], strlen(files[k])) != 0;
		if (strncmp(arg, "-m", 2) != 0 || (!arg[2] && i + 1 == c->n_eal))
			continue;
		m.mib = (uint32_t)strtoul(arg[2] ? arg + 2 : c->eal[i + 1], NULL, 10);
		m.is_given = true;
	}
	return m;
}

static void print_mac(const uint8_t mac[6], char ret[static 18])
{
	snprintf(ret, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
		mac[5]);
}

static void show_member(const struct port_member *m, struct show_member *ret)
{
	static const char *const states[] = {
		[PORT_MEMBER_GONE] = "gone",
		[PORT_MEMBER_DOWN] = "down",
		[PORT_MEMBER_STANDBY] = "standby",
		[PORT_MEMBER_ACTIVE] = "active",
		[PORT_MEMBER_WAITING] = "waiting",
		[PORT_MEMBER_COLLECTING] = "collecting",
		[PORT_MEMBER_DISTRIBUTING] = "distributing",
	};
	static const uint8_t nobody[6];
	*ret = (struct show_member){
		.driver = m->driver,
		.state = states[m->state],
		.carries = m->state == PORT_MEMBER_ACTIVE || m->state == PORT_MEMBER_DISTRIBUTING,
		.stands_by = m->state == PORT_MEMBER_STANDBY,
		.since_ns = m->since_ns,
		.mbps = m->mbps,
		.n_downs = m->n_downs,
		.rx_frames = m->rx_frames,
		.tx_frames = m->tx_frames,
	};
	print_mac(m->mac, ret->mac);
	if (memcmp(m->partner, nobody, sizeof(nobody)) != 0)
		print_mac(m->partner, ret->partner);
}

void data_plane_show_port(const struct port *port, struct show_port *ret)
{
	static const enum show_link links[] = {
		[PORT_UNKNOWN] = SHOW_LINK_DOWN,
		[PORT_DOWN] = SHOW_LINK_DOWN,
		[PORT_UP] = SHOW_LINK_UP,
		[PORT_GONE] = SHOW_LINK_GONE,
	};
	const struct port_status *s = port_status(port);
	*ret = (struct show_port){
		.driver = port_driver(port),
		.mtu = port_mtu(port),
		.checksums = port_verifies_checksums(port) ? "device" : "software",
		.link = links[s->state],
		.since_ns = s->since_ns,
		.mbps = s->mbps,
		.n_link_downs = s->n_link_downs,
		.n_losses = s->n_losses,
		.merged = s->merged,
		.error = s->error,
		.n_members = port_n_members(port),
	};
	print_mac(port_mac(port), ret->mac);
	for (uint32_t i = 0; i < ret->n_members; i++) {
		struct port_member m = port_member_of(port, i);
		show_member(&m, &ret->members[i]);
	}
}

static void describe_ports(
	const struct config *c, struct port *const *ports, struct worker_conf *conf)
{
	conf->n_ports = c->n_ports;
	for (unsigned i = 0; i < conf->n_ports; i++) {
		const struct config_port *p = &c->ports[i];
		struct host_port *to = &conf->ports[i];
		to->port = ports[i];
		memcpy(to->gateways, p->gateway_ips, sizeof(to->gateways));
		to->first_gateway = p->gateway_choice == CONFIG_GATEWAY_FIRST;
		to->watch = (struct net_watch){.interval_ns = p->watch.interval_ms * NS_PER_MS,
			.n_missed = (uint8_t)p->watch.missed,
			.n_answered = (uint8_t)p->watch.answered};
		to->accept_ra = p->accept_ra;
		to->has_kernel = p->kernel;
		to->n_addresses = p->n_addresses;
		for (unsigned j = 0; j < p->n_addresses; j++)
			to->addresses[j] =
				(struct net_prefix){p->address_ips[j], p->address_lens[j]};
	}
}

static void describe_vips(const struct config *c, struct worker_conf *conf)
{
	for (; conf->n_vips < c->n_vips; conf->n_vips++) {
		const struct config_vip *v = &c->vips[conf->n_vips];
		conf->vips[conf->n_vips] = (struct net_vip){v->range, v->answers};
	}
}

bool data_plane_describe_tunnels(const struct config *c, struct net_tunnels *ret)
{
	static const enum net_tunnel_kind kinds[] = {
		[CONFIG_TUNNEL_IPIP] = NET_TUNNEL_IPIP,
		[CONFIG_TUNNEL_GUE] = NET_TUNNEL_GUE,
	};
	for (; ret->n < c->n_tunnels; ret->n++) {
		const struct config_tunnel *from = &c->tunnels[ret->n];
		struct net_tunnel *to = &ret->list[ret->n];
		to->kind = kinds[from->kind];
		to->port = from->udp_port;
		to->n_from = from->n_from;
		memcpy(to->from, from->sources, from->n_from * sizeof(to->from[0]));
		to->n_hops = from->n_hops;
		memcpy(to->hops, from->relays, from->n_hops * sizeof(to->hops[0]));
	}
	return ret->n > 0;
}

static struct worker_limits limits_of(const struct config *c)
{
	return (struct worker_limits){
		.max_conns = c->max_connections,
		.max_requests = c->max_requests,
		.max_queued = c->max_requests < MAX_QUEUED ? c->max_requests : MAX_QUEUED,
		.max_conns_per_endpoint = MAX_CONNS_PER_ENDPOINT,
		.max_neighbors = 65536,
		.n_chunks = c->max_buffers_mib * CHUNKS_OF_MIB,
		.tcp_send_limit = 256 * 1024,
		.tcp_recv_window = 256 * 1024,
		.window_max = 4 << 20,
	};
}

void data_plane_describe_worker(
	const struct config *c, struct port *const *ports, struct worker_conf *ret)
{
	ret->idle = c->idle == CONFIG_IDLE_POLL ? WORKER_IDLE_POLL : WORKER_IDLE_BACKOFF;
	ret->limits = limits_of(c);
	ret->n_handshake_threads = c->tls_threads;
	ret->n_vip_places = c->n_vip_places;
	ret->terms = config_terms(c);
	describe_ports(c, ports, ret);
	describe_vips(c, ret);
}

void data_plane_take_source_ports(
	const struct config *c, uint32_t generation, struct worker_conf *ret)
{
	ret->n_port_parts = c->takeover_socket ? TAKEOVER_PORT_PARTS : 1;
	ret->port_part = generation % ret->n_port_parts;
}

int data_plane_check_shared(const struct config *c, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		struct port_conf conf = {0};
		data_plane_describe_port(c, i, &conf);
		if (port_check_shared(&conf, reterr))
			return -EINVAL;
	}
	return 0;
}

int data_plane_init_relays(
	const struct config *c, int older_fd, struct relayed_ports *ret, struct lb_err *reterr)
{
	struct port_conf ports[CONFIG_MAX_PORTS] = {0};
	if (!c->takeover_socket)
		return 0;
	for (unsigned i = 0; i < c->n_ports; i++)
		data_plane_describe_port(c, i, &ports[i]);
	return relayed_ports_init(ret, ports, c->n_ports, c->n_workers, older_fd, reterr);
}

struct takeover_devices data_plane_devices(struct relayed_ports *r)
{
	static const struct takeover_device_ops ops = {.lend = relayed_ports_lend,
		.are_lent = relayed_ports_are_lent,
		.may_leave = relayed_ports_may_leave,
		.pass_on = relayed_ports_pass_on,
		.are_passed_on = relayed_ports_are_passed_on,
		.take = relayed_ports_take,
		.drop = relayed_ports_drop,
		.have_older = relayed_ports_have_older,
		.cables = relayed_ports_cables,
		.follow = relayed_ports_follow,
		.tidy = relayed_ports_tidy};
	return (struct takeover_devices){r->relays ? &ops : NULL, r};
}

int data_plane_make_exception(const struct config *c, struct port *const *ports,
	struct exception **ret, struct lb_err *reterr)
{
	struct exception_port kernels[CONFIG_MAX_PORTS] = {0};
	bool any = false;
	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct config_kernel *k = c->ports[i].kernel;
		if (k)
			kernels[i] = (struct exception_port){k->interface, port_mac(ports[i]),
				port_mtu(ports[i]), k->frames_per_s};
		any |= k != NULL;
	}
	if (!any)
		return 0;
	*ret = exception_new(kernels, c->n_ports, c->n_workers, reterr);
	if (!*ret)
		return -EINVAL;
	int rc = exception_start(*ret);
	return rc ? lb_err_set(reterr, "the exception path's thread: %s", strerror(-rc)) : 0;
}

struct tlshs_threads *data_plane_make_handshakes(const struct config *c, struct tlshs_keylog *keys)
{
	struct tlshs_threads_conf conf = {
		.n_threads = c->tls_threads,
		.n_workers = c->n_workers,
		.max_handshakes = WORKER_MAX_HANDSHAKES,
		.max_open = MAX_HANDSHAKES,
		.max_open_of_source = MAX_HANDSHAKES / 4,
		.keys = keys,
	};
	return tlshs_threads_new(&conf);
}

struct lb_frontend_conf *data_plane_describe_frontends(const struct config *c)
{
	struct lb_frontend_conf *list = calloc((size_t)c->n_frontends + 1, sizeof(*list));
	for (unsigned i = 0; list && i < c->n_frontends; i++) {
		const struct lb_frontend_conf f = config_frontend_terms(&c->frontends[i]);
		if (lb_frontend_conf_copy(&list[i], &f))
			continue;
		data_plane_free_frontends(c, list);
		return NULL;
	}
	return list;
}

void data_plane_free_frontends(const struct config *c, struct lb_frontend_conf *list)
{
	for (unsigned i = 0; list && i < c->n_frontends; i++)
		lb_frontend_conf_fini(&list[i]);
	free(list);
}
