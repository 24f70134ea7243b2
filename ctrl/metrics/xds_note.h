// SPDX-License-Identifier: Apache-2.0
// What the metrics of gRFC A78 and A88 say of the xDS client (CS-09), counted at one moment.
// Thread: ctrl.
#pragma once

#include "ctrl/res/types.h"
#include "ctrl/xds/federation.h"

#include <stdint.h>

enum xds_cache_state {
	XDS_CACHE_REQUESTED,
	XDS_CACHE_ACKED,
	XDS_CACHE_DOES_NOT_EXIST,
	XDS_CACHE_DOES_NOT_EXIST_BUT_CACHED,
	XDS_CACHE_NACKED,
	XDS_CACHE_NACKED_BUT_CACHED,
	XDS_CACHE_RECEIVED_ERROR,
	XDS_CACHE_RECEIVED_ERROR_BUT_CACHED,
	XDS_CACHE_TIMEOUT,
	XDS_N_CACHE_STATES
};
const char *xds_cache_state_name(enum xds_cache_state);

struct xds_note_authority {
	struct xds_note_authority *next;
	char *name; // owned; NULL = old-style names
	uint64_t n[RES_N_TYPES][XDS_N_CACHE_STATES];
};
struct xds_note_server {
	char *uri; // owned; the second one of a URI has "#2" behind it, and so on
	struct xds_server_info info; // its texts are not there any more
};
struct xds_note {
	struct xds_note_authority *authorities;
	struct xds_note_server *servers;
	uint32_t n_servers, room;
	uint64_t newest_ns[RES_N_TYPES], oldest_ns[RES_N_TYPES]; // updates of values; 0 = none
	bool failed; // out of memory
};

// Of no client (NULL) there is nothing to note. Returns NULL if out of memory.
struct xds_note *xds_note_new(const struct xds_federation *);
void xds_note_free(struct xds_note *); // NULL is fine
// "envoy.config.listener.v3.Listener"
const char *xds_note_type_name(uint32_t type);
