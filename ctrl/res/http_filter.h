// SPDX-License-Identifier: Apache-2.0
// The supported HTTP filters (gRFC A39): a listener's configurations and routes' overrides (FLT-01
// to FLT-09). Not for users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/route/filter.h"

#include <stdbool.h>
#include <stdint.h>

struct res_http_filter { // of a listener, in any message
	const char *name;
	const Google__Protobuf__Any *config; // NULL = none
	bool is_optional, disabled;
};
// The chain without the router. 0, -EINVAL or -ENOMEM.
int res_filters_read(struct res_reader *, const struct res_http_filter *, size_t n,
	const struct lb_filter **ret, uint32_t *ret_n);

// One message's typed_per_filter_config, whose entries have a different type in each message of
// protobuf-c: at() returns entry i of n.
struct res_override_entry {
	const char *name;
	const Google__Protobuf__Any *config;
};
struct res_override_map {
	const void *message;
	size_t n;
	struct res_override_entry (*at)(const void *message, size_t i);
};
// Returns 0, -EINVAL or -ENOMEM. Of two entries with one name the last one is used.
int res_overrides_read(
	struct res_reader *, const struct res_override_map *, struct lb_filter_overrides *ret);
