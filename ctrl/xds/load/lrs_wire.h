// SPDX-License-Identifier: Apache-2.0
// Encodes and decodes the messages of load reporting for lrs.c.
// Thread: ctrl.
#pragma once

#include "lb/base/arena.h"
#include "lb/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xds_load_cluster;
struct xds_node;

// The first message of a stream (LR-02). The caller frees *ret. Returns 0 or -ENOMEM.
[[nodiscard]] int xds_lrs_encode_hello(const struct xds_node *, uint8_t **ret, size_t *ret_len);
// Many servers take no message above 4 MiB.
#define XDS_LRS_MESSAGE_LEN ((size_t)2 << 20)
// A report on those clusters of the list from `first` on that are `sending`, or on the first ones
// of them: as many as go into a message of that length, but at least one. They are `leaving` then.
// Returns 0 or -ENOMEM.
[[nodiscard]] int xds_lrs_encode_report(
	struct xds_load_cluster *first, uint8_t **ret, size_t *ret_len);

// What the server asks for.
struct xds_lrs_settings {
	bool all; // reports on every cluster
	const char **clusters; // else on these; in strcmp order
	size_t n_clusters;
	uint64_t interval_ns; // within the bounds (LR-03)
	struct lb_arena arena;
};
// Returns 0, -ENOMEM, or -EINVAL with the reason: not a LoadStatsResponse, or out of memory.
[[nodiscard]] int xds_lrs_decode_settings(
	const uint8_t *bytes, size_t len, struct xds_lrs_settings *ret, struct lb_err *reterr);
void xds_lrs_settings_fini(struct xds_lrs_settings *); // zeroed is fine
bool xds_lrs_settings_eq(const struct xds_lrs_settings *, const struct xds_lrs_settings *);
bool xds_lrs_settings_want(const struct xds_lrs_settings *, const char *cluster);
