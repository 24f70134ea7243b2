// SPDX-License-Identifier: Apache-2.0
#include "dataplane/relayed_ports.h"

#include "dataplane/port_cable.h"
#include "lb/base/check.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// Whether one of the older process's ports is among ours; any: in whatever VLAN.
static bool has(const struct relayed_ports *r, const struct relay_port *its, bool any)
{
	for (uint32_t p = 0; p < r->n_ports; p++)
		if ((any || r->names[p].vlan == its->vlan) &&
			strcmp(r->names[p].device, its->name) == 0)
			return true;
	return false;
}

// Their addresses begin with a digit; an interface's name may have a sign.
static bool is_cards(const char *name)
{
	return isxdigit((unsigned char)name[0]);
}

static bool is_bond(const char *name)
{
	return is_cards(name) && strchr(name, '+');
}

// Up to a sign or the end: a card of a name, or all of one that is no cards'.
static size_t card_len(const char *name)
{
	return is_cards(name) ? strcspn(name, "+") : strlen(name);
}

static bool has_card(const char *name, const char *card)
{
	size_t len = card_len(card);
	for (const char *at = name;; at++) {
		if (card_len(at) == len && strncmp(at, card, len) == 0)
			return true;
		at += card_len(at);
		if (!*at)
			return false;
	}
}

// A card of that port which is in another one of ours, which is a bond, or by itself; NULL = none.
static const char *find_card(
	const struct relayed_ports *r, const struct relay_port *its, const char **ret_ours)
{
	for (const char *card = its->name;; card++) {
		for (uint32_t p = 0; p < r->n_ports; p++) {
			*ret_ours = r->names[p].device;
			if (strcmp(*ret_ours, its->name) != 0 && has_card(*ret_ours, card))
				return card;
		}
		card += card_len(card);
		if (!*card)
			return NULL;
	}
}

static int blame_lack(
	const struct relayed_ports *r, const struct relay_port *its, struct lb_err *reterr)
{
	static const char why[] = "is the older process's, and missing here";
	const char *ours, *card = has(r, its, true) ? NULL : find_card(r, its, &ours);
	if (card)
		return lb_err_set(reterr, "ports: %s is the older process's, and here %.*s is %s",
			its->name, (int)card_len(card), card,
			is_bond(ours) ? is_bond(its->name) ? "in another bond" : "in a bond"
				      : "alone");
	if (its->vlan)
		return lb_err_set(reterr, "ports: VLAN %u of %s %s", its->vlan, its->name, why);
	return lb_err_set(reterr, "ports: %s %s%s", its->name,
		has(r, its, true) ? "without a VLAN " : "", why);
}

// Who follows has to have all of them: the rest would be nobody's.
static int check(const struct relayed_ports *r, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < r->older.n_ports; i++) {
		const struct relay_port *its = &r->older.ports[i];
		if (its->name[0] && !has(r, its, false))
			return blame_lack(r, its, reterr);
	}
	return 0;
}

int relayed_ports_init(struct relayed_ports *r, const struct port_conf *ports, uint32_t n_ports,
	uint32_t n_workers, int older_fd, struct lb_err *reterr)
{
	DCHECK(n_ports <= NET_MAX_PORTS);
	*r = (struct relayed_ports){.n_ports = n_ports, .n_workers = n_workers, .older.fd = -1};
	for (uint32_t p = 0; p < n_ports; p++) {
		r->names[p].vlan = ports[p].vlan;
		if (!port_relay_name(&ports[p], r->names[p].device))
			r->names[p].device[0] = '\0';
	}
	r->relays = relays_new(n_workers);
	if (!r->relays)
		return lb_err_set(reterr, "out of memory for relays");
	if (older_fd < 0)
		return 0;
	int rc = relay_memory_map(&r->older, older_fd, reterr);
	r->has_older = rc == 0;
	if (rc == 0 && r->older.n_newer != n_workers)
		rc = lb_err_set(
			reterr, "the older process's relay is for %u workers", r->older.n_newer);
	return rc ? rc : check(r, reterr);
}

void relayed_ports_fini(struct relayed_ports *r)
{
	if (r->has_older)
		relay_memory_fini(&r->older);
	relays_free(r->relays);
	*r = (struct relayed_ports){.older.fd = -1};
}

const struct relay_port *relayed_ports_find(const struct relayed_ports *r, uint32_t port)
{
	const struct relay_port *found = NULL;
	if (!r->has_older || !r->names[port].device[0])
		return NULL;
	for (uint32_t i = 0; i < r->older.n_ports; i++) {
		const struct relay_port *its = &r->older.ports[i];
		if (strcmp(its->name, r->names[port].device) != 0)
			continue;
		if (its->vlan == r->names[port].vlan)
			return its;
		found = its;
	}
	return found;
}

// The number there of a port of ours; -1 = none.
static int number_of(const struct relayed_ports *r, uint32_t port)
{
	const struct relay_port *its = relayed_ports_find(r, port);
	return its && its->vlan == r->names[port].vlan ? (int)(its - r->older.ports) : -1;
}

