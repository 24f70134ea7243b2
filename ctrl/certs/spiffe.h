// SPDX-License-Identifier: Apache-2.0
// A SPIFFE trust bundle map (gRFC A87): JSON with the CAs of each trust domain.
// Thread: any.
#pragma once

#include "ctrl/certs/pem.h"
#include "lb/base/err.h"
#include "lb/base/str.h"

#include <stdint.h>

struct cert_bundle {
	char *trust_domain;
	char *ca_pem; // a text; "" = the domain has no CAs
};

struct cert_bundles {
	struct cert_bundle *list;
	uint32_t n;
};

// Adds the CAs to `cas`, for display. One bad key makes the map bad as a whole (TLS-108). Returns
// 0, -ENOMEM, or -EINVAL with the place and the reason; call fini() either way.
[[nodiscard]] int cert_bundles_read(
	struct str json, struct cert_bundles *ret, struct cert_list *cas, struct lb_err *reterr);
void cert_bundles_fini(struct cert_bundles *);
