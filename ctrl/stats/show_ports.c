// SPDX-License-Identifier: Apache-2.0
// show ports: each device, whether it and its link are there, who brings its frames to the workers
// they belong to, and what all workers together counted on it.
#include "ctrl/assemble/workers.h"
#include "ctrl/conf/config.h"
#include "ctrl/stats/show_inside.h"
#include "ctrl/stats/show_json.h"
#include "lb/base/twheel.h"

#include <stdio.h>
#include <string.h>

static const struct counter_set *port_group(
	const struct lb_link *link, const char *kind, uint32_t port)
{
	char name[24];
	snprintf(name, sizeof(name), "%s%u", kind, port);
	for (uint32_t g = 0; g < link->n_groups; g++)
		if (strcmp(link->groups[g].name, name) == 0)
			return &link->groups[g].set;
	return NULL;
}

// kind: of the groups of that port.
static void add_counters(
	json_t *row, const struct workers *workers, const char *kind, uint32_t port)
{
	const struct counter_set *first = port_group(workers_link(workers, 0), kind, port);
	for (uint32_t c = 0; first && c < first->n; c++) {
		uint64_t sum = 0;
		for (uint32_t w = 0; w < workers_count(workers); w++) {
			const struct counter_set *set =
				port_group(workers_link(workers, w), kind, port);
			sum += set ? counter_read(&set->values[c]) : 0;
		}
		show_set_u64(row, first->names[c], sum);
	}
}

static const char *const link_names[] = {
	[SHOW_LINK_DOWN] = "down",
	[SHOW_LINK_UP] = "up",
	[SHOW_LINK_GONE] = "gone",
};

static void add_link(json_t *row, const struct show *s, const struct show_port *p)
{
	uint64_t now_ns = twheel_now(s->conf.wheel);
	bool known = p->mbps && p->link == SHOW_LINK_UP;
	show_set_text(row, "link", link_names[p->link]);
	json_object_set_new(row, "speed_mbps", known ? json_integer(p->mbps) : json_null());
	json_object_set_new(row, "since_s", json_real(show_seconds(now_ns - p->since_ns)));
	show_set_u64(row, "link_downs", p->n_link_downs);
	show_set_u64(row, "losses", p->n_losses);
	show_set_text(row, "error", p->error);
	show_set_text(row, "merged", p->merged);
}

static void add_gateways(json_t *row, const struct config_port *c, const struct show_port *p)
{
	char list[CONFIG_MAX_GATEWAYS * (IP_PORT_TEXT_MAX + 12)] = "", text[IP_PORT_TEXT_MAX];
	uint64_t n_downs = 0;
	size_t len = 0;
	for (unsigned i = 0; i < c->n_gateway_ips; i++) {
		n_downs += p->gateways[i].n_downs;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s %s", i ? ", " : "",
			ip_print(&c->gateway_ips[i], text),
			lb_gateway_state_name(p->gateways[i].state));
	}
	show_set_text(row, "gateways", list);
	show_set_u64(row, "gateway_downs", n_downs);
}

static const char *mode_of(const struct config_port *c)
{
	static const char *const names[] = {
		[CONFIG_BOND_8023AD] = "802.3ad",
		[CONFIG_BOND_ACTIVE_BACKUP] = "active-backup",
	};
	return c->bond ? names[c->bond->mode] : "";
}

static json_t *member_row(const struct show *s, const char *device, const struct show_member *m)
{
	json_t *row = json_object();
	bool known = m->mbps && m->carries;
	show_set_text(row, "device", device);
	show_set_text(row, "driver", m->driver);
	show_set_text(row, "mac", m->mac);
	show_set_text(row, "state", m->state);
	json_object_set_new(row, "speed_mbps", known ? json_integer(m->mbps) : json_null());
	json_object_set_new(
		row, "since_s", json_real(show_seconds(twheel_now(s->conf.wheel) - m->since_ns)));
	show_set_u64(row, "downs", m->n_downs);
	show_set_text(row, "partner", m->partner);
	show_set_u64(row, "rx_frames", m->rx_frames);
	show_set_u64(row, "tx_frames", m->tx_frames);
	return row;
}

// In a line for tables, and with all that is known of each.
static void add_bond(
	json_t *row, const struct show *s, const struct config_port *c, const struct show_port *p)
{
	char list[CONFIG_MAX_MEMBERS * 96] = "";
	json_t *rows = json_array();
	uint64_t n_downs = 0;
	size_t len = 0;
	for (uint32_t i = 0; i < p->n_members; i++) {
		const char *device = c->bond->members[i];
		// Its arguments are long: the first one, of interfaces, says which it is.
		size_t n = strcspn(device, ",");
		n += device[n] ? 1 + strcspn(device + n + 1, ",") : 0;
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.*s %s", i ? "; " : "",
			(int)(n < 64 ? n : 64), device, p->members[i].state);
		n_downs += p->members[i].n_downs;
		json_array_append_new(rows, member_row(s, device, &p->members[i]));
	}
	show_set_text(row, "bond", mode_of(c));
	show_set_text(row, "members", list);
	show_set_u64(row, "member_downs", n_downs);
	json_object_set_new(row, "bond_members", rows);
}

const char *show_frontend_down(const struct show *s, uint32_t frontend, char *text, size_t size)
{
	const struct ip_addr *ip = &s->conf.config->frontends[frontend].address_ip;
	uint32_t port = config_port_of(s->conf.config, ip);
	text[0] = '\0';
	if (port == s->conf.config->n_ports || s->conf.ports[port].link == SHOW_LINK_UP)
		return text;
	bool gone = s->conf.ports[port].link == SHOW_LINK_GONE;
	const char *why = s->conf.ports[port].error;
	snprintf(text, size, "port %u: %s%s%s", port,
		gone ? "the device is gone" : "there is no link", gone && why[0] ? ": " : "",
		gone ? why : "");
	return text;
}

json_t *show_ports(const struct show *s, struct show_args *args)
{
	json_t *rows = json_array();
	for (uint32_t i = 0; rows && i < s->conf.config->n_ports; i++) {
		const struct config_port *p = &s->conf.config->ports[i];
		const struct show_port *more = &s->conf.ports[i];
		json_t *row = json_object();
		show_set_u64(row, "port", i);
		show_set_text(row, "device", p->device);
		show_set_text(row, "driver", more->driver);
		show_set_text(row, "mac", more->mac);
		show_set_u64(row, "mtu", more->mtu);
		show_set_u64(row, "vlan", p->vlan);
		show_set_text(row, "checksums", more->checksums);
		show_set_u64(row, "queues", workers_count(s->conf.workers));
		show_set_text(row, "steering", s->conf.steering(s->conf.ctx_ports, i));
		add_link(row, s, more);
		add_counters(row, s->conf.workers, "port", i);
		add_gateways(row, p, more);
		add_bond(row, s, p, more);
		show_set_text(row, "kernel", p->kernel ? p->kernel->interface : "");
		add_counters(row, s->conf.workers, "kernel", i);
		json_array_append_new(rows, row);
	}
	return rows;
}
