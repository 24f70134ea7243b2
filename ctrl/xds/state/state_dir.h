// SPDX-License-Identifier: Apache-2.0
// The file of state_file.h in its directory, whole or not at all: it is replaced by another name's
// rename, once that is on the disk.
// Thread: any; these wait for the disk.
#pragma once

#include "ctrl/xds/state/state_file.h"

#define XDS_STATE_NAME "xds-state"

// Makes the directory this process's, until it ends or releases it: two would write one file.
// Nothing in the directory is changed. Returns the claim (>= 0), -EWOULDBLOCK if another one has
// it, or another negative errno; reterr says why.
[[nodiscard]] int xds_state_claim(const char *directory, struct lb_err *reterr);
void xds_state_release(int claim); // a negative one is fine

// Returns 0, -ENOENT if there is no file, -ENOMEM, -EINVAL if it is none of ours, or another
// negative errno; reterr says why, and names the path.
[[nodiscard]] int xds_state_load(
	const char *directory, struct xds_state *ret, struct lb_err *reterr);
// Mode 0600. On failure the file before is untouched. Returns 0 or a negative errno with the
// reason.
[[nodiscard]] int xds_state_save(
	const char *directory, const uint8_t *bytes, size_t len, struct lb_err *reterr);
// Renames it to "xds-state.corrupt", in place of an earlier one. Returns 0 or a negative errno.
int xds_state_set_aside(const char *directory);
