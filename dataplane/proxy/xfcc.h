// SPDX-License-Identifier: Apache-2.0
// An element of x-forwarded-client-cert (HX-58, HX-59): what a client has proven to be.
// Thread: any. Pure.
#pragma once

#include "lb/route/forwarding.h"

#include <stddef.h>

struct tlshs_peer;

// Writes "By=…;Hash=…;Subject="…";URI=…;DNS=…" as far as the listener asks for it. own_uris: of our
// certificate, as struct tlshs_result has them. Returns its length; 0 = there is no room for all.
size_t proxy_xfcc_write(const struct lb_forwarding *, const struct tlshs_peer *,
	const char *own_uris, char *ret, size_t size);
