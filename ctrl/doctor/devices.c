// SPDX-License-Identifier: Apache-2.0
// The ports' devices: whether they can be opened, and what their link is like.
#include "ctrl/conf/config.h"
#include "ctrl/conf/config_trunk.h"
#include "ctrl/doctor/look.h"

#include <linux/capability.h>
#include <stdio.h>
#include <string.h>

static bool is_interface(const struct doctor_device *d)
{
	return d->kind == DOCTOR_DEVICE_PACKET || d->kind == DOCTOR_DEVICE_XDP;
}

// False = it is none of the kernel's interfaces, or not there, of which check_device() tells.
static bool look_at(const struct doctor_host *h, unsigned device, struct doctor_interface *ret)
{
	const struct doctor_device *d = &h->devices[device];
	*ret = (struct doctor_interface){0};
	return is_interface(d) && h->ops->interface(h->ctx, d->name, ret);
}

// A remedy says what is so, and behind a colon what to do.
static void tell_remedy(const struct doctor_host *h, const struct doctor_device *d)
{
	const char *colon = strstr(d->remedy, ": ");
	int len = colon ? (int)(colon - d->remedy) : (int)strlen(d->remedy);
	doctor_find(h->report, DOCTOR_ERROR, "%s: %s: %.*s; it cannot be opened", d->field, d->name,
		len, d->remedy);
	if (colon)
		doctor_fix(h->report, "%s", colon + 2);
}

void check_device(const struct doctor_host *h)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		const struct doctor_device *d = &h->devices[i];
		struct doctor_interface interface;
		if (d->remedy[0])
			tell_remedy(h, d);
		if (!is_interface(d) || h->ops->interface(h->ctx, d->name, &interface))
			continue;
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: this network namespace has no interface %s; it cannot be opened",
			d->field, d->name);
		doctor_fix(h->report, "iface= one of ip -br link; or ip link set %s netns ...",
			d->name);
	}
}

// Those that ports are opened with on Linux.
static const struct {
	unsigned bit;
	const char *name;
} capability_names[] = {
	{CAP_NET_ADMIN, "CAP_NET_ADMIN"},
	{CAP_NET_RAW, "CAP_NET_RAW"},
	{CAP_SYS_RAWIO, "CAP_SYS_RAWIO"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
};

static void look_at_capabilities(
	const struct doctor_host *h, const char *field, const char *name, uint64_t wanted)
{
	char lacking[128] = "";
	size_t len = 0;
	uint64_t missing = wanted & ~h->ops->capabilities(h->ctx);
	for (size_t i = 0; i < sizeof(capability_names) / sizeof(capability_names[0]); i++)
		if (missing >> capability_names[i].bit & 1)
			len += (size_t)snprintf(lacking + len, sizeof(lacking) - len, "%s%s",
				len ? " " : "", capability_names[i].name);
	if (!missing)
		return;
	doctor_find(h->report, DOCTOR_ERROR,
		"%s: this process lacks %s, which %s takes; it cannot be opened", field, lacking,
		name);
	doctor_fix(h->report,
		"CapabilityBoundingSet=%s and AmbientCapabilities=%s of the unit, or run it as "
		"root",
		lacking, lacking);
}

void check_capabilities(const struct doctor_host *h)
{
	char field[64];
	for (unsigned i = 0; i < h->n_devices; i++)
		look_at_capabilities(
			h, h->devices[i].field, h->devices[i].name, h->devices[i].capabilities);
	for (unsigned i = 0; i < h->config->n_ports; i++) {
		const struct config_kernel *k = h->config->ports[i].kernel;
		snprintf(field, sizeof(field), "ports[%u].kernel", i);
		if (k)
			look_at_capabilities(h, field, k->interface, UINT64_C(1) << CAP_NET_ADMIN);
	}
}

void check_link(const struct doctor_host *h)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		struct doctor_interface interface;
		const struct doctor_device *d = &h->devices[i];
		// A bond goes on with the others.
		enum doctor_severity severity = d->is_member ? DOCTOR_WARNING : DOCTOR_ERROR;
		if (!look_at(h, i, &interface) || (interface.is_up && interface.has_carrier))
			continue;
		if (!interface.is_up) {
			doctor_find(h->report, severity, "%s: %s is down; no frame comes or goes",
				d->field, d->name);
			doctor_fix(h->report, "ip link set %s up", d->name);
			continue;
		}
		doctor_find(h->report, severity, "%s: %s has no carrier; no frame comes or goes",
			d->field, d->name);
		doctor_fix(h->report, "%s",
			interface.is_veth ? "ip link set ... up at the veth's other end"
					  : "the cable, or the switch's port");
	}
}

