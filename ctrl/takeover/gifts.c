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

// The newer one reads them once it runs: what its socket holds by then, by some two hundred bytes
// each beyond what the kernel adds, is enough for so many.
#define MAX_SOURCES 128

struct sources {
	struct takeover_peer *to; // NULL = they are only counted
	uint32_t n;
};

static void tell_source(void *ctx, const char *name)
{
	struct sources *s = ctx;
	struct takeover_message m = {.kind = TAKEOVER_SOURCE};
	snprintf(m.text, sizeof(m.text), "%s", name);
	if (s->n == MAX_SOURCES)
		return;
	s->n++;
	if (s->to)
		takeover_peer_tell(s->to, &m);
}

static uint32_t name_sources(const struct takeover_conf *c, struct takeover_peer *to)
{
	struct sources s = {.to = to};
	if (c->ops->sources)
		c->ops->sources(c->ctx, tell_source, &s);
	return s.n;
}

void takeover_gifts_sources(const struct takeover_conf *c, struct takeover_peer *to)
{
	(void)name_sources(c, to);
}

uint32_t takeover_gifts_n_sources(const struct takeover_conf *c)
{
	return name_sources(c, NULL);
}
