// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/devices.h"

int takeover_devices_lend(
	const struct takeover_devices *d, uint32_t n_workers, int *ret_fd, struct lb_err *reterr)
{
	*ret_fd = -1;
	return d->ops ? d->ops->lend(d->ctx, n_workers, ret_fd, reterr) : 0;
}

bool takeover_devices_are_lent(const struct takeover_devices *d)
{
	return d->ops && d->ops->are_lent(d->ctx);
}

int takeover_devices_may_leave(const struct takeover_devices *d, struct lb_err *reterr)
{
	return d->ops ? d->ops->may_leave(d->ctx, reterr) : 0;
}

void takeover_devices_pass_on(const struct takeover_devices *d)
{
	if (d->ops)
		d->ops->pass_on(d->ctx);
}

bool takeover_devices_are_passed_on(const struct takeover_devices *d, uint64_t now_ns)
{
	return !d->ops || d->ops->are_passed_on(d->ctx, now_ns);
}

int takeover_devices_take(const struct takeover_devices *d, struct lb_err *reterr)
{
	return d->ops ? d->ops->take(d->ctx, reterr) : 0;
}

void takeover_devices_drop(const struct takeover_devices *d, bool newer, uint64_t now_ns)
{
	if (d->ops)
		d->ops->drop(d->ctx, newer, now_ns);
}

bool takeover_devices_have_older(const struct takeover_devices *d)
{
	return d->ops && d->ops->have_older(d->ctx);
}

void takeover_devices_cables(const struct takeover_devices *d, struct lb_cables *ret)
{
	if (d->ops)
		d->ops->cables(d->ctx, ret);
	else
		*ret = (struct lb_cables){0};
}

void takeover_devices_follow(const struct takeover_devices *d, const struct lb_cables *cables)
{
	if (d->ops)
		d->ops->follow(d->ctx, cables);
}

void takeover_devices_tidy(const struct takeover_devices *d)
{
	if (d->ops)
		d->ops->tidy(d->ctx);
}
