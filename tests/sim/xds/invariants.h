// SPDX-License-Identifier: Apache-2.0
// What holds for every configuration that is ever delivered, whatever the servers do. Aggregates
// are flattened again here, by name and without any of the manager's state.
// Thread: the simulation's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct xds_config;
struct xds_federation;

// CHECKs. held: clusters, by number, that requests may have held of late.
void check_config(const struct xds_config *, bool pinned, uint32_t held);
// Each part is what the client has of it now, and what is missing the client does not have: nothing
// is of another moment (A74).
void check_moment(const struct xds_config *, const struct xds_federation *);
// One that is delivered while another waits: it is the one before, but for newer endpoints of
// clusters that are what they were.
void check_meanwhile(
	const struct xds_config *before, const struct xds_config *, const struct xds_federation *);
// Whole answers of name servers, and nothing else, are in it: said[host][bits of its addresses].
void check_names(const struct xds_config *, const bool said[][1 << 6]);