int relayed_ports_begin(struct relayed_ports *r, struct port *const *ports)
{
	int numbers[NET_MAX_PORTS];
	memcpy(r->ports, ports, r->n_ports * sizeof(ports[0]));
	if (!r->has_older)
		return 0;
	for (uint32_t p = 0; p < NET_MAX_PORTS; p++)
		numbers[p] = p < r->n_ports ? number_of(r, p) : -1;
	int rc = relays_set(r->relays, RELAY_TO_OLDER, &r->older, numbers);
	r->has_older = rc != 0; // else it is theirs
	return rc;
}

static bool is_relayed(const struct relayed_ports *r, uint32_t port)
{
	return r->names[port].device[0];
}

int relayed_ports_may_leave(const void *relayed, struct lb_err *reterr)
{
	const struct relayed_ports *r = relayed;
	for (uint32_t p = 0; p < r->n_ports; p++) {
		const char *name = r->names[p].device;
		const char *why = is_relayed(r, p) ? port_why_stays(r->ports[p]) : NULL;
		if (why)
			return lb_err_set(
				reterr, "%s%s %s", is_bond(name) ? "a card of " : "", name, why);
	}
	return 0;
}

int relayed_ports_lend(void *relayed, uint32_t n_workers, int *ret_fd, struct lb_err *reterr)
{
	struct relayed_ports *r = relayed;
	struct relay_port list[NET_MAX_PORTS] = {0};
	struct relay_memory memory;
	int numbers[NET_MAX_PORTS];
	bool any = false;
	*ret_fd = -1;
	memset(numbers, -1, sizeof(numbers));
	for (uint32_t p = 0; p < r->n_ports && r->relays; p++) {
		if (!is_relayed(r, p))
			continue;
		memcpy(list[p].name, r->names[p].device, sizeof(list[p].name));
		memcpy(list[p].mac, port_mac(r->ports[p]), sizeof(list[p].mac));
		list[p].mtu = port_mtu(r->ports[p]);
		list[p].vlan = port_vlan(r->ports[p]);
		numbers[p] = (int)p;
		any = true;
	}
	if (!any)
		return 0;
	if (!n_workers)
		return lb_err_set(reterr, "a process of its version cannot take devices over");
	if (relayed_ports_may_leave(r, reterr) != 0)
		return -EINVAL;
	if (relay_memory_make(&memory, list, r->n_ports, r->n_workers, n_workers, reterr) != 0)
		return -EINVAL;
	int fd = fcntl(memory.fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || relays_set(r->relays, RELAY_TO_NEWER, &memory, numbers) != 0) {
		relay_memory_fini(&memory);
		if (fd >= 0)
			close(fd);
		return lb_err_set(reterr, "out of memory for a relay");
	}
	for (uint32_t p = 0; p < r->n_ports; p++)
		if (is_relayed(r, p))
			port_get_ready(r->ports[p]);
	*ret_fd = fd;
	return 0;
}

bool relayed_ports_are_lent(const void *relayed)
{
	return relays_has(((const struct relayed_ports *)relayed)->relays, RELAY_TO_NEWER);
}

bool relayed_ports_have_older(const void *relayed)
{
	return relays_has(((const struct relayed_ports *)relayed)->relays, RELAY_TO_OLDER);
}

void relayed_ports_pass_on(void *relayed)
{
	struct relayed_ports *r = relayed;
	for (uint32_t p = 0; p < r->n_ports; p++)
		if (is_relayed(r, p))
			port_pass_on(r->ports[p]);
}

bool relayed_ports_are_passed_on(void *relayed, uint64_t now_ns)
{
	struct relayed_ports *r = relayed;
	bool all = true;
	for (uint32_t p = 0; p < r->n_ports; p++)
		all &= !is_relayed(r, p) || port_is_passed_on(r->ports[p], now_ns);
	return all;
}

int relayed_ports_take(void *relayed, struct lb_err *reterr)
{
	struct relayed_ports *r = relayed;
	int rc = 0;
	for (uint32_t p = 0; p < r->n_ports && rc == 0; p++)
		rc = port_take(r->ports[p], reterr);
	return rc;
}

void relayed_ports_drop(void *relayed, bool newer, uint64_t now_ns)
{
	struct relayed_ports *r = relayed;
	relays_drop(r->relays, newer ? RELAY_TO_NEWER : RELAY_TO_OLDER);
	for (uint32_t p = 0; p < r->n_ports && newer; p++)
		port_take_back(r->ports[p], now_ns);
}

void relayed_ports_cables(const void *relayed, struct lb_cables *ret)
{
	const struct relayed_ports *r = relayed;
	*ret = (struct lb_cables){0};
	for (uint32_t p = 0; p < r->n_ports && ret->n < LB_MAX_CABLES; p++)
		ret->n += port_cable_get(r->ports[p], &ret->list[ret->n]);
}

void relayed_ports_follow(void *relayed, const struct lb_cables *cables)
{
	struct relayed_ports *r = relayed;
	for (uint32_t p = 0; p < r->n_ports; p++)
		port_follow(r->ports[p], cables);
}

void relayed_ports_tidy(void *relayed)
{
	relays_tidy(((struct relayed_ports *)relayed)->relays);
}
