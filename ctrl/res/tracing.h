// SPDX-License-Identifier: Apache-2.0
// HttpConnectionManager.tracing: which requests are traced (OPS-163). gRPC's clients ignore it, so
// nothing in it is a reason to refuse a listener: what is not understood is left out with a
// warning. Where spans go is for shunt.yaml to say.
// Thread: ctrl.
#pragma once

#include "envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager.pb-c.h"
#include "lb/route/tracing.h"

struct res_reader;

#define RES_HCM(x) Envoy__Extensions__Filters__Network__HttpConnectionManager__V3__##x
typedef RES_HCM(HttpConnectionManager__Tracing) res_tracing_message;

// tracing: NULL = absent. *ret is off if there is none that is understood.
void res_tracing_read(
	struct res_reader *, const res_tracing_message *tracing, struct lb_tracing *ret);
