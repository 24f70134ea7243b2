// SPDX-License-Identifier: Apache-2.0
// Applies a response to the cache (PC-*, SW-*, DE-*). Each resource is judged by itself: valid ones
// are used even if others are rejected (A46). Only a response that lists a resource twice (PC-07)
// is rejected as a whole.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/cache.h"

#include <stdint.h>

struct xds_response;

// Applies it, without telling the watchers yet (news.h). Returns 0 with *ret_nack NULL for an ACK,
// or with the text of a NACK, which the caller frees; -ENOMEM: the server must send it again.
[[nodiscard]] int xds_respond_apply(
	struct xds_cache *, uint32_t type, const struct xds_response *, char **ret_nack);
