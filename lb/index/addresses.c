// SPDX-License-Identifier: Apache-2.0
#include "lb/index/addresses.h"

#include <stdlib.h>
#include <string.h>

#define N_FEW 16 // are compared without sorting them

static uint32_t count(const struct ip_port *list, uint32_t n, const struct ip_port *a)
{
	uint32_t found = 0;
	for (uint32_t i = 0; i < n; i++)
		found += ip_port_eq(&list[i], a);
	return found;
}

static bool same_few(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (count(a, n, &b[i]) != count(b, n, &b[i]))
			return false;
	return true;
}

static int compare(const void *a, const void *b)
{
	const struct ip_port *x = a, *y = b;
	int order = memcmp(&x->ip, &y->ip, sizeof(x->ip));
	return order ? order : (x->port > y->port) - (x->port < y->port);
}

// How many stand at the same place in both.
static uint32_t same_in_order(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	uint32_t i = 0;
	while (i < n && ip_port_eq(&a[i], &b[i]))
		i++;
	return i;
}

static bool same_many(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	struct ip_port *sorted = malloc(2 * (size_t)n * sizeof(*sorted));
	if (!sorted)
		return same_few(a, b, n);
	memcpy(sorted, a, n * sizeof(*sorted));
	memcpy(sorted + n, b, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), compare);
	qsort(sorted + n, n, sizeof(*sorted), compare);
	bool same = same_in_order(sorted, sorted + n, n) == n;
	free(sorted);
	return same;
}

// An endpoint has a handful of addresses; pick_first makes one member of many endpoints.
bool lb_addresses_same(const struct ip_port *a, const struct ip_port *b, uint32_t n)
{
	uint32_t done = same_in_order(a, b, n), rest = n - done;
	return rest <= N_FEW ? same_few(a + done, b + done, rest)
	                     : same_many(a + done, b + done, rest);
}
