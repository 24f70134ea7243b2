// SPDX-License-Identifier: Apache-2.0
// The socket at which a process that serves can be taken over, and one end of a talk over it. Only
// this user's processes and root's are talked to.
// Thread: ctrl.
#pragma once

#include "ctrl/takeover/wire.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_base;
struct takeover_peer;

// Made at this path, for this user alone. What a process that died has left is replaced. Returns
// the descriptor, or -EINVAL with reterr.
[[nodiscard]] int takeover_peer_listen(const char *path, struct lb_err *reterr);
// Waits for timeout_s if many wait there already; 0 = not at all. Returns the descriptor, -ENOENT
// if nobody listens there, or -EINVAL with reterr.
[[nodiscard]] int takeover_peer_connect(
	const char *path, unsigned timeout_s, struct lb_err *reterr);
// The next who connects: a descriptor, or negative = nobody who may: -EPERM for another user, who
// has been told so. *ret_uid: whose it is, unless nobody was there.
[[nodiscard]] int takeover_peer_accept(int listener, uid_t *ret_uid);

// That it is refused, and closes it.
void takeover_peer_turn_away(int fd, const char *why);
// 0 or negative: the other end is gone.
int takeover_peer_say(int fd, const struct takeover_message *);
// Waits; 0, or negative: the other end is gone, silent for timeout_s, or speaks nonsense.
[[nodiscard]] int takeover_peer_hear(int fd, unsigned timeout_s, struct takeover_message *ret);

// The same, with a descriptor that came with it, which is the caller's; -1 = none did.
[[nodiscard]] int takeover_peer_hear_with(
	int fd, unsigned timeout_s, struct takeover_message *ret, int *ret_given);

struct takeover_peer_events {
	// fd: what came with it, borrowed for the call; -1 = nothing.
	void (*on_message)(void *ctx, const struct takeover_message *, int fd);
	// It has gone, or spoke nonsense: the peer is to be freed. Called once.
	void (*on_end)(void *ctx);
};
// Takes the descriptor, on failure too. NULL = out of memory.
struct takeover_peer *takeover_peer_new(
	struct event_base *, int fd, const struct takeover_peer_events *, void *ctx);
// From now on events are told to somebody else; also within one of them.
void takeover_peer_hand_on(struct takeover_peer *, const struct takeover_peer_events *, void *ctx);
void takeover_peer_free(struct takeover_peer *); // NULL is fine
// To the other end. That it is gone is told by on_end().
void takeover_peer_tell(struct takeover_peer *, const struct takeover_message *);
void takeover_peer_refuse(struct takeover_peer *, const char *why);
void takeover_peer_give(
	struct takeover_peer *, const struct takeover_message *, int fd); // -1: alike
// What it says next is that it refuses, though nobody has read that yet.
bool takeover_peer_refuses(const struct takeover_peer *);
pid_t takeover_peer_pid_of(const struct takeover_peer *);
