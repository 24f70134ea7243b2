// SPDX-License-Identifier: Apache-2.0
#include "lb/chain_set.h"

#include "lb/route/chain_match.h"

#include <stdlib.h>
#include <string.h>

struct lb_chain_set *lb_chain_set_new(struct lb_chain_match *match, uint32_t n,
	const uint32_t *places, const struct tlv_types *passed)
{
	static const struct tlv_types none;
	size_t size = ((size_t)n + 1) * sizeof(places[0]);
	struct lb_chain_set *s = malloc(sizeof(*s) + size);
	if (!s)
		return NULL;
	s->n_refs = 1;
	s->n = n;
	s->match = match ? lb_chain_match_get(match) : NULL;
	s->passed = passed ? *passed : none;
	memcpy(s->places, places, size);
	return s;
}

struct lb_chain_set *lb_chain_set_of_none(void)
{
	static const uint32_t none[] = {LB_NO_PLACE};
	return lb_chain_set_new(NULL, 0, none, NULL);
}

struct lb_chain_set *lb_chain_set_get(struct lb_chain_set *s)
{
	if (s)
		s->n_refs++;
	return s;
}

void lb_chain_set_put(struct lb_chain_set *s)
{
	if (!s || --s->n_refs)
		return;
	lb_chain_match_put(s->match);
	free(s);
}

const struct lb_inspector *lb_chain_set_inspector(const struct lb_chain_set *s)
{
	return s->match ? lb_chain_match_inspector(s->match) : NULL;
}

bool lb_chain_set_has(const struct lb_chain_set *s, uint32_t place)
{
	for (uint32_t i = 0; i <= s->n; i++)
		if (s->places[i] == place)
			return true;
	return false;
}

uint32_t lb_chain_set_find(const struct lb_chain_set *s, const struct ip_addr *local,
	const struct ip_port *remote, const struct lb_chain_hello *hello)
{
	uint32_t chain = LB_NO_CHAIN;
	if (s->match)
		chain = lb_chain_match_find(s->match, local, remote, hello);
	return s->places[chain == LB_NO_CHAIN ? s->n : chain];
}
