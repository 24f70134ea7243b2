// SPDX-License-Identifier: Apache-2.0
// What others have to say goes into our log: libgrpc, and the xDS client, which does not log by
// itself.
// Thread: ctrl; libgrpc speaks on any of its own.
#pragma once

void hearsay_begin(void);
void hearsay_xds(void *ctx, const char *line);
