// SPDX-License-Identifier: Apache-2.0
// Clients that speak HTTP/1.1: lets an h1_conn carry the one stream of an h2_conn, so that all else
// in this folder sees streams alone (docs/decisions/http1.md).
// Thread: the owning worker.
#pragma once

#include "dataplane/h2/carrier.h"

// To be given to h2_context_set_carrier() with an h1_context.
extern const struct h2_carrier proxy_http1_carrier;
