// SPDX-License-Identifier: Apache-2.0
#include "dataplane/relayed_ports.h"

#include "lb/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

// The number of one of the older process's ports among ours; -1 = it is none.
static int find(const struct relayed_ports *r, const char *name)
{
	char own[RELAY_MAX_NAME];
	for (uint32_t p = 0; p < r->n_ports; p++)
		if (port_relay_name(r->devices[p], own) && strcmp(own, name) == 0)
			return (int)p;
	return -1;
}

// Who follows has to have all of them: the rest would be nobody's.
static int check(const struct relayed_ports *r, struct lb_err *reterr)
{
	for (uint32_t i = 0; i < r->older.n_ports; i++)
		if (r->older.ports[i].name[0] && find(r, r->older.ports[i].name) < 0)
			return lb_err_set(reterr,
				"ports: %s is the older process's, and missing here",
				r->older.ports[i].name);
	return 0;
}

int relayed_ports_init(struct relayed_ports *r, const char *const *devices, uint32_t n_ports,
	uint32_t n_workers, int older_fd, struct lb_err *reterr)
{
	DCHECK(n_ports <= NET_MAX_PORTS);
	*r = (struct relayed_ports){.n_ports = n_ports, .n_workers = n_workers, .older.fd = -1};
	memcpy(r->devices, devices, n_ports * sizeof(devices[0]));
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

// The number there of a port of ours; -1 = none.
static int number_of(const struct relayed_ports *r, uint32_t port)
{
	char name[RELAY_MAX_NAME];
	if (!r->has_older || !port_relay_name(r->devices[port], name))
		return -1;
	for (uint32_t i = 0; i < r->older.n_ports; i++)
		if (strcmp(r->older.ports[i].name, name) == 0)
			return (int)i;
	return -1;
}

const struct relay_port *relayed_ports_find(const struct relayed_ports *r, uint32_t port)
{
	int i = number_of(r, port);
	return i < 0 ? NULL : &r->older.ports[i];
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
		if (!port_relay_name(r->devices[p], list[p].name))
			continue;
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
	if (relay_memory_make(&memory, list, r->n_ports, r->n_workers, n_workers, reterr) != 0)
		return -EINVAL;
	int fd = fcntl(memory.fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || relays_set(r->relays, RELAY_TO_NEWER, &memory, numbers) != 0) {
		relay_memory_fini(&memory);
		if (fd >= 0)
			close(fd);
		return lb_err_set(reterr, "out of memory for a relay");
	}
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

static bool is_relayed(const struct relayed_ports *r, uint32_t port)
{
	char name[RELAY_MAX_NAME];
	return port_relay_name(r->devices[port], name);
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

void relayed_ports_tidy(void *relayed)
{
	relays_tidy(((struct relayed_ports *)relayed)->relays);
}
