// SPDX-License-Identifier: Apache-2.0
// What the handshakes of both roles go by, from files. The one protocol that is spoken is all that
// they offer: `h2`, or a client's `http/1.1`. The client believes any server: it measures.
// Thread: main.
#pragma once

#include "lb/base/err.h"

#include <stdbool.h>

struct tlshs_context;

// 0 with a reference of the caller's, or -EINVAL with reterr.
[[nodiscard]] int credentials_of_client(
	bool is_http1, struct tlshs_context **ret, struct lb_err *reterr);
// certificate, key: paths of PEM files. The same.
[[nodiscard]] int credentials_of_echo(const char *certificate, const char *key,
	struct tlshs_context **ret, struct lb_err *reterr);
