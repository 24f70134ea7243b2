// SPDX-License-Identifier: Apache-2.0
#include "ctrl/conf/config_kernel.h"

#include "ctrl/conf/config.h"
#include "ctrl/conf/config_numbers.h"

#include <errno.h>
#include <string.h>

// As the kernel has it (dev_valid_name); and no pattern, from which it would make a name itself.
static bool is_name(const char *name)
{
	return strlen(name) <= CONFIG_MAX_INTERFACE && strcmp(name, ".") != 0 &&
	       strcmp(name, "..") != 0 && !strpbrk(name, "/:% \t\n\v\f\r");
}

static bool is_interface_of(const char *device, const char *name)
{
	static const char option[] = ",iface=";
	const char *at = device ? strstr(device, option) : NULL;
	size_t len = strlen(name);
	if (!at || strncmp(at + strlen(option), name, len) != 0)
		return false;
	char end = at[strlen(option) + len];
	return !end || end == ',';
}

// Of a port, or a bond's member; also of the port whose frames it would have.
static bool is_of_a_device(const struct config *c, const char *name)
{
	for (unsigned i = 0; i < c->n_ports; i++) {
		const struct config_bond *b = c->ports[i].bond;
		if (is_interface_of(c->ports[i].device, name))
			return true;
		for (unsigned m = 0; b && m < b->n_members; m++)
			if (is_interface_of(b->members[m], name))
				return true;
	}
	return false;
}

static int check(const struct config *c, unsigned i, struct lb_err *reterr)
{
	struct config_kernel *k = c->ports[i].kernel;
	// Its interface is one process's, and two would give each other's segments to the kernel.
	if (c->takeover_socket)
		return lb_err_set(reterr, "cannot be taken over: leave out takeover_socket");
	if (!is_name(k->interface))
		return lb_err_set(
			reterr, "interface: '%s' is not an interface's name", k->interface);
	if (strcmp(k->interface, "lo") == 0 || is_of_a_device(c, k->interface))
		return lb_err_set(reterr, "interface: '%s' is there already, and not made for this",
			k->interface);
	for (unsigned j = 0; j < i; j++)
		if (c->ports[j].kernel && strcmp(c->ports[j].kernel->interface, k->interface) == 0)
			return lb_err_set(
				reterr, "interface: '%s' is that of ports[%u]", k->interface, j);
	return config_number_check(CONFIG_KERNEL_RATE, k->rate, &k->frames_per_s, reterr);
}

int config_check_kernels(struct config *c, struct lb_err *reterr)
{
	for (unsigned i = 0; i < c->n_ports; i++)
		if (c->ports[i].kernel && check(c, i, reterr))
			return lb_err_within(reterr, "ports[%u].kernel", i);
	return 0;
}
