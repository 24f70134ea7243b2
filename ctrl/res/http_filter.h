// SPDX-License-Identifier: Apache-2.0
// The HTTP filters that Shunt knows (gRFC A39): what a listener configures and what routes override
// (routing.md FLT-01 to FLT-09). Not for users of the decoded resources.
// Thread: ctrl.
#pragma once

#include "ctrl/res/common.h"
#include "lb/filter.h"

#include <stdbool.h>
#include <stdint.h>

struct res_http_filter { // of a listener, whatever message it stands in
	const char *name;
	const Google__Protobuf__Any *config; // NULL = none
	bool is_optional, disabled;
};
// The chain without the router. 0, -EINVAL or -ENOMEM.
int res_filters_read(struct res_reader *, const struct res_http_filter *, size_t n,
	const struct lb_filter **ret, uint32_t *ret_n);

// One message's typed_per_filter_config, read entry by entry from the last to the first: of two
// with one key the last one counts.
struct res_override_reader {
	struct res_reader *rd;
	struct strmap names;
	struct lb_filter *list;
	uint32_t n;
};
int res_overrides_begin(struct res_override_reader *, struct res_reader *, size_t n);
int res_overrides_add(
	struct res_override_reader *, const char *name, const Google__Protobuf__Any *);
// rc: what add() said last.
int res_overrides_end(struct res_override_reader *, int rc, struct lb_filter_overrides *ret);

// protobuf-c gives the entries of each map a type of its own. An expression: 0, -EINVAL, -ENOMEM.
#define RES_OVERRIDES_READ(reader, message, ret)                                                   \
	({                                                                                         \
		struct res_override_reader or_;                                                    \
		size_t n_ = (message)->n_typed_per_filter_config;                                  \
		int rc_ = res_overrides_begin(&or_, (reader), n_);                                 \
		for (; !rc_ && n_; n_--)                                                           \
			rc_ = res_overrides_add(&or_,                                              \
				(message)->typed_per_filter_config[n_ - 1]->key,                   \
				(message)->typed_per_filter_config[n_ - 1]->value);                \
		res_overrides_end(&or_, rc_, (ret));                                               \
	})
