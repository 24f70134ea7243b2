// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses (envoy.config.core.v3.CidrRange). Not for users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "envoy/config/core/v3/address.pb-c.h"
#include "lb/base/ip.h"

enum res_cidr_too_long {
	RES_CIDR_CUT, // A36-11: a length that is too large is the largest one
	RES_CIDR_REFUSE, // A41-07
};

// No length is 0. 0 or -EINVAL.
int res_cidr_read(struct res_reader *, const Envoy__Config__Core__V3__CidrRange *,
	enum res_cidr_too_long, struct ip_prefix *ret);
