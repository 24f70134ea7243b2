// SPDX-License-Identifier: Apache-2.0
// How a response, or its absence, changes one entry of the cache: accepted, rejected, deleted or
// unchanged (A53, A88). respond.c handles the response as a whole.
// Thread: ctrl.
#pragma once

#include "ctrl/xds/entry.h"

#include <stdbool.h>
#include <stdint.h>

struct xds_constraints;
struct xds_refused;
struct xds_variant;

#define XDS_SHOWN_NAME_LEN 1024 // of a name that is not known to be short, in a text

// Accepts the server's variant, with its present version, as the value.
void xds_entry_accept(struct xds_entry *, const struct xds_variant *);
// The same of what an earlier run kept, which is no word of the server's: the value is stale.
void xds_entry_restore(struct xds_entry *, const struct xds_variant *);
// It is absent (FM-04, FM-08) as an earlier run kept it, until the server speaks of it, or was
// silent for the whole time. Requires xds_entry_may_presume().
void xds_entry_presume_absent(struct xds_entry *);
// Sets when the value expires; 0 = never. Out of memory (-ENOMEM) the value is forgotten, so that
// the server sends it again; it would not if it were told that its version is held (DL-13).
[[nodiscard]] int xds_entry_hold(struct xds_entry *, uint64_t expires_ns);

// The server sent an invalid resource. refused: the resource (counts its own reference); may be
// NULL.
void xds_entry_refuse(
	struct xds_entry *, const char *version, const char *why, struct xds_refused *refused);
// It was in a response that is rejected as a whole for listing a name twice. This says nothing
// about the resource: the value stays in use, whatever the server's features.
void xds_entry_refuse_with_all(struct xds_entry *, const char *version, const char *twice);
// A response was refused unread for being beyond a limit, and may have had it. This says nothing
// about the resource.
void xds_entry_refuse_unread(struct xds_entry *, const char *version, const char *why);
// The server says or shows that the resource does not exist (any more).
void xds_entry_end(struct xds_entry *);
// The server reports an error for it (DE-07).
struct xds_report {
	int32_t code;
	const char *text;
	struct xds_constraints *constraints; // whom it concerns (TP2-T13); NULL = all
};
void xds_entry_report(struct xds_entry *, const char *version, const struct xds_report *);
// The resource is rejected or gone: applies A88 (DE-02 to DE-04). is_data: NACK, deletion,
// NOT_FOUND and PERMISSION_DENIED; any other error is transient. The text was set by
// xds_entry_set_error().
void xds_entry_fail(struct xds_entry *, enum xds_status, enum xds_code, bool is_data);
// Ends an ignored deletion (A53), if there is one, and logs why.
void xds_entry_end_deletion(struct xds_entry *, const char *why);
// No answer arrived in time (FM-04, FM-08).
void xds_entry_silent(struct xds_entry *);
// RS-04: the value's TTL expired, even if its server is silent or gone.
void xds_entry_expired(struct xds_entry *);
// Its server became unreachable (FM-01), or reachable again.
void xds_entry_server_failed(struct xds_entry *);
void xds_entry_server_recovered(struct xds_entry *);
