// SPDX-License-Identifier: Apache-2.0
// Applies a response to the cache (PC-*, SW-*, DE-*). It is read bit by bit, over several turns of
// the loop if it is large, and then takes effect at once: nobody sees half of it. Each resource is
// judged by itself: valid ones are used even if others are rejected (A46). Only a response that
// lists a resource twice (PC-07) is rejected as a whole. What nobody subscribes to is skipped
// without decoding it (PC-08).
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"

#include <stdint.h>

struct slice;
struct xds_response;
struct xds_round;

// Begins to apply a response whose head was read; borrowed. One at a time. Returns NULL if out of
// memory.
struct xds_round *xds_round_new(struct xds_cache *, uint32_t type, struct xds_response *);
// The same of what is not the server's word but was kept of it (standby.h), in delta's form: it
// gives a value to those who have none and heard nothing. Its NACK is only logged.
struct xds_round *xds_round_new_kept(struct xds_cache *, uint32_t type, struct xds_response *);
// Returns -EAGAIN if the slice is over and more is to be done. 0: the response has taken effect,
// the watchers are not told yet (news.h), and *ret_nack is NULL for an ACK, or the text of a NACK,
// which the caller frees. -ENOMEM: the server must send it again.
[[nodiscard]] int xds_round_step(struct xds_round *, struct slice *, char **ret_nack);
// Before it has taken effect, too: then nothing of it does. NULL is fine.
void xds_round_free(struct xds_round *);
