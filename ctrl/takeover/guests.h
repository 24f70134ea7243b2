// SPDX-License-Identifier: Apache-2.0
// Those who have connected and have not said yet what they want. Whoever only looks whether
// somebody is there changes nothing; and since a refusal comes behind the first word, that word
// does not meet a closed socket, at which its sender would not read why.
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/wire.h"

#include <event2/util.h>

#include <stdint.h>

struct event_base;
struct takeover_peer;

#define TAKEOVER_MAX_GUESTS 4 // at a time

// The first word of a guest, which is the callee's from then on.
typedef void takeover_guests_word_fn(
	void *ctx, struct takeover_peer *, const struct takeover_message *);

struct takeover_guests;
struct takeover_guest {
	struct takeover_guests *all;
	struct takeover_peer *peer; // owned; NULL = a free place
	uint64_t until_ns;
};
struct takeover_guests {
	struct event_base *base;
	takeover_guests_word_fn *on_word;
	void *ctx;
	uint64_t now_ns;
	uint64_t log_ns; // when another user may be logged again
	uint64_t n_turned_away; // before they said a word: of other users, or too many
	struct takeover_guest list[TAKEOVER_MAX_GUESTS];
};

void takeover_guests_init(
	struct takeover_guests *, struct event_base *, takeover_guests_word_fn, void *ctx);
// Lets the next one of a listener in; arg: the guests. Another user is told at once why not.
void takeover_guests_on_connect(evutil_socket_t listener, short what, void *arg);
void takeover_guests_tick(struct takeover_guests *, uint64_t now_ns);
// Without a word: whoever wants to take over asks again, and finds another process.
void takeover_guests_close(struct takeover_guests *);
