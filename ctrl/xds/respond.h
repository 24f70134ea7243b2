// SPDX-License-Identifier: Apache-2.0
// What a response does to the cache (PC-*, SW-*, DE-*). Each entry is judged by itself: the good
// ones are used although others are refused (A46). Only a response that contradicts itself, by
// listing something twice (PC-07), is refused as a whole.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"

#include <stdint.h>

struct xds_response;

// Applies it; the watchers are not told yet (news.h). 0, and *ret_nack is NULL for an ACK, or the
// text of the NACK, which the caller frees; -ENOMEM: it is to be sent again.
[[nodiscard]] int xds_respond_apply(
	struct xds_cache *, uint32_t type, const struct xds_response *, char **ret_nack);
