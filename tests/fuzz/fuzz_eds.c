// SPDX-License-Identifier: Apache-2.0
// Any bytes as a ClusterLoadAssignment: the decoder that reads them itself and the one by
// protobuf-c give the same verdict and the same content.
#include "ctrl/res/endpoints.h"
#include "lb/base/check.h"
#include "tests/support/eds_oracle.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xds_decoded d = {0};
	// Of its own, so that a step beyond the end is seen.
	uint8_t *bytes = malloc(size ? size : 1);
	CHECK(bytes);
	if (size)
		memcpy(bytes, data, size);
	res_type_endpoints.decode(bytes, size, &d);
	struct xds_res *twin = eds_oracle_decode(bytes, size);
	free(bytes);
	CHECK(!d.res == !!*d.err.text);
	CHECK(!d.res == !twin);
	if (d.res) {
		CHECK(strcmp(d.name, d.res->name) == 0);
		CHECK(eds_oracle_same(res_endpoints_from(d.res), res_endpoints_from(twin)));
	}
	xds_res_put(twin);
	xds_res_put(d.res);
	free(d.name);
	return 0;
}
