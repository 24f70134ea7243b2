// SPDX-License-Identifier: Apache-2.0
// HttpGrpcAccessLogConfig: an access log for a service (OPS-217). Which cluster it is, is a name
// that shunt.yaml knows an address of, or none.
// Thread: ctrl.
#pragma once

#include "ctrl/access_log/want.h"

struct res_reader;

// message: an HttpGrpcAccessLogConfig. 0, -EINVAL with the reason in the reader's err, or -ENOMEM.
[[nodiscard]] int res_access_grpc_read(
	struct res_reader *, const void *message, struct access_want *);