void check_mtu(const struct doctor_host *h)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		struct doctor_interface interface;
		const struct doctor_device *d = &h->devices[i];
		unsigned port = config_trunk_longest(h->config, d->port);
		int wanted = h->config->ports[port].mtu;
		if (!look_at(h, i, &interface) || interface.mtu >= wanted)
			continue;
		doctor_find(h->report, DOCTOR_ERROR,
			"ports[%u].mtu: %d, and that of %s is %d; long packets are lost, short "
			"ones are not",
			port, wanted, d->name, interface.mtu);
		doctor_fix(h->report, "ip link set %s mtu %d, or mtu: %d of the port", d->name,
			wanted, interface.mtu);
	}
}

static void look_at_merging(const struct doctor_host *h, const struct doctor_device *d,
	const struct doctor_interface *interface)
{
	unsigned merges = interface->offloads & (DOCTOR_OFFLOAD_GRO | DOCTOR_OFFLOAD_LRO);
	if (!merges)
		return;
	const char *which = merges == DOCTOR_OFFLOAD_GRO   ? "gro"
	                    : merges == DOCTOR_OFFLOAD_LRO ? "lro"
	                                                   : "gro and lro";
	doctor_find(h->report, DOCTOR_NOTE,
		"%s: %s merges what it receives (%s); the first segment that is too long is lost, "
		"and shuntd then switches that off",
		d->field, d->name, which);
	doctor_fix(h->report, "ethtool -K %s gro off lro off", d->name);
}

// AF_XDP has no marks for checksums that are still to be made, and a bond does not show those of
// its members: such segments are dropped.
static void look_at_sender(const struct doctor_host *h, const struct doctor_device *d,
	const struct doctor_interface *interface)
{
	struct doctor_interface peer;
	if (!interface->is_veth || !interface->peer[0] ||
		!h->ops->interface(h->ctx, interface->peer, &peer))
		return;
	bool has_marks = d->kind == DOCTOR_DEVICE_PACKET && !d->is_member;
	if (!has_marks && peer.offloads & DOCTOR_OFFLOAD_TX) {
		doctor_find(h->report, DOCTOR_ERROR,
			"%s: %s, where the veth's other end is, leaves checksums to hardware (tx), "
			"which %s doesn't tell; what it sends is dropped",
			d->field, interface->peer, d->is_member ? "a bond" : "AF_XDP");
		doctor_fix(h->report, "ethtool -K %s tx off", interface->peer);
	}
	if (!(peer.offloads & (DOCTOR_OFFLOAD_TSO | DOCTOR_OFFLOAD_GSO)))
		return;
	doctor_find(h->report, DOCTOR_NOTE,
		"%s: %s, where the veth's other end is, sends segments of many frames (tso, gso); "
		"the first one is lost, and shuntd then has it split them",
		d->field, interface->peer);
	doctor_fix(h->report, "ethtool -K %s tso off gso off", interface->peer);
}

void check_offloads(const struct doctor_host *h)
{
	for (unsigned i = 0; i < h->n_devices; i++) {
		struct doctor_interface interface;
		if (!look_at(h, i, &interface))
			continue;
		look_at_merging(h, &h->devices[i], &interface);
		look_at_sender(h, &h->devices[i], &interface);
	}
}

static void look_at_address(
	const struct doctor_host *h, const char *field, const char *text, const struct ip_addr *ip)
{
	char name[IF_NAMESIZE], bare[64];
	if (!h->ops->owner(h->ctx, ip, name))
		return;
	ip_print(ip, bare);
	doctor_find(h->report, DOCTOR_ERROR,
		"%s: the kernel has %s, too, on %s; it answers clients' segments with resets",
		field, text, name);
	doctor_fix(h->report, "ip addr del %s/... dev %s", bare, name);
}

// It sees the frames of its own interfaces alone.
static bool sees_port(const struct doctor_host *h, unsigned port)
{
	for (unsigned i = 0; i < h->n_devices; i++)
		if (h->devices[i].port == h->config->ports[port].carrier &&
			is_interface(&h->devices[i]))
			return true;
	return false;
}

void check_kernel_address(const struct doctor_host *h)
{
	const struct config *c = h->config;
	bool sees_any = false;
	char field[64];
	for (unsigned i = 0; i < c->n_ports; i++) {
		bool sees = sees_port(h, i);
		sees_any |= sees;
		for (unsigned j = 0; sees && j < c->ports[i].n_addresses; j++) {
			snprintf(field, sizeof(field), "ports[%u].addresses[%u]", i, j);
			look_at_address(
				h, field, c->ports[i].addresses[j], &c->ports[i].address_ips[j]);
		}
	}
	for (unsigned i = 0; sees_any && i < c->n_frontends; i++) {
		const struct config_frontend *f = &c->frontends[i];
		if (f->by_listeners || config_port_of(c, &f->address_ip) < c->n_ports)
			continue; // its address is that of a port
		snprintf(field, sizeof(field), "frontends[%u].address", i);
		look_at_address(h, field, f->address, &f->address_ip);
	}
}
