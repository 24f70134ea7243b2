// SPDX-License-Identifier: Apache-2.0
#include "ctrl/assemble/vhost_numbers.h"

#include "ctrl/assemble/ids.h"
#include "ctrl/assemble/workers.h"
#include "ctrl/base/strmap.h"
#include "lb/base/container_of.h"
#include "lb/base/twheel.h"

#include <stdlib.h>
#include <string.h>

#define REST_NS (600 * NS_PER_SECOND)

struct entry {
	struct strmap_link by_name;
	uint32_t n_users;
	uint16_t number;
	struct lb_vhost_counters before; // what others' requests have counted there
	char name[];
};

struct vhost_numbers {
	const struct workers *workers;
	const struct twheel *wheel;
	struct ids ids; // a number is an id + 1
	struct strmap by_name;
	struct entry *entries[LB_MAX_COUNTED_VHOSTS + 1]; // owned; by number
	uint32_t n_left_out;
};

struct vhost_numbers *vhost_numbers_new(const struct workers *workers, const struct twheel *wheel)
{
	struct vhost_numbers *n = calloc(1, sizeof(*n));
	if (!n)
		return NULL;
	n->workers = workers;
	n->wheel = wheel;
	if (ids_init(&n->ids, LB_MAX_COUNTED_VHOSTS, REST_NS) == 0)
		return n;
	free(n);
	return NULL;
}

void vhost_numbers_free(struct vhost_numbers *n)
{
	if (!n)
		return;
	for (uint32_t i = 0; i <= LB_MAX_COUNTED_VHOSTS; i++)
		free(n->entries[i]);
	strmap_fini(&n->by_name);
	ids_fini(&n->ids);
	free(n);
}

static void gather(struct lb_vhost_counters *to, const struct lb_vhost_counters *from)
{
	to->started += counter_read(&from->started);
	for (int i = 0; i < LB_N_CAUSES; i++)
		to->ended[i] += counter_read(&from->ended[i]);
	for (int i = 0; i < LB_N_ANSWERS; i++)
		to->answers[i] += counter_read(&from->answers[i]);
	histogram_gather(&to->request, &from->request);
}

static void take_away(struct lb_vhost_counters *c, const struct lb_vhost_counters *before)
{
	c->started -= before->started;
	for (int i = 0; i < LB_N_CAUSES; i++)
		c->ended[i] -= before->ended[i];
	for (int i = 0; i < LB_N_ANSWERS; i++)
		c->answers[i] -= before->answers[i];
	histogram_since(&c->request, &before->request);
}

static void sum_up(const struct vhost_numbers *n, uint32_t number, struct lb_vhost_counters *ret)
{
	*ret = (struct lb_vhost_counters){0};
	for (uint32_t w = 0; w < workers_count(n->workers); w++)
		gather(ret, &workers_link(n->workers, w)->vhosts[number]);
}

// Ends before beginnings: one that ends meanwhile counts as in flight.
static bool is_idle(void *ctx, uint32_t id)
{
	const struct vhost_numbers *n = ctx;
	uint64_t in_flight = 0;
	for (uint32_t w = 0; w < workers_count(n->workers); w++) {
		const struct lb_vhost_counters *c = &workers_link(n->workers, w)->vhosts[id + 1];
		for (int i = 0; i < LB_N_CAUSES; i++)
			in_flight -= counter_read(&c->ended[i]);
		in_flight += counter_read(&c->started);
	}
	return in_flight == 0;
}

static struct entry *add(struct vhost_numbers *n, const char *name)
{
	size_t size = strlen(name) + 1;
	struct entry *e = calloc(1, sizeof(*e) + size);
	if (!e)
		return NULL;
	memcpy(e->name, name, size);
	uint64_t now_ns = twheel_now(n->wheel);
	uint32_t id = ids_take_idle(&n->ids, now_ns, UINT32_MAX, is_idle, n);
	if (id == IDS_NONE) {
		free(e);
		return NULL;
	}
	if (strmap_add(&n->by_name, &e->by_name, e->name)) {
		ids_give(&n->ids, id, now_ns);
		free(e);
		return NULL;
	}
	e->number = (uint16_t)(id + 1);
	n->entries[e->number] = e;
	sum_up(n, e->number, &e->before);
	return e;
}

uint16_t vhost_numbers_take(struct vhost_numbers *n, const char *name)
{
	if (!n)
		return 0;
	struct strmap_link *known = strmap_find(&n->by_name, name);
	struct entry *e = known ? CONTAINER_OF(known, struct entry, by_name) : add(n, name);
	if (!e) {
		n->n_left_out++;
		return 0;
	}
	e->n_users++;
	return e->number;
}

void vhost_numbers_give(struct vhost_numbers *n, uint16_t number)
{
	if (!n)
		return;
	if (!number) {
		n->n_left_out--;
		return;
	}
	struct entry *e = n->entries[number];
	if (--e->n_users)
		return;
	strmap_remove(&n->by_name, &e->by_name);
	n->entries[number] = NULL;
	free(e);
	ids_give(&n->ids, number - 1, twheel_now(n->wheel));
}

uint32_t vhost_numbers_end(const struct vhost_numbers *n)
{
	return n ? n->ids.next + 1 : 0;
}

const char *vhost_numbers_name(const struct vhost_numbers *n, uint32_t number)
{
	return n->entries[number] ? n->entries[number]->name : NULL;
}

void vhost_numbers_read(
	const struct vhost_numbers *n, uint32_t number, struct lb_vhost_counters *ret)
{
	sum_up(n, number, ret);
	take_away(ret, &n->entries[number]->before);
}

uint32_t vhost_numbers_left_out(const struct vhost_numbers *n)
{
	return n ? n->n_left_out : 0;
}
