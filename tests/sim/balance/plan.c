// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/balance/plan.h"

#include "tests/support/check.h"

#include <stdlib.h>

#define FIRST 0x0a000000 // 10.0.0.0; of IPv6, fd00::

struct ip_port plan_address(uint32_t number)
{
	if (number < PLAN_IP6)
		return (struct ip_port){ip_from_v4(FIRST + number), 80};
	return (struct ip_port){{{[0] = 0xfd, [15] = (uint8_t)number}}, 80};
}

uint32_t plan_number(const struct ip_port *a)
{
	return ip_is_v4(&a->ip) ? ip_to_v4(&a->ip) - FIRST : a->ip.b[15];
}

static const char *past(const char *at, char c)
{
	while (*at == ' ')
		at++;
	return *at == c ? at + 1 : at;
}

static const char *read_endpoint(struct plan *p, const char *at)
{
	struct lb_leaf_endpoint *e = &p->endpoints[p->n_endpoints++];
	char *end;
	assert_true(p->n_endpoints <= PLAN_ENDPOINTS);
	*e = (struct lb_leaf_endpoint){
		.addresses = &p->addresses[p->n_addresses], .weight = 1, .health = LB_LEAF_HEALTHY};
	do {
		uint32_t number = (uint32_t)strtoul(*at == '+' ? at + 1 : at, &end, 10);
		assert_true(number < PLAN_ADDRESSES && p->n_addresses < PLAN_ADDRESSES);
		p->addresses[p->n_addresses++] = plan_address(number);
		e->n_addresses++;
		at = end;
	} while (*at == '+');
	if (*at == 'd') {
		e->health = LB_LEAF_DRAINING;
		at++;
	}
	if (*at == 'w') {
		e->weight = (uint32_t)strtoul(at + 1, &end, 10);
		at = end;
	}
	return past(at, ' ');
}

static const char *read_locality(struct plan *p, const char *at)
{
	struct lb_leaf_locality *l = &p->localities[p->n_localities];
	char *name = p->names[p->n_localities++], *end;
	assert_true(p->n_localities <= PLAN_LOCALITIES);
	size_t len = strcspn(at, "*:");
	assert_true(len > 0 && len < sizeof(p->names[0]));
	memcpy(name, at, len);
	name[len] = 0;
	at += len;
	*l = (struct lb_leaf_locality){
		.name = str_from(name), .weight = 1, .endpoints = &p->endpoints[p->n_endpoints]};
	if (*at == '*') {
		l->weight = (uint32_t)strtoul(at + 1, &end, 10);
		at = end;
	}
	assert_int_equal(*at, ':');
	at = past(at + 1, ' ');
	while (*at >= '0' && *at <= '9') {
		at = read_endpoint(p, at);
		l->n_endpoints++;
	}
	return at;
}

void plan_read(struct plan *p, const char *at)
{
	p->n_priorities = p->n_localities = p->n_endpoints = p->n_addresses = 0;
	while (*at) {
		struct lb_leaf_priority *priority = &p->priorities[p->n_priorities++];
		assert_true(p->n_priorities <= PLAN_PRIORITIES);
		*priority = (struct lb_leaf_priority){&p->localities[p->n_localities], 0};
		for (;;) {
			at = read_locality(p, past(at, ' '));
			priority->n_localities++;
			if (*at != ',')
				break;
			at++;
		}
		assert_true(*at == ';' || !*at);
		at = past(at, ';');
		at = past(at, ' ');
	}
}

uint32_t plan_priority_of(const struct plan *p, uint32_t number)
{
	const struct ip_port a = plan_address(number);
	for (uint32_t i = 0; i < p->n_priorities; i++)
		for (uint32_t j = 0; j < p->priorities[i].n_localities; j++) {
			const struct lb_leaf_locality *l = &p->priorities[i].localities[j];
			for (uint32_t k = 0; k < l->n_endpoints; k++)
				for (uint32_t m = 0; m < l->endpoints[k].n_addresses; m++)
					if (ip_port_eq(&l->endpoints[k].addresses[m], &a))
						return i;
		}
	return UINT32_MAX;
}
