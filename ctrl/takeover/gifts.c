// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/gifts.h"

#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"

#include <unistd.h>

void takeover_gifts_resources(const struct takeover_conf *c, struct takeover_peer *to)
{
	int fd = c->ops->resources ? c->ops->resources(c->ctx) : -1;
	if (fd < 0)
		return;
	takeover_peer_give(to, &(struct takeover_message){.kind = TAKEOVER_RESOURCES}, fd);
	close(fd);
}

void takeover_gifts_listeners(const struct takeover_conf *c, struct takeover_peer *to)
{
	int fds[TAKEOVER_MAX_LISTENERS];
	uint32_t n = c->ops->listeners(c->ctx, fds);
	for (uint32_t i = 0; i < n; i++)
		takeover_peer_give(
			to, &(struct takeover_message){.kind = TAKEOVER_LISTENER}, fds[i]);
}
