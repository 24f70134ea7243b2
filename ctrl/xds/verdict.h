// SPDX-License-Identifier: Apache-2.0
// What becomes of one entry of the cache when a response, or the lack of one, speaks of it: it is
// accepted, refused, gone, or nothing changes (A53, A88). What a response as a whole means is
// respond.c's.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_refused;
struct xds_response_error;
struct xds_variant;

#define XDS_SHOWN_NAME_LEN 1024 // of a name that is not known to be short, in a text

// The variant is the value, in the version that the server has given it now.
void xds_entry_accept(struct xds_entry *, const struct xds_variant *);
// Until when the value holds; 0 = for good. Without memory for that (-ENOMEM) the server has to say
// it again, which it would not if it were told that its version is held (DL-13): it is forgotten.
[[nodiscard]] int xds_entry_hold(struct xds_entry *, uint64_t expires_ns);

// What the server has sent is invalid. refused: what is known of it; counted here, too; may be
// NULL.
void xds_entry_refuse(
	struct xds_entry *, const char *version, const char *why, struct xds_refused *refused);
// It came in a response that is refused as a whole for a name it lists twice, which says nothing of
// the data: what serves goes on serving, whatever the server's features.
void xds_entry_refuse_with_all(struct xds_entry *, const char *version, const char *twice);
// The server says, or shows, that there is no such resource (any more).
void xds_entry_end(struct xds_entry *);
// The server says what is wrong with it (DE-07), in a response of this version.
void xds_entry_report(struct xds_entry *, const char *version, const struct xds_response_error *);
// The resource is refused or gone: what A88 makes of it (DE-02 to DE-04). is_data: NACK, deletion,
// NOT_FOUND and PERMISSION_DENIED; otherwise it is transient. The text is
// xds_entry_set_error()'s.
void xds_entry_fail(struct xds_entry *, enum xds_status, enum xds_code, bool is_data);
// If a deletion was ignored (A53), that is over, and the log says why.
void xds_entry_end_deletion(struct xds_entry *, const char *why);
// No answer came in time (FM-04, FM-08).
void xds_entry_silent(struct xds_entry *);
// RS-04: the time of its value is over. Not even a value whose server is silent or gone outlives
// its TTL.
void xds_entry_expired(struct xds_entry *);
// Its server is not reachable (FM-01), or is again.
void xds_entry_server_failed(struct xds_entry *);
void xds_entry_server_recovered(struct xds_entry *);
