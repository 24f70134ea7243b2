// SPDX-License-Identifier: Apache-2.0
// Client connections without an open stream, by how long they have had none. They are sent away
// after a time (TH-80), and closed earlier where places run short (TH-81);
// docs/decisions/idle-clients.md says why so.
// Thread: the owning worker.
#pragma once

#include "lb/base/list.h"
#include "lb/base/twheel.h"

struct proxy;
struct proxy_client;

struct proxy_idle {
	struct list_link fresh; // never sent a request; the longest connected first
	struct list_link asked; // did; the longest idle first
	struct twheel_timer timer; // not after the first one's time is over; fires early at times
};

void proxy_idle_init(struct proxy_idle *);
void proxy_idle_follow(struct proxy *); // the time has changed, for those who are idle, too
// No stream is open any more, or yet. It ends with list_remove() of client->idle.
void proxy_idle_begin(struct proxy_client *);
// Closes one idle client, if there is any: its place is free soon, at the end of the turn if free
// ones are few.
void proxy_idle_make_room(struct proxy *);
