// SPDX-License-Identifier: Apache-2.0
#include "ctrl/takeover/door.h"

#include "ctrl/takeover/peer.h"

#include <event2/event.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *name_of(const struct takeover_door *d)
{
	return d->is_aside ? d->aside : d->path;
}

int takeover_door_open(struct takeover_door *d, const char *path, uint32_t generation,
	bool is_aside, struct event_base *base, takeover_guests_word_fn *on_word, void *ctx,
	struct lb_err *reterr)
{
	*d = (struct takeover_door){.path = path, .is_aside = is_aside};
	takeover_guests_init(&d->guests, base, on_word, ctx);
	int len = snprintf(d->aside, sizeof(d->aside), "%s.%" PRIu32, path, generation);
	if ((size_t)len >= sizeof(d->aside))
		return lb_err_set(reterr, "%s: is too long", path);
	d->fd = takeover_peer_listen(name_of(d), reterr);
	if (d->fd < 0)
		return -EINVAL;
	d->is_open = true;
	socket_file_note(&d->file, name_of(d));
	d->event = event_new(
		base, d->fd, EV_READ | EV_PERSIST, takeover_guests_on_connect, &d->guests);
	if (d->event && event_add(d->event, NULL) == 0)
		return 0;
	takeover_door_close(d);
	return lb_err_set(reterr, "out of memory");
}

int takeover_door_share(struct takeover_door *d, struct lb_err *reterr)
{
	int rc = d->is_open ? socket_file_share(&d->file, d->path, d->aside) : 0;
	if (rc)
		return lb_err_set(reterr, "takeover_socket: %s: %s", d->aside, strerror(-rc));
	d->is_aside = d->is_open;
	return 0;
}

int takeover_door_take(struct takeover_door *d, struct lb_err *reterr)
{
	if (!d->is_aside)
		return 0;
	int rc = socket_file_move(&d->file, d->aside, d->path);
	if (rc)
		return lb_err_set(reterr, "%s: %s", d->path, strerror(-rc));
	d->is_aside = false;
	return 0;
}

void takeover_door_close(struct takeover_door *d)
{
	if (!d->is_open)
		return;
	if (d->event)
		event_free(d->event);
	close(d->fd);
	socket_file_remove(&d->file, d->aside);
	socket_file_remove(&d->file, d->path);
	takeover_guests_close(&d->guests);
	d->is_open = d->is_aside = false;
}
