// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/rival_protobuf.h"

#include <assignment.pb.h>

void *rival_protobuf_parse(const uint8_t *bytes, size_t len)
{
	auto *m = new envoy::config::endpoint::v3::ClusterLoadAssignment;
	if (m->ParseFromArray(bytes, static_cast<int>(len)))
		return m;
	delete m;
	return nullptr;
}

void rival_protobuf_free(void *m)
{
	delete static_cast<envoy::config::endpoint::v3::ClusterLoadAssignment *>(m);
}
