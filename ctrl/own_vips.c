// SPDX-License-Identifier: Apache-2.0
#include "ctrl/own_vips.h"

#include "ctrl/assemble/assemble.h"
#include "ctrl/conf/config_address.h"
#include "ctrl/conf/config_vips.h"
#include "lb/base/container_of.h"
#include "lb/base/log.h"
#include "lb/base/time.h"
#include "lb/own_ranges.h"

#include <errno.h>
#include <string.h>

#define GRACE_NS (2 * NS_PER_SECOND) // beyond the time that clients have to leave
#define RETRY_NS NS_PER_SECOND // without memory

_Static_assert(LB_MAX_OWN_RANGES >= 2 * CONFIG_MAX_VIPS, "those that are there, and that go");

static bool is_same(const struct config_vip *a, const struct config_vip *b)
{
	return a->range.bits == b->range.bits && ip_eq(&a->range.ip, &b->range.ip);
}

static bool has(const struct config *c, const struct config_vip *v)
{
	for (unsigned i = 0; i < c->n_vips; i++)
		if (is_same(&c->vips[i], v))
			return true;
	return false;
}

// Those in force come first: of an address that is in both kinds they count.
static void tell(struct own_vips *o)
{
	struct lb_own_range list[LB_MAX_OWN_RANGES];
	const struct config *c = o->config;
	uint32_t n = 0;
	for (unsigned i = 0; i < c->n_vips; i++)
		list[n++] = (struct lb_own_range){c->vips[i].range, c->vips[i].answers};
	for (unsigned i = 0; i < o->n_left; i++)
		list[n++] = (struct lb_own_range){o->left[i].vip.range, o->left[i].vip.answers};
	struct lb_own_ranges *ranges = lb_own_ranges_new(list, n, ++o->version);
	uint64_t next_ns = o->n_left ? o->left[0].until_ns : 0;
	if (ranges)
		assembler_set_ranges(o->assembler, ranges);
	else
		next_ns = twheel_now(o->wheel) + RETRY_NS;
	lb_own_ranges_put(ranges);
	if (next_ns)
		twheel_arm(o->wheel, &o->timer, next_ns);
}

// The first n.
static void forget(struct own_vips *o, unsigned n)
{
	o->n_left -= n;
	memmove(o->left, o->left + n, o->n_left * sizeof(o->left[0]));
}

static void fire(struct twheel_timer *t)
{
	struct own_vips *o = CONTAINER_OF(t, struct own_vips, timer);
	unsigned n = 0;
	while (n < o->n_left && o->left[n].until_ns <= twheel_now(o->wheel))
		n++;
	forget(o, n);
	if (n)
		log_info("vips are gone", "prefixes=%u", n);
	tell(o);
}

void own_vips_init(struct own_vips *o, const struct config *config, struct assembler *assembler,
	struct twheel *wheel)
{
	*o = (struct own_vips){
		.config = config, .assembler = assembler, .wheel = wheel, .timer.fire = fire};
}

void own_vips_fini(struct own_vips *o)
{
	if (o->wheel)
		twheel_cancel(o->wheel, &o->timer);
}

int own_vips_check(const struct own_vips *o, const struct config *new, struct lb_err *err)
{
	struct config c = *o->config;
	c.vips = new->vips;
	c.n_vips = new->n_vips;
	if (config_check_vips(&c, err))
		return -EINVAL;
	for (unsigned t = 0; t < c.n_tunnels; t++)
		for (unsigned i = 0; i < c.tunnels[t].n_from; i++)
			for (unsigned k = 0; k < c.n_vips; k++)
				if (config_prefixes_overlap(
					    &c.tunnels[t].sources[i], &c.vips[k].range))
					return lb_err_set(err,
						"vips[%u].prefix: %s overlaps %s of a tunnel, "
						"which needs a restart to change",
						k, c.vips[k].prefix, c.tunnels[t].from[i]);
	return 0;
}

// Where its turn to go comes: a reload may have made the clients' time shorter.
static void add_left(struct own_vips *o, const struct config_vip *v, uint64_t until_ns)
{
	if (o->n_left == CONFIG_MAX_VIPS)
		forget(o, 1);
	unsigned at = o->n_left++;
	for (; at && o->left[at - 1].until_ns > until_ns; at--)
		o->left[at] = o->left[at - 1];
	o->left[at] = (struct own_vips_left){*v, until_ns};
}

void own_vips_change(struct own_vips *o, const struct config_vip *before, unsigned n_before)
{
	const struct config *c = o->config;
	uint64_t until_ns = twheel_now(o->wheel) + c->listener_drain_s * NS_PER_SECOND + GRACE_NS;
	unsigned n_kept = 0;
	for (unsigned i = 0; i < o->n_left; i++)
		if (!has(c, &o->left[i].vip))
			o->left[n_kept++] = o->left[i];
	o->n_left = n_kept;
	for (unsigned i = 0; i < n_before; i++)
		if (!has(c, &before[i]))
			add_left(o, &before[i], until_ns);
	tell(o);
}
