// SPDX-License-Identifier: Apache-2.0
#include "tests/support/variant.h"

#include "lb/base/check.h"
#include "lb/base/err.h"
#include "proto/json.h"

#include <string.h>

static Envoy__Service__Discovery__V3__DynamicParameterConstraints *constraints[N_VARIANTS];

void variants_init(void)
{
	static const char *const JSON[N_VARIANTS] = {
		[VARIANT_PROD] = "{\"constraint\":{\"key\":\"env\",\"value\":\"prod\"}}",
		[VARIANT_ANY_ENV] = "{\"constraint\":{\"key\":\"env\",\"exists\":{}}}",
		[VARIANT_NOT_TEST] = "{\"notConstraints\":{\"constraint\":{\"key\":\"env\","
				     "\"value\":\"test\"}}}",
		[VARIANT_TEST] = "{\"constraint\":{\"key\":\"env\",\"value\":\"test\"}}",
	};
	for (int v = 0; v < N_VARIANTS; v++) {
		ProtobufCMessage *m;
		struct lb_err err;
		if (!JSON[v])
			continue;
		CHECK(proto_json_parse(
			      &envoy__service__discovery__v3__dynamic_parameter_constraints__descriptor,
			      JSON[v], strlen(JSON[v]), &m, &err) == 0);
		constraints[v] = (Envoy__Service__Discovery__V3__DynamicParameterConstraints *)m;
	}
}

void variants_fini(void)
{
	for (int v = 0; v < N_VARIANTS; v++)
		if (constraints[v])
			protobuf_c_message_free_unpacked(&constraints[v]->base, NULL);
}

Envoy__Service__Discovery__V3__DynamicParameterConstraints *variant_constraints(enum variant v)
{
	return constraints[v];
}

bool variant_matches(enum variant v, bool is_prod)
{
	return v == VARIANT_PLAIN || v == VARIANT_NOT_TEST ||
	       (is_prod && (v == VARIANT_PROD || v == VARIANT_ANY_ENV));
}
