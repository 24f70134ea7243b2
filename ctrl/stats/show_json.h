// SPDX-License-Identifier: Apache-2.0
// Fields of the JSON that commands answer with.
// Thread: ctrl.
#pragma once

#include "ctrl/assemble/overrides.h"
#include "lb/base/ip.h"
#include "lb/base/time.h"
#include "lb/pick/cause.h"

#include <jansson.h>

#include <stdint.h>

// A NULL from a failed allocation is passed through; the final result is then NULL.
void show_set_u64(json_t *object, const char *key, uint64_t value);
void show_set_text(json_t *object, const char *key, const char *value);
void show_set_address(json_t *object, const char *key, const struct ip_port *); // NULL: ""
static inline double show_seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SECOND;
}
// "tls_result": gRFC A118's word for an error that TLS is to blame for, or "".
void show_set_tls_result(json_t *object, const char *error);
// "override": what operators say of the endpoint, or "".
void show_set_override(json_t *object, const struct override *);
json_t *show_causes(const uint64_t ended[LB_N_CAUSES]);
