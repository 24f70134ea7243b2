// SPDX-License-Identifier: Apache-2.0
#include "dataplane/pci_addr.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

// Moves *at behind the digits. False = none, or more than max.
static bool read_hex(const char **at, uint32_t max, uint32_t *ret)
{
	uint64_t value = 0;
	const char *p = *at;
	for (; is_hex(*p) && value <= UINT32_MAX; p++)
		value = value * 16 + (uint32_t)(*p <= '9' ? *p - '0' : (*p | 0x20) - 'a' + 10);
	if (p == *at || value > max)
		return false;
	*at = p;
	*ret = (uint32_t)value;
	return true;
}

// "BUS:DEVICE.FUNCTION" at *at, which moves behind it.
static bool read_place(const char **at, struct pci_addr *ret)
{
	uint32_t bus, device, function;
	if (!read_hex(at, 0xff, &bus) || *(*at)++ != ':' || !read_hex(at, 0x1f, &device) ||
		*(*at)++ != '.' || !read_hex(at, 7, &function))
		return false;
	ret->bus = (uint8_t)bus;
	ret->device = (uint8_t)device;
	ret->function = (uint8_t)function;
	return **at == 0 || **at == ',' || **at == '/';
}

static const char *start_of(const char *devargs)
{
	static const char *const prefixes[] = {"pci:", "bus=pci,addr="};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(devargs, prefixes[i], strlen(prefixes[i])) == 0)
			return devargs + strlen(prefixes[i]);
	return devargs;
}

static bool read_addr(const char **at, struct pci_addr *ret)
{
	const char *start = *at;
	*ret = (struct pci_addr){0};
	if (read_place(at, ret))
		return true;
	*at = start;
	return read_hex(at, UINT32_MAX, &ret->domain) && *(*at)++ == ':' && read_place(at, ret);
}

bool pci_addr_parse(const char *devargs, struct pci_addr *ret)
{
	const char *at = start_of(devargs);
	return read_addr(&at, ret);
}

const char *pci_addr_print(const struct pci_addr *a, char text[PCI_ADDR_TEXT_MAX])
{
	snprintf(text, PCI_ADDR_TEXT_MAX, "%04x:%02x:%02x.%x", a->domain, a->bus, a->device,
		a->function);
	return text;
}

bool pci_addr_eq(const struct pci_addr *a, const struct pci_addr *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->device == b->device &&
	       a->function == b->function;
}

const char *pci_addr_skip(const char *devargs)
{
	const char *at = start_of(devargs);
	struct pci_addr addr;
	return read_addr(&at, &addr) && *at ? at + 1 : "";
}
