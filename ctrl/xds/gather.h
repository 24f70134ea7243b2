// SPDX-License-Identifier: Apache-2.0
// What serves, of all servers, as the file of state/state_file.h is to have it: references, which
// cost no copy of any resource, and which another thread may read from.
// Thread: ctrl; between making and freeing it, whoever has the job.
#pragma once

#include "ctrl/xds/client.h"
#include "ctrl/xds/state/state_writer.h"

struct xds_gathered {
	struct xds_state_job job; // of all that is here
	size_t n_fresh; // servers of which it has what serves now
	// Private:
	struct xds_gathered_part *parts;
	size_t n_parts;
	uint32_t room;
	struct xds_state_part *list;
	bool failed;
	bool in_part;
};

// All clients of something.
typedef void (*xds_each_client_fn)(void *of, void (*fn)(void *ctx, struct xds_client *), void *ctx);

// A server that has not spoken, or not of everything that is asked of it, keeps what the file has
// of it; in_part: once it has spoken it does not, as there is no file. Left out is what its server
// lets hold for a time only, or forbids to keep. Returns NULL if out of memory.
struct xds_gathered *xds_gather(
	xds_each_client_fn, void *of, const char *node_id, uint64_t written_s, bool in_part);
void xds_gathered_free(struct xds_gathered *); // NULL is fine
