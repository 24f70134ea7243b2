// SPDX-License-Identifier: Apache-2.0
#include "lb/policy/dump.h"

#include "lb/base/twheel.h"
#include "lb/policy/node.h"

void lb_dump_enter(struct lb_dump *d, const char *name, enum lb_state state)
{
	d->enter(d, name, lb_state_name(state));
}

void lb_dump_text(struct lb_dump *d, const char *key, const char *value)
{
	d->text(d, key, value);
}

void lb_dump_number(struct lb_dump *d, const char *key, uint64_t value)
{
	d->number(d, key, value);
}

void lb_dump_timer(struct lb_dump *d, const char *key, const struct twheel *wheel,
	const struct twheel_timer *t)
{
	uint64_t now_ms = twheel_now(wheel) / NS_PER_MS, at_ms = twheel_expires_ns(t) / NS_PER_MS;
	if (twheel_armed(t))
		lb_dump_number(d, key, at_ms > now_ms ? at_ms - now_ms : 0);
}

void lb_dump_leave(struct lb_dump *d)
{
	d->leave(d);
}

void lb_dump_node(struct lb_dump *d, const struct lb_node *node, enum lb_state state)
{
	lb_dump_enter(d, node->ops->name, state);
	if (node->ops->dump)
		node->ops->dump(node, d);
	lb_dump_leave(d);
}
