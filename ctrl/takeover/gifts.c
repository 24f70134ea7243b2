// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/gifts.h"

#include "ctrl/takeover/peer.h"
#include "ctrl/takeover/takeover.h"

#include <stdio.h>
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

static void tell_source(void *to, const char *name)
{
	struct takeover_message m = {.kind = TAKEOVER_SOURCE};
	snprintf(m.text, sizeof(m.text), "%s", name);
	takeover_peer_tell(to, &m);
}

void takeover_gifts_sources(const struct takeover_conf *c, struct takeover_peer *to)
{
	if (c->ops->sources)
		c->ops->sources(c->ctx, tell_source, to);
}
