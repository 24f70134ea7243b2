// SPDX-License-Identifier: Apache-2.0
// The variants in which a test's server has a resource (xRFC TP2), and for whom they are: each for
// some values of the dynamic parameter "env".
// Thread: the test's.
#pragma once

#include "envoy/service/discovery/v3/discovery.pb-c.h"

#include <stdbool.h>

enum variant { VARIANT_PLAIN, VARIANT_PROD, VARIANT_ANY_ENV, VARIANT_NOT_TEST, VARIANT_TEST };
#define N_VARIANTS 5

void variants_init(void);
void variants_fini(void);
// NULL = none; lives until variants_fini().
Envoy__Service__Discovery__V3__DynamicParameterConstraints *variant_constraints(enum variant);
// Is it for those whose env is "prod", or for those who have none?
bool variant_matches(enum variant, bool is_prod);
