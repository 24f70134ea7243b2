// SPDX-License-Identifier: Apache-2.0
// A way to find the first matching route: ours, and those it is measured against.
// Thread: one.
#pragma once

#include "tests/bench/workload.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMPL_NONE UINT32_MAX

struct impl {
	const char *name;
	uint32_t max_routes; // more are not tried …
	const char *why; // … because
	void *(*build)(const struct workload *); // NULL = it can't
	uint32_t (*find)(void *, struct str path); // number of the first route, or IMPL_NONE
	double (*bytes)(void *, const struct workload *); // in all; < 0 = it does not say
	void (*free)(void *);
};

extern const struct impl impl_shunt, impl_linear, impl_re2_set, impl_hyperscan;

// What impl_linear asks for its regexes.
void *rival_re2_new(struct str pattern);
bool rival_re2_full_match(void *, struct str subject);
void rival_re2_free(void *);

#ifdef __cplusplus
}
#endif
