// SPDX-License-Identifier: Apache-2.0
// A header field as HTTP/2 decodes it and routing matches it: borrowed bytes.
// Thread: any.
#pragma once

#include "lb/base/str.h"

struct field {
	struct str name, value;
	bool never_index; // RFC 7541 7.1.3: must stay so on the next hop
	uint8_t name_id; // number of a name that HTTP/2 knows; 0 = compare the text
};
